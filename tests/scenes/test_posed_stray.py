"""Stray Scanner: the rendered room as a capture held upright, as new and old apps write it, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.scene_factory import RoomScene
from tests.scenes.posed_writer import make_room, to_quaternion_row
from tests.scenes.test_posed import check, open_one
from tests.scenes.video_writer import write_video
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import Camera
from vgbench_gen.geometry.cameras import resize_camera, rotate_camera_by_quarters, rotate_pose_by_quarters
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes.health import summarise_health
from vgbench_gen.scenes.video import SeekableVideo, Video

YUP_FROM_ROOM = make_pose(np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]), np.array([0.4, -1.1, 2.0]))
NEW = "timestamp, frame, x, y, z, qx, qy, qz, qw, fx, fy, cx, cy, distortion_center_x, distortion_center_y"
OLD = "frame, x, y, z, qx, qy, qz, qw"


@pytest.fixture(scope="module")
def room() -> RoomScene:
    return make_room()


def write_table(folder: Path, room: RoomScene, header: str = NEW, numbers: Sequence[int] = range(10)) -> list[str]:
    """Poses of the pictures that lie on their side; the intrinsics of a row are those of the room."""
    camera = lie_down(room.frames[0].camera)
    rows = [header]
    for number, frame in zip(numbers, room.frames, strict=True):
        pose = rotate_pose_by_quarters(YUP_FROM_ROOM @ frame.world_from_camera, 1)
        values = [f"{number:06d}", *(f"{value:.8f}" for value in to_quaternion_row(pose))]
        if header == NEW:
            lens = [f"{value:.6f}" for value in (camera.fx, camera.fy, camera.cx, camera.cy)]
            values = [f"{7000 + number / 60:.6f}", *values, *lens, "", ""]
        rows.append(", ".join(values))
    (folder / "odometry.csv").write_text("\n".join(rows) + "\n")
    return rows


def lie_down(camera: Camera) -> Camera:
    return rotate_camera_by_quarters(camera, 1)


def write_capture(
    root: Path, room: RoomScene, header: str = NEW, numbers: Sequence[int] = range(10), off: float = 40.0
) -> Path:
    """off: by how much the camera matrix, that of the last frame, differs in focal length."""
    folder = root / "0f3c9a71bd"
    folder.mkdir()
    write_table(folder, room, header, numbers)
    pictures = [np.rot90(frame.color()) for frame in room.frames]
    write_video(folder / "rgb.mp4", pictures, quality=0, pixels="yuv444p")
    camera = lie_down(room.frames[0].camera)
    fx, fy = camera.fx + off, camera.fy + off
    (folder / "camera_matrix.csv").write_text(f"{fx}, 0.0, {camera.cx}\n0.0, {fy}, {camera.cy}\n0.0, 0.0, 1.0")
    for number, frame in zip(numbers, room.frames, strict=True):
        depth = np.rot90(np.rint(frame.depth_m() * 1000).astype(np.uint16))
        sure = np.full(depth.shape, 1 + number % 2, np.uint8)
        for kind, picture in (("depth", depth), ("confidence", sure)):
            (folder / kind).mkdir(exist_ok=True)
            assert cv2.imwrite(str(folder / f"{kind}/{number:06d}.png"), np.ascontiguousarray(picture))
    return folder


def test_a_capture_has_the_truth_of_the_room(tmp_path: Path, room: RoomScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held upright: pixels lie as the sensor's, and are turned with depth, K and pose. Opening decodes nothing."""
    write_capture(tmp_path, room)
    with monkeypatch.context() as patch:
        for kind in (SeekableVideo, Video):
            patch.setattr(kind, "_bgr", lambda *given: pytest.fail("decoded"))
        patch.setattr(cv2, "imdecode", lambda *given: pytest.fail("decoded"))
        scene = open_one(tmp_path)
    assert summarise_health(scene).verdict == "ok"
    assert [(frame.id, frame.timestamp_s) for frame in scene.frames[:2]] == [("000000", 7000), ("000001", 7000.016667)]
    for index in (7, 2, 9, 0):
        assert np.abs(scene.frames[index].color().astype(int) - room.frames[index].color()).mean() < 2
    check(scene, room, YUP_FROM_ROOM)


def test_an_old_capture_has_the_truth_of_the_room(tmp_path: Path, room: RoomScene) -> None:
    """No times, no intrinsics in rows, depth as NumPy arrays, no confidence."""
    folder = write_capture(tmp_path, room, OLD, off=0)
    for path in sorted((folder / "depth").iterdir()):
        np.save(path.with_suffix(".npy"), np.asarray(cv2.imread(str(path), cv2.IMREAD_UNCHANGED)))
        path.unlink()
        (folder / "confidence" / path.name).unlink()
    scene = open_one(tmp_path)
    assert scene.frames[0].timestamp_s is None
    check(scene, room, YUP_FROM_ROOM)


def test_a_row_is_a_frame_of_the_video(tmp_path: Path, room: RoomScene) -> None:
    """Where the numbers have gaps, but there are as many rows as frames, the row counts for color, its number for
    depth."""
    write_capture(tmp_path, room, numbers=range(4, 34, 3))
    scene = open_one(tmp_path)
    assert scene.frames[1].id == "000007"
    check(scene, room, YUP_FROM_ROOM)


