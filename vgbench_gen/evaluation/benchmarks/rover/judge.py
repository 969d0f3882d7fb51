"""ROVER's judge: its prompts, and the two rules that a prompt cannot enforce (`docs/protocols.md#rover`).

The rules: without written reasoning the process scores 1 without a request; alignment is at most the visual score + 1.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from vgbench_gen.backends.base import Backend, BackendError, ImagePart, Message, Part, Reply, Settings, TextPart
from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.evaluation.benchmarks.rover import judge_replies
from vgbench_gen.evaluation.benchmarks.rover import samples as rover_samples
from vgbench_gen.evaluation.benchmarks.rover.samples import EvaluationSample
from vgbench_gen.text.render import find_templates_root

METRICS = ("reasoning_process", "reasoning_visual", "reasoning_alignment")
EXTRAS = ("visual_consistency", "image_quality")
PROCESS, VISUAL, ALIGNMENT = METRICS
MAX_TOKENS = 3000  # the published value
MAX_RETRIES = 3  # requests for a metric until a reply contains a valid score
# Metric -> images, in the order in which its prompt numbers them.
SHOWN: Mapping[str, tuple[str, ...]] = {
    PROCESS: ("original_image",),
    VISUAL: ("original_image", "generated_image", "target_image"),
    ALIGNMENT: ("original_image", "generated_image"),
    "visual_consistency": ("original_image", "generated_image"),
    "image_quality": ("generated_image",),
}
Status = Literal["ok", "no_reasoning_text", "judge_failed", "api_error", "bad_sample"]
_SLOT = re.compile(r"\{\{ ([a-z_]+) \}\}")


class MetricWords(Config):
    """The wording for a metric."""

    shown: str
    """Description of the images."""
    ask: str
    """The question to the judge."""
    target: str = ""
    """Description of the target image, if there is one."""


class JudgeWords(Config):
    """The file `templates/judge/rover.toml`: prompts for a judge, with slots in double braces."""

    version: int
    """Version of the wording; scores of different versions are separate."""
    system: str
    """The system message."""
    form: str
    """The required form of the reply; the slot `key` is the name of the score."""
    again: str
    """The message after a reply without a valid grade; the slot `form` is the field of that name."""
    scale: str
    """Meaning of the grades from 1 to 5."""
    metrics: Mapping[str, MetricWords]
    """Name of a metric -> its wording."""
    facts: Mapping[str, str]
    """Name of a field of the sample -> text with its value; empty fields are left out."""
    domains: Mapping[str, str]
    """Name of a domain -> its wording; "" stands for no domain."""
    reasoning_types: Mapping[str, str]
    """Name of a kind of reasoning -> its wording; "" stands for no kind."""


@cache
def read_words() -> JudgeWords:
    """The wording in the shipped file."""
    return load_toml(find_templates_root() / "judge" / "rover.toml", JudgeWords)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The score of a sample for a metric."""

    metric: str
    score: int | None
    """The judge's score, 1 to 5; None if it is missing."""
    reasoning: str
    """The judge's reasoning, or the error."""
    status: Status
    """"ok", or the reason for a missing or fixed score."""
    judge: str = ""
    """Name of the judge's model."""
    reply: Reply | None = None
    """The judge's reply; None if it was not asked, or the request failed."""


def check_metrics(metrics: str | Sequence[str] | None) -> tuple[str, ...]:
    """The requested metrics, from names or a text with commas; `METRICS` if None.

    Raises:
        ConfigError: an unknown metric.
    """
    if isinstance(metrics, str):
        metrics = [name.strip() for name in metrics.split(",") if name.strip()] or None
    wanted = tuple(dict.fromkeys(METRICS if metrics is None else metrics))
    if unknown := sorted(set(wanted) - {*METRICS, *EXTRAS}):
        known = ", ".join((*METRICS, *EXTRAS))
        raise ConfigError(f"metrics: found {', '.join(unknown)}; expected some of {known}.")
    return wanted


def name_score(metric: str) -> str:
    """The name of a metric's score."""
    return f"{metric}_score"


def make_text(sample: EvaluationSample, metric: str, has_target: bool) -> str:
    """The judge's prompt for a sample and metric, without the images."""
    words, of = read_words(), read_words().metrics[metric]
    dimension, reasoning = sample.place
    values = {"prompt": sample.prompt, "target_description": sample.target_description, "keywords": sample.keywords}
    facts = [_fill(words.facts[name], value=value) for name, value in values.items() if value.strip()]
    asked = _fill(
        of.ask,
        facts="\n\n".join(facts),
        prompt=sample.prompt,
        think_output=sample.think_output,
        domain=words.domains.get(dimension, dimension),
        reasoning=words.reasoning_types.get(reasoning, reasoning),
    )
    shown = f"{of.shown} {of.target}" if has_target and of.target else of.shown
    return "\n\n".join((asked, shown, words.scale, _fill(words.form, key=name_score(metric))))


def _fill(template: str, **slots: str) -> str:
    # A single pass leaves "{{ key }}" inside the filled-in texts unchanged.
    return _SLOT.sub(lambda match: slots.get(match.group(1), match.group()), template)


def needs_no_judge(sample: EvaluationSample, metric: str) -> bool:
    """Whether the score is fixed because the sample has no written reasoning."""
    return metric == PROCESS and rover_samples.is_empty(sample.think_output)


