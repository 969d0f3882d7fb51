"""Distributions of a dataset as plain numbers for the page of plots."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np

from vgbench_gen.core.types import LETTERS, QUESTION_TYPES, FloatArray, Item
from vgbench_gen.report.gallery_evidence import read_row
from vgbench_gen.report.gallery_told import UNREADABLE

BINS = 14
_RANK_ASKED = ("deepest", "nearest")  # these ask for the rank itself
_RANKS = ("smallest", "second", "third", "largest")
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
                    for option in read_row(item).options
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
    """Groups of charts for the page: {title, charts}.

    A chart has kind "bars" (title, legend, rows of {label, total, href, parts}; a part has n, share of the longest bar,
    left and series) or "histogram" (title, unit, total, median, bins of {n, share, low, high}).

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
        return [_make_row(key, [(count(**{name: key}), 0)], _make_address({name: key})) for key in keys]

    def split(task: str, series: Sequence[int]) -> dict[str, Any]:
        return _make_row(task, [(n, k) for k, n in enumerate(series)], _make_address({"task": task}))

    counts = [
        _make_chart("Items per task", [split(t, [count(task=t, type=f) for f in forms]) for t in tasks], forms),
        _make_chart("Items per type", count_by("type", forms)),
        _make_chart("Items per source", count_by("source", sources)),
        _make_chart(
            "Difficulty per task", [split(t, [tallies.difficulty[t, d] for d in hardness]) for t in tasks], hardness
        ),
    ]
    groups = [{"title": "Counts", "charts": counts}, {"title": "Answers", "charts": _plot_answers(tallies)}]
    places = [_plot_scenes(source, scenes) for source in sources]
    return [*groups, {"title": "Scenes", "charts": places}]


def _plot_scenes(source: str, scenes: Sequence[tuple[str, int, str]]) -> dict[str, Any]:
    mine = sorted((s for s in scenes if s[0].startswith(f"{source}/")), key=lambda s: (-s[1], s[0]))
    return _make_chart(
        f"Items per scene of {source}", [_make_row(name, [(n, 0)], address) for name, n, address in mine]
    )


def _plot_by_task(
    title: str, form: str, tasks: Iterable[str], series: Sequence[str], count: Callable[[str, int], int]
) -> dict[str, Any]:
    """One bar for each task, split by a series; `count` says how many of a task belong to its k-th member."""
    rows = [
        _make_row(task, [(count(task, k), k) for k in range(len(series))], _make_address({"task": task, "type": form}))
        for task in sorted(set(tasks))
    ]
    return _make_chart(title, rows, list(series))


def _plot_answers(tallies: Tallies) -> list[dict[str, Any]]:
    choices, claims = "multi-choice", "judgment"
    by_form = {form: [(t, a) for t, of_form, a in tallies.answers if of_form == form] for form in (choices, claims)}
    words = sorted({answer for _, answer in by_form[claims]})
    found = [
        _plot_by_task(
            "Right letter per task (multi-choice)", choices, (t for t, _ in by_form[choices]), LETTERS,
            lambda t, k: tallies.answers[t, choices, LETTERS[k]],
        ),
        _plot_by_task(
            "Right answer per task (judgment)", claims, (t for t, _ in by_form[claims]), words,
            lambda t, k: tallies.answers[t, claims, words[k]],
        ),
        _plot_by_task(
            "Rank of the true value among the options", choices, (t for t, _ in tallies.ranks), _RANKS,
            lambda t, k: tallies.ranks[t, k + 1],
        ),
    ]  # fmt: skip
    for (task, ask, what, unit), values in sorted(tallies.values.items()):
        name = " ".join(part for part in (task, ask) if part)
        found.append(_make_histogram(f"Answers of {name}" + (f": {what}" if what else ""), unit, values))
    return [chart for chart in found if chart.get("rows") or chart.get("bins")]


def _make_chart(title: str, rows: list[dict[str, Any]], legend: Sequence[str] = ()) -> dict[str, Any]:
    most = max((row["total"] for row in rows), default=0)
    for row in rows:
        left = 0.0
        for part in row["parts"]:
            part["share"] = part["n"] / most if most else 0.0
            part["left"], left = left, left + part["share"]
            part["name"] = legend[part["series"]] if legend else row["label"]
    return {"kind": "bars", "title": title, "rows": rows, "legend": list(legend)}


def _make_row(label: str, parts: Sequence[tuple[int, int]], href: str) -> dict[str, Any]:
    return {
        "label": label or "(none)",
        "total": sum(n for n, _ in parts),
        "href": href,
        "parts": [{"n": n, "series": series} for n, series in parts if n],
    }


def _make_histogram(title: str, unit: str, values: Sequence[float]) -> dict[str, Any]:
    counts, edges = np.histogram(values, bins=BINS if len(set(values)) > 1 else 1)
    most = int(counts.max())
    bins = [
        {"n": int(n), "share": float(n) / most, "low": f"{edges[k]:.4g}", "high": f"{edges[k + 1]:.4g}"}
        for k, n in enumerate(counts)
    ]
    middle = float(np.median(values))
    return {"kind": "histogram", "title": title, "unit": unit, "bins": bins, "total": len(values),
            "median": f"{middle:.4g}"}  # fmt: skip


def _make_address(filters: Mapping[str, str]) -> str:
    return "index.html#" + "&".join(f"{key}={quote(value, safe='')}" for key, value in filters.items())
