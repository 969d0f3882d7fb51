"""Distributions of a dataset as plain numbers for the page of plots."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np

from vgbench_gen.core.types import ALPHABET, LETTERS, QUESTION_TYPES, FloatArray, Item
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


@dataclass
class Tallies:
    """Counts over items, added one by one."""

    cells: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """The number of items by task, question type and source."""
    difficulty: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of items by task and difficulty."""
    answers: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """The number of items by task, question type and right answer; open-ended ones are left out."""
    ranks: Counter[tuple[str, int]] = field(default_factory=Counter)
    """The number of multi-choice items by task and rank of the true value among the options, 1 for the smallest."""
    values: dict[tuple[str, str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """The answers as numbers, by task, what is asked, what the number is and its unit."""

    def add(self, item: Item) -> None:
        """Count one more item."""
        self.cells[item.task, item.question_type, item.source] += 1
        self.difficulty[item.task, item.difficulty] += 1
        if item.question_type != "open-ended":
            self.answers[item.task, item.question_type, item.answer] += 1
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
                    self.ranks[item.task, sorted(options).index(options[truth]) + 1] += 1
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
    cells = tallies.cells
    tasks = sorted({task for task, _, _ in cells})
    sources = sorted({source for _, _, source in cells})
    forms = [form for form in QUESTION_TYPES if any(f == form for _, f, _ in cells)]
    hardness = [*DIFFICULTIES, *sorted({d for _, d in tallies.difficulty} - set(DIFFICULTIES))]

    def count(**wanted: str) -> int:
        names = ("task", "type", "source")
        return sum(n for key, n in cells.items() if all(key[names.index(k)] == v for k, v in wanted.items()))

    def count_by(name: str, keys: Sequence[str]) -> list[dict[str, Any]]:
        return [make_bar(key, [count(**{name: key})], _make_address({name: key})) for key in keys]

    def split(task: str, series: Sequence[int]) -> dict[str, Any]:
        return make_bar(task, series, _make_address({"task": task}))

    counts = [
        make_bars("Items per task", [split(t, [count(task=t, type=f) for f in forms]) for t in tasks], forms),
        make_bars("Items per type", count_by("type", forms)),
        make_bars("Items per source", count_by("source", sources)),
        make_bars(
            "Difficulty per task", [split(t, [tallies.difficulty[t, d] for d in hardness]) for t in tasks], hardness
        ),
    ]
    groups = [{"title": "Counts", "charts": counts}, {"title": "Answers", "charts": _plot_answers(tallies)}]
    places = [_plot_scenes(source, scenes) for source in sources]
    return [*groups, {"title": "Scenes", "charts": places}]


def _plot_scenes(source: str, scenes: Sequence[tuple[str, int, str]]) -> dict[str, Any]:
    mine = sorted((s for s in scenes if s[0].startswith(f"{source}/")), key=lambda s: (-s[1], s[0]))
    return make_bars(f"Items per scene of {source}", [make_bar(name, [n], address) for name, n, address in mine])


def _plot_answers(tallies: Tallies) -> list[dict[str, Any]]:
    def plot(
        title: str, form: str, tasks: Iterable[str], series: Sequence[str], count: Callable[[str, int], int]
    ) -> dict[str, Any]:
        bars = [
            make_bar(task, [count(task, k) for k in range(len(series))], _make_address({"task": task, "type": form}))
            for task in sorted(set(tasks))
        ]
        return make_bars(title, bars, series, alike=True)

    answers = tallies.answers
    words = sorted({answer for _, form, answer in answers if form == "judgment"})
    letters = [x for x in ALPHABET if any((form, answer) == ("multi-choice", x) for _, form, answer in answers)]
    found: list[dict[str, Any] | None] = [
        plot(
            "Right letter per task (multi-choice)", "multi-choice", (t for t, f, _ in answers if f == "multi-choice"),
            letters, lambda t, k: answers[t, "multi-choice", letters[k]],
        ),
        plot(
            "Right answer per task (judgment)", "judgment", (t for t, f, _ in answers if f == "judgment"), words,
            lambda t, k: answers[t, "judgment", words[k]],
        ),
        plot(
            "Rank of the true value among the options", "multi-choice", (t for t, _ in tallies.ranks), RANKS,
            lambda t, k: tallies.ranks[t, k + 1],
        ),
    ]  # fmt: skip
    for (task, ask, what, unit), values in sorted(tallies.values.items()):
        name = " ".join(part for part in (task, ask) if part)
        found.append(make_histogram(f"Answers of {name}" + (f": {what}" if what else ""), unit, values))
    return [chart for chart in found if chart and (chart.get("rows") or chart.get("bins"))]


def _make_address(filters: Mapping[str, str]) -> str:
    return "index.html#" + "&".join(f"{key}={quote(value, safe='')}" for key, value in filters.items())
