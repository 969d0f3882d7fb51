"""`hf:PATH`: an image-text-to-text model of transformers that runs here; needs the extra `transformers`.

PATH is a folder as `save_pretrained` writes it, or ORGANISATION/NAME[@REVISION] of the Hub, which is fetched unless
HF_HUB_OFFLINE is set. The model is loaded when the first reply is not in the cache. In float32 a reply does not depend
on the other prompts of its batch; in bfloat16 rounding depends on them, so a greedy reply can rarely differ from that
of a batch of one.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgbench_gen.backends._call import Call, Failed
from vgbench_gen.backends._keys import cover_line
from vgbench_gen.backends.base import Backend, BackendError, Reply, Usage
from vgbench_gen.backends.model_files import HUB_FILES, check_packages, locate_model
from vgbench_gen.backends.served import Served
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers
from vgbench_gen.core.rng import format_canonical_json

if TYPE_CHECKING:
    from vgbench_gen.backends._hf_model import Chat, Continuation, LocalModel

EXTRA = "transformers"
_PACKAGES = ("torch", "transformers", "accelerate")
_GATHER_S = 0.01  # prompts that arrive within this time share a batch; much shorter than a forward pass


@providers.register("hf")
class TransformersProvider(Provider):
    """`hf:PATH`."""

    def needs(self, name: str) -> Needs:
        return Needs(f"{name}:FOLDER", needs_key=False, extra=EXTRA, packages=_PACKAGES)

    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        """As `Provider.open`; a model of the Hub is fetched."""
        check_packages(f"{name}:{model}", _PACKAGES, EXTRA)
        files = (*HUB_FILES, "*.py") if options.local.trust_remote_code else HUB_FILES
        return TransformersLocal(f"{name}:{model}", *locate_model(model, f"{name}:{model}", files), options)


class TransformersLocal(Served):
    """A model in this process, which answers waiting prompts in batches.

    Args:
        spec: as on the command line.
        folder: of the model.
        model: name for replies and cache keys; changes with the content of the folder.
        options: of requests and of the model.
    """

    def __init__(self, spec: str, folder: Path, model: str, options: BackendOptions) -> None:
        # A local reply may take as long as the machine needs, and costs no money.
        changes: dict[str, Any] = {"budget_usd": None}
        if options.timeout_s == BackendOptions.model_fields["timeout_s"].default:
            changes["timeout_s"] = 1e9
        super().__init__(spec, "hf", model, options.local.dtype, options.model_copy(update=changes))
        self._folder = folder
        self._loaded: LocalModel | None = None
        self._batches = _Batches(self._model, options.local.batch_size)

    async def _send(self, call: Call) -> Reply:
        from vgbench_gen.backends._hf_model import EXTRA_FIELDS

        settings = call.settings
        if settings.reasoning_effort:
            raise Failed(
                "wrong_request",
                f"{self.spec}: a local model has no reasoning effort; set what its chat template knows in extra_body: "
                '{"chat_template_kwargs": {"enable_thinking": false}}.',
            )
        if unknown := sorted(set(settings.extra_body) - set(EXTRA_FIELDS)):
            raise Failed(
                "wrong_request",
                f"{self.spec}: extra_body has {', '.join(unknown)}; a local model knows {', '.join(EXTRA_FIELDS)}.",
            )
        reply = await self._batches.reply(self._make_chat(call), settings.extra_body)
        parameters = {
            "temperature": settings.temperature or 0.0,
            "max_tokens": settings.max_tokens,
            "stop": list(settings.stop),
            "dtype": self._loaded.dtype if self._loaded else "",
            "device": self._loaded.device if self._loaded else "",
            **settings.extra_body,
        }
        if settings.seed is not None:
            parameters["seed"] = settings.seed
        usage = Usage(reply.prompt_tokens, reply.completion_tokens)
        return Reply(reply.text, reply.finish_reason, self.model, usage=usage, cost_usd=0.0, parameters=parameters)

    async def rest(self) -> None:
        await self._batches.stop()

    async def close(self) -> None:
        await super().close()
        self._batches.shut()
        self._loaded = None

    def _model(self) -> LocalModel:
        """Runs in the thread of the model."""
        if self._loaded is None:
            from vgbench_gen.backends._hf_model import LocalModel

            chosen = self.options.local
            self._loaded = LocalModel(
                self._folder, device=chosen.device, dtype=chosen.dtype, trust_remote_code=chosen.trust_remote_code
            )
        return self._loaded

    def _make_chat(self, call: Call) -> Chat:
        from PIL import Image

        from vgbench_gen.backends._hf_model import Chat

        messages: list[dict[str, Any]] = []
        for turn in call.turns:
            parts: list[dict[str, Any]] = []
            for part in turn.parts:
                if isinstance(part, str):
                    parts.append({"type": "text", "text": part})
                    continue
                try:
                    with Image.open(io.BytesIO(part.data), formats=("JPEG", "PNG")) as image:
                        parts.append({"type": "image", "image": image.convert("RGB")})
                except (OSError, SyntaxError, ValueError) as exc:
                    size = "{} x {}".format(*part.size_px)
                    raise Failed(
                        "wrong_request", f"{self.spec}: an image of {size} pixels is damaged ({exc})."
                    ) from None
            messages.append({"role": turn.role, "content": parts})
        settings = call.settings
        return Chat(
            messages,
            len(call.images),
            settings.temperature or 0.0,
            settings.max_tokens,
            settings.stop,
            # Without a seed the digest of the request, which includes the epoch, is the seed.
            (0, call.digest) if settings.seed is None else (settings.seed, ""),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A prompt that waits for a batch."""

    chat: Chat
    extra: Mapping[str, Any]
    kind: tuple[int, str]
    """(number of images, extra fields as text); prompts of one kind may share a batch."""
    outcome: asyncio.Future[Continuation]


