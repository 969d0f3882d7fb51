"""Replies on disk, under the digest of everything that was asked; shared by any number of processes."""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vgbench_gen.backends.base import Reply, Usage
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.paths import close_if_raised

_TIMEOUT_S = 30.0
_MAX_REPLY_BYTES = 64 << 20
_APPLICATION = 0x56474252  # "VGBR": tells our files from other SQLite files
_VERSION = 1


def reply_to_json(reply: Reply) -> str:
    """All of a reply as one line of JSON."""
    record = {name: getattr(reply, name) for name in _PLAIN}
    record["usage"] = None if reply.usage is None else asdict(reply.usage)
    record["images"] = [base64.b64encode(image).decode("ascii") for image in reply.images]
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def reply_from_json(text: str | bytes) -> Reply:
    """The reply behind `reply_to_json`.

    Raises:
        ValueError: it is none.
    """
    try:
        record: dict[str, Any] = json.loads(text)
        usage = record.pop("usage")
        return Reply(
            **record
            | {
                "usage": None if usage is None else Usage(**usage),
                "images": tuple(base64.b64decode(image) for image in record["images"]),
                "image_sizes_px": tuple((int(w), int(h)) for w, h in record["image_sizes_px"]),
            }
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ValueError(f"no reply: {type(exc).__name__}") from None


_PLAIN = (
    "text", "finish_reason", "model", "request_digest", "cost_usd", "latency_s", "image_sizes_px", "attempts",
    "parameters", "raw",
)  # fmt: skip


class ReplyCache:
    """An SQLite file with one row per reply. A row is there whole or not at all, whenever a process dies.

    Args:
        path: made when first written, with its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def get(self, digest: str) -> Reply | None:
        """The reply kept under this digest; None where there is none or the row is damaged.

        Raises:
            ConfigError: the file is no cache of ours or cannot be opened.
        """
        row = self._open().execute(
            "SELECT CAST(reply AS BLOB) FROM replies WHERE digest = ? AND length(reply) <= ?",
            (digest, _MAX_REPLY_BYTES),
        ).fetchone()  # fmt: skip
        if row is None:
            return None
        with suppress(ValueError):
            reply = reply_from_json(row[0])
            if reply.request_digest == digest:
                return reply
        return None

    def put(self, digest: str, record: str) -> None:
        """Keep what `reply_to_json` gave. When this returns, a killed process no longer loses it.

        Raises:
            ConfigError: as `get`, or the disk is full.
        """
        if len(record) > _MAX_REPLY_BYTES:
            return
        try:
            self._open().execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (digest, record.encode("utf-8")))
        except sqlite3.OperationalError as exc:
            raise ConfigError(
                f"{self.path}: a reply cannot be kept ({exc}). Free the disk or name another --cache."
            ) from None

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Each statement is a transaction of its own.
            connection = sqlite3.connect(self.path, timeout=_TIMEOUT_S, isolation_level=None, check_same_thread=False)
            with close_if_raised(connection.close):
                self._prepare(connection)
        except (sqlite3.Error, OSError) as exc:
            raise ConfigError(
                f"{self.path}: cannot be used as a cache of replies ({exc}). Name another file with --cache."
            ) from None
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # Looked at before anything is changed: a file of another program stays as it is.
        if not self._is_ours(connection):
            self._make(connection)
        connection.execute("PRAGMA synchronous = NORMAL")

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Whether the file is a cache (true) or empty (false)."""
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            return False
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if (owner, version) != (_APPLICATION, _VERSION):
            raise sqlite3.DatabaseError("another program's file, or another version's")
        return True

    def _make(self, connection: sqlite3.Connection) -> None:
        patience = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError:
                # The switch does not wait for another process that is making it too, unlike every other statement.
                if time.monotonic() > patience:
                    raise
                time.sleep(0.02)
        connection.execute("BEGIN IMMEDIATE")
        if not self._is_ours(connection):
            connection.execute("CREATE TABLE replies (digest TEXT PRIMARY KEY, reply BLOB NOT NULL)")
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
