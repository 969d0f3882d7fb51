"""What both kinds of agent do: ask the core model, call tools, name the images they make."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.tool import Mode, Tool, list_image_names
from vgbench_gen.agent.toolbox import Toolbox
from vgbench_gen.agent.trace import Trace
from vgbench_gen.agent.words import AgentWords
from vgbench_gen.agent.workers import Observation
from vgbench_gen.backends.base import Backend, ImagePart, Message, Part, Reply, Settings, TextPart
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import DatasetError

SHOWN_CHARACTERS = 6000  # of one observation; what is longer is cut and says so
_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)


@dataclass(slots=True)
class AgentRun:
    """One question on its way."""

    question: str
    """Its words, as the benchmark asks them."""
    source: str
    """Where it comes from, for prompts that depend on it; "" where nobody said."""
    book: ImageBook
    """Its images, and those that tools make."""
    long_side_px: int
    """To which images are made smaller for the core model; 0 for not at all. Tools see them as they are."""
    core: Backend
    settings: Settings
    toolbox: Toolbox
    """What it may call."""
    words: AgentWords
    """What it is told."""
    mode: Mode
    """Correct or as published."""
    trace: Trace
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Of the row, for oracle tools."""
    replies: list[Reply] = field(default_factory=list)
    """Of the core model."""

    async def ask(self, role: str, messages: Sequence[Message]) -> str:
        """What the core model says.

        Raises:
            BackendError: it gives no usable reply.
        """
        reply = await self.core.ask(messages, self.settings)
        self.replies.append(reply)
        self.trace.add_reply(role, reply)
        return reply.text

    def show(self, *texts: str, first: int = 0) -> Message:
        """A message of the user's: images from a number on, each after its name, and words."""
        parts: list[Part] = []
        for image in list(self.book)[first:]:
            width, height = image.size_px
            size = f" ({width} x {height} pixels)" if self.mode == "sane" else ""
            parts += [TextPart(f"{image.name}{size}:"), ImagePart(image.source, self.long_side_px)]
        return Message("user", (*parts, *(TextPart(text) for text in texts)))

    async def call(self, call: ToolCall) -> Observation:
        """What a call gives; a wrong one gives what is wrong with it."""
        read = self.toolbox.read(call, self.book)
        if isinstance(read, Observation):
            self.trace.add_observation(read)
            return read
        tool, arguments = read
        if tool.name == "SelfThinking":
            seen = await self._think(arguments.model_dump())
        else:
            if tool.needs_core(arguments):
                arguments = tool.hear(arguments, await self._ask_about(tool, arguments))
            seen = await self.toolbox.call(tool, arguments, self.book, self.evidence)
        made: tuple[str, ...] = ()
        try:
            made = tuple(self._keep(data, tool.name) for data in seen.images)
        except DatasetError as error:
            seen = Observation(seen.name, seen.arguments, failure="tool_error", message=f"its image: {error}"[:400])
        if made:
            # First, and whatever else a tool calls its image.
            values = {"image": made[0]} | {key: value for key, value in seen.values.items() if key != "image"}
            seen = Observation(seen.name, seen.arguments, values, seen.images)
        self.trace.add_observation(seen, made)
        return seen

    def _keep(self, data: bytes, made_by: str) -> str:
        return self.book.add(data, made_by).name

    async def _ask_about(self, tool: Tool, arguments: Config) -> str:
        images = [self.book.find(name) for name in list_image_names(arguments)]
        parts = [ImagePart(image.source, self.long_side_px) for image in images]
        return await self.ask(tool.name, [Message("user", (*parts, TextPart(tool.core_query)))])

    async def _think(self, given: dict[str, Any]) -> Observation:
        image = self.book.find(given["image"])
        message = Message("user", (ImagePart(image.source, self.long_side_px), TextPart(given["query"])))
        return Observation("SelfThinking", given, {"response": await self.ask("self-thinking", [message])})


def write_observation(seen: Observation) -> str:
    """What a model reads of a call."""
    told = {"error": seen.message} if seen.failure else dict(seen.values)
    text = json.dumps(told, ensure_ascii=False)
    cut = len(text) - SHOWN_CHARACTERS
    return text if cut <= 0 else f"{text[:SHOWN_CHARACTERS]} … ({cut} characters left out)"


def find_answer(text: str) -> str:
    """What stands between the last pair of answer tags, or behind one that is never closed; all of the text where there
    is none."""
    start, answer = None, text
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start, answer = tag.end(), text[tag.end() :]
        elif start is not None:
            start, answer = None, text[start : tag.start()]
    return answer.strip()


def has_answer(text: str) -> bool:
    """Whether there is an answer tag."""
    return any(not tag[1] for tag in _TAG.finditer(text))
