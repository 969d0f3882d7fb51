"""Classifiers that learn which answers are right from text, and say so about scenes they have not seen."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray
from vgbench_gen.quality import reading
from vgbench_gen.quality.description import Description, describe, name_around, rank
from vgbench_gen.quality.questions import Question

FOLDS = 5  # the usual number of parts in cross-validation
TREES, SHARE = 40, 0.7  # of the forest, and of the lines that each tree sees; more trees change no verdict
_FEATURES = 1 / 3  # of the features, of which each split tries one threshold


@dataclass(frozen=True, slots=True)
class LearnerRows:
    """The options, or the claims, of questions as lines that a model is trained on."""

    seen: Description
    asks: IntArray
    """The number of what each question asks, (questions,)."""
    words: sparse.csr_array
    """The weights of the terms of each line, (lines, terms)."""
    asked: sparse.csr_array
    """The weights of the terms of each question without its numbers, and the numbers around its options, (questions,
    terms)."""
    question: IntArray
    """The place of each line's question in the list given, (lines,)."""
    option: IntArray
    """The place of each line's option in its question, (lines,)."""
    right: BoolArray
    """Whether the option is right, or the claim true, (lines,)."""


def make_rows(questions: Sequence[Question]) -> LearnerRows:
    """Multi-choice: a line per option. Judgments: a line per question, right where the answer is the first (yes)."""
    seen, truth = describe(questions), np.array([q.truth for q in questions], dtype=np.int64)
    asks = np.unique([q.ask for q in questions], return_inverse=True)[1].astype(np.int64)
    asked = _describe_asked(questions, seen.around)
    if questions[0].form == "judgment":
        words = _weigh_terms([_pair_words(reading.find_words(f"{q.question} {q.context}")) for q in questions])
        return LearnerRows(seen, asks, words, asked, np.arange(len(questions)), seen.claimed, truth == 0)
    question, option = np.nonzero(seen.there)
    words = _weigh_terms([_list_option_terms(questions[i], j) for i, j in np.argwhere(seen.there).tolist()])
    return LearnerRows(seen, asks, words, asked, question, option, option == truth[question])


def _describe_asked(questions: Sequence[Question], around: FloatArray) -> sparse.csr_array:
    """(questions, terms) words of the text without its numbers, and the numbers around the options with their sizes."""
    texts = [reading.find_words(f"{q.question} {q.context}") for q in questions]
    words = _weigh_terms([_pair_words(w for w in text if w.isalpha()) for text in texts])
    numbers = scale_columns(np.hstack([around, np.log(np.maximum(np.abs(around), 1e-9))]))
    return sparse.csr_array(sparse.hstack([words, sparse.csr_array(numbers / 3)]))  # as large as weights of words


def scale_columns(columns: FloatArray) -> FloatArray:
    """Columns by their spread about their mean, 0 where NaN."""
    known = ~np.isnan(columns)
    count = np.maximum(known.sum(axis=0), 1)
    middle = np.where(known, columns, 0).sum(axis=0) / count
    off = np.where(known, columns - middle, 0)
    return np.asarray(off / np.maximum(np.sqrt((off**2).sum(axis=0) / count), 1e-9))


def _pair_words(words: Iterable[str]) -> list[str]:
    words = list(words)
    return words + [f"{a} {b}" for a, b in itertools.pairwise(words)]


def _list_option_terms(question: Question, option: int) -> list[str]:
    """Terms of one option: its words, alone and with what is asked, its place, and its numbers in short form."""
    words = reading.find_words(question.options[option])
    numbers = [f"~{value:.1e}" for value in reading.read_numbers(question.options[option])[:24]]
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

    truth, fold = np.array([q.truth for q in questions]), np.zeros(len(questions), dtype=np.int64)
    count = min(FOLDS, len(np.unique(groups)))
    if count < 2:
        return fold
    if np.bincount(np.maximum(truth, 0)).max() < count:
        truth[:] = 0
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
    source = compare(rows, fold)[1] if name == "forest" else rows.words
    for number in np.unique(fold):
        test = line_fold == number
        if source.shape[1] == 0 or len(np.unique(rows.right[~test])) < 2:
            continue
        linear = LogisticRegression(solver="liblinear", random_state=state)
        model = _make_forest(trees, share, state) if name == "forest" else linear
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # few lines give small samples; the verdict will be "few"
            model.fit(source[~test], rows.right[~test])
        belief[test] = model.predict_proba(source[test])[:, 1]
    if len(rows.right) == len(fold):
        return belief
    total = np.bincount(rows.question, weights=belief)
    return np.asarray(belief / np.maximum(total[rows.question], 1e-12))


def measure_unusual(rows: LearnerRows, fold: IntArray) -> FloatArray:
    """(n, k, quantities + 1) how far each quantity of an option, and all of them, are from what the words of its
    question and the numbers in it make likely: a ridge regression on the right answers of other folds."""
    n, k, _ = rows.seen.columns.shape
    X = scale_columns(rows.seen.columns[..., : rows.seen.quantities].reshape(n * k, -1)).reshape(n, k, -1)
    places, options = rows.question[rows.right], rows.option[rows.right]
    likely = _predict_likely(rows.asked, places, X[places, options], fold)
    off = np.abs(X - likely[:, None])
    return np.concatenate([off, np.linalg.norm(off, axis=2, keepdims=True)], axis=2)


