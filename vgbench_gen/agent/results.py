"""Results of tools on disk, under a digest of everything they hang on; shared by any number of processes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError

_TIMEOUT_S = 30.0
_APPLICATION = 0x56475452  # tells our files from other SQLite files


class ResultCache:
    """An SQLite file with one row per call of a tool.

    Args:
        path: made, with its folder, when first used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> tuple[dict[str, Any], tuple[bytes, ...], str, str] | None:
        """(values, images, failure, message) of the call with this digest; None where it was not made yet.

        Raises:
            ConfigError: the file is no cache of ours, or cannot be opened.
        """
        row = self._open().execute("SELECT told FROM results WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        made = self._open().execute("SELECT data FROM images WHERE key = ? ORDER BY place", (key,)).fetchall()
        values, failure, message = json.loads(row[0])
        return values, tuple(bytes(data) for (data,) in made), failure, message

    def put(self, key: str, values: Mapping[str, Any], images: Sequence[bytes], failure: str, message: str) -> None:
        """Keep what a call gave.

        Raises:
            ConfigError: as `get`, or the disk is full.
        """
        told = json.dumps([dict(values), failure, message], ensure_ascii=False)
        try:
            with self._open() as connection:
                connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", (key, told))
                rows = [(key, place, data) for place, data in enumerate(images)]
                connection.executemany("INSERT OR REPLACE INTO images VALUES (?, ?, ?)", rows)
        except sqlite3.OperationalError as error:
            raise ConfigError(f"{self.path}: a tool's result cannot be kept ({error}). Free the disk.") from None

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                connection = sqlite3.connect(self.path, timeout=_TIMEOUT_S, check_same_thread=False)
                owner = connection.execute("PRAGMA application_id").fetchone()[0]
                if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] and owner != _APPLICATION:
                    raise sqlite3.DatabaseError("another program's file")
                with connection:
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    connection.execute("CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, told TEXT NOT NULL)")
                    columns = "key TEXT, place INTEGER, data BLOB, PRIMARY KEY (key, place)"
                    connection.execute(f"CREATE TABLE IF NOT EXISTS images ({columns})")
            except (sqlite3.Error, OSError) as error:
                raise ConfigError(f"{self.path}: cannot be used for results of tools ({error}).") from None
            self._connection = connection
        return self._connection
