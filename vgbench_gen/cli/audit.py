"""`vgbench audit`: shortcuts, leaks, duplicates and solvers, each with its limit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from vgbench_gen.cli._flags import split_names
from vgbench_gen.cli._options import Workers, count_workers, find_current_dataset
from vgbench_gen.cli._screen import find_width, print_json, progress_bars
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vgbench_gen.pipeline.audit import AuditReport
    from vgbench_gen.quality.questions import Question


@verb("audit", "Build", "vgbench audit build/vgbench --workers 2 --only text,rule")
def audit(
    dataset: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET",
            default_factory=find_current_dataset,
            show_default=False,
            help="Folder of a build (default: the most recent), parquet files, or a JSON list in SpatialScore's "
            "schema.",
        ),
    ],
    out: Annotated[Path | None, Flag("Folder; default: DATASET/audit, or NAME-audit for NAME.json.", "FOLDER")] = None,
    only: Annotated[str, Flag("Compute only these statistics, by the names above.", "A,B")] = "",
    against: Annotated[list[Path] | None, Flag("Fail if OTHER has a question of DATASET; repeatable.", "OTHER")] = None,
    pool: Annotated[int | None, Flag("Maximum questions per task and type, for text (1200).", "N"), Field(ge=1)] = None,
    workers: Workers = 0,
    everything: Annotated[bool, Flag("Print every statistic, not only those that failed.", names="--all")] = False,
    as_json: bool = False,
) -> None:
    """Measure how much the text, option letters and simple heuristics reveal.

    Statistics per task and question type: accuracy of text-only classifiers (text), of fixed rules (rule, image rule)
    and of classical solvers on correct and mismatched images (solver, wrong image); distribution of answers (answers);
    duplicates (repeats); wording; scene share. For all questions: answers without support (evidence), classifiers on
    shuffled answers (control). A statistic fails if it is beyond its limit by more than chance explains. Prints the
    worst first; writes index.html, audit.json, audit.csv and bias.csv. Exits 1 if a statistic failed.
    """
    from vgbench_gen.report.audit_table import as_json as in_json
    from vgbench_gen.report.audit_table import format_lines

    notes, questions = _read_published(dataset)
    folder = out or (dataset / "audit" if dataset.is_dir() else dataset.with_name(f"{dataset.stem}-audit"))
    kinds, others = split_names([only]), [_read_questions(path) for path in against or []]
    report = audit_into(folder, dataset, questions, notes=notes, only=kinds, against=others, pool=pool, workers=workers)
    if as_json:
        print_json(in_json(report) | {"cpu_seconds": {k: round(v, 2) for k, v in report.seconds.items()}})
    else:
        page = f"{folder}/index.html"
        print("\n".join(format_lines(report, page, find_width(), everything)))
        spent = ", ".join(f"{part} {seconds:.0f}" for part, seconds in report.seconds.items())
        print(f"CPU seconds: {spent}. Written: {page}, audit.json, audit.csv, bias.csv")
    if report.failed:
        raise typer.Exit(1)


def audit_into(
    folder: Path,
    dataset: Path,
    questions: Sequence[Question] | None = None,
    *,
    notes: Sequence[str] = (),
    pool: int | None = None,
    workers: int = 0,
    **settings: Any,
) -> AuditReport:
    """Audit a dataset, show the progress, and write the report's files into a folder.

    questions: of a dataset that is not ours. notes: sentences for the report. Else as `pipeline.audit.audit`.
    """
    from vgbench_gen.pipeline.audit import audit as judge
    from vgbench_gen.pipeline.audit_pool import POOL
    from vgbench_gen.report.audit_page import write_audit
    from vgbench_gen.report.header import find_home

    with progress_bars("step") as progress:
        asked = dataset if questions is None else questions
        report = judge(asked, pool=pool or POOL, workers=count_workers(workers), progress=progress, **settings)
    report.dataset = dataset.resolve().name
    report.notes += notes
    write_audit(report, folder, find_home(dataset))
    return report


def _read_published(path: Path) -> tuple[list[str], Sequence[Question] | None]:
    """(what to tell, questions) of a file of the published schema; no questions where it is something else."""
    if path.suffix.lower() != ".json":
        return [], None
    from vgbench_gen.importers.published import read_published

    questions, bad = read_published(path)
    notes = []
    if bad:
        fields = sorted({row.field for row in bad})
        notes.append(
            f"{len(bad)} of {len(bad) + len(questions)} rows could not be read and are left out "
            f"(fields: {', '.join(fields)}); the first: {bad[0]}"
        )
        for row in bad[:5]:
            print(f"{path}: {row}", file=sys.stderr)
    return notes, questions


def _read_questions(path: Path) -> Sequence[Question]:
    found = _read_published(path)[1]
    if found is not None:
        return found
    from vgbench_gen.quality.questions import read_question
    from vgbench_gen.store.dataset import load

    return [read_question(item) for item in load(path)]
