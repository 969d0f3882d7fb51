"""The ScanNet++ loader on written scenes with known geometry, on spoiled ones, and on real captures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.transform import Rotation

from tests.scenes import scannetpp_writer as writer
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.geometry.boxes import contains
from vgbench_gen.scenes._mesh import MeshDepth, read_ply
from vgbench_gen.scenes._scannetpp_objects import read_objects
from vgbench_gen.scenes.base import Frame, Scene, SceneRef
from vgbench_gen.scenes.scannetpp import ScanNetPP

Array = npt.NDArray[Any]

EYES = [(1.0, 1.0, 1.6), (1.3, 0.9, 1.5), (1.6, 0.9, 1.5), (2.0, 0.8, 1.7)]
ROLLS = (0, 90, 3, 180)
POSES = [writer.look_at(eye, (3.2, 3.4, 0.5), roll_deg=roll) for eye, roll in zip(EYES, ROLLS, strict=True)]
DSLR_POSES = {
    f"DSC{i:05d}.JPG": writer.look_at((1.0 + i / 5, 0.6, 1.4), (3, 3.2, 0.4), roll_deg=2 * i) for i in (3, 1, 2)
}
LOADER = ScanNetPP()


def refs(root: Path) -> dict[str, SceneRef]:
    return {ref.scene_id: ref for ref in LOADER.discover(root)}


def opened(root: Path, device: str = "iphone") -> Scene:
    return LOADER.open(refs(root)[f"{writer.SCENE}/{device}"])


def reasons(scene: Scene) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for issue in scene.issues:
        out.setdefault(issue.reason, []).append(issue.frame_id)
    return out


def world_points(frame: Frame) -> tuple[Array, Array]:
    """World points (N, 3) of a frame's known depth, and their pixels in its colour image, by hand."""
    depth, camera = frame.depth_m(), frame.depth_camera
    assert depth.shape == (camera.height, camera.width)
    v, u = np.nonzero(depth[4:-4:7, 4:-4:7] > 0)
    u, v = 4 + 7 * u, 4 + 7 * v
    rays = np.stack([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones(len(u))], 1)
    points = (rays * depth[v, u, None]) @ frame.world_from_camera[:3, :3].T + frame.world_from_camera[:3, 3]
    color = frame.camera
    pixels = rays[:, :2] * [color.fx, color.fy] + [color.cx, color.cy]
    return np.asarray(points), np.asarray(pixels)


def surface_gap_m(points: Array) -> Array:
    """(N,) distance of points from the surface of the nearest solid."""
    gaps = []
    for centre, extents in writer.SOLIDS:
        q = np.abs(points - centre) - np.array(extents) / 2
        gaps.append(np.abs(np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(1), 0)))
    return np.asarray(np.min(gaps, axis=0))


def check_frame(
    frame: Frame, pose: Array, lens: tuple[Array, tuple[float, ...], bool], index: int, gap_m: float
) -> None:
    """Depth lies on the solids, and colour is that of the stored picture at the lens's projection of the points."""
    points, pixels = world_points(frame)
    assert len(points) > 300
    assert np.quantile(surface_gap_m(points), 0.9) < gap_m
    K, distortion, fisheye = lens
    inverse = np.linalg.inv(pose)
    project = cv2.fisheye.projectPoints if fisheye else cv2.projectPoints
    seen = np.asarray(
        project(points.reshape(-1, 1, 3), cv2.Rodrigues(inverse[:3, :3])[0], inverse[:3, 3], K, np.array(distortion))[0]
    ).reshape(-1, 2)
    color = frame.color()
    assert color.shape == (frame.camera.height, frame.camera.width, 3)
    at = np.rint(pixels).astype(int)
    got = color[at[:, 1], at[:, 0]].astype(float)
    # Half a pixel of rounding and a grey level or two; the colours say 0.7 of the place.
    assert np.median(np.abs(got[:, :2] - 0.7 * seen)) < 0.6
    assert np.abs(got[:, :2] - 0.7 * seen).max() < 4
    assert np.abs(got[:, 2] - 40 * index).max() <= 6


PHONE_LENS = (writer.PHONE_K, writer.PHONE_DISTORTION, False)
DSLR_LENS = (writer.DSLR_K, writer.DSLR_DISTORTION, True)


