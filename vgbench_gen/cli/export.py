"""`vgbench export`: a dataset as the files that another program asks and scores it from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli._flags import Only
from vgbench_gen.cli._options import BenchmarkName, DatasetFolder, ImagesFolder
from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.evaluation.options import AskOptions

_OPTIONS = AskOptions(prompt_set="")  # the benchmark's own prompts where the user names none


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "export", export, "Share", "vgbench export build/vgbench --to lmms-eval")


def export(
    dataset: DatasetFolder,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="NAME",
            help="lmms-eval, vlmevalkit, inspect, spatialscore-json, chat-jsonl, trajectories or a plug-in's.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="New, or an older export; DATASET-NAME by default.")
    ] = None,
    benchmark: BenchmarkName = "vgbench",
    images: ImagesFolder = None,
    options: Annotated[AskOptions, Only("limit", "tasks", "types", "sources", "prompt_set")] = _OPTIONS,
    answers: Annotated[
        bool, typer.Option("--answers", help="With the right answers as replies, for training (chat-jsonl).")
    ] = False,
    oracle: Annotated[
        bool, typer.Option("--oracle", help="With traces of agents with oracle tools (trajectories).")
    ] = False,
    as_json: bool = False,
) -> None:
    """Write DATASET for another program: questions as `vgbench eval` asks them, images, and our scoring.

    lmms-eval and vlmevalkit get a task that needs nothing of ours installed and scores as `vgbench score` does; replies
    made there come back with `vgbench score DATASET --replies FILE`. spatialscore-json is the schema that SpatialScore
    is published in; chat-jsonl holds OpenAI-style messages; trajectories holds what agents did for right answers.
    """
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.publish.export import export as write

    kind = benchmarks[benchmark]
    tasks = tuple(kind.short_tasks.get(name, name) for name in options.tasks)
    options = options.model_copy(update={"prompt_set": options.prompt_set or kind.prompt_set, "tasks": tasks})
    source = kind.open(dataset, images)
    folder = source.folder.resolve()
    target = out or folder.with_name(f"{folder.name.removesuffix('.vgbench')}-{to}")
    with progress_bar(to, "question") as progress:
        made = write(source, to, target, options, answers=answers, oracle=oracle, progress=progress)
    if as_json:
        told = {"to": to, "path": str(made.path), "questions": made.questions, "images": made.images, "run": made.run}
        print_json(told)
        return
    print(f"{made.questions} questions with {made.images} images: {made.path}")
    print(f"next, in that folder: {made.run}")
