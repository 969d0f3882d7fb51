"""Ask what was not answered yet, several models side by side, and keep every reply as it comes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from vgbench_gen import __version__
from vgbench_gen.backends.base import Backend, BackendError, ImagePart, Reply, Request, TextPart
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import stable_hash
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import Keeps, NamesImages, Source, benchmarks
from vgbench_gen.evaluation.baselines import PREFIX, Baseline, open_baseline
from vgbench_gen.evaluation.prompting import Asked, AskOptions
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.replies import (
    FOLDER,
    Header,
    ReplyKey,
    ReplyLine,
    ReplyWriter,
    read_answered,
    replies_path,
)
from vgbench_gen.evaluation.visual_cot import DEFAULT_SET, Stages, second
from vgbench_gen.evaluation.visual_cot_models import expanded
from vgbench_gen.store.files import dataset_error, write_bytes

MISSING_IMAGES = "missing_images.txt"
# Failures of no single question: asking on would fail the same way, so nothing is recorded and the model stops.
_STOPPING = ("budget", "cancelled", "refused_key")
_BASELINE_VERSION = "1"


@dataclass(slots=True)
class Run:
    """What became of one model.

    total: requests that the choice of questions means. kept: of them, answered before. asked, failed: of this run;
    failed ones by kind. without: answered without the image that was to be made before. stopped: why not all were
    asked, "" where they were. usd: None where no price is known.
    """

    spec: str
    path: Path
    total: int = 0
    kept: int = 0
    asked: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    without: int = 0
    stopped: str = ""
    tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0

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
    def complete(self) -> bool:
        """Whether every request has a reply."""
        return self.done >= self.total and not self.failed and not self.stopped


Progress = Callable[[Run], None]


def evaluate(
    dataset: str | PathLike[str],
    model: str,
    *,
    benchmark: str = "vgbench",
    backend: BackendOptions | None = None,
    replies: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    image_model: str = "",
    **options: Any,
) -> Run:
    """Ask one model what it was not asked yet; `evaluate_all` for several. Returns what became of it.

    Args:
        dataset: as `vgbench_gen.load` takes it.
        model: `openai:gpt-4o`, `vllm:http://host:8000/v1#name`, `baseline:constant`, ..., or one of the names of
            `visual_cot_models.toml`, which ask for `visual_cot`.
        benchmark: what kind of dataset it is.
        backend: how requests are sent.
        replies: folder of the replies; `replies` in the dataset's folder by default.
        progress: called after each reply.
        image_model: who draws where `visual_cot` is asked for; the model itself by default.
        options: fields of `prompting.AskOptions` such as `limit=100` or `circular=True`.

    Raises:
        ConfigError, UnknownNameError: an option makes no sense.
        DatasetError: the dataset or its replies cannot be read.
    """
    kind = benchmarks[benchmark]
    source = kind.open(Path(dataset))
    chosen = expanded([model], image_model)
    options = {"prompt_set": kind.prompt_set, "max_tokens": kind.max_tokens} | options
    if chosen.visual_cot:
        options = {"visual_cot": DEFAULT_SET} | options
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    wanted = parse_config(given, AskOptions, "evaluate")
    folder = None if replies is None else Path(replies)
    return evaluate_all(source, chosen.models, wanted, backend, folder, progress, chosen.image_model)[0]


def evaluate_all(
    source: Source,
    models: Sequence[str],
    options: AskOptions | None = None,
    backend: BackendOptions | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
    image_model: str = "",
) -> list[Run]:
    """Ask several models at once, each at its own pace, and return what became of each, in their order.

    Memory holds the images of the requests under way, one row group of images per model, and no replies.

    Raises:
        ConfigError: no model, one twice, or an option that makes no sense.
        DatasetError: the dataset cannot be read, or another process writes the same replies.
        KeyboardInterrupt: on Ctrl-C; what came is kept.
    """
    options = options or AskOptions()
    if not models or len(set(models)) < len(models):
        # Without their names: an address may hold a password, which nothing knows of before it is opened.
        told = f"{len(models)}, {len(set(models))} of them different"
        raise ConfigError(f"models: found {told if models else 'none'}; expected at least one, each once.")
    questions = Questions(source, options)
    if not options.blind and not all(spec.startswith(PREFIX) for spec in models):
        _require_images(source, questions)
    folder = folder or source.folder / FOLDER
    opened: dict[str, Backend | Baseline] = {}
    drawing: list[Backend] = []
    try:
        for spec in models:
            is_baseline = spec.startswith(PREFIX)
            if is_baseline and options.visual_cot:
                raise ConfigError(f"{spec}: found a baseline, which draws nothing; leave it out with --visual-cot.")
            opened[spec] = (
                open_baseline(spec, source.again(), options.seed) if is_baseline else open_backend(spec, backend)
            )
        maker = open_backend(image_model, backend) if image_model and options.visual_cot else None
        if maker is not None:
            drawing.append(maker)
        return asyncio.run(_all(opened, maker, questions, folder, progress or (lambda run: None)))
    finally:
        asyncio.run(_close([*opened.values(), *drawing]))


def _require_images(source: Source, questions: Questions) -> None:
    """Raise DatasetError, and list them all in a file, where images lie apart and some are not there."""
    missing = source.missing_images(questions.rows) if isinstance(source, NamesImages) else ()
    if not missing:
        return
    listed = source.folder / MISSING_IMAGES
    write_bytes(listed, "".join(f"{name}\n" for name in missing).encode())
    shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
    remedy = "Give the folder that they are below with --images, or ask only what is there (--tasks, --blind)."
    raise dataset_error(listed, f"{len(missing)} images missing ({shown})", "every image of the questions", remedy)


async def _all(
    opened: Mapping[str, Backend | Baseline],
    maker: Backend | None,
    questions: Questions,
    folder: Path,
    progress: Progress,
) -> list[Run]:
    tasks = [
        asyncio.create_task(_Session(spec, who, questions.again(), folder, progress, maker).run())
        for spec, who in opened.items()
    ]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if maker is not None:
            await maker.rest()


async def _close(opened: Any) -> None:
    for who in opened:
        if isinstance(who, Backend):
            await who.close()


class _Session:
    """One model's way through the questions."""

    def __init__(
        self,
        spec: str,
        who: Backend | Baseline,
        questions: Questions,
        folder: Path,
        progress: Progress,
        maker: Backend | None = None,
    ) -> None:
        self._who, self._questions, self._progress, self._maker = who, questions, progress, maker
        self._stages: Stages | None = None
        # A backend's own spelling of its spec holds no password, and one server has one file however it was spelled.
        self._spec = who.spec if isinstance(who, Backend) else spec
        model = who.model if isinstance(who, Backend) else spec
        self._settings = questions.options.settings(model)
        options = questions.options.model_dump(mode="json", exclude={"tasks", "types", "limit"})
        told = options | {"settings": self._settings.model_dump(mode="json", exclude={"epoch", "stage"})}
        source = questions.source
        self._header = Header(source.fingerprint, source.benchmark, self._spec, model, told, __version__)
        self.result = Run(self._spec, replies_path(folder, self._spec), questions.total)
        self._kept: dict[ReplyKey, str] = {}

    async def run(self) -> Run:
        started_s = time.monotonic()
        path = self.result.path
        with ReplyWriter(path, self._header) as writer:
            self._kept = read_answered(path)
            self._progress(self.result)
            try:
                if isinstance(self._who, Backend):
                    await self._ask(self._who, writer)
                else:
                    await self._answer(self._who, writer)
            finally:
                self.result.seconds = time.monotonic() - started_s
        self._progress(self.result)
        return self.result

    def _missing(self, salt: str = "") -> Iterator[tuple[Item, Asked, str]]:
        """(item, request, digest) of what has no reply to just this request."""
        for item, asked in self._questions.walk(self._settings):
            if self._stages is not None:
                yield item, asked, asked.digest  # whether it was answered shows once its drawing is there
                continue
            digest = asked.question + stable_hash(asked.digest, salt) if salt else asked.digest
            if self._kept.get(asked.key) == digest:
                self.result.kept += 1
            else:
                yield item, asked, digest

    def _is_kept(self, asked: Asked) -> bool:
        kept = self._kept.get(asked.key) == asked.digest
        self.result.kept += kept
        return kept

    async def _ask(self, backend: Backend, writer: ReplyWriter) -> None:
        options = self._questions.options
        if options.visual_cot:
            drawn_by = self._maker or backend
            self._stages = Stages(self._questions.source, options.visual_cot, drawn_by, self.result.path)
        waiting = self._missing()

        async def work() -> None:
            for _, asked, digest in waiting:  # shared: each request goes to the worker that is free
                if asked.problem:
                    self._keep(writer, asked, digest, error=asked.problem)
                    continue
                source, made = self._questions.source, None
                try:
                    if self._stages is not None:
                        made = await self._stages.make(asked, writer, self.result.add)
                        asked = second(asked, made)
                        digest = asked.digest
                        self.result.without += made.image is None
                        if self._is_kept(asked):
                            continue
                    request = asked.request(source.image)
                    reply = await (_changed if isinstance(source, Keeps) else _answered)(backend, request)
                except BackendError as error:
                    if error.kind in _STOPPING:
                        self.result.stopped = self.result.stopped or str(error)
                    else:
                        self._keep(writer, asked, digest, error=f"{error.kind}: {error}")
                else:
                    folder = self.result.path.with_suffix("")
                    problem = source.keep(asked.item, reply, folder) if isinstance(source, Keeps) else ""
                    if self._stages is not None and made is not None:
                        # Before the reply, after which nothing would be written about it any more.
                        self._stages.save_intermediate(asked, made, reply.text)
                    self._keep(writer, asked, digest, reply=reply, error=problem)
                if self.result.stopped:
                    return

        workers = [asyncio.create_task(work()) for _ in range(max(1, min(backend.parallel, self.result.total)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            if self._stages is not None:
                await self._stages.close()
            await backend.rest()

    async def _answer(self, baseline: Baseline, writer: ReplyWriter) -> None:
        # In a thread, so that those who learn or look at images do not hold up others' connections.
        ended = threading.Event()
        work = asyncio.ensure_future(asyncio.to_thread(self._answer_all, baseline, writer, ended))
        try:
            await asyncio.shield(work)
        finally:
            ended.set()
            await asyncio.wait([work])

    def _answer_all(self, baseline: Baseline, writer: ReplyWriter, ended: threading.Event) -> None:
        # What a baseline says may depend on the whole dataset and on its seed.
        salt = f"{_BASELINE_VERSION}/{self._header.dataset}/{baseline.seed}"
        for item, asked, digest in self._missing(salt):
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
            text, more = reply.text, _told(reply)
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
        if error:
            run.failed[error.partition(":")[0]] += 1
        self._progress(run)


async def _answered(backend: Backend, request: Request) -> Reply:
    return await backend.ask(request.messages, request.settings)


async def _changed(backend: Backend, request: Request) -> Reply:
    """The question's images changed as its words say."""
    parts = request.messages[-1].parts
    words = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return await backend.edit([part for part in parts if isinstance(part, ImagePart)], words, request.settings)


def _told(reply: Reply) -> dict[str, Any]:
    """What the backend says of a reply besides its text; one from the cache keeps what it cost once."""
    return {
        "finish_reason": reply.finish_reason,
        "usage": {} if reply.usage is None else asdict(reply.usage),
        "cost_usd": reply.cost_usd,
        "latency_s": reply.latency_s,
    }
