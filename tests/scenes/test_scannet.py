"""ScanNet loader: every lay-out, alignment, intrinsics for another size, objects, hostile input, real captures."""

from __future__ import annotations

import importlib
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.scenes.scannet_writer import (
    ALIGNMENT,
    COLOR_K,
    COLOR_SIZE,
    DEPTH_K,
    LOST,
    Picture,
    Sens,
    block,
    jpeg,
    pictures,
    png,
    scan_folder,
    text,
    write_annotation,
    write_cpp_export,
    write_frames_25k,
    write_mesh,
    write_posed_images,
    write_python_export,
    write_sens,
)
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.scenes.scannet import ScanNet, ScanNetScene

SCAN = "scene0001_00"
LOADER = ScanNet()


def opened(folder: Path) -> ScanNetScene:
    return LOADER.open(SceneRef("scannet", folder.name, folder))


def reasons(scene: ScanNetScene) -> list[str]:
    """Reasons of the issues, apart from the annotation that most scans here lack altogether."""
    return [issue.reason for issue in scene.issues if LACKING not in issue.detail]


LACKING = f"{SCAN}_vh_clean_2.ply, {SCAN}_vh_clean_2.0.010000.segs.json, {SCAN}.aggregation.json: no such file"


def _sens(folder: Path, frames: list[Picture]) -> None:
    (folder / f"{SCAN}.sens").write_bytes(Sens(frames).bytes())


