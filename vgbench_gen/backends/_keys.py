"""Keys: found in the environment or a file, worn covered, and cut out of every text that leaves a backend."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import getproxies

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.lines import format_command, make_one_line
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import read_text

COVER = "[key]"
_MAX_FILE_BYTES = 1 << 16
_SHORTEST = 6  # shorter ones are words such as "none"; cutting those out would maim every message
_LONG = 24  # of keys of this length the beginning is covered too: some servers say that and no more
_SHOWN_CHARS = 300
# What may stand between two characters of a key where a text was wrapped, also as JSON writes it.
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
    """A key that shows itself only to `reveal`. Printing and formatting give a cover; pickling is refused.

    Args:
        value: the key. It is remembered, so that `redact` knows it from now on.
        where: variable or file it came from, for messages.

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
        """The key itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"Key({COVER} from {self.where})"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a key is not pickled: open the backend anew where it is needed")


def register_secret(secret: str) -> None:
    """Have `redact` cover this text from now on.

    Also as it stands in URLs, in JSON, in base64 with whatever before and behind it, wrapped over lines, and of long
    ones the beginning.
    """
    global _pattern
    if len(secret) < _SHORTEST or secret in _known:
        return
    _known.add(secret)
    forms = sorted(((text, form) for known in _known for text, form in _list_forms(known)), key=lambda f: -len(f[0]))
    _pattern = re.compile("|".join(dict.fromkeys(form for _, form in forms)))


def _list_forms(secret: str) -> Iterator[tuple[str, str]]:
    """(text, pattern for it) of every form in which a secret is covered."""
    yield secret, _spell(secret)
    yield from ((text, _spell(text)) for text in _list_base64(secret.encode()))
    if len(secret) >= _LONG:
        yield secret[:16], _spell(secret[:16]) + r"[\w.~+/=%-]*"


def _list_base64(secret: bytes) -> Iterator[str]:
    """The secret in base64 alone, and what it always gives inside a longer text, wherever it begins there."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(secret).decode().rstrip("=")
        for before in range(3):
            whole = (8 * (before + len(secret))) // 6  # characters that what follows does not change
            yield encode(bytes(before) + secret).decode()[-(-8 * before // 6) : whole]


def _spell(text: str) -> str:
    """A pattern for the text, whichever of its characters are quoted as in URLs or in JSON."""
    parts = []
    for char in text:
        if char.isascii() and char.isalnum():
            parts.append(char)
            continue
        forms = {rf"\\*{re.escape(char)}", *(f"(?i:{re.escape(f)})" for f in (quote(char, safe=""), _quote_json(char)))}
        parts.append(f"(?:{'|'.join(sorted(forms))})")
    return _BREAK.join(parts)


def _quote_json(char: str) -> str:
    return json.dumps(char)[1:-1]


def register_proxy_passwords() -> None:
    """Passwords of proxies are secrets too: a failed connection may name its proxy."""
    for url in getproxies().values():
        if "://" in url and "@" in url:
            pair = unquote(url.partition("://")[2].rpartition("@")[0])
            for secret in (pair, pair.partition(":")[2]):
                register_secret(secret)


def redact(text: str) -> str:
    """The text with every known key covered."""
    return text if _pattern is None else _pattern.sub(COVER, text)


def redact_tree(tree: Any) -> Any:
    """The same for every text in what JSON holds, names of fields too."""
    if isinstance(tree, dict):
        return {redact(name): redact_tree(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [redact_tree(value) for value in tree]
    return redact(tree) if isinstance(tree, str) else tree


def cover_line(text: str) -> str:
    """What a server or library says, for a message: keys covered first, then one line of at most 300 characters."""
    return make_one_line(redact(text), _SHOWN_CHARS)


class Redacting(logging.Filter):
    """Covers keys in the records of libraries that log what they send."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true; the record is changed."""
        message = record.getMessage()
        covered = redact(message)
        if covered != message:
            record.msg, record.args = covered, ()
        if record.exc_info:  # a traceback ends in the words of a server or a library
            told = record.exc_text or logging.Formatter().formatException(record.exc_info)
            record.exc_info, record.exc_text = None, redact(told)
        return True


def guard_logs(*names: str) -> None:
    """Put a `Redacting` filter on these loggers, and on what shows the records of all where a program configures
    nothing; once however often it is called."""
    for place in (*map(logging.getLogger, names), logging.lastResort):
        if place is not None and not any(isinstance(known, Redacting) for known in place.filters):
            place.addFilter(Redacting())


def find_key(variables: tuple[str, ...], key_file: Path | None) -> Key | None:
    """The key from the file if one is named, else from the first of the environment variables that is set.

    A key file holds the key alone, or lines `NAME=value`, of which the one with a name in `variables` counts.

    Raises:
        ConfigError: the file cannot be read, is too large, or has no key under these names.
    """
    if key_file is not None:
        return Key(_read_key_file(key_file, variables), str(key_file))
    for name in variables:
        if os.environ.get(name, "").strip():
            return Key(os.environ[name], name)
    return None


def _read_key_file(path: Path, variables: tuple[str, ...]) -> str:
    text = read_text(path, "a key file", config_error, _MAX_FILE_BYTES)
    with suppress(OSError):
        if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            told = "%s can be read by other users of this machine; `%s` keeps the key yours."
            _log.warning(told, path, format_command("chmod", "600", path))
    lines = [line for each in text.split("\n") if (line := each.strip()) and not line.startswith("#")]
    named = {m["name"]: m["value"].strip().strip("\"'") for line in lines if (m := _LINE.fullmatch(line))}
    for name in variables:
        if name in named:
            return named[name]
    if len(lines) == 1 and not (named and next(iter(named)).isupper()):
        return lines[0]
    wanted = " or ".join(f"{name}=…" for name in variables)
    raise ConfigError(f"{path}: found no key for this provider; expected the key alone or a line {wanted}.")


def strip_url(url: str) -> str:
    """The address without user, password, query and fragment; what was cut is remembered as secret.

    So are parts of its path that look like keys. A digest stands in their place, because replies to different
    addresses are different.

    Raises:
        ConfigError: it is no http or https address.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"{_shorten_url(url)}: expected an address such as https://host/v1. Check --base-url.")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    # As a pair it is sent in base64 (RFC 7617); a user alone is a token.
    for secret in (password or user, f"{user}:{password}" if password else "", unquote(parts.query)):
        register_secret(secret)
    if parts.query:
        for value in parts.query.split("&"):
            register_secret(unquote(value.partition("=")[2]))
    name = f"[{host}]" if ":" in host else host
    path = "/".join(map(_cover_key_in_path, parts.path.rstrip("/").split("/")))
    return urlunsplit((parts.scheme, f"{name}:{port}" if port else name, path, "", ""))


def _cover_key_in_path(part: str) -> str:
    if redact(unquote(part)) == unquote(part) and not _KEY_IN_PATH.fullmatch(unquote(part)):
        return part
    register_secret(unquote(part))
    return f"[key-{hashlib.blake2b(part.encode(), digest_size=4).hexdigest()}]"


def _shorten_url(url: str) -> str:
    """The beginning of what is no address, without all that may be secret in one."""
    return make_one_line(re.split(r"[?#]", redact(url).rpartition("@")[2])[0], 80)
