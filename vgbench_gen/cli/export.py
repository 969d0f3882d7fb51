"""`vgbench export`: a dataset as files for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vgbench_gen.cli._flags import Only
from vgbench_gen.cli._options import BenchmarkName, DatasetFolder, ImagesFolder
from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.training.options import AS_BUILT, TrainOptions

_OPTIONS = AskOptions(prompt_set="")  # the benchmark's own prompts where the user names none


@verb("export", "Share", "vgbench export build/vgbench --to lmms-eval")
def export(
    dataset: DatasetFolder,
    to: Annotated[
        str,
        Flag(
            "lmms-eval, vlmevalkit, inspect, inspect-log, spatialscore-json, trajectories, canary; for training "
            "chat-jsonl, ms-swift, llama-factory, unsloth, axolotl, trl, verl, easyr1, verifiers, webdataset, "
            "tool-turns.",
            "NAME",
        ),
    ],
    out: Annotated[Path | None, Flag("New folder, or an export to overwrite; default: DATASET-NAME.", "FOLDER")] = None,
    benchmark: BenchmarkName = "vgbench",
    images: ImagesFolder = None,
    options: Annotated[AskOptions, Only("limit", "tasks", "types", "sources", "prompt_set")] = _OPTIONS,
    answers: Annotated[bool, Flag("Include the correct answers as replies, for training (chat-jsonl).")] = False,
    train: TrainOptions = AS_BUILT,
    oracle: Annotated[bool, Flag("Include traces of agents with oracle tools (trajectories).")] = False,
    as_json: bool = False,
) -> None:
    """Write a dataset for another harness, or for training.

    lmms-eval, vlmevalkit and inspect get a task with questions, images and a copy of our scorer that works without
    vgbench-gen; `vgbench compare DATASET --replies LOG` reads the replies. inspect-log has saved replies, scored.
    spatialscore-json is the schema in which SpatialScore is published.

    Formats for training have the correct answers, and a README with the trainer's command and the settings that keep
    every row; check them with `vgbench lint`. chat-jsonl has answers with --answers only. canary is a small dataset
    that tests whether every picture reaches a model. trajectories has the steps of agents that answered correctly,
    tool-turns the calls of tools that measure what a question is about, with the results of perfect tools.
    """
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.publish.export import export as write
    from vgbench_gen.publish.export import exports

    kind = benchmarks[benchmark]
    tasks = tuple(kind.short_tasks.get(name, name) for name in options.tasks)
    options = options.model_copy(
        update={
            "prompt_set": options.prompt_set
            or ("final_line" if exports[to].trains or train.rationale != "none" else kind.prompt_set),
            "tasks": tasks,
        }
    )
    source = kind.open(dataset, images)
    folder = source.folder.resolve()
    target = out or folder.with_name(f"{folder.name.removesuffix('.vgbench')}-{to}")
    with progress_bar(to, "question") as progress:
        made = write(source, to, target, options, answers=answers, oracle=oracle, progress=progress, train=train)
    if as_json:
        counts = {"questions": made.questions, "images": made.images, "left_out": dict(made.left_out)}
        counts |= {"without_rationale": dict(made.unexplained)}
        print_json({"to": to, "path": str(made.path), **counts, "run": made.run})
        return
    print(f"{made.questions} questions with {made.images} images: {made.path}")
    for reason, count in made.left_out.items():
        print(f"left out: {count} questions: {reason}")
    for reason, count in made.unexplained.items():
        print(f"without a rationale: {count} questions: {reason}")
    print(f"in that folder: {made.run}")