@pytest.mark.parametrize(("variant", "video"), [("A", True), ("B", False), ("C", True)])
def test_iphone_round_trip(tmp_path: Path, variant: str, video: bool) -> None:
    writer.Phone(POSES).write(tmp_path, variant, video=video)
    with opened(tmp_path) as scene:
        assert (scene.dataset, scene.id, scene.depth_kind) == ("scannetpp", f"{writer.SCENE}/iphone", "sensor")
        assert (scene.licence, scene.total_frames, scene.issues) == ("scannetpp-tou", 4, [])
        assert scene.up_world is not None
        assert scene.up_world.tolist() == [0, 0, 1]
        assert [f.id for f in scene.frames] == ["frame_000000", "frame_000001", "frame_000002", "frame_000003"]
        assert scene.frames[1].timestamp_s == pytest.approx(100 + 1 / 60)
        # Backwards as well: a video and a stream have to start anew.
        for index in (3, 0, 1, 1, 2):
            frame = scene.frames[index]
            check_frame(frame, POSES[index], PHONE_LENS, index, gap_m=0.01)
            x, y, _ = scene.up_world @ frame.world_from_camera[:3, :3]
            assert y < -0.7
            assert abs(x) < 0.2
            assert frame.encoded_color() is None
            assert frame.valid_mask() is None
            assert frame.camera.width == (240 if index == 1 else 320)


def test_without_colmap_the_json_intrinsic_is_taken_as_it_is(tmp_path: Path) -> None:
    scene_folder = writer.Phone(POSES).write(tmp_path, video=False, colmap=False)
    scene = opened(tmp_path)
    np.testing.assert_allclose(scene.frames[0].camera.K, writer.PHONE_K)
    check_frame(scene.frames[0], POSES[0], (writer.PHONE_K, (0.0,) * 4, False), 0, gap_m=0.01)
    stored = (scene_folder / "iphone/rgb/frame_000000.jpg").read_bytes()
    assert scene.frames[0].encoded_color() == stored
    assert scene.frames[1].encoded_color() is None  # turned
    # The same numbers for the phone's own size: rescaled, and said so.
    half = np.array([[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]])
    big = np.diag([6, 6, 1]) @ (writer.PHONE_K + half) - half
    content = writer.Phone(POSES).json()
    for entry in content.values():
        entry["intrinsics"] = big.tolist()
        del entry["intrinsic"]
    writer.write_json(scene_folder / "iphone/pose_intrinsic_imu.json", content)
    scene = opened(tmp_path)
    np.testing.assert_allclose(scene.frames[0].camera.K, writer.PHONE_K, atol=1e-9)
    assert reasons(scene) == {"intrinsics_rescaled": [""], "file_missing": [""]}  # colmap/


def test_aligned_poses_first_then_colmap_then_nerfstudio(tmp_path: Path) -> None:
    folder = writer.Phone(POSES).write(tmp_path) / "iphone"
    content = writer.Phone(POSES).json()
    content["frame_000001"] = None
    content["frame_000002"]["aligned_poses"] = content["frame_000002"].pop("aligned_pose")
    content["frame_000003"]["aligned_pose"][0][0] += 0.3
    writer.write_json(folder / "pose_intrinsic_imu.json", content)
    scene = opened(tmp_path)
    assert [f.id for f in scene.frames] == ["frame_000000", "frame_000002"]
    assert reasons(scene) == {"pose_missing": ["frame_000001"], "pose_invalid": ["frame_000003"]}
    assert scene.total_frames == 4

    # No aligned pose at all: COLMAP (every second frame), never the raw `pose`.
    for entry in content.values():
        if entry:
            entry.pop("aligned_pose", None)
            entry.pop("aligned_poses", None)
    writer.write_json(folder / "pose_intrinsic_imu.json", content)
    scene = opened(tmp_path)
    assert [f.id for f in scene.frames] == ["frame_000000", "frame_000002"]
    np.testing.assert_allclose(scene.frames[0].world_from_camera, POSES[0], atol=1e-9)

    # Nerfstudio: another world and other camera axes; is_bad is skipped.
    shutil.rmtree(folder / "colmap")
    names = {f"frame_{i:06d}.jpg": pose for i, pose in enumerate(POSES)}
    k = dict(zip(("k1", "k2", "p1", "p2"), writer.PHONE_DISTORTION, strict=True))
    transforms = writer.nerfstudio(names, writer.SIZE, writer.PHONE_K, camera_model="OPENCV", **k)
    transforms["frames"][3]["is_bad"] = True
    for entry in content.values():
        if entry:
            del entry["intrinsic"]
    writer.write_json(folder / "pose_intrinsic_imu.json", content)
    writer.write_json(folder / "nerfstudio/transforms.json", transforms)
    scene = opened(tmp_path)
    assert [f.id for f in scene.frames] == ["frame_000000", "frame_000001", "frame_000002"]
    check_frame(scene.frames[0], POSES[0], PHONE_LENS, 0, gap_m=0.01)
    np.testing.assert_allclose(scene.frames[2].world_from_camera, POSES[2], atol=1e-9)
    assert reasons(scene)["marked_bad"] == ["frame_000003"]
    assert "nerfstudio_poses" in reasons(scene)


