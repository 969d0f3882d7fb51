from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenes import ca1m_writer, wildrgbd_writer
from vgbench_gen.core.errors import SceneError, UnknownNameError, VGBenchError
from vgbench_gen.scenes import discover, open_scenes
from vgbench_gen.scenes.base import SceneRef, loaders
from vgbench_gen.scenes.walk import walk

NAMES = ("ca1m", "wildrgbd")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two datasets, three scenes."""
    raw = tmp_path / "raw"
    content = ca1m_writer.members([ca1m_writer.shot(0)])
    ca1m_writer.write_tar(raw / "ca1m" / "val" / f"ca1m-val-{ca1m_writer.VIDEO}.tar", content)
    wildrgbd_writer.write_scene(raw / "wildrgbd", "box", "scenes_000", 1)
    wildrgbd_writer.write_scene(raw / "wildrgbd", "TV", "scenes_004", 1)
    return raw


ALL = [("ca1m", ca1m_writer.VIDEO), ("wildrgbd", "TV/scenes_004"), ("wildrgbd", "box/scenes_000")]


def keys(refs: list[SceneRef]) -> list[tuple[str, str]]:
    return [(ref.dataset, ref.scene_id) for ref in refs]


def test_a_parent_a_dataset_and_a_scene_may_be_the_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys(discover(root)) == ALL
    assert keys(discover(str(root / "wildrgbd"))) == ALL[1:]
    assert keys(discover(root / "ca1m" / "val" / f"ca1m-val-{ca1m_writer.VIDEO}.tar")) == ALL[:1]
    assert keys(discover(root / "wildrgbd" / "TV" / "scenes" / "scenes_004")) == ALL[1:2]
    assert keys(discover(root, datasets=["ca1m"])) == ALL[:1]
    monkeypatch.chdir(root / "wildrgbd" / "TV" / "scenes" / "scenes_004")
    assert keys(discover(".")) == ALL[1:2]
    with pytest.raises(SceneError, match="nothing there"):
        discover(root / "missing")
    with pytest.raises(UnknownNameError, match="Did you mean ca1m"):
        discover(root, datasets=["ca1"])


def test_overlapping_roots_list_each_scene_once(root: Path) -> None:
    told: list[str] = []
    refs = discover(root, root / "wildrgbd", root / "ca1m", on_error=lambda ref, error: told.append(str(error)))
    assert keys(refs) == ALL
    assert told == []


def test_a_second_copy_is_said(root: Path, tmp_path: Path) -> None:
    wildrgbd_writer.write_scene(tmp_path / "copy", "box", "scenes_000", 1)
    told: list[str] = []
    refs = discover(root, tmp_path / "copy", on_error=lambda ref, error: told.append(str(error)))
    assert keys(refs) == ALL
    assert refs[2].path.is_relative_to(root)
    assert len(told) == 1
    assert str(tmp_path / "copy") in told[0]


def test_links_out_of_the_root_are_not_followed(root: Path, tmp_path: Path) -> None:
    wildrgbd_writer.write_scene(tmp_path / "outside", "car", "scenes_001", 1)
    (root / "more").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to(tmp_path)
    (root / "again").symlink_to(root / "wildrgbd")
    assert keys(discover(root)) == ALL
    (tmp_path / "door").symlink_to(root)  # the root itself may be a link
    assert keys(discover(tmp_path / "door")) == ALL


def test_links_that_go_round_cost_no_scene(root: Path) -> None:
    for folder in (root, root / "ca1m" / "val", root / "wildrgbd" / "TV" / "scenes"):
        for name in ("round", "scene0009_00", "ca1m-val-43000000.tar", "metadata"):
            (folder / name).symlink_to(name)
    told: list[str] = []
    assert keys(discover(root, on_error=lambda ref, error: told.append(str(error)))) == ALL
    assert told == []


def test_scenes_are_opened_in_order_and_failures_are_told(root: Path) -> None:
    (root / "wildrgbd" / "TV" / "scenes" / "scenes_004" / "metadata").write_text("{")
    (root / "ca1m" / "ca1m-train-41000000.tar").write_bytes(b"no tar at all" * 100)
    failed: list[tuple[str, VGBenchError]] = []
    scenes = list(open_scenes(root, on_error=lambda ref, error: failed.append((ref.scene_id, error))))
    assert [(scene.dataset, scene.id) for scene in scenes] == [ALL[0], ALL[2]]
    assert scenes[0].frames[0].color().shape == (48, 64, 3)  # still open
    assert [name for name, _ in failed] == ["41000000", "TV/scenes_004"]
    assert all(isinstance(error, SceneError) for _, error in failed)
    assert "metadata" in str(failed[1][1])


def test_without_a_callback_failures_go_to_the_log(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    (root / "wildrgbd" / "TV" / "scenes" / "scenes_004" / "metadata").write_text("{")
    with caplog.at_level(logging.WARNING):
        assert len(list(open_scenes(root))) == 2
    assert "wildrgbd TV/scenes_004 left out" in caplog.text


def test_a_defect_of_ours_is_not_swallowed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(ref: SceneRef) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(loaders["ca1m"], "open", broken)
    with pytest.raises(ZeroDivisionError):
        list(open_scenes(root))


def test_opening_many_archives_one_by_one_keeps_no_files_open(tmp_path: Path) -> None:
    for number in range(5):
        content = ca1m_writer.members([ca1m_writer.shot(0)], video=f"4000000{number}")
        ca1m_writer.write_tar(tmp_path / f"ca1m-val-4000000{number}.tar", content)
    open_files = Path("/proc/self/fd")
    if not open_files.is_dir():
        pytest.skip("open files are counted through /proc")
    before = len(list(open_files.iterdir()))
    most = max(len(list(open_files.iterdir())) for _ in open_scenes(tmp_path, datasets=["ca1m"]))
    assert most <= before + 2


def test_frame_folders_are_never_listed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = ca1m_writer.members([ca1m_writer.shot(n) for n in range(3)])
    ca1m_writer.write_folder(root / "ca1m" / "ca1m-train-47000000", content)
    listed: list[str] = []
    real = os.scandir

    def spy(path: Path) -> Iterator[os.DirEntry[str]]:
        listed.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(os, "scandir", spy)
    for name in NAMES:
        list(loaders[name].discover(root))
    assert "scenes_000" in listed
    assert not {"rgb", "depth", "masks", "image"} & set(listed)
    assert not [name for name in listed if name.endswith((".wide", ".gt"))]


def test_the_walk_is_bounded(tmp_path: Path) -> None:
    deep = tmp_path / "/".join("abcdefghij")
    deep.mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "to_b").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "to_a").symlink_to(tmp_path / "a")
    (tmp_path / ".hidden").mkdir()
    seen = [folder for folder, _ in walk(tmp_path)]
    real = [folder.resolve() for folder in seen]
    assert len(real) == len(set(real))
    assert max(len(folder.relative_to(tmp_path).parts) for folder in seen) == 6
    assert not [folder for folder in seen if folder.name == ".hidden"]


def test_empty_folders_hold_nothing(tmp_path: Path) -> None:
    for name in ("ca1m", "wildrgbd/box/scenes/scenes_000", "42898570"):
        (tmp_path / name).mkdir(parents=True)
    assert discover(tmp_path) == []
    assert list(open_scenes(tmp_path)) == []


def test_real_captures(captures: Path) -> None:
    assert keys(discover(captures)) == [
        ("ca1m", "90010001"),
        ("scannet", "scene9001_00"),
        ("scannet", "scene9001_01"),
        ("scannetpp", "7c9be0a21f/iphone"),
        ("scannetpp", "e41d5f9b03/iphone"),
        ("wildrgbd", "box/scenes_000"),
    ]
    failed: list[VGBenchError] = []
    assert len(list(open_scenes(captures, on_error=lambda ref, error: failed.append(error)))) == 6
    assert failed == []


def test_links_to_scans_elsewhere_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They are not followed, and nobody should have to guess why scans are missing."""
    (tmp_path / "disk/scene0001_00").mkdir(parents=True)
    (tmp_path / "raw/sub").mkdir(parents=True)
    (tmp_path / "raw/scannet").symlink_to(tmp_path / "disk")
    (tmp_path / "raw/within").symlink_to(tmp_path / "raw/sub")
    assert discover(tmp_path / "raw") == []
    told = [record.getMessage() for record in caplog.records if "not followed" in record.getMessage()]
    assert len(told) == 1
    assert str(tmp_path / "raw/scannet") in told[0]


def test_links_to_a_disk_that_is_not_there_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "raw").mkdir()
    for name in ("scannet", "42898570.tar"):
        (tmp_path / "raw" / name).symlink_to(tmp_path / "disk" / name)
    assert discover(tmp_path / "raw") == []
    told = sorted(record.getMessage() for record in caplog.records)
    assert [text.split(": a link that leads to no folder or file")[0] for text in told] == [
        str(tmp_path / "raw" / name) for name in ("42898570.tar", "scannet")
    ]
