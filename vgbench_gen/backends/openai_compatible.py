"""Servers with OpenAI's chat completions, hosted or local, through the `openai` package.

`openai:gpt-4o`, `deepseek:deepseek-flash`, `openrouter:VENDOR/MODEL`, `ollama:llava:7b`, `vllm:http://host:8000/v1#NAME`.
`providers.toml` has the address of each provider and the environment variables of its key.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, JsonValue

from vgbench_gen.backends import _chat
from vgbench_gen.backends._call import Call, Failed
from vgbench_gen.backends._keys import cover_line, find_key, register_proxy_passwords, strip_url
from vgbench_gen.backends._limits import Clock
from vgbench_gen.backends.base import Backend, Reply
from vgbench_gen.backends.served import Served
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers
from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.surroundings import explain_surroundings

if TYPE_CHECKING:
    import openai

_TABLE = Path(__file__).with_name("providers.toml")
_KEYLESS = "none"
_LEARNED_FROM = (200, 400, 404, 415, 422, 500, 501)  # statuses of refusals that may be about one parameter
_log = logging.getLogger("vgbench_gen.backends")
Connect = Callable[[BackendOptions], "openai.AsyncOpenAI"]


class ProviderEntry(Config):
    """The address and key of a provider."""

    example: str
    """A model of the provider as on the command line."""
    base_url: str
    base_url_variables: tuple[str, ...] = ()
    """Environment variables with another address; the first that is set counts."""
    key_variables: tuple[str, ...]
    """Environment variables with the key; the first that is set counts."""
    needs_key: bool = True
    """Whether a key is required; False for servers that usually need none."""


class Demand(Config):
    """Deviations of models from the API; see `_chat.Demands`."""

    providers: tuple[str, ...]
    models: tuple[str, ...]
    """Patterns of the models' names, as in file names."""
    refused: tuple[str, ...] = ()
    edits: bool = False
    without_effort: Mapping[str, JsonValue] = Field(default={})


class ProviderTable(Config):
    """The file `providers.toml`."""

    provider: Mapping[str, ProviderEntry]
    demand: tuple[Demand, ...] = Field(default=())
    """All entries that match a model apply together."""


@cache
def load_provider_table() -> ProviderTable:
    """The table that comes with the package."""
    return load_toml(_TABLE, ProviderTable)


