"""`inspect-log`: saved replies with their scores as logs of inspect_ai, for `inspect view`; extra `inspect`."""

from __future__ import annotations

import base64
import importlib.util
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.board import ScoreRow
from vgbench_gen.evaluation.metrics import average_micro
from vgbench_gen.evaluation.options import BLIND, AskOptions
from vgbench_gen.evaluation.prompting import make_asked
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import read_replies
from vgbench_gen.evaluation.reply_files import reply_files
from vgbench_gen.evaluation.saved import score_lines
from vgbench_gen.publish.export import Export, Job, exports

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample, EvalSpec
    from inspect_ai.model import ChatMessageUser
    from inspect_ai.scorer import Score

_MAX_IMAGE_BYTES = 64 << 20  # of one log; it is made in memory, and the viewer loads a sample whole
_SCORES = ("sane", "official", "strict")
_STOPS = {"length": "max_tokens", "content_filter": "content_filter", "tool_calls": "tool_calls", "other": "unknown"}


@exports.register("inspect-log")
class InspectLogs(Export):
    """One `.eval` file for each file of replies, and one more for each control (blind, wrong images)."""

    def write(self, job: Job) -> str:
        if importlib.util.find_spec("inspect_ai") is None:
            raise ConfigError(
                "--to inspect-log: needs inspect_ai, not installed here. Install the extra: "
                "pip install 'vgbench-gen[inspect]'"
            )
        from inspect_ai.log import write_eval_log

        files = reply_files(job.source.folder)
        items = job.items()
        image = _make_image_reader(job, items.values())
        for path in files:
            header, lines, _ = read_replies(path)
            by_stage: dict[str, dict[ReplyKey, ReplyLine]] = defaultdict(dict)
            for key, line in lines.items():
                if key.id in items:
                    by_stage[key.stage][key] = line
            for stage, of_stage in by_stage.items():
                scored, _ = score_lines(header, of_stage, items, job.source.fingerprint)
                log = _Log(job, header, stage, image).build_log(of_stage, scored, items)
                if log is not None:
                    write_eval_log(log, str(job.folder / f"{path.stem}{f'-{stage}' if stage else ''}.eval"))
        return "inspect view --log-dir ."


def _make_image_reader(job: Job, items: Any) -> Callable[[Item, int], bytes] | None:
    """What reads an image for a log; None where all of them are too many."""

    def read(item: Item, k: int) -> bytes:
        found = job.source.image(item, k)
        return found.read_bytes() if isinstance(found, Path) else found

    room = _MAX_IMAGE_BYTES
    for item in items:
        for k in range(len(item.images)):
            found = job.source.image(item, k)
            room -= found.stat().st_size if isinstance(found, Path) else len(found)
            if room < 0:
                return None
    return read


