"""What a reader without images sees of options: their numbers, how these compare, and how they are printed.

Nothing is said of what the numbers mean. Questions with fewer options, and options with fewer numbers, are filled up
with NaN, so that all of a cell stand in one array (questions, options, columns).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import BoolArray, FloatArray, IntArray
from vgbench_gen.quality import reading
from vgbench_gen.quality.questions import Question
from vgbench_gen.quality.reading import PrintedText

_SHOWN_ONE_BY_ONE = 12  # numbers of an option; of more only what they make together
_SIZED = 4  # numbers of an option whose sizes are looked at as well
_MOST, _LEAST = 1e12, 1e-9  # nothing measured comes near, and squares stay finite
_NAMED = 32  # numbers of the question's text, those that most questions have
GAPS = (
    *("gap to the nearest", "gap to all", "gap to the furthest"),
    *("gap to the nearest by size", "gap to all by size", "gap to the furthest by size"),
)
PRINTED = ("length", "digits", "decimals", "trailing zeros", "significant", "minus signs", "shared words")


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """Options of n questions with at most k options each; of claims the one that is made, or all marks."""

    there: BoolArray
    """Whether a question has so many options, (n, k)."""
    claimed: IntArray
    """The place of what each judgment claims, (n,); empty for choices."""
    names: tuple[str, ...]
    columns: FloatArray
    """Each option, (n, k, columns): quantities, then its print, then distances to others (`GAPS`); NaN where a column
    has no meaning."""
    quantities: int
    """How many of the columns are quantities."""
    around_names: tuple[str, ...]
    around: FloatArray
    """What stands around the options, (n, around), see `name_around`."""


def describe(questions: Sequence[Question]) -> Description:
    """Options of choices, or claims of judgments; all questions of one form."""
    claims = [reading.read_claim(q) if q.form == "judgment" else (reading.read_options(q), -1) for q in questions]
    said = [options for options, _ in claims]
    n, k = len(said), max(map(len, said))
    there = np.arange(k) < np.array([len(options) for options in said])[:, None]
    flat = [one for options in said for one in [*options, *[PrintedText("")] * (k - len(options))]]
    d = max((len(one.values) for one in flat), default=0)
    values = np.clip(reading.pad((one.values for one in flat), d), -_MOST, _MOST).reshape(n, k, d)
    quantities = _list_quantities(flat, values)
    asked = reading.pad((reading.find_asked(q, d) for q in questions), d)[:, None] if d > 1 else values
    if np.isfinite(asked).any() and d > 1:
        quantities["from what is asked"] = np.linalg.norm(values - asked, axis=2)
    printed = np.array([_read_prints(options, k) for options in said], dtype=np.float64).reshape(n, k, len(PRINTED))
    beyond = np.where(there[..., None], np.concatenate([printed, _measure_gaps(values, there)], axis=2), np.nan)
    columns = np.stack([*quantities.values(), *np.moveaxis(beyond, 2, 0)], axis=2)
    claimed = np.array([place for _, place in claims if place >= 0], dtype=np.int64)
    names = (*quantities, *PRINTED, *GAPS)
    return Description(there, claimed, names, columns, len(quantities), *name_around(questions))


def rank(values: FloatArray, there: BoolArray) -> FloatArray:
    """Rank of each option among its question's, (n, k, ...), 0 smallest, ties in the middle."""
    with np.errstate(invalid="ignore"):
        above = (values[:, :, None] > values[:, None]).sum(axis=2) - (values[:, :, None] < values[:, None]).sum(axis=2)
    count = there.sum(axis=1).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray((above + count - 1) / 2, dtype=np.float64)


def _list_quantities(flat: Sequence[PrintedText], values: FloatArray) -> dict[str, FloatArray]:
    """Name -> (n, k): numbers in their places and their sizes; of numbers in rows also what rows and columns make."""
    n, k, d = values.shape
    found: dict[str, FloatArray] = {}
    if d <= _SHOWN_ONE_BY_ONE:
        found |= {f"number {j + 1}": values[..., j] for j in range(d)}
    if d <= _SIZED:
        found |= {f"size {j + 1}": _log(values[..., j]) for j in range(d)}
    if d > 1:
        found["norm"] = _log(np.sqrt(np.nansum(values**2, axis=2)))
    shape, _ = Counter((len(one.values), one.row) for one in flat if one.values).most_common(1)[0] if d else ((0, 0), 0)
    if shape[0] == d and 1 < shape[1] < d and d % shape[1] == 0:
        for name, column in _describe_table(values.reshape(n, k, -1, shape[1])).items():
            found[name] = column
    return found


