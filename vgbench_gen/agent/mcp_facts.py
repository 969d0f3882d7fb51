"""What both ends of the Model Context Protocol share: limits, and what our servers add to a tool's announcement."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from vgbench_gen.agent.schemas import clean_text
from vgbench_gen.core.config import Config

META = "vgbench"
"""The key of `ServedFacts` in what the protocol calls meta; results repeat `state` there, and say `failure`."""
MAX_IMAGES = 8  # of one call, and of one reply
MAX_REQUEST_BYTES = 32 << 20
MAX_REPLY_BYTES = 32 << 20
MAX_VALUES = 100_000  # of one message; each takes up to 100 times its bytes in memory


def count_values(data: bytes) -> int:
    """How many values a JSON text may hold, before it is parsed: brackets that open, and commas."""
    return sum(data.count(sign) for sign in (b"{", b"[", b","))


ToolName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,59}$")]
Text = Annotated[str, AfterValidator(clean_text)]


class ServedFacts(Config):
    """What our servers add to a tool's announcement; without it an agent knows less of the tool."""

    does: Text
    """What it does, for a model."""
    returns: dict[ToolName, Text] = Field(max_length=60)
    """Key of the result -> what it is: frame, unit, axis sign."""
    state: str = Field(min_length=1, max_length=200)
    """Changed whenever the same call gives something else: version, options, weights."""
    image: Text = ""
    """What models read of the argument `image`."""
    aliases: tuple[ToolName, ...] = Field(default=(), max_length=10)
    argument_aliases: dict[ToolName, ToolName] = Field(default_factory=dict, max_length=40)
    example: dict[str, Any] = Field(default_factory=dict, max_length=40)
    """Arguments of a call."""
    timeout_s: float = Field(default=60.0, gt=0, le=600)
    """How long a call takes at most on the server, once it began."""
    workers: int = Field(default=1, ge=1, le=1024)
    """How many calls the server runs at once; more wait."""
