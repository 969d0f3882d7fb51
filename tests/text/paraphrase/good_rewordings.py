"""Rewordings that the checks must let pass, read from the file beside this one."""

from __future__ import annotations

import tomllib
from pathlib import Path

from vgbench_gen.text.paraphrase.checks import Text


def rewordings(language: str) -> dict[str, list[Text]]:
    """Id of a shipped phrasing -> rewordings of it in one language."""
    found: dict[str, list[Text]] = {}
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["rewordings"]
    for row in rows:
        if row["language"] == language:
            found.setdefault(row["template"], []).append(Text(row["question"], row["context"]))
    return found


GOOD = rewordings("en")
