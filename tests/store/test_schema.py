from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tests.store.examples import make_item
from vgbench_gen.core.types import Candidate, Distractor, Fact, Item, Rejected
from vgbench_gen.store.columns import FACT_COLUMNS, ITEM_COLUMNS, REJECT_COLUMNS, Column
from vgbench_gen.store.encoding import list_leaves
from vgbench_gen.store.schema import FACTS, ITEMS, REJECTS, RecordSchema
from vgbench_gen.store.shards import read_metadata, read_shard, write_shard

SPECIAL = [0.0, -0.0, float("nan"), -float("nan"), float("inf"), 5e-324, 0.1, 0.1 + 2**-55]
FLOATS = st.one_of(st.floats(), st.sampled_from(SPECIAL))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.dictionaries(
    TEXT,
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.lists(st.integers(), max_size=3),
        TEXT,
        st.none(),
        st.booleans(),
    ),
    max_size=3,
)
VALUES = arrays(np.float64, array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4), elements=FLOATS)
CANDIDATES = st.builds(Candidate, TEXT, VALUES, st.lists(TEXT, max_size=2).map(tuple), JSON, JSON)
INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    text = {name: draw(TEXT) for name in ("task", "ask", "dataset", "scene_id", "split", "key", "licence")}
    candidates = tuple(draw(st.lists(CANDIDATES, min_size=1, max_size=3)))
    frame_ids: tuple[str, ...] = tuple(draw(st.lists(TEXT, max_size=3)))
    cameras: dict[str, Any] = draw(JSON)
    if cameras:  # then there is one for each frame
        cameras |= {name: {} for names in (frame_ids, *(c.frame_ids for c in candidates)) for name in names}
    return Fact(
        **text,
        task_version=draw(INT64),
        frame_ids=frame_ids,
        candidates=candidates,
        truth=draw(st.integers(0, len(candidates) - 1)),
        second_value=draw(VALUES),
        margin=draw(FLOATS),
        evidence=draw(JSON),
        pictures=draw(st.dictionaries(TEXT, TEXT, max_size=2)),
        cameras=cameras,
    )


REJECTED = st.builds(Rejected, TEXT, TEXT, TEXT, TEXT, TEXT, FLOATS, FLOATS, TEXT)


def bits(value: Any) -> Any:
    """Everything in a record, floats as their 64 bits, so that -0.0, NaNs and shapes count."""
    if is_dataclass(value):
        return {f.name: bits(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {k: bits(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [type(value).__name__, *map(bits, value)]
    return (type(value).__name__, value)


def there_and_back(tmp: Path, records: list[Any], table: RecordSchema[Any]) -> list[Any]:
    path = tmp / "shard.parquet"
    assert write_shard(path, records, table) == len(records)
    return read_shard(path, table)


RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@RELAXED
@given(st.lists(facts(), max_size=3))
def test_facts_come_back_bit_for_bit(tmp_path: Path, records: list[Fact]) -> None:
    assert bits(there_and_back(tmp_path, records, FACTS)) == bits(records)


@RELAXED
@given(st.lists(REJECTED, max_size=4))
def test_rejects_come_back_bit_for_bit(tmp_path: Path, records: list[Rejected]) -> None:
    assert bits(there_and_back(tmp_path, records, REJECTS)) == bits(records)


@RELAXED
@given(st.data())
def test_items_come_back_bit_for_bit(tmp_path: Path, data: st.DataObject) -> None:
    item = make_item(
        question=data.draw(TEXT),
        options=tuple(data.draw(st.lists(TEXT, max_size=4))),
        answer_value=tuple(data.draw(st.lists(FLOATS, max_size=9))),
        answer_shape=(3, 3),
        tolerance=data.draw(FLOATS),
        evidence=data.draw(JSON),
        convention=data.draw(JSON),
        index=data.draw(INT64),
        distractors=tuple(Distractor("s", data.draw(TEXT), data.draw(FLOATS)) for _ in range(2)),
        images=("0" * 32 + ".jpg",),
    )
    assert bits(there_and_back(tmp_path, [item], ITEMS)) == bits([item])


def test_evidence_without_a_json_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with pytest.raises(ValueError, match="JSON"):
        write_shard(path, [make_item(evidence={"z": float("nan")})], ITEMS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("record", "columns"), [(Fact, FACT_COLUMNS), (Rejected, REJECT_COLUMNS), (Item, ITEM_COLUMNS)]
)
def test_every_field_has_a_column(record: Any, columns: tuple[Column, ...]) -> None:
    extra = {"second_shape"} if record is Fact else set()
    assert {c.name for c in columns} == {f.name for f in fields(record)} | extra
    assert all(c.meaning for c in columns)


def test_items_schema_is_the_one_of_datasets(tmp_path: Path) -> None:
    from datasets import Features, Image, List, Value

    def feature(kind: pa.DataType) -> Any:
        if pa.types.is_list(kind):
            return List(feature(kind.value_type))
        if pa.types.is_struct(kind):
            if [f.name for f in kind] == ["bytes", "path"]:
                return Image()
            return {f.name: feature(f.type) for f in kind}
        return Value({"double": "float64"}.get(str(kind), str(kind)))

    expected = Features({f.name: feature(f.type) for f in ITEMS.schema})
    assert isinstance(feature(ITEMS.schema.field("images").type), List)
    assert ITEMS.schema.equals(expected.arrow_schema, check_metadata=False)
    stored = json.loads(ITEMS.schema.metadata[b"huggingface"])["info"]["features"]
    assert Features.from_dict(stored) == expected
    assert Features.from_arrow_schema(ITEMS.schema) == expected
    assert '"List"' not in json.dumps(stored)  # which `datasets` before 4 does not know


def test_text_and_images_alone_have_dictionaries(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_shard(path, [make_item(k, images=["0" * 32 + ".jpg"]) for k in range(3)], ITEMS)

    def leaves() -> Iterator[tuple[str, bool]]:
        group = pq.ParquetFile(path).metadata.row_group(0)
        for k in range(group.num_columns):
            yield group.column(k).path_in_schema, group.column(k).has_dictionary_page

    with_dictionary = {leaf for leaf, has in leaves() if has}
    kinds = dict(leaf for field in ITEMS.schema for leaf in list_leaves(field.name, field.type))
    assert with_dictionary == {leaf for leaf, kind in kinds.items() if str(kind) in ("string", "binary")}
    assert {leaf for leaf, _ in leaves()} == set(kinds)
    assert "images.list.element.path" in with_dictionary
    assert "distractors.list.element.key" in with_dictionary


def test_the_schema_does_not_import_datasets() -> None:
    code = "import sys, vgbench_gen.store.dataset as d; print('datasets' in sys.modules, 'cv2' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["False", "False"]


def test_notes_of_a_shard(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_shard(path, [], REJECTS, {"config": "ab12", "versions": {"depth": 2}})
    expected = {"config": "ab12", "versions": {"depth": 2}, "kind": "rejects", "schema_version": 2}
    assert read_metadata(path) == expected
