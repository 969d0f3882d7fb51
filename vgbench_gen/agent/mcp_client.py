"""Tools of other servers, by the Model Context Protocol over HTTP (`docs/agent.md#servers`), as tools of this agent.

What a server sends is foreign: its size is bounded while it is read, redirects to other hosts are not followed, nothing
in it is a path, and its token is covered wherever the server repeats it. A server that is down, slow or changed costs
the observation (`PassingToolError`), which is not kept. Every call is a session of its own, so none outlives its call.
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
_MARGIN_S = 5.0  # on top of a tool's own limit, for the way there and back
_WAITS_S = (0.2, 1.0)  # before each further try to reach a server that refuses the connection or is busy
_PATIENCE_S = 1800.0  # until a call has its turn
_SHOWN = 200  # characters of a problem that a server's words are part of
_NAME: TypeAdapter[str] = TypeAdapter(ToolName)
ResultT = TypeVar("ResultT")

for _name in ("client", "mcp.client", "mcp.shared"):  # they log what a server sent, which may be anything
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class _BoundedClient(httpx2.AsyncClient):
    """Reads at most so many bytes and values in its life, unpacked, and notes why a server is of no use."""

    def __init__(self, name: str, url: str, token: str) -> None:
        through_proxy = find_proxy_variable(url)[1]
        super().__init__(
            headers={"accept-encoding": "identity"} | ({"authorization": f"Bearer {token}"} if token else {}),
            follow_redirects=False,  # elsewhere the token and the images have no business
            trust_env=through_proxy,
            verify=True if through_proxy else httpx2.create_ssl_context(),
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
        )
        self._server, self._url = name, url
        self.problem = ""
        self.left_bytes, self.left_values = MAX_REPLY_BYTES, MAX_VALUES

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """The reply to a request, always as a stream."""
        response = await self._send_often(request, {**options, "stream": True})
        status = response.status_code
        self.problem = "" if status < 300 else f"replies with status {status}"
        if status in (401, 403):
            self.problem = f"refuses the token (status {status})"
        if response.headers.get("content-encoding", "identity") != "identity":
            # A few packed kilobytes may unfold to gigabytes, and it was not asked for.
            await response.aclose()
            self.fail("packs its reply although that was not allowed")
        response.stream = _BoundedStream(response.stream, self)
        return response

    async def _send_often(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
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
        """Note why the server is of no use.

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
    """How a server is reached. Holds its token, which shows in nothing that is printed.

    Raises:
        ConfigError: no address without user, query and fragment, or no token where one is named.
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
        """What `do` gets from the server in a session of its own.

        Raises:
            PassingToolError: the server cannot be reached, or replies with something else.
            TimeoutError: it takes longer than `limit_s`.
        """
        http = _BoundedClient(self.name, self.url, self._token)
        try:
            async with asyncio.timeout(limit_s), http:
                # Sessions of old servers end by themselves; to end one is one more reply to wait for.
                streams = streamable_http_client(
                    self.url, http_client=http, terminate_on_close=False, max_sse_event_size=MAX_REPLY_BYTES
                )
                async with Client(streams, mode=self._mode, prior_discover=self._discovered, cache=None) as client:
                    found = await do(client)
                    # The next session begins where this one has come to, without asking again.
                    self._discovered = client.session.discover_result
                    self._mode = client.protocol_version if self._discovered else "legacy"
                    return found
        except TimeoutError:
            raise TimeoutError(f"the server {self.name} gave nothing in {limit_s:g} seconds") from None
        except Exception as error:
            why = http.problem or f"replies with something that cannot be read ({_describe(error)})"
            raise PassingToolError(f"the server {self.name} {why}") from None


def _describe(error: BaseException) -> str:
    """A failure of the protocol in a line, without the server's token."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError) and error.code == types.PARSE_ERROR:  # it quotes the reply, perhaps half a token
        return "no message of the protocol"
    if isinstance(error, ValidationError):
        found = error.errors(include_url=False, include_input=False, include_context=False)[0]
        error_text = f"{'.'.join(map(str, found['loc']))[:80]}: {found['msg']}"
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
    """Whether its server says `ServedFacts`, and so with each result what it hangs on."""

    def describe_state(self, options: ToolOptions) -> str:
        """As announced; not the address, so that results outlast a move of the server."""
        return self.facts.state

    async def run_here(self, given: ToolInput) -> ToolOutput:
        """As `Tool.run_here`; images are sent in the place of their names."""
        arguments = given.arguments.model_dump(mode="json", exclude_unset=True)
        images = [base64.b64encode(image.data).decode() for image in given.images]
        if images:
            arguments["image"] = images[0] if isinstance(arguments["image"], str) else images
        if len(images) > MAX_IMAGES or len(sent := json.dumps(arguments, allow_nan=False)) > MAX_REQUEST_BYTES:
            raise ToolError(
                f"{self.name}: {len(images)} images are too many or too large; at most {MAX_IMAGES} in "
                f"{MAX_REQUEST_BYTES} bytes"
            )
        params = types.CallToolRequestParams(name=self.name, arguments=json.loads(sent))
        request = types.CallToolRequest(params=params)
        async with self.link.turns.take():
            # Not by `call_tool`, which fetches schemas of the server and has them run.
            result = await self.link.exchange(
                lambda client: client.session.send_request(request, types.CallToolResult),
                self.facts.timeout_s + _MARGIN_S,
            )
        return self._open(result)

    def _open(self, result: types.CallToolResult) -> ToolOutput:
        told = (result.meta or {}).get(META)
        told = told if isinstance(told, Mapping) else {}
        if (self.is_ours or told) and told.get("state") != self.facts.state:
            raise PassingToolError(f"{self.name} has changed on its server since this agent began; start it again")
        text = "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))
        if result.is_error:
            said = make_one_line(str(redact_tree(text)))[:MAX_TEXT] or f"{self.name} failed on its server"
            match told.get("failure"):
                case "timeout":
                    raise TimeoutError(said)
                case "tool_error" | "wrong_arguments":
                    raise ToolError(said)
            raise PassingToolError(said)
        values = result.structured_content
        if not isinstance(values, dict):
            values = _read_object(text)
        images = [part.data for part in result.content if isinstance(part, types.ImageContent)]
        if len(images) > MAX_IMAGES:
            raise PassingToolError(f"the server {self.link.name} gives {len(images)} images; at most {MAX_IMAGES}")
        return ToolOutput(redact_tree(values), tuple(map(self._open_image, images)))

    def _open_image(self, text: str) -> bytes:
        try:
            data = base64.b64decode(text, validate=True)
            read_image_size(data, "an image")
        except (binascii.Error, ValueError, DatasetError):
            raise PassingToolError(f"the server {self.link.name} gives an image that is no JPEG or PNG") from None
        return data


