"""An audit as files: audit.json, audit.csv, bias.csv, and a page that opens from disk and asks for nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vgbench_gen.core.types import ALPHABET
from vgbench_gen.pipeline.audit import AuditReport
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report import audit_table as table
from vgbench_gen.report.charts import RANKS, make_bar, make_bars, make_histogram
from vgbench_gen.report.header import AUDIT, PageHeader, refresh_headers
from vgbench_gen.report.site import make_environment, make_inline_style
from vgbench_gen.store.files import write_bytes

_LISTED = 8  # questions behind a figure that the page spells out
_MEANINGS: dict[str, str] = {
    "text": "accuracy of a learner that reads text and marks and sees no image",
    "answers": "share of the most frequent right answer",
}
_LINKED = 60  # that one link carries; addresses must stay short enough for every browser


def write_audit(report: AuditReport, folder: Path, home: Path | None = None) -> Path:
    """Write the report's files into a folder, which is made; returns the page.

    home: the folder of the dataset, to whose other pages the page leads; None for none.

    Raises:
        DatasetError: something that is no file stands in the place of one.
    """
    found = table.as_json(report)
    text = json.dumps(found, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False)
    rows = [[*(record | {"items": " ".join(record["items"])}).values()] for record in found["findings"]]
    bias = [(name, f"{score:.6f}") for name, score in sorted(report.bias.items())]
    write_bytes(folder / "audit.json", f"{text}\n".encode())
    write_bytes(folder / "audit.csv", table.format_csv([*table.as_record(Finding("text"))], rows).encode())
    write_bytes(folder / "bias.csv", table.format_csv(("id", "bias"), bias).encode())
    header = PageHeader(AUDIT, folder, {} if home is None else {home.resolve().name: home})
    write_bytes(folder / "index.html", make_page(report, header.render("index.html")).encode())
    if home is not None:
        refresh_headers(home)
    return folder / "index.html"


def make_page(report: AuditReport, header: str = "") -> str:
    """The page, whole: no script, styles inside, every text of the data escaped; header: markup."""
    style, csp = make_inline_style(names=("audit.css",))
    kinds, cells = table.arrange_cells(report.findings)
    need = table.describe_need(report)
    return (
        make_environment()
        .get_template("audit.html.j2")
        .render(
            csp=csp,
            style=style,
            header=header,
            dataset=report.dataset,
            total=report.items,
            counts=table.count_verdicts(report.findings),
            need=need,
            tone="red" if report.failed else "few" if need else "green",
            heads=[table.NAMES[kind][0] for kind in kinds],
            legend=[(table.NAMES[kind][0], _MEANINGS.get(kind, table.NAMES[kind][1])) for kind in kinds],
            rows=[
                (cell, [_make_figure(figures[kind]) if kind in figures else None for kind in kinds])
                for cell, figures in cells.items()
            ],
            others=[_make_figure(found) for found in table.sort_findings(report.findings) if table.is_whole(found)],
            failed=[_make_failed(found, report) for found in table.sort_findings(report.failed)],
            charts=plot_distributions(report),
            notes=report.notes,
        )
    )


def _make_figure(found: Finding) -> dict[str, Any]:
    """A figure in words; one with too few questions has no value."""
    value = "" if found.is_scarce else table.format_number(found.value, found.unit)
    return {
        "verdict": table.VERDICTS[found.verdict],
        "failed": found.failed,
        "words": table.describe(found),
        "cell": table.name_cell(found),
        "value": f"{value} %" if value and found.unit == "%" else value,
        "told": [text.removesuffix(" questions") for text in table.format_limits(found)]
        if found.unit == "%" or found.failed or found.is_scarce
        else [],
    }


def _make_failed(found: Finding, report: AuditReport) -> dict[str, Any]:
    """A statistic with the questions behind it; those of the dataset come first, as they have pictures to look at."""
    inside = [name for name in found.items if name in report.inside]
    listed = [*inside, *(name for name in found.items if name not in report.inside)][:_LISTED]
    questions = [(name, report.texts.get(name, ""), name in report.inside) for name in listed]
    return _make_figure(found) | {"total": len(found.items), "inside": inside[:_LINKED], "questions": questions}


def plot_distributions(report: AuditReport) -> list[dict[str, Any]]:
    """Places of the right answer per cell, its rank by size, and the bias scores of the dataset's questions."""
    charts = []
    for kind, title, names in (
        ("letters", "Right letter per cell of the dataset", ALPHABET),
        ("yes_no", "Right answer of judgments", ("yes", "no")),
        ("ranks", "Rank of the true number among the options", RANKS),
    ):
        cells = sorted(report.tallies.get(kind, {}).items())
        bars = [make_bar(cell.replace("_", " "), counts) for cell, counts in cells]
        charts.append(make_bars(title, bars, names[: max((len(counts) for _, counts in cells), default=0)], alike=True))
    title = "Bias score: share that text-only learners give to the right answer (chance: the text tells nothing)"
    scores = make_histogram(title, "", list(report.bias.values()), 20, (0.0, 1.0))
    return [*(chart for chart in charts if chart["rows"]), *([scores] if scores else [])]