def test_sources_that_disagree_are_reported(tmp_path: Path) -> None:
    folder = writer.Phone(POSES).write(tmp_path) / "iphone"
    moved = {f"frame_{i:06d}.jpg": writer.shift(0, 0, 0.2) @ pose for i, pose in enumerate(POSES)}
    line = writer.camera_line("OPENCV", writer.SIZE, writer.PHONE_K, writer.PHONE_DISTORTION)
    writer.write_colmap(folder / "colmap", line, moved)
    scene = opened(tmp_path)
    assert reasons(scene) == {"pose_sources_disagree": [""]}
    np.testing.assert_allclose(scene.frames[0].world_from_camera, POSES[0], atol=1e-9)


def test_a_colmap_camera_of_another_size_is_rescaled_edge_to_edge(tmp_path: Path) -> None:
    folder = writer.Phone(POSES).write(tmp_path) / "iphone"
    expected = opened(tmp_path).frames[0].camera
    half = np.array([[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]])
    double = np.diag([2, 2, 1]) @ (writer.PHONE_K + half) - half
    line = writer.camera_line("OPENCV", (640, 480), double, writer.PHONE_DISTORTION)
    writer.write_colmap(folder / "colmap", line, {"frame_000000.jpg": POSES[0]})
    scene = opened(tmp_path)
    np.testing.assert_allclose(scene.frames[0].camera.K, expected.K, rtol=1e-3)
    np.testing.assert_allclose(scene.frames[0].camera.K[:2, 2], writer.PHONE_K[:2, 2], atol=1e-9)
    assert scene.frames[0].camera.size == expected.size
    assert reasons(scene) == {"intrinsics_rescaled": [""]}


