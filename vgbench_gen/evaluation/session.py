"""One model's way through the questions: ask what was not answered yet, and keep every reply as it comes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vgbench_gen import __version__
from vgbench_gen.agent.backend import read_trace
from vgbench_gen.backends.base import Backend, BackendError, ImagePart, Reply, Request, TextPart, find_shortfall
from vgbench_gen.core.rng import format_canonical_json, hash_stably
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.background import tell_background
from vgbench_gen.evaluation.base import Keeps
from vgbench_gen.evaluation.baselines import Baseline
from vgbench_gen.evaluation.interrupts import Stop
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.replies import (
    AnsweredRequests,
    Header,
    ReplyKey,
    ReplyLine,
    ReplyWriter,
    name_replies_file,
    read_answered,
    read_line_at,
)
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.evaluation.visual_cot import Stages, make_second_stage

# Failures of no single question: asking on would fail the same way, so nothing is recorded and the model stops.
_STOPPING = ("budget", "cancelled", "refused_key")
_BASELINE_VERSION = "1"
_ALIKE = 2  # so many rounds of requests that all fail alike, and nobody answers: the rest would fail the same way


@dataclass(slots=True)
class Run:
    """What became of one model."""

    spec: str
    """Who was asked."""
    path: Path
    """The log of its replies."""
    total: int = 0
    """How many requests the choice of questions means."""
    kept: int = 0
    """How many of them were answered before."""
    taken: int = 0
    """How many of these stood among the replies to the dataset that a hard set was chosen from, and were copied."""
    asked: int = 0
    """How many were asked in this run."""
    failed: Counter[str] = field(default_factory=Counter)
    """How many of those failed, by kind."""
    short: Counter[str] = field(default_factory=Counter)
    """How many got a reply that is no whole answer, by what it lacks (`find_shortfall`)."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The first reason of each kind of both."""
    without: int = 0
    """How many were answered without the image that was to be made before."""
    stopped: str = ""
    """Why not all were asked; "" where they were."""
    tokens: int = 0
    """How many tokens were sent and received."""
    usd: float | None = 0.0
    """What the run cost; None where no price is known."""
    seconds: float = 0.0
    """How long it took."""

    def add(self, reply: Reply) -> None:
        """Count what a reply cost; one from the cache cost nothing now."""
        if reply.cached:
            return
        self.usd = None if self.usd is None or reply.cost_usd is None else self.usd + reply.cost_usd
        if reply.usage is not None:
            self.tokens += reply.usage.prompt_tokens + reply.usage.completion_tokens

    @property
    def done(self) -> int:
        """Requests that need nothing more in this run."""
        return self.kept + self.asked

    @property
    def answered(self) -> int:
        """How many of those that were asked in this run said something, be it cut."""
        return self.asked - self.failed.total() - self.short.total() + self.short["cut"]

    @property
    def silent(self) -> bool:
        """Whether some were asked and none was answered."""
        return bool(self.asked or self.stopped) and not self.answered

    @property
    def complete(self) -> bool:
        """Whether every request has a reply."""
        return self.done >= self.total and not self.failed and not self.stopped


Progress = Callable[[Run], None]


