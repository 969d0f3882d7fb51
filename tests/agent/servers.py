"""Servers of tools for tests: ours in a thread of this process, and ones that misbehave."""

from __future__ import annotations

import contextlib
import json
import re
import socketserver
import threading
from collections.abc import Callable, Iterator
from typing import Any

from vgbench_gen.agent.tool import Tool
from vgbench_gen.agent.tool_server import ServedTools, ToolGuard, ToolServer
from vgbench_gen.agent.toolbox import Toolbox
from vgbench_gen.core.config import Config
from vgbench_gen.core.local_server import listen, make_address, make_server

TOOL: dict[str, Any] = {
    "name": "Measure",
    "does": "Measures an image.",
    "arguments": {
        "image": {"type": "string", "description": "name of the image"},
        "unit": {"enum": ["m", "cm"], "default": "m", "description": "of the length"},
    },
    "required": ["image"],
    "returns": {"length": "in that unit"},
    "version": "1",
    "checksum": "abc",
    "timeout_s": 0.3,
}


def announce(**changes: Any) -> dict[str, Any]:
    """What a server announces: one tool, with some of it changed."""
    return {"protocol": 1, "tools": [TOOL | changes]}


@contextlib.contextmanager
def run_server(
    chosen: list[Tool],
    token: str = "",
    limit_s: float = 30.0,
    setups: dict[str, Config] | None = None,
    make_app: Callable[[ServedTools], Any] = ToolServer,
) -> Iterator[str]:
    """The address of a server of ours with these tools."""
    toolbox, sock = Toolbox(chosen, setups=setups), listen("127.0.0.1", 0)
    app = make_app(ServedTools(toolbox, 1))
    server = make_server(ToolGuard(app, token), limit_s, lifespan=make_app is not ToolServer)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        yield make_address(sock, "127.0.0.1")
    finally:
        server.should_exit = True
        thread.join()
        sock.close()
        toolbox.close()


class Misbehaving:
    """A server that sends what it is told: `answer` gets a request's first line and gives the whole response."""

    def __init__(self, answer: Callable[[str], bytes]) -> None:
        self.answer, self.seen = answer, list[str]()

    @contextlib.contextmanager
    def run(self) -> Iterator[str]:
        """Its address."""
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                text, body = "", b""
                while not text and (part := self.request.recv(65536)):
                    body += part
                    if b"\r\n\r\n" in body:
                        head, _, body = body.partition(b"\r\n\r\n")
                        text = head.decode("latin-1")
                length = re.search(r"content-length: (\d+)", text, re.IGNORECASE)
                while length and len(body) < int(length[1]) and (part := self.request.recv(65536)):
                    body += part
                outer.seen.append(text)
                with contextlib.suppress(OSError):  # the client had enough
                    self.request.sendall(outer.answer(text.partition("\r\n")[0]))

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        with Server(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()
                thread.join()


def make_response(body: Any, status: str = "200 OK", *headers: str) -> bytes:
    """A response with a body of JSON, or of bytes as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(data)}", "connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + data