def test_masks_are_undistorted_and_turned_with_the_picture(tmp_path: Path) -> None:
    folder = writer.Phone(POSES).write(tmp_path) / "iphone"
    # Stripes by the stored column, which the colour tells.
    mask = np.where(writer.ramp(writer.SIZE, 0)[..., :1] // 20 % 2, 255, 0).astype(np.uint8)
    writer.write_video(folder / "rgb_mask.mkv", [np.repeat(mask, 3, 2)] * 4)
    scene = opened(tmp_path)
    for index in (0, 1):
        frame = scene.frames[index]
        valid, color = frame.valid_mask(), frame.color()
        assert valid is not None
        assert valid.shape == color.shape[:2]
        red = color[..., 0]
        clear = (red % 20 > 1) & (red % 20 < 18)
        np.testing.assert_array_equal(valid[clear], red[clear] // 20 % 2 == 1)
        assert clear.mean() > 0.7
    # Pictures of masks are taken before the video, and may be smaller.
    for key in writer.Phone(POSES).names():
        writer.write_picture(folder / "rgb_masks" / f"{key}.png", mask[::2, ::2, 0] * (key != "frame_000002"))
    scene = opened(tmp_path)
    again, hidden = scene.frames[0].valid_mask(), scene.frames[2].valid_mask()
    assert again is not None
    assert hidden is not None
    assert not hidden.any()
    assert (again == (scene.frames[0].color()[..., 0] // 20 % 2 == 1)).mean() > 0.9


def test_pictures_and_depth_are_paired_by_name(tmp_path: Path) -> None:
    folder = writer.Phone(POSES).write(tmp_path, video=False) / "iphone"
    (folder / "rgb/frame_000000.jpg").unlink()
    (folder / "rgb/frame_000002.jpg").rename(folder / "rgb/frame_000002.color.jpg")
    data = (folder / "depth.bin").read_bytes()
    scene = opened(tmp_path)
    assert [f.id for f in scene.frames] == ["frame_000001", "frame_000002", "frame_000003"]
    assert reasons(scene) == {"color_missing": ["frame_000000"]}
    check_frame(scene.frames[1], POSES[2], PHONE_LENS, 2, gap_m=0.01)
    # A depth stream that ends early costs the frames after its end.
    (folder / "depth.bin").write_bytes(data[:-500])
    scene = opened(tmp_path)
    assert reasons(scene)["depth_missing"] == ["frame_000003"]
    assert "depth_bin_odd" in reasons(scene)
    # Extracted depth is used where it is; damaged pictures cost their frame when read.
    (folder / "depth.bin").unlink()
    writer.write_picture(folder / "depth/frame_000001.png", np.full((192, 256), 1234, np.uint16))
    writer.write_picture(folder / "depth/frame_000002.png", np.full((192, 256), 12, np.uint8))
    scene = opened(tmp_path)
    np.testing.assert_allclose(scene.frames[0].depth_m(), 1.234, rtol=1e-6)
    with pytest.raises(FrameError, match="16-bit"):
        scene.frames[1].depth_m()
    (folder / "rgb/frame_000001.jpg").write_bytes((folder / "rgb/frame_000001.jpg").read_bytes()[:-900])
    with pytest.raises(FrameError, match="torn"):
        scene.frames[0].color()


def test_a_short_video_says_how_many_frames_it_has(tmp_path: Path) -> None:
    folder = writer.Phone(POSES).write(tmp_path) / "iphone"
    writer.write_video(folder / "rgb.mkv", [writer.ramp(writer.SIZE, i) for i in range(2)])
    scene = opened(tmp_path)
    assert reasons(scene) == {"video_short": [""]}
    for _ in range(2):
        with pytest.raises(FrameError, match=r"frame 3: found a video of 2 frames; expected at least 4"):
            scene.frames[3].color()
        assert set(np.unique(scene.frames[1].color()[..., 2])) == {40}


def test_a_phone_without_depth_gets_it_from_the_mesh(tmp_path: Path) -> None:
    folder = writer.Phone(POSES).write(tmp_path) / "iphone"
    (folder / "depth.bin").unlink()
    scene = opened(tmp_path)
    assert scene.depth_kind == "laser"
    for index in (0, 1):
        check_frame(scene.frames[index], POSES[index], PHONE_LENS, index, gap_m=1e-3)
    (folder.parent / "scans/mesh_aligned_0.05.ply").unlink()
    with pytest.raises(SceneError, match="nvs_test"):
        opened(tmp_path)


@pytest.mark.parametrize("source", ["colmap", "nerfstudio"])
def test_dslr_round_trip_from_fisheye(tmp_path: Path, source: str) -> None:
    folder = writer.write_dslr(tmp_path, DSLR_POSES, writer.room()) / "dslr"
    if source == "nerfstudio":
        shutil.rmtree(folder / "colmap")
    scene = opened(tmp_path, "dslr")
    assert (scene.depth_kind, scene.total_frames) == ("laser", 3)
    assert [f.id for f in scene.frames] == ["DSC00001", "DSC00002", "DSC00003"]
    assert list(reasons(scene)) == ([] if source == "colmap" else ["file_missing", "nerfstudio_poses"])
    written = {name[:8]: i for i, name in enumerate(DSLR_POSES)}
    for frame in scene.frames:
        check_frame(frame, DSLR_POSES[f"{frame.id}.JPG"], DSLR_LENS, written[frame.id], gap_m=1e-3)
        assert frame.encoded_color() is None


@pytest.mark.parametrize("suffix", [".JPG", ".png"])
@pytest.mark.parametrize("folders", writer.UNDISTORTED)
def test_dslr_undistorted_pictures_come_with_their_own_camera(
    tmp_path: Path, folders: tuple[str, str], suffix: str
) -> None:
    folder = writer.write_dslr(tmp_path, DSLR_POSES, writer.room()) / "dslr"
    K = np.array([[110.0, 0, 149.5], [0, 110, 99.5], [0, 0, 1]])
    for i, name in enumerate(DSLR_POSES):
        writer.write_picture(folder / folders[0] / f"{name[:8]}{suffix}", writer.ramp(writer.DSLR_SIZE, 3 + i))
        writer.write_picture(folder / folders[1] / f"{name[:8]}.png", np.zeros((200, 300), np.uint8))
    # Without a camera of their own they must not be used with the fisheye one.
    scene = opened(tmp_path, "dslr")
    assert "undistorted_unused" in reasons(scene)
    check_frame(scene.frames[0], DSLR_POSES["DSC00001.JPG"], DSLR_LENS, 1, gap_m=1e-3)
    shutil.rmtree(folder / "resized_images")
    with pytest.raises(SceneError) as caught:
        opened(tmp_path, "dslr")
    for name in (
        "resized_images/",
        "resized_undistorted_images/",
        "undistorted_images/",
        "transforms_undistorted.json",
    ):
        assert name in caught.value.expected
    assert f"{folders[0]}/ has no pinhole camera" in caught.value.found
    content = writer.nerfstudio(DSLR_POSES, writer.DSLR_SIZE, K, camera_model="PINHOLE", k1=0, k2=0, k3=0, k4=0)
    content["frames"][0]["is_bad"] = True
    writer.write_json(folder / "nerfstudio/transforms_undistorted.json", content)
    scene = opened(tmp_path, "dslr")
    assert [f.id for f in scene.frames] == ["DSC00001", "DSC00002"]
    assert reasons(scene) == {"marked_bad": ["DSC00003"]}
    frame = scene.frames[0]
    np.testing.assert_allclose(frame.camera.K, K)
    assert np.median(surface_gap_m(world_points(frame)[0])) < 1e-3
    assert frame.encoded_color() == (folder / folders[0] / f"DSC00001{suffix}").read_bytes()
    valid = frame.valid_mask()
    assert valid is not None
    assert not valid.any()


def test_dslr_pairs_by_name_and_needs_the_mesh(tmp_path: Path) -> None:
    scene_folder = writer.write_dslr(tmp_path, DSLR_POSES, writer.room())
    pictures = scene_folder / "dslr/resized_images"
    shutil.copy(pictures / "DSC00001.JPG", pictures / "DSC00009.JPG")
    (pictures / "DSC00002.JPG").unlink()
    (pictures / "DSC00003.JPG").write_bytes(b"no picture")
    scene = opened(tmp_path, "dslr")
    assert [f.id for f in scene.frames] == ["DSC00001", "DSC00003"]
    assert reasons(scene) == {"pose_missing": ["DSC00009"], "color_missing": [""]}
    with pytest.raises(FrameError, match="DSC00003"):
        scene.frames[1].color()
    (scene_folder / "scans/mesh_aligned_0.05.ply").unlink()
    with pytest.raises(SceneError, match="no mesh"):
        opened(tmp_path, "dslr")


# -- objects ----------------------------------------------------------------------------------------------------------


def test_objects_have_their_vertices_and_boxes(tmp_path: Path) -> None:
    writer.Phone(POSES).write(tmp_path)
    scene = opened(tmp_path)
    assert [(o.instance_id, o.label) for o in scene.objects] == [("2", "storage box"), ("5", "box lid")]
    box = scene.objects[0].box
    np.testing.assert_allclose(box.center_m, writer.BOX_CENTRE)
    # Extents along the world's axes, whatever the order of the box's.
    np.testing.assert_allclose(np.abs(box.rotation) @ box.size_m, writer.EXTENTS, atol=1e-9)
    assert np.linalg.det(box.rotation) == pytest.approx(1)
    np.testing.assert_allclose(box.rotation[:, 2], [0, 0, 1])
    points = scene.objects[0].points_m
    lid = scene.objects[1].points_m
    assert points is not None
    assert lid is not None
    assert len(points) > 100
    assert contains(box, points, 1e-6).all()
    assert len(lid) == 50
    assert (points[:, None] == lid[:3]).all(2).any(0).all()


@pytest.mark.parametrize("half_lengths", [False, True])
def test_axes_stand_one_after_the_other_and_lengths_are_whole(tmp_path: Path, half_lengths: bool) -> None:
    axes = Rotation.from_euler("z", 25, degrees=True).as_matrix()  # columns
    size, centre = np.array([1.5, 0.5, 0.4]), np.array([2.0, 3.0, 0.7])
    local = np.random.default_rng(0).uniform(-0.5, 0.5, (500, 3))
    vertices = np.concatenate([local * size @ axes.T + centre, [[9.0, 9.0, 9.0]]])
    obb = {
        "centroid": centre.tolist(),
        "axesLengths": (size / (1 + half_lengths)).tolist(),
        "normalizedAxes": [*axes[:, 0], *axes[:, 1], *axes[:, 2]],
    }
    group = {"id": 4, "objectId": 4, "label": "Bench", "segments": [7], "obb": obb}
    writer.write_json(tmp_path / "segments.json", {"segIndices": [7] * 500 + [8]})
    writer.write_json(tmp_path / "segments_anno.json", {"segGroups": [group]})
    (item,), issues = read_objects(tmp_path, vertices, np.array([0.0, 0, 1]), "here")
    np.testing.assert_allclose(item.box.size_m, size, atol=1e-9)
    np.testing.assert_allclose(item.box.rotation, axes, atol=1e-9)
    assert item.points_m is not None
    assert len(item.points_m) == 500
    assert [issue.detail.partition("): ")[2][:5] for issue in issues] == (["holds"] if half_lengths else [])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda obb: obb.update(centroid=[30, 30, 30]), "object_box"),
        (lambda obb: obb.update(normalizedAxes=[1, 0, 0, 0, 0.8, 0.6, 0, -0.6, 0.8]), "object_box"),
        (lambda obb: obb.update(normalizedAxes=[1, 0, 0, 0, 1, 0, 0, 0.5, 0.5]), "object_damaged"),
        (lambda obb: obb.update(axesLengths=[1, 2]), "object_damaged"),
        (lambda obb: obb.update(centroid=[float("nan"), 0, 0]), "object_damaged"),
        (lambda obb: obb.clear(), "object_damaged"),
    ],
)
def test_doubtful_boxes(tmp_path: Path, change: Callable[[Any], None], reason: str) -> None:
    scans = writer.Phone(POSES).write(tmp_path) / "scans"
    content = json.loads((scans / "segments_anno.json").read_text())
    change(content["segGroups"][1]["obb"])
    writer.write_json(scans / "segments_anno.json", content)
    scene = opened(tmp_path)
    assert reasons(scene) == {reason: [""]}
    if reason == "object_damaged":
        assert [o.instance_id for o in scene.objects] == ["5"]
    else:
        box = scene.objects[0].box
        np.testing.assert_allclose(np.abs(box.rotation) @ box.size_m, writer.EXTENTS, atol=0.12)
        np.testing.assert_allclose(box.center_m, writer.BOX_CENTRE, atol=0.06)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("segments.json", '{"segIndices": [1, 2, 3]}'),
        ("segments.json", '{"segIndices": ["a"]}'),
        ("segments.json", "[]"),
        ("segments_anno.json", "[]"),
        ("segments_anno.json", '{"segGroups": {"a": 1}}'),
        ("segments_anno.json", '{"segGroups": '),
        ("mesh_aligned_0.05.ply", "ply\nformat ascii 1.0\nelement vertex 4000000000\n"),
    ],
)
def test_spoiled_annotations_cost_the_objects_only(tmp_path: Path, name: str, content: str) -> None:
    scans = writer.Phone(POSES).write(tmp_path) / "scans"
    (scans / name).write_text(content)
    scene = opened(tmp_path)
    assert (len(scene.frames), list(scene.objects)) == (4, [])
    assert reasons(scene) == {"file_unusable": [""]}


