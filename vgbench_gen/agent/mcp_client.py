"""Tools of other servers, by the Model Context Protocol over HTTP (`docs/agent.md#servers`), as tools of this agent.

Replies of a server are not trusted: their size is bounded while they are read, redirects are not followed, nothing in
them is used as a path, and the token is covered wherever a server repeats it. If a server is down, slow or changed, the
call fails with `PassingToolError`, which is not kept. Each call has its own session, which ends with the call.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import httpx2
from mcp import Client, MCPError, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import TypeAdapter, ValidationError

from vgbench_gen.agent.schemas import (
    MAX_IMAGES,
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    MAX_TEXT,
    MAX_VALUES,
    META,
    ServedFacts,
    ToolName,
    clean_text,
    count_values,
    make_arguments,
)
from vgbench_gen.agent.setup import RemoteServer
from vgbench_gen.agent.tool import PassingToolError, Place, Tier, Tool, ToolError, ToolInput, ToolOptions, ToolOutput
from vgbench_gen.agent.workers import Turns
from vgbench_gen.backends.base import redact_tree, register_secret, split_address
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.surroundings import describe_proxy, find_proxy_variable
from vgbench_gen.store.pictures import read_image_size

MAX_TOOLS = 100
_CONNECT_S = 5.0
_ANNOUNCE_S = 20.0
_MARGIN_S = 5.0  # added to a tool's own limit for the transfer
_WAITS_S = (0.2, 1.0)  # waits before repeated tries, if a server refuses the connection or is busy
_PATIENCE_S = 1800.0  # the limit of a call, which includes waiting for calls before it
_SHOWN = 200  # the most characters of an error message that quotes a server
_NAME: TypeAdapter[str] = TypeAdapter(ToolName)
ResultT = TypeVar("ResultT")

for _name in ("client", "mcp.client", "mcp.shared"):  # they log the untrusted text of servers
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class _BoundedClient(httpx2.AsyncClient):
    """An HTTP client for one session: it bounds the bytes and JSON values of all replies, and records why they fail."""

    def __init__(self, name: str, url: str, token: str) -> None:
        through_proxy = find_proxy_variable(url)[1]
        super().__init__(
            headers={"accept-encoding": "identity"} | ({"authorization": f"Bearer {token}"} if token else {}),
            follow_redirects=False,  # another host must not get the token and the images
            trust_env=through_proxy,
            verify=True if through_proxy else httpx2.create_ssl_context(),
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
        )
        self._server, self._url = name, url
        self.problem = ""
        self.left_bytes, self.left_values = MAX_REPLY_BYTES, MAX_VALUES

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """The reply to a request, always as a bounded stream."""
        response = await self._send_repeatedly(request, {**options, "stream": True})
        status = response.status_code
        self.problem = "" if status < 300 else f"replies with status {status}"
        if status in (401, 403):
            self.problem = f"refuses the token (status {status})"
        if response.headers.get("content-encoding", "identity") != "identity":
            # A few compressed kilobytes may expand to gigabytes.
            await response.aclose()
            self.fail("compresses its reply although the request did not allow it")
        response.stream = _BoundedStream(response.stream, self)
        return response

    async def _send_repeatedly(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        for wait_s in (*_WAITS_S, None):
            try:
                response = await super().send(request, **options)
                if response.status_code != 503 or wait_s is None:
                    return response
                await response.aclose()
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if wait_s is None:
                    self.fail(f"cannot be reached{describe_proxy(self._url)}")
            except httpx2.HTTPError as error:
                self.fail(f"broke off ({type(error).__name__})")
            await asyncio.sleep(wait_s or 0)
        raise AssertionError("unreachable")

    def fail(self, problem: str) -> None:
        """Record why the server cannot be used.

        Raises:
            httpx2.StreamError: always.
        """
        self.problem = problem
        raise httpx2.StreamError(problem)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, client: _BoundedClient) -> None:
        self._stream, self._client = stream, client

    async def __aiter__(self) -> AsyncIterator[bytes]:
        client = self._client
        try:
            async for chunk in self._stream:
                client.left_bytes -= len(chunk)
                client.left_values -= count_values(chunk)
                if client.left_bytes < 0:
                    client.fail(f"replies with more than {MAX_REPLY_BYTES} bytes")
                if client.left_values < 0:
                    client.fail(f"replies with more than {MAX_VALUES} values")
                yield chunk
        except httpx2.HTTPError as error:
            client.fail(f"broke off ({type(error).__name__})")

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Link:
    """Connects to one server; it registers the token as a secret, so that messages cover it.

    Raises:
        ConfigError: the address has a user, query or fragment, or the named variable holds no token.
    """

    def __init__(self, name: str, server: RemoteServer) -> None:
        parts = split_address(server.url, f"[remote.{name}] url")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ConfigError(f"[remote.{name}] url: found user, query or fragment; expected none of them")
        self.name, self.url = name, server.url
        self._token = os.environ.get(server.token_env, "").strip() if server.token_env else ""
        if server.token_env and (not self._token.isascii() or not self._token.isprintable() or not self._token):
            raise ConfigError(
                f"[remote.{name}] token_env: found no token in the variable {server.token_env}; expected one in ASCII"
            )
        register_secret(self._token)
        self.turns = Turns(1)
        self._mode: Any = "auto"
        self._discovered: types.DiscoverResult | None = None

    async def exchange(self, do: Callable[[Client], Awaitable[ResultT]], limit_s: float) -> ResultT:
        """The result of `do`, run in a new session with the server.

        Raises:
            PassingToolError: the server cannot be reached, or breaks the protocol.
            TimeoutError: it takes longer than `limit_s`.
        """
        http = _BoundedClient(self.name, self.url, self._token)
        try:
            async with asyncio.timeout(limit_s), http:
                # Servers end old sessions by themselves; to end one here would cost one more request.
                streams = streamable_http_client(
                    self.url, http_client=http, terminate_on_close=False, max_sse_event_size=MAX_REPLY_BYTES
                )
                async with Client(streams, mode=self._mode, prior_discover=self._discovered, cache=None) as client:
                    result = await do(client)
                    # The next session reuses the discovered version of the protocol.
                    self._discovered = client.session.discover_result
                    self._mode = client.protocol_version if self._discovered else "legacy"
                    return result
        except TimeoutError:
            raise TimeoutError(f"the server {self.name} gave nothing in {limit_s:g} seconds") from None
        except Exception as error:
            why = http.problem or f"replies with something that cannot be read ({_describe(error)})"
            raise PassingToolError(f"the server {self.name} {why}") from None


def _describe(error: BaseException) -> str:
    """A protocol error in one line, without the server's token."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError) and error.code == types.PARSE_ERROR:  # it quotes the reply, perhaps part of a token
        return "no message of the protocol"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        error_text = f"{'.'.join(map(str, first['loc']))[:80]}: {first['msg']}"
    else:
        error_text = f"{type(error).__name__}: {error}"
    return make_one_line(str(redact_tree(error_text)))[:_SHOWN]


