"""Distributions of a dataset as plain numbers for the page of plots."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np

from vgbench_gen.core.types import LETTERS, QUESTION_TYPES, FloatArray, Item
from vgbench_gen.report.charts import RANKS, make_bar, make_bars, make_histogram
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence

_RANK_ASKED = ("deepest", "nearest")  # these ask for the rank itself
DIFFICULTIES = ("easy", "medium", "hard")
# Answers that are more than one number are shown by one that can be put on an axis.
_SHAPES: dict[tuple[int, ...], tuple[str, str, Callable[[FloatArray], float]]] = {
    (1,): ("", "", lambda v: float(v[0])),
    (2,): ("horizontal pixel", "px", lambda v: float(v[0])),
    (3, 4): ("length of the translation", "m", lambda v: float(np.linalg.norm(v[:, 3]))),
    (8, 3): ("distance of the box's centre", "m", lambda v: float(np.linalg.norm(v.mean(axis=0)))),
    (3, 3): ("scale of the upper left 2x2 part", "ratio", lambda v: float(np.sqrt(abs(np.linalg.det(v[:2, :2]))))),
}


_ORDER = [*QUESTION_TYPES, *DIFFICULTIES, *RANKS]  # of the parts of a bar; others come after them by name
# Charts of bars: group, title, the column of the gallery that labels belong to, whether all bars are equally long.
_BARS: dict[str, tuple[str, str, str, bool]] = {
    "task": ("Counts", "Items per task", "task", False),
    "type": ("Counts", "Items per type", "type", False),
    "source": ("Counts", "Items per source", "source", False),
    "difficulty": ("Counts", "Difficulty per task", "task", False),
    "multi-choice": ("Answers", "Right letter per task (multiple choice)", "task", True),
    "judgment": ("Answers", "Right answer per task (judgment)", "task", True),
    "rank": ("Answers", "Rank of the true value among the options", "task", True),
}


@dataclass
class Tallies:
    """Counts over items, added one by one."""

    bars: dict[str, Counter[tuple[str, str]]] = field(default_factory=lambda: defaultdict(Counter))
    """By chart (`_BARS`), the number of items by label of the bar and name of its part."""
    values: dict[tuple[str, str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """The answers as numbers, by task, what is asked, what the number is and its unit."""

    def add(self, item: Item) -> None:
        """Count one more item."""
        self.bars["task"][item.task, item.question_type] += 1
        self.bars["type"][item.question_type, ""] += 1
        self.bars["source"][item.source, ""] += 1
        self.bars["difficulty"][item.task, item.difficulty] += 1
        if item.question_type in ("multi-choice", "judgment"):
            self.bars[item.question_type][item.task, item.answer] += 1
        try:
            what, unit, value = read_single_number(item.answer_value, item.answer_shape)
            self.values[item.task, item.ask, what, unit or item.unit].append(value)
            if item.question_type == "multi-choice" and item.ask not in _RANK_ASKED:
                options = [
                    read_single_number(option.value.ravel().tolist(), item.answer_shape)[2]
                    for option in RowEvidence.of(item).options
                ]
                truth = LETTERS.index(item.answer)
                if len(options) == len(LETTERS) and len(set(options)) == len(options):
                    self.bars["rank"][item.task, RANKS[sorted(options).index(options[truth])]] += 1
        except UNREADABLE:
            return


def read_single_number(values: Sequence[float], shape: Sequence[int]) -> tuple[str, str, float]:
    """(what it is, its unit, number) of an answer; "" and the item's own unit for an answer that is one number.

    Raises:
        KeyError: answers of this shape have no number.
        ValueError: the number is not finite.
    """
    key = tuple(shape) or (1,)
    what, unit, reduce = _SHAPES[key]
    number = reduce(np.array(values, dtype=np.float64).reshape(key))
    if not np.isfinite(number):
        raise ValueError(f"{number}")
    return what, unit, number


def plot_charts(tallies: Tallies, scenes: Sequence[tuple[str, int, str]]) -> list[dict[str, Any]]:
    """Groups of charts for the page: {title, charts}, see `report.charts`.

    scenes: (name, items, address of its page).
    """
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for key, (group, title, column, alike) in _BARS.items():
        counts = tallies.bars[key]
        parts = sorted(
            {part for _, part in counts}, key=lambda part: (_ORDER.index(part) if part in _ORDER else 99, part)
        )
        form = {"type": key} if key in QUESTION_TYPES else {}
        bars = [
            make_bar(
                label.replace("_", " ") if column == "task" else label,
                [counts[label, part] for part in parts],
                _make_address({column: label} | form),
            )
            for label in sorted({label for label, _ in counts})
        ]
        groups[group].append(make_bars(title, bars, parts if parts != [""] else (), alike))
    for (task, ask, what, unit), values in sorted(tallies.values.items()):
        name = " ".join(part for part in (task, ask) if part) + (f": {what}" if what else "")
        if (chart := make_histogram(f"Answers of {name}", unit, values)) is not None:
            groups["Answers"].append(chart)
    for source in sorted({name.partition("/")[0] for name, _, _ in scenes}):
        mine = sorted((s for s in scenes if s[0].startswith(f"{source}/")), key=lambda s: (-s[1], s[0]))
        bars = [make_bar(name, [n], address) for name, n, address in mine]
        groups["Scenes"].append(make_bars(f"Items per scene of {source}", bars))
    return [
        {"title": title, "charts": [chart for chart in charts if chart["rows"] or chart.get("bins")]}
        for title, charts in groups.items()
    ]


def _rank_part(part: str) -> tuple[int, str]:
    return (_ORDER.index(part) if part in _ORDER else len(_ORDER)), part


def _make_address(filters: Mapping[str, str]) -> str:
    return "index.html#" + "&".join(f"{key}={quote(value, safe='')}" for key, value in filters.items())
