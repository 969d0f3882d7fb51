"""`inspect:PROVIDER/MODEL`: any model of inspect_ai, such as inspect:anthropic/NAME; needs the extra `inspect`.

inspect_ai finds keys and addresses (ANTHROPIC_API_KEY and the like; https://inspect.aisi.org.uk has the list), unless
--key-file or --base-url give them. Cache, retries, limits and budget are those of `Served`; inspect_ai sends each
attempt once.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vgbench_gen.backends._call import Call, Failed, Turn
from vgbench_gen.backends._keys import cover_line, find_key, register_proxy_passwords, register_secret, strip_url
from vgbench_gen.backends.base import Backend, FinishReason, Reply, Usage
from vgbench_gen.backends.model_files import check_packages
from vgbench_gen.backends.served import Served
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers
from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Model, ModelOutput

EXTRA = "inspect"
_PACKAGE = "inspect_ai"
_SECRET = re.compile(r".*(KEY|TOKEN|SECRET|PASSWORD)")  # names of environment variables that may hold secrets
_FINISHES: dict[str, FinishReason] = {
    "stop": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
}
_TRANSIENT = (408, 409, 425)  # statuses below 500 that are worth a retry


@providers.register("inspect")
class InspectProvider(Provider):
    """`inspect:PROVIDER/MODEL`."""

    def needs(self, name: str) -> Needs:
        return Needs(
            f"{name}:PROVIDER/MODEL",
            needs_key=False,
            extra=EXTRA,
            packages=(_PACKAGE,),
            without_key="the key that inspect_ai asks for",
        )

    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        """As `Provider.open`; a missing key or an unknown name is found by inspect_ai at the first request."""
        spec = f"{name}:{model}"
        provider, slash, rest = model.partition("/")
        if not (provider and slash and rest):
            raise ConfigError(f"{spec}: found no model; expected {name}:PROVIDER/MODEL such as {name}:anthropic/NAME.")
        check_packages(spec, (_PACKAGE,), EXTRA)
        return Inspect(spec, provider, rest, options)


class Inspect(Served):
    """A model behind inspect_ai's `Model.generate`.

    Args:
        spec: as on the command line.
        provider: its name in inspect_ai and in the table of prices.
        model: name without the provider.
        options: of requests.

    Raises:
        ConfigError: as `Served`, or an invalid key file or address.
    """

    def __init__(self, spec: str, provider: str, model: str, options: BackendOptions) -> None:
        endpoint = strip_url(options.base_url) if options.base_url else ""
        super().__init__(spec, provider, model, f"{_PACKAGE} {endpoint}".strip(), options)
        self._key = find_key((f"{provider.upper()}_API_KEY",), options.key_file) if options.key_file else None
        self._model: Model | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # inspect_ai finds keys by itself, so every variable that may be one is covered in messages.
        for variable, value in os.environ.items():
            if _SECRET.fullmatch(variable):
                register_secret(value)
        register_proxy_passwords()

    async def _send(self, call: Call) -> Reply:
        from pydantic import ValidationError

        model, settings = self._connect(), call.settings
        parameters: dict[str, Any] = {"max_tokens": settings.max_tokens, "temperature": settings.temperature}
        parameters |= {"seed": settings.seed, "stop_seqs": list(settings.stop) or None}
        parameters |= {
            "reasoning_effort": settings.reasoning_effort or None,
            "extra_body": dict(settings.extra_body) or None,
        }
        parameters = {name: value for name, value in parameters.items() if value is not None}
        try:
            output = await self._generate(model, [_make_message(turn) for turn in call.turns], parameters)
        except ValidationError as exc:
            problems = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in exc.errors()[:3])
            raise Failed("wrong_request", f"{self.spec}: inspect_ai takes no such setting ({problems}).") from None
        except Exception as exc:
            raise self._classify(model, exc) from None
        return self._read_output(output, parameters)

    async def rest(self) -> None:
        model, self._model = self._model, None
        if model is not None and self._loop is asyncio.get_running_loop():
            await model.api.aclose()

    async def _generate(self, model: Model, messages: list[ChatMessage], parameters: Mapping[str, Any]) -> ModelOutput:
        from inspect_ai.event import ModelEvent
        from inspect_ai.log import transcript
        from inspect_ai.model import GenerateConfig

        config = GenerateConfig(**parameters)

        async def ask() -> ModelOutput:
            try:
                return await model.generate(messages, config=config)
            finally:
                for event in transcript().events:
                    if isinstance(event, ModelEvent):
                        event.input, event.call = [], None

        # inspect_ai records every exchange, with images, in a context variable. A separate context frees the record
        # with the request, except that cancelled timers keep it for minutes, so `ask` clears it too.
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().create_task(ask(), context=context)

    def _connect(self) -> Model:
        loop = asyncio.get_running_loop()
        if self._model is None or self._loop is not loop:
            from inspect_ai.model import GenerateConfig, get_model

            config = GenerateConfig(max_retries=0, max_connections=self.options.concurrency)
            more: dict[str, Any] = {"base_url": self.options.base_url} if self.options.base_url else {}
            if self._key is not None:
                more["api_key"] = self._key.reveal()
            try:
                self._model = get_model(f"{self.provider}/{self.model}", config=config, memoize=False, **more)
            except Exception as exc:
                # Each provider's package has its own exceptions for a missing key, package or address.
                raise ConfigError(f"{self.spec}: inspect_ai cannot open it: {_one_line(exc)}") from None
            self._loop = loop
            # Providers' clients retry by themselves; here one attempt must be one request.
            client = getattr(self._model.api, "client", None)
            if client is not None and isinstance(getattr(client, "max_retries", None), int):
                client.max_retries = 0
        return self._model

    def _classify(self, model: Model, exc: Exception) -> Failed:
        """The failure that a provider's error means, by its status and by whether inspect_ai would retry it."""
        from tenacity import RetryError

        if isinstance(exc, RetryError) and isinstance(last := exc.last_attempt.exception(), Exception):
            exc = last
        status = _find_status(exc)
        where = f"{self.spec}: {_one_line(exc)}" + (f" ({status})" if status else "")
        decision = model.api.should_retry(exc)
        if status == 401 or model.api.is_auth_failure(exc):
            return Failed("refused_key", where, for_all=True)
        if status == 429 or getattr(decision, "kind", "") == "rate_limit":
            return Failed("api_error", where, "slower", getattr(decision, "retry_after", None))
        if decision or (status is not None and (status in _TRANSIENT or status >= 500)):
            return Failed("api_error", where, "later", charged=status is None)
        return Failed("wrong_request" if status else "api_error", where)

    def _read_output(self, output: ModelOutput, parameters: Mapping[str, Any]) -> Reply:
        if output.error:
            raise Failed("api_error", f"{self.spec}: {_one_line(output.error)}", "later", charged=True)
        if output.empty:
            raise Failed("bad_reply", f"{self.spec}: the reply holds no choice.", "later", charged=True)
        counts, usage = output.usage, None
        if counts is not None:
            cached, written = counts.input_tokens_cache_read or 0, counts.input_tokens_cache_write or 0
            usage = Usage(
                prompt_tokens=counts.input_tokens + cached + written,
                completion_tokens=counts.output_tokens,
                reasoning_tokens=min(counts.reasoning_tokens or 0, counts.output_tokens),
                cached_tokens=cached,
            )
        return Reply(
            text=output.completion,
            finish_reason=_FINISHES.get(output.stop_reason, "other"),
            model=output.model or self.model,
            usage=usage,
            cost_usd=None if counts is None else counts.total_cost,
            parameters=dict(parameters),
            raw={"id": output.response_id, "stop_reason": output.stop_reason, "metadata": _make_plain(output.metadata)},
        )