class _RemoteTool(Tool):
    tier: ClassVar[Tier] = "remote"
    runs: ClassVar[Place] = "here"
    timeout_s = _PATIENCE_S
    facts: ClassVar[ServedFacts]
    link: ClassVar[_Link]
    is_ours: ClassVar[bool]
    """Whether its server announces `ServedFacts`, and so sends the tool's state with each result."""

    def describe_state(self, options: ToolOptions) -> str:
        return self.facts.state  # without the address, so that kept results outlive a move of the server

    async def run_here(self, inputs: ToolInput) -> ToolOutput:
        """As `Tool.run_here`; the images replace their names in the arguments."""
        arguments = inputs.arguments.model_dump(mode="json", exclude_unset=True)
        images = [base64.b64encode(image.data).decode() for image in inputs.images]
        if images:
            arguments["image"] = images[0] if isinstance(arguments["image"], str) else images
        if len(images) > MAX_IMAGES or len(text := json.dumps(arguments, allow_nan=False)) > MAX_REQUEST_BYTES:
            raise ToolError(
                f"{self.name}: {len(images)} images are too many or too large; at most {MAX_IMAGES} in "
                f"{MAX_REQUEST_BYTES} bytes"
            )
        params = types.CallToolRequestParams(name=self.name, arguments=json.loads(text))
        request = types.CallToolRequest(params=params)
        async with self.link.turns.take():
            # `call_tool` would fetch the server's schemas and validate by them.
            result = await self.link.exchange(
                lambda client: client.session.send_request(request, types.CallToolResult),
                self.facts.timeout_s + _MARGIN_S,
            )
        return self._read_result(result)

    def _read_result(self, result: types.CallToolResult) -> ToolOutput:
        meta = (result.meta or {}).get(META)
        meta = meta if isinstance(meta, Mapping) else {}
        if (self.is_ours or meta) and meta.get("state") != self.facts.state:
            raise PassingToolError(f"{self.name} has changed on its server since this agent began; start it again")
        text = "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))
        if result.is_error:
            message = make_one_line(str(redact_tree(text)))[:MAX_TEXT] or f"{self.name} failed on its server"
            kinds = {"timeout": TimeoutError, "tool_error": ToolError, "wrong_arguments": ToolError}
            raise kinds.get(str(meta.get("failure")), PassingToolError)(message)
        values = result.structured_content
        if not isinstance(values, dict):
            values = _read_object(text)
        images = [part.data for part in result.content if isinstance(part, types.ImageContent)]
        if len(images) > MAX_IMAGES:
            raise PassingToolError(f"the server {self.link.name} gives {len(images)} images; at most {MAX_IMAGES}")
        return ToolOutput(redact_tree(values), tuple(map(self._decode_image, images)))

    def _decode_image(self, text: str) -> bytes:
        try:
            data = base64.b64decode(text, validate=True)
            read_image_size(data, "an image")
        except (binascii.Error, ValueError, DatasetError):
            raise PassingToolError(f"the server {self.link.name} gives an image that is no JPEG or PNG") from None
        return data


