"""One model's way through the questions: ask what was not answered yet, and keep every reply as it comes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from vgbench_gen import __version__
from vgbench_gen.agent.backend import read_trace
from vgbench_gen.backends.base import Backend, BackendError, Reply, find_shortfall
from vgbench_gen.core.rng import format_canonical_json, hash_stably
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.background import tell_background
from vgbench_gen.evaluation.base import Keeps
from vgbench_gen.evaluation.baselines import Baseline
from vgbench_gen.evaluation.interrupts import Stop
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import (
    AnsweredRequests,
    ReplyWriter,
    name_replies_file,
    read_answered,
    read_reply_at,
)
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.evaluation.visual_cot import (
    Drawing,
    draw,
    edit_images,
    find_drawing,
    make_first_stage,
    make_second_stage,
    write_both_stages,
    write_drawing,
)

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
        self._who, self._questions, self._progress, self._stop = who, questions, progress, stop
        # A backend's own spelling of its spec holds no password, and one server has one file however it was spelled.
        self._spec = who.spec if isinstance(who, Backend) else spec
        if isinstance(who, Backend):
            who.tally.reported = True  # by `Run`
        model = who.model if isinstance(who, Backend) else spec
        self._settings = questions.options.settings(model)
        options = questions.options.model_dump(mode="json", exclude={"tasks", "types", "limit"})
        stated = options | {"settings": self._settings.model_dump(mode="json", exclude={"epoch"})}
        self._maker = maker if maker is not None else who if isinstance(who, Backend) else None
        if questions.options.visual_cot:
            stated["image_model"] = self._maker.spec if self._maker is not None else self._spec
        setup = dict(who.describe_setup()) if isinstance(who, Backend) else {}
        # An agent's reply depends on its tools, so their configuration is part of the digest.
        self._salt = format_canonical_json(setup) if setup else ""
        if setup:
            stated["setup"] = setup
        source = questions.source
        self._header = Header(
            dataset=source.fingerprint,
            benchmark=source.benchmark,
            spec=self._spec,
            model=model,
            settings=stated,
            code=__version__,
        )
        self.result = Run(self._spec, name_replies_file(folder, self._spec), questions.total)
        self._folder = self.result.path.with_suffix("")  # of what replies hold besides their text
        self._answered = AnsweredRequests()
        self._traces = TraceLog(self.result.path)
        source_log = None if source_replies is None else name_replies_file(source_replies, self._spec)
        self._source_logs = (
            () if source_log is None else ((source_log, read_answered(source_log), TraceLog(source_log)),)
        )
        self._drawings: dict[ReplyKey, asyncio.Task[Drawing]] = {}
        self._alike: Counter[str] = Counter()  # requests of this run that failed, by kind, until one is answered

    async def run(self) -> Run:
        """Ask everything that is missing; returns what became of it."""
        started_s = time.monotonic()
        path = self.result.path
        with ReplyWriter(path, self._header) as writer:
            self._answered = writer.answered
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

    def _digest(self, asked: Asked, salt: str = "") -> str:
        salt = salt or self._salt
        return asked.question + hash_stably(asked.digest, salt) if salt else asked.digest

    def _find_missing(self, writer: ReplyWriter) -> Iterator[tuple[Item, Asked]]:
        """(item, request) of what has no reply to just this request."""
        for item, asked in self._questions.walk(self._settings):
            # Whether a question with a drawing was answered shows once the drawing is there.
            if self._questions.options.visual_cot or not self._is_kept(asked, self._digest(asked), writer):
                yield item, asked

    def _is_kept(self, asked: Asked, digest: str, writer: ReplyWriter) -> bool:
        """Whether a request has a reply, which then is in force: one at other settings, or to the dataset that a hard
        set was chosen from, is copied."""
        key = asked.key._replace(settings=self._header.digest)
        if self._answered.last.get(key) == digest:
            self.result.kept += 1
            return True
        for path, answered, traces in ((writer.path, self._answered, self._traces), *self._source_logs):
            if (at := answered.find(key, digest)) is None:
                continue
            line = read_reply_at(path, at)
            if (trace := traces.read(line.key, digest)) is not None:
                made = (traces.find_image(image.get("digest", "")) for image in trace.get("images", ()))
                self._traces.append(key, digest, trace, [path.read_bytes() for path in made if path is not None])
            writer.append(line)
            self.result.kept += 1
            self.result.taken += path != writer.path
            return True
        return False

    async def _ask(self, backend: Backend, writer: ReplyWriter) -> None:
        waiting = self._find_missing(writer)

        async def work() -> None:
            for _, asked in waiting:  # shared: each request goes to the worker that is free
                if asked.problem:
                    self._keep(writer, asked, self._digest(asked), error=asked.problem)
                elif await self._ask_one(backend, writer, asked) and self._is_over():
                    return

        workers = [asyncio.create_task(work()) for _ in range(max(1, min(backend.parallel, self.result.total)))]
        try:
            await self._stop.gathered(workers, [backend, self._maker], self._drawings.values())
        finally:
            for task in (*workers, *self._drawings.values()):
                task.cancel()
            await asyncio.gather(*workers, *self._drawings.values(), return_exceptions=True)
            await backend.rest()

    def _is_over(self) -> bool:
        return bool(self.result.stopped or self._stop.asked)

    async def _ask_one(self, backend: Backend, writer: ReplyWriter, asked: Asked) -> bool:
        """Send one request and keep what comes of it; returns whether it was sent rather than answered before."""
        source, digest, drawing = self._questions.source, self._digest(asked), None
        try:
            if self._questions.options.visual_cot:
                drawing = await self._draw_once(asked, writer)
                asked = make_second_stage(asked, drawing)
                digest = self._digest(asked)
                self.result.without += drawing.image is None
                if self._is_kept(asked, digest, writer):
                    return False
            request = asked.request(source.image)
            if isinstance(source, Keeps):
                reply = await edit_images(backend, request)
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
        problem = source.keep(asked.item, reply, self._folder) if isinstance(source, Keeps) else ""
        # Before the reply, after which nothing would be written about it any more.
        if (trace := read_trace(reply)) is not None:
            key = asked.key._replace(settings=self._header.digest)
            self._traces.append(key, digest, trace, reply.images)
        if drawing is not None:
            write_both_stages(self._folder, asked, self._make_first_stage(asked).text, drawing, reply.text)
        self._keep(writer, asked, digest, reply, error=problem)
        return True

    def _make_first_stage(self, asked: Asked) -> Asked:
        assert self._maker is not None
        return make_first_stage(asked, self._questions.options.visual_cot, self._maker.spec)

    async def _draw_once(self, asked: Asked, writer: ReplyWriter) -> Drawing:
        """The drawing for a question, asked for once however many orders of the options need it.

        Raises:
            BackendError: the budget is spent, the key is refused, or the work was cancelled.
        """
        first = self._make_first_stage(asked)
        if first.problem:
            return Drawing(None, "", first.problem)
        if first.key not in self._drawings:
            self._drawings[first.key] = asyncio.create_task(self._draw(first, writer))
        return await asyncio.shield(self._drawings[first.key])

    async def _draw(self, first: Asked, writer: ReplyWriter) -> Drawing:
        assert self._maker is not None
        digest = self._digest(first, self._maker.spec)
        at = self._answered.find(first.key, digest)
        if at is not None and (found := find_drawing(self._folder, read_reply_at(writer.path, at))) is not None:
            return found
        reply: Reply | None = None
        try:
            reply = await draw(self._maker, first.request(self._questions.source.image), self.result.add)
            drawing = write_drawing(self._folder, reply)
        except BackendError as error:
            if error.kind in _STOPPING:
                raise
            drawing = Drawing(None, "", f"{error.kind}: {error}")
        first = replace(first, added=() if drawing.image is None else (drawing.image,))
        writer.append(self._make_line(first, digest, reply, None, drawing.problem, self._maker.model))
        return drawing

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
        for item, asked in self._find_missing(writer):
            if ended.is_set():
                return
            if asked.problem:
                self._keep(writer, asked, self._digest(asked), error=asked.problem)
            else:
                self._keep(writer, asked, self._digest(asked), text=baseline.answer(item, asked))

    def _keep(
        self,
        writer: ReplyWriter,
        asked: Asked,
        digest: str,
        reply: Reply | None = None,
        text: str | None = None,
        error: str = "",
    ) -> None:
        run = self.result
        writer.append(self._make_line(asked, digest, reply, text, error, self._header.model))
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

    def _make_line(
        self, asked: Asked, digest: str, reply: Reply | None, text: str | None, error: str, model: str
    ) -> ReplyLine:
        """The line of the log; a reply from the cache keeps what it cost once."""
        images = asked.record()
        for image, size in zip(images, () if reply is None else reply.image_sizes_px, strict=False):
            image["size_px"] = list(size)
        line = ReplyLine(
            key=asked.key,
            benchmark=asked.item.benchmark,
            model=model,
            request_digest=digest,
            response=text,
            images=tuple(images),
            error=error,
            time=round(time.time(), 3),
        )
        if reply is None:
            return line
        return line.model_copy(
            update={
                "model": reply.model,
                "response": reply.text,
                "finish_reason": reply.finish_reason,
                "usage": {} if reply.usage is None else asdict(reply.usage),
                "cost_usd": reply.cost_usd,
                "latency_s": reply.latency_s,
            }
        )
