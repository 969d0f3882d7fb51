"""What lies in the place of a file: pointers, web pages and errors of servers that were saved under its name."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.paths import open_file

HEAD_BYTES = 4096
_AGAIN = "The download failed or was not finished: get the file again, signed in where its source asks for it."
_POINTERS = {
    b"version https://git-lfs.github.com/spec/": ("a Git LFS pointer, not the file", "Run `git lfs pull` there."),
    b"/annex/objects/": ("a git-annex pointer, not the file", "Run `git annex get` there."),
}
_PAGE = re.compile(
    rb"(<\?xml[^>]*>\s*)?(?>(<!--.*?-->\s*)*)<(!doctype\s+html|html|head|body|title|meta|script)\b", re.I | re.S
)
_ERROR = re.compile(
    rb"(<\?xml[^>]*>\s*)?<(\w+:)?error\b.*|([45]\d\d:? +)?(\w+ )?(not found|(access|permission) denied|forbidden|"
    rb"unauthori[sz]ed|too many requests|bad gateway|bad request|(internal )?server error|service unavailable|"
    rb"gateway time-?out|invalid username)\b.{0,99}",
    re.I | re.S,
)


def describe_stand_in(head: bytes) -> tuple[str, str] | None:
    """What lies in the place of a file, and what to do about it; None where its head may be that of the file.

    Args:
        head: the first `HEAD_BYTES` bytes, or all of a shorter file. A JSON object counts as the error of a server
            where it ends there and says that it is one; so may a log of one reply.
    """
    if not head.strip(b"\0"):
        return ("zeros at its beginning" if head else "an empty file"), _AGAIN
    text = head.removeprefix(b"\xef\xbb\xbf").strip()
    if pointer := next((what for start, what in _POINTERS.items() if text.startswith(start)), None):
        return pointer
    title = re.search(rb"<(?:title[^>]*|code)>\s*([^<]{1,60})", text, re.I)
    said = " ".join((title[1] if title else text[:60]).decode("utf-8", "replace").split())
    if _PAGE.match(text):
        return f"a web page ({said}), not the file", _AGAIN
    if _ERROR.fullmatch(text) or (text[:1] == b"{" and _is_error(text)):
        return f"the error of a server ({said}), not the file", _AGAIN
    return None


def _is_error(text: bytes) -> bool:
    try:
        found = parse_json(text)
    except ValueError:
        return False
    return isinstance(found, dict) and any(map(found.get, ("error", "errors", "message", "detail", "msg", "fault")))


def describe_file(path: Path) -> tuple[str, str] | None:
    """As `describe_stand_in`, of a file; None also where it cannot be read."""
    with suppress(OSError, ValueError), open_file(path) as file:
        return describe_stand_in(file.read(HEAD_BYTES))
    return None


def word_error(where: object, found: str, expected: str, remedy: str) -> str:
    """An error in one line: where, what was found, what was expected and what to do.

    Where that is a file in whose place something else lies, it says that instead of `found` and `remedy`.
    """
    if isinstance(where, Path):
        found, remedy = describe_file(where) or (found, remedy)
    return f"{where}: found {found}; expected {expected}. {remedy}"


def config_error(where: object, found: str, expected: str, remedy: str) -> ConfigError:
    """A `ConfigError`; see `word_error`."""
    return ConfigError(word_error(where, found, expected, remedy))
