"""Results of tools on disk, under a digest of everything that they depend on."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.core.kept import KeptTexts

_OWNER = 0x56475453  # the SQLite application id of these files ("VGTS")


class ResultCache(KeptTexts):
    """A file with one row per call of a tool.

    Args:
        path: created, with its folder, on first use.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, _OWNER, "results of tools")

    def get(self, key: str) -> tuple[dict[str, Any], tuple[bytes, ...], str, str] | None:
        """(values, images, failure, message) of the call with this digest; None if it was not kept.

        Raises:
            ConfigError: as `KeptTexts.read`.
        """
        text = self.read(key)
        if text is None:
            return None
        values, images, failure, message = json.loads(text)
        return values, tuple(map(base64.b64decode, images)), failure, message

    def put(self, key: str, values: Mapping[str, Any], images: Sequence[bytes], failure: str, message: str) -> None:
        """Keep the result of a call.

        Raises:
            ConfigError: as `KeptTexts.write`.
        """
        record = [dict(values), [base64.b64encode(data).decode() for data in images], failure, message]
        self.write(key, json.dumps(record).encode())