def test_a_thinned_table_keeps_the_numbers_of_frames(tmp_path: Path, room: RoomScene) -> None:
    folder = write_capture(tmp_path, room)
    rows = (folder / "odometry.csv").read_text().splitlines()
    (folder / "odometry.csv").write_text("\n".join([rows[0], *rows[2::2]]))
    scene = open_one(tmp_path)
    assert [frame.id for frame in scene.frames] == [f"{number:06d}" for number in (1, 3, 5, 7, 9)]
    for frame, truth in zip(scene.frames, room.frames[1::2], strict=True):
        assert np.abs(frame.color().astype(int) - truth.color()).mean() < 2
        np.testing.assert_allclose(frame.depth_m(), truth.depth_m(), atol=0.001)
    scene.close()


def test_a_frame_costs_only_itself(tmp_path: Path, room: RoomScene) -> None:
    """Without numbers in the table, rows that are lost shift nothing."""
    folder = write_capture(tmp_path, room, "x, y, z, qx, qy, qz, qw", off=0)
    rows = [", ".join(row.split(", ")[1:]) for row in (folder / "odometry.csv").read_text().splitlines()[1:]]
    rows[2] = "0, 0, 0, 0.5, 0.5, 0.5, 0.9"
    rows[3] = "1.0, nothing"
    (folder / "odometry.csv").write_text("x, y, z, qx, qy, qz, qw\n" + "\n".join(rows))
    (folder / "depth/000005.png").unlink()
    cv2.imwrite(str(folder / "confidence/000006.png"), np.full((9, 9), 2, np.uint8))
    (folder / "depth/000007.png").write_bytes((folder / "depth/000007.png").read_bytes()[:200])
    scene = open_one(tmp_path)
    assert sorted(issue.reason for issue in scene.issues) == ["bad_pose", "incomplete", "pose_line_unusable"]
    frames = {frame.id: frame for frame in scene.frames}
    assert list(frames) == [f"{number:06d}" for number in (0, 1, 4, 6, 7, 8, 9)]
    assert np.abs(frames["000008"].color().astype(int) - room.frames[8].color()).mean() < 2
    np.testing.assert_allclose(frames["000008"].depth_m(), room.frames[8].depth_m(), atol=0.001)
    for number in ("000006", "000007"):
        with pytest.raises(FrameError, match=number):
            frames[number].depth_m()
    scene.close()


def test_unsure_depth_is_unknown(tmp_path: Path, room: RoomScene) -> None:
    folder = write_capture(tmp_path, room)
    sure = np.full((80, 60), 2, np.uint8)
    sure[:5], sure[5:10] = 0, 1
    cv2.imwrite(str(folder / "confidence/000004.png"), sure)
    with open_one(tmp_path) as scene:
        known = np.rot90(scene.frames[4].depth_m() > 0)
        assert not known[:5].any()
        assert known[5:].all()


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda folder: (folder / "rgb.mp4").write_bytes(b"#EXTM3U\nfile:///etc/passwd\n"), "a file that begins with"),
        (lambda folder: (folder / "rgb.mp4").write_bytes((folder / "rgb.mp4").read_bytes()[:900]), "cannot open"),
        (lambda folder: (folder / "odometry.csv").write_text(NEW + "\n"), "0 rows"),
        (lambda folder: (folder / "odometry.csv").write_text("a, b\n1, 2\n"), "2 numbers"),
        (lambda folder: (folder / "odometry.csv").write_bytes(b"," * 70_000_000), "at most 64000000"),
        (lambda folder: [path.unlink() for path in (folder / "depth").iterdir()], "no picture of depth"),
        (lambda folder: (folder / "camera_matrix.csv").write_text("1 2 3"), "3 numbers"),
    ],
)
def test_what_a_capture_lacks_is_said(tmp_path: Path, room: RoomScene, break_it: object, words: str) -> None:
    folder = write_capture(tmp_path, room)
    break_it(folder)  # type: ignore[operator]
    with pytest.raises(SceneError, match=words):
        open_one(tmp_path)


def test_depth_of_another_shape_is_refused(tmp_path: Path, room: RoomScene) -> None:
    folder = write_capture(tmp_path, room)
    cv2.imwrite(str(folder / "depth/000000.png"), np.full((60, 80), 1000, np.uint16))
    with pytest.raises(SceneError, match="80x60 pixels; expected the shape of 120x160"):
        open_one(tmp_path)


def test_rows_beyond_the_video_and_without_intrinsics_are_left_out(tmp_path: Path, room: RoomScene) -> None:
    folder = write_capture(tmp_path, room, OLD, numbers=range(5, 15))
    rows = (folder / "odometry.csv").read_text().splitlines()
    (folder / "odometry.csv").write_text("\n".join(rows[:8]))
    with open_one(tmp_path) as scene:
        assert [frame.id for frame in scene.frames] == [f"{number:06d}" for number in range(5, 10)]
        assert all("a video of 10 frames" in issue.detail for issue in scene.issues)
    (folder / "camera_matrix.csv").unlink()
    with pytest.raises(SceneError, match="no intrinsics"):
        open_one(tmp_path)


def test_the_sample(recordings: Path) -> None:
    with open_one(recordings / "written" / "stray_scanner") as scene:
        health = summarise_health(scene)
        assert (health.verdict, len(scene.frames)) == ("ok", 8)
        camera = scene.frames[0].camera
        assert (camera.size, camera.fx) == ((1920, 1440), 1606.2)
        np.testing.assert_allclose(scene.frames[0].depth_camera.K, resize_camera(camera, 256, 192).K)
