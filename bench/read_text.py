"""A reader of whole texts, unlike the audit's: what it gets right of a dataset's questions without seeing an image.

    python -m bench.read_text DATASET

It reads words as tokens and numbers in their places. A ridge regression tells from the words of a question what the
numbers of its answer usually are; boosted trees then choose by the numbers of the options, by how far they are from
that, and by how options of a set compare. Scenes of training and test are apart. One line per task and form: accuracy
over two splits, its 95 % interval over scenes, and chance.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from vgbench_gen.core.types import ALPHABET, FloatArray, IntArray, Item
from vgbench_gen.store.dataset import load

FOLDS, SPLITS, DRAWS = 5, 2, 500
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_SHOWN = 16  # numbers of the question that are looked at
_FEWEST = 40  # questions of a cell


def _read_numbers(text: str) -> FloatArray:
    return np.array([float(token) for token in _NUMBER.findall(text)])


def _describe(numbers: FloatArray) -> FloatArray:
    """What is looked at of an option: its numbers and their sizes; of eight corners the middle, extents and sides."""
    if numbers.size == 24:
        corners = numbers.reshape(8, 3)
        sides = np.sort(np.linalg.norm(corners[[1, 3, 4]] - corners[0], axis=1))
        found = (
            corners.mean(axis=0),
            np.log(np.ptp(corners, axis=0) + 1e-3),
            np.log(sides + 1e-3),
            corners.max(axis=0),
        )
        return np.concatenate(found)
    return np.concatenate([numbers, np.log(np.abs(numbers) + 1e-3)]) if numbers.size else np.zeros(1)


def _read(items: Sequence[Item]) -> tuple[list[str], FloatArray, FloatArray, IntArray]:
    """(words, numbers of the question, (n, k, d) options, place of the truth); a claim is one option, true or not."""
    words, shown, options, truth = [], [], [], []
    for item in items:
        text = f"{item.context} {item.question}"
        claims = item.question_type == "judgment"
        words.append(_NUMBER.sub(" # ", text.lower()))
        shown.append(np.resize(np.append(_read_numbers(item.context if claims else text), 0.0), _SHOWN))
        options.append([_describe(_read_numbers(o)) for o in ((item.question,) if claims else item.options)])
        truth.append(int(item.answer != "Yes") if claims else ALPHABET.index(item.answer))
    size = min(len(option) for one in options for option in one)
    values = np.array([[option[:size] for option in one] for one in options])
    return words, np.array(shown), values, np.array(truth)


def _compare(values: FloatArray, usual: FloatArray, shown: FloatArray) -> FloatArray:
    """(n, k, e) what the trees see of each option."""
    k, off = values.shape[1], values - usual[:, None]
    parts = [values, off, np.abs(off), np.linalg.norm(off, axis=2, keepdims=True), np.repeat(shown[:, None], k, axis=1)]
    if k > 1:
        apart = np.linalg.norm(values[:, :, None] - values[:, None], axis=3)
        parts += [values - values.mean(axis=1, keepdims=True), (values[:, :, None] > values[:, None]).sum(axis=2)]
        parts += [(np.abs(off)[:, :, None] > np.abs(off)[:, None]).sum(axis=2), apart.mean(axis=2)[..., None]]
        parts.append((apart + 1e9 * np.eye(k)).min(axis=2)[..., None])
    return np.concatenate(parts, axis=2)


def _answer(
    words: Sequence[str], shown: FloatArray, values: FloatArray, truth: IntArray, fold: IntArray, seed: int
) -> FloatArray:
    """(n,) whether each question is answered right by who has read those of other folds."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge

    n, k, d = values.shape
    values = values / (values.reshape(-1, d).std(axis=0) + 1e-9)
    known = np.flatnonzero(truth == 0) if k == 1 else np.arange(n)  # whose answer has numbers
    answers = values[np.arange(n), 0 if k == 1 else truth]
    usual = np.zeros((n, d))
    for number in range(FOLDS):  # also for training: by the words of other folds
        vectors = TfidfVectorizer(min_df=2, ngram_range=(1, 2), token_pattern=r"[a-z0-9#]+", sublinear_tf=True)
        learnt = known[fold[known] != number]
        model = Ridge(3.0).fit(vectors.fit_transform([words[int(i)] for i in learnt]), answers[learnt])
        here = np.flatnonzero(fold == number)
        usual[here] = model.predict(vectors.transform([words[int(i)] for i in here])).reshape(len(here), d)
    seen = _compare(values, usual, shown)
    return choose(seen, truth, fold, seed)


def choose(seen: FloatArray, truth: IntArray, fold: IntArray, seed: int) -> FloatArray:
    """(n,) whether boosted trees that have learnt from other folds choose the right of k options, or tell whether a
    claim is true, by what is seen of each (n, k, d)."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    (_n, k, d), right = seen.shape, np.zeros(len(truth))
    labels = (truth == 0)[:, None] if k == 1 else truth[:, None] == np.arange(k)
    for number in range(FOLDS):
        learnt, here = fold != number, fold == number
        trees = HistGradientBoostingClassifier(
            max_iter=80, learning_rate=0.06, max_leaf_nodes=10, min_samples_leaf=15, random_state=seed
        )
        trees.fit(seen[learnt].reshape(-1, d), labels[learnt].ravel())
        belief = trees.predict_proba(seen[here].reshape(-1, d))[:, 1].reshape(-1, k)
        right[here] = (belief[:, 0] > 0.5) == labels[here, 0] if k == 1 else belief.argmax(axis=1) == truth[here]
    return right


def split_scenes(scene: IntArray) -> list[IntArray]:
    """The fold of each question, for every split."""
    return [np.random.default_rng(split).permutation(scene.max() + 1)[scene] % FOLDS for split in range(SPLITS)]


def bound(right: FloatArray, scene: IntArray) -> tuple[float, float, float]:
    """(accuracy, low, high) in percent: 95 % over scenes."""
    sums, sizes = np.bincount(scene, right), np.bincount(scene)
    drawn = np.random.default_rng(0).integers(len(sums), size=(DRAWS, len(sums)))
    low, high = 100 * np.percentile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [2.5, 97.5])
    return 100 * float(right.mean()), float(low), float(high)


def measure(path: str) -> Iterator[tuple[str, str, int, float, float, float, float]]:
    """(task, form, n, accuracy, low, high, chance) of each cell with options, shares in percent."""
    cells: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for item in load(path):
        if item.question_type != "open-ended":
            cells[item.task, item.question_type].append(item)
    for (task, form), items in sorted(cells.items()):
        names, scene = np.unique([f"{item.source}/{item.scene_id}" for item in items], return_inverse=True)
        if len(items) < _FEWEST or len(names) < 2 * FOLDS:
            continue
        words, shown, values, truth = _read(items)
        right = np.mean(
            [_answer(words, shown, values, truth, fold, k) for k, fold in enumerate(split_scenes(scene))], axis=0
        )
        chance = 50.0 if form == "judgment" else 100 / values.shape[1]
        yield task, form, len(items), *bound(right, scene), chance


if __name__ == "__main__":
    for line in measure(sys.argv[1]):
        print("{:22} {:13} n {:4}  {:5.1f} [{:.1f}, {:.1f}]  chance {:.0f}".format(*line))
