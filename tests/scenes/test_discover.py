from __future__ import annotations

import json
import logging
import os
import re
import string
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import ca1m_writer, scannet_writer, scannetpp_writer, wildrgbd_writer
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, SceneError, UnknownNameError, VGBenchError
from vgbench_gen.pipeline.build import find_scenes
from vgbench_gen.scenes import describe_unplaced, discover, open_scenes
from vgbench_gen.scenes._leftovers import describe_near_miss
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


SCENES = {
    "scannet": lambda root, k: scannet_writer.write_sens(root, scannet_writer.Sens(scannet_writer.pictures(k))),
    "scannetpp": lambda root, k: scannetpp_writer.Phone([np.eye(4)] * k).write(root, video=False, colmap=False),
    "ca1m": lambda root, k: ca1m_writer.write_tar(
        root / f"ca1m-val-{ca1m_writer.VIDEO}.tar", ca1m_writer.members([ca1m_writer.shot(j) for j in range(k)])
    ),
    "wildrgbd": lambda root, k: wildrgbd_writer.write_scene(root, count=k),
}


@pytest.mark.parametrize("dataset", SCENES)
@pytest.mark.parametrize("roots", [("",), ("a", "b")])
def test_a_second_scene_of_one_id_is_named_below_one_root_and_below_two(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], dataset: str, roots: list[str]
) -> None:
    for k, name in enumerate(("a", "b"), 1):
        SCENES[dataset](tmp_path / name, k)
    (ref,) = discover(*(tmp_path / root for root in roots))
    assert ref.path.is_relative_to(tmp_path / "a")
    (told,) = (record.getMessage() for record in caplog.records)
    assert f"{tmp_path / 'b'}" in told
    assert f"expected it only at {ref.path}" in told
    main(["scenes", str(tmp_path), "--json"])
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_a_list_of_splits_that_is_none_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    SCENES["scannet"](tmp_path / "scans", 1)
    SCENES["scannetpp"](tmp_path, 1)
    (tmp_path / "splits").mkdir()
    for name in ("scannetv2_train.txt", "splits/nvs_sem_train.txt"):
        (tmp_path / name).write_text("<html><title>Sign in</title></html>")
        (tmp_path / name.replace("train", "val")).write_text("")  # which may list none
    assert [ref.split for ref in discover(tmp_path)] == ["unknown", "unknown"]
    told = sorted(record.getMessage() for record in caplog.records)
    assert [text.split(" (Sign in)")[0] for text in told] == [
        f"{tmp_path / 'scannetv2_train.txt'}: a web page", f"{tmp_path / 'splits/nvs_sem_train.txt'}: a web page",
    ]  # fmt: skip


