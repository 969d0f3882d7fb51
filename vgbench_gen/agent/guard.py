"""Protects an HTTP server of tools from its callers.

Request bodies are bounded in size and time, a loopback server accepts only loopback Host names, browsers are refused,
and a server that other machines can reach requires a token.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vgbench_gen.agent.schemas import MAX_REQUEST_BYTES, MAX_VALUES, count_values
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.local_server import LOOPBACK, is_same_secret, name_host, read_body

BODY_S = 30.0  # the time within which a request body must arrive
MAX_HELD_BYTES = 128 << 20  # total size of current requests and answers; a call takes three times its own size
_PIECE_BYTES = 1 << 16
_BUSY = PlainTextResponse("The server is busy.", 503, {"connection": "close"})


class ToolGuard:
    """ASGI middleware that refuses callers, bounds the memory of requests, and cancels work when its caller hangs up.

    The application gets the whole body of a request, after its size and its number of JSON values were checked.

    Args:
        app: the guarded application.
        token: the bearer token that callers must send; "" for none.
        any_host: whether any Host header is accepted; this needs a token.

    Raises:
        ConfigError: any host without a token.
    """

    def __init__(self, app: ASGIApp, token: str = "", any_host: bool = False) -> None:
        if any_host and not token:
            raise ConfigError("a server that others can reach needs a token: name its variable with --token-env")
        self.app, self._token, self._any_host = app, token, any_host
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            with ExitStack() as reserved:
                await self._serve(scope, receive, send, reserved)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, reserved: ExitStack) -> None:
        headers, bodies = Headers(scope=scope), list[bytes]()
        app = self._find_refusal(headers) or await self._read(headers, receive, bodies, reserved) or self.app
        answered = False

        async def receive_whole() -> Message:
            return {"type": "http.request", "body": bodies.pop()} if bodies else await receive()

        async def send_safe(message: Message) -> None:
            nonlocal answered
            if answered:  # the rest of an answer that was replaced by "busy"
                return
            body = message.get("body", b"")
            answered = message["type"] == "http.response.body" and not message.get("more_body")
            if message["type"] == "http.response.start":
                answer_headers = MutableHeaders(scope=message)
                answer_headers["cache-control"] = "no-store"
                answer_headers["x-content-type-options"] = "nosniff"
                answer_headers["connection"] = "close"  # an idle connection would occupy the server
                if not self._reserve(int(answer_headers.get("content-length", 0)), reserved):
                    answered = True
                    await _BUSY(scope, receive, send)
                    return
            # Each piece waits until the caller has taken most of the last one.
            last = max(0, len(body) - 1) // _PIECE_BYTES * _PIECE_BYTES
            for k in range(0, last, _PIECE_BYTES):
                await send({**message, "body": body[k : k + _PIECE_BYTES], "more_body": True})
            await send({**message, "body": body[last:]} if body else message)

        answer = asyncio.ensure_future(app(scope, receive_whole, send_safe))
        gone = asyncio.ensure_future(_wait_until_gone(receive))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if answered or answer.done():
                await answer
        finally:
            answer.cancel()
            gone.cancel()

    def _find_refusal(self, headers: Headers) -> Response | None:
        if not self._any_host and name_host(headers.get("host", "")) not in LOOPBACK:
            return PlainTextResponse("This server does not answer to that Host name.", 421)
        if "origin" in headers or "sec-fetch-site" in headers:
            return PlainTextResponse("This server is not for browsers.", 403)
        if self._token:
            scheme, _, token = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not is_same_secret(token.strip(), self._token):
                return PlainTextResponse("Expected the server's token: Authorization: Bearer TOKEN", 401)
        return None

    async def _read(
        self, headers: Headers, receive: Receive, bodies: list[bytes], reserved: ExitStack
    ) -> Response | None:
        """Read the body into a list; the answer that refuses it, or None."""
        length = int(headers.get("content-length", MAX_REQUEST_BYTES if "transfer-encoding" in headers else 0))
        if length <= MAX_REQUEST_BYTES and not self._reserve(length, reserved):
            return _BUSY
        try:
            body = None if length > MAX_REQUEST_BYTES else await read_body(receive, length, BODY_S)
        except TimeoutError:
            return PlainTextResponse("The body did not come in time.", 408)
        if body is None:
            return PlainTextResponse(f"Expected at most {MAX_REQUEST_BYTES} bytes.", 413)
        if count_values(body) > MAX_VALUES:
            return PlainTextResponse(f"Expected at most {MAX_VALUES} values in JSON.", 400)
        bodies.append(body)
        return None

    def _reserve(self, size_bytes: int, reserved: ExitStack) -> bool:
        """Reserve memory until the exchange ends; False if there is not enough."""
        if self._held_bytes + size_bytes > MAX_HELD_BYTES:
            return False
        self._held_bytes += size_bytes
        reserved.callback(self._release, size_bytes)
        return True

    def _release(self, size_bytes: int) -> None:
        self._held_bytes -= size_bytes


async def _wait_until_gone(receive: Receive) -> None:
    """Return when the caller hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
