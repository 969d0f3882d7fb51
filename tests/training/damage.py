"""Defects of training files with conversations and `<image>` marks, one row each, and folders that contain one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

Record = dict[str, Any]
OVERLONG = "deep " * 140_000  # more tokens than any of the tested models reads


@dataclass(frozen=True)
class Outcome:
    """What a trainer does with a defective row at its default settings."""

    fate: str
    """"kept", "altered" (kept, but something else is trained), "dropped" or "raised"."""
    says: str = ""
    """Words of the reason."""
    whole: bool = False
    """Whether all rows of the file share the fate."""


@dataclass(frozen=True)
class Damaged:
    """A row with one defect."""

    defect: str
    line: str
    """The row as it stands in the file."""
    outcome: Outcome


def make_defects(record: Record, folder: Path) -> dict[str, str]:
    """Defect -> the line of the file that has it.

    Args:
        record: a sound row with two images and a system prompt.
        folder: where it lies; files of defective images are written there.
    """
    (folder / "images" / "none.jpg").unlink(missing_ok=True)
    (folder / "images" / "words.jpg").write_text("no image\n", encoding="utf-8")
    (folder / "images" / "empty.jpg").write_bytes(b"")
    whole = (folder / record["images"][0]).read_bytes()
    (folder / "images" / "half.jpg").write_bytes(whole[: len(whole) // 2])
    Image.new("RGB", (2000, 8)).save(folder / "images" / "long.png")
    Image.new("LA", (64, 64)).save(folder / "images" / "grey.png")
    Image.new("RGB", (1600, 1200)).save(folder / "images" / "large.png")
    Image.new("RGB", (12, 12)).save(folder / "images" / "tiny.png")
    images: list[str] = record["images"]

    def show(path: str) -> dict[str, Any]:
        return {"images": [path, *images[1:]]}

    changed: dict[str, Record] = {
        "none": {},
        "one mark fewer": asked(record, lambda text: text.replace("<image>", "", 1)),
        "no marks": asked(record, lambda text: text.replace("<image>", "")),
        "one mark more": asked(record, lambda text: "<image>" + text),
        "literal mark": asked(record, lambda text: text + "\nWhat does <image> mean?"),
        "mark in the answer": answered(record, "<image>"),
        "mark in the system prompt": said(record, "system", lambda text: text + " <image>"),
        "mark of a video": asked(record, lambda text: text + " <video>"),
        "token of images": asked(record, lambda text: text + " <|image_pad|>"),
        "images a string": asked(record, lambda text: "<image>" + text.replace("<image>", "")) | {"images": images[0]},
        "images null": {"images": None},
        "images empty": {"images": []},
        "no images, no marks": asked(record, lambda text: text.replace("<image>", "")) | {"images": []},
        "missing image": show("images/none.jpg"),
        "not an image": show("images/words.jpg"),
        "empty image": show("images/empty.jpg"),
        "half an image": show("images/half.jpg"),
        "long image": show("images/long.png"),
        "grey image": show("images/grey.png"),
        "tiny image": show("images/tiny.png"),
        "large image": show("images/large.png"),
        "large images": asked(record, lambda text: "<image><image>" + text) | {"images": ["images/large.png"] * 4},
        "absolute path": show(str((folder / images[0]).resolve())),
        "path from elsewhere": show(f"{folder.name}/{images[0]}"),
        "path null": {"images": [None, *images[1:]]},
        "empty answer": answered(record, ""),
        "answer null": answered(record, None),
        "no answer": {"messages": [one for one in record["messages"] if one["role"] != "assistant"]},
        "empty question": asked(record, lambda text: "<image>" * len(images)),
        "empty turn": asked(record, lambda text: ""),
        "no messages": {"messages": []},
        "messages null": {"messages": None},
        "unknown role": {"messages": [one | {"role": "narrator"} for one in record["messages"]]},
        "answer first": {"messages": record["messages"][::-1]},
        "typed content": {"messages": [typed(one) for one in record["messages"]]},
        "number for a text": answered(record, 2),
        "number in another column": {"task": 7},
        "column null": {"task": None},
        "column missing": {"task": ...},
        "images missing": {"images": ...},
        "overlong": asked(record, lambda text: text + OVERLONG),
        "somewhat long": asked(record, lambda text: text + "deep " * 3000),
        "overlong answer": answered(record, "deep " * 3000),
        "unicode": asked(record, lambda text: text + "\u2028\u00e9\U0001f600 \u7b54\u6848"),
    }
    lines = {
        defect: json.dumps({k: v for k, v in (record | change).items() if v is not ...}, ensure_ascii=False)
        for defect, change in changed.items()
    }
    sound = lines["none"]
    doubled = f'{sound[:-1]}, "images": {json.dumps(images[:1])}}}'
    return lines | {"key twice": doubled, "half a line": sound[: len(sound) // 2], "blank line": f"\n{sound}"}


def said(record: Record, role: str, change: Callable[[str], Any]) -> Record:
    """The messages with the content of one role changed."""
    changed = [one | ({"content": change(one["content"])} if one["role"] == role else {}) for one in record["messages"]]
    return {"messages": changed}


def asked(record: Record, change: Callable[[str], str]) -> Record:
    """The messages with another question."""
    return said(record, "user", change)


def answered(record: Record, answer: object) -> Record:
    """The messages with another answer."""
    return said(record, "assistant", lambda _: answer)


def typed(message: Record) -> Record:
    """A message in typed parts, as OpenAI's chat completions take it."""
    pieces = message["content"].split("<image>")
    parts = [{"type": "text", "text": pieces[0]}]
    for piece in pieces[1:]:
        parts += [{"type": "image"}, {"type": "text", "text": piece}]
    return message | {"content": parts}


def write_damaged(source: Path, folder: Path, line: str, sound: Sequence[Record]) -> None:
    """A folder with the files of an export, sound rows and a line, which is the second."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    (path,) = folder.glob("*.jsonl")
    rows = [json.dumps(record, ensure_ascii=False) for record in sound]
    path.write_text("\n".join([rows[0], line, *rows[1:]]) + "\n", encoding="utf-8")
