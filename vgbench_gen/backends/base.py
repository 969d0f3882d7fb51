"""What is asked, what comes back, and what a backend is (`docs/architecture.md#plug-ins`).

A prompt is a list of messages, each an ordered list of text and image parts, because benchmarks differ in where they
put images. Replies are plain data: scorers read saved ones and never see a backend.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import VGBenchError

Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "content_filter", "tool_calls", "other"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Words of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """One image of a message.

    source: JPEG or PNG bytes, or the path of a file that holds them. long_side_px: where not 0, an image with a longer
    side is made smaller before it is sent; else the bytes go out as they are.
    """

    source: bytes | Path
    long_side_px: int = 0


Part = TextPart | ImagePart


@dataclass(frozen=True, slots=True)
class Message:
    """Parts in the order in which the model reads them."""

    role: Role
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, role: Role, text: str) -> Message:
        """A message of words alone."""
        return cls(role, (TextPart(text),))


class Settings(Config):
    """How a model answers. Everything here is part of the cache key.

    temperature: None sends none, which some models demand. max_tokens: of the answer, None for the provider's limit.
    system: goes before the messages as a system message. extra_body: provider's own fields, sent as they are.
    epoch, stage: never sent; they tell apart requests of equal content whose replies must be independent.
    """

    temperature: float | None = 0.0
    max_tokens: int | None = Field(default=1024, ge=1)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    system: str = ""
    reasoning_effort: str = ""
    extra_body: Mapping[str, Any] = Field(default_factory=dict)
    epoch: int = 0
    stage: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt with its settings."""

    messages: tuple[Message, ...]
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counts them. reasoning and cached ones are included in completion and prompt."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said.

    cost_usd: by the cost table when it was asked, None where the model is not in it. latency_s: of the attempt that
    succeeded. image_sizes_px: (width, height) of every image as sent. images: that the model made, encoded. cached: it
    was asked before (or at the same time by another caller), so this one cost nothing. attempts: requests it took.
    parameters: the settings as they were sent, which a model may have forced to differ from those asked for. raw: the
    provider's answer, without pictures and keys.
    """

    text: str
    finish_reason: FinishReason
    model: str
    request_digest: str
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_s: float = 0.0
    image_sizes_px: tuple[tuple[int, int], ...] = ()
    images: tuple[bytes, ...] = ()
    cached: bool = False
    attempts: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)


class BackendError(VGBenchError):
    """A request got no reply that can be used. The message never holds a key.

    Args:
        kind: machine-readable: api_error, refused_key, wrong_request, timeout, bad_reply, budget, cancelled.
        message: where, what was found, what to do.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message

    def __str__(self) -> str:
        return self.message


@dataclass(slots=True)
class Tally:
    """What one backend did so far.

    requests: attempts that were sent. retried: of them, after a failure. slowed: answers "too many requests". cached:
    replies that needed no request. tokens, usd: used, with an estimate where the provider did not say. uncosted:
    replies of models that the cost table does not know.
    """

    requests: int = 0
    retried: int = 0
    slowed: int = 0
    cached: int = 0
    tokens: int = 0
    usd: float = 0.0
    uncosted: int = 0


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend takes and gives besides text."""

    images_in: bool = True
    images_out: bool = False


class Backend(abc.ABC):
    """One model behind one door. Used from one event loop at a time; closed after use (`async with`).

    spec: as on the command line, such as `openai:gpt-4o`. model: the name that goes into replies and cache keys.
    parallel: requests worth having under way at once. tally: what was asked so far.
    """

    spec: str
    model: str
    capabilities: Capabilities = Capabilities()
    parallel: int = 1
    tally: Tally

    @abc.abstractmethod
    async def ask(self, messages: Sequence[Message], settings: Settings) -> Reply:
        """The model's reply, from the cache where it was given before.

        Raises:
            BackendError: no usable reply after all retries, the budget is spent, or the request is refused.
        """

    async def edit(self, images: Sequence[ImagePart], prompt: str, settings: Settings) -> Reply:
        """The reply whose `images` are these images changed as the prompt says; asked in a chat unless a backend has an
        endpoint for it.

        Raises:
            BackendError: as `ask`. A reply may hold no image.
        """
        return await self.ask((Message("user", (*images, TextPart(prompt))),), settings)

    def halt(self) -> None:  # noqa: B027 (those who ask one at a time have nothing to hold back)
        """Send nothing more: what was not sent yet fails as `cancelled`; what was sent is waited for as ever."""

    def is_sending(self, task: asyncio.Task[Any]) -> bool:
        """Whether a task that asks has sent its request, so that what it brings is worth waiting for."""
        return not task.done()

    async def rest(self) -> None:  # noqa: B027 (most backends have nothing to do)
        """Let go of what belongs to the running event loop; the next `ask` may come from another one."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Free connections and files; replies that were received are on disk already."""

    async def __aenter__(self) -> Backend:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