VARIANTS: dict[str, tuple[str, int, Callable[[Path, list[Picture]], None]]] = {
    "sens": ("sens", 1, _sens),
    "python": ("exported", 1, write_python_export),
    "frames": ("exported", 1, lambda f, p: write_python_export(f, p, below="frames")),
    "exported": ("exported", 1, lambda f, p: write_python_export(f, p, below="exported", square=True)),
    "sens folder, png": ("exported", 1, lambda f, p: write_python_export(f, p, below="sens", as_png=True)),
    "gaps": ("exported", 7, lambda f, p: write_python_export(f, p, step=7)),
    "cpp": ("exported_cpp", 1, write_cpp_export),
    "cpp, png depth": ("exported_cpp", 1, lambda f, p: write_cpp_export(f, p, depth_png=True)),
    "25k": ("frames_25k", 100, write_frames_25k),
    "posed_images": ("posed_images", 1, write_posed_images),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_layout_gives_the_same_scene(tmp_path: Path, name: str) -> None:
    variant, step, write = VARIANTS[name]
    frames = pictures(12)
    write(scan_folder(tmp_path / "scans", SCAN), frames)
    (ref,) = LOADER.discover(tmp_path)
    assert (ref.scene_id, ref.variant, ref.split) == (SCAN, variant, "unknown")
    assert ref.size_bytes > 0
    with LOADER.open(ref) as scene:
        assert (scene.dataset, scene.id, scene.licence, scene.depth_kind) == ("scannet", SCAN, "scannet-tou", "sensor")
        assert (scene.total_frames, reasons(scene), list(scene.objects)) == (12, [], [])
        np.testing.assert_array_equal(scene.up_world, [0, 0, 1])
        assert [f.id for f in scene.frames] == [str(n * step) for n in range(12)]
        for number in (11, 0, 2, 10):
            got, frame = scene.frames[number], frames[number]
            np.testing.assert_allclose(got.camera.K, COLOR_K[:3, :3], atol=1e-5)
            np.testing.assert_allclose(got.depth_camera.K, DEPTH_K[:3, :3], atol=1e-5)
            assert got.camera.size == COLOR_SIZE
            np.testing.assert_allclose(got.world_from_camera, ALIGNMENT @ frame.pose, atol=3e-6)
            assert got.pose_deviation < 1e-5
            assert got.timestamp_s == (pytest.approx(1 + 0.033333 * number) if name == "sens" else None)
            depth_m, rgb = got.depth_m(), got.color()
            np.testing.assert_array_equal(depth_m, frame.depth.astype(np.float32) / np.float32(1000))
            assert depth_m[3, 5] == pytest.approx(1.234 + 0.001 * number)
            assert np.abs(rgb[16, 16].astype(int) - [200, 40, 10 + number]).max() <= 3
            assert got.encoded_color() == (png if "png" in name and "depth" not in name else jpeg)(frame.rgb)


def test_alignment(tmp_path: Path) -> None:
    frames = pictures(2)
    folder = write_sens(tmp_path, Sens(frames))
    keys = folder / f"{SCAN}.txt"
    for line, issues in (("", []), ("axisAlignment = 1 2 3\n", ["file_unusable"])):
        keys.write_text(line + "sceneType = Kitchen\n")
        scene = opened(folder)
        np.testing.assert_allclose(scene.frames[1].world_from_camera, frames[1].pose, atol=1e-6)
        assert reasons(scene) == issues
    mirrored = np.diag([1.0, 1.0, -1.0, 1.0])
    keys.write_text("axisAlignment = " + " ".join(map(str, mirrored.ravel())))
    assert reasons(opened(folder)) == ["file_unusable"]
    keys.unlink()
    scene = opened(folder)
    np.testing.assert_allclose(scene.frames[0].world_from_camera, frames[0].pose, atol=1e-6)
    assert reasons(scene) == ["file_missing"]


def test_bad_poses_cost_their_frames(tmp_path: Path) -> None:
    frames = pictures(7)
    frames[1].pose = LOST
    frames[2].pose = frames[2].pose.copy()
    frames[2].pose[0, 0] = 0
    frames[3].pose = np.diag([1.5, 1.0, 1.0, 1.0])
    frames[4].pose = np.full((4, 4), np.nan)
    scene = opened(write_sens(tmp_path, Sens(frames)))
    assert [f.id for f in scene.frames] == ["0", "5", "6"]
    assert scene.total_frames == 7
    assert [(i.frame_id, i.reason) for i in scene.issues if i.frame_id] == [
        ("1", "lost_pose"),
        ("2", "lost_pose"),
        ("3", "bad_pose"),
        ("4", "lost_pose"),
    ]
    with pytest.raises(SceneError, match="none usable"):
        opened(write_sens(tmp_path / "b", Sens(frames[1:5])))


def test_slightly_skewed_pose_is_repaired(tmp_path: Path) -> None:
    frames = pictures(1)
    frames[0].pose[:3, :3] *= 1.001
    (frame,) = opened(write_sens(tmp_path, Sens(frames))).frames
    assert frame.pose_deviation == pytest.approx(2.001e-3, rel=1e-3)
    R = frame.world_from_camera[:3, :3]
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("word", ["-inf", "inf", "nan", "-1.#INF", "1.#INF00", "-1.#IND", "1.#QNAN0"])
def test_text_forms_of_lost_poses(tmp_path: Path, word: str) -> None:
    folder = scan_folder(tmp_path)
    write_python_export(folder, pictures(3))
    (folder / "pose/1.txt").write_text((" ".join([word] * 4) + "\r\n") * 4)
    scene = opened(folder)
    assert ([f.id for f in scene.frames], reasons(scene)) == (["0", "2"], ["lost_pose"])


def test_frames_pair_by_number(tmp_path: Path) -> None:
    folder, frames = scan_folder(tmp_path), pictures(12)
    write_python_export(folder, frames)
    for name in ("color/1.jpg", "depth/3.png", "pose/10.txt"):
        (folder / name).unlink()
    (folder / "pose/4.txt").write_text("1 0 0 spam\n")
    (folder / "color/notes.txt").write_text("x")
    scene = opened(folder)
    assert [f.id for f in scene.frames] == ["0", "2", "5", "6", "7", "8", "9", "11"]
    assert {i.frame_id: i.reason for i in scene.issues if i.frame_id} == {
        "1": "incomplete",
        "3": "incomplete",
        "10": "incomplete",
        "4": "bad_pose",
    }
    last = scene.frames[-1]
    np.testing.assert_allclose(last.world_from_camera, ALIGNMENT @ frames[11].pose, atol=3e-6)
    assert last.depth_m()[3, 5] == pytest.approx(1.245)


def test_pictures_of_another_size_rescale_the_intrinsics(tmp_path: Path) -> None:
    frames = pictures(2)
    small = [Picture(np.asarray(cv2.resize(f.rgb, (32, 16)), np.uint8), f.depth, f.pose) for f in frames]
    folder = scan_folder(tmp_path)
    write_python_export(folder, small)
    scene = opened(folder)
    camera = scene.frames[0].camera
    assert camera.size == (32, 16)
    # A world point seen at the same relative position: edges map to edges.
    np.testing.assert_allclose([camera.fx, camera.fy], [57.5 / 2, 58.5 / 3])
    np.testing.assert_allclose([(camera.cx + 0.5) / 32, (camera.cy + 0.5) / 16], [31.8 / 64, 24.4 / 48])
    assert reasons(scene) == ["picture_size"]
    assert scene.frames[0].color().shape == (16, 32, 3)
    np.testing.assert_allclose(scene.frames[0].depth_camera.K, DEPTH_K[:3, :3], atol=1e-5)

    # Somebody rescaled the intrinsics, too.
    K = COLOR_K[:3, :3].copy()
    K[0] *= 0.5
    K[1] /= 3
    (folder / "intrinsic/intrinsic_color.txt").write_text(text(K))
    scene = opened(folder)
    np.testing.assert_allclose(scene.frames[0].camera.K, K, atol=1e-5)
    assert "fit the pictures" in scene.issues[0].detail

    # Made for neither.
    (folder / "intrinsic/intrinsic_color.txt").write_text(text(K * 8 * np.array([[1.0], [1.0], [1 / 8]])))
    with pytest.raises(SceneError, match="another picture size"):
        opened(folder)


@pytest.mark.parametrize("focal_px", [0.01, 5.0, 700.0, 1e30])
def test_focal_lengths_no_camera_has(tmp_path: Path, focal_px: float) -> None:
    folder = scan_folder(tmp_path)
    write_python_export(folder, pictures(1))
    K = COLOR_K[:3, :3].copy()
    K[0, 0] = K[1, 1] = focal_px
    (folder / "intrinsic/intrinsic_color.txt").write_text(text(K))
    with pytest.raises(SceneError, match=r"focal length over the longer side .*; expected 0\.1 to 10"):
        opened(folder)


def test_what_only_orders_or_sorts_scans_costs_none(tmp_path: Path) -> None:
    for name in ("scene0001_00", "scene0002_00"):
        write_python_export(scan_folder(tmp_path, name), pictures(2))
    (tmp_path / "scannetv2_train.txt").write_bytes(b"x" * 2_000_000)
    for picture in (tmp_path / "scene0001_00" / "color").iterdir():
        picture.unlink()
        picture.symlink_to(picture.name)  # a link that goes round
    found = list(ScanNet().discover(tmp_path))
    assert [(ref.scene_id, ref.split) for ref in found] == [("scene0001_00", "unknown"), ("scene0002_00", "unknown")]
    assert len(ScanNet().open(found[1]).frames) == 2
    with pytest.raises(SceneError, match="no frame with colour, depth and pose"):
        ScanNet().open(found[0])


def test_sizes_nobody_states(tmp_path: Path) -> None:
    """Without `<scanId>.txt`, intrinsics are those of 1296x968 colour and 640x480 depth unless they fit as they are."""
    folder = scan_folder(tmp_path)
    write_python_export(folder, pictures(2))
    (folder / f"{SCAN}.txt").unlink()
    np.testing.assert_allclose(opened(folder).frames[0].camera.K, COLOR_K[:3, :3], atol=1e-5)
    K = np.array([[1169.621, 0, 646.295], [0, 1167.105, 489.927], [0, 0, 1]])
    (folder / "intrinsic/intrinsic_color.txt").write_text(text(K))
    camera = opened(folder).frames[0].camera
    np.testing.assert_allclose([camera.fx, camera.cy], [1169.621 * 64 / 1296, 490.427 * 48 / 968 - 0.5], atol=1e-5)


def test_sens_header_and_pictures_disagree(tmp_path: Path) -> None:
    K = COLOR_K.copy()
    K[0] *= 2
    K[1] *= 2
    frames = pictures(3)
    sens = Sens(frames, color_size=(128, 96), color_K=K, color_bytes={0: b"\xff\xd8torn", 2: jpeg(frames[2].rgb[::2])})
    scene = opened(write_sens(tmp_path, sens))
    camera = scene.frames[1].camera
    assert camera.size == COLOR_SIZE
    assert camera.cx == pytest.approx((62.6 + 0.5) / 2 - 0.5)
    assert reasons(scene) == ["picture_size"]
    assert scene.frames[1].color().shape == (48, 64, 3)
    for broken in (0, 2):
        with pytest.raises(FrameError):
            scene.frames[broken].color()


def test_depth_intrinsics_left_out(tmp_path: Path) -> None:
    folder = scan_folder(tmp_path)
    write_posed_images(folder, pictures(2), depth_K=False)
    scene = opened(folder)
    depth = scene.frames[0].depth_camera
    assert reasons(scene) == ["depth_intrinsics_derived"]
    expected = [57.5 / 2, 58.5 / 2, 31.3 * 31 / 63, 23.9 * 23 / 47]
    np.testing.assert_allclose([depth.fx, depth.fy, depth.cx, depth.cy], expected, atol=1e-5)


def test_extrinsic_other_than_identity_is_noted(tmp_path: Path) -> None:
    extrinsic = np.eye(4)
    extrinsic[0, 3] = 0.02
    assert reasons(opened(write_sens(tmp_path, Sens(pictures(1), depth_extrinsic=extrinsic)))) == [
        "extrinsic_not_identity"
    ]
    folder = scan_folder(tmp_path / "b")
    write_python_export(folder, pictures(1))
    (folder / "intrinsic/extrinsic_depth.txt").write_text(text(extrinsic))
    assert reasons(opened(folder)) == ["extrinsic_not_identity"]


def test_torn_sens_and_empty_records_are_noted(tmp_path: Path) -> None:
    sens = Sens(pictures(5), depth_bytes={1: b""})
    folder = write_sens(tmp_path, sens)
    (folder / f"{SCAN}.sens").write_bytes(sens.bytes()[:-300])  # into the last record, beyond the IMU block
    scene = opened(folder)
    assert [f.id for f in scene.frames] == ["0", "2", "3"]
    assert set(reasons(scene)) == {"truncated", "no_pixels"}
    assert scene.total_frames == 5


@pytest.mark.parametrize("depth", [b"P5\n32 24\n255\n" + bytes(32 * 24), b"P5\n32 24\n65535\n" + bytes(99), b"P6"])
def test_damaged_exports_cost_the_frame(tmp_path: Path, depth: bytes) -> None:
    folder, frames = scan_folder(tmp_path), pictures(3)
    write_cpp_export(folder, frames)
    (folder / "frame-000001.depth.pgm").write_bytes(depth)
    (folder / "frame-000001.color.jpg").write_bytes(jpeg(frames[0].rgb)[:-30])
    scene = opened(folder)
    with pytest.raises(FrameError, match="frame-000001"):
        scene.frames[1].depth_m()
    with pytest.raises(FrameError, match="frame-000001"):
        scene.frames[1].color()
    assert scene.frames[2].depth_m()[3, 5] == pytest.approx(1.236)


def test_eight_bit_depth_is_refused(tmp_path: Path) -> None:
    folder, frames = scan_folder(tmp_path), pictures(2)
    write_python_export(folder, frames)
    (folder / "depth/1.png").write_bytes(png(frames[1].depth.astype(np.uint8)))
    with pytest.raises(FrameError, match="16-bit"):
        opened(folder).frames[1].depth_m()


TABLE = block((2.0, 1.0, 0.4), (1.6, 0.8, 0.8), 0.4)
MUG = block((2.2, 1.1, 0.85), (0.10, 0.08, 0.12), 1.1)


@pytest.mark.parametrize("full_mesh", [False, True])
def test_objects_stand_in_the_delivered_world(tmp_path: Path, full_mesh: bool) -> None:
    folder = write_sens(tmp_path, Sens(pictures(1)))
    write_annotation(folder, [("Table ", TABLE), ("coffee mug", MUG)], full_mesh=full_mesh)
    scene = opened(folder)
    assert scene.issues == []
    assert [(o.instance_id, o.label) for o in scene.objects] == [("0", "table"), ("1", "coffee mug")]
    table = scene.objects[0]
    np.testing.assert_allclose(table.box.center_m, (ALIGNMENT @ [2.0, 1.0, 0.4, 1.0])[:3], atol=0.02)
    np.testing.assert_allclose(table.box.size_m, [1.6, 0.8, 0.8], atol=0.03)
    direction = ALIGNMENT[:3, :3] @ [np.cos(0.4), np.sin(0.4), 0]
    assert abs(table.box.rotation[:, 0] @ direction) > 0.9999
    np.testing.assert_array_equal(table.box.rotation[:, 2], [0, 0, 1])
    assert table.box.frame == "world"
    assert table.points_m is not None
    expected = TABLE @ ALIGNMENT[:3, :3].T + ALIGNMENT[:3, 3]
    assert len(table.points_m) == len(expected)
    np.testing.assert_allclose(table.points_m, expected, atol=1e-6)


def test_spilled_vertices_do_not_stretch_a_box(tmp_path: Path) -> None:
    folder = write_sens(tmp_path, Sens(pictures(1)))
    spilled = TABLE.copy()
    spilled[:5] += (3.0, 0.0, 1.0)
    write_annotation(folder, [("table", spilled)])
    (table,) = opened(folder).objects
    np.testing.assert_allclose(table.box.size_m, [1.6, 0.8, 0.8], atol=0.05)
    assert table.points_m is not None
    assert len(table.points_m) == 995


def test_objects_listed_twice_are_kept_once(tmp_path: Path) -> None:
    folder = write_sens(tmp_path, Sens(pictures(1)))
    write_annotation(folder, [("table", TABLE), ("mug", MUG)], repeat=True)
    scene = opened(folder)
    assert [o.instance_id for o in scene.objects] == ["0", "1"]
    assert reasons(scene) == ["object_repeated"]


def _edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("segs", lambda d: d["segIndices"].pop()),
        ("segs", lambda d: d.update(segIndices={"a": 1})),
        ("segs", lambda d: d["segIndices"].__setitem__(3, 1.5)),
        ("segs", lambda d: d["segIndices"].__setitem__(3, "x" * 1_000_000)),
        ("segs", lambda d: d["segIndices"].__setitem__(3, 2**70)),
        ("segs", lambda d: d["segIndices"].__setitem__(3, [[]])),
        ("segs", lambda d: d.update(sceneId="scene0002_00")),
        ("aggregation", lambda d: d.update(segGroups=5)),
        ("aggregation", lambda d: d.update(segmentsFile=f"scannet.{SCAN}_vh_clean.segs.json")),
        ("aggregation", lambda d: d["segGroups"][0].update(segments=["1"])),
    ],
)
def test_bad_annotation_costs_the_objects(
    tmp_path: Path, file: str, change: Callable[[dict[str, Any]], object]
) -> None:
    folder = write_sens(tmp_path, Sens(pictures(1)))
    write_annotation(folder, [("table", TABLE), ("mug", MUG)])
    _edit(folder / (f"{SCAN}_vh_clean_2.0.010000.segs.json" if file == "segs" else f"{SCAN}.aggregation.json"), change)
    tracemalloc.start()
    scene = opened(folder)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    assert (len(scene.frames), list(scene.objects), reasons(scene)) == (1, [], ["file_unusable"])


