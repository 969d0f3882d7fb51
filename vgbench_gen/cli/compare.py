"""`vgbench compare`: tables of several models with intervals, floors and paired tests, and a page with plots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli._options import MAX_SEED, BenchmarkName, ModelNames, choose_dataset
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
    benchmark: BenchmarkName = "vgbench",
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
    marked where the paired difference is significant. Exits 1 if replies of a model failed, so that its numbers are
    not final.
    """
    from dataclasses import replace

    from vgbench_gen.cli._screen import find_width, progress_bars
    from vgbench_gen.core.errors import ConfigError
    from vgbench_gen.evaluation.agent_tables import make_agent_tables
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.evaluation.compare import load_board
    from vgbench_gen.evaluation.tables import compare_models
    from vgbench_gen.report.scores_files import as_json as in_json
    from vgbench_gen.report.scores_files import format_text_lines
    from vgbench_gen.report.scores_page import ScoresReport, describe_attempts, list_warnings, write_scores_report

    datasets = datasets or [choose_dataset(None, benchmark)]
    paths = {path.resolve().name: path for path in datasets}
    if len(paths) < len(datasets):
        raise ConfigError("DATASET: found two folders of one name; expected each once, under names of their own.")
    sources = {name: benchmarks[benchmark].open(path) for name, path in paths.items()}
    if replies is not None and len(sources) > 1:
        raise ConfigError(f"--replies {replies}: found several datasets; expected one.")
    folder = out
    if folder is None and replies is not None:
        folder = (replies if replies.is_dir() else replies.parent) / "scores" / "report"
    if folder is None:
        if len(sources) > 1:
            raise ConfigError("--out: found none with several datasets; expected a folder to write to.")
        folder = next(iter(sources.values())).folder / "scores" / "report"
    with progress_bars("reply") as progress:
        loaded = load_board(sources, model or (), progress, replies)
    found = compare_models(loaded.board, seed)
    found = replace(found, agents=make_agent_tables(loaded.board, loaded.saved, sources, seed))
    homes = {name: source.folder for name, source in sources.items()}
    report = ScoresReport(", ".join(sources), loaded.board, found, homes, loaded.notes, loaded.saved, sources)
    page = write_scores_report(report, folder)
    if as_json:
        print_json(in_json(found) | {"title": report.title, "notes": list_warnings(report)})
    else:
        for table in (found.summary, *found.agents[:1], *found.papers[:1]):
            print("\n".join(format_text_lines(table, find_width())) + "\n")
        for name, told in describe_attempts(loaded.board).items():
            print(f"{name}: {told}.")
        for line in list_warnings(report):
            print(line)
        print(f"Written: {page}, tables.json, tables.csv, tables.md, tables.tex")
        bare = [home for home in homes.values() if not (home / "gallery" / "index.html").is_file()]
        if bare and benchmarks[benchmark].builds_datasets:
            browse = " and ".join(f"`{format_command('vgbench', 'browse', home)}`" for home in bare)
            print(f"Ids on the pages become links after {browse} and another compare.")
    if any("incomplete" in line.note for line in found.summary.rows):
        raise typer.Exit(1)