# -- finding scenes, spoiled scenes -----------------------------------------------------------------------------------


def test_discovery_from_every_level_and_splits(tmp_path: Path) -> None:
    root = tmp_path / "sets" / "scannetpp"
    writer.Phone(POSES[:1]).write(root)
    (root / "data" / writer.SCENE / "dslr").mkdir()
    (root / "data" / writer.SCENE / "dslr" / "train_test_lists.json").write_text("{}")
    (root / "data" / "ffffffffff" / "iphone").mkdir(parents=True)  # empty: nothing to open
    outside = tmp_path / "elsewhere" / "1111111111" / "iphone"
    outside.mkdir(parents=True)
    (outside / "depth.bin").write_bytes(b"x")
    (root / "data" / "1111111111").symlink_to(outside.parent)
    for name, scenes in (("nvs_sem_train", writer.SCENE), ("nvs_test_small", "abc"), ("sem_test", "def")):
        (root / "splits").mkdir(exist_ok=True)
        (root / "splits" / f"{name}.txt").write_text(f"{scenes}\n")
    expected = [f"{writer.SCENE}/dslr", f"{writer.SCENE}/iphone"]
    for start in (tmp_path / "sets", root, root / "data", root / "data" / writer.SCENE):
        found = list(LOADER.discover(start))
        assert [ref.scene_id for ref in found] == expected
        assert {ref.split for ref in found} == {"train"}
    assert found[1].size_bytes > 10_000
    (root / "splits" / "nvs_test.txt").write_text(f"\n{writer.SCENE} \n")
    assert {ref.split for ref in LOADER.discover(root)} == {"test"}
    assert list(LOADER.discover(tmp_path / "nowhere")) == []


