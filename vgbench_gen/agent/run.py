"""The state of one agent run, and what both kinds of agent do: ask the core model, call tools, name new images."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.tool import Mode, list_image_names
from vgbench_gen.agent.toolbox import Toolbox
from vgbench_gen.agent.trace import Trace
from vgbench_gen.agent.words import AgentWords
from vgbench_gen.agent.workers import SHOWN, Observation
from vgbench_gen.backends.base import Backend, ImagePart, Message, Part, Reply, Settings, TextPart
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import DatasetError

SHOWN_CHARACTERS = 6000  # the most characters of an observation that a model reads; the cut is marked
_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)


@dataclass(slots=True)
class AgentRun:
    """An agent's work on one question."""

    question: str
    source: str
    """The question's source, which selects prompt variables (`AgentWords.fill`); "" if unknown."""
    book: ImageBook
    """Images of the question, and those that tools make."""
    long_side_px: int
    """The long side to which images are scaled down for the core model; 0 for none. Tools get the full images."""
    core: Backend
    settings: Settings
    toolbox: Toolbox
    words: AgentWords
    """The prompts."""
    mode: Mode
    trace: Trace
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """The row's evidence, for oracle tools."""
    replies: list[Reply] = field(default_factory=list)
    """All replies of the core model so far."""

    async def ask(self, role: str, messages: Sequence[Message]) -> str:
        """The text of the core model's reply.

        Raises:
            BackendError: there is no usable reply.
        """
        reply = await self.core.ask(messages, self.settings)
        self.replies.append(reply)
        self.trace.add_reply(role, reply)
        return reply.text

    def show(self, *texts: str, first: int = 0) -> Message:
        """A message to the core model: the images from number `first` on, each after its name, then the texts."""
        parts: list[Part] = []
        for image in list(self.book)[first:]:
            width, height = image.size_px
            size = f" ({width} x {height} pixels)" if self.mode == "sane" else ""
            parts += [TextPart(f"{image.name}{size}:"), ImagePart(image.source, self.long_side_px)]
        return Message("user", (*parts, *(TextPart(text) for text in texts)))

    async def call(self, call: ToolCall) -> Observation:
        """Run a call and add it to the trace; a wrong call gives an observation that says what is wrong."""
        checked = self.toolbox.read(call, self.book)
        if isinstance(checked, Observation):
            self.trace.add_observation(checked)
            return checked
        tool, arguments = checked
        if tool.name == "SelfThinking":
            values = arguments.model_dump()
            response = await self._ask_about("self-thinking", arguments, values["query"])
            observation = Observation(tool.name, values, {"response": response})
        else:
            if tool.core_query and not getattr(arguments, tool.core_argument):
                reply = await self._ask_about(tool.name, arguments, tool.core_query)
                arguments = arguments.model_copy(update={tool.core_argument: type(tool).read_core(reply)})
            observation = await self.toolbox.call(tool, arguments, self.book, self.evidence)
        names: tuple[str, ...] = ()
        try:
            names = tuple(self.book.add(data, tool.name).name for data in observation.images)
        except DatasetError as error:
            observation = Observation(
                observation.name, observation.arguments, failure="tool_error", message=f"its image: {error}"[:SHOWN]
            )
        if names:
            # The new name comes first and replaces any `image` among the tool's values.
            values = {"image": names[0]} | {key: value for key, value in observation.values.items() if key != "image"}
            observation = Observation(observation.name, observation.arguments, values, observation.images)
        self.trace.add_observation(observation, names)
        return observation

    async def _ask_about(self, role: str, arguments: Config, query: str) -> str:
        """The core model's reply to a query about the images of a call."""
        images = [self.book.find(name) for name in list_image_names(arguments)]
        parts = [ImagePart(image.source, self.long_side_px) for image in images]
        return await self.ask(role, [Message("user", (*parts, TextPart(query)))])


def write_observation(observation: Observation) -> str:
    """The observation as text for a model."""
    record = {"error": observation.message} if observation.failure else dict(observation.values)
    text = json.dumps(record, ensure_ascii=False)
    cut = len(text) - SHOWN_CHARACTERS
    return text if cut <= 0 else f"{text[:SHOWN_CHARACTERS]} … ({cut} characters left out)"


def find_answer(text: str) -> str:
    """The text between the last pair of answer tags, or after an unclosed one; without tags the whole text."""
    start, answer = None, text
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start, answer = tag.end(), text[tag.end() :]
        elif start is not None:
            start, answer = None, text[start : tag.start()]
    return answer.strip()


def has_answer(text: str) -> bool:
    """Whether a text has an opening answer tag."""
    return any(not tag[1] for tag in _TAG.finditer(text))
