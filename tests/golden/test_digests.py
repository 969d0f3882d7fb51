"""The golden digests see a change, and say where it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.golden import machine
from tests.golden.digests import Artefacts, differences, digests, normalise, parquet_rows, rows_text

ROWS: list[dict[str, Any]] = [
    {"id": "a", "answer": "1.5 meters", "value": [1.5, float("nan")], "images": [{"bytes": b"x", "path": "x.jpg"}]},
    {"id": "b", "answer": "Yes", "value": [], "images": []},
]


def table(folder: Path, rows: list[dict[str, Any]]) -> Artefacts:
    pq.write_table(pa.Table.from_pylist(rows), folder / "items.parquet")
    return {"items.rows": rows_text(parquet_rows([folder / "items.parquet"]))}


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [(0, "answer", "1.6 meters"), (0, "value", [1.5, 0.0]), (1, "value", [0.0]),
     (0, "images", [{"bytes": b"y", "path": "x.jpg"}])],
)  # fmt: skip
def test_a_changed_cell_is_seen_and_named(tmp_path: Path, row: int, column: str, value: object) -> None:
    old = table(tmp_path, ROWS)
    assert differences(digests(old), digests(table(tmp_path, ROWS)), old, old) == []
    new = table(tmp_path, [{**one, column: value} if k == row else one for k, one in enumerate(ROWS)])
    lines = differences(digests(old), digests(new), old, new)
    assert lines[0] == f"items.rows: columns changed: {column}"
    assert lines[1] == f"    first in row {row} ({ROWS[row]['id']}):"


def test_order_number_and_columns_of_rows_count(tmp_path: Path) -> None:
    old = digests(table(tmp_path, ROWS))
    turned = differences(old, digests(table(tmp_path, ROWS[::-1])), {}, {})
    assert turned == ["items.rows: columns changed: id, answer, value, images"]
    assert differences(old, digests(table(tmp_path, ROWS[:1])), {}, {})[0].startswith("items.rows: 2 rows became 1")
    more = digests(table(tmp_path, [row | {"split": "val"} for row in ROWS]))
    assert differences(old, more, {}, {}) == ["items.rows: columns new: split"]
    assert differences(old, {}, {}, {}) == ["items.rows: gone"]


def test_a_text_differs_by_line_and_not_by_time_or_folder() -> None:
    told = [
        f"made at {time} in {place}/out" for time, place in (("2026-01-02T03:04:05Z", "/a"), ("2027-01-02 03:04", "/b"))
    ]
    plain = [normalise(text, {"/a": "run", "/b": "run"}) for text in told]
    assert plain == ["made at <time> in <run>/out"] * 2
    old, new = {"told": "one\ntwo\n"}, {"told": "one\nthree\n"}
    assert differences(digests(old), digests(new), old, new)[-2:] == ["    -two", "    +three"]


def test_every_part_names_its_machine() -> None:
    kept = sorted((Path(__file__).parent / "baseline").glob("*.json"))
    parts = [json.loads(path.read_text()) for path in kept if path.stem != "inventory"]
    assert parts
    assert all(part["machine"].keys() == machine.here().keys() for part in parts)
