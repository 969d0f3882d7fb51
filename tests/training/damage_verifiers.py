"""What verifiers 0.4.0 does with rows of an exported environment that have a defect.

`raised`: the rollout fails, or its scoring. `file`: no task of the environment is read. `altered`: the reply that the
row calls right is not paid.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def damages(good: Record, folder: Path) -> Iterator[tuple[str, Record, str]]:
    """(defect, a record with it, outcome) of every defect.

    Args:
        good: a record of an export with two images.
        folder: the export; images with defects are written there.
    """
    first = _image(good)["image"]
    (folder / "images" / "words.jpg").write_text("no picture\n")
    (folder / "images" / "cut.jpg").write_bytes((folder / first).read_bytes()[:400])
    for defect, outcome, damage in DEFECTS:
        record = copy.deepcopy(good)
        damage(record)
        yield defect, record, outcome


def _image(record: Record) -> dict[str, Any]:
    """The first image of the question."""
    return next(part for part in record["messages"][-2]["content"] if part["type"] == "image")


def _show(file: str) -> Callable[[Record], object]:
    """Show this file instead of the first image."""
    return lambda record: _image(record).update(image=f"images/{file}")


def _write(turn: int, text: str | None) -> Callable[[Record], object]:
    """Another text at the end of a turn."""
    return lambda record: record["messages"][turn]["content"][-1].update(text=text)


def _solve(**changes: object) -> Callable[[Record], object]:
    return lambda record: record.update(solution=json.dumps(json.loads(record["solution"]) | changes))


DEFECTS: tuple[tuple[str, str, Callable[[Record], object]], ...] = (
    ("none", "kept", lambda record: None),
    ("an image not there", "file", _show("none.jpg")),
    ("an image that is no image", "raised", _show("words.jpg")),
    ("an image cut off", "raised", _show("cut.jpg")),
    ("a question of null", "file", _write(-2, None)),
    ("a solution that is not JSON", "raised", lambda record: record.update(solution="A")),
    ("a truth that is no option", "raised", _solve(truth="Q")),
    ("an unknown field of the solution", "raised", _solve(colour="blue")),
    ("another reply than the solution's", "altered", _write(-1, "Answer: B")),
    ("no system prompt", "kept", lambda record: record["messages"].pop(0)),
)
