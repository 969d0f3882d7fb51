"""A chat-completions server on loopback that plays what it is told and counts what it was asked.

In the test's own process (`serving`), or in one of its own (`serving_apart`), so that a client can be killed, or its
processor time measured, without the server's share.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from vgbench_gen.core.rng import digest_bytes, rng_for

_PHRASES = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass(frozen=True)
class Play:
    """What is answered. cut: the connection ends before, or in the middle of the body. delay_s: before anything.

    broken: the body is no reply, so it does not count as an answer.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: Literal["", "before", "middle"] = ""
    broken: bool = False


@dataclass(frozen=True)
class Seen:
    """A request that came. text: all words of its messages."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    @property
    def digest(self) -> str:
        return digest_bytes(self.body)

    @property
    def text(self) -> str:
        words = []
        for message in self.json["messages"]:
            content = message["content"]
            words += [content] if isinstance(content, str) else [p["text"] for p in content if p["type"] == "text"]
        return "\n".join(words)


Behaviour = Callable[[Seen], Play]


def reply(text: str = "B", **more: Any) -> Play:
    """A proper reply. more: replaces fields of the top level; `finish_reason` that of the choice."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": more.pop("finish_reason", "stop"),
    }
    tree = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "played",
        "choices": [choice],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    } | more
    tree = {name: value for name, value in tree.items() if value is not None}
    return Play(body=json.dumps(tree).encode())


def refusal(status: int, message: str = "no", headers: Mapping[str, str] | None = None, **more: Any) -> Play:
    """An error as OpenAI words it."""
    return Play(status, json.dumps({"error": {"message": message, **more}}).encode(), headers or {})


class Server:
    """behave: what each request gets; may be replaced at any time. seen: requests so far, while `keep` is set."""

    def __init__(self, behave: Behaviour | None = None, keep: bool = True) -> None:
        self.behave = behave or (lambda seen: reply())
        self.keep = keep
        self.seen: list[Seen] = []
        self.requests = 0
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.under_way = self.most_under_way = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 18)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        path = head[0].split(" ")[1]
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if path == "/counts":
            return await self._write(writer, Play(body=json.dumps(self.counts()).encode()))
        seen = Seen(self.requests, path, headers, body)
        self.requests += 1
        self.asked[seen.digest] += 1
        if self.keep:
            self.seen.append(seen)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            play = self.behave(seen)
            if play.delay_s:
                await asyncio.sleep(play.delay_s)
            going = await self._write(writer, play)
            self.answered[seen.digest] += play.status == 200 and not play.cut and not play.broken
            return going
        finally:
            self.under_way -= 1

    async def _write(self, writer: asyncio.StreamWriter, play: Play) -> bool:
        if play.cut == "before":
            return False
        headers = {"content-type": "application/json", "content-length": str(len(play.body))} | dict(play.headers)
        lines = [f"HTTP/1.1 {play.status} {_PHRASES.get(play.status, 'Other')}"]
        lines += [f"{name}: {value}" for name, value in headers.items() if value]
        body = play.body[: len(play.body) // 2] if play.cut else play.body
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await writer.drain()
        return not play.cut

    def counts(self) -> dict[str, int]:
        """Requests; different ones; different ones answered; answers beyond the first to the same request."""
        return {
            "requests": self.requests,
            "different": len(self.asked),
            "answered": sum(count > 0 for count in self.answered.values()),
            "answered_again": sum(max(0, count - 1) for count in self.answered.values()),
            "most_under_way": self.most_under_way,
        }


@contextmanager
def serving(behave: Behaviour | None = None) -> Iterator[Server]:
    """A server in a thread of this process."""
    server, loop, ready = Server(behave), asyncio.new_event_loop(), threading.Event()

    async def run() -> None:
        listener = await server.start()
        ready.set()
        with suppress(asyncio.CancelledError):
            await listener.serve_forever()

    task = loop.create_task(run())

    def main() -> None:
        asyncio.set_event_loop(loop)
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        left = asyncio.all_tasks(loop)
        for one in left:
            one.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=main, daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(30)


def failing(share: float, seed: int, delay_s: float) -> Behaviour:
    """A share of the attempts fails at random, the same ones on every run: 500, 429, cut, and torn JSON in turn."""
    attempts: Counter[str] = Counter()

    def behave(seen: Seen) -> Play:
        attempts[seen.digest] += 1
        rng = rng_for(seed, "server", seen.digest, str(attempts[seen.digest]))
        if rng.random() >= share:
            return Play(body=reply().body, delay_s=delay_s)
        return (
            refusal(500),
            refusal(429, headers={"retry-after": "0.05"}),
            Play(body=reply().body, cut="middle"),
            Play(body=b'{"choices": [{"mess', broken=True),
        )[int(rng.integers(4))]

    return behave


@dataclass
class Apart:
    """A server in a process of its own."""

    url: str

    def counts(self) -> dict[str, int]:
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/counts", timeout=300) as answer:
            return dict(json.load(answer))


@contextmanager
def serving_apart(fail: float = 0.0, seed: int = 0, delay_s: float = 0.0) -> Iterator[Apart]:
    """A server in a process of its own; ended with the block."""
    command = [sys.executable, "-m", "tests.backends.server", f"--fail={fail}", f"--seed={seed}", f"--delay={delay_s}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Apart(process.stdout.readline().strip())
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0)
    arguments = parser.parse_args()
    server = Server(failing(arguments.fail, arguments.seed, arguments.delay), keep=False)

    async def run() -> None:
        listener = await server.start()
        print(server.url, flush=True)
        await listener.serve_forever()

    asyncio.run(run())


def wait_until(true: Callable[[], bool], patience_s: float = 120.0) -> None:
    """Until something is so that another thread or process does."""
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


if __name__ == "__main__":
    main()