def _make_message(turn: Turn) -> ChatMessage:
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        Content,
        ContentImage,
        ContentText,
    )

    words = [part for part in turn.parts if isinstance(part, str)]
    content: str | list[Content] = "\n".join(words)
    if len(words) < len(turn.parts):
        content = [
            ContentText(text=part) if isinstance(part, str) else ContentImage(image=part.url) for part in turn.parts
        ]
    if turn.role == "system":
        return ChatMessageSystem(content=content)
    return ChatMessageUser(content=content) if turn.role == "user" else ChatMessageAssistant(content=content)


def _find_status(exc: BaseException | None) -> int | None:
    """HTTP status of an error or of one of its causes."""
    while exc is not None:
        for name in ("status_code", "code"):
            if isinstance(status := getattr(exc, name, None), int):
                return status
        exc = exc.__cause__
    return None


def _one_line(error: object) -> str:
    """The last paragraph of an error's message, because inspect_ai writes the whole request before it."""
    text = str(error).strip() or type(error).__name__
    text = re.sub(r"\[/?[a-z]+\]", "", text.rpartition("\n\n")[2])  # without rich's markup
    return cover_line(text)


def _make_plain(value: Mapping[str, Any] | None) -> dict[str, Any]:
    from vgbench_gen.core.rng import format_canonical_json

    try:
        format_canonical_json(dict(value or {}))
    except (TypeError, ValueError):
        return {}
    return dict(value or {})
