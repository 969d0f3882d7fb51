"""Tools of other servers, by the HTTP protocol of `docs/agent.md#servers`, as tools of this agent.

What a server sends is foreign: its size is bounded while it is read, redirects are not followed, nothing in it is a
path, and its token is covered wherever the server repeats it. A server that is down, slow or changed costs the
observation (`PassingToolError`), which is not kept.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar
from weakref import WeakKeyDictionary

import httpx2
from pydantic import ValidationError

from vgbench_gen.agent.announced import (
    MAX_ANNOUNCEMENT_BYTES,
    MAX_IMAGES,
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    AnnouncedTool,
    Announcement,
    CallReply,
    ConfigT,
    make_arguments,
    read_message,
)
from vgbench_gen.agent.setup import RemoteServer
from vgbench_gen.agent.tool import (
    PassingToolError,
    Place,
    Tier,
    Tool,
    ToolError,
    ToolInput,
    ToolOutput,
    list_image_names,
)
from vgbench_gen.backends.base import redact_tree, register_secret, split_address
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.core.surroundings import describe_proxy, find_proxy_variable
from vgbench_gen.store.pictures import read_image_size

_CONNECT_S = 5.0
_ANNOUNCE_S = 20.0
_MARGIN_S = 5.0  # on top of a tool's own limit, for the way there and back
_WAITS_S = (0.2, 1.0)  # before each further try to reach a server that refuses the connection or is busy
_PATIENCE_S = 1800.0  # until a call has its turn


class _Link:
    """How a server is reached. Holds its token, which shows in nothing that is printed.

    Raises:
        ConfigError: no address without user, query and fragment, or no token where one is named.
    """

    def __init__(self, name: str, server: RemoteServer) -> None:
        parts = split_address(server.url, f"[remote.{name}] url")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ConfigError(f"[remote.{name}] url: found user, query or fragment; expected none of them")
        self.name, self.url = name, server.url.rstrip("/")
        self._token = os.environ.get(server.token_env, "").strip() if server.token_env else ""
        if server.token_env and (not self._token.isascii() or not self._token.isprintable() or not self._token):
            raise ConfigError(
                f"[remote.{name}] token_env: found no token in the variable {server.token_env}; expected one in ASCII"
            )
        register_secret(self._token)
        self.workers = 1
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def wait_turn(self) -> asyncio.Semaphore:
        """Lets as many calls through as the server works on at once; a call's own limit starts then."""
        loop = asyncio.get_running_loop()
        return self._turns.setdefault(loop, asyncio.Semaphore(self.workers))

    async def exchange(
        self, method: str, path: str, sent: bytes, model: type[ConfigT], most_bytes: int, limit_s: float
    ) -> ConfigT:
        """What the server replies with.

        Raises:
            PassingToolError: it cannot be reached, or replies with something else.
            ValidationError: it replies with JSON of another form.
            TimeoutError: it takes longer than `limit_s`.
        """
        try:
            async with asyncio.timeout(limit_s):
                status, body = await self._try_often(method, path, sent, most_bytes)
                return await asyncio.to_thread(self._read, status, body, model)
        except TimeoutError:
            raise TimeoutError(f"the server {self.name} gave nothing in {limit_s:g} seconds") from None

    async def _try_often(self, method: str, path: str, sent: bytes, most_bytes: int) -> tuple[int, bytes]:
        for wait_s in (*_WAITS_S, None):
            try:
                status, body = await self._send(method, path, sent, most_bytes)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if wait_s is None:
                    raise PassingToolError(
                        f"the server {self.name} cannot be reached{describe_proxy(self.url)}"
                    ) from None
            except httpx2.HTTPError as error:
                raise PassingToolError(f"the server {self.name} broke off ({type(error).__name__})") from None
            else:
                if status != 503 or wait_s is None:
                    return status, body
            await asyncio.sleep(wait_s)
        raise AssertionError("unreachable")

    async def _send(self, method: str, path: str, sent: bytes, most_bytes: int) -> tuple[int, bytes]:
        headers = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        through_proxy = find_proxy_variable(self.url)[1]
        client = httpx2.AsyncClient(
            follow_redirects=False,  # elsewhere the token and the images have no business
            trust_env=through_proxy,
            verify=True if through_proxy else httpx2.create_ssl_context(),
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
        )
        async with client, client.stream(method, f"{self.url}{path}", content=sent, headers=headers) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                # A few packed kilobytes may unfold to gigabytes, and it was not asked for.
                raise PassingToolError(f"the server {self.name} packs its reply although that was not allowed")
            data = bytearray()
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) > most_bytes:
                    raise PassingToolError(f"the server {self.name} replies with more than {most_bytes} bytes")
            return response.status_code, bytes(data)

    def _read(self, status: int, body: bytes, model: type[ConfigT]) -> ConfigT:
        if status in (401, 403):
            raise PassingToolError(f"the server {self.name} refuses the token (status {status})")
        if status != 200:
            raise PassingToolError(f"the server {self.name} replies with status {status}; expected 200")
        try:
            return read_message(body, model, redact_tree)
        except ValidationError:
            raise
        except ValueError as error:
            raise PassingToolError(f"the server {self.name} replies with no JSON that can be read ({error})") from None


