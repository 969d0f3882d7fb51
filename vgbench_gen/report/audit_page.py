"""An audit as files: audit.json, audit.csv, bias.csv, and two pages that open from disk and ask for nothing: what
it comes to for each task, and every figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from vgbench_gen.pipeline.audit import AuditLine, AuditReport, Where
from vgbench_gen.quality.family import LEVEL
from vgbench_gen.quality.findings import CONCLUSIVE, Finding
from vgbench_gen.report import audit_plots
from vgbench_gen.report.audit_plots import find_limit, place
from vgbench_gen.report.audit_table import (
    ORDER,
    AuditRow,
    as_json,
    count_verdicts,
    describe_few,
    describe_power,
    format_bias_csv,
    format_csv,
    format_interval,
    format_json,
    format_value,
    make_rows,
    merge_fallen,
    name_cell,
    number,
    summarise,
)
from vgbench_gen.report.header import AUDIT, PageHeader, refresh_headers
from vgbench_gen.report.site import make_environment, make_inline_style
from vgbench_gen.store.files import write_bytes

GALLERY = "../gallery/index.html"
FIGURES = "figures.html"
_LISTED, _LISTED_BELOW = 8, 3  # questions of a line that the page spells out, among fallen bars and further down
_OPENED = 3  # red lines up to which a family is unfolded; they stand among the fallen bars as well
_LINKED = 60  # that one link carries; addresses must stay short enough for every browser
_SECTIONS: tuple[tuple[Where, str, str], ...] = (
    ("pool", "Text, on the audit pool", "The dataset's questions and more of the same facts; bars are judged here."),
    ("set", "The set as a whole", "Items by their evidence, duplicates, limits, partners."),
    ("solvers", "Solvers that see", "Classical image-only solvers and rules, on the dataset's questions."),
    ("release", "Text, on the dataset alone", "The same by cell of the dataset; “few” where a cell is too small."),
)  # fmt: skip
_FORESTS = (
    ("pool", "blind", "Text-only classifiers on the pool"),
    ("release", "blind", "Text-only classifiers on the dataset"),
    ("pool", "rule", "Fixed rules on the pool, the worst per cell"),
    ("release", "rule", "Fixed rules on the dataset, the worst per cell"),
    ("solvers", "solver", "Solvers that see, and the same with another question's images"),
    ("solvers", "trivial", "Trivial image heuristics"),
)


def write_audit(report: AuditReport, folder: Path, home: Path | None = None) -> Path:
    """Write the report's files into a folder, which is made; returns the page.

    home: the folder of the dataset, to whose other pages the page leads; None for none.

    Raises:
        DatasetError: something that is no file stands in the place of one.
    """
    write_bytes(folder / "audit.json", format_json(as_json(report)).encode())
    write_bytes(folder / "audit.csv", format_csv(report).encode())
    write_bytes(folder / "bias.csv", format_bias_csv(report).encode())
    header = PageHeader(AUDIT, folder, {} if home is None else {home.resolve().name: home})
    for name, make in ((FIGURES, make_figures_page), ("index.html", make_page)):
        write_bytes(folder / name, make(report, header.render(name)).encode())
    if home is not None:
        refresh_headers(home)
    return folder / "index.html"


def make_page(report: AuditReport, header: str = "") -> str:
    """The first page, whole: no script, styles inside, every text of the data escaped; header: markup."""
    counts = count_verdicts(report.lines)
    few = describe_few(report)
    return _render(
        "audit.html.j2",
        report,
        header,
        summary=summarise(report),
        tone="red" if counts["red"] else "" if few else "green",
        few=few,
        headline=make_headline(report),
        counts=[(name, counts[name]) for name in ORDER if counts[name]],
        notes=[*describe_power(report), *report.notes],
        tested=report.tested,
        level=f"{LEVEL:g}",
        conclusive=CONCLUSIVE,
        fallen=[_make_row(row, report) for row in merge_fallen(report)],
    )


def make_figures_page(report: AuditReport, header: str = "") -> str:
    """The page of all figures, made as `make_page` makes the first one."""
    sections = (_make_section(report, where, title, caption) for where, title, caption in _SECTIONS)
    return _render(
        "audit_figures.html.j2",
        report,
        header,
        forests=audit_plots.plot_forests(report, _FORESTS),
        charts=audit_plots.plot_distributions(report),
        sections=[section for section in sections if section is not None],
    )


def _render(template: str, report: AuditReport, header: str, **values: Any) -> str:
    style, csp = make_inline_style(names=("audit.css",))
    shared = {"csp": csp, "style": style, "header": header, "dataset": report.dataset, "figures": len(report.lines)}
    return make_environment().get_template(template).render(**shared, **values)


def _make_section(report: AuditReport, where: Where, title: str, caption: str) -> dict[str, Any] | None:
    lines = sorted((line for line in report.lines if line.where == where), key=lambda line: line.finding.audit)
    families = [_make_family(name, list(members), report) for name, members in groupby(lines, key=_name_family)]
    if not families:
        return None
    families.sort(key=lambda family: (not family["open"], family["name"]))
    return {"anchor": where, "title": title, "caption": caption, "families": families}


def _name_family(line: AuditLine) -> str:
    return line.finding.audit


def _make_family(name: str, lines: Sequence[AuditLine], report: AuditReport) -> dict[str, Any]:
    counts = count_verdicts(lines)
    return {
        "name": name,
        "open": 0 < counts["red"] <= _OPENED,
        "counts": [(verdict, counts[verdict]) for verdict in ORDER if counts[verdict]],
        "rows": [_make_row(row, report, _LISTED_BELOW) for row in make_rows(lines)],
    }


def _make_row(row: AuditRow, report: AuditReport, most: int = _LISTED) -> dict[str, Any]:
    found: Finding = row.worst
    inside = [name for name in found.items if name in report.inside]
    # Whoever follows a line wants to see pictures, so questions that have some come first.
    listed = [*inside, *(name for name in found.items if name not in report.inside)][:most]
    return {
        "anchor": "",
        "verdict": found.verdict,
        "audit": found.audit,
        "name": found.name + (f" (+{row.more})" if row.more else ""),
        "cell": name_cell(found),
        "n": found.n,
        "value": format_value(found),
        "interval": format_interval(found),
        "chance": number(found.chance, found.unit),
        "bar": found.bar,
        "detail": found.detail,
        "total": len(found.items),
        "inside": min(len(inside), _LINKED),
        "href": f"{GALLERY}#ids={quote(','.join(inside[:_LINKED]), safe=',')}" if inside else "",
        "questions": [
            {
                "id": name,
                "text": report.texts.get(name, ""),
                "href": f"{GALLERY}#item={quote(name, safe='')}" if name in report.inside else "",
            }
            for name in listed
        ],
    }


Badness = Callable[[Finding], float]


def _measure_sure_excess(found: Finding) -> float:
    """Points by which a figure is surely over chance: the end of its interval, so that few questions prove little."""
    end = found.value if math.isnan(found.low) else found.low
    return end - (0.0 if math.isnan(found.chance) else found.chance)


def _measure_failure(found: Finding) -> float:
    return -found.value


def _measure_distance_to_chance(found: Finding) -> float:
    return abs(found.value - found.chance)


# (title, what it means, families, which of their figures is shown: the largest by this, what of)
_MEASURES: tuple[tuple[str, str, tuple[str, ...], Badness, str], ...] = (
    ("Text only", "Learners that read question and options and see no image.", ("blind",), _measure_sure_excess,
     "learner"),
    ("No skill", "Fixed rules, such as the middle value or the brighter image.", ("rule", "trivial"),
     _measure_sure_excess, "rule"),
    ("Solver", "Classical computer vision that looks at the images: it should be right.", ("solver",),
     _measure_failure, "solver"),
    ("Wrong image", "The same solver with another question's images: it should fall to chance.", ("wrong image",),
     _measure_distance_to_chance, "solver"),
)  # fmt: skip
_WHERE = {"pool": 0, "solvers": 0, "release": 1, "set": 2}  # text is judged on the pool where there is one


def make_headline(report: AuditReport) -> dict[str, Any] | None:
    """Per task the figure of each measure that says most against the set; None where no figure is of a task.

    Of many figures the one that is most surely beyond chance is shown, and how many there are: the largest of many
    numbers is large by luck.
    """
    tasks = sorted({line.finding.task for line in report.lines} - {""})
    measures = [
        (title, told, families, badness, what)
        for title, told, families, badness, what in _MEASURES
        if any(line.finding.audit in families for line in report.lines)
    ]
    rows = []
    for task in tasks:
        cells = [
            _make_cell(_choose(report, task, families), badness, what) for _, _, families, badness, what in measures
        ]
        if any(cell is not None for cell in cells):
            rows.append({"task": task.replace("_", " "), "cells": cells})
    if not rows:
        return None
    return {"measures": [{"title": title, "told": told} for title, told, *_ in measures], "rows": rows}


def _choose(report: AuditReport, task: str, families: Sequence[str]) -> list[Finding]:
    """The figures of these families that have a bar, where one has; on the pool, where they are judged there."""
    lines = [
        line
        for line in report.lines
        if line.finding.task == task
        and line.finding.audit in families
        and line.finding.unit == "%"
        and math.isfinite(line.finding.value)
    ]
    first = min((_WHERE[line.where] for line in lines), default=0)
    found = [line.finding for line in lines if _WHERE[line.where] == first]
    return [one for one in found if one.bar] or found


def _make_cell(found: Sequence[Finding], badness: Badness, what: str) -> dict[str, Any] | None:
    if not found:
        return None
    shown = max(found, key=lambda one: (one.fell, badness(one), one.name))
    bar = shown.bar.partition(",")[0].replace("<=", "≤").replace(">=", "≥")
    told = [f"{shown.name.replace('_', ' ')}, {shown.form}", f"n = {shown.n:,}"]
    if not math.isnan(shown.chance):
        told.append(f"chance {shown.chance:.0f}")
    if bar:
        told.append(f"bar {bar}")
    if len(found) > 1:
        told.append(f"worst of {len(found)} {what}s")
    return {
        "value": f"{shown.value:.0f}",
        "interval": format_interval(shown),
        "verdict": shown.verdict,
        "told": told,
        "x": place(shown.value),
        "low": place(shown.low),
        "high": place(shown.high),
        "chance": place(shown.chance),
        "limit": place(find_limit(shown)),
        "wrong": "",
    }
