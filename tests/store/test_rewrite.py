"""Some rows of a dataset changed: the files that result are those that writing all of it anew would give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.store.examples import make_item
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.rewrite import read_stored_rows, rewrite_items
from vgbench_gen.store.schema import Row, make_item_row
from vgbench_gen.store.shards import write_items

ROWS, PER_FILE = 330, 120  # three files; the first two have two row groups


def made(jpegs: list[str]) -> list[Item]:
    return [make_item(k, [jpegs[k % 3], jpegs[(k + 1) % 3]][: k % 3]) for k in range(ROWS)]


@pytest.fixture
def old(tmp_path: Path, media: MediaStore, jpegs: list[str]) -> tuple[list[Path], list[Row]]:
    paths = write_items(tmp_path / "old", made(jpegs), media, rows_per_shard=PER_FILE)
    rows = read_stored_rows(paths)
    assert rows is not None
    return paths, rows


def test_rows_are_read_as_they_are_written(jpegs: list[str], old: tuple[list[Path], list[Row]]) -> None:
    assert old[1] == [make_item_row(item) for item in made(jpegs)]


def worded(item: Item) -> Item:
    return replace(item, id=f"new-{item.id}", question="other words", evidence={"much": "more" * 50})


@pytest.mark.parametrize("threads", [1, 3])
def test_the_bytes_are_those_of_writing_all_anew(
    tmp_path: Path, media: MediaStore, jpegs: list[str], old: tuple[list[Path], list[Row]], threads: int
) -> None:
    items = made(jpegs)
    changes: dict[int, Callable[[Item], Item]] = {
        0: worded,
        99: lambda item: replace(item, images=(jpegs[3], jpegs[0])),
        100: lambda item: replace(worded(item), images=()),
        118: lambda item: replace(item, images=(jpegs[3],)),
        119: worded,
        240: worded,
    }
    for k, change in changes.items():
        items[k] = change(items[k])
    after = [make_item_row(items[k]) if k in changes else row for k, row in enumerate(old[1])]
    told: list[tuple[int, int]] = []
    new = rewrite_items(
        tmp_path / "new", old[0], old[1], after, media, threads, lambda done, total: told.append((done, total))
    )
    anew = write_items(tmp_path / "anew", items, media, rows_per_shard=PER_FILE)
    assert [path.name for path in new] == [path.name for path in anew]
    assert [path.read_bytes() for path in new] == [path.read_bytes() for path in anew]
    assert [path.samefile(before) for path, before in zip(new, old[0], strict=True)] == [False, True, False]
    assert told[-1] == (ROWS, ROWS)


def test_images_that_stay_are_not_looked_for(
    tmp_path: Path, media: MediaStore, jpegs: list[str], old: tuple[list[Path], list[Row]]
) -> None:
    before, nothing = old[1], MediaStore(tmp_path / "nowhere")
    after = [{**row, "question": "other words"} if k == 1 else row for k, row in enumerate(before)]
    rewrite_items(tmp_path / "new", old[0], before, after, nothing)
    assert load(tmp_path / "new").image_bytes(before[1]["id"], 0) == media.get(jpegs[1])
    # An image that has to be looked for and is not there: the folder stays as it was, nothing is left behind.
    after[200] = {**before[200], "images": [{"bytes": None, "path": jpegs[3]}]}
    kept = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(DatasetError, match="no file"):
        rewrite_items(tmp_path / "new", old[0], before, after, nothing, 2)
    assert sorted(tmp_path.rglob("*.parquet")) == kept
    assert load(tmp_path / "new")[1].question == "other words"
    assert load(tmp_path / "new")[200].images == tuple(image["path"] for image in before[200]["images"])


def test_files_of_others_are_left_to_be_read_row_by_row(
    tmp_path: Path, media: MediaStore, jpegs: list[str], old: tuple[list[Path], list[Row]]
) -> None:
    noted = write_items(tmp_path / "noted", made(jpegs)[:3], media, metadata={"by": "somebody"})
    assert read_stored_rows(noted) is None
    other = tmp_path / "other.parquet"
    pq.write_table(pq.read_table(old[0][0]).drop_columns(["licence"]), other)
    assert read_stored_rows([old[0][1], other]) is None
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(old[0][0].read_bytes()[:-200])
    with pytest.raises(DatasetError, match="unreadable"):
        read_stored_rows([torn])
