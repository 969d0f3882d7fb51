"""An audit in words and files: a sentence, a line for each cell, what failed, and every statistic as JSON and CSV."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from typing import Any, get_args

from vgbench_gen.core.columns import WIDTH, format_columns
from vgbench_gen.core.lines import guard_formula
from vgbench_gen.pipeline.audit import AuditReport
from vgbench_gen.quality.findings import AT_LEAST, CELL_KINDS, Finding, Kind, Verdict

NAMES: Mapping[Kind, tuple[str, str]] = {  # the head of a column, and what is measured
    "text": ("text + marks", "text-and-marks accuracy"),
    "rule": ("best rule", "accuracy of the best fixed rule"),
    "image rule": ("best image rule", "accuracy of the best rule on the images"),
    "solver": ("solver", "accuracy of the solver"),
    "wrong image": ("wrong image", "accuracy of the solver with another question's images"),
    "answers": ("right answers", "right answers"),
    "repeats": ("repeats", "questions that repeat another"),
    "wording": ("wording", "defects of wording"),
    "scene share": ("fullest scene", "share of the fullest scene"),
    "evidence": ("evidence", "answers that do not hold by their evidence"),
    "control": ("control", "accuracy of the learners"),
}
TEXT: tuple[Kind, ...] = ("text", "rule")  # what only many questions can judge
VERDICTS: Mapping[Verdict, str] = {verdict: verdict for verdict in get_args(Verdict)} | {"reported": "no limit"}
_FAILED_LINES = 15
_NUMBERS = ("value", "low", "high", "chance", "limit", "p")


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first: by verdict, then by how surely a figure is beyond its limit, then by how far."""
    return sorted(findings, key=_rank)


def _rank(found: Finding) -> tuple[Any, ...]:
    surely = (0.0 if found.failed else 1.0) if math.isnan(found.p) else found.p
    beyond = found.value - found.limit
    far = 0.0 if math.isnan(beyond) else beyond if found.kind in AT_LEAST else -beyond
    return [*VERDICTS].index(found.verdict), surely, far, [*NAMES].index(found.kind), name_cell(found), found.name


def arrange_cells(findings: Iterable[Finding]) -> tuple[list[Kind], dict[str, dict[Kind, Finding]]]:
    """(kinds that some cell has, cell -> kind -> figure), the cell with the worst figure first; without `is_whole`.

    A figure of a task stands in all its cells.
    """
    ranked = [found for found in sort_findings(findings) if not is_whole(found)]
    names = {found.task: [name_cell(one) for one in ranked if one.form and one.task == found.task] for found in ranked}
    cells: dict[str, dict[Kind, Finding]] = {}
    for found in ranked:
        for name in [name_cell(found)] if found.form else names[found.task] or [found.task]:
            cells.setdefault(name, {}).setdefault(found.kind, found)
    return [kind for kind in NAMES if any(kind in figures for figures in cells.values())], cells


def is_whole(found: Finding) -> bool:
    """Whether the figure is about the set or the audit as a whole, and not about a task."""
    return not found.task or found.kind not in CELL_KINDS


def name_cell(found: Finding) -> str:
    """Task and question type, "all questions" where the figure is about all of them."""
    return "/".join(filter(None, (found.task, found.form))) or "all questions"


def format_number(value: float, unit: str) -> str:
    """A figure as its unit is read: whole counts, else one decimal; "" where there is none."""
    return "" if math.isnan(value) else f"{value:.{int(unit == '%')}f}"


def format_limits(found: Finding) -> list[str]:
    """What guessing gives and what is allowed, where there is such; of a figure that is not judged, what it lacks."""
    if found.is_scarce:
        return [f"{found.n} of {found.needed} questions"]
    ends = {"chance": found.chance, "at least" if found.kind in AT_LEAST else "at most": found.limit}
    return [f"{name} {format_number(end, found.unit).removesuffix('.0')}" for name, end in ends.items() if end == end]


def describe(found: Finding) -> str:
    """The figure in plain words, without its cell and verdict."""
    what = NAMES[found.kind][1] + (f" ({found.name.replace('_', ' ')})" if found.name else "")
    value, low, high = (format_number(end, found.unit) for end in (found.value, found.low, found.high))
    if value and not found.is_scarce:
        interval = f" [{low}, {high}]" if low and high else ""
        what = f"{value} {what}" if found.unit == "count" else f"{what} {value} %{interval}"
    return ", ".join([what, *format_limits(found)]) + (f": {found.detail}" if found.detail else "")


def count_verdicts(findings: Iterable[Finding]) -> dict[str, int]:
    """The number of figures of each verdict."""
    found = Counter(finding.verdict for finding in findings)
    return {verdict: found[verdict] for verdict in VERDICTS}


def summarise_figures(findings: Iterable[Finding]) -> str:
    """How many of the statistics that have a limit passed, are not judged, and failed."""
    counts = count_verdicts(findings)
    scarce = f", {counts['not judged']} not judged" if counts["not judged"] else ""
    limited = sum(counts.values()) - counts["reported"]
    return f"{counts['passed']} of {limited} statistics passed{scarce}, {counts['failed'] or 'none'} failed"


