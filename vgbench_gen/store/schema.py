"""Arrow schemas of facts, rejects and items, and the conversions between dataclass and row.

Built from the tables in `columns`. Every float comes back bit for bit; mappings are stored as canonical JSON text,
so what comes back holds lists where tuples went in.

The items' schema carries the `huggingface` metadata of `datasets.Features`, so `datasets.load_dataset("parquet", …)`
decodes the images. It is written here by hand: importing datasets takes seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, get_args

import numpy as np
import pyarrow as pa
from pydantic_core import from_json, to_json

from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.core.types import Candidate, Distractor, Fact, FloatArray, Item, QuestionType, Rejected
from vgbench_gen.store.columns import (
    FACT_COLUMNS,
    ITEM_COLUMNS,
    PUBLISHED_COLUMNS,
    REJECT_COLUMNS,
    SCHEMA_VERSION,
    Column,
)
from vgbench_gen.store.files import dataset_error

__all__ = [
    "FACTS",
    "ITEMS",
    "PUBLISHED",
    "REJECTS",
    "SCHEMA_VERSION",
    "RecordSchema",
    "Row",
    "make_item_row",
    "read_item",
]

Row = dict[str, Any]
R = TypeVar("R")
MAX_JSON_CELL = 16 << 20
"""Characters of JSON in one cell; those that we write hold some ten thousand. Read, it takes many times its size."""

_ARROW = {
    "string": pa.string(),
    "json": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "strings": pa.list_(pa.string()),
    "int64s": pa.list_(pa.int64()),
    "float64s": pa.list_(pa.float64()),
    "images": pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
}
_FEATURE_OF = {"json": "string", "strings": "string", "int64s": "int64", "float64s": "float64"}


@dataclass(frozen=True, slots=True)
class RecordSchema(Generic[R]):
    """How one kind of record is stored."""

    kind: str
    """The kind: "facts", "rejects" or "items". It is written into every file and checked on reading; published items
    are items with a column more."""
    columns: tuple[Column, ...]
    to_row: Callable[[R], Row]
    """Makes a row of a record. The row of an item has None for the `bytes` of its images."""
    read_row: Callable[[Mapping[str, Any]], R]
    """What `from_row` calls. Raises whatever comes where the row is none of ours."""

    def from_row(self, row: Mapping[str, Any], where: object = "") -> R:
        """The record of a row; the exact inverse of `to_row`.

        where: the file, for the message.

        Raises:
            DatasetError: the row was not written by this program, or it is damaged.
        """
        try:
            return self.read_row(row)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError) as error:
            found = f"a row that is none of {self.kind} ({type(error).__name__}: {str(error)[:200]})"
            expected = f"{self.kind} as in docs/data-dictionary.md"
            raise dataset_error(where or self.kind, found, expected, "Build or download it again.") from error

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema with the metadata keys `vgbench` (kind, schema version) and, for items, `huggingface`."""
        metadata = {"vgbench": format_canonical_json({"kind": self.kind, "schema_version": SCHEMA_VERSION})}
        if any(c.type == "images" for c in self.columns):
            metadata["huggingface"] = json.dumps(
                {"info": {"features": {c.name: _make_feature(c) for c in self.columns}}}
            )
        return pa.schema([pa.field(c.name, _make_arrow_type(c)) for c in self.columns], metadata=metadata)


def _make_arrow_type(column: Column) -> Any:
    if column.fields:
        struct = pa.struct([(f.name, _make_arrow_type(f)) for f in column.fields])
        return pa.list_(struct) if column.type == "structs" else struct
    return _ARROW[column.type]


def _make_feature(column: Column) -> Any:
    # As `datasets` before 4 writes them, which later ones read too; these call all of them "List".
    if column.type == "images":
        return {"feature": {"_type": "Image"}, "_type": "Sequence"}
    if column.fields:
        struct = {f.name: _make_feature(f) for f in column.fields}
        return [struct] if column.type == "structs" else struct
    value = {"dtype": _FEATURE_OF.get(column.type, column.type), "_type": "Value"}
    return {"feature": value, "_type": "Sequence"} if column.type.endswith("s") else value


def _make_fact_row(fact: Fact) -> Row:
    row = {name: getattr(fact, name) for name in ("task", "task_version", "ask", "dataset", "scene_id", "split", "key")}
    return row | {
        "frame_ids": list(fact.frame_ids),
        "candidates": [
            {
                "key": c.key,
                **_flatten(c.value, "value", "value_shape"),
                "frame_ids": list(c.frame_ids),
                "show": format_canonical_json(c.show),
                "evidence": format_canonical_json(c.evidence),
            }
            for c in fact.candidates
        ],
        "truth": fact.truth,
        **_flatten(fact.second_value, "second_value", "second_shape"),
        "margin": float(fact.margin),
        "evidence": format_canonical_json(fact.evidence),
        "licence": fact.licence,
        "pictures": format_canonical_json(fact.pictures),
        "cameras": format_canonical_json(fact.cameras),
    }


