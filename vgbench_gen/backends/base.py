"""What is asked, what comes back, and what a backend is (`docs/architecture.md#plug-ins`).

A prompt is a list of messages, each an ordered list of text and image parts, because benchmarks differ in where they
put images. Replies are plain data: scorers read saved ones and never see a backend.
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

from vgbench_gen.backends._keys import cover_line as cover_line  # these are for other rooms too
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
    """Words of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """One image of a message."""

    source: bytes | Path
    """JPEG or PNG bytes, or the path of a file that holds them."""
    long_side_px: int = 0
    """Where not 0, an image with a longer side is made smaller before it is sent. Else the bytes go out as they are."""


Part = TextPart | ImagePart


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Role
    parts: tuple[Part, ...]
    """Words and images in the order in which the model reads them."""

    @classmethod
    def of(cls, role: Role, text: str) -> Message:
        """A message of words alone."""
        return cls(role, (TextPart(text),))


class Settings(Config):
    """How a model answers. Everything here is part of the cache key."""

    temperature: float | None = 0.0
    """How freely tokens are picked. None sends none, which some models demand."""
    max_tokens: int | None = Field(default=1024, ge=1)
    """The longest answer in tokens, None for the provider's limit."""
    seed: int | None = None
    """The seed of sampling, where the provider takes one."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer."""
    system: str = ""
    """The system message, which goes before all others."""
    reasoning_effort: str = ""
    """How long a reasoning model thinks, in the provider's words."""
    extra_body: Mapping[str, Any] = Field(default_factory=dict)
    """The provider's own fields, sent as they are."""
    epoch: int = 0
    """The repeat. It is never sent; it tells apart requests of equal content whose replies must be independent."""
    stage: str = ""
    """The stage of the work. It is never sent either."""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt with its settings."""

    messages: tuple[Message, ...]
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class Background:
    """What is known of a question beside its words. It is never sent to a model."""

    source: str = ""
    """Where the question comes from, such as "SpatialScore/BLINK"."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """How its answer came about; empty unless the backend `reads_evidence`."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counts them."""

    prompt_tokens: int = 0
    """Those that were sent."""
    completion_tokens: int = 0
    """Those that the model wrote, its reasoning included."""
    reasoning_tokens: int = 0
    """Those of its reasoning."""
    cached_tokens: int = 0
    """Those of the prompt that the provider had in its cache."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said. `Served._send` gives what the provider knows; the other fields are filled in around it."""

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    text: str
    finish_reason: FinishReason
    model: str
    """The model's name, as the provider says it."""
    request_digest: str = ""
    usage: Usage | None = None
    """Tokens, None where the provider does not count them."""
    cost_usd: float | None = None
    """The cost as the provider says it, else by the cost table when it was asked; None where neither knows it."""
    latency_s: float = 0.0
    """Seconds of the attempt that succeeded."""
    image_sizes_px: tuple[tuple[int, int], ...] = ()
    """(width, height) of every image as it was sent."""
    images: tuple[bytes, ...] = ()
    """Encoded images that the model made."""
    cached: bool = False
    """Whether it was asked before, or at the same time by another caller, so that this one cost nothing."""
    attempts: int = 1
    """How many requests it took."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The settings as they were sent. A model may have forced them to differ from those asked for."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The provider's answer, without pictures and keys."""


def find_shortfall(reply: Reply) -> tuple[str, str]:
    """What a reply lacks ("empty", "cut" or "refused", or "" where it is whole), and why in words."""
    if reply.finish_reason == "content_filter":
        return "refused", "by a content filter"
    answered, usage = bool(reply.text.strip() or reply.images), reply.usage or Usage()
    if reply.finish_reason == "length":
        limit = f" of {usage.completion_tokens} tokens" if usage.completion_tokens else ""
        thought = f" ({usage.reasoning_tokens} of them to reason)" if usage.reasoning_tokens else ""
        when = "the reply was cut at its limit" if answered else "nothing was said when the reply met its limit"
        return "cut" if answered else "empty", f"{when}{limit}{thought}; give it more (--max-tokens)"
    return ("", "") if answered else ("empty", f"the reply holds no words (it ended with {reply.finish_reason})")


class BackendError(VGBenchError):
    """A request got no reply that can be used. The message never holds a key.

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
    """What one backend did so far."""

    requests: int = 0
    """Attempts that were sent."""
    retried: int = 0
    """Those of them after a failure."""
    slowed: int = 0
    """Answers "too many requests"."""
    cached: int = 0
    """Replies that needed no request."""
    tokens: int = 0
    """Tokens used, with an estimate where the provider did not say."""
    usd: float = 0.0
    """Money used, with an estimate where the provider did not say."""
    uncosted: int = 0
    """Replies of models that the cost table does not know."""
    whole: int = 0
    """Requests with a whole reply."""
    short: Counter[str] = field(default_factory=Counter)
    """Other requests, by what their reply lacks (`find_shortfall`) or the kind of the error."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The first reason of each of these kinds."""
    reported: bool = False
    """Whether who asks says so itself; else the backend logs it when it is closed."""

    def note(self, kind: str, reason: str) -> None:
        """Count a request by what came of it; kind "" is a whole reply."""
        self.whole += not kind
        if kind:
            self.short[kind] += 1
            self.reasons.setdefault(kind, reason)

    def list_shortfalls(self, spec: str) -> list[str]:
        """A line for each kind of what was not answered in full, but for what whoever asks is told as an error."""
        total, lines = self.whole + self.short.total(), []
        for kind, count in self.short.items():
            if kind not in ("budget", "cancelled") and (total > 1 or kind in ("empty", "cut", "refused")):
                reason = self.reasons[kind].removeprefix(f"{spec}: ")
                lines.append(f"{spec}: {kind} {count} of {total} requests; the first: {reason}")
        return lines


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend takes and gives besides text."""

    images_in: bool = True
    images_out: bool = False


class Backend(abc.ABC):
    """One model that can be asked. It is used from one event loop at a time and closed after use (`async with`)."""

    spec: str
    """Name of the model as on the command line, such as `openai:gpt-4o`."""
    model: str
    """Name that goes into replies and cache keys."""
    capabilities: Capabilities = Capabilities()
    """What the model takes and gives besides text."""
    parallel: int = 1
    """Number of requests that are worth having under way at once."""
    tally: Tally
    """What was asked so far and what it cost."""
    reads_evidence: bool = False
    """Whether it is told how answers came about, as an agent with oracle tools is: an upper bound, no contestant."""
    makes_images: bool = True
    """Whether it can be asked for images; agents answer in words alone."""

    def describe_setup(self) -> Mapping[str, Any]:
        """All that its replies hang on beside spec, model and settings, ready for JSON; empty for a plain model."""
        return {}

    @abc.abstractmethod
    async def ask(self, messages: Sequence[Message], settings: Settings) -> Reply:
        """The model's reply, from the cache where it was given before.

        Who asks keeps at most `parallel` requests under way: each holds its images.

        Raises:
            BackendError: no usable reply after all retries, the budget is spent, or the request is refused.
        """

    async def ask_about(self, messages: Sequence[Message], settings: Settings, background: Background) -> Reply:
        """As `ask`, with what is known of the question; only agents make anything of it.

        Raises:
            BackendError: as `ask`.
        """
        return await self.ask(messages, settings)

    async def edit(self, images: Sequence[ImagePart], prompt: str, settings: Settings) -> Reply:
        """The reply whose `images` are these images changed as the prompt says. It is asked for in a chat unless a
        backend has an endpoint for it.

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
