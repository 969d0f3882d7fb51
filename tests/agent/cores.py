"""Core models that say what a test tells them to, and tools that run without a process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vgbench_gen.agent.backend import AgentBackend, AgentOptions
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.tool import tools
from vgbench_gen.backends.base import Background, ImagePart, Message, Reply, Settings, TextPart
from vgbench_gen.backends.scripted import Scripted, ScriptLine
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.store.pictures import encode_jpeg

IMAGE = encode_jpeg(np.full((40, 60, 3), 200, np.uint8))
Say = Callable[[str], str]


def step(name: str, **arguments: Any) -> str:
    """A step of ReAct that calls one tool."""
    return json.dumps({"thought": f"I call {name}", "actions": [{"name": name, "arguments": arguments}]})


def plan(*calls: tuple[str, dict[str, Any]]) -> str:
    """A plan of these calls."""
    listed = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return f"```json\n{json.dumps(listed)}\n```"


END = step("Terminate", answer="<answer>(B)</answer>")


class Core(Scripted):
    """Says its lines in order, or what a function of the prompt's text says, and remembers what it was asked."""

    def __init__(self, lines: Sequence[str] | Say, cache: Path | None = None) -> None:
        self.prompts: list[str] = []
        self.settings: list[Settings] = []
        self.lines = lines

        def play(call: Any) -> ScriptLine:
            said = self.lines(call.text) if callable(self.lines) else self.lines[len(self.prompts)]
            self.prompts.append(call.text)
            return ScriptLine(reply=said)

        super().__init__("scripted:test", "test", play, BackendOptions(cache=cache, retries=0))

    async def ask(self, messages: Sequence[Message], settings: Settings) -> Reply:
        self.settings.append(settings)
        return await super().ask(messages, settings)


def make_agent(kind: str, core: Core, cache: Path | None = None, **options: Any) -> AgentBackend:
    """An agent with tools that need nothing, unless told otherwise."""
    told = AgentOptions(**{"tools": ("none",), **options})
    kept = None if cache is None else ResultCache(cache.with_name(f"{cache.name}.tools"))
    return AgentBackend(f"agent:{kind}+scripted:test", kind, core, told, kept)  # type: ignore[arg-type]


def ask(
    agent: AgentBackend, question: str = "Which?", images: int = 1, source: str = "", settings: Settings | None = None
) -> Reply:
    """The agent's reply to one question."""

    async def run() -> Reply:
        try:
            message = Message("user", (*[ImagePart(IMAGE)] * images, TextPart(question)))
            return await agent.ask_about([message], settings or Settings(), Background(source))
        finally:
            await agent.close()

    return asyncio.run(run())


@pytest.fixture
def without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Calculate` and `Crop` are called at once."""
    for name in ("Calculate", "Crop"):
        monkeypatch.setattr(type(tools[name]), "runs", "here")