def test_mixed_sets_are_not_paired(tmp_path: Path) -> None:
    """The full mesh's aggregation beside the decimated mesh's segments makes no object."""
    folder = write_sens(tmp_path, Sens(pictures(1)))
    write_annotation(folder, [("table", TABLE)])
    (folder / f"{SCAN}.aggregation.json").rename(folder / f"{SCAN}_vh_clean.aggregation.json")
    scene = opened(folder)
    assert (list(scene.objects), reasons(scene)) == ([], ["file_missing", "file_missing"])


def test_one_bad_object_costs_itself(tmp_path: Path) -> None:
    folder = write_sens(tmp_path, Sens(pictures(1)))
    write_annotation(folder, [("table", TABLE), ("dust", MUG[:6]), ("poster", TABLE * [1, 0, 1]), ("mug", MUG)])
    _edit(folder / f"{SCAN}.aggregation.json", lambda d: d["segGroups"].append({"id": 9, "label": None}))
    scene = opened(folder)
    assert [o.label for o in scene.objects] == ["table", "mug"]
    assert sorted(reasons(scene)) == ["object_malformed", "object_too_small", "object_without_box"]


def test_a_test_scan_has_no_objects_and_no_issues(tmp_path: Path) -> None:
    folder = write_sens(tmp_path / "scans_test", Sens(pictures(1)))
    write_mesh(folder / f"{SCAN}_vh_clean_2.ply", TABLE, np.array([[0, 1, 2]]))
    (ref,) = LOADER.discover(tmp_path)
    scene = LOADER.open(ref)
    assert (scene.split, list(scene.objects), scene.issues) == ("test", [], [])


