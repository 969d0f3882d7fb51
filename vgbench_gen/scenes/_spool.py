"""Encoded images kept on disk while a scene is measured."""

from __future__ import annotations

import tempfile


class Spool:
    """Bytes kept in one unnamed temporary file, so that many frames cost disk and not memory."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="vgbench-")  # noqa: SIM115 - lives as long as the view

    def put(self, data: bytes) -> tuple[int, int]:
        """Keep bytes; the slot gets them back."""
        offset = self._file.seek(0, 2)
        self._file.write(data)
        return offset, len(data)

    def get(self, slot: tuple[int, int]) -> bytes:
        """The bytes of a slot."""
        self._file.seek(slot[0])
        return self._file.read(slot[1])

    def close(self) -> None:
        """Drop everything."""
        self._file.close()
