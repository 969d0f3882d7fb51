"""Distributions of a dataset as plain numbers for the page of plots."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np

from vgbench_gen.core.types import LETTERS, QUESTION_TYPES, FloatArray, Item
from vgbench_gen.report.gallery_rows import UNREADABLE

BINS = 14
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

    cells: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # task, form, source
    difficulty: Counter[tuple[str, str]] = field(default_factory=Counter)
    answers: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # task, form, answer
    ranks: Counter[tuple[str, int]] = field(default_factory=Counter)
    values: dict[tuple[str, str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, item: Item) -> None:
        """Count one more item."""
        self.cells[item.task, item.question_type, item.source] += 1
        self.difficulty[item.task, item.difficulty] += 1
        if item.question_type != "open-ended":
            self.answers[item.task, item.question_type, item.answer] += 1
        try:
            what, unit, value = one_number(item.answer_value, item.answer_shape)
            self.values[item.task, item.ask, what, unit or item.unit].append(value)
            if item.question_type == "multi-choice" and item.ask not in _RANK_ASKED:
                options = [
                    one_number(np.ravel(o["value"]).tolist(), item.answer_shape)[2] for o in item.evidence["options"]
                ]
                truth = LETTERS.index(item.answer)
                if len(options) == len(LETTERS) and len(set(options)) == len(options):
                    self.ranks[item.task, sorted(options).index(options[truth]) + 1] += 1
        except UNREADABLE:
            return


def one_number(values: Sequence[float], shape: Sequence[int]) -> tuple[str, str, float]:
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


def charts(tallies: Tallies, scenes: Sequence[tuple[str, int, str]]) -> list[dict[str, Any]]:
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

    def of(name: str, keys: Sequence[str]) -> list[dict[str, Any]]:
        return [_row(key, [(count(**{name: key}), 0)], _address({name: key})) for key in keys]

    counts = [
        _chart(
            "Items per task",
            [_row(t, [(count(task=t, type=f), k) for k, f in enumerate(forms)], _address({"task": t})) for t in tasks],
            forms,
        ),
        _chart("Items per type", of("type", forms)),
        _chart("Items per source", of("source", sources)),
        _chart(
            "Difficulty per task",
            [
                _row(t, [(tallies.difficulty[t, d], k) for k, d in enumerate(hardness)], _address({"task": t}))
                for t in tasks
            ],
            hardness,
        ),
    ]
    groups = [{"title": "Counts", "charts": counts}, {"title": "Answers", "charts": _answers(tallies)}]
    places = [
        _chart(
            f"Items per scene of {source}",
            [
                _row(name, [(n, 0)], address)
                for name, n, address in sorted(scenes, key=lambda s: (-s[1], s[0]))
                if name.startswith(f"{source}/")
            ],
        )
        for source in sources
    ]
    return [*groups, {"title": "Scenes", "charts": places}]


def _answers(tallies: Tallies) -> list[dict[str, Any]]:
    found = []
    letters = sorted({t for t, form, _ in tallies.answers if form == "multi-choice"})
    rows = [
        _row(t, [(tallies.answers[t, "multi-choice", x], k) for k, x in enumerate(LETTERS)],
             _address({"task": t, "type": "multi-choice"}))
        for t in letters
    ]  # fmt: skip
    found.append(_chart("Right letter per task (multi-choice)", rows, list(LETTERS)))
    judged = sorted({t for t, form, _ in tallies.answers if form == "judgment"})
    words = sorted({a for _, form, a in tallies.answers if form == "judgment"})
    rows = [
        _row(t, [(tallies.answers[t, "judgment", w], k) for k, w in enumerate(words)],
             _address({"task": t, "type": "judgment"}))
        for t in judged
    ]  # fmt: skip
    found.append(_chart("Right answer per task (judgment)", rows, words))
    ranked = sorted({t for t, _ in tallies.ranks})
    places = ("smallest", "second", "third", "largest")
    rows = [
        _row(
            t, [(tallies.ranks[t, k + 1], k) for k in range(len(places))], _address({"task": t, "type": "multi-choice"})
        )
        for t in ranked
    ]
    found.append(_chart("Rank of the true value among the options", rows, list(places)))
    for (task, ask, what, unit), values in sorted(tallies.values.items()):
        name = " ".join(part for part in (task, ask) if part)
        found.append(_histogram(f"Answers of {name}" + (f": {what}" if what else ""), unit, values))
    return [chart for chart in found if chart.get("rows") or chart.get("bins")]


def _chart(title: str, rows: list[dict[str, Any]], legend: Sequence[str] = ()) -> dict[str, Any]:
    most = max((row["total"] for row in rows), default=0)
    for row in rows:
        left = 0.0
        for part in row["parts"]:
            part["share"] = part["n"] / most if most else 0.0
            part["left"], left = left, left + part["share"]
            part["name"] = legend[part["series"]] if legend else row["label"]
    return {"kind": "bars", "title": title, "rows": rows, "legend": list(legend)}


def _row(label: str, parts: Sequence[tuple[int, int]], href: str) -> dict[str, Any]:
    return {
        "label": label or "(none)",
        "total": sum(n for n, _ in parts),
        "href": href,
        "parts": [{"n": n, "series": series} for n, series in parts if n],
    }


def _histogram(title: str, unit: str, values: Sequence[float]) -> dict[str, Any]:
    counts, edges = np.histogram(values, bins=BINS if len(set(values)) > 1 else 1)
    most = int(counts.max())
    bins = [
        {"n": int(n), "share": float(n) / most, "low": f"{edges[k]:.4g}", "high": f"{edges[k + 1]:.4g}"}
        for k, n in enumerate(counts)
    ]
    middle = float(np.median(values))
    return {"kind": "histogram", "title": title, "unit": unit, "bins": bins, "total": len(values),
            "median": f"{middle:.4g}"}  # fmt: skip


def _address(filters: Mapping[str, str]) -> str:
    return "index.html#" + "&".join(f"{key}={quote(value, safe='')}" for key, value in filters.items())
