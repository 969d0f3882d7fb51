"""Finds API keys in the environment or a file, and covers them in every text that leaves a backend."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit
from urllib.request import getproxies

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.lines import format_command, make_one_line
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import read_text

COVER = "[key]"
_MAX_FILE_BYTES = 1 << 16
_SHORTEST = 6  # shorter secrets are not covered, because they may be words such as "none"
_LONG = 24  # the start of keys at least this long is covered too, because some servers quote only that
_SHOWN_CHARS = 300
# Line breaks between two characters of a key in a wrapped text, plain or escaped as in JSON.
_BREAK = r"(?:\s|\\+[nrt])*"
# Parts of an address that are a key: a UUID, a usual prefix, or a long mixture of digits and letters.
_KEY_IN_PATH = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:sk|pk|key|token|api|hf|gsk)[-_][\w.~-]{6,}"
    r"|(?=[\w.~-]*\d)(?=[\w.~-]*[a-z])(?:[\w.~-]*[-_.~])?\w{16,}(?:[-_.~][\w.~-]*)?",
    re.ASCII | re.IGNORECASE,
)
_LINE = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*)")
_log = logging.getLogger("vgbench_gen.backends")
_known: set[str] = set()
_pattern: re.Pattern[str] | None = None


class Key:
    """A key that only `reveal` returns. Printing and formatting show `COVER`; pickling is refused.

    Args:
        value: the key, which is registered for `redact`.
        where: the variable or file of the key, for messages.

    Raises:
        ConfigError: it is empty or holds characters that no HTTP header takes.
    """

    __slots__ = ("_value", "where")

    def __init__(self, value: str, where: str) -> None:
        value = value.strip()
        if not value:
            raise ConfigError(f"{where}: found an empty key; expected the key itself. Set it or unset the variable.")
        if not value.isascii() or not value.isprintable() or " " in value:
            raise ConfigError(
                f"{where}: found a key with spaces, line breaks or characters outside ASCII; expected the key alone. "
                "Copy it again."
            )
        self._value, self.where = value, where
        register_secret(value)

    def reveal(self) -> str:
        """The key, for the client that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"Key({COVER} from {self.where})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a key is not pickled: open the backend anew where it is needed")


def register_secret(secret: str) -> None:
    """Let `redact` cover this text from now on, unless it is shorter than six characters.

    It is also covered when quoted in a URL or in JSON, in base64 at any offset of a longer text, wrapped over lines,
    and, if it is long, when only its start is quoted.
    """
    global _pattern
    if len(secret) >= _SHORTEST and secret not in _known:
        _known.add(secret)
        forms = {form for known in _known for form in _list_forms(known)}
        _pattern = re.compile("|".join(sorted(forms, key=lambda form: (-len(form), form))))