class _RemoteTool(Tool):
    tier: ClassVar[Tier] = "remote"
    runs: ClassVar[Place] = "here"
    timeout_s = _PATIENCE_S
    told: ClassVar[AnnouncedTool]
    link: ClassVar[_Link]

    def describe_state(self, options: Config) -> str:
        """Version and checksum as announced; not the address, so that results outlast a move of the server."""
        return format_canonical_json([self.told.version, self.told.checksum])

    def run(self, given: ToolInput) -> ToolOutput:
        """Never called."""
        raise ToolError(f"{self.name} runs on a server")

    async def run_here(self, given: ToolInput) -> ToolOutput:
        """See `Tool.run_here`."""
        names = list_image_names(given.arguments)
        arguments = given.arguments.model_dump(mode="json")
        if names:
            numbered = [f"image-{k}" for k in range(len(names))]
            arguments["image"] = numbered[0] if isinstance(arguments["image"], str) else numbered
        images = [base64.b64encode(image.data).decode() for image in given.images]
        sent = json.dumps({"arguments": arguments, "images": images}, allow_nan=False).encode()
        if len(images) > MAX_IMAGES or len(sent) > MAX_REQUEST_BYTES:
            raise ToolError(
                f"{self.name}: {len(images)} images in {len(sent)} bytes are too many; at most {MAX_IMAGES} in "
                f"{MAX_REQUEST_BYTES}"
            )
        async with self.link.wait_turn():
            limit_s = self.told.timeout_s + _MARGIN_S
            try:
                reply = await self.link.exchange(
                    "POST", f"/tools/{self.name}", sent, CallReply, MAX_REPLY_BYTES, limit_s
                )
            except ValidationError:
                raise PassingToolError(f"the server {self.link.name} gives a reply of another form") from None
        return self._open(reply)

    def _open(self, reply: CallReply) -> ToolOutput:
        if (reply.version, reply.checksum) != (self.told.version, self.told.checksum):
            raise PassingToolError(f"{self.name} has changed on its server since this agent began; start it again")
        said = make_one_line(reply.message)
        match reply.failure:
            case "timeout":
                raise TimeoutError(said or f"{self.name} took too long on its server")
            case "crash":
                raise PassingToolError(said or f"{self.name} crashed on its server")
            case "tool_error" | "wrong_arguments":
                raise ToolError(said or f"{self.name} failed on its server")
        images = []
        for k, text in enumerate(reply.images, 1):
            try:
                data = base64.b64decode(text, validate=True)
                read_image_size(data, f"image {k}")
            except (binascii.Error, ValueError, DatasetError):
                raise PassingToolError(f"the server {self.link.name} gives an image that is no JPEG or PNG") from None
            images.append(data)
        return ToolOutput(reply.values, tuple(images))


def connect(servers: Mapping[str, RemoteServer]) -> list[Tool]:
    """The tools that servers announce, as tools of this agent, server by server.

    Args:
        servers: by the names that the setup file gives them.

    Raises:
        ConfigError: a server cannot be reached, refuses the token, or announces something that cannot be used.
    """
    found: list[Tool] = []
    for name, server in servers.items():
        link = _Link(name, server)
        found += _make_tools(link, _fetch(link))
    return found


def _fetch(link: _Link) -> Announcement:
    where = f"[remote.{link.name}] {link.url}"
    try:
        # In a thread of its own, because an event loop may be running in this one.
        with ThreadPoolExecutor(1) as pool:
            exchange = link.exchange("GET", "/tools", b"", Announcement, MAX_ANNOUNCEMENT_BYTES, _ANNOUNCE_S)
            return pool.submit(asyncio.run, exchange).result()
    except (PassingToolError, TimeoutError) as error:
        raise ConfigError(f"{where}: {error}. Start the server, or leave its table out.") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{where}: its list of tools cannot be used: {place[:80]!a}: {first['msg']!a:.200}") from None


def _make_tools(link: _Link, announced: Announcement) -> list[Tool]:
    link.workers = announced.workers
    made: dict[str, Tool] = {}
    for told in announced.tools:
        try:
            arguments = make_arguments(told)
        except ValueError as error:
            raise ConfigError(f"[remote.{link.name}] {link.url}: {told.name}: {error!s:.200}") from None
        if told.name in made:
            raise ConfigError(f"[remote.{link.name}] {link.url}: announces two tools of the name {told.name}")
        members = {
            "name": told.name,
            "aliases": told.aliases,
            "argument_aliases": told.argument_aliases,
            "does": told.does,
            "Arguments": arguments,
            "returns": told.returns,
            "example": told.example,
            "told": told,
            "link": link,
        }
        made[told.name] = type(told.name, (_RemoteTool,), members)()
    return list(made.values())
