"""JSON from elsewhere, with bounds and one kind of error."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any, Literal

from vgbench_gen.core.paths import open_file
from vgbench_gen.core.text_files import decode_text

MAX_BYTES = 256_000_000
"""Of one text, unless the reader says another number."""
MAX_CONTAINERS = 5_000_000
"""Lists and objects of one text; an empty one takes 2 bytes there and 70 in memory."""
OddNumbers = Literal["refuse", "none", "keep"]

_SURROGATE = re.compile("\\\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def parse_json(
    text: str | bytes,
    odd_numbers: OddNumbers = "refuse",
    most_bytes: int = MAX_BYTES,
    most_containers: int = MAX_CONTAINERS,
) -> Any:
    """What the text says. Halves of surrogate pairs, which no file can hold, become "?".

    Args:
        text: bytes are UTF-8, UTF-16 or UTF-32; a byte order mark is passed over.
        odd_numbers: what NaN and infinite numbers are, which could be read but not written again: an error, None as
            other programs write them for what is missing, or the numbers.
        most_bytes: of the text; characters where it is no bytes. most_containers: lists and objects in it.

    Raises:
        ValueError: no JSON, not UTF, too long, too deep, of too many lists and objects, a number of over 4,300 digits,
            or an odd one that is refused.
    """
    if len(text) > most_bytes:
        raise ValueError(f"{len(text)} bytes of JSON; at most {most_bytes} are read")
    if isinstance(text, bytes):
        text = decode_text(text)
    containers = text.count("[") + text.count("{")
    if containers > most_containers:
        raise ValueError(f"{containers} lists and objects; at most {most_containers} are read")
    parse_constant, parse_float = _READERS[odd_numbers]
    try:
        found = json.loads(text.removeprefix("\ufeff"), parse_constant=parse_constant, parse_float=parse_float)
        if _SURROGATE.search(text):
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("too many lists or objects in each other") from None
    return found


def read_json(path: Path, odd_numbers: OddNumbers = "refuse", most_bytes: int = MAX_BYTES) -> Any:
    """What a file says, as `parse_json`; its size is looked at before it is read.

    Raises:
        OSError: it cannot be read. ValueError: no regular file, such as a pipe, which would be waited for; or as
        `parse_json`.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise ValueError(f"{size} bytes of JSON; at most {most_bytes} are read")
        return parse_json(file.read(most_bytes + 1), odd_numbers, most_bytes)


def _refuse(name: str) -> None:
    raise ValueError(f"the number {name}, which JSON does not have")


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]}, which is too large")
    return number


def _parse_or_none(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_READERS: dict[OddNumbers, tuple[Any, Any]] = {
    "refuse": (_refuse, _parse_finite),
    "none": (lambda name: None, _parse_or_none),
    "keep": (None, None),
}