def _describe_table(table: FloatArray) -> dict[str, FloatArray]:
    """Name -> (n, k) of options that are rows of numbers, (n, k, rows, r)."""
    middle, extent = table.mean(axis=2), table.max(axis=2) - table.min(axis=2)
    found = {f"middle {j + 1}": middle[..., j] for j in range(table.shape[3])}
    found |= {f"extent {j + 1}": _log(extent[..., j]) for j in range(table.shape[3])}
    found["extents together"] = _log(extent).sum(axis=2)
    if table.shape[2] * table.shape[3] <= _SHOWN_ONE_BY_ONE:
        return found | {f"row {i + 1}": _log(np.linalg.norm(table[:, :, i], axis=2)) for i in range(table.shape[2])}
    first = np.linalg.norm(table - table[:, :, :1], axis=3)
    found |= {f"from the first to {i + 1}": _log(first[..., i]) for i in range(1, table.shape[2])}
    radii = np.linalg.norm(table - middle[:, :, None], axis=3)
    found["row spread"] = _log(radii.max(axis=2) - radii.min(axis=2))
    with np.errstate(divide="ignore", invalid="ignore"):  # as a camera sees points
        seen = np.clip(table[..., :-1] / table[..., -1:], -1e3, 1e3)
    found |= {f"seen from {j + 1}": seen[..., j].min(axis=2) for j in range(seen.shape[3])}
    return found | {f"seen to {j + 1}": seen[..., j].max(axis=2) for j in range(seen.shape[3])}


def _log(values: FloatArray) -> FloatArray:
    return np.log(np.maximum(np.abs(values), _LEAST))


def _measure_gaps(values: FloatArray, there: BoolArray) -> FloatArray:
    """(n, k, `GAPS`) distances with every number in units of its spread, of positive single numbers as ratios; and
    distances by the size of the option itself, as it is where others are made from it."""
    n, k, d = values.shape
    if d == 0 or k < 2:
        return np.zeros((n, k, len(GAPS)))
    flat = values.reshape(-1, d)
    spread = np.nanstd(flat, axis=0)
    scaled = np.log(values) if d == 1 and np.nanmin(flat) > 0 else values / np.where(spread > 0, spread, 1.0)
    own = np.sqrt(np.nansum(values**2, axis=2, keepdims=True))
    others = there[:, :, None] & there[:, None] & ~np.eye(k, dtype=bool)
    found = []
    for apart in (_measure_apart(scaled), _measure_apart(values) / np.maximum(own, _LEAST)):
        reached = np.where(others, apart, 0.0)
        mean = reached.sum(axis=2) / np.maximum(others.sum(axis=2), 1)
        found += [np.where(others, apart, _MOST).min(axis=2), mean, reached.max(axis=2)]
    return np.stack(found, axis=2)


def _measure_apart(values: FloatArray) -> FloatArray:
    """(n, k, k) distances between options; a number that one lacks counts for nothing."""
    return np.asarray(np.sqrt(np.nansum((values[:, :, None] - values[:, None]) ** 2, axis=3)), dtype=np.float64)


def name_around(questions: Sequence[Question]) -> tuple[tuple[str, ...], FloatArray]:
    """(names, (n, numbers)) of what stands around the options: numbers of the text that most questions have by the word
    before them, then middles, extents and distance of drawn marks; NaN where a question has none."""
    found = [reading.name_numbers(q) | _describe_drawn(q) for q in questions]
    often = Counter(name for one in found for name in one)
    kept = [name for name, count in often.most_common(_NAMED) if count >= 0.05 * len(questions)]
    kept = [name for name in kept if len({one.get(name) for one in found}) > 1]
    values = np.array([[one.get(name, np.nan) for name in kept] for one in found], dtype=np.float64)
    return tuple(kept), np.clip(values.reshape(len(found), len(kept)), -_MOST, _MOST)


def _describe_drawn(question: Question) -> dict[str, float]:
    corners = [np.reshape(place, (-1, 2)) for place in reading.list_drawn(question)]
    found: dict[str, float] = {}
    for n, mark in enumerate(corners, 1):
        values = *mark.mean(axis=0).tolist(), *np.ptp(mark, axis=0).tolist()
        found |= zip((f"drawn {n} x", f"drawn {n} y", f"drawn {n} width", f"drawn {n} height"), values, strict=True)
    if len(corners) == 2:
        found["drawn apart"] = float(np.linalg.norm(corners[0].mean(axis=0) - corners[1].mean(axis=0)))
    return found


def _read_prints(options: Sequence[PrintedText], k: int) -> list[list[float]]:
    """How options are printed, (k, `PRINTED`)."""
    words = [set(reading.find_words(one.text)) for one in options]
    rows: list[list[float]] = []
    for i, one in enumerate(options):
        printed = reading.find_number_tokens(one.text)
        kept = [token.lstrip("+-").replace(".", "").lstrip("0") for token in printed]
        decimals = max((len(token.partition(".")[2]) for token in printed), default=0)
        significant = sum(len(token.rstrip("0")) for token in kept)
        shared = sum(len(words[i] & other) for j, other in enumerate(words) if j != i)
        digits, zeros = sum(map(str.isdigit, one.text)), sum(map(len, kept)) - significant
        rows.append([len(one.text), digits, decimals, zeros, significant, one.text.count("-"), shared])
    return rows + [[0.0] * len(PRINTED)] * (k - len(rows))