def test_splits_lists_and_preference(tmp_path: Path) -> None:
    for scan_id in ("scene0003_00", "scene0001_00", "scene0002_01"):
        write_sens(tmp_path / "data/scans", Sens(pictures(1)), scan_id)
    write_frames_25k(scan_folder(tmp_path / "data/scannet_frames_25k", "scene0001_00"), pictures(1))
    write_posed_images(scan_folder(tmp_path / "data/posed_images", "scene0009_00"), pictures(1))
    benchmark = tmp_path / "data/Tasks/Benchmark"
    benchmark.mkdir(parents=True)
    (benchmark / "scannetv2_val.txt").write_text("scene0003_00\nscene0009_00\n")
    (tmp_path / "data/scannetv2_train.txt").write_text("scene0001_00\r\n")
    outside = write_sens(tmp_path / "elsewhere", Sens(pictures(1)), "scene0005_00")
    (tmp_path / "data/scans/scene0005_00").symlink_to(outside)
    (tmp_path / "data/scans/scene0004_00").mkdir()
    refs = list(LOADER.discover(tmp_path / "data"))
    assert [(r.scene_id, r.variant, r.split) for r in refs] == [
        ("scene0001_00", "sens", "train"),
        ("scene0002_01", "sens", "unknown"),
        ("scene0003_00", "sens", "val"),
        ("scene0004_00", "", "unknown"),
        ("scene0009_00", "posed_images", "val"),
    ]
    with pytest.raises(SceneError, match="no frames"):
        LOADER.open(refs[3])
    assert list(LOADER.discover(tmp_path / "nowhere")) == []


