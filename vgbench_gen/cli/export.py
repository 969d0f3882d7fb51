"""`vgbench export`: a dataset as the files that another program asks and scores it from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli._options import BenchmarkName, DatasetFolder, bar


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("export", epilog="Example: vgbench export build/vgbench --to lmms-eval")(export)


def export(
    dataset: DatasetFolder,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="NAME", help="lmms-eval, vlmevalkit, inspect, spatialscore-json, chat-jsonl or a plug-in's."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="New, or an older export; DATASET-NAME by default.")
    ] = None,
    benchmark: BenchmarkName = "vgbench",
    images: Annotated[
        Path | None, typer.Option("--images", metavar="FOLDER", help="Images, where they lie apart from the questions.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="So many questions, drawn evenly; 0 for all.")
    ] = 0,
    tasks: Annotated[list[str] | None, typer.Option("--tasks", metavar="A,B", help="Only these tasks.")] = None,
    types: Annotated[
        list[str] | None, typer.Option("--types", metavar="A,B", help="Only judgment, multi-choice or open-ended.")
    ] = None,
    splits: Annotated[list[str] | None, typer.Option("--splits", metavar="A,B", help="Only these sources.")] = None,
    prompt_set: Annotated[
        str,
        typer.Option("--prompts", metavar="NAME", help="Words: paper, released, final_line, …; else the benchmark's."),
    ] = "",
    answers: Annotated[
        bool, typer.Option("--answers", help="With the right answers as replies, for training (chat-jsonl).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Write DATASET for another program: questions as `vgbench eval` asks them, images, and our scoring.

    lmms-eval and vlmevalkit get a task that needs nothing of ours installed and scores as `vgbench score` does; replies
    made there come back with `vgbench score DATASET --replies FILE`. spatialscore-json is the schema that SpatialScore
    is published in; chat-jsonl holds OpenAI-style messages.
    """
    from vgbench_gen.cli.eval import _names
    from vgbench_gen.core.config import parse_config
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.evaluation.prompting import AskOptions
    from vgbench_gen.publish.export import export as write

    kind = benchmarks[benchmark]
    given = {
        "prompt_set": prompt_set or kind.prompt_set,
        "tasks": tuple(kind.short_tasks.get(name, name) for name in _names(tasks)),
        "sources": _names(splits),
        "types": _names(types),
        "limit": limit,
    }
    options = parse_config(given, AskOptions, "options")
    source = kind.open(dataset, images)
    folder = source.folder.resolve()
    target = out or folder.with_name(f"{folder.name.removesuffix('.vgbench')}-{to}")
    with bar("question") as progress:
        made = write(source, to, target, options, answers=answers, progress=lambda n, total: progress(to, n, total))
    if as_json:
        told = {"to": to, "path": str(made.path), "questions": made.questions, "images": made.images, "run": made.run}
        print(json.dumps(told, indent=2))
        return
    print(f"{made.questions} questions with {made.images} images: {made.path}")
    print(f"next, in that folder: {made.run}")
