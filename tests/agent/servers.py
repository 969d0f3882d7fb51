"""Servers of tools for tests: ours in a thread of this process, and ones that misbehave."""

from __future__ import annotations

import contextlib
import json
import re
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vgbench_gen.agent.guard import ToolGuard
from vgbench_gen.agent.mcp_server import make_mcp_app, make_mcp_server
from vgbench_gen.agent.tool import Tool, ToolOptions
from vgbench_gen.agent.toolbox import Toolbox
from vgbench_gen.core.local_server import listen, make_address, make_server

FACTS: dict[str, Any] = {
    "does": "Measures an image.",
    "returns": {"length": "in that unit"},
    "state": "1/abc",
    "timeout_s": 0.3,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "image": {"type": "string", "description": "the image itself"},
        "unit": {"enum": ["m", "cm"], "default": "m", "description": "of the length"},
    },
    "required": ["image"],
}
DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "public",
}
Message = Mapping[str, Any]


def announce(name: str = "Measure", schema: Any = None, **facts: Any) -> dict[str, Any]:
    """A tool as a server of ours announces it, with some of it changed."""
    return {
        "name": name,
        "description": "d",
        "inputSchema": SCHEMA if schema is None else schema,
        "_meta": {"vgbench": FACTS | facts},
    }


def give(values: Any = None, **changes: Any) -> dict[str, Any]:
    """The result of a call, as a server of ours gives it."""
    told: dict[str, Any] = {"content": [], "structuredContent": {"length": 2.5} if values is None else values}
    return told | {"resultType": "complete", "_meta": {"vgbench": {"state": "1/abc", "failure": ""}}, **changes}


def fail(kind: str, message: str) -> dict[str, Any]:
    """The result of a call that failed."""
    meta = {"vgbench": {"state": "1/abc", "failure": kind}}
    return give(structuredContent=None, content=[{"type": "text", "text": message}], isError=True, _meta=meta)


@contextlib.contextmanager
def run_server(
    chosen: list[Tool], token: str = "", limit_s: float = 30.0, setups: dict[str, ToolOptions] | None = None
) -> Iterator[str]:
    """The address of a server of ours with these tools."""
    toolbox, sock = Toolbox(chosen, setups=setups), listen("127.0.0.1", 0)
    app = make_mcp_app(make_mcp_server(toolbox, 1))
    server = make_server(ToolGuard(app, token), limit_s, lifespan=True)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        yield f"{make_address(sock, '127.0.0.1')}/mcp"
    finally:
        server.should_exit = True
        thread.join()
        sock.close()
        toolbox.close()


def call_by_hand(name: str, arguments: Any) -> tuple[bytes, dict[str, str]]:
    """(body, headers) of a call, as a client without a library sends it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode(), headers


class Misbehaving:
    """A server that lists `tools` and replies to calls with `reply`: a result, a whole response, or what makes one.

    `tools` may be a whole response as well.
    """

    def __init__(self, tools: Any, reply: Any = None) -> None:
        self.tools, self.reply, self.seen = tools, reply, list[str]()

    def answer(self, message: Message) -> bytes:
        """The whole response to a message."""
        if message["method"] == "server/discover":
            return make_response(DISCOVERED, message)
        if message["method"] == "tools/list":
            listed = {"tools": self.tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
            return make_response(self.tools if isinstance(self.tools, bytes) else listed, message)
        found = self.reply(message) if isinstance(self.reply, Callable) else self.reply  # type: ignore[arg-type]
        return found if isinstance(found, bytes) else make_response(found, message)

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
                with contextlib.suppress(OSError, ValueError):  # the client had enough
                    self.request.sendall(outer.answer(json.loads(body)))

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        with Server(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
            finally:
                server.shutdown()
                thread.join()


def make_response(found: Any, message: Message, status: str = "200 OK", *headers: str) -> bytes:
    """A response to a message: a result, or a body of bytes in which ID stands for the message's id."""
    if isinstance(found, bytes):
        data = found.replace(b"ID", json.dumps(message["id"]).encode(), 1)
    else:
        data = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": found}).encode()
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(data)}", "connection: close"]
    lines += ["content-type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + data


def result_of(values: bytes) -> bytes:
    """The body of a result with these values, which may be no JSON."""
    meta = b'"resultType":"complete","_meta":{"vgbench":{"state":"1/abc"}}'
    return b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":' + values + b"," + meta + b"}}"
