"""Classifiers that learn which answers are right from text, and say so about scenes they have not seen."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray
from vgbench_gen.quality import _values, features
from vgbench_gen.quality._blocks import PRINTED
from vgbench_gen.quality.questions import Question

FOLDS = 5
TREES, SHARE = 60, 0.7  # of the forest, and of the lines that each tree sees
_NO_QUANTITIES = ("text ", "ask", "place", "claimed", *PRINTED)  # how a feature's name begins
_FEATURES = 1 / 3  # of the features, of which each split tries one threshold


@dataclass(frozen=True, slots=True)
class LearnerRows:
    """The options, or the claims, of questions as lines that a model is trained on."""

    X: FloatArray
    """The values of the features, (lines, features); NaN where a feature has no meaning."""
    names: tuple[str, ...]
    """The names of the features, in the order of the columns of `X`."""
    words: sparse.csr_array
    """The weights of the terms of each line, (lines, terms)."""
    asked: sparse.csr_array
    """The weights of the terms of each question without its numbers, (questions, terms)."""
    question: IntArray
    """The place of each line's question in the list given, (lines,)."""
    right: BoolArray
    """Whether the option is right, or the claim true, (lines,)."""


def make_rows(questions: Sequence[Question]) -> LearnerRows:
    """Multi-choice: a line per option. Judgments: a line per question, right where the answer is the first (yes)."""
    truth = np.array([q.truth for q in questions], dtype=np.int64)
    asked = _weigh_terms([_pair_words(w for w in _find_words(q.question) if w.isalpha()) for q in questions])
    if questions[0].form == "judgment":
        table, right = features.make_claim_table(questions), truth == 0
        texts = [_pair_words(_find_words(f"{q.question} {q.context}")) for q in questions]
    else:
        table = features.make_option_table(questions)
        right = table.option == truth[table.question]
        texts = [_list_option_terms(questions[i], j) for i, j in zip(table.question, table.option, strict=True)]
    return LearnerRows(table.X, table.names, _weigh_terms(texts), asked, table.question, right)


def _find_words(text: str) -> list[str]:
    return _values.WORD.findall(text.lower())


def _pair_words(words: Iterable[str]) -> list[str]:
    words = list(words)
    return words + [f"{a} {b}" for a, b in itertools.pairwise(words)]


def _list_option_terms(question: Question, option: int) -> list[str]:
    """Terms of one option: its words, alone and with what is asked, its place, and its numbers in short form."""
    words = _find_words(question.options[option])
    numbers = [f"~{value:.1e}" for value in _values.read_numbers(question.options[option])[:24]]
    terms = [*words, *numbers, f"place {option}", f"place {option} {question.ask}"]
    return terms + [f"{word} {question.ask}" for word in words]


