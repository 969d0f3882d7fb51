"""Which of several candidate sets each fact is asked with, so that nobody tells the truth without looking.

Sets that are exchangeable one by one may still tell a reader of many of them how true options differ from wrong
ones. So several candidate sets are drawn for each fact, and one of them is chosen such that every number that is known
of an option, from the text or from looking without understanding, lies below each of many steps as often where the
option is true as where it is wrong. Boosted trees are then fitted to tell the truth in the sets chosen so far, for
every candidate set the rank of the truth under that model is noted, and sets are chosen anew such that each rank comes
out equally often as well. Reasons and figures: `docs/validity.md#balanced-selection`.

Models are cross-fitted by scene: none ranks sets of a scene that it has seen. Ranks of earlier rounds stay in force,
and so do the ranks of image cues, which rules without understanding choose by. Facts that no set of theirs fits into
that balance, such as truths at the edge of a range, may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray

ROUNDS = 2  # more rounds change nothing
FOLDS = 5  # as in the audit; with 3 the audit finds 3 to 4 points more in `object_location`
STEPS = 31  # of each cue, between as many values in each part
FEWEST_FACTS, FEWEST_SCENES = 50, 8  # fewer teach a model nothing that holds for other scenes
TREES = 40  # of a model
LEFT_OUT_MAX = 0.3  # of the facts
ALONE_LEFT_OUT_MAX = 0.6  # of facts that have one set each, which leaving out alone can balance
_SWEEPS = 4  # choices of later facts change what is best for earlier ones
_PRICE = 0.05  # share of the facts by which one may tip the balance; at 0.02 and 0.1 a forest finds 1 to 3 points more
_CHUNK = 20_000  # sets that are ranked at once
_SAME = 1e-6  # a cue whose options differ by less tells nothing of them
_DIGITS = 6  # of a model's belief; sums differ in their last digits

Ranks = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSets:
    """What can be known of the candidate sets of one fact without understanding an image. The truth is option 0."""

    scene: str
    """The scan, as "source/id"."""
    key: str
    """Names the fact among all."""
    text: npt.NDArray[np.float32]
    """(sets, options, d) what the text says of each option beside the question."""
    looks: npt.NDArray[np.float32]
    """(sets, options, e) what rules choose by that understand nothing of an image."""
    values: npt.NDArray[np.float32] | None = None
    """(sets, options, v) the printed numbers, where an answer is several; what is usual is near their median."""


def choose_sets(facts: Sequence[CandidateSets], seed: int) -> tuple[IntArray, BoolArray]:
    """The place of the set that fits best for each fact, (F,), and whether it fits, (F,).

    Up to `LEFT_OUT_MAX` of the facts do not: each set of theirs tips the balance, and they are better not asked. Facts
    too few to teach a model all fit.

    Args:
        facts: of one kind of question, each with at least one set, all with as many options and cues. Their order does
            not matter.
        seed: of the draws among what is equally good.
    """
    import sklearn.ensemble  # libraries that are loaded later would keep all their threads
    from threadpoolctl import threadpool_limits

    turn = sorted(range(len(facts)), key=lambda f: hash_stably("balanced", str(seed), facts[f].scene, facts[f].key))
    chosen, fits = np.zeros(len(facts), dtype=np.int64), np.ones(len(facts), dtype=bool)
    if facts:
        # Other processes use the other cores, and sums keep their order; cues are finite, and looking costs a tenth.
        with threadpool_limits(1), sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            chosen[turn], fits[turn] = _Selection([facts[f] for f in turn], seed).choose()
    return chosen, fits


class _Selection:
    """The facts in the order of their turns, and the ranks that the truth has in their sets so far."""

    def __init__(self, facts: Sequence[CandidateSets], seed: int) -> None:
        self.seed = seed
        counts = np.array([len(fact.text) for fact in facts])
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.values = [fact.values for fact in facts if fact.values is not None]
        text = np.concatenate([fact.text for fact in facts])
        gaps = [_measure_gaps(cues) for cues in (text, *([np.concatenate(self.values)] if self.values else []))]
        self.text = np.concatenate([text, *gaps], axis=2)
        self.looks = np.concatenate([fact.looks for fact in facts])
        self.cues = np.concatenate([self.text, self.looks], axis=2)
        names = sorted({fact.scene for fact in facts}, key=lambda name: hash_stably("fold", str(seed), name))
        fold = {name: place % FOLDS for place, name in enumerate(names)}
        self.fold = np.array([fold[fact.scene] for fact in facts])
        varies = np.ptp(self.cues, axis=1).max(axis=0) > _SAME
        self.parts = _find_parts(self.cues[:, :, varies])
        self.teaches = len(facts) >= FEWEST_FACTS and len(names) >= FEWEST_SCENES and self.text.shape[2] > 0
        alone = not any(np.ptp(fact.text, axis=0).any() for fact in facts)
        self.most_left_out = int((ALONE_LEFT_OUT_MAX if alone else LEFT_OUT_MAX) * len(facts)) if self.teaches else 0

    def choose(self) -> tuple[IntArray, BoolArray]:
        ranks = [self._rank(self.looks[:, :, cue]) for cue in range(self.looks.shape[2])]
        if self.teaches:
            ranks.append(self._rank(self._measure_nearness(self.text)))
            if self.values:
                ranks.append(self._rank(self._measure_nearness(np.concatenate(self.values))))
        chosen, fits = self._balance(ranks)
        for number in range(ROUNDS if self.teaches else 0):
            ranks.append(self._rank(self._believe(chosen, fits, number)))
            chosen, fits = self._balance(ranks)
        return chosen, fits

    def _measure_nearness(self, numbers: npt.NDArray[np.float32]) -> FloatArray:
        """(N, n) how near each option lies to the median truth of other scenes, over the spread of the truths, by what
        numbers (N, n, d) say of it."""
        truths = numbers[self.starts[:-1], 0]
        spread = np.maximum(truths.std(axis=0), _SAME)
        medians = np.stack([np.median(truths[self.fold != fold], axis=0) for fold in range(FOLDS)])
        fold, near = np.repeat(self.fold, np.diff(self.starts)), np.empty(numbers.shape[:2], dtype=numbers.dtype)
        for some in _cut(np.arange(len(numbers))):
            middle = medians[fold[some], None]
            near[some] = -np.linalg.norm((numbers[some] - middle) / spread, axis=2)
        return np.asarray(np.round(near, _DIGITS))

    def _rank(self, score: npt.NDArray[np.floating[Any]]) -> Ranks:
        """(N,) how many options of each set score (N, n) more than the truth; equal ones are put in order by chance."""
        rng = rng_for(self.seed, "balanced", "ties")
        among = rng.random(score.shape)
        truth, tie = score[:, :1], among[:, :1]
        above = (score > truth) | ((score == truth) & (among > tie))
        return np.asarray(above[:, 1:].sum(axis=1), dtype=np.uint8)

    def _balance(self, ranks: Sequence[Ranks]) -> tuple[IntArray, BoolArray]:
        """(F,) places of the sets under which every rank comes out as often as every other, and as many truths as wrong
        options lie below each step of a cue, for all cues at once; and which facts these are, as some tip the balance
        with every set."""
        sets, options = self.text.shape[:2]
        cells = np.array(ranks, dtype=np.int64).reshape(-1, sets).T + options * np.arange(len(ranks))
        taken, steps = np.zeros(options * len(ranks)), _Steps(self.parts)
        chosen = np.zeros(len(self.starts) - 1, dtype=np.int64)
        fits = np.zeros(len(chosen), dtype=bool)
        for sweep in range(_SWEEPS):
            for f, (start, stop) in enumerate(zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)):
                if fits[f]:
                    taken[cells[start + chosen[f]]] -= 1
                    steps.count(start + chosen[f], -1)
                    fits[f] = False
                cost = taken[cells[start:stop]].sum(axis=1) + steps.measure_costs(slice(start, stop))
                chosen[f] = np.argmin(cost)
                tips = cost[chosen[f]] - taken.sum() / options > _PRICE * len(chosen)
                fits[f] = not (sweep and tips and np.count_nonzero(~fits) <= self.most_left_out)
                if fits[f]:
                    taken[cells[start + chosen[f]]] += 1
                    steps.count(start + chosen[f], 1)
        return chosen, fits

    def _believe(self, chosen: IntArray, fits: BoolArray, number: int) -> FloatArray:
        """(N, n) how likely each option of each set is the truth, for boosted trees that learnt from other scenes."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        believed = np.zeros(self.cues.shape[:2])
        asked = self.starts[:-1] + chosen
        fold_of_set = np.repeat(self.fold, np.diff(self.starts))
        for fold in range(FOLDS):
            learnt = asked[(self.fold != fold) & fits]
            x, options = _describe(self.cues[learnt]), self.cues.shape[1]
            right = np.tile(np.arange(options) == 0, len(learnt))
            model = HistGradientBoostingClassifier(
                max_iter=TREES, max_leaf_nodes=15, min_samples_leaf=20, l2_regularization=1.0, early_stopping=False,
                random_state=int(rng_for(self.seed, "balanced", str(number)).integers(2**31 - 1)),
            )  # fmt: skip
            model.fit(x.reshape(-1, x.shape[2]), right)
            for some in _cut(np.flatnonzero(fold_of_set == fold)):
                x = _describe(self.cues[some])
                believed[some] = model.predict_proba(x.reshape(-1, x.shape[2]))[:, 1].reshape(x.shape[:2])
        return np.round(believed, _DIGITS)