class Session:
    """One model's way through the questions.

    Args:
        spec: of the model, as given.
        who: is asked.
        questions: which, and how; the session's own.
        folder: of the file of replies.
        progress: called after each reply.
        stop: says when to send nothing more.
        maker: who draws, where that is another.
        source_replies: folder of replies to the dataset that a hard set was chosen from; None for none. A reply to
            just one of our requests is copied from there, with its trace, in place of asking.
    """

    def __init__(
        self,
        spec: str,
        who: Backend | Baseline,
        questions: Questions,
        folder: Path,
        progress: Progress,
        stop: Stop,
        maker: Backend | None = None,
        source_replies: Path | None = None,
    ) -> None:
        self._who, self._questions, self._progress, self._maker = who, questions, progress, maker
        self._stages: Stages | None = None
        self._stop = stop
        # A backend's own spelling of its spec holds no password, and one server has one file however it was spelled.
        self._spec = who.spec if isinstance(who, Backend) else spec
        if isinstance(who, Backend):
            who.tally.reported = True  # by `Run`
        model = who.model if isinstance(who, Backend) else spec
        self._settings = questions.options.settings(model)
        options = questions.options.model_dump(mode="json", exclude={"tasks", "types", "limit"})
        told = options | {"settings": self._settings.model_dump(mode="json", exclude={"epoch"})}
        if questions.options.visual_cot:
            told["image_model"] = maker.spec if maker is not None else self._spec
        setup = dict(who.describe_setup()) if isinstance(who, Backend) else {}
        # What an agent says hangs on its tools as well: what it said with others answers no request of this run.
        self._salt = format_canonical_json(setup) if setup else ""
        if setup:
            told["setup"] = setup
        source = questions.source
        self._header = Header(source.fingerprint, source.benchmark, self._spec, model, told, __version__)
        self.result = Run(self._spec, name_replies_file(folder, self._spec), questions.total)
        self._answered = AnsweredRequests({}, {})
        self._traces = TraceLog(self.result.path)
        self._other = None if source_replies is None else name_replies_file(source_replies, self._spec)
        self._other_answered = AnsweredRequests({}, {})
        self._other_traces = TraceLog(self._other or self.result.path)
        self._alike: Counter[str] = Counter()  # requests of this run that failed, by kind, until one is answered

    async def run(self) -> Run:
        """Ask everything that is missing; returns what became of it."""
        started_s = time.monotonic()
        path = self.result.path
        with ReplyWriter(path, self._header) as writer:
            self._answered = read_answered(path, self._header)
            if self._other is not None:
                self._other_answered = read_answered(self._other)
            self._progress(self.result)
            try:
                if isinstance(self._who, Backend):
                    await self._ask(self._who, writer)
                else:
                    await self._answer(self._who, writer)
                if self._stop.asked and self.result.done >= self.result.total:
                    self.result.stopped = ""
            finally:
                self._traces.close()
                self.result.seconds = time.monotonic() - started_s
        self._progress(self.result)
        return self.result

    def _digest(self, asked: Asked) -> str:
        return asked.question + hash_stably(asked.digest, self._salt) if self._salt else asked.digest

    def _find_missing(self, writer: ReplyWriter) -> Iterator[tuple[Item, Asked, str]]:
        """(item, request, digest) of what has no reply to just this request."""
        for item, asked in self._questions.walk(self._settings):
            digest = self._digest(asked)
            if self._stages is not None:
                yield item, asked, digest  # whether it was answered shows once its drawing is there
                continue
            if not self._is_kept(asked.key, digest, writer):
                yield item, asked, digest

    def _is_kept(self, key: ReplyKey, digest: str, writer: ReplyWriter) -> bool:
        at = self._answered.at.get(key, {}).get(digest)
        if at is None:
            return self._take_over(key, digest, writer)
        if self._answered.active.get(key) != digest:
            # It stands under other settings, which ask this question just so: put it under those of this run.
            writer.append(read_line_at(writer.path, at))
        self.result.kept += 1
        return True

    def _take_over(self, key: ReplyKey, digest: str, writer: ReplyWriter) -> bool:
        at = self._other_answered.at.get(key, {}).get(digest)
        if self._other is None or at is None:
            return False
        if (trace := self._other_traces.read(key, digest)) is not None:
            made = (self._other_traces.find_image(image.get("digest", "")) for image in trace.get("images", ()))
            self._traces.append(key, digest, trace, [path.read_bytes() for path in made if path is not None])
        writer.append(read_line_at(self._other, at))
        self.result.kept += 1
        self.result.taken += 1
        return True

    async def _ask(self, backend: Backend, writer: ReplyWriter) -> None:
        options = self._questions.options
        if options.visual_cot:
            drawn_by = self._maker or backend
            self._stages = Stages(self._questions.source, options.visual_cot, drawn_by, self.result.path)
        waiting = self._find_missing(writer)

        async def work() -> None:
            for _, asked, digest in waiting:  # shared: each request goes to the worker that is free
                if asked.problem:
                    self._keep(writer, asked, digest, error=asked.problem)
                elif await self._ask_one(backend, writer, asked, digest) and self._is_over():
                    return

        workers = [asyncio.create_task(work()) for _ in range(max(1, min(backend.parallel, self.result.total)))]
        try:
            await self._stop.gathered(workers, [backend, self._maker], self._stages)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            if self._stages is not None:
                await self._stages.close()
            await backend.rest()

    def _is_over(self) -> bool:
        return bool(self.result.stopped or self._stop.asked)

    async def _ask_one(self, backend: Backend, writer: ReplyWriter, asked: Asked, digest: str) -> bool:
        """Send one request and keep what comes of it; returns whether it was sent rather than answered before."""
        source, made = self._questions.source, None
        try:
            if self._stages is not None:
                made = await self._stages.make(asked, writer, self.result.add)
                asked = make_second_stage(asked, made)
                digest = self._digest(asked)
                self.result.without += made.image is None
                if self._is_kept(asked.key, digest, writer):
                    return False
            request = asked.request(source.image)
            if isinstance(source, Keeps):
                reply = await _edit_images(backend, request)
            else:
                background = tell_background(asked, backend.reads_evidence)
                reply = await backend.ask_about(request.messages, request.settings, background)
        except BackendError as error:
            if error.kind in _STOPPING:
                self.result.stopped = self.result.stopped or str(error)
            else:
                self._keep(writer, asked, digest, error=f"{error.kind}: {error}")
                self._count_failure(error, backend)
            return True
        self._alike = Counter({"": 1})  # somebody answers
        folder = self.result.path.with_suffix("")
        problem = source.keep(asked.item, reply, folder) if isinstance(source, Keeps) else ""
        # Before the reply, after which nothing would be written about it any more.
        if (trace := read_trace(reply)) is not None:
            self._traces.append(asked.key, digest, trace, reply.images)
        if self._stages is not None and made is not None:
            self._stages.save_intermediate(asked, made, reply.text)
        self._keep(writer, asked, digest, reply=reply, error=problem)
        return True

    def _count_failure(self, error: BackendError, backend: Backend) -> None:
        self._alike[error.kind] += 1
        most = _ALIKE * max(1, backend.parallel)
        if not self.result.stopped and len(self._alike) == 1 and self._alike[error.kind] >= most:
            self.result.stopped = f"the first {most} requests all failed alike ({error.kind}): {error}"

    async def _answer(self, baseline: Baseline, writer: ReplyWriter) -> None:
        # In a thread, so that those who learn or look at images do not hold up others' connections.
        ended = threading.Event()
        work = asyncio.ensure_future(asyncio.to_thread(self._answer_all, baseline, writer, ended))
        try:
            await self._stop.first(work)
        finally:
            ended.set()
            await asyncio.wait([work])
        work.result()

    def _answer_all(self, baseline: Baseline, writer: ReplyWriter, ended: threading.Event) -> None:
        # What a baseline says may depend on the whole dataset and on its seed.
        self._salt = f"{_BASELINE_VERSION}/{self._header.dataset}/{baseline.seed}"
        for item, asked, digest in self._find_missing(writer):
            if ended.is_set():
                return
            if asked.problem:
                self._keep(writer, asked, digest, error=asked.problem)
            else:
                self._keep(writer, asked, digest, text=baseline.answer(item, asked))

    def _keep(
        self,
        writer: ReplyWriter,
        asked: Asked,
        digest: str,
        reply: Reply | None = None,
        text: str | None = None,
        error: str = "",
    ) -> None:
        images, more = asked.record(), {}
        if reply is not None:
            text, more = reply.text, _make_record(reply)
            for image, size in zip(images, reply.image_sizes_px, strict=False):
                image["size_px"] = list(size)
        key, run = asked.key, self.result
        writer.append(
            ReplyLine(
                **key._asdict(),
                benchmark=asked.item.benchmark,
                model=self._header.model if reply is None else reply.model,
                request_digest=digest,
                response=text,
                images=tuple(images),
                error=error,
                time=round(time.time(), 3),
                **more,
            )
        )
        run.asked += 1
        if reply is not None:
            run.add(reply)
        kind, reason = ("", "") if reply is None else find_shortfall(reply)
        if error:
            kind, _, reason = error.partition(":")
            run.failed[kind] += 1
        elif kind:
            run.short[kind] += 1
        if kind:
            run.reasons.setdefault(kind, reason.strip())
        self._progress(run)


async def _edit_images(backend: Backend, request: Request) -> Reply:
    """The question's images changed as its words say."""
    parts = request.messages[-1].parts
    words = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return await backend.edit([part for part in parts if isinstance(part, ImagePart)], words, request.settings)


def _make_record(reply: Reply) -> dict[str, Any]:
    """What the backend says of a reply besides its text; one from the cache keeps what it cost once."""
    return {
        "finish_reason": reply.finish_reason,
        "usage": {} if reply.usage is None else asdict(reply.usage),
        "cost_usd": reply.cost_usd,
        "latency_s": reply.latency_s,
    }
