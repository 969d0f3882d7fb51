"""What `vgbench eval` prints: requests, estimates, progress, and what became of each model."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgbench_gen.cli._screen import print_json, progress_bars, shorten_start
from vgbench_gen.core.lines import format_command

if TYPE_CHECKING:
    from vgbench_gen.backends.spec import BackendOptions
    from vgbench_gen.evaluation.questions import Questions
    from vgbench_gen.evaluation.session import Progress, Run

_REASON = 300  # characters of a failure's message


def print_requests(questions: Questions, models: list[str], item_id: str, as_json: bool, image_model: str) -> None:
    """Print the requests of one question as they would be sent to the first model.

    Raises:
        DatasetError: no such question, or its images are missing.
    """
    from vgbench_gen.evaluation.estimate import read_image_size_px
    from vgbench_gen.evaluation.runner import require_images
    from vgbench_gen.evaluation.visual_cot import make_both_stages

    row = questions.by_id(item_id)
    require_images(questions.source, questions.options, [row])
    settings, drawn_by = questions.options.settings(models[0]), questions.options.visual_cot
    shown = []
    for _, asked in questions.of(row, settings):
        pictures = []
        for image in asked.images:
            data = questions.source.image(image.item, image.k)
            size = len(data) if isinstance(data, bytes) else data.stat().st_size
            pictures.append({"name": image.name, "tag": image.tag, "size_px": read_image_size_px(data), "bytes": size})
        shown.append(
            {
                "key": asked.key._asdict(),
                "request_digest": asked.digest,
                "settings": asked.settings.model_dump(mode="json"),
                "images": pictures,
                "text": make_both_stages(asked, drawn_by, image_model) if drawn_by else asked.text,
                "answer": asked.item.answer,
                "problem": asked.problem,
            }
        )
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
    yield f"--- right answer, not sent: {one['answer']}"


def print_estimates(
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
            print(f"{one.spec}: {one.requests} answers that cost nothing; a baseline asks nobody")
            continue
        cost = "no price known" if one.usd is None else f"USD {one.usd[0]:.2f} to {one.usd[1]:.2f}"
        print(
            f"{one.spec}: {one.requests} requests with {one.images} images ({one.kept} answered before); about "
            f"{one.prompt_tokens} tokens sent and at most {one.most_completion} received; {cost}"
            + (f"; and {one.drawings} drawings, not counted in these" if one.drawings else "")
        )


@contextmanager
def open_bars() -> Iterator[Progress]:
    """What shows how far every model is, and says once that an interrupted run waits."""
    from vgbench_gen.evaluation.interrupts import INTERRUPTED

    told: list[str] = []
    with progress_bars("question") as show:

        def progress(run: Run) -> None:
            if run.stopped == INTERRUPTED and not told:
                told.append(run.stopped)
                print("vgbench: waiting for requests under way; Ctrl-C once more ends at once", file=sys.stderr)
            cost = "" if run.usd is None else f"USD {run.usd:.4f}"
            counts = {"failed": run.failed.total(), **run.short}
            note = ", ".join([cost] * bool(cost) + [f"{count} {kind}" for kind, count in counts.items() if count])
            # What was answered before does not count towards the rate.
            show(shorten_start(run.spec), run.done, run.total, kept=run.kept, note=note)

        yield progress


def make_record(run: Run) -> dict[str, Any]:
    """A run as JSON."""
    counts = {"failed": dict(run.failed), "short": dict(run.short), "answered": run.answered}
    return asdict(run) | {"path": str(run.path), **counts, "complete": run.complete}


def list_runs(runs: Sequence[Run], dataset: Path, benchmark: str, replies: Path | None) -> Iterator[str]:
    """What became of every model, and what to do next."""
    for run in runs:
        rate = run.asked / run.seconds if run.seconds > 0 else 0.0
        cost = "cost unknown" if run.usd is None else f"USD {run.usd:.4f}"
        yield (
            f"{run.spec}: {run.total} requests, {run.kept} answered before, {run.asked} now in {run.seconds:.1f} s "
            f"({rate:.1f} a second), {run.tokens} tokens, {cost}; {run.path}"
        )
        if run.taken:
            yield f"  {run.taken} were asked alike of the set that this one was chosen from: replies copied from there"
        if lacking := run.failed + run.short:
            told = ", ".join(f"{kind} {count}" for kind, count in sorted(lacking.items()))
            again = "; the next run asks again what failed" if run.failed else ""
            yield f"  {run.answered or 'none'} of {run.asked} answered; {told}{again}"
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
        yield from ["nothing was answered; mend that and run the same command again"] * bool(runs)
        return
    from vgbench_gen.evaluation.base import DEFAULT_BENCHMARK, benchmarks

    if step := benchmarks[benchmark].next_step(dataset, runs[0].path.with_suffix("")):
        yield f"next: {step}"
        return
    options = [] if benchmark == DEFAULT_BENCHMARK else ["--benchmark", benchmark]
    options += [] if replies is None else ["--replies", str(replies)]
    yield f"next: {format_command('vgbench', 'compare', dataset, *options)}"
