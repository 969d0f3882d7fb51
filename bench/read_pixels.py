"""A reader of cheap pixels: what sharpness, spectra and colors alone get right of a dataset's questions with images.

    python -m bench.read_pixels DATASET [TASK ...]

Of a whole picture it sees sharpness, contrast and the energy in eight bands of frequencies; of a mark the color in its
open center and around it, against those of the query's mark. Where options are numbers, a ridge regression tells from
the pictures what the numbers of the answer usually are. Boosted trees choose, cross-fitted by scene. One line per task,
form and kind of cue: accuracy over two splits, its 95 % interval over scenes, chance; `none` sees the options alone.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence

import cv2
import numpy as np

from bench.read_text import FOLDS, bound, choose, split_scenes
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.quality.solvers import describe_spectrum, look
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.drawing import StrokeSizes
from vgbench_gen.tasks.solving import Image, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.seen import list_candidate_images, list_marks, read_point

BANDS, FEWEST = 8, 40
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def _see_mark(image: Image, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(Lab means in the open center and in two rings around the mark, or in a rectangle; spread and sharpness)."""
    lab = cv2.cvtColor(image.color, cv2.COLOR_RGB2LAB).astype(np.float64)
    if len(place) == 4:
        x0, y0, x1, y1 = (int(x) for x in place)
        inside = lab[y0 : y1 + 1, x0 : x1 + 1]
        return inside.mean(axis=(0, 1)), np.log([inside[..., 0].var() + 1, cv2.Laplacian(inside[..., 0], -1).var() + 1])
    sizes = StrokeSizes.of(*image.size)
    (u, v), reach = (int(x) for x in place), 3 * sizes.reach
    x0, y0 = max(u - reach, 0), max(v - reach, 0)
    near = lab[y0 : v + reach + 1, x0 : u + reach + 1]
    away = np.hypot(*np.ogrid[y0 - v : y0 - v + near.shape[0], x0 - u : x0 - u + near.shape[1]])
    parts = [near[(away >= a) & (away <= b)] for a, b in ((0, sizes.open_centre), (sizes.reach, 2 * sizes.reach))]
    parts.append(near[away > 2 * sizes.reach] if (away > 2 * sizes.reach).any() else parts[-1])
    return np.concatenate([p.mean(axis=0) for p in parts]), np.log([p[:, 0].var() + 1 for p in parts])


def _see_options(seen: VisibleQuestion) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Kind of cue -> (what is seen (k, d) of each option, what is seen (f,) of the question)."""
    none, k = np.zeros(0), 1 if seen.form == "judgment" else len(seen.options)
    if seen.marks and (k == 1 or set(seen.options) <= set(seen.marks)):
        marks = [_see_mark(seen.images[-1], place) for place in list_marks(seen)]
        colors, spread = (np.array(x) for x in zip(*marks, strict=True))
        if len(seen.images) == 2:
            color, contrast = _see_mark(seen.images[0], read_point(seen.question))
            off = (colors - color).reshape(len(marks), -1, 3)
            parts = np.linalg.norm(off, axis=2), np.abs(off[..., 0]), np.linalg.norm(off[..., 1:], axis=2)
            colors, around = (np.concatenate([p[:, rings] for p in parts], axis=1) for rings in ([0], [1, 2]))
            return {"color": (colors, none), "around": (around, none), "contrast": (np.abs(spread - contrast), none)}
        return {"color": (colors, none), "contrast": (spread, none)}
    views = [describe_spectrum(image.gray, BANDS) for image in seen.images]
    if len(views) == 1 + k > 2:
        shown = np.array([describe_spectrum(image.gray, BANDS) for image in list_candidate_images(seen)]) - views[0]
        return {"spectrum": (shown, _read_numbers(seen.question))}
    numbers = [_read_numbers(x) for x in ((seen.question,) if k == 1 else seen.options)]
    own = np.array([x[: min(map(len, numbers))] for x in numbers])
    return {
        "none": (own, none),
        "spectrum": (own, np.concatenate([views[0], *(view - views[0] for view in views[1:])])),
    }


def _read_numbers(text: str) -> FloatArray:
    """The numbers of an option, a claim or the matrices of a question; of a homography also its determinant."""
    inside = text[text.find("[") : text.rfind("]") + 1] or text
    found = np.array([float(x) for x in _NUMBER.findall(inside)])
    wide = np.concatenate([found, np.log(np.abs(found) + 1e-3)])
    return np.append(wide, np.log(abs(np.linalg.det(found.reshape(3, 3))) + 1e-9)) if found.size == 9 else wide


def _answer(own: FloatArray, shown: FloatArray, truth: IntArray, fold: IntArray) -> FloatArray:
    """(n,) whether each question is answered right by who has seen those of other folds."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    n, k, d = own.shape
    x = np.concatenate([own, np.repeat(shown[:, None], k, axis=1)], axis=2)
    if shown.shape[1]:
        known, usual = np.flatnonzero(truth == 0) if k == 1 else np.arange(n), np.zeros((n, d))
        answers = own[np.arange(n), 0 if k == 1 else truth]
        for number in range(FOLDS):  # also for training: by what other folds show
            learnt = known[fold[known] != number]
            model = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(0.1, 1000, 9)))
            usual[fold == number] = (
                model.fit(shown[learnt], answers[learnt]).predict(shown[fold == number]).reshape(-1, d)
            )
        x = np.concatenate([x, own - usual[:, None], np.abs(own - usual[:, None])], axis=2)
    if k > 1:
        x = np.concatenate([x, x - x.mean(axis=1, keepdims=True), (x[:, :, None] > x[:, None]).sum(axis=2)], axis=2)
    return choose(x, truth, fold, 0)


def measure(path: str, tasks: Sequence[str] = ()) -> Iterator[tuple[str, str, str, int, float, float, float, float]]:
    """(task, form, cue, n, accuracy, low, high, chance) of each cell with options and images, shares in percent."""
    cells: dict[tuple[str, str, str], list[tuple[Question, FloatArray, FloatArray]]] = defaultdict(list)
    dataset: Dataset = load(path)
    for item in dataset:
        if item.question_type == "open-ended" or (tasks and item.task not in tasks):
            continue
        question = read_question(item)
        images = [Image(dataset.image_bytes(item, place)) for place in range(len(item.images))]
        try:
            for cue, (own, shown) in _see_options(look(question, images)).items():
                task = item.task
                if item.task == "camera_parameters":
                    task += " centers" if item.ask in ("cx", "cy") else " angles"
                cells[task, item.question_type, cue].append((question, own, shown))
        except Unread:
            continue
    for (task, form, cue), rows in sorted(cells.items()):
        names, scene = np.unique([question.scene for question, _, _ in rows], return_inverse=True)
        if len(rows) < FEWEST or len(names) < 2 * FOLDS:
            continue
        own, shown = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
        truth = np.array([question.truth for question, _, _ in rows])
        right = np.mean([_answer(own, shown, truth, fold) for fold in split_scenes(scene)], axis=0)
        yield task, form, cue, len(rows), *bound(right, scene), 100 / max(own.shape[1], 2)


if __name__ == "__main__":
    for line in measure(sys.argv[1], sys.argv[2:]):
        print("{:26} {:13} {:9} n {:4}  {:5.1f} [{:.1f}, {:.1f}]  chance {:.0f}".format(*line), flush=True)
