"""What cost time or money, kept in an SQLite file under a digest of all that it hangs on."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.paths import close_if_raised

MAX_BYTES = 64 << 20
"""Of one text; larger ones are neither kept nor read."""
_TIMEOUT_S = 30.0


class KeptTexts:
    """An SQLite file with one row per text. A row is there whole or not at all, whenever a process dies.

    Args:
        path: made when first used, with its folder.
        owner: number that tells files of this kind and form from other SQLite files.
        what: is kept, for messages.
    """

    def __init__(self, path: Path, owner: int, what: str) -> None:
        self.path, self._owner, self._what = path, owner, what
        self._connection: sqlite3.Connection | None = None

    def read(self, key: str) -> bytes | None:
        """The text kept under this key; None where there is none.

        Raises:
            ConfigError: the file is no file of this kind, or cannot be opened.
        """
        sought = "SELECT CAST(text AS BLOB) FROM kept WHERE key = ? AND length(text) <= ?"
        row = self._open().execute(sought, (key, MAX_BYTES)).fetchone()
        return None if row is None else bytes(row[0])

    def write(self, key: str, text: bytes) -> None:
        """Keep a text. When this returns, a killed process no longer loses it.

        Raises:
            ConfigError: as `read`, or the disk is full.
        """
        if len(text) > MAX_BYTES:
            return
        try:
            self._open().execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (key, text))
        except sqlite3.OperationalError as exc:
            raise ConfigError(
                f"{self.path}: {self._what} cannot be kept ({exc}). Free the disk or name another --cache."
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
                # Looked at before anything is changed: a file of another program stays as it is.
                if not self._is_ours(connection):
                    self._make(connection)
                connection.execute("PRAGMA synchronous = NORMAL")
        except (sqlite3.Error, OSError) as exc:
            raise ConfigError(
                f"{self.path}: cannot be used to keep {self._what} ({exc}). Name another file with --cache."
            ) from None
        self._connection = connection
        return connection

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Whether the file is one of this kind (true) or empty (false)."""
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            return False
        if connection.execute("PRAGMA application_id").fetchone()[0] != self._owner:
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
            connection.execute("CREATE TABLE kept (key TEXT PRIMARY KEY, text BLOB NOT NULL)")
            connection.execute(f"PRAGMA application_id = {self._owner}")
        connection.execute("COMMIT")