def _read_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"text": text}


def connect(servers: Mapping[str, RemoteServer]) -> list[Tool]:
    """The tools that servers announce, as tools of this agent, server by server.

    Args:
        servers: by the names that the setup file gives them.

    Raises:
        ConfigError: a server cannot be reached, refuses the token, or announces something that cannot be used.
    """
    return [tool for name, server in servers.items() for tool in _fetch(_Link(name, server))]


def _fetch(link: _Link) -> list[Tool]:
    where = f"[remote.{link.name}] {link.url}"
    try:
        # In a thread of its own, because an event loop may be running in this one.
        with ThreadPoolExecutor(1) as pool:
            announced = pool.submit(asyncio.run, link.exchange(_list_tools, _ANNOUNCE_S)).result()
    except (PassingToolError, TimeoutError) as error:
        raise ConfigError(f"{where}: {error}. Start the server, or leave its table out.") from None
    if len(announced) > MAX_TOOLS:
        raise ConfigError(f"{where}: found more than {MAX_TOOLS} tools; expected fewer")
    made: dict[str, Tool] = {}
    for told in announced:
        try:
            tool = _make_tool(link, types.Tool.model_validate(redact_tree(told.model_dump(by_alias=True))))
        except ValueError as error:
            raise ConfigError(f"{where}: {told.name[:60]!a}: cannot be used: {_describe(error)!a}") from None
        if tool.name in made:
            raise ConfigError(f"{where}: announces two tools of the name {tool.name}")
        made[tool.name] = tool
    return list(made.values())


async def _list_tools(client: Client) -> list[types.Tool]:
    found: list[types.Tool] = []
    cursor = None
    while len(found) <= MAX_TOOLS:
        page = await client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        found += page.tools
        if (cursor := page.next_cursor) is None:
            break
    return found


def _make_tool(link: _Link, told: types.Tool) -> Tool:
    """A tool of this agent.

    Raises:
        ValueError: its name, its texts or its schema cannot be used.
    """
    facts: Any = (told.meta or {}).get(META)
    is_ours = facts is not None
    if facts is None:
        shown = (told.output_schema or {}).get("properties")
        returns = {key: str(about.get("description", "")) for key, about in shown.items()} if shown else {}
        version = hash_stably(json.dumps(told.model_dump(mode="json"), sort_keys=True), size=8)
        facts = {"does": told.description or told.name, "returns": returns or {"text": "what it says"}}
        facts |= {"state": version}
    if not isinstance(facts, dict):
        raise ValueError(f"expected an object as {META} in its _meta")
    read = ServedFacts.model_validate_json(json.dumps({**facts, "does": clean_text(facts.get("does"))}))
    name = _NAME.validate_python(told.name)
    members = {
        "key": f"remote:{name}",
        "name": name,
        "aliases": read.aliases,
        "argument_aliases": read.argument_aliases,
        "does": read.does,
        "Arguments": make_arguments(name, told.input_schema, read.image),
        "returns": read.returns,
        "example": read.example,
        "facts": read,
        "link": link,
        "is_ours": is_ours,
    }
    link.turns = Turns(read.workers)
    made: type[Tool] = type(name, (_RemoteTool,), members)
    return made()
