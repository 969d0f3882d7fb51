"""JSON from elsewhere, with one kind of error."""

from __future__ import annotations

import json
import math
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """What the text says; numbers are finite.

    Raises:
        ValueError: no JSON, not UTF-8, too deep, a number of over 4,300 digits, or one that is NaN or infinite, which
            could be read but not written again.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_parse_float)
    except RecursionError:
        raise ValueError("too many lists or objects in each other") from None


def _refuse(name: str) -> None:
    raise ValueError(f"the number {name}, which JSON does not have")


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]}, which is too large")
    return number
