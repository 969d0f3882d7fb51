"""What an agent costs beside its model and its tools: processor time per question and memory of many under way.

Both agents and the plain model are asked in one run, with a model that replies after a while and at no cost, so that
all questions are under way at once.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from bench.session import Session
from bench.table import Row
from vgbench_gen.agent.backend import AgentBackend, AgentOptions
from vgbench_gen.backends.base import Backend, ImagePart, Message, Reply, Settings, Tally, TextPart

QUESTIONS = 1000
_WAIT_S = 0.5
_STEPS = (
    '{"thought": "I look.", "actions": [{"name": "Fly", "arguments": {"image": "image-0"}}]}',
    "I would rather think about it.",
    '{"thought": "", "actions": [{"name": "SelfThinking", "arguments": {"image": "image-1", "query": "What is it?"}}]}',
    "A lamp on a table.",
    '{"thought": "", "actions": [{"name": "Terminate", "arguments": {"answer": "<answer>(B)</answer>"}}]}',
)


class Waiting(Backend):
    """Says the steps of one dialogue in order, by how many messages there are."""

    spec, model, parallel = "waiting", "waiting", QUESTIONS

    def __init__(self) -> None:
        self.tally = Tally()

    async def ask(self, messages: Sequence[Message], settings: Settings) -> Reply:
        """See `Backend.ask`."""
        await asyncio.sleep(_WAIT_S)
        self.tally.requests += 1
        last = messages[-1].parts[-1]
        turn = 3 if isinstance(last, TextPart) and last.text == "What is it?" else (0, 1, 2, 4)[len(messages) // 2]
        return Reply(_STEPS[turn], "stop", self.model, str(turn))

    async def close(self) -> None:
        """See `Backend.close`."""


def rows(session: Session) -> list[Row]:
    """Two rows: processor time of one question beyond its requests, and memory of all questions under way."""
    done = subprocess.run([sys.executable, "-m", "bench.agent_overhead"], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    beside = f"{found['plain_ms']:.2f} ms of {len(_STEPS)} plain requests; {QUESTIONS} questions under way at once"
    held = f"{2 * QUESTIONS} images of {found['image_kb']:.0f} KB; {found['before_mb']:.0f} MB before"
    return [
        Row("an agent's question, model and tools apart", found["agent_ms"] - found["plain_ms"], "ms", beside, 5.0),
        Row("memory of 1,000 agents under way", found["peak_mb"], "MB", held, 500.0),
    ]


def measure() -> dict[str, float]:
    """Times in ms per question and memory in MB of this process."""
    with tempfile.TemporaryDirectory() as folder:
        return _measure(_draw_images(Path(folder)))


def _measure(images: list[Path]) -> dict[str, float]:
    plain = Waiting()
    agent = AgentBackend("agent:react+waiting", "react", Waiting(), AgentOptions(tools=("classical",)))
    asyncio.run(_ask_all(agent, images, 20, 1))
    before_mb = _peak_mb()
    plain_ms = asyncio.run(_ask_all(plain, images, QUESTIONS, len(_STEPS)))
    agent_ms = asyncio.run(_ask_all(agent, images, QUESTIONS, 1))
    size_kb = sum(path.stat().st_size for path in images) / len(images) / 1000
    return {
        "plain_ms": plain_ms,
        "agent_ms": agent_ms,
        "before_mb": before_mb,
        "peak_mb": _peak_mb(),
        "image_kb": size_kb,
    }


async def _ask_all(backend: Backend, images: list[Path], number: int, requests: int) -> float:
    """Milliseconds of processor time per question."""

    async def ask(k: int) -> None:
        parts: list[Any] = [ImagePart(images[(k + j) % len(images)]) for j in range(2)]
        for _ in range(requests):
            await backend.ask([Message("user", (*parts, TextPart(f"Which is nearer? ({k})")))], Settings())

    began = time.process_time()
    await asyncio.gather(*(ask(k) for k in range(number)))
    return 1000 * (time.process_time() - began) / number


def _draw_images(folder: Path) -> list[Path]:
    """Ten files of photographs' size, 1024 x 768 pixels."""
    made = []
    for k in range(10):
        noise = np.random.default_rng(k).normal(128, 25, (192, 256, 3)).clip(0, 255).astype(np.uint8)
        made.append(folder / f"{k}.jpg")
        cv2.imwrite(str(made[-1]), cv2.resize(noise, (1024, 768)), [cv2.IMWRITE_JPEG_QUALITY, 90])
    return made


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(json.dumps(measure()))