async def ask_for_verdict(
    backend: Backend,
    sample: EvaluationSample,
    metric: str,
    images: Mapping[str, bytes],
    max_retries: int = MAX_RETRIES,
    repeat: int = 0,
) -> Verdict:
    """Ask the judge for a metric, repeatedly if the reply contains no valid score.

    Args:
        backend: the judge.
        sample: the sample to judge.
        metric: one of `METRICS` and `EXTRAS`.
        images: field of the sample -> encoded image.
        max_retries: number of requests, at least 1.
        repeat: 0, 1, … for independent judgments of the same sample.

    Raises:
        BackendError: the budget is spent, the key is refused, or the work was cancelled.
    """
    if needs_no_judge(sample, metric):
        return Verdict(metric, judge_replies.LOW, "There is no written reasoning.", "no_reasoning_text")
    shown = [images[name] for name in SHOWN[metric] if name in images]
    parts: list[Part] = []
    for number, data in enumerate(shown, start=1):
        parts += [TextPart(f"Image {number}:"), ImagePart(data)]
    parts.append(TextPart(make_text(sample, metric, "target_image" in images and "target_image" in SHOWN[metric])))
    messages = [Message("user", tuple(parts))]
    settings = Settings(temperature=0.0, max_tokens=MAX_TOKENS, system=read_words().system, stage=f"judge-{metric}")
    judge = backend.model
    for attempt in range(max(1, max_retries)):
        try:
            # A separate epoch per request, so that the invalid reply is not taken from the cache.
            epoch = repeat * 1000 + attempt
            reply = await backend.ask(messages, settings.model_copy(update={"epoch": epoch}))
        except BackendError as error:
            if error.kind in ("budget", "cancelled", "refused_key"):
                raise
            return Verdict(metric, None, str(error), "api_error", judge)
        judge = reply.model or judge
        found = judge_replies.read(reply.text, name_score(metric))
        if found.score is not None:
            return Verdict(metric, found.score, found.reasoning, "ok", judge, reply)
        if reply.text.strip():
            again = Message.of("user", _fill(read_words().again, form=_fill(read_words().form, key=name_score(metric))))
            messages = [messages[0], Message.of("assistant", reply.text[:4000]), again]
    return Verdict(metric, None, f"No valid score in {max(1, max_retries)} replies.", "judge_failed", judge, reply)


def merge_verdicts(sample_id: str, place: tuple[str, str], verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """The result of a sample, in which alignment is capped by the visual score.

    `cap_applied` is None if the visual score is unknown; then alignment is the judge's.
    """
    found: dict[str, Any] = {"sample_id": sample_id, "dimension": place[0], "reasoning_type": place[1]}
    for metric, verdict in verdicts.items():
        found[name_score(metric)] = verdict.score
        found[f"{metric}_reasoning"] = verdict.reasoning
        found[f"{metric}_status"] = verdict.status
        found[f"{metric}_judge"] = verdict.judge
    if ALIGNMENT in verdicts:
        raw, visual = verdicts[ALIGNMENT].score, verdicts[VISUAL].score if VISUAL in verdicts else None
        found[name_score(ALIGNMENT)], found["cap_applied"] = cap_alignment(raw, visual)
        found["raw_alignment"] = raw
    return found


def cap_alignment(alignment: int | None, visual: int | None) -> tuple[int | None, bool | None]:
    """(alignment, at most one above the visual score; whether it was lowered, None if a score is unknown)."""
    if alignment is None or visual is None:
        return alignment, None
    most = min(visual + 1, judge_replies.HIGH)
    return min(alignment, most), alignment > most


def scale_to_hundred(score: float) -> float:
    """Map a score from 1 to 5 to the scale from 0 to 100."""
    return (score - judge_replies.LOW) * 25.0


async def judge_all(
    backend: Backend,
    work: Sequence[tuple[EvaluationSample, tuple[str, ...]]],
    num_workers: int,
    max_retries: int,
    repeat: int,
    on_verdict: Callable[[EvaluationSample, str, Verdict], None],
) -> None:
    """Judge samples in parallel; the images of a sample are read when a worker starts on it.

    on_verdict: called with (sample, digest of the judge's input, verdict) for each verdict.

    Raises:
        BackendError: as `ask_for_verdict`, after `on_verdict` got the verdicts until then.
    """
    waiting = iter(work)

    async def worker() -> None:
        for sample, metrics in waiting:  # all workers share this iterator
            images, problems = await asyncio.to_thread(encode_images, sample)
            inputs = rover_samples.digest(sample, images)
            for metric in metrics:
                bad = [problems[name] for name in SHOWN[metric] if name in problems]
                if bad and not needs_no_judge(sample, metric):
                    verdict = Verdict(metric, None, " ".join(bad), "bad_sample")
                else:
                    verdict = await ask_for_verdict(backend, sample, metric, images, max_retries, repeat)
                on_verdict(sample, inputs, verdict)

    workers = [asyncio.create_task(worker()) for _ in range(max(1, min(num_workers, len(work))))]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await backend.rest()


def encode_images(sample: EvaluationSample) -> tuple[dict[str, bytes], dict[str, str]]:
    """(field -> encoded image, field -> error), for the images of a sample."""
    images: dict[str, bytes] = {}
    problems: dict[str, str] = {}
    for name in ("original_image", "generated_image", "target_image"):
        picture = getattr(sample, name)
        if picture is None and name == "target_image":
            continue
        try:
            images[name] = rover_samples.encode_picture(picture, f"{sample.sample_id}, {name}")
        except VGBenchError as error:
            problems[name] = str(error)
    return images, problems


def run_here(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine to its end, in another thread if this one has a running event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(main())
        return
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def run_registered() -> None:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        await main()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: asyncio.run(run_registered()))
        try:
            waiting.result()
        except KeyboardInterrupt:
            for loop, task in running:
                loop.call_soon_threadsafe(task.cancel)
            raise
