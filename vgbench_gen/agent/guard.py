"""What stands before a server of tools on HTTP.

Callers are foreign: bodies are bounded and must come in time, a Host must be ours on the loopback interface, browsers
are turned away, and what others can reach asks for a token.
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

BODY_S = 30.0  # within which the body of a request must come
MAX_HELD_BYTES = 128 << 20  # of all requests and answers under way; a call takes three times that of both
_PIECE_BYTES = 1 << 16
_BUSY = PlainTextResponse("The server is busy.", 503, {"connection": "close"})


class ToolGuard:
    """ASGI middleware: who may call, how much is held at once, and that work ends with its caller.

    The application gets the body of a request whole, its size and the number of its values checked.

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
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            with ExitStack() as held:
                await self._serve(scope, receive, send, held)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, held: ExitStack) -> None:
        headers = Headers(scope=scope)
        refusal, given = self._find_refusal(headers), list[bytes]()
        app = refusal or await self._read(headers, receive, given, held) or self.app
        answered = False

        async def receive_whole() -> Message:
            return {"type": "http.request", "body": given.pop()} if given else await receive()

        async def send_safe(message: Message) -> None:
            nonlocal answered
            if answered:  # what there was no room for
                return
            body = message.get("body", b"")
            answered = message["type"] == "http.response.body" and not message.get("more_body")
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                found["cache-control"] = "no-store"
                found["x-content-type-options"] = "nosniff"
                found["connection"] = "close"  # so that an idle connection holds no place
                if not self._hold(int(found.get("content-length", 0)), held):
                    answered = True
                    await _BUSY(scope, receive, send)
                    return
            # In pieces, each of which waits until most of the last one was taken.
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
            return PlainTextResponse("This server is not called that.", 421)
        if "origin" in headers or "sec-fetch-site" in headers:
            return PlainTextResponse("This server is not for browsers.", 403)
        if self._token:
            kind, _, given = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not is_same_secret(given.strip(), self._token):
                return PlainTextResponse("Expected the server's token: Authorization: Bearer TOKEN", 401)
        return None

    async def _read(self, headers: Headers, receive: Receive, into: list[bytes], held: ExitStack) -> Response | None:
        """Read the body; returns why it is refused, or None."""
        length = int(headers.get("content-length", MAX_REQUEST_BYTES if "transfer-encoding" in headers else 0))
        if length <= MAX_REQUEST_BYTES and not self._hold(length, held):
            return _BUSY
        try:
            body = None if length > MAX_REQUEST_BYTES else await read_body(receive, length, BODY_S)
        except TimeoutError:
            return PlainTextResponse("The body did not come in time.", 408)
        if body is None:
            return PlainTextResponse(f"Expected at most {MAX_REQUEST_BYTES} bytes.", 413)
        if count_values(body) > MAX_VALUES:
            return PlainTextResponse(f"Expected at most {MAX_VALUES} values in JSON.", 400)
        into.append(body)
        return None

    def _hold(self, size_bytes: int, held: ExitStack) -> bool:
        """Whether there is room for so much more, which is held then as long as the exchange lasts."""
        if self._held_bytes + size_bytes > MAX_HELD_BYTES:
            return False
        self._held_bytes += size_bytes
        held.callback(self._let_go, size_bytes)
        return True

    def _let_go(self, size_bytes: int) -> None:
        self._held_bytes -= size_bytes


async def _wait_until_gone(receive: Receive) -> None:
    """Return when the caller hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