def test_links_out_of_the_scan_are_not_followed(tmp_path: Path) -> None:
    folder = scan_folder(tmp_path / "scans")
    write_python_export(folder, pictures(3))
    secret = tmp_path / "secret.jpg"
    (folder / "color/1.jpg").rename(secret)
    (folder / "color/1.jpg").symlink_to(secret)
    scene = opened(folder)
    assert [f.id for f in scene.frames] == ["0", "2"]
    assert sorted(reasons(scene)) == ["incomplete", "link_outside"]
    real = tmp_path / "real.sens"
    real.write_bytes(Sens(pictures(1)).bytes())
    other = scan_folder(tmp_path / "scans", "scene0002_00")
    (other / "scene0002_00.sens").symlink_to(real)
    with pytest.raises(SceneError, match="link"):
        opened(other)


def test_source_digest_follows_the_files(tmp_path: Path) -> None:
    folder = scan_folder(tmp_path)
    write_python_export(folder, pictures(3))
    first, again = opened(folder).source_digest, opened(folder).source_digest
    (folder / "color/1.jpg").write_bytes(jpeg(pictures(1, seed=5)[0].rgb))
    assert (first == again, first == opened(folder).source_digest, len(first)) == (True, False, 32)


@pytest.mark.parametrize(
    ("name", "frames", "total", "lost"), [("scene9001_00", 38, 40, {"7", "23"}), ("scene9001_01", 12, 13, {"5"})]
)
def test_real_captures(captures: Path, name: str, frames: int, total: int, lost: set[str]) -> None:
    open3d: Any = importlib.import_module("open3d")  # its stubs miss half of what is used here
    folder = captures / "scannet" / name
    (ref,) = (r for r in LOADER.discover(captures) if r.scene_id == name)
    with LOADER.open(ref) as scene:
        assert (len(scene.frames), scene.total_frames) == (frames, total)
        assert {i.frame_id for i in scene.issues} == lost
        assert {"table", "chair", "mug", "kitchen cabinets", "floor"} <= {o.label for o in scene.objects}
        floor = next(o for o in scene.objects if o.label == "floor")
        assert abs(floor.box.center_m[2]) < 0.02  # axisAlignment puts the floor at z = 0
        cabinets = next(o for o in scene.objects if o.label == "kitchen cabinets")
        assert np.abs(cabinets.box.rotation[:, 0]).max() > 0.99  # and furniture at the walls along x or y

        # Objects against the mesh, read by other means.
        line = (folder / f"{name}.txt").read_text().splitlines()[0]
        alignment = np.array(line.split("=")[1].split(), float).reshape(4, 4)
        mesh = open3d.io.read_triangle_mesh(str(folder / f"{name}_vh_clean_2.ply")).transform(alignment)
        vertices = np.asarray(mesh.vertices)
        segs = np.array(json.loads((folder / f"{name}_vh_clean_2.0.010000.segs.json").read_text())["segIndices"])
        groups = json.loads((folder / f"{name}.aggregation.json").read_text())["segGroups"]
        by_id = {o.instance_id: o for o in scene.objects}
        assert len(by_id) == len(groups)
        for group in groups:
            points, box = vertices[np.isin(segs, group["segments"])], by_id[str(group["objectId"])].box
            local = (points - box.center_m) @ box.rotation
            # One per cent is cut off at each of the six faces, and no more (the alignment has six decimals).
            most = int(np.ceil(0.01 * len(points)))
            for side in (-1, 1):
                assert (side * local > box.size_m / 2 + 1e-5).sum(axis=0).max() <= most
            assert (box.size_m <= np.ptp(local, axis=0) + 1e-5).all()

        # Every frame against the mesh: poses and mesh were moved alike, depth is in meters, its K fits.
        tree = open3d.geometry.KDTreeFlann(mesh)
        distances = [
            tree.search_knn_vector_3d(p, 1)[2][0] ** 0.5
            for frame in (scene.frames[0], scene.frames[-1])
            for p in _world_points(frame, 12)
        ]
        assert np.median(distances) < 0.03

        # One pair of frames: depth of A seen from B.
        a, b = scene.frames[2], scene.frames[6]
        world = _world_points(a, 2)
        seen = (world - b.world_from_camera[:3, 3]) @ b.world_from_camera[:3, :3]
        uv = np.round(seen @ b.depth_camera.K.T / seen[:, 2:])[:, :2].astype(int)
        within = (seen[:, 2] > 0) & (uv >= 0).all(1) & (uv < b.depth_camera.size).all(1)
        depth = b.depth_m()[uv[within, 1], uv[within, 0]]
        error = np.abs(depth - seen[within, 2])[depth > 0] / depth[depth > 0]
        assert len(error) > 1000
        assert np.median(error) < 0.02


def _world_points(frame: Any, stride: int) -> Any:
    depth = frame.depth_m()
    v, u = np.nonzero(depth)
    u, v = u[:: stride * stride], v[:: stride * stride]
    rays = np.linalg.solve(frame.depth_camera.K, np.stack([u, v, np.ones_like(u)]).astype(float)).T
    return rays * depth[v, u, None] @ frame.world_from_camera[:3, :3].T + frame.world_from_camera[:3, 3]