def summarise(report: AuditReport) -> str:
    """The audit in one sentence."""
    cells = "1 cell" if len(report.cells) == 1 else f"{len(report.cells)} cells"
    return f"{report.dataset}: {report.items} questions in {cells}: {summarise_figures(report.findings)}"


def describe_need(report: AuditReport) -> str:
    """How many questions and scenes it takes to judge a cell; "" where the text of one is judged."""
    found = [finding for finding in report.findings if finding.kind in TEXT and finding.verdict != "reported"]
    if not found or not all(finding.is_scarce for finding in found):
        return ""
    needed = max(finding.needed for finding in found)
    scenes = [needed * cell["scenes"] / cell["judged"] for cell in report.cells.values() if cell["judged"]]
    ends = dict.fromkeys(f"{float(f'{end:.2g}'):,.0f}" for end in (min(scenes), max(scenes))) if scenes else ()
    source = f", from about {' to '.join(ends)} scenes like these" if ends else ""
    return f"Too few questions to judge the text of any cell: it takes {needed} per task and question type{source}."


def make_table(findings: Iterable[Finding]) -> tuple[list[str], list[list[str]]]:
    """(heads, rows): a row for each cell, the worst first, with its figures in short."""
    kinds, cells = arrange_cells(findings)
    rows = []
    for cell, figures in cells.items():
        shown = {kind: _format_short(found) for kind, found in figures.items()}
        text = [kind for kind in TEXT if kind in figures]
        if text and all(figures[kind].is_scarce for kind in text):
            shown |= dict.fromkeys(text, "") | {text[0]: ": ".join(["not judged", *format_limits(figures[text[0]])])}
        rows.append([cell, *(shown.get(kind, "") for kind in kinds)])
    return ["cell", *(NAMES[kind][0] for kind in kinds)], rows


def _format_short(found: Finding) -> str:
    if found.is_scarce:
        return "not judged"
    value, low, high = (
        f"{end:.{int(found.unit == '%' and end < 10)}f}" for end in (found.value, found.low, found.high)
    )
    interval = f" [{low}, {high}]" if found.kind == "text" and low != "nan" else ""
    return "" if value == "nan" else value + interval + (" failed" if found.failed else "")


def format_lines(report: AuditReport, page: str, width: int = WIDTH, everything: bool = False) -> list[str]:
    """What an audit found: a sentence, a line for each cell, what failed in at most 15 lines, the notes and the page.

    everything: list every statistic, not only those that failed.
    """
    wrap = partial(textwrap.wrap, width=width, subsequent_indent="    ", break_on_hyphens=False)
    need = describe_need(report)
    told = [
        f"{VERDICTS[found.verdict]}: {name_cell(found)}: {describe(found)}"
        for found in sort_findings(report.findings if everything else report.failed)
    ]
    shown = len(told)
    while not everything and sum(len(wrap(line)) for line in told[:shown]) + (shown < len(told)) > _FAILED_LINES:
        shown -= 1
    table = [need] if need else _format_cells(report.findings, width)
    more = [f"… and {len(told) - shown} more that failed"] if shown < len(told) else []
    lines = [summarise(report), *table, *told[:shown], *more, *report.notes]
    return [*chain(*map(wrap, lines)), f"all statistics: {page}"]


def _format_cells(findings: Iterable[Finding], width: int) -> list[str]:
    heads, rows = make_table(findings)
    size = max((len(row[0]) for row in rows), default=0)
    scarce = {row[0]: cell for row in rows for cell in row if cell.startswith("not judged:")}
    full = [row for row in rows if row[0] not in scarce]
    drop = heads[:2:-1]  # the last columns go first, where the screen is narrow
    lines = format_columns(full, heads=heads, drop=drop, least=[size], text=False, width=width) if full else []
    return lines + [f"{cell.ljust(size)}  {why}" for cell, why in scarce.items()]


def as_json(report: AuditReport) -> dict[str, Any]:
    """The report as JSON-ready values; what has no meaning is null. Times are left out: equal audits, equal bytes."""
    return {
        "dataset": report.dataset,
        "items": report.items,
        "verdicts": count_verdicts(report.findings),
        "cells": report.cells,
        "notes": report.notes,
        "findings": [as_record(found) for found in report.findings],
    }


def as_record(found: Finding) -> dict[str, Any]:
    """A figure as JSON-ready values, rounded to six decimals; null where there is no number."""
    numbers = {name: getattr(found, name) for name in _NUMBERS}
    rounded = {name: round(value, 6) if math.isfinite(value) else None for name, value in numbers.items()}
    return asdict(found) | rounded | {"items": list(found.items)}


def read_record(record: Mapping[str, Any]) -> Finding:
    """The figure that `as_record` wrote. Raises TypeError or ValueError where it is none."""
    from pydantic import TypeAdapter

    plain = dict(record)
    none = {name: math.nan for name in _NUMBERS if plain.get(name) is None}
    return TypeAdapter(Finding).validate_python(plain | none)


def format_csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table for spreadsheets, which must not take a text for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(map(guard_formula, row) for row in rows)
    return out.getvalue()