@dataclass(frozen=True, slots=True)
class _Log:
    """One log under way."""

    job: Job
    header: Header
    """Of the saved replies."""
    stage: str
    image: Callable[[Item, int], bytes] | None
    """A function that gives the bytes of an image; None where images are only named."""

    def build_log(
        self, lines: Mapping[ReplyKey, ReplyLine], scored: Sequence[ScoreRow], items: Mapping[str, Item]
    ) -> EvalLog | None:
        """The log of these replies; None where none of them belongs to the dataset."""
        from inspect_ai.log import EvalLog, EvalMetric, EvalPlan, EvalResults, EvalScore
        from inspect_ai.model import GenerateConfig

        rows = {row.key: row for row in scored}
        kept = [(line, rows[key]) for key, line in lines.items() if key in rows]
        if not kept:
            return None
        answered = [row for _, row in kept if row.outcome != "failed"]
        means = {"sane": [row.score for row in answered], "official": [row.official for row in answered]}
        means["strict"] = [row.strict for row in answered]
        told = self.header.settings.get("settings") or {}
        config = GenerateConfig(
            **{one: told[one] for one in ("temperature", "max_tokens") if told.get(one) is not None}
        )
        return EvalLog(
            eval=self._describe([line for line, _ in kept]),
            plan=EvalPlan(config=config),
            status="success",
            results=EvalResults(
                total_samples=len(kept),
                completed_samples=len(answered),
                scores=[
                    EvalScore(
                        name=one, scorer=one, metrics={"mean": EvalMetric(name="mean", value=average_micro(means[one]))}
                    )
                    for one in _SCORES
                    if answered
                ],
            ),
            samples=[self._sample(line, row, items[line.key.id]) for line, row in kept],
        )

    def _describe(self, lines: Sequence[ReplyLine]) -> EvalSpec:
        """What was evaluated on what, by digests that are the same for the same replies."""
        from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec

        name = f"{self.job.name}_{self.stage.replace('-', '_')}" if self.stage else self.job.name
        ids = list(dict.fromkeys(_sample_id(line) for line in lines))
        identity = hash_stably(self.header.spec, self.header.dataset, self.stage)
        return EvalSpec(
            eval_id=identity,
            run_id=identity,
            task_id=hash_stably(self.header.dataset, self.stage),
            created=_format_time(min(line.time for line in lines)),
            task=name,
            dataset=EvalDataset(name=self.job.name, samples=len(ids), sample_ids=ids),
            model=self.header.model or self.header.spec,
            config=EvalConfig(epochs=1 + max(line.key.epoch for line in lines)),
            metadata={"dataset": self.header.dataset, "benchmark": self.header.benchmark, "spec": self.header.spec},
        )

    def _sample(self, line: ReplyLine, row: ScoreRow, item: Item) -> EvalSample:
        from inspect_ai.log import EvalSample
        from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage

        asked_message = self._message(line, item)
        output = ModelOutput()
        messages: list[Any] = [asked_message]
        if line.response is not None:
            stop: Any = _STOPS.get(line.finish_reason, "stop")
            output = ModelOutput.from_content(line.model, line.response, stop_reason=stop)
            messages.append(ChatMessageAssistant(content=line.response, model=line.model))
        if line.usage:
            read, written = line.usage.get("prompt_tokens", 0), line.usage.get("completion_tokens", 0)
            output.usage = ModelUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)
            output.usage.total_cost = line.cost_usd
        output.time = line.latency_s
        return EvalSample(
            id=_sample_id(line),
            epoch=line.key.epoch + 1,
            input=[asked_message],
            target=item.answer,
            messages=messages,
            output=output,
            scores=_make_scores(row),
            error=_make_error(line.error) if line.failed else None,
            completed_at=_format_time(line.time),
            metadata={
                "id": line.key.id,
                "request_digest": line.request_digest,
                "prompt_set": line.key.prompt_set,
                "rotation": line.key.rotation,
                "stage": line.key.stage,
                "task": item.task,
                "category": item.category,
                "question_type": item.question_type,
                "scene": f"{item.source}/{item.scene_id}",
                "outcome": row.outcome,
            },
        )

    def _message(self, line: ReplyLine, item: Item) -> ChatMessageUser:
        """The question as it was asked; images by name where they are not embedded, or not the question's own."""
        from inspect_ai.model import ChatMessageUser, Content, ContentImage, ContentText

        options = AskOptions(prompt_set=line.key.prompt_set, blind=line.key.stage == BLIND)
        made = make_asked(item, options.settings(""), options, line.key.rotation)
        own = {shown.name: shown for shown in made.images}
        parts: list[Content] = []
        for shown in line.images:
            name, tag = str(shown.get("name", "")), str(shown.get("tag", ""))
            if tag:
                parts.append(ContentText(text=tag))
            if self.image is None or name not in own:
                parts.append(ContentText(text=f"[{name}]"))
                continue
            data = self.image(own[name].item, own[name].k)
            kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
            parts.append(ContentImage(image=f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"))
        return ChatMessageUser(content=[*parts, ContentText(text=made.text)])


def _sample_id(line: ReplyLine) -> str:
    return f"{line.key.id}~{line.key.rotation}" if line.key.rotation else line.key.id


def _make_scores(row: ScoreRow) -> dict[str, Score] | None:
    from inspect_ai.scorer import Score

    if row.outcome == "failed":
        return None
    why = row.outcome if row.outcome == row.status or row.status == "ok" else f"{row.outcome} ({row.status})"
    read = {"sane": row.extracted, "official": row.official_extracted, "strict": None}
    value = {"sane": row.score, "official": row.official, "strict": row.strict}
    return {
        name: Score(value=value[name], answer=None if read[name] is None else str(read[name]), explanation=why)
        for name in _SCORES
    }


def _make_error(said: str) -> Any:
    from inspect_ai.log import EvalError

    return EvalError(message=said or "no reply", traceback="", traceback_ansi="")


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
