"""Requests, replies, and the base class of backends (`docs/architecture.md#plug-ins`).

A prompt is a list of messages, each an ordered list of text and image parts, because benchmarks differ in where they
put images. Replies are plain data: scorers read saved ones and need no backend.
"""

from __future__ import annotations

import abc
import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field

from vgbench_gen.backends._keys import cover_line as cover_line  # re-exported for other rooms
from vgbench_gen.backends._keys import redact as redact
from vgbench_gen.backends._keys import redact_tree as redact_tree
from vgbench_gen.backends._keys import register_secret as register_secret
from vgbench_gen.backends._keys import split_address as split_address
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import VGBenchError

Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "content_filter", "tool_calls", "other"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """One image of a message."""

    source: bytes | Path
    """JPEG or PNG bytes, or the path of a file."""
    long_side_px: int = 0
    """An image with a longer side is scaled down before it is sent; 0 sends the bytes as they are."""


Part = TextPart | ImagePart


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Role
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, role: Role, text: str) -> Message:
        """A message without images."""
        return cls(role, (TextPart(text),))


class Settings(Config):
    """How a model answers. All fields are part of the cache key."""

    temperature: float | None = 0.0
    """None sends none, which some models require."""
    max_tokens: int | None = Field(default=1024, ge=1)
    """None for the provider's limit."""
    seed: int | None = None
    """Seed of sampling; None, or a provider without seeds, leaves sampling unseeded."""
    stop: tuple[str, ...] = ()
    """Texts that end the reply."""
    system: str = ""
    """The system message, sent before all others."""
    reasoning_effort: str = ""
    """One of the provider's levels; "" for its default."""
    extra_body: Mapping[str, Any] = Field(default_factory=dict)
    """The provider's own fields, sent unchanged."""
    epoch: int = 0
    """The number of a repetition. It is never sent; it separates equal requests whose replies must be independent."""
    stage: str = ""
    """The stage of the evaluation. It is never sent either."""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt with its settings."""

    messages: tuple[Message, ...]
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class Background:
    """Facts about a question besides its text. They are never sent to a model."""

    source: str = ""
    """The dataset of the question, such as "SpatialScore/BLINK"."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """The evidence of its answer; empty unless the backend `reads_evidence`."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counts them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Tokens of the reply, including those of its reasoning."""
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    """Tokens of the prompt that the provider had in its cache."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply. `Served._send` fills in what the provider reports, `Served` the rest."""

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    text: str
    finish_reason: FinishReason
    model: str
    """The model's name, as the provider reports it."""
    request_digest: str = ""
    usage: Usage | None = None
    """None if the provider does not count tokens."""
    cost_usd: float | None = None
    """The cost that the provider reports, else the cost by the table of prices; None if both are missing."""
    latency_s: float = 0.0
    """Duration of the successful attempt."""
    image_sizes_px: tuple[tuple[int, int], ...] = ()
    """(width, height) of every image as it was sent."""
    images: tuple[bytes, ...] = ()
    """Encoded images that the model made."""
    cached: bool = False
    """Whether it is the reply to an earlier or simultaneous equal request, so that it cost nothing."""
    attempts: int = 1
    """The number of requests until it succeeded."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The parameters that were sent; they may differ from the settings if the model refuses some."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The provider's response, without images and keys."""


def find_shortfall(reply: Reply) -> tuple[str, str]:
    """(kind, reason) of an unusable reply: "empty", "cut" or "refused"; ("", "") if the reply is complete."""
    if reply.finish_reason == "content_filter":
        return "refused", "by a content filter"
    answered, usage = bool(reply.text.strip() or reply.images), reply.usage or Usage()
    if reply.finish_reason == "length":
        limit = f" of {usage.completion_tokens} tokens" if usage.completion_tokens else ""
        thought = f" ({usage.reasoning_tokens} of them to reason)" if usage.reasoning_tokens else ""
        when = "the reply was cut at its limit" if answered else "the reply has no text at its limit"
        return "cut" if answered else "empty", f"{when}{limit}{thought}; allow more (--max-tokens)"
    return ("", "") if answered else ("empty", f"the reply holds no words (it ended with {reply.finish_reason})")


