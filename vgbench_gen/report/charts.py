"""Bars and histograms as plain numbers: what the macro `chart` of `pages/parts.html.j2` draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

FEWEST = 20
"""A distribution of fewer values is not drawn: it shows chance."""
RANKS = ("smallest", "second", "third", "largest")


def spread(some: Sequence[Any], most: int) -> list[Any]:
    """At most so many of them, evenly from the whole list."""
    return [some[k * len(some) // most] for k in range(most)] if len(some) > most else list(some)


def make_bar(label: str, counts: Sequence[int], href: str = "") -> dict[str, Any]:
    """One bar: a part for each count that is not 0, with the place of its series."""
    parts = [{"n": n, "series": series} for series, n in enumerate(counts) if n]
    return {"label": label or "(none)", "total": sum(counts), "href": href, "parts": parts}


def make_bars(
    title: str, bars: list[dict[str, Any]], series: Sequence[str] = (), alike: bool = False
) -> dict[str, Any]:
    """A chart of bars; a part gets its name, and its share and left end as shares of the longest bar.

    Args:
        title: of the chart.
        bars: as `make_bar` makes them.
        series: names of the parts; none where a bar has but one.
        alike: draw all bars equally long, and leave out those of fewer than `FEWEST`.
    """
    if alike:
        bars = [bar for bar in bars if bar["total"] >= FEWEST]
    most = max((bar["total"] for bar in bars), default=0)
    for bar in bars:
        left = 0.0
        for part in bar["parts"]:
            part["share"] = part["n"] / (bar["total"] if alike else most)
            part["left"], left = left, left + part["share"]
            part["name"] = series[part["series"]] if series else bar["label"]
    return {"title": title, "unit": "", "rows": bars, "legend": list(series)}


def make_histogram(
    title: str, unit: str, values: Sequence[float], bins: int = 14, span: tuple[float, float] | None = None
) -> dict[str, Any] | None:
    """A chart of how values lie, between the ends of `span` or their own; None for fewer than `FEWEST`."""
    if len(values) < FEWEST:
        return None
    counts, edges = np.histogram(values, bins=bins if span or len(set(values)) > 1 else 1, range=span)
    most = max(int(counts.max()), 1)
    found = [
        {"n": int(n), "share": float(n) / most, "low": f"{edges[k]:.4g}", "high": f"{edges[k + 1]:.4g}"}
        for k, n in enumerate(counts)
    ]
    return {
        "title": title,
        "unit": unit,
        "legend": [],
        "rows": [],
        "bins": found,
        "total": len(values),
        "median": f"{np.median(values):.4g}",
    }