def _predict_likely(asked: sparse.csr_array, places: IntArray, values: FloatArray, fold: IntArray) -> FloatArray:
    """(n, quantities) what a ridge regression expects that has learnt the values at these places in other folds."""
    from sklearn.linear_model import Ridge

    likely = np.zeros((len(fold), values.shape[1]))
    for number in np.unique(fold) if likely.size else ():
        learnt, here = fold[places] != number, fold == number
        if learnt.any():
            model = Ridge(1.0).fit(asked[places[learnt]], values[learnt])
            likely[here] = model.predict(asked[here]).reshape(-1, values.shape[1])
    return likely


def predict_numbers(questions: Sequence[Question], groups: IntArray, state: int) -> FloatArray | None:
    """(n,) answers of open-ended questions by a forest that has seen the text and the drawn marks of other scenes; None
    where they are not all positive numbers, or the text has none."""
    from sklearn.ensemble import RandomForestRegressor

    value, around = np.array([q.value for q in questions]), name_around(questions)[1]
    if not (np.isfinite(value) & (value > 0)).all() or around.shape[1] == 0:
        return None
    fold, logs, guess = split_folds(questions, groups, state), np.log(value), np.zeros(len(value))
    likely = _predict_likely(_describe_asked(questions, around), np.arange(len(value)), logs[:, None], fold)
    X = np.hstack([np.nan_to_num(around), likely])
    for number in np.unique(fold):
        test = fold == number
        model = RandomForestRegressor(80, min_samples_leaf=5, max_features=0.5, n_jobs=1, random_state=state)
        guess[test] = model.fit(X[~test], logs[~test]).predict(X[test])
    return np.asarray(np.exp(guess), dtype=np.float64)


def compare(rows: LearnerRows, fold: IntArray) -> tuple[list[str], FloatArray]:
    """(names, (lines, features)) what a forest sees of each line: every quantity of its option, by itself and
    as a rank, its numbers beside the largest and the smallest of the question, and what stands around them."""
    names, own = list_quantities(rows, fold)
    there = rows.seen.there
    numbers = own[..., : rows.seen.quantities]
    known = there[..., None] & ~np.isnan(numbers)
    below = np.where(known, numbers, -np.inf).max(axis=1, keepdims=True) - numbers
    above = numbers - np.where(known, numbers, np.inf).min(axis=1, keepdims=True)
    lines = [part[rows.question, rows.option] for part in (own, rank(own, there), below, above)]
    X = np.column_stack([*lines, rows.seen.around[rows.question], rows.asks[rows.question], rows.option])
    X = np.clip(np.nan_to_num(X, nan=0.0), -1e12, 1e12)
    names += [f"{name}: rank" for name in names]
    names += [f"{name}: {end}" for end in ("below", "above") for name in rows.seen.names[: rows.seen.quantities]]
    names += [*rows.seen.around_names, "ask", "place"]
    first = {column.tobytes(): k for k, column in reversed([*enumerate(X.T)]) if np.ptp(column) > 0}
    kept = sorted(first.values())  # what is the same everywhere, or for the second time, says nothing
    return [names[k] for k in kept], X[:, kept]


def list_quantities(rows: LearnerRows, fold: IntArray) -> tuple[list[str], FloatArray]:
    """(names, (n, k, quantities)) of every option by itself: numbers, print, distances, and how unusual; NaN where a
    question has fewer options."""
    seen = rows.seen
    names = [*seen.names, *(f"unusual {name}" for name in seen.names[: seen.quantities]), "unusual"]
    own = np.concatenate([seen.columns, measure_unusual(rows, fold)], axis=2)
    return names, np.where(seen.there[..., None], own, np.nan)


def _make_forest(trees: int, share: float, state: int) -> Any:
    """A forest for yes and no, whose leaves are large enough to give a probability.

    Its splits are drawn at random and the best of them is taken (Geurts, Ernst and Wehenkel 2006), which finds what a
    forest of best splits finds in a fifth of the time, because nothing has to be sorted.
    """
    from sklearn.ensemble import ExtraTreesClassifier

    kept = {"min_samples_leaf": 5, "max_features": _FEATURES, "bootstrap": True, "max_samples": share}
    return ExtraTreesClassifier(trees, **kept, n_jobs=1, random_state=state)


def name_important_features(rows: LearnerRows, fold: IntArray, seed: int) -> str:
    """The five quantities that a forest uses most; what to look at in the sampler."""
    names, X = compare(rows, fold)
    model = _make_forest(TREES, SHARE, state_of(seed, "leans on")).fit(X, rows.right)
    weight: Counter[str] = Counter()
    for name, importance in zip(names, model.feature_importances_.tolist(), strict=True):
        weight[name.partition(": ")[0]] += importance
    return ", ".join(f"{quantity} {share:.0%}" for quantity, share in weight.most_common(5))


def score_credit(belief: FloatArray, rows: LearnerRows) -> FloatArray:
    """Whether the most believed answer is right, (n,); answers believed alike share the credit."""
    belief = np.round(belief, 9)  # averages over repeats differ in the last digit
    if len(belief) == rows.question.max() + 1:
        return np.where(belief == 0.5, 0.5, (belief > 0.5) == rows.right)
    best = np.full(rows.question.max() + 1, -np.inf)
    np.maximum.at(best, rows.question, belief)
    chosen = belief == best[rows.question]
    credit = np.bincount(rows.question, weights=chosen & rows.right) / np.bincount(rows.question, weights=chosen)
    return np.asarray(credit)


def pick_truth_probability(belief: FloatArray, rows: LearnerRows) -> FloatArray:
    """Probability (n,) given to the right answer of each question."""
    if len(belief) == rows.question.max() + 1:
        return np.where(rows.right, belief, 1 - belief)
    return np.asarray(np.bincount(rows.question, weights=belief * rows.right), dtype=np.float64)