def _weigh_terms(documents: Sequence[Sequence[str]]) -> sparse.csr_array:
    """TF-IDF of terms that stand in at least two lines; learnt without any answer, so over all folds at once."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        weights = TfidfVectorizer(analyzer=list, min_df=2, sublinear_tf=True).fit_transform(documents)
    except ValueError:  # no term stands in two lines
        return sparse.csr_array((len(documents), 1), dtype=np.float64)
    return sparse.csr_array(weights)


def state_of(seed: int, *names: str) -> int:
    """Seed of one use of a learner, for scikit-learn."""
    return int(rng_for(seed, "blind", *names).integers(2**31 - 1))


def split_folds(questions: Sequence[Question], groups: IntArray, state: int) -> IntArray:
    """Fold of each question (n,); a scene lies in one fold, answers are spread over the folds."""
    from sklearn.model_selection import StratifiedGroupKFold

    truth = np.array([q.truth for q in questions], dtype=np.int64)
    count = min(FOLDS, len(np.unique(groups)))
    if np.bincount(np.maximum(truth, 0)).max() < count:
        truth = np.zeros_like(truth)
    fold = np.zeros(len(questions), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an answer rarer than the folds is fine here
        splitter = StratifiedGroupKFold(count, shuffle=True, random_state=state)
        for number, (_, test) in enumerate(splitter.split(truth, truth, groups)):
            fold[test] = number
    return fold


def predict_out_of_fold(
    name: str, rows: LearnerRows, fold: IntArray, state: int, trees: int = TREES, share: float = SHARE
) -> FloatArray:
    """Out-of-fold probability (lines,) that a line is right; multi-choice: shares that sum to 1 over a question."""
    from sklearn.linear_model import LogisticRegression

    line_fold = fold[rows.question]
    belief = np.full(len(rows.right), float(rows.right.mean()))
    source = np.hstack([rows.X, _measure_unusual(rows, line_fold)]) if name == "forest" else rows.words
    for number in np.unique(fold):
        test = line_fold == number
        if source.shape[1] == 0 or len(np.unique(rows.right[~test])) < 2:
            continue
        if name == "forest":
            model = fit_forest(trees, share, state)
        else:
            model = LogisticRegression(solver="liblinear", random_state=state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # few lines give small samples; the verdict will be "few"
            model.fit(source[~test], rows.right[~test])
        belief[test] = model.predict_proba(source[test])[:, 1]
    if len(rows.right) == len(fold):
        return belief
    total = np.bincount(rows.question, weights=belief)
    return np.asarray(belief / np.maximum(total[rows.question], 1e-12))


def _measure_unusual(rows: LearnerRows, fold: IntArray) -> FloatArray:
    """(lines, q + 1) how far each quantity of an option, and all of them, are from what the words of its question make
    likely: a ridge regression on the right answers of other folds. What is called a mug is small."""
    from sklearn.linear_model import Ridge

    plain = [k for k, name in enumerate(rows.names) if ": " not in name and not name.startswith(_NO_QUANTITIES)]
    if not plain:
        return np.zeros((len(rows.right), 0))
    X = np.nan_to_num(rows.X[:, plain])
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    likely = np.zeros(X.shape)
    for number in np.unique(fold):
        learnt, here = rows.right & (fold != number), fold == number
        if learnt.any():
            model = Ridge(1.0).fit(rows.asked[rows.question[learnt]], X[learnt])
            likely[here] = model.predict(rows.asked[rows.question[here]]).reshape(-1, len(plain))
    off = np.abs(X - likely)
    return np.column_stack([off, np.linalg.norm(off, axis=1)])


def fit_forest(trees: int, share: float, state: int) -> Any:
    """A forest for yes and no, whose leaves are large enough to give a probability.

    Its splits are drawn at random and the best of them is taken (Geurts, Ernst and Wehenkel 2006), which finds what a
    forest of best splits finds in a fifth of the time, because nothing has to be sorted.
    """
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(
        trees,
        min_samples_leaf=5,
        max_features=_FEATURES,
        bootstrap=True,
        max_samples=share,
        n_jobs=1,
        random_state=state,
    )


def name_important_features(rows: LearnerRows, seed: int) -> str:
    """The five quantities that a forest uses most; what to look at in the sampler."""
    model = fit_forest(TREES, SHARE, state_of(seed, "leans on")).fit(rows.X, rows.right)
    weight: dict[str, float] = {}
    for name, importance in zip(rows.names, model.feature_importances_, strict=True):
        quantity = name.partition(": ")[0]
        weight[quantity] = weight.get(quantity, 0.0) + float(importance)
    most = sorted(weight, key=lambda quantity: -weight[quantity])[:5]
    return ", ".join(f"{quantity} {weight[quantity]:.0%}" for quantity in most)


def score_credit(belief: FloatArray, rows: LearnerRows) -> FloatArray:
    """Whether the most believed answer is right, (n,); answers believed alike share the credit."""
    belief = np.round(belief, 9)  # averages over repeats differ in the last digit
    if len(belief) == rows.question.max() + 1:
        return np.where(belief == 0.5, 0.5, (belief > 0.5) == rows.right)
    best = np.full(rows.question.max() + 1, -np.inf)
    np.maximum.at(best, rows.question, belief)
    chosen = belief == best[rows.question]
    return np.asarray(
        np.bincount(rows.question, weights=chosen & rows.right) / np.bincount(rows.question, weights=chosen)
    )


def pick_truth_probability(belief: FloatArray, rows: LearnerRows) -> FloatArray:
    """Probability (n,) given to the right answer of each question."""
    if len(belief) == rows.question.max() + 1:
        return np.where(rows.right, belief, 1 - belief)
    return np.asarray(np.bincount(rows.question, weights=belief * rows.right), dtype=np.float64)
