"""Asking a model server on loopback: processor time beside the bare client's, memory, and what a bad server costs.

Clients and server are processes of their own, so that each one's time is its own.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np

from bench.session import Session
from bench.table import Row
from tests.backends.server import serving_apart
from vgbench_gen.backends.base import ImagePart, Message, Reply, Request, Settings, TextPart
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.core.rng import rng_for

REQUESTS, CONCURRENCY = 5_000, 64
_IMAGES = 500  # more than the client keeps, shown in turn: every one is read and encoded anew
_SIZE_PX = (768, 1024)
_TIMED, _ROUNDS = 1_000, 3
_FAILING = 0.05
_SERVER_S = 0.02  # a real one takes seconds; none at all would never have 64 under way


def rows(session: Session) -> list[Row]:
    """Three rows: processor time beside the bare client's, memory's growth, and answers under failures."""
    folder = session.scratch / "images"
    sizes = _write_images(folder)
    pairs = []
    with serving_apart(delay_s=_SERVER_S) as server:
        for _ in range(_ROUNDS):
            ours = _client("served", server.url, folder, _TIMED)
            bare = _client("bare", server.url, folder, _TIMED)
            pairs.append((ours["cpu_ms"], bare["cpu_ms"]))
    ratio = statistics.median(ours / bare for ours, bare in pairs)
    ours_ms, bare_ms = (statistics.median(times) for times in zip(*pairs, strict=True))
    with serving_apart(fail=_FAILING, seed=1, delay_s=_SERVER_S) as server:
        load = _client("served", server.url, folder, REQUESTS)
        counts = server.counts()
    beside = f"{ours_ms:.2f} against {bare_ms:.2f} ms, one image of {sizes / 1e3:.0f} kB each, with the cache on disk"
    answered = (
        f"of {REQUESTS:,} requests with {counts['requests'] - counts['answered']} failures; {counts['answered_again']} "
        f"of those answered were sent again; {counts['most_under_way']} at once, {load['wall_s']:.0f} s"
    )
    grown = f"from request {REQUESTS // 5:,} to the last; {load['peak_mb']:.0f} MB at most"
    return [
        Row("request to a model: client against bare openai", ratio, "x", beside, at_most=1.3),
        Row("memory while asking", load["grown_mb"], "MB", grown, at_most=32),
        Row("answered with 5 % of attempts failing", 100 * load["answered"] / REQUESTS, "%", answered, at_least=100),
    ]


def _write_images(folder: Path) -> float:
    """Pictures as large as delivered ones; returns their mean size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = []
    for number in range(_IMAGES):
        rng = rng_for(number, "bench", "backend")
        coarse = rng.integers(0, 256, (_SIZE_PX[0] // 12, _SIZE_PX[1] // 12, 3), np.uint8)
        image = cv2.resize(coarse, _SIZE_PX[::-1], interpolation=cv2.INTER_CUBIC)
        data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()
        (folder / f"{number}.jpg").write_bytes(data)
        sizes.append(len(data))
    return statistics.mean(sizes)


def _client(kind: str, url: str, folder: Path, requests: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.backend_load", kind, url, str(folder), str(requests)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def _served(url: str, paths: list[Path], number: int) -> dict[str, float]:
    cache = paths[0].parent / "replies.sqlite"
    for left in cache.parent.glob("replies.sqlite*"):
        left.unlink()
    backend = open_backend(f"vllm:{url}#bench", BackendOptions(concurrency=CONCURRENCY, cache=cache, timeout_s=60))
    requests = [
        Request(
            (Message("user", (TextPart(f"Question {i}?"), ImagePart(paths[i % len(paths)]))),), Settings(max_tokens=64)
        )
        for i in range(number)
    ]
    ask_all(backend, requests[-CONCURRENCY:])  # connections, imports and caches are there before the clock starts
    early: list[float] = []

    def progress(done: int, total: int) -> None:
        if done == total // 5:
            early.append(_rss_mb())

    began, cpu = time.perf_counter(), time.process_time()
    outcomes = ask_all(backend, requests[:-CONCURRENCY], progress=progress)
    spent, wall_s = time.process_time() - cpu, time.perf_counter() - began
    answered = CONCURRENCY + sum(isinstance(outcome, Reply) for outcome in outcomes)
    return _figures(spent, wall_s, number - CONCURRENCY, early[0]) | {"answered": answered}


def _bare(url: str, paths: list[Path], number: int) -> dict[str, float]:
    import openai

    urls = [f"data:image/jpeg;base64,{base64.b64encode(path.read_bytes()).decode()}" for path in paths]

    async def ask(client: openai.AsyncOpenAI, numbers: range) -> None:
        waiting = iter(numbers)

        async def work() -> None:
            for i in waiting:
                await client.chat.completions.create(
                    model="bench",
                    messages=[
                        {
                            "role": "user",
                            "content": [
                                {"type": "text", "text": f"Question {i}?"},
                                {"type": "image_url", "image_url": {"url": urls[i % len(urls)]}},
                            ],
                        }
                    ],
                    max_tokens=64,
                    temperature=0.0,
                )

        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))

    async def run() -> dict[str, float]:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=60) as client:
            await ask(client, range(number - CONCURRENCY, number))
            early = _rss_mb()
            began, cpu = time.perf_counter(), time.process_time()
            await ask(client, range(number - CONCURRENCY))
            return _figures(time.process_time() - cpu, time.perf_counter() - began, number - CONCURRENCY, early)

    return asyncio.run(run())


def _figures(cpu_s: float, wall_s: float, number: int, early_mb: float) -> dict[str, float]:
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "cpu_ms": 1e3 * cpu_s / number,
        "wall_s": wall_s,
        "grown_mb": max(0.0, _rss_mb() - early_mb),
        "peak_mb": peak_mb,
    }


def _rss_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def main() -> None:
    """One client's run; prints its figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["served", "bare"])
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("requests", type=int)
    arguments = parser.parse_args()
    paths = [arguments.folder / f"{number}.jpg" for number in range(_IMAGES)]
    run = _served if arguments.kind == "served" else _bare
    print(json.dumps(run(arguments.url, paths, arguments.requests)))


if __name__ == "__main__":
    main()
