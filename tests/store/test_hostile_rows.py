"""Parquet files whose columns have the right types and whose cells hold what no row of ours has."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.store.examples import make_item
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.store import shards
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import dataset_fingerprint
from vgbench_gen.store.schema import FACTS, ITEMS, MAX_JSON_CELL
from vgbench_gen.store.shards import iterate_rows, list_light_columns, read_columns, read_shard, write_shard


def make_fact() -> Fact:
    candidates = tuple(Candidate(f"c{k}", np.array([1.0 + k])) for k in range(3))
    fields: dict[str, Any] = {name: name for name in ("task", "ask", "dataset", "scene_id", "split", "key", "licence")}
    return Fact(**fields, task_version=1, frame_ids=("1",), candidates=candidates, truth=1,
                second_value=np.array([2.0]), margin=2.0, evidence={}, pictures={}, cameras={})  # fmt: skip


def spoil(path: Path, column: str, change: Callable[[Any], Any]) -> None:
    """Write other values into one column, of the type that it has."""
    table = pq.read_table(path)
    place = table.column_names.index(column)
    values = pa.array([change(value) for value in table[column].to_pylist()], type=table.schema.field(column).type)
    pq.write_table(table.set_column(place, table.schema.field(column), values), path)


def rename_show(text: str) -> Callable[[Any], Any]:
    return lambda candidates: [{**c, "show": text} for c in candidates]


@pytest.mark.parametrize(
    ("column", "change", "told"),
    [
        ("evidence", lambda _: "[1, 2]", "a JSON list where an object is expected"),
        ("cameras", lambda _: "7", "a JSON int where an object is expected"),
        ("pictures", lambda _: None, "TypeError"),
        ("evidence", lambda _: "{", "ValueError"),
        ("truth", lambda _: 9, "candidate 9 of 3 is the truth"),
        ("truth", lambda _: -1, "candidate -1 of 3 is the truth"),
        ("candidates", lambda _: None, "TypeError"),
        ("candidates", lambda c: [None, *c], "TypeError"),
        ("candidates", rename_show("{"), "ValueError"),
        ("candidates", rename_show("{},{}"), "ValueError"),
        ("second_shape", lambda _: [5, 5], "ValueError"),
        ("frame_ids", lambda _: None, "TypeError"),
    ],
)
def test_facts_of_wrong_type_are_named(tmp_path: Path, column: str, change: Callable[[Any], Any], told: str) -> None:
    path = tmp_path / "facts.parquet"
    write_shard(path, [make_fact()], FACTS)
    assert read_shard(path, FACTS)[0].truth == 1
    spoil(path, column, change)
    with pytest.raises(DatasetError) as error:
        read_shard(path, FACTS)
    assert told in str(error.value)
    assert str(path) in str(error.value)


READERS: list[Callable[[Path], Any]] = [
    lambda path: list(load(path)),
    lambda path: list(load(path).without_evidence()),
    lambda path: list(load(path).take([2])),
    lambda path: list(iterate_rows([path], list_light_columns, only={0, 1, 2})),
]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("answer_shape", [None]), ("options", ["1 m", None]), ("question", None), ("options", None), ("images", None),
        ("images", [None]), ("images", [{"bytes": None, "path": None}]), ("tolerance", None),
        ("frame_ids", None), ("error_parts", None), ("evidence", None), ("distractors", None),
        ("distractors", [None]), ("distractors", [{"strategy": "a", "key": None, "separation": 1.0}]),
    ],
)  # fmt: skip
def test_a_cell_without_value_is_named_by_row_and_column(tmp_path: Path, column: str, value: Any) -> None:
    """Pages failed with a traceback at a shape of [null], and choosing options anew at distractors that are null."""
    path = tmp_path / "items.parquet"
    write_shard(path, [make_item(k, ["a.jpg", "b.jpg"]) for k in range(3)], ITEMS)
    places = itertools.count()
    spoil(path, column, lambda old: old if next(places) < 2 else value)
    for read in READERS:
        if read is READERS[1] and column in ("distractors", "evidence"):
            continue  # not read there
        with pytest.raises(DatasetError, match=rf"items\.parquet, row 2: found nothing in {column}; expected a value"):
            read(path)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("error_parts", pa.list_(pa.null())), ("distractors", pa.list_(pa.null())),
        ("question", pa.dictionary(pa.int8(), pa.string())), ("question", pa.string_view()),
        ("options", pa.large_list(pa.large_string())), ("index", pa.float64()), ("index", pa.int32()),
        ("answer_shape", pa.list_(pa.float32())), ("tolerance", pa.int64()), ("answer_value", pa.list_(pa.int64())),
        ("images", pa.large_list(pa.struct([("path", pa.large_string()), ("bytes", pa.null())]))),
    ],
)  # fmt: skip
def test_types_that_a_column_has_by_what_it_holds_are_taken(tmp_path: Path, column: str, kind: Any) -> None:
    """As pandas, polars and `datasets` write a selection of our rows, in one large row group."""
    items = [
        make_item(k, ["a.jpg"], error_parts=(), distractors=(), tolerance=0.0, answer_value=(2.0,)) for k in range(3)
    ]
    path = tmp_path / "items.parquet"
    write_shard(path, items, ITEMS)
    table = pq.read_table(path).replace_schema_metadata(None).append_column("__index_level_0__", pa.array([3, 4, 9]))
    found = write_and_load(path, table, column, pa.array(table[column].to_pylist(), kind))
    assert dataset_fingerprint(found) == dataset_fingerprint(items)
    for read in READERS[1:]:
        read(path)


def write_and_load(path: Path, table: Any, column: str, values: Any) -> list[Any]:
    pq.write_table(table.set_column(table.column_names.index(column), column, values), path)
    return list(load(path))


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("index", pa.array([0.0, 1.5, 2.0]), "index that is no int64"),
        ("question", pa.array([1, 2, 3]), r"wrong columns question \(int64\)"),
        ("options", pa.array(["a", "b", "c"]), r"wrong columns options \(string\)"),
        (
            "images",
            pa.array([[{"path": "a.jpg"}]] * 3),
            r"wrong columns images \(list<element: struct<path",
        ),
        ("tolerance", pa.array([True] * 3), r"wrong columns tolerance \(bool\)"),
        ("error_parts", pa.nulls(3), "row 0: found nothing in error_parts"),
    ],
)
def test_types_that_differ_are_refused(tmp_path: Path, column: str, values: Any, says: str) -> None:
    path = tmp_path / "items.parquet"
    write_shard(path, [make_item(k) for k in range(3)], ITEMS)
    with pytest.raises(DatasetError, match=says):
        write_and_load(path, pq.read_table(path).replace_schema_metadata(None), column, values)


@pytest.mark.parametrize("column", ["split", "options", "images", "error_parts"])
def test_a_cell_that_many_rows_repeat_is_measured_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """It stands in the file once: of 300 kB, gigabytes were read."""
    path = tmp_path / "items.parquet"
    write_shard(path, [make_item(k) for k in range(50)], ITEMS)
    monkeypatch.setattr(shards, "MAX_DECODED_BYTES", 400_000)
    monkeypatch.setattr(shards, "MAX_GROUP_BYTES", 400_000)
    assert len(list(load(path))) == 50
    long = "A" * 20_000
    cell: Any = {"images": [{"bytes": long.encode(), "path": "a.jpg"}], "split": long}.get(column, [long])
    spoil(path, column, lambda _: cell)
    assert path.stat().st_size < 200_000
    reads: list[Callable[[Path], Any]] = [lambda path: list(iterate_rows([path]))]
    reads += [lambda path: load(path).image_bytes(3, 0)] if column == "images" else READERS
    for read in reads:
        with pytest.raises(DatasetError, match=r"a row group (with|of) \d+ bytes"):
            read(path)


def test_lists_of_more_values_than_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "items.parquet"
    write_shard(path, [make_item(0, answer_value=(1.0,) * 100_000)], ITEMS)
    monkeypatch.setattr(shards, "MAX_GROUP_BYTES", 1_000_000)
    assert path.stat().st_size < 100_000
    with pytest.raises(DatasetError, match=r"a row group with \d+ bytes of text and numbers"):
        list(load(path))


@pytest.mark.parametrize("number", ["1e999", "1" + "0" * 400 + ".5", "NaN", "-Infinity"])
def test_numbers_that_are_not_finite_are_refused_where_a_row_is_read(tmp_path: Path, number: str) -> None:
    """They could be read but not written again, and comparing two datasets failed with a traceback."""
    path = tmp_path / "items.parquet"
    write_shard(path, [make_item()], ITEMS)
    spoil(path, "evidence", lambda _: f'{{"z_m": [{number}], "note": "Infinity"}}')
    with pytest.raises(DatasetError, match="none of items"):
        list(load(path))
    spoil(path, "evidence", lambda _: '{"note": "Infinity"}')
    assert load(path)[0].evidence == {"note": "Infinity"}


@pytest.fixture
def bad_text(tmp_path: Path) -> Path:
    """Items whose questions are no UTF-8."""
    path = tmp_path / "items.parquet"
    write_shard(path, [make_item(0), make_item(1)], ITEMS)
    table = pq.read_table(path)
    bad = pa.array([b"\xff\xfe how deep"] * 2, type=pa.binary()).view(pa.string())
    pq.write_table(table.set_column(table.column_names.index("question"), "question", bad), path)
    return path


@pytest.mark.parametrize(
    "read",
    [
        lambda path: list(load(path)),
        lambda path: list(load(path).without_evidence()),
        lambda path: list(load(path).take([1])),
        lambda path: list(iterate_rows([path], ["question"])),
        lambda path: read_columns(path, ["question"]),
    ],
)
def test_text_that_is_no_utf8_is_a_damaged_file(bad_text: Path, read: Callable[[Path], Any]) -> None:
    with pytest.raises(DatasetError, match=r"items\.parquet: found an unreadable file .*expected a whole parquet file"):
        read(bad_text)


def test_a_cell_of_megabytes_of_json_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    write_shard(path, [make_fact()], FACTS)
    spoil(path, "evidence", lambda _: '{"a":[' + "1," * (MAX_JSON_CELL // 2) + "1]}")
    with pytest.raises(DatasetError, match="characters of JSON in one cell"):
        read_shard(path, FACTS)


def test_a_row_group_of_too_much_text_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "items.parquet"
    write_shard(path, [make_item(k) for k in range(3)], ITEMS)
    monkeypatch.setattr(shards, "MAX_GROUP_BYTES", 2000)
    with pytest.raises(DatasetError, match=r"a row group with \d+ bytes of text and numbers; expected at most 2000"):
        list(iterate_rows([path]))
    assert len(list(iterate_rows([path], ["id"]))) == 3


def test_large_row_groups_are_read_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "items.parquet"
    write_shard(path, [make_item(k) for k in range(5)], ITEMS)
    whole = list(iterate_rows([path]))
    monkeypatch.setattr(shards, "_BATCH_BYTES", 1)
    assert list(iterate_rows([path])) == whole
    assert list(iterate_rows([path], only={1, 3})) == [whole[1], whole[3]]
