"""What every small HTTP server of ours needs: a listening socket, who it is for, bodies of bounded size, its end.

A server on the loopback interface is reached by any page that the user has open, by name tricks (DNS rebinding) and by
forms sent from elsewhere: so the Host must be one of ours (`name_host`, `LOOPBACK`), and what others can reach asks for
a token (`is_same_secret`).
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp, Receive

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SILENT_S = 30.0  # within which a connection must say what it wants, and take of its answer
_LEAST_PER_S = 50_000  # bytes of an answer that a caller must take
_PIECE_BYTES = 1 << 16  # that are taken at least between two pauses of writing


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach a server on this address."""
    try:
        return host.lower() in LOOPBACK or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def name_host(header: str) -> str:
    """The name in a Host header, without its port and in lower case; "" where it holds none."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def is_same_secret(given: str, secret: str) -> bool:
    """Whether both are equal, in a time that does not tell how much of them is."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


async def read_body(receive: Receive, limit_bytes: int, limit_s: float | None = None) -> bytes | None:
    """The whole body of a request, or None where it is larger than allowed.

    Raises:
        TimeoutError: it does not come within `limit_s`.
    """
    data = bytearray()
    async with asyncio.timeout(limit_s):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(data)
            data += message.get("body", b"")
            if len(data) > limit_bytes:
                return None
            if not message.get("more_body", False):
                return bytes(data)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises:
        ConfigError: the port is taken, or the address is not one of this machine.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, proto)
    except OSError as error:
        raise ConfigError(f"--host {host}: {error.strerror or error}. Give an address of this machine.") from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(64)
    except OSError as error:
        found.close()
        remedy = "Give another --port (0 takes a free one), or stop the program that uses it."
        raise ConfigError(f"--host {host} --port {port}: {error.strerror}. {remedy}") from error
    return found


def make_address(server: socket.socket, host: str) -> str:
    """The address of a listening socket as others call it."""
    shown = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):
        shown = socket.gethostname()
    return f"http://{shown}:{server.getsockname()[1]}"


def serve(app: ASGIApp, server: socket.socket, limit_s: float = SILENT_S, lifespan: bool = False) -> None:
    """Answer requests until Ctrl-C or SIGTERM; the socket, as `listen` gives it, is closed at the end.

    Args: as `make_server`.
    """
    try:
        make_server(app, limit_s, lifespan).run(sockets=[server])
    except KeyboardInterrupt:  # uvicorn raises the signal anew when it has shut down
        pass
    finally:
        server.close()


def make_server(app: ASGIApp, limit_s: float = SILENT_S, lifespan: bool = False) -> uvicorn.Server:
    """A server that is not running yet.

    Args:
        app: who answers.
        limit_s: within which a connection must say what it wants, and take of its answer: those that never do would
            hold the places of others.
        lifespan: whether the application wants to know of start and end.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
        http=_make_impatient(limit_s),
        log_level="warning",
        access_log=False,  # addresses may hold a token
        server_header=False,
        lifespan="on" if lifespan else "off",
        limit_concurrency=64,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def _make_impatient(limit_s: float) -> type[Any]:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        """Closes a connection that wants nothing for a while, or takes too little of its answer."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._unsent = self._taken = 0
            self._answered: Any = None
            self._timer = self.loop.call_later(limit_s, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            super().connection_lost(exc)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._taken += _PIECE_BYTES

        def _look(self) -> None:
            before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
            taken, self._taken = before - self._unsent + self._taken, 0
            if before and self._unsent and taken < limit_s * _LEAST_PER_S:
                self.transport.abort()
                return
            if not self._unsent and (self.cycle is None or self.cycle.response_complete):
                if self._answered is self.cycle:  # as it was when it was last looked at
                    self.transport.close()
                    return
                self._answered = self.cycle
            self._timer = self.loop.call_later(limit_s, self._look)

    return Impatient