def spoil_json(text: str) -> Callable[[Path], None]:
    def write(scene: Path) -> None:
        (scene / "iphone/pose_intrinsic_imu.json").write_text(text)

    return write


def without(*names: str) -> Callable[[Path], None]:
    def remove(scene: Path) -> None:
        for name in names:
            path = scene / "iphone" / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


def overwrite(name: str, data: bytes) -> Callable[[Path], None]:
    def write(scene: Path) -> None:
        (scene / "iphone" / name).write_bytes(data)

    return write


def outward_link(scene: Path) -> None:
    secret = scene.parent.parent.parent / "secret.bin"
    shutil.move(scene / "iphone/depth.bin", secret)
    (scene / "iphone/depth.bin").symlink_to(secret)


def playlist(start: str) -> Callable[[Path], None]:
    """The video moved out of the scene, and a list of files that names it in its place."""

    def spoil(scene: Path) -> None:
        secret = scene.parent.parent.parent / "private.mkv"
        shutil.move(scene / "iphone/rgb.mkv", secret)
        (scene / "iphone/rgb.mkv").write_text(start.format(secret))

    return spoil


def another_aspect(scene: Path) -> None:
    writer.write_video(scene / "iphone/rgb.mkv", [writer.ramp((240, 320), i) for i in range(4)])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (spoil_json("[1, 2]"), "an object with an entry per frame"),
        (spoil_json("{}"), "an object with an entry per frame"),
        (spoil_json('{"frame_000000": '), "JSON"),
        (spoil_json("[" * 100_000), "JSON"),
        (without("pose_intrinsic_imu.json", "colmap"), "no usable pose of any source"),
        (without("rgb.mkv"), "neither rgb.mkv nor"),
        (overwrite("rgb.mkv", b"\x1aE\xdf\xa3 no video"), "FFmpeg"),
        (overwrite("depth.bin", b"garbage" * 1000), "256x192 depth"),
        (outward_link, "link or path"),
        (playlist("ffconcat version 1.0\nfile '{}'\n"), "begins with b'ffconcat"),
        (
            playlist("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{}\n"),
            "begins with b'#EXTM3U",
        ),
        (another_aspect, "the shape of"),
    ],
)
def test_spoiled_scenes_cost_the_scene(tmp_path: Path, spoil: Callable[[Path], None], says: str) -> None:
    scene = writer.Phone(POSES).write(tmp_path)
    spoil(scene)
    with pytest.raises(SceneError, match=says) as caught:
        opened(tmp_path)
    assert caught.value.remedy


