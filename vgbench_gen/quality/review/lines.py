"""One line of a reviewer's file: a blind answer or a verdict, with everything needed to count it later."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.rng import format_canonical_json, hash_stably
from vgbench_gen.core.types import Item

SCHEMA: Literal[1] = 1
MAX_NOTE = 2000  # characters

Stage = Literal["answer", "verdict"]
Confidence = Literal["sure", "fairly", "guess"]
Verdict = Literal["valid", "invalid", "unsure"]
Flag = Literal[
    "wrong_answer",
    "second_answer",
    "unclear",
    "occluded",
    "marker_misplaced",
    "text_defect",
    "needs_instrument",
    "privacy",
]
Kind = Literal["exchanged", "flipped", "moved_marker", "other_image"]

Key = tuple[str, str, bool, str]

CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FLAGS: tuple[Flag, ...] = get_args(Flag)
KINDS: tuple[Kind, ...] = get_args(Kind)
CANNOT_TELL = "cannot tell"  # a blind answer: neither right nor a guess
AGAINST_VALID = frozenset({"wrong_answer", "second_answer", "privacy"})  # an item with one of these is not valid

# Lower case only: two names must not be one file where the file system ignores case.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}", re.ASCII)


class ReviewError(VGBenchError):
    """Something a reviewer asked for is not possible, or not yet."""


class ReviewLine(BaseModel):
    """One record of `<reviewer>.jsonl`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")
    """The version of the form of this line, written as "schema"."""
    stage: Stage
    """Whether the line holds a blind answer or a verdict."""
    reviewer: str
    item: str
    digest: str
    """The digest of what was judged, see `digest_item`, so that a verdict on other words or images never counts."""
    planted: Literal[Kind, ""] = ""
    """The kind of the planted defect, "" for a real item."""
    batch: str
    """The batch that the item stood in."""
    answer: Annotated[str, Field(max_length=64)] = ""
    """The blind answer, of the stage "answer"."""
    confidence: Literal[Confidence, ""] = ""
    """Of the stage "answer"; all that follow are of the stage "verdict"."""
    verdict: Literal[Verdict, ""] = ""
    flags: tuple[Flag, ...] = ()
    note: Annotated[str, Field(max_length=MAX_NOTE)] = ""
    time: str
    """When the line was written, UTC in ISO 8601."""

    @property
    def key(self) -> Key:
        """What the line is about; of lines with one key the last wins."""
        return self.batch, self.item, bool(self.planted), self.stage

    def to_bytes(self) -> bytes:
        """The line as canonical JSON with its newline."""
        return format_canonical_json(self.model_dump(mode="json", by_alias=True)).encode() + b"\n"


def keep_last(lines: Iterable[ReviewLine]) -> list[ReviewLine]:
    """The lines that hold: the last of each key, in the order in which the keys were first used."""
    held: dict[Key, ReviewLine] = {}
    for line in lines:
        held[line.key] = line
    return list(held.values())


def digest_item(item: Item) -> str:
    """Digest of what a reviewer sees and judges: words, options, answer, images. Place and split do not count."""
    shown = [item.id, item.question, item.context, list(item.options), item.answer, item.unit, list(item.images)]
    return hash_stably(format_canonical_json(shown), size=12)


def normalise_name(text: str) -> str:
    """A reviewer's name as a safe file name.

    Raises:
        ReviewError: other characters than letters, digits, `-` and `_`, too long, or empty.
    """
    name = text.strip().lower()
    if not _NAME.fullmatch(name):
        raise ReviewError(
            f"reviewer name: found {text[:40]!r}; expected 1 to 32 letters a-z, digits, - or _, beginning with a "
            "letter or digit. Choose another name."
        )
    return name
