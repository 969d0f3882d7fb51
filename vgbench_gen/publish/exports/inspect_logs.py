"""`inspect-log`: saved replies and scores as logs for `inspect view`; needs the extra `inspect`."""

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

_MAX_IMAGE_BYTES = 64 << 20  # limit for all images of a log together, because a log is built in memory
_STOPS = {"length": "max_tokens", "content_filter": "content_filter", "tool_calls": "tool_calls", "other": "unknown"}


@exports.register("inspect-log")
class InspectLogs(Export):
    """Writes a `.eval` file per file of replies and control (blind, wrong images)."""

    def write(self, job: Job) -> str:
        if importlib.util.find_spec("inspect_ai") is None:
            raise ConfigError(
                "--to inspect-log: needs inspect_ai, not installed here. Install the extra: "
                "pip install 'vgbench-gen[inspect]'"
            )
        from inspect_ai.log import write_eval_log

        files = reply_files(job.source.folder)
        items = job.items()
        read_image = _make_image_reader(job, items.values())
        for path in files:
            header, lines, _ = read_replies(path)
            by_stage: dict[str, dict[ReplyKey, ReplyLine]] = defaultdict(dict)
            for key, line in lines.items():
                if key.id in items:
                    by_stage[key.stage][key] = line
            for stage, stage_lines in by_stage.items():
                scored, _ = score_lines(header, stage_lines, items, job.source.fingerprint)
                log = _Log(job, header, stage, read_image).build(stage_lines, scored, items)
                if log is not None:
                    write_eval_log(log, str(job.folder / f"{path.stem}{f'-{stage}' if stage else ''}.eval"))
        return "inspect view --log-dir ."


def _make_image_reader(job: Job, items: Any) -> Callable[[Item, int], bytes] | None:
    """A function that reads an image for a log; None if all images together are too large."""

    def read(item: Item, k: int) -> bytes:
        image = job.source.image(item, k)
        return image.read_bytes() if isinstance(image, Path) else image

    total_bytes = 0
    for item in items:
        for k in range(len(item.images)):
            image = job.source.image(item, k)
            total_bytes += image.stat().st_size if isinstance(image, Path) else len(image)
            if total_bytes > _MAX_IMAGE_BYTES:
                return None
    return read


@dataclass(frozen=True, slots=True)
class _Log:
    """Builds the log of one stage of a file of replies."""

    job: Job
    header: Header
    """Header of the file of replies."""
    stage: str
    read_image: Callable[[Item, int], bytes] | None
    """Returns the bytes of an image; None if logs only name images."""

    def build(
        self, lines: Mapping[ReplyKey, ReplyLine], scored: Sequence[ScoreRow], items: Mapping[str, Item]
    ) -> EvalLog | None:
        """The log of some replies; None if none of them was scored."""
        from inspect_ai.log import EvalLog, EvalMetric, EvalPlan, EvalResults, EvalScore
        from inspect_ai.model import GenerateConfig

        rows = {row.key: row for row in scored}
        kept = [(line, rows[key]) for key, line in lines.items() if key in rows]
        if not kept:
            return None
        answered = [row for _, row in kept if row.outcome != "failed"]
        values = {"sane": [row.score for row in answered], "official": [row.official for row in answered]}
        values["strict"] = [row.strict for row in answered]
        means = {name: EvalMetric(name="mean", value=average_micro(values[name])) for name in values if answered}
        settings = self.header.settings.get("settings") or {}
        names = [name for name in ("temperature", "max_tokens") if settings.get(name) is not None]
        config = GenerateConfig(**{name: settings[name] for name in names})
        return EvalLog(
            eval=self._describe([line for line, _ in kept]),
            plan=EvalPlan(config=config),
            status="success",
            results=EvalResults(
                total_samples=len(kept),
                completed_samples=len(answered),
                scores=[EvalScore(name=name, scorer=name, metrics={"mean": mean}) for name, mean in means.items()],
            ),
            samples=[self._make_sample(line, row, items[line.key.id]) for line, row in kept],
        )

    def _describe(self, lines: Sequence[ReplyLine]) -> EvalSpec:
        """Model, dataset and task; the ids are digests, so that the same replies give the same log."""
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

    def _make_sample(self, line: ReplyLine, row: ScoreRow, item: Item) -> EvalSample:
        from inspect_ai.log import EvalError, EvalSample
        from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage

        question = self._make_message(line, item)
        output = ModelOutput()
        messages: list[Any] = [question]
        if line.response is not None:
            stop: Any = _STOPS.get(line.finish_reason, "stop")
            output = ModelOutput.from_content(line.model, line.response, stop_reason=stop)
            messages.append(ChatMessageAssistant(content=line.response, model=line.model))
        if line.usage:
            read, written = line.usage.get("prompt_tokens", 0), line.usage.get("completion_tokens", 0)
            output.usage = ModelUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)
            output.usage.total_cost = line.cost_usd
        output.time = line.latency_s
        error = EvalError(message=line.error or "no reply", traceback="", traceback_ansi="") if line.failed else None
        return EvalSample(
            id=_sample_id(line),
            epoch=line.key.epoch + 1,
            input=[question],
            target=item.answer,
            messages=messages,
            output=output,
            scores=_make_scores(row),
            error=error,
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

    def _make_message(self, line: ReplyLine, item: Item) -> ChatMessageUser:
        """The question as it was asked; images of other questions, or that are not embedded, are named."""
        from inspect_ai.model import ChatMessageUser, Content, ContentImage, ContentText

        options = AskOptions(prompt_set=line.key.prompt_set, blind=line.key.stage == BLIND)
        asked = make_asked(item, options.settings(""), options, line.key.rotation)
        own = {shown.name: shown for shown in asked.images}
        parts: list[Content] = []
        for shown in line.images:
            name, tag = str(shown.get("name", "")), str(shown.get("tag", ""))
            if tag:
                parts.append(ContentText(text=tag))
            if self.read_image is None or name not in own:
                parts.append(ContentText(text=f"[{name}]"))
                continue
            data = self.read_image(own[name].item, own[name].k)
            kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
            parts.append(ContentImage(image=f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"))
        return ChatMessageUser(content=[*parts, ContentText(text=asked.text)])


def _sample_id(line: ReplyLine) -> str:
    return f"{line.key.id}~{line.key.rotation}" if line.key.rotation else line.key.id


def _make_scores(row: ScoreRow) -> dict[str, Score] | None:
    from inspect_ai.scorer import Score

    if row.outcome == "failed":
        return None
    why = row.outcome if row.outcome == row.status or row.status == "ok" else f"{row.outcome} ({row.status})"
    answers = {"sane": row.extracted, "official": row.official_extracted, "strict": None}
    values = {"sane": row.score, "official": row.official, "strict": row.strict}
    return {
        name: Score(value=value, answer=None if answers[name] is None else str(answers[name]), explanation=why)
        for name, value in values.items()
    }


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
