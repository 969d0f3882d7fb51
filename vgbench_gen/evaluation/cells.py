"""Single numbers of a table: what runs reach on some questions, with intervals over scenes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vgbench_gen.core.types import ALPHABET, FloatArray
from vgbench_gen.evaluation import metrics, reference_scores, stats
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.board import Entry

if TYPE_CHECKING:
    import pandas as pd  # it loads when used: 40 MB

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


NONE = Cell(math.nan)
Statistic = Callable[["pd.DataFrame", str, int], Cell]
"""Takes rows of `Board.answers` of one run, the column of the values, and the seed of the bootstrap."""


def summarise(frame: pd.DataFrame, by: str, value: str, statistic: Statistic, seed: int = 0) -> dict[Any, Cell]:
    """One number per group of answers; groups without rows are not in.

    Args:
        frame: rows of `Board.answers`.
        by: the column that groups have in common, usually "run".
        value: the column of the values.
        statistic: such as `mean` or `macro(part)`.
        seed: of the bootstrap.
    """
    return {key: statistic(rows, value, seed) for key, rows in frame.groupby(by, sort=False)}


def mean(rows: pd.DataFrame, value: str, seed: int) -> Cell:
    """The mean where the run answered; none where a baseline tried no question."""
    used = rows[rows["answered"] & rows[value].notna()]
    n, asked = len(used), int(rows["asked"].sum())
    if not n or used["declined"].all():
        return Cell(math.nan, asked=asked, value_all=0.0 if asked and not n else math.nan)
    found = stats.estimate_mean(used[value].to_numpy(), used["scene"].to_numpy(), seed)
    return Cell(found.value, found.low, found.high, n, asked, found.value * n / asked)


def circular(rows: pd.DataFrame, value: str, seed: int) -> Cell:
    """The mean over questions that were asked in several orders of their options."""
    return mean(rows[rows["circled"]], value, seed)


def macro(part: Callable[[Entry], str]) -> Statistic:
    """The mean of the means of parts."""

    def average_parts(rows: pd.DataFrame, value: str, seed: int) -> Cell:
        names, index = np.unique(np.array([part(entry) for entry in rows["question"]]), return_inverse=True)
        used, asked = rows["answered"].to_numpy(), rows["asked"].to_numpy()
        n, total = int(used.sum()), int(asked.sum())
        if not n:
            return Cell(math.nan, asked=total, value_all=0.0 if total else math.nan)
        scores = rows[value].to_numpy()
        failed = np.where(used, scores, 0.0)
        scores, parts = scores[used], index[used]

        def statistic(weights: FloatArray) -> float:
            sums = np.bincount(parts, weights=weights * scores, minlength=len(names))
            sizes = np.bincount(parts, weights=weights, minlength=len(names))
            return float((sums[sizes > 0] / sizes[sizes > 0]).mean()) if sizes.any() else math.nan

        found = stats.estimate_interval(statistic, rows["scene"].to_numpy()[used], seed)
        everything = metrics.average_macro({name: failed[asked & (index == k)] for k, name in enumerate(names)})
        return Cell(found.value, found.low, found.high, n, total, everything)

    return average_parts


def grouped(name: Callable[[Entry], str]) -> Statistic:
    """The share of groups (two and more members) whose members are all right; n counts groups answered in full, and
    questions whose name is "" are in no group."""

    def share_groups(rows: pd.DataFrame, value: str, seed: int) -> Cell:
        names = [name(entry) for entry in rows["question"]]
        table = rows[["asked", "answered", "scene"]].assign(name=_number(names), right=rows[value] >= 1, size=1)
        groups = table[np.array(names, dtype=object) != ""].groupby("name", sort=False).agg(
            {"asked": "all", "answered": "all", "right": "all", "scene": "first", "size": "sum"}
        )  # fmt: skip
        groups = groups[(groups["size"] > 1) & groups["asked"]]
        whole = groups[groups["answered"]]
        if not len(whole):
            return Cell(math.nan, asked=len(groups))
        right = whole["right"].to_numpy(np.float64)
        found = stats.estimate_mean(right, whole["scene"].to_numpy(), seed)
        return Cell(found.value, found.low, found.high, len(whole), len(groups), float(right.sum() / len(groups)))

    return share_groups


def _number(names: list[str]) -> list[int]:
    known: dict[str, int] = {}
    return [known.setdefault(name, len(known)) for name in names]


def copies_once(rows: pd.DataFrame, value: str, seed: int) -> Cell:
    """The mean where copies of one question count once, by the mean of what was answered to them."""
    asked, used = rows["copy_of"][rows["asked"]].nunique(), rows[rows["answered"]]
    if not len(used):
        return Cell(math.nan, asked=asked, value_all=0.0 if asked else math.nan)
    places, first, index = np.unique(used["copy_of"].to_numpy(), return_index=True, return_inverse=True)
    values = np.bincount(index, weights=used[value].to_numpy()) / np.bincount(index)
    found = stats.estimate_mean(values, used["copy_scene"].to_numpy()[first], seed)
    return Cell(found.value, found.low, found.high, len(places), asked, found.value * len(places) / asked)


def skill(rows: pd.DataFrame, value: str, seed: int) -> Cell:
    """How much of the way from the best constant to all right."""
    used = rows[rows["answered"]]
    if not len(used):
        return NONE
    scores, base = used[value].to_numpy(), reference_scores.score_constant(used["question"].tolist())

    def statistic(weights: FloatArray) -> float:
        total = weights.sum()
        return metrics.compute_skill(float(weights @ scores / total), float(weights @ base / total))

    found = stats.estimate_interval(statistic, used["scene"].to_numpy(), seed)
    return Cell(found.value, found.low, found.high, len(used), int(rows["asked"].sum()))


def median(rows: pd.DataFrame, value: str, seed: int) -> Cell:
    """The median, such as of relative errors."""
    used, asked = rows[rows["answered"] & rows[value].notna()], int(rows["asked"].sum())
    if not len(used):
        return Cell(math.nan, asked=asked)
    values = used[value].to_numpy()
    order = np.argsort(values, kind="stable")
    ordered = values[order]

    def statistic(weights: FloatArray) -> float:
        reached = np.cumsum(weights[order])
        return float(ordered[min(np.searchsorted(reached, reached[-1] / 2), len(ordered) - 1)])

    found = stats.estimate_interval(statistic, used["scene"].to_numpy(), seed)
    low, high = float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2])
    middle = low if low == high else (low + high) / 2  # both may be infinite
    return Cell(middle, found.low, found.high, len(used), asked)


def share_missing(part: str) -> Statistic:
    """Of the wrong letters that tell their parts, the share that gets exactly these wrong; no number where a run
    answered and none was wrong."""

    def average_wrong(rows: pd.DataFrame, value: str, seed: int) -> Cell:
        found = zip(rows["question"], rows["extracted"], strict=True)
        missed = [dict(zip(ALPHABET, entry.error_parts, strict=False)).get(str(said), "") for entry, said in found]
        marked = rows.assign(mark=[float(one == part) if one else math.nan for one in missed])
        return mean(marked[marked["mark"].notna()] if rows["answered"].any() else marked, "mark", seed)

    return average_wrong


def rate(rows: pd.DataFrame, value: str, seed: int) -> Cell:
    """The share of replies with the outcome `value`; of those that did not fail, where it is not "failed"."""
    used = rows[rows["asked" if value == "failed" else "answered"]]
    if not len(used):
        return NONE
    counted = used[[one for one in OUTCOMES if value == "failed" or one != "failed"]].sum(axis=1)
    share = (used[value] / counted).to_numpy()
    found = stats.estimate_mean(share, used["scene"].to_numpy(), seed)
    return Cell(found.value, found.low, found.high, len(used), len(used), found.value)


def p_better(first: pd.DataFrame, second: pd.DataFrame, value: str, seed: int) -> float:
    """Two-sided p that the first run is ahead of the second on the questions that both answered; 1 where it is not.

    The larger of two: the bootstrap over scenes is too sure of a handful of scenes, McNemar's test of scenes whose
    questions stand or fall together. Graded scores have the first alone.

    Args:
        first, second: rows of `Board.answers` of the two runs, of the same questions.
        value: the column that is compared.
        seed: of the bootstrap.
    """
    found = compare_answers(first, second, value, seed)
    if found is None or found[1].value <= 0:
        return 1.0
    both = first["answered"].to_numpy() & second["answered"].to_numpy()
    plain = all(np.isin(one[value].to_numpy()[both], (0.0, 1.0)).all() for one in (first, second))
    return max(found[1].p, found[1].p_mcnemar) if plain else found[1].p


def compare_answers(
    first: pd.DataFrame, second: pd.DataFrame, value: str, seed: int
) -> tuple[int, stats.Difference] | None:
    """On how many questions both answered, and the first run less the second on these; None where there are none."""
    both = first["answered"].to_numpy() & second["answered"].to_numpy()
    if not both.any():
        return None
    a, b = (one[value].to_numpy()[both] for one in (first, second))
    return int(both.sum()), stats.compare_paired(a, b, first["scene"].to_numpy()[both], seed)


def get_part(entry: Entry) -> str:
    """Return what the column "Macro" averages over: the task, or the source where there is none."""
    return entry.task or entry.source


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
