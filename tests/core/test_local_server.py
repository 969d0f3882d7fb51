"""Connections that hold a place without use: those that never ask, and those that never take their answer."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from vgbench_gen.core.local_server import _make_impatient, listen, make_server

BODY = b"x" * (8 << 20)
ASK = b"GET /%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Eight megabytes at once, or in pieces each of which waits until most of the last one was taken, or nothing."""
    body = b"" if scope["path"] == "/nothing" else BODY
    size = 1 << 16 if scope["path"] == "/pieces" else len(BODY)
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    for k in range(0, len(body), size):
        await send({"type": "http.response.body", "body": body[k : k + size], "more_body": True})
    await send({"type": "http.response.body"})


@contextlib.contextmanager
def run(limit_s: float) -> Iterator[tuple[Any, tuple[str, int]]]:
    """A server, and its place."""
    found = listen("127.0.0.1", 0)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    server = make_server(answer, limit_s)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
    thread.start()
    try:
        yield server, found.getsockname()
    finally:
        server.should_exit = True
        thread.join()
        found.close()


def connect(place: tuple[str, int], *sent: bytes) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    made.settimeout(60)
    made.connect(place)
    for part in sent:
        made.sendall(part)
    return made


def read_all(connection: socket.socket, most: int = len(BODY) * 2) -> bytes:
    """What comes until the server closes the connection, or so many bytes."""
    data = bytearray()
    with contextlib.suppress(ConnectionError):
        while len(data) < most and (part := connection.recv(1 << 16)):
            data += part
    return bytes(data)


@pytest.mark.parametrize(
    "sent",
    [(), (b"GET / HTTP/1.1\r\nHost: 127",), (ASK % b"once",), (ASK % b"pieces",)],
    ids=["nothing", "half a request", "an answer at once", "an answer in pieces"],
)
def test_who_neither_asks_nor_takes_is_closed(sent: tuple[bytes, ...]) -> None:
    with run(0.2) as (server, place):
        held = [connect(place, *sent) for _ in range(4)]
        with connect(place, ASK % b"nothing") as last:
            assert last.recv(12) == b"HTTP/1.1 200"  # so those before it have come in
        while server.server_state.connections:
            threading.Event().wait(0.01)
        for connection in held:
            assert len(read_all(connection)) < len(BODY)
            connection.close()


def test_half_of_a_second_request_holds_no_place() -> None:
    with run(0.2) as (_, place):
        connection = connect(place, ASK % b"once", b"GET / HTTP/1.1\r\nHost: 127")
        assert read_all(connection).endswith(BODY)
        connection.close()


MB = 1 << 20


@pytest.mark.parametrize(
    ("looks", "is_closed"),
    [
        ([(MB, 0), (MB, 0)], True),
        ([(9 * MB, 0), (9 * MB - 400_000, 0)], True),  # less than 50,000 bytes in each of ten seconds
        ([(9 * MB, 0), (8 * MB, 0), (7 * MB, 0), (0, 0), (5, 0), (0, 0)], False),
        ([(1 << 16, 0), (1 << 16, 8), (1 << 16, 9), (0, 0)], False),  # in pieces: what is not sent stays as much
        ([(1 << 16, 0), (1 << 16, 8), (1 << 16, 7)], True),
    ],
)
def test_who_takes_enough_of_an_answer_gets_all_of_it(looks: list[tuple[int, int]], is_closed: bool) -> None:
    """looks: (bytes that are not sent, pieces that were taken since the last look)."""
    made = object.__new__(_make_impatient(10.0))
    made.transport, made.loop, made.cycle = MagicMock(), MagicMock(), MagicMock(response_complete=False)
    made.flow, made._unsent, made._taken, made._answered = MagicMock(), 0, 0, None
    for unsent, pieces in looks:
        assert not made.transport.abort.called
        for _ in range(pieces):
            made.resume_writing()
        made.transport.get_write_buffer_size.return_value = unsent
        made._look()
    assert made.transport.abort.called == is_closed
    assert not made.transport.close.called
