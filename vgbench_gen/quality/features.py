"""What a reader without images can compute about every option, beside the others: input of the blind classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.quality._blocks import (
    Block,
    list_claim_sets,
    list_option_sets,
    make_blocks,
    rank_options,
    read_text_context,
    summarise_gaps,
)
from vgbench_gen.quality.questions import Question

_BANDS = (0.15, 0.3, 0.5)
_MOST_ENTRIES = 12  # numbers shown one by one; of more (24 of a box) only what they mean together


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """Features of texts: one line per option for multi-choice questions, one per question for judgments."""

    X: FloatArray
    """Values of the features, (rows, features); NaN where a feature has no meaning."""
    names: tuple[str, ...]
    """The names of the features, in the order of the columns of `X`."""
    question: IntArray
    """The place of each row's question in the list given, (rows,)."""
    option: IntArray
    """The place of each row's option in its question, (rows,)."""


def make_option_table(questions: Sequence[Question]) -> FeatureTable:
    """Features of all options of multi-choice questions."""
    sets = list_option_sets(questions)
    counts = np.array([len(s.texts) for s in sets], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns = _Columns(int(starts[-1]))
    for block in make_blocks(questions, sets):
        n, k = block.gaps.shape[:2]
        lines = (starts[block.rows][:, None] + np.arange(k)).ravel()
        for name, values in _describe_block(block).items():
            columns.put(name, lines, values.ravel())
        columns.put("place", lines, np.tile(np.arange(k, dtype=np.float64), n))
    question = np.repeat(np.arange(len(questions)), counts)
    for name, values in _describe_questions(questions).items():
        columns.put(name, np.arange(len(question)), values[question])
    return columns.make_table(question, np.concatenate([np.arange(c) for c in counts]).astype(np.int64))


def make_claim_table(questions: Sequence[Question]) -> FeatureTable:
    """Features of the claims of judgments."""
    sets, claimed = list_claim_sets(questions)
    columns = _Columns(len(questions))
    for block in make_blocks(questions, sets):
        for name, values in _describe_block(block).items():
            columns.put(name, block.rows, values[np.arange(len(block.rows)), claimed[block.rows]])
    everyone = np.arange(len(questions))
    columns.put("claimed", everyone, claimed.astype(np.float64))
    for name, values in _describe_questions(questions).items():
        columns.put(name, everyone, values)
    return columns.make_table(everyone, claimed)


def make_question_table(questions: Sequence[Question]) -> FeatureTable:
    """What questions themselves say: for open-ended ones, which have no options."""
    columns = _Columns(len(questions))
    everyone = np.arange(len(questions))
    for name, values in _describe_questions(questions).items():
        columns.put(name, everyone, values)
    return columns.make_table(everyone, np.full(len(questions), -1))


class _Columns:
    """Features by name, gathered block by block."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.found: dict[str, FloatArray] = {}

    def put(self, name: str, lines: IntArray, values: FloatArray) -> None:
        column = self.found.setdefault(name, np.full(self.rows, np.nan))
        column[lines] = values

    def make_table(self, question: IntArray, option: IntArray) -> FeatureTable:
        kept = {name: c for name, c in self.found.items() if not _is_constant(c)}
        names = tuple(kept)
        X = np.stack([kept[name] for name in names], axis=1) if kept else np.zeros((self.rows, 0))
        return FeatureTable(X, names, question.astype(np.int64), option.astype(np.int64))


def _is_constant(column: FloatArray) -> bool:
    known = column[~np.isnan(column)]
    return known.size == 0 or (known.size == column.size and bool((known == known[0]).all()))


def _describe_block(block: Block) -> dict[str, FloatArray]:
    """Every column by itself, as a rank, and beside the mean of the others; distances and bands."""
    k = block.gaps.shape[1]
    found = dict(block.columns) | _list_entries(block)
    if block.kind == "scalar":
        found["log_value"] = np.log(np.maximum(np.abs(block.values[..., 0]), 1e-9))
    if k > 1:
        for name, values in list(found.items()):
            found[f"{name}: rank"] = rank_options(values)
            found[f"{name}: beside"] = (values - values.mean(axis=1, keepdims=True)) * (k / (k - 1))
    if k > 1 and block.kind not in ("name", "text"):
        nearest, mean = summarise_gaps(block.gaps)
        found |= {
            "nearest": nearest,
            "mean_gap": mean,
            "nearest: rank": rank_options(nearest),
            "mean_gap: rank": rank_options(mean),
        }
        found["furthest"] = block.gaps.max(axis=2)
        if block.kind == "scalar":
            found |= _describe_numbers(block.values[..., 0])
    return found


def _list_entries(block: Block) -> dict[str, FloatArray]:
    d = block.values.shape[2]
    if not 1 < d <= _MOST_ENTRIES or block.kind in ("vector", "rect", "point"):
        return {}
    return {f"number {i}": block.values[..., i] for i in range(d)}


def _describe_numbers(values: FloatArray) -> dict[str, FloatArray]:
    """Steps to the neighbours in size, and how many others lie within some per cent."""
    k = values.shape[1]
    others = ~np.eye(k, dtype=bool)
    steps = values[:, None, :] - values[:, :, None]
    size = np.maximum(np.abs(values), 1e-9)
    found = {
        "to_next": np.where((steps > 0) & others, steps, np.inf).min(axis=2) / size,
        "to_last": np.where((steps < 0) & others, -steps, np.inf).min(axis=2) / size,
        "from_median": np.abs(values - np.median(values, axis=1, keepdims=True)) / size,
    }
    found = {name: np.minimum(c, 1e3) for name, c in found.items()}
    for band in _BANDS:
        inside = (np.abs(steps) <= band * size[:, :, None]) & others
        found[f"within {band:.0%}"] = inside.sum(axis=2).astype(np.float64)
    return found


def _describe_questions(questions: Sequence[Question]) -> dict[str, FloatArray]:
    asks = {ask: float(i) for i, ask in enumerate(sorted({q.ask for q in questions}))}
    found = {f"text {name}": values for name, values in read_text_context(questions).items()}
    return {"ask": np.array([asks[q.ask] for q in questions])} | found
