"""What oracle tools share: the row's revealed quantities, and how a call's images and rectangles find them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from vgbench_gen.agent.tool import ArgumentsT, Tier, Tool, ToolError, ToolInput, ToolOutput
from vgbench_gen.tasks.revealed import (
    Revealed,
    RevealedHomography,
    RevealedMotion,
    RevealedObject,
    RevealedRegion,
    RevealedTrack,
    is_same_rect,
)

NOTHING = "the row tells nothing of it"
PairT = TypeVar("PairT", RevealedHomography, RevealedMotion, RevealedTrack)
PlacedT = TypeVar("PlacedT", RevealedObject, RevealedRegion)


class OracleTool(Tool[ArgumentsT]):
    """A tool that answers from the evidence of the row, as a perfect one would; it looks at no pixel."""

    tier: ClassVar[Tier] = "oracle"
    runs = "here"

    async def run_here(self, given: ToolInput[ArgumentsT]) -> ToolOutput:
        """As `run`, which takes no time."""
        return self.run(given)


def read_revealed(given: ToolInput) -> Revealed:
    """What the row tells; nothing where no row was given."""
    return Revealed.read(dict(given.evidence), "the question")


def find_place(name: str) -> int:
    """The place of an image among those of the run, from 0."""
    return int(name.removeprefix("image-"))


def find_pair(listed: Sequence[PairT], names: tuple[str, str]) -> tuple[PairT, bool] | None:
    """(what is told of two images, whether it is told from the first to the second); None where nothing is."""
    first, second = map(find_place, names)
    for one in listed:
        if (one.first, one.second) in ((first, second), (second, first)):
            return one, one.first == first
    return None


def find_rect(listed: Sequence[PlacedT], image: str, rect: Sequence[float]) -> PlacedT:
    """What is told of a rectangle [x1, y1, x2, y2] of an image, pixels.

    Raises:
        ToolError: nothing is.
    """
    place = find_place(image)
    for one in listed:
        if one.image == place and is_same_rect(one.rect_px, rect):
            return one
    raise ToolError(
        f"{NOTHING}: {image}, {[round(x, 1) for x in rect]}; it tells of rectangles that the question draws"
    )
