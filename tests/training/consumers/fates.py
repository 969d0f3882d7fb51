"""What the consumers of rows with `<image>` marks share: reading a file, and comparing a row with what is trained."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Grids = list[list[int]]  # of each image: 1, rows, columns of patches
_IMAGE = re.compile(r"<\|vision_start\|>(?:<\|image_pad\|>)+<\|vision_end\|>")


def start_fates() -> dict[str, Any]:
    """No row judged yet.

    `kept`: ids; `altered`: those of them of which something else is trained than what the row says; `dropped`: left
    out, and the run goes on; `raised`: the run ends there; `grids`: what was seen of each image.
    """
    return {"kept": [], "altered": {}, "dropped": {}, "raised": {}, "grids": {}}


def read_lines(path: Path) -> list[Record]:
    """The rows of a file; of a line that is no JSON, the id alone."""
    records = []
    for line in path.read_text("utf-8").split("\n"):
        try:
            records += [json.loads(line)] if line.strip() else []
        except ValueError:
            records.append({"id": line.partition('"id": "')[2].partition('"')[0]})
    return records


def explain(error: BaseException) -> str:
    """Type and words of an error and of its cause, in one line."""
    cause = error.__cause__ or error
    return f"{type(error).__name__}: {' '.join(str(error).split())} | {' '.join(str(cause).split())}"[:600]


def print_fates(judge: Callable[[Path], dict[str, Any]], folders: Sequence[str]) -> None:
    """Print the fates of the rows of each folder, as one JSON object a line; what `judge` prints goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        found = [judge(Path(folder).resolve()) for folder in folders]
    for one in found:
        print(json.dumps(one))


def check_features(tokens: int, grids: Grids, values: Any) -> str:
    """Why the model would refuse a row: its `get_placeholder_mask` raises; "" where it would not."""
    patches = sum(rows * columns for _, rows, columns in grids)
    assert len(values) == patches, "pixel values of other images"
    return "" if 4 * tokens == patches else f"{tokens} tokens of images for {patches // 4} of their features"


def find_difference(
    record: Record, row: Mapping[str, Any], grids: Grids, processor: Any, *, marks_in: Sequence[str]
) -> str:
    """How what is trained differs from the row; "" where it does not.

    Args:
        record: the row.
        row: `input_ids` and `labels` that are trained.
        grids: of the images that were read.
        processor: the family's, with the limits of the published checkpoint.
        marks_in: roles in whose turns the trainer takes `<image>` for a mark.
    """
    text = _IMAGE.sub("\0", processor.tokenizer.decode(row["input_ids"]))
    learned = [label for label in row["labels"] if label != -100]
    if not processor.tokenizer.decode(learned, skip_special_tokens=True).strip():
        return "nothing is learned"
    images = record.get("images") or []
    images = [images] if isinstance(images, str) else images
    turns = [(str(one["content"]), one["role"] in marks_in) for one in record["messages"]]
    marks = sum(content.count("<image>") for content, marked in turns if marked)
    if not len(grids) == len(images) == marks == text.count("\0"):
        return f"{marks} marks, {len(images)} images; {len(grids)} read, {text.count(chr(0))} in the text"
    if not all((content.replace("<image>", "\0") if marked else content) in text for content, marked in turns):
        return "a turn reads otherwise"
    return "" if images == [] or grids == see(images, processor) else "an image has another size than by its processor"


def see(images: Sequence[str], processor: Any) -> Grids:
    """The grids of images as the family's own processor makes them; none if it refuses one."""
    from PIL import Image

    try:
        seen = processor.image_processor([Image.open(path).convert("RGB") for path in images], return_tensors="pt")
    except ValueError:
        return []
    return list(seen["image_grid_thw"].tolist())