def _read_object(text: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        if isinstance(values := json.loads(text), dict):
            return values
    return {"text": text}


def connect(servers: Mapping[str, RemoteServer]) -> list[Tool]:
    """The tools that servers announce, as tools of this agent. servers: by their names in the setup file.

    Raises:
        ConfigError: a server cannot be reached, refuses the token, or announces an unusable tool.
    """
    return [tool for name, server in servers.items() for tool in _fetch(_Link(name, server))]


def _fetch(link: _Link) -> list[Tool]:
    where = f"[remote.{link.name}] {link.url}"
    try:
        # In another thread, because an event loop may be running in this one.
        with ThreadPoolExecutor(1) as pool:
            announced = pool.submit(asyncio.run, link.exchange(_list_tools, _ANNOUNCE_S)).result()
    except (PassingToolError, TimeoutError) as error:
        raise ConfigError(f"{where}: {error}. Start the server, or leave its table out.") from None
    if len(announced) > MAX_TOOLS:
        raise ConfigError(f"{where}: found more than {MAX_TOOLS} tools; expected fewer")
    tools: dict[str, Tool] = {}
    for description in announced:
        try:
            tool = _make_tool(link, types.Tool.model_validate(redact_tree(description.model_dump(by_alias=True))))
        except ValueError as error:
            raise ConfigError(f"{where}: {description.name[:60]!a}: cannot be used: {_describe(error)!a}") from None
        if tool.name in tools:
            raise ConfigError(f"{where}: announces two tools of the name {tool.name}")
        tools[tool.name] = tool
    return list(tools.values())


async def _list_tools(client: Client) -> list[types.Tool]:
    listed: list[types.Tool] = []
    cursor = None
    while len(listed) <= MAX_TOOLS:
        page = await client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        listed += page.tools
        if (cursor := page.next_cursor) is None:
            break
    return listed


def _make_tool(link: _Link, announced: types.Tool) -> Tool:
    """A tool of this agent.

    Raises:
        ValueError: its name, its texts or its schema cannot be used.
    """
    meta: Any = (announced.meta or {}).get(META)
    is_ours = meta is not None
    if meta is None:
        outputs = (announced.output_schema or {}).get("properties") or {}
        returns = {key: str(schema.get("description", "")) for key, schema in outputs.items()}
        version = hash_stably(json.dumps(announced.model_dump(mode="json"), sort_keys=True), size=8)
        meta = {"does": announced.description or announced.name, "returns": returns or {"text": "what it says"}}
        meta |= {"state": version}
    if not isinstance(meta, dict):
        raise ValueError(f"expected an object as {META} in its _meta")
    facts = ServedFacts.model_validate_json(json.dumps({**meta, "does": clean_text(meta.get("does"))}))
    name = _NAME.validate_python(announced.name)
    members = {
        "key": f"remote:{name}",
        "name": name,
        **{member: getattr(facts, member) for member in ("aliases", "argument_aliases", "does", "returns", "example")},
        "Arguments": make_arguments(name, announced.input_schema, facts.image),
        "facts": facts,
        "link": link,
        "is_ours": is_ours,
    }
    link.turns = Turns(facts.workers)
    made: type[Tool] = type(name, (_RemoteTool,), members)
    return made()
