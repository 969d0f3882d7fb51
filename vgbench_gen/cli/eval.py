"""`vgbench eval`: ask models the questions of a dataset, and let a judge grade what no rule can score."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli import _judging
from vgbench_gen.cli._options import BenchmarkName, choose_dataset
from vgbench_gen.cli._screen import print_json, progress_bars, shorten_start
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.lines import format_command
from vgbench_gen.evaluation.options import AskOptions

if TYPE_CHECKING:
    from vgbench_gen.evaluation.base import Source
    from vgbench_gen.evaluation.questions import Questions
    from vgbench_gen.evaluation.session import Progress, Run
    from vgbench_gen.evaluation.visual_cot_models import Chosen

_OPTIONS = AskOptions(prompt_set="")  # the benchmark's own prompts where the user names none
_SIGNALLED = 128  # shells add it to the number of a signal
_NOTED = 20  # of a benchmark's notes on its files, such as rows left out
_REASON = 300  # characters of a failure's message


@verb("eval", "Score", "vgbench eval build/vgbench --model baseline:constant --model openai:gpt-4o")
def evaluate(
    model: Annotated[
        list[str] | None,
        Flag(
            "Model to run; repeatable: openai:gpt-4o, vllm:URL#NAME, hf:NAME, baseline:random, baseline:constant, "
            "baseline:blind, baseline:solvers, baseline:truth, …",
            "SPEC",
            "Model",
        ),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Argument(metavar="DATASET", help="Folder of a build (default: the most recent), or data of --benchmark."),
    ] = None,
    image_model: Annotated[str, Flag("Image generator for --visual-cot; default: --model.", "SPEC", "Model")] = "",
    judge: Annotated[
        list[str] | None, Flag("Model that grades replies (rover); if repeated, prints agreement.", "SPEC", "Model")
    ] = None,
    data: Annotated[Path | None, Flag("Data of --benchmark; another way to give DATASET.", "PATH", "Questions")] = None,
    benchmark: BenchmarkName = "vgbench",
    generated: Annotated[
        Path | None, Flag("For --judge: grade the images gen_ID.png in this folder.", "FOLDER", "Questions")
    ] = None,
    samples: Annotated[
        Path | None, Flag("For --judge: grade the records of this JSON-lines file.", "FILE", "Questions")
    ] = None,
    metrics: Annotated[
        str, Flag("For --judge: reasoning_process, reasoning_visual, reasoning_alignment, …", "A,B", "Questions")
    ] = "",
    options: AskOptions = _OPTIONS,
    judge_repeats: Annotated[int, Flag("For --judge: gradings by each judge.", "N", "Sampling"), Field(ge=1)] = 1,
    images: Annotated[Path | None, Flag("Folder of the images, if DATASET lacks them.", "FOLDER", "Images")] = None,
    visual_cot: Annotated[bool, Flag("First have a model generate an image, and send it.", "", "Images")] = False,
    generation_prompts: Annotated[
        str, Flag("Prompts for --visual-cot: seed, lmms_unig2u or a file.", "NAME|FILE", "Images")
    ] = "seed",
    *,
    sent: BackendOptions,
    replies: Annotated[
        Path | None,
        Flag(
            "Write replies here instead of DATASET/replies. For a hard set, this turns off reuse of the parent's "
            "replies.",
            "FOLDER",
            "Output",
        ),
    ] = None,
    scores: Annotated[
        Path | None, Flag("File for judge scores; default: scores.jsonl in the replies folder.", "FILE", "Output")
    ] = None,
    show: Annotated[str, Flag("Print the exact requests for one question and exit.", "ID", "Output")] = "",
    estimate: Annotated[bool, Flag("Print the number of requests, tokens and cost, and exit.", "", "Output")] = False,
    as_json: bool = False,
) -> None:
    """Run models on a dataset and save their replies.

    Every reply is saved to DATASET/replies as it arrives, one file per model; baselines count as models. A second run
    sends only requests that failed or were never sent. For a hard set, replies to the same request on the parent
    dataset are reused. Ctrl-C stops sending and waits for pending requests; a second Ctrl-C stops at once. Either way
    the same command resumes.

    --judge has a model grade reasoning and generated images by ROVER's rubric, 1 to 5. A metric for which the judge
    gave no valid score is treated as missing, not as zero, and the next run asks for it again.

    Exits 1 if a request failed or was not sent (because of the budget, for example), if all replies are empty, or if a
    judge's score is missing.
    """
    if dataset is not None and data is not None:
        raise typer.BadParameter("give either DATASET or --data FILE")
    if sum((bool(model), samples is not None, generated is not None)) != 1:
        raise typer.BadParameter("expected either --model SPEC or, for a judge, --generated FOLDER or --samples FILE")

    def grade(place: Path) -> dict[str, Any]:
        return _judging.grade(benchmark, place, dataset or data, judge or (), metrics, judge_repeats, scores, sent)

    if samples is not None or generated is not None:
        _end_judging([grade(samples or generated or Path())], as_json)
        return
    if judge:
        _judging.find_rubric(benchmark)
        if scores is not None and len(model or ()) > 1:
            raise typer.BadParameter("--scores: found it with several models; expected one")
    path = choose_dataset(dataset or data, benchmark)
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.evaluation.options import complete_options
    from vgbench_gen.evaluation.questions import Questions
    from vgbench_gen.evaluation.replies import FOLDER
    from vgbench_gen.evaluation.visual_cot_models import expand_models

    chosen = expand_models(model or [], image_model)
    kind = benchmarks[benchmark]
    options = complete_options(options, kind, visual_cot or chosen.visual_cot, generation_prompts)
    source = kind.open(path, images)
    notes = list(getattr(source, "notes", ()))
    for note in notes[:_NOTED] + ([f"and {len(notes) - _NOTED} more"] if len(notes) > _NOTED else []):
        print(f"vgbench: note: {note}", file=sys.stderr)
    if show:
        _print_requests(Questions(source, options), chosen, show, as_json)
        return
    if estimate:
        _print_estimates(Questions(source, options), chosen.models, sent, replies, as_json)
        return
    runs, signal = _ask_models(source, chosen, options, sent, replies)
    if not as_json:
        print("\n".join(_list_runs(runs, path, benchmark, replies, judged=bool(judge))))
    if signal:
        where = replies or source.folder / FOLDER
        print(f"vgbench: interrupted; replies so far are in {where}; the same command resumes.", file=sys.stderr)
    records = [_make_record(run) for run in runs]
    if judge and not signal:
        _end_judging([grade(run.path.with_suffix("")) for run in runs], as_json, records)
    elif as_json:
        print_json(records)
    if signal:
        raise typer.Exit(_SIGNALLED + signal)
    if not all(run.complete for run in runs) or any(run.silent for run in runs):
        raise typer.Exit(1)


def _end_judging(graded: list[dict[str, Any]], as_json: bool, runs: list[dict[str, Any]] | None = None) -> None:
    """Print what judges found, as JSON beside the runs of the models; exit 1 where a score is missing."""
    if as_json:
        print_json(graded[0] if runs is None else {"runs": runs, "graded": graded})
    else:
        print("\n".join(line for one in graded for line in _judging.list_grades(one)))
    if not all(one["complete"] for one in graded):
        raise typer.Exit(1)


def _ask_models(
    source: Source, chosen: Chosen, options: AskOptions, sent: BackendOptions, replies: Path | None
) -> tuple[list[Run], int]:
    """What became of each model, and the number of the signal that interrupted them, 0 where none did."""
    from vgbench_gen.evaluation.runner import InterruptedRunError, evaluate_all

    with _open_bars() as progress:
        try:
            return evaluate_all(source, chosen.models, options, sent, replies, progress, chosen.image_model), 0
        except InterruptedRunError as ended:
            return list(ended.runs), ended.signal


def _print_requests(questions: Questions, chosen: Chosen, item_id: str, as_json: bool) -> None:
    """Print the requests of one question as they would be sent to the first model.

    Raises:
        DatasetError: no such question, or its images are missing.
    """
    from vgbench_gen.evaluation.estimate import read_image_size_px
    from vgbench_gen.evaluation.runner import require_images
    from vgbench_gen.evaluation.visual_cot import make_both_stages

    row = questions.by_id(item_id)
    require_images(questions.source, questions.options, [row])
    settings, drawn_by = questions.options.settings(chosen.models[0]), questions.options.visual_cot
    shown = []
    for _, asked in questions.of(row, settings):
        pictures = []
        for image in asked.images:
            data = questions.source.image(image.item, image.k)
            size = len(data) if isinstance(data, bytes) else data.stat().st_size
            pictures.append({"name": image.name, "tag": image.tag, "size_px": read_image_size_px(data), "bytes": size})
        text = make_both_stages(asked, drawn_by, chosen.image_model or chosen.models[0]) if drawn_by else asked.text
        record = {"key": asked.key._asdict(), "request_digest": asked.digest, "images": pictures, "text": text}
        record |= {"settings": asked.settings.model_dump(mode="json"), "answer": asked.item.answer}
        shown.append(record | {"problem": asked.problem})
    if as_json:
        print_json(shown)
        return
    for one in shown:
        print("\n".join(_format_shown_lines(one)))


def _format_shown_lines(one: dict[str, Any]) -> Iterator[str]:
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
    yield f"--- correct answer, not sent: {one['answer']}"


def _print_estimates(
    questions: Questions, models: list[str], sent: BackendOptions, replies: Path | None, as_json: bool
) -> None:
    """Print what asking would take; no key is needed.

    Raises:
        DatasetError: the dataset or replies cannot be read, or images are missing.
    """
    import asyncio

    from vgbench_gen.backends.spec import open_backend
    from vgbench_gen.evaluation.baselines import PREFIX
    from vgbench_gen.evaluation.estimate import Estimate, estimate

    found = []
    keyless = sent.model_copy(update={"keyless": True})
    for spec in models:
        if spec.startswith(PREFIX):
            found.append(Estimate(spec, questions.total, 0, 0, 0, 0, (0.0, 0.0)))
            continue
        backend = open_backend(spec, keyless)
        try:
            found.append(estimate(backend.spec, backend, questions, sent, replies))
        finally:
            asyncio.run(backend.close())
    if as_json:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        if one.spec.startswith(PREFIX):
            print(f"{one.spec}: {one.requests} answers that cost nothing; a baseline sends no requests")
            continue
        cost = "no price known" if one.usd is None else f"USD {one.usd[0]:.2f} to {one.usd[1]:.2f}"
        print(
            f"{one.spec}: {one.requests} requests with {one.images} images ({one.kept} answered before); about "
            f"{one.prompt_tokens} tokens sent and at most {one.most_completion} received; {cost}"
            + (f"; and {one.drawings} generated images, not counted in these" if one.drawings else "")
        )


@contextmanager
def _open_bars() -> Iterator[Progress]:
    """What shows how far every model is, and says once that an interrupted run waits."""
    from vgbench_gen.evaluation.interrupts import INTERRUPTED

    waiting = False
    with progress_bars("question") as show:

        def progress(run: Run) -> None:
            nonlocal waiting
            if run.stopped == INTERRUPTED and not waiting:
                waiting = True
                print("vgbench: waiting for pending requests; press Ctrl-C again to stop at once", file=sys.stderr)
            cost = "" if run.usd is None else f"USD {run.usd:.4f}"
            counts = {"failed": run.failed.total(), **run.short}
            note = ", ".join([cost] * bool(cost) + [f"{count} {kind}" for kind, count in counts.items() if count])
            # What was answered before does not count towards the rate.
            show(shorten_start(run.spec), run.done, run.total, kept=run.kept, note=note)

        yield progress


def _make_record(run: Run) -> dict[str, Any]:
    """A run as JSON."""
    counts = {"failed": dict(run.failed), "short": dict(run.short), "answered": run.answered}
    return asdict(run) | {"path": str(run.path), **counts, "complete": run.complete}


def _list_runs(runs: Sequence[Run], dataset: Path, benchmark: str, replies: Path | None, judged: bool) -> Iterator[str]:
    """What became of every model, and what to do next."""
    for run in runs:
        rate = run.asked / run.seconds if run.seconds > 0 else 0.0
        cost = "cost unknown" if run.usd is None else f"USD {run.usd:.4f}"
        yield (
            f"{run.spec}: {run.total} requests, {run.kept} answered before, {run.asked} now in {run.seconds:.1f} s "
            f"({rate:.1f} a second), {run.tokens} tokens, {cost}; {run.path}"
        )
        if run.taken:
            yield f"  {run.taken} replies to the same request on the parent dataset were reused"
        if lacking := run.failed + run.short:
            counts = ", ".join(f"{kind} {count}" for kind, count in sorted(lacking.items()))
            again = "; the next run asks again what failed" if run.failed else ""
            yield f"  {run.answered or 'none'} of {run.asked} answered; {counts}{again}"
            for kind in sorted(lacking):
                yield f"    the first {kind}: {' '.join(run.reasons[kind].split())[:_REASON]}"
        if run.without:
            yield (
                f"  answered without the image that was to be drawn first: {run.without}; the next run asks again for "
                f"what failed, {run.path.with_suffix('')}/intermediate says why"
            )
        if run.stopped and run.done < run.total:
            yield f"  stopped with {run.total - run.done} not asked: {run.stopped}"
    if all(run.silent and not run.kept for run in runs):
        yield from ["nothing was answered; fix that and run the same command again"] * bool(runs)
        return
    if judged:
        return
    from vgbench_gen.evaluation.base import DEFAULT_BENCHMARK, benchmarks

    if step := benchmarks[benchmark].next_step(dataset, runs[0].path.with_suffix("")):
        yield f"next: {step}"
        return
    options = [] if benchmark == DEFAULT_BENCHMARK else ["--benchmark", benchmark]
    options += [] if replies is None else ["--replies", str(replies)]
    yield f"next: {format_command('vgbench', 'compare', dataset, *options)}"
