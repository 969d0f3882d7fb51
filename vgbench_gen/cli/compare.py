"""`vgbench compare`: tables of several models with intervals, floors and paired tests, and a page with plots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli._options import MAX_SEED, ModelNames, choose_dataset
from vgbench_gen.cli._screen import print_json
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.lines import format_command


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "compare", compare, "Score", "vgbench compare build/vgbench")


def compare(
    datasets: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DATASET...]",
            help="Folders with replies, by default what was built last; several are pooled, as SpatialScore is.",
        ),
    ] = None,
    model: ModelNames = None,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            "--benchmark",
            metavar="NAME",
            help="What kind of data DATASET is, by default vgbench; or one name for each.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Where to write; DATASET/scores/report by default.")
    ] = None,
    replies: Annotated[
        Path | None,
        typer.Option("--replies", metavar="FOLDER", help="Of `vgbench eval --replies`, instead of DATASET/replies."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, max=MAX_SEED, help="Of the bootstrap.")] = 0,
    as_json: bool = False,
) -> None:
    """Compare models on the replies they gave, scoring what is not scored yet; nothing is asked.

    Prints the summary, what tools are worth where agents were asked, and the layout of the paper's table, and writes
    index.html with plots, a page of wrong answers per model with the beginnings of its replies, tables.json,
    tables.csv, tables.md and tables.tex. Every number has a 95 % interval over scenes; best and second best are
    marked where the paired difference is significant. Exits 1 if some replies of a model failed, so that its numbers
    are not final, or all of one that --model names.
    """
    from vgbench_gen.cli._screen import find_width, progress_bars
    from vgbench_gen.evaluation.base import DEFAULT_BENCHMARK, benchmarks
    from vgbench_gen.report import scores_page
    from vgbench_gen.report.scores_files import as_json as in_json

    kinds = benchmark or [DEFAULT_BENCHMARK]
    datasets = datasets or [choose_dataset(None, kinds[0])]
    with progress_bars("reply") as progress:
        found = scores_page.compare(
            datasets, model or (), benchmark=kinds, out=out, replies=replies, seed=seed, progress=progress
        )
    report = found.report
    if as_json:
        notes = scores_page.list_warnings(report)
        print_json(in_json(report.comparison) | {"title": report.title, "notes": notes})
    else:
        print("\n".join(found.lines(find_width())))
        print(f"Written: {found.page}, which says what each column is, tables.json, tables.csv, tables.md, tables.tex")
        bare = [home for home in report.homes.values() if not (home / "gallery" / "index.html").is_file()]
        if bare and all(benchmarks[kind].builds_datasets for kind in kinds):
            browse = " and ".join(f"`{format_command('vgbench', 'browse', home)}`" for home in bare)
            print(f"Ids on the pages become links after {browse} and another compare.")
    notes = [line.note for line in report.comparison.summary.rows if "incomplete" in line.note]
    if any(model or "incomplete: all" not in note for note in notes):
        raise typer.Exit(1)