class _Batches:
    """Gathers waiting prompts into batches and runs them in one thread.

    Args:
        model: returns the model, which it may load; called in the thread.
        size: the most prompts in a batch.
    """

    def __init__(self, model: Callable[[], LocalModel], size: int) -> None:
        self._model, self._size = model, size
        self._waiting: list[_Waiting] = []
        self._runner: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "vgbench-model")
        self._loaded: LocalModel | None = None

    async def reply(self, chat: Chat, extra: Mapping[str, Any]) -> Continuation:
        """Continue a chat, in a batch with others of its kind.

        Raises:
            Failed: the model cannot take the prompt.
            ConfigError: the model cannot be loaded.
        """
        outcome: asyncio.Future[Continuation] = asyncio.get_running_loop().create_future()
        # Processors need the same number of images in every row; the extra fields apply to the whole batch.
        self._waiting.append(_Waiting(chat, extra, (chat.images, format_canonical_json(extra)), outcome))
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await outcome

    async def stop(self) -> None:
        """End the current batch after its next token and drop waiting prompts."""
        if self._runner is not None and not self._runner.done():
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
        self._runner = None

    def shut(self) -> None:
        """End the thread after its current batch."""
        self._thread.shutdown(wait=True)

    async def _run(self) -> None:
        batch: list[_Waiting] = []
        try:
            while True:
                await asyncio.sleep(_GATHER_S)
                batch = self._take_next()
                if not batch:
                    return
                loop = asyncio.get_running_loop()
                replies = await loop.run_in_executor(self._thread, self._run_batch, batch)
                for row, reply in zip(batch, replies, strict=True):
                    if row.outcome.done():
                        continue
                    if isinstance(reply, Exception):
                        row.outcome.set_exception(reply)
                    else:
                        row.outcome.set_result(reply)
        finally:
            if self._loaded is not None:
                self._loaded.halt = True
            for row in (*batch, *self._waiting):
                row.outcome.cancel()
            self._waiting = []

    def _take_next(self) -> list[_Waiting]:
        """The longest waiting prompt and others of its kind; cancelled prompts are dropped."""
        self._waiting = [row for row in self._waiting if not row.outcome.done()]
        batch = [row for row in self._waiting if row.kind == self._waiting[0].kind][: self._size]
        self._waiting = [row for row in self._waiting if row not in batch]
        return batch

    def _run_batch(self, batch: Sequence[_Waiting]) -> list[Continuation | Exception]:
        try:
            model = self._loaded = self._model()
        except Exception as exc:
            return [exc] * len(batch)
        model.halt = False
        return self._run_halving(model, batch)

    def _run_halving(self, model: LocalModel, batch: Sequence[_Waiting]) -> list[Continuation | Exception]:
        """The reply or error of each prompt. A batch that fails is halved until the failing prompt is alone."""
        try:
            return [*model.reply([row.chat for row in batch], batch[0].extra)]
        except Exception as exc:
            out_of_memory = type(exc).__name__ == "OutOfMemoryError"
            if len(batch) == 1:
                return [_classify_failure(exc, out_of_memory)]
        half = len(batch) // 2
        if out_of_memory:
            model.free_memory()
            self._size = min(self._size, half)
        return self._run_halving(model, batch[:half]) + self._run_halving(model, batch[half:])


def _classify_failure(exc: Exception, out_of_memory: bool) -> Exception:
    if isinstance(exc, BackendError):
        return Failed(exc.kind, exc.message)
    if out_of_memory:
        return Failed("api_error", "the GPU's memory does not hold this one prompt. Send smaller images or less text.")
    message = cover_line(str(exc))
    return Failed("wrong_request", f"the model's processor or chat template refuses the prompt ({message}).")