class BackendError(VGBenchError):
    """A request has no usable reply. Keys are covered in the message.

    Args:
        kind: machine-readable: api_error, refused_key, wrong_request, timeout, bad_reply, budget, cancelled.
        message: where, what was found, what to do.
    """

    def __init__(self, kind: str, message: str) -> None:
        message = redact(message)
        super().__init__(kind, message)
        self.kind, self.message = kind, message

    def _word(self) -> str:
        return self.message


@dataclass(slots=True)
class Tally:
    """Counts of one backend."""

    requests: int = 0
    """Attempts that were sent."""
    retried: int = 0
    """Attempts after a failure."""
    slowed: int = 0
    """Responses "too many requests"."""
    cached: int = 0
    """Replies that needed no request."""
    tokens: int = 0
    """Tokens used, estimated if the provider does not count them."""
    usd: float = 0.0
    """Money used, estimated if the provider does not report it."""
    uncosted: int = 0
    """Replies without a known cost."""
    whole: int = 0
    """Requests with a complete reply."""
    short: Counter[str] = field(default_factory=Counter)
    """Other requests, by the kind of `find_shortfall` or of the error."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The first reason of each of these kinds."""
    reported: bool = False
    """Whether the caller reports shortfalls; else the backend logs them when it is closed."""

    def note(self, kind: str, reason: str) -> None:
        """Count a request by the kind of its shortfall or error; "" is a complete reply."""
        self.whole += not kind
        if kind:
            self.short[kind] += 1
            self.reasons.setdefault(kind, reason)

    def list_shortfalls(self, spec: str) -> list[str]:
        """A line for each kind of shortfall and error, without those that the caller gets as an exception anyway."""
        total, lines = self.whole + self.short.total(), []
        for kind, count in self.short.items():
            if kind not in ("budget", "cancelled") and (total > 1 or kind in ("empty", "cut", "refused")):
                reason = self.reasons[kind].removeprefix(f"{spec}: ")
                lines.append(f"{spec}: {kind} {count} of {total} requests; the first: {reason}")
        return lines


class Backend(abc.ABC):
    """One model that answers requests. Use it from one event loop at a time and close it after use (`async with`)."""

    spec: str
    """Name of the model as on the command line, such as `openai:gpt-4o`."""
    model: str
    """Name for replies and cache keys."""
    images_in: bool = True
    """Whether the model reads images."""
    images_out: bool = False
    """Whether the model makes images."""
    parallel: int = 1
    """The useful number of requests at once."""
    tally: Tally
    reads_evidence: bool = False
    """Whether it gets the evidence of answers, as an agent with oracle tools does; its score is an upper bound."""
    makes_images: bool = True
    """Whether requests may ask for images; agents answer in text only."""

    def describe_setup(self) -> Mapping[str, Any]:
        """What its replies depend on besides spec, model and settings, JSON-ready; empty for a plain model."""
        return {}

    @abc.abstractmethod
    async def ask(self, messages: Sequence[Message], settings: Settings) -> Reply:
        """The model's reply, or a kept reply to the same request.

        Callers should run at most `parallel` requests at once, because each holds its images in memory.

        Raises:
            BackendError: no usable reply after all retries, the budget is spent, or the request is refused.
        """

    async def ask_about(self, messages: Sequence[Message], settings: Settings, background: Background) -> Reply:
        """As `ask`, with facts about the question, which only agents use."""
        return await self.ask(messages, settings)

    async def edit(self, images: Sequence[ImagePart], prompt: str, settings: Settings) -> Reply:
        """As `ask`, for a reply whose `Reply.images` are these images edited as the prompt says; it may hold none. The
        request is a chat, unless the backend has an endpoint for image editing.
        """
        return await self.ask((Message("user", (*images, TextPart(prompt))),), settings)

    def halt(self) -> None:  # noqa: B027 (a backend without a queue has nothing to stop)
        """Send no more requests: unsent ones fail as `cancelled`, and running ones finish."""

    def is_sending(self, task: asyncio.Task[Any]) -> bool:
        """Whether a task's request has been sent, so that its reply is worth waiting for."""
        return not task.done()

    async def rest(self) -> None:  # noqa: B027 (most backends have nothing to do)
        """Free what belongs to the running event loop; the next `ask` may run in another loop."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Free connections and files; received replies are on disk already."""

    async def __aenter__(self) -> Backend:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