def test_odd_entries_cost_their_frame(tmp_path: Path) -> None:
    folder = writer.Phone(POSES).write(tmp_path, colmap=False) / "iphone"
    content: dict[str, Any] = writer.Phone(POSES).json()
    content["frame_000001"]["intrinsic"] = [[300, 0, 900], [0, 300, 120], [0, 0, 1]]
    content["frame_000002"]["aligned_pose"] = [[1, 2], "x"]
    content["frame_000003"]["aligned_pose"] = np.full((4, 4), -np.inf).tolist()
    content["../../etc"] = content["frame_000000"]
    content["frame_000009"] = "nothing"
    content["frame_000007"] = content["frame_000000"] | {"timestamp": None}
    content["frame_000000"]["timestamp"] = 10**400  # JSON has whole numbers that no float holds
    writer.write_json(folder / "pose_intrinsic_imu.json", content)
    scene = opened(tmp_path)
    assert [(f.id, f.timestamp_s) for f in scene.frames] == [("frame_000000", None)]
    assert reasons(scene) == {
        "intrinsic_invalid": ["frame_000001"],
        "pose_invalid": ["frame_000002", "frame_000003"],
        "name_unknown": ["../../etc"],
        "pose_missing": ["frame_000009"],
        "depth_missing": ["frame_000007"],
        "video_short": [""],
        "file_missing": [""],
    }


