"""`vgbench audit`: shortcuts, leaks, repeats and solvers, each beside its limit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._options import Workers, count_workers, find_current_dataset
from vgbench_gen.cli._screen import find_width, print_json, progress_bars
from vgbench_gen.cli._verbs import add_verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vgbench_gen.pipeline.audit import AuditReport
    from vgbench_gen.quality.questions import Question


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "audit", audit, "Look", "vgbench audit build/vgbench --workers 2 --only text,rule")


def audit(
    dataset: Annotated[
        Path,
        typer.Argument(
            metavar="[DATASET]",
            default_factory=find_current_dataset,
            show_default=False,
            help="A folder that `vgbench build` made (by default the last one), parquet files, or a JSON list of the "
            "published schema.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where to write; DATASET/audit, or NAME-audit beside a file."),
    ] = None,
    only: Annotated[str, typer.Option("--only", metavar="A,B", help="Kinds of figures instead of all.")] = "",
    against: Annotated[
        list[Path] | None,
        typer.Option("--against", metavar="OTHER", help="A dataset that must share no question; may be repeated."),
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option("--pool", metavar="N", min=1, help="Most questions of a task and form to judge by (1200)."),
    ] = None,
    workers: Workers = 0,
    everything: Annotated[bool, typer.Option("--all", help="Print every figure, not those that fell alone.")] = False,
    as_json: bool = False,
) -> None:
    """Measure what a dataset gives away without looking, and whether looking solves it.

    At most eight figures per task and question type, each beside its limit: text-only learners, rules, solvers on right
    and on wrong images, right answers, repeats, wording, scenes. Prints a line for each task and question type, the
    worst first, and what fell; writes index.html, audit.json, audit.csv and bias.csv. Exits 1 if a figure fell.
    """
    from vgbench_gen.report.audit_table import as_json as in_json
    from vgbench_gen.report.audit_table import format_lines

    notes, questions = _read_published(dataset)
    folder = out or (dataset / "audit" if dataset.is_dir() else dataset.with_name(f"{dataset.stem}-audit"))
    report = audit_into(
        folder,
        dataset,
        questions,
        notes=notes,
        only=[name.strip() for name in only.split(",") if name.strip()],
        against=[_read_questions(path) for path in against or []],
        pool=pool,
        workers=workers,
    )
    if as_json:
        print_json(in_json(report) | {"cpu_seconds": {k: round(v, 2) for k, v in report.seconds.items()}})
    else:
        page = f"{folder}/index.html"
        print("\n".join(format_lines(report, page, find_width(), everything)))
        spent = ", ".join(f"{part} {seconds:.0f}" for part, seconds in report.seconds.items())
        print(f"CPU seconds: {spent}. Written: {page}, audit.json, audit.csv, bias.csv")
    if report.fell:
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

    Args:
        folder: where to write.
        dataset: its folder or file, which names it.
        questions: what stands in it, where it is no dataset of ours.
        notes: what the report should say besides.
        pool: most questions of a task and form to judge by; None for the usual number.
        workers: processes, 0 for all cores.
        settings: more of `pipeline.audit.audit`.

    Raises:
        ConfigError, DatasetError: as `pipeline.audit.audit`.
    """
    from vgbench_gen.pipeline.audit import audit as judge
    from vgbench_gen.pipeline.audit_pool import POOL
    from vgbench_gen.report.audit_page import write_audit
    from vgbench_gen.report.header import find_home

    with progress_bars("step") as progress:
        report = judge(
            dataset if questions is None else questions,
            pool=pool or POOL,
            workers=count_workers(workers),
            progress=progress,
            **settings,
        )
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
