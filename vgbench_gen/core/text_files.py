"""Text files that a user hands in, as editors and spreadsheets write them.

UTF-8, UTF-16 and UTF-32 are told apart by their byte order mark or their zero bytes. Other encodings (Windows-1252,
GBK) are refused by name of the byte: a guess would change words.
"""

from __future__ import annotations

import errno
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from vgbench_gen.core.paths import ErrorMaker, open_file

MAX_NAMES = 256 << 20
"""Characters of a list of names."""

_REMARK = re.compile(r"(?:^|(?<=\s))#.*")
_ESCAPED = re.compile("[\udc80-\udcff]")  # a byte that is no text, as "surrogateescape" decodes it


def open_text(path: Path, newline: str | None = None) -> TextIO:
    """A file open for reading text, without its byte order mark; see `check_text` for bytes that are none.

    newline: as of `open`: None makes every line end "\\n", "" keeps them.

    Raises:
        OSError: it cannot be read, or a pointer, a web page or an error of a server lies in its place.
    """
    from vgbench_gen.core.stand_ins import HEAD_BYTES, describe_stand_in

    file = open_file(path, pipes=True)
    head = file.peek(HEAD_BYTES)[:HEAD_BYTES]
    # An object of JSON may be a row of its own; who finds it to be none of his looks whether it is an error.
    if head[:1] not in b"{" and (other := describe_stand_in(head)):
        file.close()
        raise OSError(errno.EINVAL, ". ".join(other).rstrip("."), str(path))
    return io.TextIOWrapper(file, json.detect_encoding(head[:4]), "surrogateescape", newline)


def check_text(text: str, line: int = 1) -> str:
    """The text, if no byte of it is of another encoding.

    line: the number of its first line.

    Raises:
        ValueError: one is; says which, in which line, and what to do.
    """
    if found := None if text.isascii() else _ESCAPED.search(text):
        line += text.count("\n", 0, found.start())
        raise ValueError(f"byte 0x{ord(found[0]) - 0xDC00:02X} in line {line}, which is not UTF-8: save it as UTF-8")
    return text


def decode_text(data: bytes) -> str:
    """Bytes as text, by the rules of this module. Raises ValueError as `check_text`."""
    return check_text(data.decode(json.detect_encoding(data), "surrogateescape"))


def iterate_lines(file: TextIO, most: int) -> Iterator[tuple[int, str | None]]:
    """(number from 1, line) without the empty ones; None for a line of over `most` characters, which is passed over."""
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most and not line.endswith("\n"):
            while (rest := file.readline(most)) and not rest.endswith("\n"):
                pass
            yield number, None
        elif line.strip():
            yield number, line


def read_text(path: Path, expected: str, error: ErrorMaker, most: int) -> str:
    """All text of a file, with "\\n" for every line end.

    Args:
        expected: what it should be, such as "a TOML file".
        most: characters that are read.

    Raises:
        VGBenchError: (by `error`) it cannot be read, is longer, or is in another encoding.
    """
    try:
        with open_text(path) as file:
            text = check_text(file.read(most + 1))
        if len(text) <= most:
            return text
        found = f"more than {most} characters"
    except FileNotFoundError:
        found = "no such file"
    except (OSError, ValueError) as problem:
        found = f"no readable file ({problem.strerror})" if isinstance(problem, OSError) else str(problem)
    raise error(path, found, expected, "Check the path.")  # without what it comes from, which may hold a key


def read_names(path: Path, expected: str, error: ErrorMaker) -> list[str]:
    """The lines of a file such as a list of ids, each once; what follows "#" at the beginning of a word is left out.

    Raises:
        VGBenchError: as `read_text`.
    """
    lines = read_text(path, expected, error, MAX_NAMES).split("\n")
    return list(dict.fromkeys(line for raw in lines if (line := _REMARK.sub("", raw).strip())))
