"""Single numbers of a table: what a run reaches on some questions, with its interval over scenes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.evaluation import metrics, reference_scores, stats
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES, Outcome
from vgbench_gen.evaluation.board import Board, BoardRun, Entry
from vgbench_gen.evaluation.layouts import LayoutColumn
from vgbench_gen.quality.intervals import Clusters

Mark = Literal["", "best", "second"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a table."""

    value: float
    """The number: a share from 0 to 1, or a relative error; NaN where there is none."""
    low: float = math.nan
    """The lower end of its interval over scenes."""
    high: float = math.nan
    """The upper end of its interval over scenes."""
    n: int = 0
    """How many questions, or pairs, it is over, without those whose requests failed."""
    asked: int = 0
    """How many those are with them."""
    value_all: float = math.nan
    """The number with failed requests as wrong answers."""
    mark: Mark = ""
    """Whether it is the best or second best of its column, by paired tests."""

    @property
    def failed(self) -> bool:
        """Whether there is no number because every request failed."""
        return math.isnan(self.value) and self.value_all == 0


class Cells:
    """Numbers over a board.

    Args:
        board: with at least one question.
        seed: of the bootstrap.
    """

    def __init__(self, board: Board, seed: int = 0) -> None:
        self.board, self.seed = board, seed
        self.all = np.ones(len(board.questions), dtype=np.bool_)
        self._clusters: dict[bytes, Clusters] = {}
        self._scenes = np.asarray(board.scenes)

    def names(self, of: Callable[[Entry], str]) -> list[str]:
        """A property of every question."""
        return [of(entry) for entry in self.board.questions]

    def mean(self, run: BoardRun, mask: BoolArray, values: FloatArray) -> Cell:
        """The mean of values where the run answered; none where a baseline tried no question of the cell."""
        used, asked = mask & run.answered & ~np.isnan(values), mask & run.asked
        n, total = int(used.sum()), int(asked.sum())
        if n and run.declined[used].all():
            return Cell(math.nan, asked=total)
        if not n:
            return Cell(math.nan, asked=total, value_all=0.0 if total else math.nan)
        low, high = self._interval(values[used], used)
        value = float(values[used].mean())
        return Cell(value, low, high, n, total, value * n / total)

    def _interval(self, values: FloatArray, used: BoolArray) -> tuple[float, float]:
        key = np.packbits(used).tobytes()
        if key not in self._clusters:
            rng = rng_for(self.seed, "evaluation", "mean")
            self._clusters[key] = Clusters(list(self._scenes[used]), rng, stats.DRAWS)
        return self._clusters[key].interval(values)

    def column(self, run: BoardRun, column: LayoutColumn, mask: BoolArray, values: FloatArray) -> Cell:
        """The number of one column."""
        if column.how == "macro":
            return self.macro(run, mask, values, [column.part(entry) for entry in self.board.questions])
        if column.how in ("pairs", "flips"):
            name = pair_name if column.how == "pairs" else flip_name
            return self.grouped(run, mask, values, [name(entry) for entry in self.board.questions])
        return self.mean(run, mask, values)

    def macro(self, run: BoardRun, mask: BoolArray, values: FloatArray, parts: Sequence[str]) -> Cell:
        """Mean of the parts' means."""
        used, asked = np.flatnonzero(mask & run.answered), int((mask & run.asked).sum())
        if not len(used):
            return Cell(math.nan, asked=asked, value_all=0.0 if asked else math.nan)
        names, index = np.unique(np.asarray([parts[k] for k in used.tolist()]), return_inverse=True)
        scores = values[used]

        def statistic(weights: FloatArray) -> float:
            sums = np.bincount(index, weights=weights * scores, minlength=len(names))
            sizes = np.bincount(index, weights=weights, minlength=len(names))
            return float((sums[sizes > 0] / sizes[sizes > 0]).mean()) if sizes.any() else math.nan

        found = stats.estimate_interval(statistic, list(self._scenes[used]), self.seed)
        failed = np.where(run.answered, values, 0.0)
        places = np.flatnonzero(mask & run.asked).tolist()
        everything = metrics.average_macro(group_by_part(failed, places, parts))
        return Cell(found.value, found.low, found.high, len(used), asked, everything)

    def grouped(self, run: BoardRun, mask: BoolArray, values: FloatArray, names: Sequence[str]) -> Cell:
        """Share of groups (two and more members) whose members are all right; n counts groups answered in full."""
        members: dict[str, list[int]] = defaultdict(list)
        for k in np.flatnonzero(mask).tolist():
            if names[k]:
                members[names[k]].append(k)
        groups = [places for places in members.values() if len(places) > 1 and run.asked[places].all()]
        whole = [places for places in groups if run.answered[places].all()]
        if not whole:
            return Cell(math.nan, asked=len(groups))
        right = np.array([float((values[places] >= 1).all()) for places in whole])
        found = stats.estimate_mean(right, [self.board.scenes[places[0]] for places in whole], self.seed)
        return Cell(found.value, found.low, found.high, len(whole), len(groups), float(right.sum() / len(groups)))

    def collapsed(self, run: BoardRun) -> Cell:
        """The mean where copies of one question count once, by the mean of what was answered to them."""
        first = self.board.contents
        asked = len(np.unique(first[run.asked]))
        used = np.flatnonzero(run.answered)
        if not len(used):
            return Cell(math.nan, asked=asked, value_all=0.0 if asked else math.nan)
        places, index = np.unique(first[used], return_inverse=True)
        values = np.bincount(index, weights=run.score[used]) / np.bincount(index)
        found = stats.estimate_mean(values, list(self._scenes[places]), self.seed)
        return Cell(found.value, found.low, found.high, len(places), asked, found.value * len(places) / asked)

    def skill(self, run: BoardRun) -> Cell:
        """How much of the way from the best constant to all right."""
        used = self.all & run.answered
        if not used.any():
            return Cell(math.nan)
        base = reference_scores.score_constant(self.board, used)[used]
        scores = run.score[used]

        def statistic(weights: FloatArray) -> float:
            total = weights.sum()
            return metrics.compute_skill(float(weights @ scores / total), float(weights @ base / total))

        found = stats.estimate_interval(statistic, list(self._scenes[used]), self.seed)
        return Cell(found.value, found.low, found.high, int(used.sum()), int(run.asked.sum()))

    def median(self, run: BoardRun, mask: BoolArray) -> Cell:
        """Median relative error, lower is better."""
        used, asked = mask & run.answered & ~np.isnan(run.relative_error), int((mask & run.asked).sum())
        if not used.any():
            return Cell(math.nan, asked=asked)
        order = np.argsort(run.relative_error[used], kind="stable")
        errors = run.relative_error[used][order]

        def statistic(weights: FloatArray) -> float:
            reached = np.cumsum(weights[order])
            return float(errors[min(np.searchsorted(reached, reached[-1] / 2), len(errors) - 1)])

        found = stats.estimate_interval(statistic, list(self._scenes[used]), self.seed)
        return Cell(_compute_median(errors), found.low, found.high, int(used.sum()), asked)

    def rate(self, run: BoardRun, outcome: Outcome, mask: BoolArray) -> Cell:
        """Share of replies with an outcome."""
        place = OUTCOMES.index(outcome)
        used = mask & (run.asked if outcome == "failed" else run.answered)
        if not used.any():
            return Cell(math.nan)
        counts = run.counts[used].copy()
        if outcome != "failed":
            counts[:, OUTCOMES.index("failed")] = 0
        share = counts[:, place] / counts.sum(axis=1)
        low, high = self._interval(share, used)
        return Cell(float(share.mean()), low, high, int(used.sum()), int(used.sum()), float(share.mean()))

    def p_better(self, a: BoardRun, b: BoardRun, mask: BoolArray, measure: str) -> float:
        """Two-sided p that a is ahead of b on the questions that both answered; 1 where it is not ahead.

        The larger of two: the bootstrap over scenes is too sure of a handful of scenes, McNemar's test of scenes whose
        questions stand or fall together. Graded scores have the first alone.
        """
        both = mask & a.answered & b.answered
        if not both.any():
            return 1.0
        first, second = a.values(measure)[both], b.values(measure)[both]
        found = stats.compare_paired(first, second, list(self._scenes[both]), self.seed)
        if found.value <= 0:
            return 1.0
        plain = np.isin(np.concatenate([first, second]), (0.0, 1.0)).all()
        return max(found.p, found.p_mcnemar) if plain else found.p


def group_by_part(values: FloatArray, places: Sequence[int], parts: Sequence[str]) -> dict[str, list[float]]:
    """Values at these places by part."""
    found: dict[str, list[float]] = defaultdict(list)
    for k in places:
        found[parts[k]].append(float(values[k]))
    return found


def _compute_median(ordered: FloatArray) -> float:
    low, high = float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2])
    return low if low == high else (low + high) / 2


def pair_name(entry: Entry) -> str:
    """The pair that a question is in, by its `pair_id`; "" where it is in none.

    MMVP's questions have no such name; they are numbered from 1, two and two.
    """
    if entry.pair:
        return f"{entry.dataset}/{entry.pair}"
    if entry.source.casefold() == "mmvp" and entry.origin_id.isdecimal():
        return f"{entry.dataset}/{(int(entry.origin_id) + 1) // 2}"
    return ""


def flip_name(entry: Entry) -> str:
    """The id of a 3DSRBench question without the mark of its mirror image."""
    return f"{entry.dataset}/{entry.origin_id.replace('-flip', '')}"
