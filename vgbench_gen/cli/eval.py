"""`vgbench eval`: ask models the questions of a dataset; `vgbench score` reads what they said."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli import _eval_lines
from vgbench_gen.cli._models import (
    DEFAULT_CONCURRENCY,
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT_S,
    BaseUrl,
    BatchSize,
    BudgetTokens,
    BudgetUsd,
    CacheFile,
    Concurrency,
    Device,
    Dtype,
    KeyFile,
    PricesFile,
    RequestsPerMinute,
    Retries,
    TimeoutSeconds,
    TokensPerMinute,
    TrustRemoteCode,
    backend_options,
    local_options,
)
from vgbench_gen.cli._options import MAX_SEED

_VISUAL_COT = "_visual_cot"  # how names of tasks end that are asked in two stages
_SIGNALLED = 128  # what shells add to the number of a signal
_NOTED = 20  # what a benchmark says of its files, such as rows left out


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("eval", epilog="Example: vgbench eval build/vgbench --model baseline:constant --model openai:gpt-4o")(
        evaluate
    )


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
        typer.Argument(metavar="DATASET", help="A folder that `vgbench build` made, or what --benchmark says."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="The same as DATASET, for benchmarks in one file.")
    ] = None,
    benchmark: Annotated[str, typer.Option("--benchmark", metavar="NAME", help="What DATASET is.")] = "vgbench",
    images: Annotated[
        Path | None, typer.Option("--images", metavar="FOLDER", help="Images, where they lie apart from the questions.")
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "--num-samples", metavar="N", min=0, help="So many questions, drawn evenly; 0 for all."
        ),
    ] = 0,
    tasks: Annotated[list[str] | None, typer.Option("--tasks", metavar="A,B", help="Only these tasks.")] = None,
    types: Annotated[
        list[str] | None, typer.Option("--types", metavar="A,B", help="Only judgment, multi-choice or open-ended.")
    ] = None,
    splits: Annotated[
        list[str] | None,
        typer.Option("--splits", metavar="A,B", help="Only these sources: scannet, …; synthetic, natural of SalBench."),
    ] = None,
    shots: Annotated[
        int, typer.Option("--shots", metavar="N", min=0, help="Send so many other questions with answers before each.")
    ] = 0,
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
    prompt_set: Annotated[
        str,
        typer.Option("--prompts", metavar="NAME", help="Words: paper, released, final_line, …; else the benchmark's."),
    ] = "",
    epochs: Annotated[int, typer.Option("--epochs", metavar="N", min=1, help="Ask everything so often.")] = 1,
    circular: Annotated[
        bool, typer.Option("--circular", help="Ask in every order of the options by rotation.")
    ] = False,
    blind: Annotated[bool, typer.Option("--blind", help="Leave the images out.")] = False,
    wrong_images: Annotated[bool, typer.Option("--wrong-images", help="Show those of another question.")] = False,
    first_image: Annotated[
        bool, typer.Option("--first-image", help="Send the first image alone, to models that take one.")
    ] = False,
    video_frames: Annotated[
        int, typer.Option("--video-frames", metavar="N", min=0, help="So many of a video, evenly spread; 0 for all.")
    ] = 8,
    max_images: Annotated[
        int, typer.Option("--max-images", metavar="N", min=0, help="A question with more fails; 0 for no limit.")
    ] = 0,
    long_side: Annotated[
        int, typer.Option("--long-side", metavar="PX", min=0, help="Make larger images smaller; 0 for never.")
    ] = 0,
    max_tokens: Annotated[
        int,
        typer.Option(
            "--max-tokens",
            metavar="N",
            min=0,
            help="Of a reply; 0 for the benchmark's rule, 512 or 2048 for models that reason where it has none.",
        ),
    ] = 0,
    reasoning: Annotated[
        bool | None, typer.Option("--reasoning/--no-reasoning", help="Whether the models reason; else by their names.")
    ] = None,
    reasoning_effort: Annotated[
        str, typer.Option("--reasoning-effort", metavar="WORD", help="Sent to models that take one: low, high, …")
    ] = "",
    temperature: Annotated[
        float, typer.Option("--temperature", metavar="T", help="Below 0: send none, which some models demand.")
    ] = 0.0,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, max=MAX_SEED, help="Of draws and of learners.")
    ] = 0,
    replies: Annotated[
        Path | None, typer.Option("--replies", metavar="FOLDER", help="Instead of DATASET/replies.")
    ] = None,
    show: Annotated[
        str, typer.Option("--show", metavar="ID", help="Print the exact requests of one question; ask nothing.")
    ] = "",
    estimate: Annotated[bool, typer.Option("--estimate", help="Print requests, tokens and cost; ask nothing.")] = False,
    concurrency: Concurrency = DEFAULT_CONCURRENCY,
    rpm: RequestsPerMinute = 0,
    tpm: TokensPerMinute = 0,
    budget: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    cache: CacheFile = None,
    timeout: TimeoutSeconds = DEFAULT_TIMEOUT_S,
    retries: Retries = DEFAULT_RETRIES,
    key_file: KeyFile = None,
    base_url: BaseUrl = "",
    prices: PricesFile = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    batch_size: BatchSize = 8,
    trust_remote_code: TrustRemoteCode = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Ask models the questions of a dataset and keep what they say in DATASET/replies, one file per model.

    Every reply is on disk as it comes. Running again asks only what has no reply to just this request, and what failed.
    Baselines are models too. Exits 1 if a request failed or was not sent, for want of budget for instance. Ctrl-C sends
    nothing more and waits for what is under way, a second one ends at once; the same command then goes on.
    """
    if (dataset is None) == (data is None):
        raise typer.BadParameter("give either DATASET or --data FILE")
    path = dataset or data
    assert path is not None
    from vgbench_gen.core.config import parse_config
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.evaluation.prompting import AskOptions
    from vgbench_gen.evaluation.questions import Questions
    from vgbench_gen.evaluation.replies import FOLDER
    from vgbench_gen.evaluation.runner import InterruptedRunError, evaluate_all
    from vgbench_gen.evaluation.visual_cot_models import expanded

    kind = benchmarks[benchmark]
    wanted = _names(tasks)
    two_stages = sum(name.endswith(_VISUAL_COT) for name in wanted)
    if 0 < two_stages < len(wanted):
        raise typer.BadParameter(f"--tasks: found {two_stages} of {len(wanted)} with {_VISUAL_COT}; ask them apart")
    chosen = expanded(model, image_model)
    model, image_model = chosen.models, chosen.image_model
    visual_cot = visual_cot or two_stages > 0 or chosen.visual_cot
    given = {
        "prompt_set": kind.short_prompts.get(prompt_set, prompt_set) or kind.prompt_set,
        "temperature": None if temperature < 0 else temperature,
        "max_tokens": max_tokens or kind.max_tokens,
        "reasoning": reasoning,
        "reasoning_effort": reasoning_effort,
        "epochs": epochs,
        "circular": circular,
        "blind": blind,
        "wrong_images": wrong_images,
        "first_image": first_image,
        "video_frames": video_frames,
        "max_images": max_images,
        "long_side_px": long_side,
        "seed": seed,
        "shots": shots,
        "visual_cot": generation_prompts if visual_cot else "",
        "tasks": tuple(kind.short_tasks.get(plain, plain) for plain in (n.removesuffix(_VISUAL_COT) for n in wanted)),
        "sources": _names(splits),
        "types": _names(types),
        "limit": limit,
    }
    options = parse_config(given, AskOptions, "options")
    sent = backend_options(
        concurrency=concurrency,
        rpm=rpm,
        tpm=tpm,
        budget=budget,
        budget_tokens=budget_tokens,
        cache=cache,
        timeout=timeout,
        retries=retries,
        key_file=key_file,
        base_url=base_url,
        prices=prices,
        local=local_options(device, dtype, batch_size, trust_remote_code),
    )
    source = kind.open(path, images)
    notes = list(getattr(source, "notes", ()))
    for note in notes[:_NOTED] + ([f"and {len(notes) - _NOTED} more"] if len(notes) > _NOTED else []):
        print(f"vgbench: note: {note}", file=sys.stderr)
    if show:
        _eval_lines.show(Questions(source, options), model, show, as_json, image_model or model[0])
    elif estimate:
        _eval_lines.estimates(Questions(source, options), model, sent, replies, as_json)
    else:
        signal = 0
        with _eval_lines.bars() as progress:
            try:
                runs = evaluate_all(source, model, options, sent, replies, progress, image_model)
            except InterruptedRunError as ended:
                runs, signal = list(ended.runs), ended.signal
        told = json.dumps([_eval_lines.record(run) for run in runs], indent=2)
        print(told if as_json else "\n".join(_eval_lines.lines(runs, path, benchmark, replies)))
        if signal:
            where = replies or source.folder / FOLDER
            print(f"vgbench: interrupted; replies so far are in {where}; the same command goes on.", file=sys.stderr)
            raise typer.Exit(_SIGNALLED + signal)
        if not all(run.complete for run in runs):
            raise typer.Exit(1)


def _names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in given or [] for name in text.split(",") if name.strip())
