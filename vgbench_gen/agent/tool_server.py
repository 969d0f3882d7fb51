"""The tools of this installation for other programs, by the HTTP protocol of `docs/agent.md#servers`.

Callers are foreign: bodies are bounded and must come in time, a Host must be ours on the loopback interface, browsers
are turned away, and what others can reach asks for a token. Images come as bytes; no argument is a path.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Sequence

from pydantic import ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vgbench_gen import __version__
from vgbench_gen.agent.announced import (
    MAX_IMAGES,
    MAX_REQUEST_BYTES,
    AnnouncedTool,
    Announcement,
    CallReply,
    CallRequest,
    announce_tool,
)
from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.tool import Tool, find_key
from vgbench_gen.agent.toolbox import Observation, Toolbox
from vgbench_gen.core.errors import ConfigError, DatasetError, VGBenchError
from vgbench_gen.core.local_server import LOOPBACK, is_same_secret, name_host, read_body

BODY_S = 30.0  # within which the body of a request must come
SERVED_TIERS = ("utility", "classical", "weights")
_PATH = re.compile(r"/tools/([A-Za-z][A-Za-z0-9_]{0,59})")


def choose_served(chosen: Sequence[Tool]) -> list[Tool]:
    """Those that need neither an agent's own model nor its evidence nor a further server."""
    return [tool for tool in chosen if tool.tier in SERVED_TIERS and not tool.by_core and not tool.core_query]


class ServedTools:
    """Tools as they are announced and called, whatever the protocol.

    Args:
        toolbox: of tools that `choose_served` lets through.
        workers: how many calls it runs at once.
    """

    def __init__(self, toolbox: Toolbox, workers: int) -> None:
        self.toolbox = toolbox
        states = toolbox.describe_state()
        told = {name: announce_tool(tool, states[find_key(tool)]) for name, tool in toolbox.tools.items()}
        self.announced: dict[str, AnnouncedTool] = told
        self.announcement = Announcement(
            protocol=1, server=f"vgbench {__version__}", workers=workers, tools=tuple(told.values())
        )

    async def call(self, name: str, arguments: dict[str, object], images: Sequence[bytes]) -> Observation:
        """What a call gives.

        Raises:
            DatasetError: an image is no readable JPEG or PNG.
        """
        book = await asyncio.to_thread(ImageBook, images)
        read = self.toolbox.read(ToolCall(name, arguments), book)
        if isinstance(read, Observation):
            return read
        try:
            return await self.toolbox.call(*read, book)
        except VGBenchError as error:  # its weights cannot be loaded
            return Observation(name, arguments, failure="crash", message=str(error))


class ToolGuard:
    """ASGI middleware: who may call.

    Args:
        app: what is guarded.
        token: that callers must know; "" for none.
        any_host: whether it may be called by any name; sensible with a token alone.

    Raises:
        ConfigError: any host without a token.
    """

    def __init__(self, app: ASGIApp, token: str = "", any_host: bool = False) -> None:
        if any_host and not token:
            raise ConfigError("a server that others can reach needs a token: name its variable with --token-env")
        self.app, self._token, self._any_host = app, token, any_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                found["cache-control"] = "no-store"
                found["x-content-type-options"] = "nosniff"
                found["connection"] = "close"  # so that an idle connection holds no place
            await send(message)

        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await (self._find_refusal(scope) or self.app)(scope, receive, send_safe)

    def _find_refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._any_host and name_host(headers.get("host", "")) not in LOOPBACK:
            return PlainTextResponse("This server is not called that.", 421)
        if "origin" in headers or "sec-fetch-site" in headers:
            return PlainTextResponse("This server is not for browsers.", 403)
        if self._token:
            kind, _, given = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not is_same_secret(given.strip(), self._token):
                return PlainTextResponse("Expected the server's token: Authorization: Bearer TOKEN", 401)
        return None


class ToolServer:
    """The protocol as an ASGI application; it stands behind a `ToolGuard`.

    Args:
        served: what is offered.
    """

    def __init__(self, served: ServedTools) -> None:
        self.served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        try:
            answer = await self._answer(scope, receive)
        except TimeoutError:
            answer = PlainTextResponse("The body did not come in time.", 408)
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        path, method = scope["path"], scope["method"]
        if path == "/tools":
            if method != "GET":
                return PlainTextResponse("Only GET.", 405)
            return JSONResponse(self.served.announcement.model_dump(mode="json"))
        match = _PATH.fullmatch(path)
        told = self.served.announced.get(match[1]) if match else None
        if told is None:
            return PlainTextResponse("There is no such tool. GET /tools lists them.", 404)
        if method != "POST":
            return PlainTextResponse("Only POST.", 405)
        headers = Headers(scope=scope)
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return PlainTextResponse("Expected application/json.", 415)
        length = headers.get("content-length", "")
        too_large = length.isascii() and length.isdecimal() and int(length[:20]) > MAX_REQUEST_BYTES
        body = None if too_large else await read_body(receive, MAX_REQUEST_BYTES, BODY_S)
        if body is None:
            return PlainTextResponse(f"Expected at most {MAX_REQUEST_BYTES} bytes.", 413)
        return await self._call(told, body)

    async def _call(self, told: AnnouncedTool, body: bytes) -> Response:
        try:
            given = await asyncio.to_thread(CallRequest.model_validate_json, body)
            images = [base64.b64decode(text, validate=True) for text in given.images]
            seen = await self.served.call(told.name, given.arguments, images)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in found["loc"]) or "body"
            return PlainTextResponse(f"{place[:100]}: {found['msg'][:200]}", 400)
        except (binascii.Error, ValueError, DatasetError):
            return PlainTextResponse(f"images: expected at most {MAX_IMAGES} JPEG or PNG in base64.", 400)
        reply = CallReply(
            values=dict(seen.values),
            images=tuple(base64.b64encode(data).decode() for data in seen.images),
            failure=seen.failure,  # type: ignore[arg-type]  # `told` is a tool, so it is never an unknown one
            message=seen.message,
            version=told.version,
            checksum=told.checksum,
        )
        return JSONResponse(reply.model_dump(mode="json"))