def _list_forms(secret: str) -> Iterator[str]:
    """Patterns for all forms of a secret that are covered."""
    yield _spell(secret)
    if len(secret) >= _LONG:
        yield _spell(secret[:16]) + r"[\w.~+/=%-]*"
    data = secret.encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield _spell(encode(data).decode().rstrip("="))
        for before in range(3):  # the characters that do not depend on the text around it, for each offset modulo 3
            unchanged = (8 * (before + len(data))) // 6
            yield _spell(encode(bytes(before) + data).decode()[-(-8 * before // 6) : unchanged])


def _spell(text: str) -> str:
    """A pattern for the text in which any character may be quoted as in URLs or in JSON."""
    return _BREAK.join(
        char
        if char.isascii() and char.isalnum()
        else rf"(?:\\*{re.escape(char)}|(?i:{re.escape(quote(char, safe=''))}|\\+u{ord(char):04x}))"
        for char in text
    )


def register_proxy_passwords() -> None:
    """Register the passwords of proxies, because the error of a connection may name its proxy."""
    for url in getproxies().values():
        if "://" in url and "@" in url:
            pair = unquote(url.partition("://")[2].rpartition("@")[0])
            for secret in (pair, pair.partition(":")[2]):
                register_secret(secret)


def redact(text: str) -> str:
    """The text with every registered secret covered."""
    return text if _pattern is None else _pattern.sub(COVER, text)


def redact_tree(tree: Any) -> Any:
    """As `redact`, for every text in a JSON value, including the names of fields."""
    if isinstance(tree, dict):
        return {redact(name): redact_tree(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [redact_tree(value) for value in tree]
    return redact(tree) if isinstance(tree, str) else tree


def cover_line(text: str) -> str:
    """A server's or library's text for a message: with secrets covered, in one line of at most 300 characters."""
    return make_one_line(redact(text), _SHOWN_CHARS)


def guard_logs(*names: str) -> None:
    """Cover keys in the records of these loggers, and in those of all loggers in programs without logging settings."""
    for target in (*map(logging.getLogger, names), logging.lastResort):
        if target is not None:
            target.addFilter(_cover_record)  # repeated calls add it once


def _cover_record(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    covered = redact(message)
    if covered != message:
        record.msg, record.args = covered, ()
    if record.exc_info:  # a traceback ends with the message of a server or a library
        text = record.exc_text or logging.Formatter().formatException(record.exc_info)
        record.exc_info, record.exc_text = None, redact(text)
    return True


def find_key(variables: tuple[str, ...], key_file: Path | None) -> Key | None:
    """The key from the file if one is named, else from the first of the environment variables that is set.

    A key file holds only the key, or lines `NAME=value` with one of the names in `variables`.

    Raises:
        ConfigError: the file cannot be read, is too large, or has no key under these names.
    """
    if key_file is not None:
        return Key(_read_key_file(key_file, variables), str(key_file))
    named = next((name for name in variables if os.environ.get(name, "").strip()), None)
    return None if named is None else Key(os.environ[named], named)


def _read_key_file(path: Path, variables: tuple[str, ...]) -> str:
    text = read_text(path, "a key file", config_error, _MAX_FILE_BYTES)
    with suppress(OSError):
        if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            warning = "%s can be read by other users of this machine; `%s` keeps the key private."
            _log.warning(warning, path, format_command("chmod", "600", path))
    lines = [line for each in text.split("\n") if (line := each.strip()) and not line.startswith("#")]
    named = {m["name"]: m["value"].strip().strip("\"'") for line in lines if (m := _LINE.fullmatch(line))}
    for name in variables:
        if name in named:
            return named[name]
    if len(lines) == 1 and not (named and next(iter(named)).isupper()):
        return lines[0]
    wanted = " or ".join(f"{name}=…" for name in variables) or "NAME=…"
    raise ConfigError(f"{path}: found no key for this provider; expected the key alone or a line {wanted}.")


def split_address(url: str, where: str) -> SplitResult:
    """The parts of a server's address.

    Args:
        url: may have a user and a password, which no message shows.
        where: the option, variable or field of the address, for messages.

    Raises:
        ConfigError: no http or https address, an invalid port, or an invalid character such as a line break.
    """
    import httpx2

    usable = url.isprintable() and " " not in url and url.lower().startswith(("http://", "https://"))
    try:
        httpx2.URL(url)  # it refuses more than `urlsplit`, and here the error gets a clear message
        parts = urlsplit(url)
        usable = usable and bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not usable:
        # The start of the address without user, password and query, which may be secret.
        shown = make_one_line(re.split(r"[?#]", redact(url).rpartition("@")[2])[0], 80)
        raise ConfigError(f"{shown}: expected an address such as https://host/v1. Check {where}.")
    return parts


def strip_url(url: str, where: str = "--base-url") -> str:
    """The address without user, password, query and fragment, which are registered as secrets.

    Parts of the path that look like keys are registered too, and replaced by a digest, so that cache keys still differ.

    Raises:
        ConfigError: as `split_address`.
    """
    parts = split_address(url, where)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    values = [unquote(value.partition("=")[2]) for value in parts.query.split("&")]
    # A user with a password is sent as a pair in base64 (RFC 7617); a user alone is a token.
    for secret in (password or user, f"{user}:{password}" if password else "", unquote(parts.query), *values):
        register_secret(secret)
    host = parts.hostname or ""
    place = (f"[{host}]" if ":" in host else host) + (f":{parts.port}" if parts.port else "")
    path = "/".join(map(_cover_key_in_path, parts.path.rstrip("/").split("/")))
    return urlunsplit((parts.scheme, place, path, "", ""))


def _cover_key_in_path(part: str) -> str:
    if redact(unquote(part)) == unquote(part) and not _KEY_IN_PATH.fullmatch(unquote(part)):
        return part
    register_secret(unquote(part))
    return f"[key-{hashlib.blake2b(part.encode(), digest_size=4).hexdigest()}]"
