"""Keys: found in the environment or a file, worn covered, and cut out of every text that leaves a backend."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import stat
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import getproxies

from vgbench_gen.core.errors import ConfigError

COVER = "[key]"
_MAX_FILE_BYTES = 1 << 16
_SHORTEST = 6  # shorter ones are words such as "none"; cutting those out would maim every message
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
    """Have `redact` cut this text out from now on, also as it stands in URLs, in JSON and in base64."""
    global _pattern
    if len(secret) < _SHORTEST or secret in _known:
        return
    _known.update({secret, quote(secret, safe=""), json.dumps(secret)[1:-1]})
    _known.add(base64.b64encode(secret.encode()).decode().rstrip("="))
    _pattern = re.compile("|".join(re.escape(text) for text in sorted(_known, key=len, reverse=True)))


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


class Redacting(logging.Filter):
    """Covers keys in the records of libraries that log what they send."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true; the record is changed."""
        message = record.getMessage()
        covered = redact(message)
        if covered != message:
            record.msg, record.args = covered, ()
        return True


def guard_logs(*names: str) -> None:
    """Put a `Redacting` filter on each of these loggers; once however often it is called."""
    for name in names:
        logger = logging.getLogger(name)
        if not any(isinstance(known, Redacting) for known in logger.filters):
            logger.addFilter(Redacting())


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
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(_MAX_FILE_BYTES + 1)
    except OSError as exc:
        raise ConfigError(f"{path}: the key file cannot be read ({exc.strerror}). Name a readable file.") from exc
    if len(raw) > _MAX_FILE_BYTES:
        raise ConfigError(f"{path}: larger than {_MAX_FILE_BYTES} bytes; expected a key file. Check the path.")
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        _log.warning("%s can be read by other users of this machine; `chmod 600 %s` keeps the key yours.", path, path)
    try:
        # Not chained: a decoding error carries the bytes.
        lines = [line.strip() for line in raw.decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8; expected a key file. Check the path.") from None
    lines = [line for line in lines if line and not line.startswith("#")]
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
    return urlunsplit((parts.scheme, f"{name}:{port}" if port else name, parts.path.rstrip("/"), "", ""))


def _shorten_url(url: str) -> str:
    text = redact(url)
    return (text.rpartition("@")[2] if "@" in text else text)[:80]
