"""The words of `vocabulary.toml` as compiled patterns."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_table(name: str = "") -> dict[str, Any]:
    """One table of the file, or the values outside any table for the empty name."""
    data = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text("utf-8"))
    return dict(data[name]) if name else {key: value for key, value in data.items() if not isinstance(value, dict)}


def read_words(key: str, name: str = "") -> list[str]:
    """The entries of one list, as written."""
    return [str(word) for word in read_table(name)[key]]


def match_any_of(*lists: list[str]) -> str:
    """A group that matches any entry; longer entries first, so that "不是" is not read as "不"."""
    entries = sorted((word for entries in lists for word in entries), key=len, reverse=True)
    return f"(?:{'|'.join(entries)})"


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern over lower-case text, with `^` and `$` at line ends.

    Case-insensitive patterns would try every branch at every place, which takes several times as long.
    """
    return re.compile(pattern, re.MULTILINE)
