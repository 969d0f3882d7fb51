"""`vgbench eval`: ask models the questions of a dataset; `vgbench score` reads what they said."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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

if TYPE_CHECKING:
    from vgbench_gen.backends.spec import BackendOptions
    from vgbench_gen.evaluation.questions import Questions
    from vgbench_gen.evaluation.runner import Progress, Run


_VISUAL_COT = "_visual_cot"  # how names of tasks end that are asked in two stages
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
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of draws and of learners.")] = 0,
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
    Baselines are models too. Exits 1 if a request failed or was not sent, for want of budget for instance.
    """
    if (dataset is None) == (data is None):
        raise typer.BadParameter("give either DATASET or --data FILE")
    path = dataset or data
    assert path is not None
    from vgbench_gen.core.config import parse_config
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.evaluation.prompting import AskOptions
    from vgbench_gen.evaluation.questions import Questions
    from vgbench_gen.evaluation.runner import evaluate_all
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
        _show(Questions(source, options), model, show, as_json, image_model or model[0])
    elif estimate:
        _estimate(Questions(source, options), model, sent, replies, as_json)
    else:
        with _bars() as progress:
            runs = evaluate_all(source, model, options, sent, replies, progress, image_model)
        told = json.dumps([_record(run) for run in runs], indent=2)
        print(told if as_json else "\n".join(_lines(runs, path, benchmark)))
        if not all(run.complete for run in runs):
            raise typer.Exit(1)


def _names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in given or [] for name in text.split(",") if name.strip())


def _show(questions: Questions, models: list[str], item_id: str, as_json: bool, image_model: str) -> None:
    from vgbench_gen.evaluation.estimate import image_size_px
    from vgbench_gen.evaluation.visual_cot import both_stages

    settings, drawn_by = questions.options.settings(models[0]), questions.options.visual_cot
    shown = []
    for _, asked in questions.of(questions.by_id(item_id), settings):
        pictures = []
        for image in asked.images:
            data = questions.source.image(image.item, image.k)
            size = len(data) if isinstance(data, bytes) else data.stat().st_size
            pictures.append({"name": image.name, "tag": image.tag, "size_px": image_size_px(data), "bytes": size})
        shown.append(
            {
                "key": asked.key._asdict(),
                "request_digest": asked.digest,
                "settings": asked.settings.model_dump(mode="json"),
                "images": pictures,
                "text": both_stages(asked, drawn_by, image_model) if drawn_by else asked.text,
                "answer": asked.item.answer,
                "problem": asked.problem,
            }
        )
    if as_json:
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    for one in shown:
        print("\n".join(_shown_lines(one)))


def _shown_lines(one: dict[str, Any]) -> Iterator[str]:
    settings = {name: value for name, value in one["settings"].items() if value and name != "system"}
    yield f"=== {' '.join(f'{name}={value}' for name, value in one['key'].items() if value != '')}"
    yield f"settings {json.dumps(settings | {'temperature': one['settings']['temperature']})}"
    if one["problem"]:
        yield f"not asked: {one['problem']}"
    if one["settings"]["system"]:
        yield f"--- system\n{one['settings']['system']}"
    yield "--- user"
    for image in one["images"]:
        if image["tag"]:
            yield image["tag"]
        yield f"[{image['name']}: {image['size_px'][0]} x {image['size_px'][1]} px, {image['bytes']} bytes]"
    yield one["text"]
    yield f"--- right answer, not sent: {one['answer']}"


def _estimate(
    questions: Questions, models: list[str], sent: BackendOptions, replies: Path | None, as_json: bool
) -> None:
    import asyncio

    from vgbench_gen.backends.spec import open_backend
    from vgbench_gen.evaluation.baselines import PREFIX
    from vgbench_gen.evaluation.estimate import estimate

    found = []
    for spec in models:
        if spec.startswith(PREFIX):
            continue  # asks nobody
        backend = open_backend(spec, sent)
        try:
            found.append(estimate(backend.spec, backend, questions, sent, replies))
        finally:
            asyncio.run(backend.close())
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    for one in found:
        cost = "no price known" if one.usd is None else f"USD {one.usd[0]:.2f} to {one.usd[1]:.2f}"
        print(
            f"{one.spec}: {one.requests} requests with {one.images} images ({one.kept} answered before); about "
            f"{one.prompt_tokens} tokens sent and at most {one.most_completion} received; {cost}"
            + (f"; and {one.drawings} drawings, not counted in these" if one.drawings else "")
        )


@contextmanager
def _bars() -> Iterator[Progress]:
    from tqdm import tqdm

    bars: dict[str, Any] = {}

    def progress(run: Run) -> None:
        bar = bars.get(run.spec)
        if bar is None:
            bar = bars[run.spec] = tqdm(
                desc=run.spec[-40:], unit="question", total=run.total, position=len(bars), disable=None, leave=True
            )
        # What was answered before does not count towards the rate.
        bar.initial = run.kept
        cost = "" if run.usd is None else f"USD {run.usd:.4f}"
        failed = sum(run.failed.values())
        bar.set_postfix_str(", ".join(part for part in (cost, f"{failed} failed" if failed else "") if part), False)
        bar.update(run.done - bar.n)

    try:
        yield progress
    finally:
        for bar in bars.values():
            bar.close()


def _record(run: Run) -> dict[str, Any]:
    return asdict(run) | {"path": str(run.path), "failed": dict(run.failed), "complete": run.complete}


def _lines(runs: list[Run], dataset: Path, benchmark: str) -> Iterator[str]:
    for run in runs:
        rate = run.asked / run.seconds if run.seconds > 0 else 0.0
        cost = "cost unknown" if run.usd is None else f"USD {run.usd:.4f}"
        yield (
            f"{run.spec}: {run.total} requests, {run.kept} answered before, {run.asked} now in {run.seconds:.1f} s "
            f"({rate:.1f} a second), {run.tokens} tokens, {cost}; {run.path}"
        )
        if run.failed:
            told = ", ".join(f"{kind} {count}" for kind, count in sorted(run.failed.items()))
            yield f"  failed, and asked again by the next run: {told}"
        if run.without:
            yield (
                f"  answered without the image that was to be drawn first: {run.without}; the next run asks again for "
                f"what failed, {run.path.with_suffix('')}/intermediate says why"
            )
        if run.stopped:
            yield f"  stopped with {run.total - run.done} not asked: {run.stopped}"
    if benchmark == "rover":  # a judge grades what was made
        made = runs[0].path.with_suffix("")
        yield f"next: vgbench judge rover --data {dataset} --generated {made} --out FILE"
        return
    yield f"next: vgbench score {dataset}" + ("" if benchmark == "vgbench" else f" --benchmark {benchmark}")