def _read_fact(row: Mapping[str, Any]) -> Fact:
    plain = dict(row)
    plain["candidates"] = tuple(
        Candidate(
            key=c["key"],
            value=_reshape(c["value"], c["value_shape"]),
            frame_ids=tuple(c["frame_ids"]),
            show=_read_object(c["show"]),
            evidence=_read_object(c["evidence"]),
        )
        for c in row["candidates"]
    )
    plain["frame_ids"] = tuple(row["frame_ids"])
    plain["second_value"] = _reshape(row["second_value"], plain.pop("second_shape"))
    for name in ("evidence", "pictures", "cameras"):
        plain[name] = _read_object(row[name])
    fact = Fact(**plain)
    if not 0 <= fact.truth < len(fact.candidates):
        raise IndexError(f"candidate {fact.truth} of {len(fact.candidates)} is the truth")
    if empty := [name for name, value in plain.items() if value is None]:
        raise ValueError(f"no value in {', '.join(empty)}")
    return fact


def _read_object(text: str) -> dict[str, Any]:
    """A JSON object. Raises ValueError where it is none, has an infinite number, or is longer than any of ours."""
    if len(text) > MAX_JSON_CELL:
        raise ValueError(f"{len(text)} characters of JSON in one cell; expected at most {MAX_JSON_CELL}")
    value = from_json(text, allow_inf_nan=False)
    # 1e999 is read as an infinity, which cannot be written again.
    if b"Infinity" in to_json(value, inf_nan_mode="constants"):
        value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"a JSON {type(value).__name__} where an object is expected")
    return value


def _reject_row(rejected: Rejected) -> Row:
    row = {c.name: getattr(rejected, c.name) for c in REJECT_COLUMNS}
    return row | {"value": float(rejected.value), "limit": float(rejected.limit)}


def make_item_row(item: Item) -> Row:
    """The row of an item; every image is {"bytes": None, "path": its media name}.

    Raises:
        ValueError: `convention` or `evidence` holds a NaN or an infinity.
        TypeError: they hold something that is not JSON.
    """
    row: Row = {c.name: getattr(item, c.name) for c in ITEM_COLUMNS}
    for column in ITEM_COLUMNS:
        if column.type == "json":
            row[column.name] = format_canonical_json(row[column.name])
        elif column.type in {"strings", "float64s", "int64s"}:
            row[column.name] = list(row[column.name])
    row["images"] = [{"bytes": None, "path": name} for name in item.images]
    row["distractors"] = [
        {"strategy": d.strategy, "key": d.key, "separation": float(d.separation)} for d in item.distractors
    ]
    return row


def read_item(row: Mapping[str, Any]) -> Item:
    """The item of a row; the image bytes, where present, are not kept.

    Raises:
        DatasetError: `question_type` is not one of the three.
    """
    plain = dict(row)
    if plain["question_type"] not in get_args(QuestionType):
        raise dataset_error(
            f"item {plain['id']}",
            f"question_type {plain['question_type']!r}",
            f"one of {', '.join(get_args(QuestionType))}",
            "The file is not a dataset of this program.",
        )
    plain["question_type"] = cast(QuestionType, plain["question_type"])
    for column in ITEM_COLUMNS:
        if column.type == "json":
            # A quarter of json.loads' time, and this is most of what reading a row takes.
            plain[column.name] = _read_object(plain[column.name])
        elif column.type in {"strings", "float64s", "int64s"}:
            plain[column.name] = tuple(plain[column.name])
    # Where pixels were not published, the names stand beside their checksums only.
    named, files = [image["path"] for image in row["images"]], plain.pop("image_files", None) or ()
    plain["images"] = tuple(named or [file["name"] for file in files])
    plain["distractors"] = tuple(Distractor(**d) for d in row["distractors"])
    return Item(**plain)


def _flatten(value: Any, values: str, shape: str) -> Row:
    array = np.asarray(value, dtype=np.float64)
    return {values: array.ravel().tolist(), shape: list(array.shape)}


def _reshape(values: Sequence[float], shape: Sequence[int]) -> FloatArray:
    return np.array(values, dtype=np.float64).reshape(tuple(shape))


FACTS: RecordSchema[Fact] = RecordSchema("facts", FACT_COLUMNS, _make_fact_row, _read_fact)
REJECTS: RecordSchema[Rejected] = RecordSchema("rejects", REJECT_COLUMNS, _reject_row, lambda row: Rejected(**row))
ITEMS: RecordSchema[Item] = RecordSchema("items", ITEM_COLUMNS, make_item_row, read_item)
PUBLISHED: RecordSchema[Item] = RecordSchema(
    "items", PUBLISHED_COLUMNS, lambda item: {**make_item_row(item), "image_files": []}, read_item
)
