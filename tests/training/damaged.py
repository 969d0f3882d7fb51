"""Damaged copies of rows with images inside, and parquet files of them, whatever trainer reads these."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

Record = dict[str, Any]
LONG = " word" * 1024
BROKEN = ("path without bytes", "image is no image", "image cut short", "image is null")
UNUSUAL = {
    "image 201 times as wide as high": "raised",  # the processor refuses it
    "image of one pixel": "kept",
    "image of 16 bits": "kept",
    "image with alpha": "kept",
    "gray image": "kept",
}


class Damage(NamedTuple):
    """Rows with a defect, and what becomes of them: "kept", "altered", "dropped" or "raised" (`training.trainers`)."""

    name: str
    records: list[Record]
    outcome: str
    featured: bool = True
    """Whether the file says to `datasets` that `images` are images; else they stay structs of bytes and path."""


def change(record: Mapping[str, Any], **columns: Any) -> Record:
    """A copy of a record with other values in some columns."""
    return {**copy.deepcopy(dict(record)), **columns}


def leave_out(records: Sequence[Record], column: str) -> list[Record]:
    return [{name: value for name, value in record.items() if name != column} for record in records]


def damage_images(record: Record, outcomes: Mapping[str, str], featured: bool = True) -> list[Damage]:
    """A record with another first image, for each defect that has an outcome."""
    first, others = record["images"][0], record["images"][1:]
    firsts: dict[str, Any] = {
        "path without bytes": {"bytes": None, "path": "images/none.png"},
        "image is no image": {"bytes": b"no picture", "path": "a.png"},
        "image cut short": {"bytes": first["bytes"][: len(first["bytes"]) // 2], "path": "a.png"},
        "image is null": None,
        "image 201 times as wide as high": _draw(2010, 10),
        "image of one pixel": _draw(1, 1),
        "image of 16 bits": _draw(mode="I;16"),
        "image with alpha": _draw(mode="RGBA"),
        "gray image": _draw(mode="L"),
    }
    suffix = "" if featured else ", structs"
    return [
        Damage(name + suffix, [change(record, images=[firsts[name], *others])], outcome, featured)
        for name, outcome in outcomes.items()
    ]


def _draw(width: int = 64, height: int = 48, mode: str = "RGB") -> dict[str, Any]:
    file = io.BytesIO()
    Image.new(mode, (width, height), 1).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": "a.png"}


def write_records(path: Path, records: Sequence[Record], featured: bool = True) -> Path:
    """Records as a parquet file, with whatever types they have."""
    table = pa.Table.from_pylist(list(records))
    images = table.schema.field("images").type if "images" in table.column_names else None
    if featured and images is not None and pa.types.is_list(images) and pa.types.is_struct(images.value_type):
        features = {name: _make_feature(table.schema.field(name).type) for name in table.column_names}
        features["images"] = {"feature": {"_type": "Image"}, "_type": "List"}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def _make_feature(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        return {field.name: _make_feature(field.type) for field in kind}
    if pa.types.is_list(kind):
        return {"feature": _make_feature(kind.value_type), "_type": "List"}
    return {"dtype": str(kind), "_type": "Value"}
