"""Reads the word lists of `vocabulary.toml` and compiles them to patterns."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_table(name: str = "") -> dict[str, Any]:
    """A table of the file; for the empty name the values outside tables."""
    data = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text("utf-8"))
    return dict(data[name]) if name else {key: value for key, value in data.items() if not isinstance(value, dict)}


def read_words(key: str, name: str = "") -> list[str]:
    """The entries of a list."""
    return [str(word) for word in read_table(name)[key]]


def match_any_of(*lists: list[str]) -> str:
    """A pattern that matches any entry; longer entries come first, so that "不是" is not matched as "不"."""
    entries = sorted((word for entries in lists for word in entries), key=len, reverse=True)
    return f"(?:{'|'.join(entries)})"


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern for lower-case text, in which `^` and `$` match at line ends.

    Case-insensitive patterns would be several times slower, because they try every branch at every position.
    """
    return re.compile(pattern, re.MULTILINE)
