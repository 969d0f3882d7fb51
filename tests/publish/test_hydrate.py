"""Published without pixels, made again from the scans."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.publish.small_set import build_small, strip, write_scans
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item
from vgbench_gen.publish import _scene_pixels
from vgbench_gen.publish.hydrate import hydrate
from vgbench_gen.publish.licences import make_gate
from vgbench_gen.publish.redact_pixels import (
    FileFacts,
    RowImages,
    compute_pixels_digest,
    make_published_row,
)
from vgbench_gen.samples import encode
from vgbench_gen.scenes.base import Frame
from vgbench_gen.store import pictures
from vgbench_gen.store.columns import IMAGE_FILES, ITEM_COLUMNS
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.provenance import dataset_fingerprint, read_manifest, text_fingerprint
from vgbench_gen.store.schema import PUBLISHED, RecordSchema, Row
from vgbench_gen.store.shards import iterate_rows, write_embedded_rows
from vgbench_gen.tasks.base import tasks

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with scans (`raw`), the build (`built`) and the set without pixels (`published`); read only."""
    root = tmp_path_factory.mktemp("hydrate")
    write_scans(root / "raw")
    build_small(root / "raw", root / "built")
    strip(root / "built", root / "published")
    return root


def pixels(dataset: Dataset) -> dict[str, list[bytes]]:
    return {item.id: [dataset.image_bytes(item, k) for k in range(len(item.images))] for item in dataset}


def proved_fingerprint(dataset: Dataset) -> str:
    """`dataset_fingerprint` with the images named anew by the bytes that are embedded."""

    def rename(item: Item) -> Item:
        found = [dataset.image_bytes(item, k) for k in range(len(item.images))]
        embedded = zip(item.images, found, strict=True)
        return replace(item, images=tuple(f"{digest_bytes(data)}.{name.rpartition('.')[2]}" for name, data in embedded))

    return dataset_fingerprint(map(rename, dataset))


def copied(home: Path, name: str, to: Path) -> Path:
    return Path(shutil.copytree(home / name, to / name))


def edited(source: Path, out: Path, change: Callable[[Row], None]) -> Path:
    """The set with one function applied to every row's `image_files`."""
    rows = []
    for row in iterate_rows(load(source).paths):
        for file in row["image_files"]:
            change(file)
        rows.append(row)
    write_embedded_rows(out / "items", rows, PUBLISHED, "test")
    return out


def test_a_set_without_pixels_comes_back_bit_for_bit(home: Path, tmp_path: Path) -> None:
    built, published = load(home / "built"), load(home / "published")
    assert len({item.task for item in built}) >= 9  # so small images hold no metric depth on one surface
    assert {item.source for item in built} == {"ca1m", "wildrgbd"}
    ops = {op["op"] for item in built for p in item.evidence["pictures"] for op in p["ops"]}
    assert ops == {"crop_resize", "warp", "point", "region"}
    widths = {(tasks[i.task].cuts_crops, c["width"]) for i in built for c in i.evidence["cameras"].values()}
    assert widths == {(False, 200), (True, 200), (True, 240)}  # crops are cut from frames as they were taken
    assert any(item.images[0] == item.evidence["pictures"][0]["base"] for item in built)  # JPEG that passes through

    data = b"".join(path.read_bytes() for path in published.paths)
    assert b"\xff\xd8\xff" not in data
    assert b"\x89PNG" not in data
    assert dataset_fingerprint(published) == dataset_fingerprint(built)  # it says and names the same
    with pytest.raises(DatasetError, match="vgbench pull --scenes"):
        published.image_bytes(published[0], 0)

    report = hydrate(home / "published", home / "raw", tmp_path / "out")
    again = load(tmp_path / "out")
    assert pixels(again) == pixels(built)
    full = read_manifest(home / "built")["fingerprint"]
    assert proved_fingerprint(again) == full == report.fingerprint == report.expected
    assert report.said == text_fingerprint(built)
    assert (report.rows, report.complete, report.short, report.exact) == (len(built), len(built), False, True)
    assert report.images == {"exact": len({name for item in built for name in item.images})}
    assert set(report.bases) == {"equal"}
    assert report.other_versions == {}
    assert read_manifest(tmp_path / "out")["fingerprint"] == full


def test_rows_whose_pixels_travel_come_along(home: Path, tmp_path: Path) -> None:
    mixed = strip(home / "built", tmp_path / "mixed", make_gate().travels)
    stripped = {row["source"] for row in iterate_rows(load(mixed).paths) if not row["images"]}
    assert stripped == {"ca1m"}
    report = hydrate(mixed, home / "raw" / "ca1m", tmp_path / "out", workers=2)
    assert report.exact
    assert set(report.images) == {"embedded", "exact"}
    assert pixels(load(tmp_path / "out")) == pixels(load(home / "built"))
    # Nothing is left to do, so no scan is needed.
    assert hydrate(tmp_path / "out", [], tmp_path / "next").images == {"embedded": report.images.total()}