class OpenAICompatible(Served):
    """One model behind chat completions.

    Args:
        spec: as on the command line.
        provider: name in the tables of providers and prices.
        model: name that is sent.
        endpoint: address without credentials, for cache keys and messages.
        connect: makes the client; called in the event loop that uses it.
        options: of requests.
        clock: the source of time.
    """

    def __init__(
        self,
        spec: str,
        provider: str,
        model: str,
        endpoint: str,
        connect: Connect,
        options: BackendOptions,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(spec, provider, model, endpoint, options, clock)
        self._connect = connect
        self._client: openai.AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._demands = find_demands(provider, model)
        self.edits = options.image_edits == "endpoint" or (options.image_edits == "auto" and self._demands.edits)

    async def _send(self, call: Call) -> Reply:
        from vgbench_gen.backends._http import classify_refusal

        refused = self._demands.refused
        messages: dict[str, str] = {}  # refused parameter -> the server's message, in this request
        while True:
            parameters = dict(call.settings.extra_body) if call.edit else _chat.list_parameters(call, self._demands)
            try:
                if call.edit:
                    return _chat.read_edited_images(await self._post_edit(call), self.model, parameters)
                return _chat.read_reply(await self._post(call, parameters), self.model, parameters)
            except _chat.Refusal as refusal:
                if _is_filter(refusal.status, refusal.error):
                    raw = {"error": dict(refusal.error)}
                    return Reply("", "content_filter", self.model, parameters=parameters, raw=raw)
                name = self._demands.find_refused(refusal, parameters) if refusal.status in _LEARNED_FROM else ""
                if name and name not in messages:
                    if name not in refused:
                        _log.warning("%s: takes no %s and is asked without it (%s)", self._where, name, refusal.message)
                    messages[name] = refusal.message
                    refused.add(name)
                    continue
                # The same message without a parameter means that the parameter was not the cause.
                refused -= {name for name, message in messages.items() if message == refusal.message}
                failed = classify_refusal(refusal)
            except Failed as exc:
                failed = exc
            failed.message = f"{self._where}: {failed.message}"
            raise failed from None

    async def _post(self, call: Call, parameters: Mapping[str, object]) -> dict[str, object]:
        import httpx2

        body = _chat.make_body(call, self.model, parameters)
        return await self._read(self._open_client().post("/chat/completions", cast_to=httpx2.Response, body=body))

    async def _post_edit(self, call: Call) -> dict[str, object]:
        _chat.check_extra_body(call.settings.extra_body, {"model", "prompt", "image", "n", "stream"})
        files = [
            (f"image{k}.{image.kind}", image.data, f"image/{image.kind}") for k, image in enumerate(call.images, 1)
        ]
        edit = self._open_client().images.with_raw_response.edit
        return await self._read(
            edit(image=files, prompt=call.text, model=self.model, extra_body=dict(call.settings.extra_body))
        )

    async def _read(self, sending: Awaitable[Any]) -> dict[str, object]:
        """The JSON object of the server's response.

        Raises:
            Refusal: an error.
            Failed: no response, or none in JSON.
        """
        import openai

        from vgbench_gen.backends._http import classify_break, parse_reply, read_body

        try:
            answer = await sending
        except openai.APIStatusError as error:
            raise _chat.Refusal(error.status_code, read_body(error.response), error.response.headers) from None
        except openai.APIError as error:
            raise classify_break(error, str(error.request.url)) from None
        return parse_reply(getattr(answer, "http_response", answer))

    @property
    def _where(self) -> str:
        return f"{self.spec} at {self.endpoint}" if self.endpoint not in self.spec else self.spec

    def _open_client(self) -> openai.AsyncOpenAI:
        import httpx2

        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # Connections belong to the event loop in which they were made.
            try:
                self._client, self._loop = self._connect(self.options), loop
            except (httpx2.InvalidURL, ImportError, ValueError, OSError) as exc:
                problem = explain_surroundings(exc) or f"no client can be made ({cover_line(str(exc))})."
                raise Failed("wrong_request", problem, for_all=True) from None
        return self._client

    async def rest(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()


def find_demands(provider: str, model: str) -> _chat.Demands:
    """The deviations of a model in the table of providers."""
    demands = _chat.Demands()
    for entry in load_provider_table().demand:
        if provider in entry.providers and any(fnmatchcase(model, pattern) for pattern in entry.models):
            demands.refused |= set(entry.refused)
            demands.edits |= entry.edits
            demands.without_effort |= entry.without_effort
    return demands


def _is_filter(status: int, error: Mapping[str, object]) -> bool:
    """Whether an error comes from a content filter: Azure's 400, or OpenRouter's 403 with reasons of its moderation."""
    if status == 400:
        return error.get("code") == "content_filter"
    metadata = error.get("metadata")
    return status == 403 and isinstance(metadata, Mapping) and "reasons" in metadata


@providers.register("openai")
@providers.register("deepseek")
@providers.register("openrouter")
@providers.register("vllm")
@providers.register("ollama")
class OpenAIProvider(Provider):
    """Providers in `providers.toml`: `NAME:MODEL` or `NAME:URL#MODEL`."""

    def needs(self, name: str) -> Needs:
        known = load_provider_table().provider[name]
        return Needs(known.example, known.key_variables, known.needs_key, known.base_url_variables)

    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        known, spec = load_provider_table().provider[name], f"{name}:{model}"
        # The key is found first, so that later messages cover it.
        key = None if options.keyless else find_key(known.key_variables, options.key_file)
        variable = next((name for name in known.base_url_variables if os.environ.get(name)), "")
        url, where = os.environ.get(variable, known.base_url), variable
        if options.base_url:
            url, where = options.base_url, "--base-url"
        if in_spec := "://" in model:
            url, where, model = model.partition("#")[0], "--model", model.partition("#")[2]
        endpoint = strip_url(url, where)
        if in_spec:
            spec = f"{name}:{endpoint}#{model}"
            if not model:
                raise ConfigError(f"{name}:{endpoint}: found an address without a model; expected {spec}MODEL.")
        if key is None and known.needs_key and url == known.base_url and not options.keyless:
            raise ConfigError(
                f"{spec}: no key. Set {known.key_variables[0]}, or name a file that holds it with --key-file."
            )
        register_proxy_passwords()

        def connect(options: BackendOptions) -> openai.AsyncOpenAI:
            import openai

            from vgbench_gen.backends._http import make_http_client

            client = openai.AsyncOpenAI(
                api_key=key.reveal() if key else _KEYLESS,
                base_url=url,
                max_retries=0,
                timeout=options.timeout_s,
                http_client=make_http_client(url, options.concurrency, options.timeout_s),
                default_headers={"Accept-Encoding": "identity"},
            )
            if name != "openai":
                # The client reads these from variables for OpenAI; another provider must not get them.
                client.organization = client.project = None
            return client

        return OpenAICompatible(spec, name, model, endpoint, connect, options)