def test_digest_follows_the_files(tmp_path: Path) -> None:
    folder = writer.Phone(POSES).write(tmp_path) / "iphone"
    first = opened(tmp_path).source_digest
    assert opened(tmp_path).source_digest == first
    with (folder / "rgb.mkv").open("ab") as file:
        file.write(b"\x00")
    assert opened(tmp_path).source_digest != first


# -- real captures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scene_id", "count"), [("7c9be0a21f", 60), ("e41d5f9b03", 11)])
def test_real_captures(captures: Path, scene_id: str, count: int) -> None:
    found = refs(captures)
    assert {"7c9be0a21f/iphone", "e41d5f9b03/iphone"} <= set(found)
    with LOADER.open(found[f"{scene_id}/iphone"]) as scene:
        assert (len(scene.frames), scene.total_frames, scene.issues) == (count, count, [])
        labels = [o.label for o in scene.objects]
        assert {"table", "chair", "cup"} <= set(labels)
        assert not {"wall", "floor"} & set(labels)
        for item in scene.objects:
            assert item.points_m is not None
            assert contains(item.box, item.points_m, 0.05).mean() > 0.95
        frames = scene.frames[::5]
        vertices, faces = read_ply(found[f"{scene_id}/iphone"].path.parent / "scans/mesh_aligned_0.05.ply")
        mesh = MeshDepth(vertices, faces)
        depths = []
        for frame in frames[:6]:
            depth, rendered = frame.depth_m(), mesh.render(frame.depth_camera, frame.world_from_camera)
            known = (depth > 0) & (rendered > 0)
            assert known.mean() > 0.3
            assert np.median(np.abs(depth - rendered)[known]) < 0.02
            assert frame.color().shape == (frame.camera.height, frame.camera.width, 3)
            assert scene.up_world is not None
            assert (scene.up_world @ frame.world_from_camera[:3, :3])[1] < -0.5
            depths.append(depth)
        # Depth of one view, moved by the poses, against depth of the next.
        a, b = frames[0], frames[1]
        v, u = np.nonzero(depths[0])
        rays = np.stack([(u - a.depth_camera.cx) / a.depth_camera.fx, (v - a.depth_camera.cy) / a.depth_camera.fy], 1)
        cloud = np.concatenate([rays, np.ones((len(u), 1))], 1) * depths[0][v, u, None]
        world = cloud @ a.world_from_camera[:3, :3].T + a.world_from_camera[:3, 3]
        x, y, z = ((world - b.world_from_camera[:3, 3]) @ b.world_from_camera[:3, :3]).T
        column = np.rint(b.depth_camera.fx * x / z + b.depth_camera.cx).astype(int)
        row = np.rint(b.depth_camera.fy * y / z + b.depth_camera.cy).astype(int)
        seen = (z > 0) & (column >= 0) & (column < b.depth_camera.width) & (row >= 0) & (row < b.depth_camera.height)
        other = depths[1][row[seen], column[seen]]
        relative = np.abs(other - z[seen])[other > 0] / other[other > 0]
        assert len(relative) > 3000
        assert np.median(relative) < 0.02


def test_real_aligned_poses_equal_colmap(captures: Path) -> None:
    ref = refs(captures)["7c9be0a21f/iphone"]
    content = json.loads((ref.path / "pose_intrinsic_imu.json").read_text())
    lines = [line for line in (ref.path / "colmap/images.txt").read_text().splitlines() if line.endswith(".jpg")]
    assert len(lines) == 12
    frames = {frame.id: frame for frame in LOADER.open(ref).frames}
    for line in lines:
        key = line.split()[-1].removesuffix(".jpg")
        np.testing.assert_allclose(frames[key].world_from_camera, content[key]["aligned_pose"], atol=1e-6)
        number, *values = line.split()[:8]
        theirs = np.array(values, float)
        again = np.array(writer.colmap_line(int(number), key, frames[key].world_from_camera).split()[1:8], float)
        # A quaternion and its negative are one rotation.
        sign = np.sign(theirs[:4] @ again[:4])
        np.testing.assert_allclose(again * np.array([sign] * 4 + [1] * 3), theirs, atol=1e-6)
