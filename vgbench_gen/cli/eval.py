"""`vgbench eval`: ask models the questions of a dataset; `vgbench score` reads what they said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli import _eval_lines
from vgbench_gen.cli._options import BenchmarkName, ImagesFolder, choose_dataset
from vgbench_gen.cli._screen import print_json
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.evaluation.options import AskOptions

if TYPE_CHECKING:
    from vgbench_gen.evaluation.base import Source
    from vgbench_gen.evaluation.session import Run
    from vgbench_gen.evaluation.visual_cot_models import Chosen

_OPTIONS = AskOptions(prompt_set="")  # the benchmark's own prompts where the user names none
_SIGNALLED = 128  # what shells add to the number of a signal
_NOTED = 20  # what a benchmark says of its files, such as rows left out


def register(app: typer.Typer) -> None:
    """Add the verb."""
    example = "vgbench eval build/vgbench --model baseline:constant --model openai:gpt-4o"
    add_verb(app, "eval", evaluate, "Score", example)


def evaluate(
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            metavar="SPEC",
            help="Who is asked; repeat it for several: openai:gpt-4o, vllm:URL#NAME, hf:NAME, baseline:random, "
            "baseline:constant, baseline:blind, baseline:solvers, baseline:truth, …",
        ),
    ],
    dataset: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATASET",
            help="A folder that `vgbench build` made, by default the last one, or what --benchmark says.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="The same as DATASET, for benchmarks in one file.")
    ] = None,
    benchmark: BenchmarkName = "vgbench",
    images: ImagesFolder = None,
    options: AskOptions = _OPTIONS,
    visual_cot: Annotated[
        bool,
        typer.Option("--visual-cot", help="Have an image drawn first, by prompts that name no answer, and show it."),
    ] = False,
    generation_prompts: Annotated[
        str, typer.Option("--generation-prompts", metavar="NAME|FILE", help="What is drawn: seed, lmms_unig2u, a file.")
    ] = "seed",
    image_model: Annotated[
        str, typer.Option("--image-model", metavar="SPEC", help="Who draws; each --model itself by default.")
    ] = "",
    replies: Annotated[
        Path | None,
        typer.Option("--replies", metavar="FOLDER", help="Instead of DATASET/replies; of a hard set, asks all anew."),
    ] = None,
    show: Annotated[
        str, typer.Option("--show", metavar="ID", help="Print the exact requests of one question; ask nothing.")
    ] = "",
    estimate: Annotated[bool, typer.Option("--estimate", help="Print requests, tokens and cost; ask nothing.")] = False,
    *,
    sent: BackendOptions,
    as_json: bool = False,
) -> None:
    """Ask models the questions of a dataset and keep what they say in DATASET/replies, one file per model.

    Every reply is on disk as it comes. Running again asks only what has no reply to just this request, and what failed;
    of a hard set, also only what its source was not asked alike.
    Baselines are models too. Exits 1 if a request failed or was not sent, for want of budget for instance, or if all
    replies are empty. Ctrl-C sends nothing more and waits for what is under way, a second one ends at once; the same
    command then goes on.
    """
    if dataset is not None and data is not None:
        raise typer.BadParameter("give either DATASET or --data FILE")
    path = choose_dataset(dataset or data, benchmark)
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.evaluation.options import complete_options
    from vgbench_gen.evaluation.questions import Questions
    from vgbench_gen.evaluation.replies import FOLDER
    from vgbench_gen.evaluation.visual_cot_models import expand_models

    chosen = expand_models(model, image_model)
    kind = benchmarks[benchmark]
    options = complete_options(options, kind, visual_cot or chosen.visual_cot, generation_prompts)
    source = kind.open(path, images)
    _print_notes(source)
    if show:
        questions = Questions(source, options)
        _eval_lines.print_requests(questions, chosen.models, show, as_json, chosen.image_model or chosen.models[0])
    elif estimate:
        _eval_lines.print_estimates(Questions(source, options), chosen.models, sent, replies, as_json)
    else:
        runs, signal = _ask_models(source, chosen, options, sent, replies)
        if as_json:
            print_json([_eval_lines.make_record(run) for run in runs])
        else:
            print("\n".join(_eval_lines.list_runs(runs, path, benchmark, replies)))
        if signal:
            where = replies or source.folder / FOLDER
            print(f"vgbench: interrupted; replies so far are in {where}; the same command goes on.", file=sys.stderr)
            raise typer.Exit(_SIGNALLED + signal)
        if not all(run.complete for run in runs) or any(run.silent for run in runs):
            raise typer.Exit(1)


def _print_notes(source: Source) -> None:
    notes = list(getattr(source, "notes", ()))
    for note in notes[:_NOTED] + ([f"and {len(notes) - _NOTED} more"] if len(notes) > _NOTED else []):
        print(f"vgbench: note: {note}", file=sys.stderr)


def _ask_models(
    source: Source, chosen: Chosen, options: AskOptions, sent: BackendOptions, replies: Path | None
) -> tuple[list[Run], int]:
    """What became of each model, and the number of the signal that interrupted them, 0 where none did."""
    from vgbench_gen.evaluation.runner import InterruptedRunError, evaluate_all

    with _eval_lines.open_bars() as progress:
        try:
            return evaluate_all(source, chosen.models, options, sent, replies, progress, chosen.image_model), 0
        except InterruptedRunError as ended:
            return list(ended.runs), ended.signal
