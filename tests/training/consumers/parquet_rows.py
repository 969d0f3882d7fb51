"""What the consumers of parquet files share: arguments, ids of rows, and whether a prompt shows what its row says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fates import explain, start_fates
from tiny_processor import write_processor

Settings = dict[str, Any]
Fates = dict[str, Any]
Judge = Callable[[Path, Settings], Fates]


def name_rows(table: Any, key: str = "id") -> list[str]:
    """The ids of a `datasets.Dataset`, or places where it has none; images are not decoded."""
    ids = table[key] if key in table.column_names else [None] * len(table)
    return [str(name or place) for place, name in enumerate(ids)]


def compare_images(images: int, shown: int, text: str) -> str:
    """How a prompt differs from its row; "" where it does not.

    Args:
        images: number in the row.
        shown: number of places for images in the prompt.
        text: words of the prompt.
    """
    if "<image>" in text:
        return "a mark is left in the text"
    return "" if images == shown else f"{shown} places for {images} images"


def run(arguments: Sequence[str], make_judge: Callable[[Path], Judge]) -> None:
    """Print the fates of the rows of each folder, as one JSON object a line.

    Args:
        arguments: folders, and settings as KEY=VALUE, the value in JSON if it is no text.
        make_judge: makes the function that judges a folder, of the folder of a processor.
    """
    settings: Settings = {}
    for key, _, value in (word.partition("=") for word in arguments if "=" in word):
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    with tempfile.TemporaryDirectory() as made:
        os.environ["HF_DATASETS_CACHE"] = made
        judge = make_judge(write_processor(settings.pop("family", "qwen2.5-vl"), Path(made) / "model"))
        for word in arguments:
            if "=" not in word:
                with contextlib.redirect_stdout(io.StringIO()):
                    try:
                        found = judge(Path(word), settings)
                    except Exception as error:
                        found = start_fates() | {"raised": {"*": explain(error)}}
                print(json.dumps(found), flush=True)
