"""Results of tools on disk, under a digest of everything they hang on."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.core.kept import KeptTexts

_OWNER = 0x56475453  # tells our files from other SQLite files


class ResultCache(KeptTexts):
    """A file with one row per call of a tool.

    Args:
        path: made, with its folder, when first used.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, _OWNER, "results of tools")

    def get(self, key: str) -> tuple[dict[str, Any], tuple[bytes, ...], str, str] | None:
        """(values, images, failure, message) of the call with this digest; None where it was not made yet.

        Raises:
            ConfigError: as `KeptTexts.read`.
        """
        text = self.read(key)
        if text is None:
            return None
        values, images, failure, message = json.loads(text)
        return values, tuple(map(base64.b64decode, images)), failure, message

    def put(self, key: str, values: Mapping[str, Any], images: Sequence[bytes], failure: str, message: str) -> None:
        """Keep what a call gave.

        Raises:
            ConfigError: as `KeptTexts.write`.
        """
        told = [dict(values), [base64.b64encode(data).decode() for data in images], failure, message]
        self.write(key, json.dumps(told).encode())