def test_sets_derived_from_a_scan_are_no_second_scan(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scannet_writer.write_sens(tmp_path / "scans", scannet_writer.Sens(scannet_writer.pictures(1)))
    scannet_writer.write_frames_25k(
        scannet_writer.scan_folder(tmp_path / "scannet_frames_25k"), scannet_writer.pictures(1)
    )
    (ref,) = discover(tmp_path)
    assert ref.variant == "sens"
    assert not caplog.records


VIDEO, PARTIAL, ARCHIVE = ca1m_writer.VIDEO, "an unfinished download", "an archive, which is not read as it is. Unpack"
NEAR_MISSES = {
    f"ca1m-val-{VIDEO}.tar.gz": ARCHIVE,
    f"ca1m-val-{VIDEO}.tar.zst": ARCHIVE,
    f"{VIDEO}.zip": ARCHIVE,
    "scene0000_00.ZIP": ARCHIVE,
    "box.tgz": ARCHIVE,
    "data.7z.001": ARCHIVE,
    "1a2b3c4d5e.rar": ARCHIVE,
    f"ca1m-val-{VIDEO} (1).tar": f"Rename it to ca1m-val-{VIDEO}.tar",
    f"ca1m-val-{VIDEO}.tar.1": f"Rename it to ca1m-val-{VIDEO}.tar",
    f"CA1M-train-{VIDEO}.TAR": f"Rename it to ca1m-train-{VIDEO}.tar",
    f"Copy of {VIDEO}.tar": f"Rename it to {VIDEO}.tar",
    f"ca1m-val-{VIDEO}.tar.part": PARTIAL,
    f"ca1m-val-{VIDEO}.tar.crdownload": PARTIAL,
    f"ca1m-val-{VIDEO}.tar.aria2": PARTIAL,
    "Unconfirmed 123456.crdownload": PARTIAL,
    "scene0000_00.sens.partial": PARTIAL,
    "x.zip.download (2)": PARTIAL,
}


def test_names_that_are_nearly_right_are_named_beside_good_scans(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in NEAR_MISSES:
        (root / name).write_bytes(b"x")
    (root / "wildrgbd.zip").write_bytes(b"x")  # what it holds was unpacked beside it
    (root / "wildrgbd/box/scenes/scenes_000/labels.zip").write_bytes(b"x")  # one of the files of a scan
    partial = "wildrgbd/box/scenes/scenes_000/cam_poses.txt.part"
    (root / partial).write_bytes(b"x")
    for name in ("notes.txt", "scene0000_00.png", "target.csv", "departments.md"):
        (root / name).write_bytes(b"x")
    assert keys(discover(root)) == ALL
    told = {record.getMessage().split(": ")[0]: record.getMessage() for record in caplog.records}
    assert told.keys() == {str(root / name) for name in (*NEAR_MISSES, partial)}
    for name, remedy in NEAR_MISSES.items():
        assert remedy in told[str(root / name)]


@given(st.text(string.ascii_letters + string.digits + " _-().", max_size=30))
def test_names_without_the_suffix_of_an_archive_or_a_download_say_nothing(name: str) -> None:
    words = re.split(r"[^a-z0-9]", name.lower())
    known = re.compile(r"(tar|tgz|tbz2?|txz|tzst|zip|7z|rar|gz|bz2|xz|zst|lz4|part|partial|crdownload|download|aria2"
                       r"|tmp|incomplete|unfinished|opdownload|filepart|td|unconfirmed)\d*")  # fmt: skip
    assert not describe_near_miss(name) or any(known.fullmatch(word) for word in words)


@pytest.mark.timeout(30)
def test_what_is_in_the_place_of_a_scan_is_named_and_not_waited_for(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(root / "ca1m-val-90010001.tar")
    os.mkfifo(root / "scene0001_00")
    (root / "x").mkdir()
    (root / "x/ca1m-val-90010002.tar").symlink_to("..")
    (root / "scene0002_00").symlink_to(".")
    (root / "ca1m-val-90010003.tar").mkdir()
    assert keys(discover(root)) == ALL
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 5
    for name, what in {
        "ca1m-val-90010001.tar": "a pipe", "scene0001_00": "a pipe", "x/ca1m-val-90010002.tar": "above itself",
        "scene0002_00": "above itself", "ca1m-val-90010003.tar": "a folder by the name of an archive",
    }.items():  # fmt: skip
        assert any(text.startswith(f"{root / name}: ") and what in text for text in told)


NO_POSES = "without poses. Run RTAB-Map, ORB-SLAM3 or COLMAP on it, and save TUM RGB-D."
LAYOUTS = {  # what lies in a folder, where K/ stands for the bytes of Azure Kinect's recorder, and what is said of it
    "ScanNet": (("living_room.sens",), "looks like ScanNet in a folder not named like scene0000_00. Name it so."),
    "Azure Kinect": (("recording.mkv", "calibration.json"), f"looks like Azure Kinect, a recording {NO_POSES}"),
    "Azure Kinect alone": (("K/output.mkv",), f"found output.mkv: looks like Azure Kinect, a recording {NO_POSES}"),
    "kapture": (("sensors/cameras.txt", "reconstruction/points3d.txt"), "looks like kapture, which is not read yet."),
    "none": (("rgb/1.png", "depth/1.png"), "no layout that is known. A posed.toml in it says what is what."),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scans_that_nobody_can_place_are_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, layout: str
) -> None:
    names, said = LAYOUTS[layout]
    for name in names:
        path = tmp_path / "mine" / name.removeprefix("K/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x1aE\xdf\xa3 matroska K4A_COLOR_MODE" if name.startswith("K/") else b"x")
    assert main(["scenes", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "no scan of CA-1M, Own recordings, ScanNet, ScanNet++ or WildRGB-D below" in told
    assert f"{tmp_path / 'mine'}: found " in told
    assert said in told
    assert "docs/howto/your-scans.md" in told
    with pytest.raises(ConfigError, match=re.escape(said)):
        find_scenes(tmp_path)
    assert list(open_scenes(tmp_path)) == []
    assert said in caplog.records[-1].getMessage()
    wildrgbd_writer.write_scene(tmp_path, "box", "scenes_000", 1)
    assert len(discover(tmp_path)) == 1  # and beside a good scan
    assert said in caplog.records[-1].getMessage()


def write_rgbd(folder: Path, color: str = "color/{}.png", depth: str = "depth/{}.png") -> Path:
    """Color and depth of a few frames, and nothing else."""
    for number in range(4):
        for name, picture in ((color, np.full((24, 32, 3), 90, np.uint8)), (depth, np.full((24, 32), 900, np.uint16))):
            path = folder / name.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            assert cv2.imwrite(str(path), picture)
    return folder


@pytest.mark.parametrize("names", [("color/{}.png", "depth/{}.png"), ("a_Color_{}.png", "a_Depth_{}.png")])
def test_color_and_depth_without_poses_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, str]
) -> None:
    folder = write_rgbd(tmp_path / "mine", *names)
    (folder / "intrinsics.json").write_text('{"fx": 600, "fy": 600, "cx": 16, "cy": 12}')
    (folder / "imu.csv").write_text("1,2,3\n4,5,6\n")
    assert main(["scenes", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert f"{folder}: found 8 PNG" in told.err
    assert f": color and depth {NO_POSES}" in told.err
    assert told.out == ""  # no posed.toml, which could not name any


POSE = "1 0 0 0.5\n0 1 0 0\n0 0 1 2\n0 0 0 1\n"


@pytest.mark.parametrize(
    ("files", "poses"),
    [
        ({"path.csv": "t,x,y,z,qx,qy,qz,qw\n0,1,2,3,0,0,0,1\n1,1,2,4,0,0,0,1\n"}, 'poses = "path.csv"'),
        ({f"z/{i}.txt": POSE for i in range(4)}, 'poses = "z/*.txt"'),
        ({f"f{i}.cam.txt": POSE for i in range(4)}, 'poses = "*.cam.txt"'),
        ({"stated_poses.bin": "x"}, 'poses = "…"'),
    ],
)
def test_poses_in_any_form_ask_for_a_posed_toml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], poses: str
) -> None:
    folder = write_rgbd(tmp_path / "mine")
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    assert main(["scenes", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert "no layout that is known. A posed.toml in it says what is what." in told.err
    assert poses in told.out


def test_two_matrices_and_intrinsics_are_no_poses(tmp_path: Path) -> None:
    folder = write_rgbd(tmp_path / "mine")
    for name in ("color_from_imu.txt", "depth_from_imu.txt"):
        (folder / name).write_text(POSE)
    for number in range(4):
        (folder / f"{number}.k.txt").write_text("600 0 16 0\n0 600 12 0\n0 0 1 0\n0 0 0 1\n")
    assert NO_POSES in describe_unplaced(tmp_path)


def test_a_folder_of_something_else_is_counted(tmp_path: Path) -> None:
    assert "found no file." in describe_unplaced(tmp_path)
    for name in ("a.csv", "b.csv", "c.txt"):
        (tmp_path / name).write_text("x")
    assert "found 2 CSV, 1 TXT." in describe_unplaced(tmp_path)
    (tmp_path / f"ca1m-val-{VIDEO}.tar.gz").write_text("x")
    assert "Unpack it. docs/howto/your-scans.md" in describe_unplaced(tmp_path)
    for name in "abc":
        (tmp_path / f"{name}.zip").write_bytes(b"")
    assert "And 1 more. docs/howto/your-scans.md" in describe_unplaced(tmp_path)
