"""Which media file a picture was rendered to, so that composing again draws and encodes nothing twice.

Only a memory: every entry can be lost, and a broken or locked cache means rendering again, never other bytes.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import OrderedDict
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import ColorArray
from vgbench_gen.store import drawing, pictures
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import Picture

_TIMEOUT_S = 30.0
_BASES_BYTES = 100 * 10**6  # of decoded bases: 42 frames at the delivered size, 17 at the wide one


class PictureCache:
    """Renders pictures into a media store and remembers their names; safe for several processes at once.

    Args:
        path: SQLite file; made when first needed, may be deleted at any time. None remembers nothing: SQLite files
            must not be shared between machines.
        media: where base images are found and rendered pictures go.
    """

    def __init__(self, path: Path | None, media: MediaStore) -> None:
        self.path, self.media = path, media
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        self._bases: OrderedDict[str, ColorArray] = OrderedDict()

    def name(self, picture: Picture) -> str:
        """Media name of the rendered picture; the base's own name where it passes through unchanged.

        Raises:
            DatasetError: as `pictures.render`.
        """
        key = hash_stably(_describe_renderer(), picture.key(), size=16)
        known = self._look_up(key)
        if known is not None:
            with suppress(DatasetError):  # a foreign entry is as good as none
                if self.media.has(known):
                    return known
        name = self.media.put(pictures.render(picture, self.media, self._load_base), "jpg")
        self._remember(key, name)
        return name

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        if self._connection is not None and self._owner == os.getpid():
            self._connection.close()
        self._connection = None

    def _load_base(self, name: str) -> ColorArray:
        """The decoded base; the last few are kept, because the pictures of one frame are made close together."""
        if name not in self._bases:
            self._bases[name] = pictures.decode(self.media.get(name), name)
            while len(self._bases) > 1 and sum(base.nbytes for base in self._bases.values()) > _BASES_BYTES:
                self._bases.popitem(last=False)
        self._bases.move_to_end(name)
        return self._bases[name]

    def _look_up(self, key: str) -> str | None:
        if self.path is None:
            return None
        try:
            row = self._open(self.path).execute("SELECT name FROM pictures WHERE key = ?", (key,)).fetchone()
        except (sqlite3.Error, OSError):
            return None
        return row[0] if row is not None and isinstance(row[0], str) else None

    def _remember(self, key: str, name: str) -> None:
        if self.path is None:
            return
        with suppress(sqlite3.Error, OSError):
            self._open(self.path).execute("INSERT OR REPLACE INTO pictures VALUES (?, ?)", (key, name))

    def _open(self, path: Path) -> sqlite3.Connection:
        # SQLite forbids carrying a connection over a fork.
        if self._connection is None or self._owner != os.getpid():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._connection = _connect(path)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:  # not a database any more: begin anew
                path.unlink(missing_ok=True)
                self._connection = _connect(path)
            self._owner = os.getpid()
        return self._connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS pictures (key TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@cache
def _describe_renderer() -> str:
    """What the bytes of a rendering depend on besides the picture: our drawing code and the codec."""
    digest = hashlib.blake2b(digest_size=16)
    for module in (pictures, drawing):
        digest.update(Path(str(module.__file__)).read_bytes())
    return f"{digest.hexdigest()} opencv {version('opencv-python')} numpy {version('numpy')}"