def test_in_place_and_on_from_where_it_stopped(
    home: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulled = copied(home, "published", tmp_path)
    wild = sum(item.source == "wildrgbd" for item in load(pulled))
    rows = len(load(pulled))
    half = ["pull", str(pulled), "--scenes", str(home / "raw" / "wildrgbd"), "--workers", "1"]
    assert main(half) == 1
    said = capsys.readouterr().out
    assert f"{wild} of {rows} rows have their images" in said
    assert f"ca1m/90000001: {rows - wild} rows" in said
    report = json.loads((pulled / "hydrate.json").read_text())
    assert report["missing_scenes"] == {"ca1m/90000001": rows - wild}
    left = load(pulled)
    with pytest.raises(DatasetError, match="vgbench pull --scenes"):
        left.image_bytes(next(item for item in left if item.source == "ca1m"), 0)

    opened: list[str] = []
    make = _scene_pixels._make_frame

    def noted(frame: Frame, *rest: Any) -> None:
        opened.append(frame.id)
        make(frame, *rest)

    monkeypatch.setattr(_scene_pixels, "_make_frame", noted)
    assert main(["pull", str(pulled), "--scenes", str(home / "raw"), "--workers", "1", "--exact", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["hydrated"]
    assert found["exact"]
    assert found["complete"] == rows
    assert opened
    assert all(len(frame_id) > 5 for frame_id in opened)  # time stamps: of CA-1M alone
    assert pixels(load(pulled)) == pixels(load(home / "built"))


def test_another_codec_is_told_and_the_rows_say_the_same(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    built = load(home / "built")
    monkeypatch.setattr(pictures, "JPEG_QUALITY", 93)
    report = hydrate(home / "published", home / "raw", tmp_path / "out")
    passing = {
        name for i in built for name, p in zip(i.images, i.evidence["pictures"], strict=True) if name == p["base"]
    }
    assert report.images["exact"] == len(passing) > 0
    assert set(report.images) == {"exact", "close"}
    assert (report.short, report.exact) == (False, False)
    assert report.said == report.expected_said == text_fingerprint(built)
    again = load(tmp_path / "out")
    # Names are those of the bytes that are there, so nobody takes them for the published ones.
    assert proved_fingerprint(again) == dataset_fingerprint(again) == report.fingerprint != report.expected
    manifest = read_manifest(tmp_path / "out")
    told = manifest["fingerprint"], manifest["hydrated"]["published_fingerprint"]
    assert told == (report.fingerprint, report.expected)
    # Published once more, it says what it shows.
    bare, whole = strip(tmp_path / "out", tmp_path / "bare"), strip(tmp_path / "out", tmp_path / "whole", bool)
    assert dataset_fingerprint(load(bare)) == dataset_fingerprint(load(whole)) == report.fingerprint
    assert not any(row["images"] for row in iterate_rows(load(bare).paths))
    assert pixels(load(whole)) == pixels(again)
    args = ["pull", str(home / "published"), "--scenes", str(home / "raw"), "--out", str(tmp_path / "out")]
    assert main([*args, "--workers", "1"]) == 0
    assert f"published was {report.expected}" in capsys.readouterr().out
    monkeypatch.setattr(_scene_pixels, "_make", None)  # the second run remembered what the first made
    assert main([*args, "--workers", "1", "--exact"]) == 1

    def remade(file: Row) -> None:
        file["pixels"] = pictures_of[file["name"]]

    pictures_of = {
        published: compute_pixels_digest(pictures.decode(again.image_bytes(item, k)))
        for item in again
        for k, published in enumerate(built.by_id(item.id).images)
    }
    monkeypatch.undo()
    monkeypatch.setattr(pictures, "JPEG_QUALITY", 93)
    same = hydrate(edited(home / "published", tmp_path / "pixels", remade), home / "raw", tmp_path / "same")
    assert set(same.images) == {"exact", "same_pixels"}


def test_other_pictures_are_not_taken(home: Path, tmp_path: Path) -> None:
    raw = copied(home, "raw", tmp_path)
    folder = raw / "wildrgbd" / "box" / "scenes" / "scenes_000" / "rgb"
    first, second, third = sorted(folder.iterdir())[:3]
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    third.unlink()
    report = hydrate(home / "published", raw, tmp_path / "out")
    assert report.short
    swapped = {item.id for item in load(home / "built") if item.source == "wildrgbd" and {"0", "1"} & {*item.frame_ids}}
    lost = {item.id for item in load(home / "built") if item.source == "wildrgbd" and "2" in item.frame_ids}
    assert swapped
    assert lost
    result = load(tmp_path / "out")
    bare = {row["id"] for row in iterate_rows(result.paths) if not row["images"]}
    assert bare == swapped | lost
    assert list(report.missing_frames) == ["wildrgbd/box/scenes_000"]
    assert list(report.missing_frames["wildrgbd/box/scenes_000"]) == ["2"]
    assert "looks different" in next(iter(report.different["wildrgbd/box/scenes_000"].values()))
    assert report.bases["other"] == 2

    smaller = encode.encode_jpeg(pictures.decode(data)[:-2, :-2])
    for path in folder.iterdir():
        path.write_bytes(smaller)
    resized = hydrate(home / "published", raw / "wildrgbd", tmp_path / "resized")
    assert set(resized.images) == {"different", "missing"}
    assert "198x148 px, published from 200x150" in str(resized.different)


def test_what_is_damaged_is_refused(home: Path, tmp_path: Path) -> None:
    def broken(file: Row) -> None:
        file["ops"] = '[{"op":"paint"}]'

    def outside(file: Row) -> None:
        file["name"] = "../" + file["name"]

    for k, change in enumerate((broken, outside)):
        with pytest.raises(DatasetError):
            hydrate(edited(home / "published", tmp_path / f"{k}", change), home / "raw", tmp_path / f"out{k}")
        assert not (tmp_path / f"out{k}" / "items").exists()
    rows = list(iterate_rows(load(home / "built").paths))
    rows[0]["images"][0]["bytes"] += b"x"
    with_bad = [{**row, "image_files": []} for row in rows]
    write_embedded_rows(tmp_path / "bad" / "items", with_bad, PUBLISHED, "test")
    with pytest.raises(DatasetError, match="digest"):
        hydrate(tmp_path / "bad", home / "raw", tmp_path / "out")
    with pytest.raises(ConfigError, match="--out"):
        hydrate(load(home / "published").paths[0], home / "raw")


def test_rows_without_a_scan_behind_them_are_counted(home: Path, tmp_path: Path) -> None:
    rows = []
    for row in iterate_rows(load(home / "built").paths):
        if row["source"] == "wildrgbd":
            row |= {"benchmark": "MMVP", "evidence": "{}"}
        rows.append(row)
    memory = FileFacts()
    stripped = [make_published_row(row, RowImages(row), False, memory) for row in rows]
    write_embedded_rows(tmp_path / "in" / "items", stripped, PUBLISHED, "test")
    report = hydrate(tmp_path / "in", home / "raw", tmp_path / "out")
    wild = sum(row["benchmark"] == "MMVP" for row in rows)
    assert report.not_from_scans == {"MMVP": wild}
    assert (report.short, report.rows - report.complete, report.images["missing"]) == (True, wild, 0)


def test_names_alone_are_enough_for_what_is_bit_for_bit(home: Path, tmp_path: Path) -> None:
    """Rows of plain items whose bytes were taken out: their evidence says how to make them. Columns stand in the order
    of sets that were published earlier."""
    earlier = RecordSchema("items", (*ITEM_COLUMNS, IMAGE_FILES), PUBLISHED.to_row, PUBLISHED.read_row)
    rows = [
        {**row, "images": [{"bytes": None, "path": i["path"]} for i in row["images"]], "image_files": []}
        for row in iterate_rows(load(home / "built").paths)
    ]
    write_embedded_rows(tmp_path / "in" / "items", rows, earlier, "test")
    report = hydrate(tmp_path / "in", home / "raw", tmp_path / "out")
    assert report.exact
    assert report.fingerprint == read_manifest(home / "built")["fingerprint"]


@pytest.mark.slow
def test_the_captures_of_all_four_datasets(captures: Path, tmp_path: Path) -> None:
    from tests.pipeline.same_bytes import small_recipe
    from vgbench_gen.pipeline.build import build

    build(small_recipe(), captures, tmp_path / "built", 2)
    built = load(tmp_path / "built")
    assert {item.source for item in built} == {"scannet", "scannetpp", "ca1m", "wildrgbd"}
    assert len({item.task for item in built}) >= 9  # so small images hold no metric depth on one surface
    published = strip(tmp_path / "built", tmp_path / "published")
    report = hydrate(published, captures, tmp_path / "out", 2)
    assert report.exact
    assert proved_fingerprint(load(tmp_path / "out")) == dataset_fingerprint(built)
