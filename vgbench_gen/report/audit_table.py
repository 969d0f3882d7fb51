"""An audit in lines of text: every figure as a table, or what fell in a few lines."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vgbench_gen.core.columns import WIDTH, format_columns
from vgbench_gen.core.lines import guard_formula
from vgbench_gen.pipeline.audit import AuditLine, AuditReport, Where
from vgbench_gen.quality.findings import CONCLUSIVE, Finding

ORDER = {"red": 0, "few": 1, "green": 2, "reported": 3, "skipped": 4}
# The text of the bar in full stands in the files; a screen is narrow.
_OR_P = re.compile(r",? or p >= [0-9.]+ \(Holm\)")
BRIEF_LINES = 15
_BRIEF_NOTES = 5
_HEADS = ("verdict", "value", "95 % interval", "chance", "bar", "n", "on", "what")
_RIGHT = ("value", "chance", "n")
_DROP = ("on", "n", "95 % interval", "chance")  # where the screen is narrow; the page has them


@dataclass(frozen=True, slots=True)
class AuditRow:
    """The lines of one family of figures and cell, as one row."""

    where: Where
    """Which questions the row is about: "pool", "release", "set" or "solvers", as in `AuditLine`."""
    worst: Finding
    """The figure to look at first."""
    more: int
    """How many other figures the row stands for."""


def make_rows(lines: Iterable[AuditLine]) -> list[AuditRow]:
    """One row per line, worst first."""
    return [AuditRow(line.where, line.finding, 0) for line in sorted(lines, key=_rank)]


def merge_fallen(report: AuditReport) -> list[AuditRow]:
    """The bars that fell, worst first: one row per figure, but of tests of distributions one per cell.

    One leak moves many quantities at once; a row per cell says it, and the files hold each.
    """
    groups: dict[tuple[str, ...], list[AuditLine]] = {}
    for line in sorted(report.fell, key=_rank_fallen):
        found = line.finding
        which = ("", "") if found.unit == "KS" else (found.name, found.source)
        groups.setdefault((line.where, found.audit, found.task, found.form, *which), []).append(line)
    return [AuditRow(members[0].where, members[0].finding, len(members) - 1) for members in groups.values()]


def _rank_fallen(line: AuditLine) -> tuple[Any, ...]:
    """What luck cannot move first, then by how surely a bar fell."""
    found = line.finding
    return 0.0 if math.isnan(found.p) else found.p, -measure_badness(found), *_rank(line)


def _rank(line: AuditLine) -> tuple[Any, ...]:
    found = line.finding
    return (
        ORDER[found.verdict],
        ("pool", "set", "solvers", "release").index(line.where),
        found.audit,
        found.task,
        found.form,
        -measure_badness(found),
        found.name,
        found.source,
    )


def measure_badness(found: Finding) -> float:
    """How far a figure is on the wrong side, comparable within one family and cell."""
    if math.isnan(found.value):
        return -math.inf
    if found.bar.startswith(">="):
        return -found.value
    return found.value - (0.0 if math.isnan(found.chance) else found.chance)


def name_cell(found: Finding) -> str:
    """Task, question type and source, "all" where the line is about all of them."""
    return " ".join(filter(None, (found.task, found.form, found.source))) or "all"


def format_value(found: Finding) -> str:
    """The value in its unit; "" where there is none."""
    suffix = {"%": " %", "KS": " points"}.get(found.unit, "")
    return number(found.value, found.unit) + ("" if math.isnan(found.value) else suffix)


def format_interval(found: Finding) -> str:
    """The interval, "" where there is none."""
    if math.isnan(found.low) or math.isnan(found.high):
        return ""
    return f"[{number(found.low, found.unit)}, {number(found.high, found.unit)}]"


def number(value: float, unit: str) -> str:
    """A figure as its unit is read: whole counts, else one decimal."""
    if math.isnan(value):
        return ""
    return f"{value:.0f}" if unit == "count" else f"{value:.1f}"


def format_table_lines(report: AuditReport, width: int = WIDTH) -> list[str]:
    """Every figure as a line of a table, with a line of counts and the notes below."""
    return [*_format_rows(make_rows(report.lines), width), "", summarise(report), *describe_few(report), *report.notes]


def format_brief_lines(report: AuditReport, page: str, width: int = WIDTH) -> list[str]:
    """What an audit found in at most `BRIEF_LINES` lines: how many figures, the fallen ones worst first, the notes.

    page: where all figures stand.
    """
    notes = [*describe_power(report), *report.notes][:_BRIEF_NOTES]
    fallen = merge_fallen(report)
    few = describe_few(report)
    room = BRIEF_LINES - 3 - len(few) - len(notes)  # beside the sentence, the figures left out and the page
    rows = min(len(fallen), room)
    while rows and len(shown := _format_rows(fallen[:rows], width)) > room:
        rows -= 1
    shown = shown if rows else []
    left = sum(1 + row.more for row in fallen[rows:])
    more = [f"… and {left} more"] if left else []
    return [summarise(report), *few, *shown, *more, *notes, f"all figures: {page}"]


def _format_rows(rows: Sequence[AuditRow], width: int) -> list[str]:
    """Heads and rows in columns."""
    body = [
        (
            "RED" if row.worst.fell else row.worst.verdict,
            format_value(row.worst),
            format_interval(row.worst),
            number(row.worst.chance, row.worst.unit),
            _OR_P.sub(" or p", row.worst.bar),
            row.worst.n,
            row.where,
            f"{row.worst.audit}, {name_cell(row.worst)}: {row.worst.name}" + (f" (+{row.more})" if row.more else ""),
        )
        for row in rows
    ]
    return format_columns(body, heads=_HEADS, right=_RIGHT, drop=_DROP, width=width)


def summarise(report: AuditReport) -> str:
    """How many bars fell, in one sentence."""
    counts = count_verdicts(report.lines)
    told = ", ".join(f"{counts[name]} {name}" for name in ORDER if counts[name])
    red = counts["red"]
    bars = "no bar fell" if not red else "1 bar fell" if red == 1 else f"{red} bars fell"
    return f"{report.dataset}: {report.items} questions, {len(report.lines)} figures ({told}): {bars}"


def describe_few(report: AuditReport) -> list[str]:
    """In a sentence, that most figures with a bar rest on too few questions; nothing where most are judged."""
    counts = count_verdicts(report.lines)
    few, barred = counts["few"], counts["red"] + counts["few"] + counts["green"]
    return [f"{few:,} of {barred:,} checks are inconclusive: not enough questions."] if 2 * few > barred else []


def describe_power(report: AuditReport) -> list[str]:
    """In a sentence, from which excess on the text-only classifiers would have shown a leak, over tasks and forms."""
    lines = [line for line in report.lines if line.finding.audit == "blind" and not math.isnan(line.finding.seen)]
    pooled = {line.finding.task for line in lines if line.where == "pool"}
    found: dict[tuple[str, str], Finding] = {}
    for line in lines:
        if line.where == "pool" or line.finding.task not in pooled:
            best = found.setdefault((line.finding.task, line.finding.form), line.finding)
            if line.finding.seen < best.seen:
                found[line.finding.task, line.finding.form] = line.finding
    enough = [finding.seen for finding in found.values() if finding.n >= CONCLUSIVE]
    told = []
    if enough:
        ends = " to ".join(dict.fromkeys(f"{end:.1f}" for end in (min(enough), max(enough))))
        kinds = "1 cell" if len(enough) == 1 else f"{len(enough)} cells"
        told.append(
            f"A leak in the text would have been seen from {ends} points above chance in {kinds} of task and type"
        )
    if few := len(found) - len(enough):
        kinds = "1 cell" if few == 1 else f"{few} cells"
        told.append(f"{kinds} of task and type with fewer than {CONCLUSIVE} in the pool: their text is not judged")
    return [f"{'; '.join(told)}."] if told else []


def count_verdicts(lines: Sequence[AuditLine]) -> dict[str, int]:
    """The number of lines of each verdict."""
    return {name: sum(line.finding.verdict == name for line in lines) for name in ORDER}


def as_json(report: AuditReport) -> dict[str, Any]:
    """The report as JSON-ready values; what has no meaning is null. Times are left out: equal audits, equal bytes."""
    return {
        "dataset": report.dataset,
        "items": report.items,
        "tested": report.tested,
        "verdicts": count_verdicts(report.lines),
        "cells": report.cells,
        "notes": report.notes,
        "findings": [{"where": line.where, **_record(line.finding)} for line in report.lines],
    }


def format_csv(report: AuditReport) -> str:
    """One line per figure; the ids behind it joined by spaces."""
    out = io.StringIO()
    names = ["where", *_record(Finding("", ""))]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for line in report.lines:
        cells = {"where": line.where, **_record(line.finding), "items": " ".join(line.finding.items)}
        writer.writerow({name: guard_formula(cell) for name, cell in cells.items()})
    return out.getvalue()


def format_bias_csv(report: AuditReport) -> str:
    """One line per question of the dataset: its id and its bias score."""
    return "id,bias\n" + "".join(f"{guard_formula(name)},{score:.6f}\n" for name, score in sorted(report.bias.items()))


def format_json(value: Any) -> str:
    """JSON with sorted keys and two spaces, so that two can be compared by eye."""
    return json.dumps(value, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _record(found: Finding) -> dict[str, Any]:
    record = asdict(found)
    del record["test"]
    for name in ("value", "low", "high", "chance", "p", "seen"):
        value = record[name]
        record[name] = round(value, 6) if math.isfinite(value) else None
    return record | {"items": list(found.items)}