class _Steps:
    """How many more truths than wrong options lie below each step of each cue, among the sets that are chosen."""

    def __init__(self, parts: Ranks) -> None:
        self.parts = parts
        self.more = np.zeros((parts.shape[2], STEPS))
        self.above = np.zeros((parts.shape[2], STEPS + 1))  # of each part: the sum of `more` over the steps above it

    def measure_costs(self, sets: slice) -> FloatArray:
        """(m,) how much each of the sets would add to what there is more."""
        each = self.above[np.arange(len(self.above)), self.parts[sets]]
        return np.asarray((each[:, 0] - each[:, 1:].mean(axis=1)).sum(axis=1))

    def count(self, row: int, sign: int) -> None:
        """Count one set, or count it no longer."""
        below = self.parts[row][:, :, None] <= np.arange(STEPS)  # (n, d, STEPS)
        self.more += sign * (below[0] - below[1:].mean(axis=0))
        self.above[:, :STEPS] = self.more[:, ::-1].cumsum(axis=1)[:, ::-1]


def _measure_gaps(cues: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """(N, n, 3) how far each option lies from the nearest other one of its set, from all on average, and from the
    furthest, with every cue in units of its spread: whether it stands apart is no sum of what each cue tells. Nothing
    of sets of two."""
    if cues.shape[1] < 3 or not cues.shape[2]:
        return np.zeros((*cues.shape[:2], 0), dtype=np.float32)
    scaled = cues / np.maximum(cues.std(axis=(0, 1)), _SAME)
    itself = np.where(np.eye(cues.shape[1], dtype=bool), np.inf, 0.0)
    gaps = np.empty((*cues.shape[:2], 3), dtype=np.float32)
    for some in _cut(np.arange(len(cues))):
        between = np.linalg.norm(scaled[some][:, :, None] - scaled[some][:, None], axis=3)
        gaps[some] = np.stack([(between + itself).min(axis=2), between.mean(axis=2), between.max(axis=2)], axis=2)
    return np.round(gaps, _DIGITS, out=gaps)


def _find_parts(cues: npt.NDArray[np.float32]) -> Ranks:
    """(N, n, d) how many steps lie below each value of each cue; the steps part all values evenly."""
    parts = np.zeros(cues.shape, dtype=np.uint8)
    for cue in range(cues.shape[2]):
        steps = np.quantile(cues[:, :, cue], np.arange(1, STEPS + 1) / (STEPS + 1), method="lower")
        parts[:, :, cue] = np.searchsorted(steps, cues[:, :, cue])
    return parts


def _describe(cues: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """(N, n, 3 d) each cue by itself, beside the mean of its set, and as a rank in its set."""
    beside = cues - cues.mean(axis=1, keepdims=True)
    rank = (cues[:, :, None] > cues[:, None]).sum(axis=2, dtype=np.float32)
    return np.concatenate([cues, beside, rank], axis=2)


def _cut(rows: IntArray) -> Iterator[IntArray]:
    for start in range(0, len(rows), _CHUNK):
        yield rows[start : start + _CHUNK]
