from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.store.examples import make_item
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item, Rejected
from vgbench_gen.store import files
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.schema import FACTS, ITEMS, REJECTS
from vgbench_gen.store.shards import clean_temporary, iterate_rows, read_shard, write_items, write_shard

ROOT = Path(__file__).parents[2]


def items(jpegs: list[str], count: int) -> list[Item]:
    return [make_item(k, [jpegs[k % 4], jpegs[(k + 1) % 4]]) for k in range(count)]


def run(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_same_rows_same_bytes(tmp_path: Path, media: MediaStore, jpegs: list[str]) -> None:
    first = write_items(tmp_path / "a", items(jpegs, 230), media, rows_per_shard=110)
    code = """
import sys, pathlib
from tests.store.test_shards import items
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.shards import write_items
out, media, *jpegs = sys.argv[1:]
write_items(pathlib.Path(out), items(jpegs, 230), MediaStore(pathlib.Path(media)), rows_per_shard=110)
"""
    done = run(code, tmp_path / "b", media.root, *jpegs, TZ="Asia/Tokyo", PYTHONHASHSEED="5")
    assert done.returncode == 0, done.stderr
    assert [p.name for p in first] == [f"items-{k:05d}-of-00003.parquet" for k in range(3)]
    for path in first:
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    other = write_items(tmp_path / "c", [*items(jpegs, 229), make_item(999)], media, rows_per_shard=110)
    assert other[2].read_bytes() != first[2].read_bytes()


def test_load_dataset_shows_decoded_images(tmp_path: Path, media: MediaStore, jpegs: list[str]) -> None:
    write_items(tmp_path / "items", items(jpegs, 5), media, rows_per_shard=2)
    code = """
import json, sys, pyarrow as pa
from datasets import Features, load_dataset
from vgbench_gen.store.schema import ITEMS
ds = load_dataset("parquet", data_files=sys.argv[1], split="train")
row = ds[3]
print(json.dumps({
    "rows": len(ds), "same": ds.features == Features.from_arrow_schema(ITEMS.schema), "id": row["id"],
    "sizes": [list(im.size) for im in row["images"]], "feature": repr(ds.features["images"]),
    "distractors": row["distractors"], "value": row["answer_value"],
}))
"""
    environment = {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    done = run(code, tmp_path / "items" / "*.parquet", **environment)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["same"] is True
    assert seen["feature"].startswith("List(Image(")
    assert (seen["rows"], seen["id"], seen["value"]) == (5, "item0003", [2.4])
    assert seen["sizes"] == [[64 + 8 * 3, 48], [64, 48]]
    assert seen["distractors"][1] == {"strategy": "set_first", "key": "", "separation": 2.0}


def test_embedded_bytes_are_the_stored_ones(tmp_path: Path, media: MediaStore, jpegs: list[str]) -> None:
    paths = write_items(tmp_path / "items", items(jpegs, 7), media)
    for row in iterate_rows(paths, ["images"], batch=3):
        assert [f"{digest_bytes(image['bytes'])}.jpg" for image in row["images"]] == [i["path"] for i in row["images"]]
    light = list(iterate_rows(paths, ["id", "images.list.element.path"]))
    assert light[2]["images"] == [{"path": jpegs[2]}, {"path": jpegs[3]}]


def test_a_row_group_holds_an_image_once(tmp_path: Path, media: MediaStore) -> None:
    # Larger than the dictionaries that parquet writers make by themselves.
    names = [media.put(b"\xff\xd8\xff" + bytes([k]) * 2**21, "jpg") for k in range(2)]
    (path,) = write_items(tmp_path / "items", [make_item(k, names) for k in range(8)], media)
    once = sum(len(media.get(name)) for name in names)
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(k).path_in_schema: group.column(k) for k in range(group.num_columns)}
    stored = columns["images.list.element.bytes"]
    assert once <= stored.total_compressed_size < 1.1 * once
    assert stored.compression == "UNCOMPRESSED"
    assert columns["evidence"].compression == "SNAPPY"
    shown = [[image["bytes"] for image in row["images"]] for row in iterate_rows([path])]
    assert shown == [[media.get(name) for name in names]] * 8


def test_row_groups_and_shards_are_bounded(tmp_path: Path, media: MediaStore) -> None:
    big = [media.put(b"\xff\xd8\xff" + bytes([k]) * (6 * 2**20), "jpg") for k in range(2)]

    def stream() -> Iterator[Item]:
        for k in range(8):
            yield make_item(k, [big[k % 2]])

    paths = write_items(tmp_path / "items", stream(), media, bytes_per_shard=35 * 2**20)
    groups = [pq.ParquetFile(p).metadata for p in paths]
    assert [[g.row_group(k).num_rows for k in range(g.num_row_groups)] for g in groups] == [[2, 2, 2], [2]]


def test_no_items_give_one_empty_file(tmp_path: Path, media: MediaStore) -> None:
    (path,) = write_items(tmp_path / "items", [], media)
    assert path.name == "items-00000-of-00001.parquet"
    assert read_shard(path, ITEMS) == []


def test_a_missing_image_leaves_the_old_set(tmp_path: Path, media: MediaStore, jpegs: list[str]) -> None:
    (old,) = write_items(tmp_path / "items", items(jpegs, 3), media)
    before = old.read_bytes()
    with pytest.raises(DatasetError, match=r"no file.*Measure"):
        write_items(tmp_path / "items", [*items(jpegs, 150), make_item(9, ["0" * 32 + ".jpg"])], media, 60)
    assert old.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["items", "media"]


def test_fewer_shards_leave_no_old_ones(tmp_path: Path, media: MediaStore, jpegs: list[str]) -> None:
    write_items(tmp_path / "items", items(jpegs, 9), media, rows_per_shard=2)
    write_items(tmp_path / "items", items(jpegs, 3), media)
    assert [p.name for p in (tmp_path / "items").iterdir()] == ["items-00000-of-00001.parquet"]


KILLED = """
import os, pathlib, signal, sys
from tests.store.examples import make_item
from vgbench_gen.core.types import Rejected
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.schema import REJECTS
from vgbench_gen.store import files, shards
root, name = pathlib.Path(sys.argv[1]), sys.argv[2]
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def stream():
    for k in range(250):
        yield make_item(k, [name])
    if sys.argv[3] == "midway":
        die()
if sys.argv[3] == "rename":
    shards.sync_to_disk = die
if sys.argv[3] == "swap":
    files.shutil.rmtree = die
    rename = pathlib.Path.rename
    files.Path.rename = lambda a, b: die() if b.name == "items" else rename(a, b)
if sys.argv[4] == "items":
    shards.write_items(root / "items", stream(), MediaStore(root / "media"), rows_per_shard=120)
else:
    rejects = (Rejected("t", "d", "s", i.id, "r") for i in stream())
    shards.write_shard(root / "rejects" / "x.parquet", rejects, REJECTS)
"""


@pytest.mark.parametrize("moment", ["midway", "rename"])
@pytest.mark.parametrize("old", [True, False])
def test_killed_while_writing_items(
    tmp_path: Path, media: MediaStore, jpegs: list[str], moment: str, old: bool
) -> None:
    folder = tmp_path / "items"
    before = {p.name: p.read_bytes() for p in write_items(folder, items(jpegs, 3), media)} if old else {}
    assert run(KILLED, tmp_path, jpegs[0], moment, "items").returncode == -signal.SIGKILL
    assert {p.name: p.read_bytes() for p in folder.glob("*")} == before
    assert len(clean_temporary(tmp_path)) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == (["items"] if old else []) + ["media"]


def test_killed_between_the_two_renames(tmp_path: Path, media: MediaStore, jpegs: list[str]) -> None:
    (path,) = write_items(tmp_path / "items", items(jpegs, 3), media)
    before = path.read_bytes()
    assert run(KILLED, tmp_path, jpegs[0], "swap", "items").returncode == -signal.SIGKILL
    assert not path.exists()
    assert len(clean_temporary(tmp_path)) == 2
    assert path.read_bytes() == before


def test_killed_while_writing_a_shard(tmp_path: Path, jpegs: list[str]) -> None:
    assert run(KILLED, tmp_path, jpegs[0], "midway", "rejects").returncode == -signal.SIGKILL
    assert list((tmp_path / "rejects").glob("*.parquet")) == []
    (left,) = (tmp_path / "rejects").iterdir()
    assert clean_temporary(tmp_path) == [left]
    assert not left.exists()


def test_cleaning_spares_the_living_and_strangers(tmp_path: Path) -> None:
    mine = files.make_temporary_name(tmp_path / "x.parquet")
    for path in (mine, tmp_path / "x.parquet", tmp_path / ".x.tmp", tmp_path / ".x.parquet.12-zz.tmp"):
        path.write_bytes(b"")
    assert clean_temporary(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 4


def test_errors_name_file_finding_expectation_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_shard(path, [Rejected("t", "d", "s", f"k{k}", "r" * 50) for k in range(500)], REJECTS)
    with pytest.raises(DatasetError, match=r"x\.parquet: found rejects, schema version 2; expected facts.*Build it"):
        read_shard(path, FACTS)
    with pytest.raises(DatasetError, match="no file"):
        read_shard(tmp_path / "y.parquet", FACTS)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="unreadable"):
        read_shard(path, REJECTS)
    path.write_bytes(whole[:4] + bytes(400) + whole[404:])
    with pytest.raises(DatasetError, match="unreadable"):
        read_shard(path, REJECTS)


def test_only_some_rows_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "rejects.parquet"
    write_shard(path, [Rejected("metric_depth", "ca1m", "1", f"key {k}", "blurred") for k in range(10)], REJECTS)
    rows = iterate_rows([path], batch=4, only={0, 3, 4, 9})
    assert [row["key"] for row in rows] == ["key 0", "key 3", "key 4", "key 9"]
    assert list(iterate_rows([path], batch=4, only=())) == []


def test_choosing_rows_does_not_bring_pandas(tmp_path: Path) -> None:
    path = tmp_path / "rejects.parquet"
    write_shard(path, [Rejected("metric_depth", "ca1m", "1", f"key {k}", "blurred") for k in range(4)], REJECTS)
    code = (
        "import sys; from pathlib import Path; from vgbench_gen.store.shards import iterate_rows\n"
        "assert len(list(iterate_rows([Path(sys.argv[1])], only={1, 3}))) == 2\n"
        "assert 'pandas' not in sys.modules\n"
    )
    assert not run(code, path).stderr
