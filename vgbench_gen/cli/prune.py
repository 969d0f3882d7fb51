"""`vgbench prune`: a smaller dataset without the questions that the text gives away most."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli._options import DatasetFolder, Workers, count_workers
from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import add_verb

_WARNING = (
    "Pruning hides a faulty sampler: what goes is the evidence of the fault, and what stays was made the same way. "
    "Mend the sampler where `vgbench audit` is red; prune only what is green."
)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "prune", prune, "Vary", "vgbench prune build/vgbench --out build/pruned --share 0.1 --dry-run")


def prune(
    dataset: DatasetFolder,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Folder of the new dataset, new or empty.")
    ] = None,
    share: Annotated[float, typer.Option("--share", metavar="X", help="Most of the questions that may go.")] = 0.1,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, help="Score anew this often while removing.")
    ] = 5,
    workers: Workers = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go and write nothing.")] = False,
    as_json: bool = False,
) -> None:
    """Leave out questions that a text-only classifier answers best (IBP), whole groups, twins and pairs together.

    Never part of a build. Pruning hides a faulty sampler: mend the sampler where the audit is red, and prune only
    what is green. The new dataset's manifest says what was left out. Audit it again: letters and ranks may have moved.
    """
    from vgbench_gen.core.errors import ConfigError
    from vgbench_gen.pipeline import prune as pipeline

    if out is None and not dry_run:
        raise ConfigError("--out: found none; expected a new folder for the pruned dataset, or --dry-run.")
    print(f"vgbench: warning: {_WARNING}", file=sys.stderr)
    with progress_bar("scoring", "cell") as progress:
        report = pipeline.prune(
            dataset, None if dry_run else out, share, rounds=rounds, workers=count_workers(workers), progress=progress
        )
    if as_json:
        print_json({"kept": report.kept, "removed": [*map(asdict, report.removed)], "mean_bias": report.means})
        return
    for (task, form), count in sorted(Counter((p.task, p.form) for p in report.removed).items()):
        print(f"{task} {form}: {count}")
    means = ", ".join(f"{mean:.3f}" for mean in report.means)
    print(f"mean share of the right answer before each round: {means}")
    verb = "would go" if dry_run else "left out"
    print(f"{len(report.removed)} questions {verb}, {report.kept} stay{'' if dry_run else f' in {out}'}")
