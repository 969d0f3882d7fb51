from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.store.examples import make_item
from tests.store.test_schema import bits
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item, Rejected
from vgbench_gen.store import shards
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.schema import REJECTS
from vgbench_gen.store.shards import write_items, write_shard

COUNT = 250


@pytest.fixture
def items(jpegs: list[str]) -> list[Item]:
    return [make_item(k, [jpegs[k % 4], jpegs[(k + 1) % 4]]) for k in range(COUNT)]


@pytest.fixture
def build(tmp_path: Path, media: MediaStore, items: list[Item]) -> Path:
    write_items(tmp_path / "b" / "items", items, media, rows_per_shard=120)
    return tmp_path / "b"


def test_a_sequence_of_items(build: Path, items: list[Item], media: MediaStore) -> None:
    dataset = load(build)
    assert len(dataset) == COUNT
    assert bits(list(dataset)) == bits(items)
    for k in (0, 99, 100, 119, 120, 219, 249, -1, -250):
        assert bits(dataset[k]) == bits(items[k])
    assert bits(dataset[118:123]) == bits(items[118:123])
    for k in (COUNT, -COUNT - 1):
        with pytest.raises(IndexError):
            dataset[k]
    assert dataset.ids() == [i.id for i in items]
    assert dataset.by_id("item0121").index == 121
    for k in (5, 121, 6):
        assert dataset.image_bytes(dataset[k], 1) == media.get(items[k].images[1])
    assert dataset.image_bytes("item0200", 0) == media.get(items[200].images[0])
    with pytest.raises(IndexError):
        dataset.image_bytes("item0200", 2)


def test_images_as_pictures(build: Path, items: list[Item], media: MediaStore) -> None:
    dataset = load(build)
    for asked in (dataset[121], "item0121", 121):
        pictures = dataset.images(asked)
        assert [picture.mode for picture in pictures] == ["RGB", "RGB"]
        for picture, name in zip(pictures, items[121].images, strict=True):
            with Image.open(io.BytesIO(media.get(name))) as stored:
                assert np.array_equal(np.asarray(picture), np.asarray(stored.convert("RGB")))


def test_any_way_to_name_it(build: Path, items: list[Item], tmp_path: Path) -> None:
    assert len(load(build / "items")) == COUNT
    assert len(load(str(build / "items" / "items-00001-of-00003.parquet"))) == 120
    (build / "items" / ".items-00003-of-00003.parquet.1-000000000000.tmp").write_bytes(b"torn")
    assert len(load(build)) == COUNT


def test_questions_are_read_without_pixels(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    original = shards.read_group

    def watched(path: Path, file: Any, group: int, columns: list[str]) -> Any:
        seen.append(columns)
        return original(path, file, group, columns)

    monkeypatch.setattr(shards, "read_group", watched)
    dataset = load(build)
    assert seen == []
    list(dataset)
    assert seen
    assert not any(c == "images" or c.endswith("bytes") for columns in seen for c in columns)


def test_files_of_other_writers_open(build: Path, items: list[Item], tmp_path: Path) -> None:
    """As the Hub gives them back: our notes gone, 64-bit offsets, list members called item."""
    path = build / "items" / "items-00000-of-00003.parquet"
    table = pq.read_table(path).replace_schema_metadata({})
    large = table.schema.set(0, pa.field("id", pa.large_string()))
    pq.write_table(table.cast(large), tmp_path / "other.parquet", use_compliant_nested_type=False)
    dataset = load(tmp_path / "other.parquet")
    assert bits(dataset[7]) == bits(items[7])
    assert dataset.image_bytes("item0007", 0) == load(build).image_bytes("item0007", 0)


def test_typed_errors(build: Path, tmp_path: Path, media: MediaStore, jpegs: list[str]) -> None:
    def fails(path: Path, match: str) -> None:
        with pytest.raises(DatasetError, match=match):
            list(load(path))

    fails(tmp_path / "nowhere", "nowhere: found nothing; expected a built dataset. Name")
    (tmp_path / "empty").mkdir()
    fails(tmp_path / "empty", "no parquet files")
    write_shard(tmp_path / "rejects.parquet", [Rejected("t", "d", "s", "k", "r")], REJECTS)
    fails(tmp_path / "rejects.parquet", "found rejects")
    pq.write_table(pa.table({"id": ["a"], "index": ["0"]}), tmp_path / "foreign.parquet")
    fails(tmp_path / "foreign.parquet", r"wrong columns index \(string\), group_id \(missing\)")
    dataset = load(build)
    with pytest.raises(DatasetError, match=r"no item 'item0O21'.*Did you mean item"):
        dataset.by_id("item0O21")
    twice = write_items(tmp_path / "twice", [make_item(3, jpegs[:1]), make_item(3, jpegs[:1])], media)
    with pytest.raises(DatasetError, match="rows 0 and 1"):
        Dataset(twice).by_id("item0003")
    middle = build / "items" / "items-00001-of-00003.parquet"
    whole = middle.read_bytes()
    middle.write_bytes(whole[:4] + bytes(20_000) + whole[20_004:])
    fails(build, "items-00001-of-00003.parquet: found an unreadable file")
    middle.unlink()
    fails(build, "2 of 3 files")


def test_rows_without_pixels(tmp_path: Path, build: Path) -> None:
    path = build / "items" / "items-00000-of-00003.parquet"
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        for image in row["images"]:
            image["bytes"] = None
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(path)), tmp_path / "bare.parquet")
    with pytest.raises(DatasetError, match=r"image 0 without bytes.*vgbench pull --scenes"):
        load(tmp_path / "bare.parquet").image_bytes("item0000", 0)
