"""Dense workspaces of COLMAP: written of the room, models by COLMAP itself; the sample; and broken ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.scene_factory import RoomScene
from tests.scenes.posed_compare import assert_frames, open_only
from tests.scenes.posed_writer import make_room, stored_poses
from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import Camera
from vgbench_gen.scenes import discover
from vgbench_gen.scenes._lens import Lens, Undistorter
from vgbench_gen.scenes.health import summarise_health
from vgbench_gen.scenes.readings import Reading

W2C = Reading("world to camera")
OWN_SCALE = 7.3  # of the model: units in a meter
NAMES = [f"{side}/shot {number:02d}.v1.jpg" for number in (3, 4, 11) for side in ("left", "right")]
ORDER = sorted(range(6), key=NAMES.__getitem__)


@pytest.fixture(scope="module")
def room() -> RoomScene:
    return make_room(frames=6, width=144, height=108)


def params(camera: Camera) -> list[float]:
    return [camera.fx, camera.fy, camera.cx + 0.5, camera.cy + 0.5]


def write_model(folder: Path, room: RoomScene, binary: bool) -> None:
    """A sparse model by COLMAP's own writer: two cameras with ids of their own, images in no order, observations."""
    pycolmap = pytest.importorskip("pycolmap")
    camera, model = room.frames[0].camera, pycolmap.Reconstruction()
    for camera_id in (17, 4):
        made = pycolmap.Camera(
            model="PINHOLE", width=camera.width, height=camera.height, params=params(camera), camera_id=camera_id
        )
        model.add_camera_with_trivial_rig(made)
    poses = stored_poses(room, W2C)
    for i in (4, 1, 0, 5, 3, 2):
        points = pycolmap.Point2DList([pycolmap.Point2D(np.array([10.0 + k, 20.0])) for k in range(i)])
        image = pycolmap.Image(name=NAMES[i], points2D=points, camera_id=(17, 4)[i % 2], image_id=40 + 3 * i)
        rotation = pycolmap.Rotation3d(Rotation.from_matrix(poses[i, :3, :3]).as_quat())
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d(rotation, poses[i, :3, 3] * OWN_SCALE))
    folder.mkdir(parents=True)
    (model.write_binary if binary else model.write_text)(str(folder))


def write_files(folder: Path, room: RoomScene) -> None:
    for name, frame in zip(NAMES, room.frames, strict=True):
        color, depth = folder / "images" / name, folder / "stereo" / "depth_maps" / f"{name}.geometric.bin"
        for path in (color, depth):
            path.parent.mkdir(parents=True, exist_ok=True)
        png = cv2.imencode(".png", cv2.cvtColor(frame.color(), cv2.COLOR_RGB2BGR))[1]
        color.write_bytes(png.tobytes())  # what it is, its bytes say
        values = (frame.depth_m() * OWN_SCALE).astype("<f4")
        depth.write_bytes(b"%d&%d&1&" % values.shape[::-1] + values.tobytes())


def write(folder: Path, room: RoomScene, binary: bool = True, place: str = "sparse") -> Path:
    write_model(folder / place, room, binary)
    write_files(folder, room)
    return folder


def find_scale(room: RoomScene) -> float:
    """Meters of the room times this give a median of 2 in the first depth map by name."""
    return 2.0 / float(np.median(room.frames[ORDER[0]].depth_m()))


@pytest.mark.parametrize(("binary", "place"), [(True, "sparse"), (False, "sparse/0"), (False, "sparse")])
def test_a_workspace_is_the_room(tmp_path: Path, room: RoomScene, binary: bool, place: str) -> None:
    write(tmp_path / "hall" / "dense" / "0", room, binary, place)
    (ref,) = discover(tmp_path)
    assert (ref.scene_id.split("/")[-3:], ref.variant) == (["hall", "dense", "0"], "colmap")
    with open_only(tmp_path) as scene:
        assert_frames(scene.frames, room, ORDER, depth_step_m=2e-5, scale=find_scale(room))
        assert [frame.id for frame in scene.frames] == sorted(NAMES)
        assert not scene.metric
        assert scene.up_world is None
        assert scene.quaternions == "wxyz"
        assert not scene.issues
        health = summarise_health(scene)
        assert health.ok
        assert health.agree > health.agree_next + 0.2


def test_a_depth_map_is_what_colmap_writes(tmp_path: Path, room: RoomScene) -> None:
    """The bytes as `colmap/colmap`, scripts/python/read_write_dense.py, reads them: column by column, axes turned."""
    write(tmp_path, room)
    path = tmp_path / "stereo" / "depth_maps" / f"{NAMES[0]}.geometric.bin"
    _, _, _, data = path.read_bytes().split(b"&", 3)
    frame = room.frames[0]
    shape = (frame.depth_camera.width, frame.depth_camera.height, 1)
    array = np.transpose(np.frombuffer(data, np.float32).reshape(shape, order="F"), (1, 0, 2)).squeeze()
    np.testing.assert_allclose(array / OWN_SCALE, frame.depth_m(), rtol=1e-6)


def test_pictures_smaller_than_the_model(tmp_path: Path, room: RoomScene) -> None:
    write(tmp_path, room)
    for name in NAMES:
        path = tmp_path / "images" / name
        small = np.ascontiguousarray(room.frames[0].color()[::2, ::2])
        path.write_bytes(cv2.imencode(".png", small)[1].tobytes())
    with open_only(tmp_path) as scene:
        (frame,) = scene.frames[:1]
        assert frame.camera.size == (72, 54)
        assert frame.camera.fx == pytest.approx(room.frames[0].camera.fx / 2)
        assert frame.color().shape == (54, 72, 3)


def test_distortion_is_taken_out(tmp_path: Path, room: RoomScene) -> None:
    write(tmp_path, room, binary=False)
    c = room.frames[0].camera
    lines = [
        f"{camera_id} RADIAL {c.width} {c.height} {c.fx} {c.cx + 0.5} {c.cy + 0.5} -0.2 0.03" for camera_id in (17, 4)
    ]
    (tmp_path / "sparse" / "cameras.txt").write_text("\n".join(lines))
    lens = Lens("opencv", c.width, c.height, c.fx, c.fx, c.cx, c.cy, (-0.2, 0.03, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    undistorter = Undistorter(lens, "the test")
    with open_only(tmp_path) as scene:
        frame, wanted = scene.frames[0], room.frames[ORDER[0]]
        np.testing.assert_allclose(frame.camera.K, undistorter.camera.K)
        np.testing.assert_array_equal(frame.color(), undistorter.color(wanted.color()))
        expected = undistorter.nearest(wanted.depth_m() * find_scale(room))
        np.testing.assert_allclose(frame.depth_m(), expected, rtol=1e-5)


def test_unknown_depth_is_nought(tmp_path: Path, room: RoomScene) -> None:
    write(tmp_path, room)
    path = tmp_path / "stereo" / "depth_maps" / f"{NAMES[2]}.geometric.bin"
    head, values = b"72&54&1&", np.full((54, 72), 3, "<f4")
    values[0, :4] = 0, -1, np.nan, np.inf
    path.write_bytes(head + values.tobytes())
    with open_only(tmp_path) as scene:
        depth = next(frame for frame in scene.frames if frame.id == NAMES[2]).depth_m()
        assert np.count_nonzero(depth) == depth.size - 4
        assert not depth[0, :4].any()


def test_the_first_map_may_be_empty(tmp_path: Path, room: RoomScene) -> None:
    write(tmp_path, room)
    first = tmp_path / "stereo" / "depth_maps" / f"{NAMES[ORDER[0]]}.geometric.bin"
    first.write_bytes(b"72&54&1&" + bytes(4 * 72 * 54))
    with open_only(tmp_path) as scene:
        assert float(np.median(scene.frames[1].depth_m())) == pytest.approx(2.0, rel=1e-5)
    for name in NAMES:
        path = tmp_path / "stereo" / "depth_maps" / f"{name}.geometric.bin"
        path.write_bytes(first.read_bytes())
    with pytest.raises(SceneError, match="no depth in the first 6 frames"):
        open_only(tmp_path)


def put(name: str, data: bytes) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_bytes(data)


def claim(path: Path) -> None:
    """A file with a hole, as long as its header says, that would fill the memory."""
    head = b"90000&90000&1&"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + 4 * 90000 * 90000)


DEPTH, COLOR = f"stereo/depth_maps/{NAMES[3]}.geometric.bin", f"images/{NAMES[3]}"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (put(DEPTH, b"999999&999999&1&" + bytes(100)), "bytes that begin"),
        (put(DEPTH, b"72&54&1&" + bytes(4 * 72 * 54 - 1)), "bytes that begin"),
        (put(DEPTH, b"72&54&1&" + bytes(4 * 72 * 54 + 4)), "bytes that begin"),
        (lambda folder: claim(folder / DEPTH), "90000x90000 pixels"),
        (put(DEPTH, b"72&54&3&" + bytes(12 * 72 * 54)), "bytes that begin"),
        (put(DEPTH, b"54&72&1&" + bytes(4 * 72 * 54)), "the shape of"),
        (put(DEPTH, b"no map"), "bytes that begin"),
        (lambda folder: (folder / DEPTH).unlink(), "no readable file"),
        (lambda folder: (folder / COLOR).unlink(), "No such file"),
    ],
)
def test_a_damaged_frame_costs_itself(tmp_path: Path, room: RoomScene, spoil: Callable[[Path], Any], why: str) -> None:
    write(tmp_path, room)
    spoil(tmp_path)
    with open_only(tmp_path) as scene:
        assert [frame.id for frame in scene.frames] == sorted(name for name in NAMES if name != NAMES[3])
        assert scene.total_frames == 6
        (issue,) = scene.issues
        assert issue.frame_id == NAMES[3]
        assert why in issue.detail


def test_a_map_that_changes_is_noticed(tmp_path: Path, room: RoomScene) -> None:
    write(tmp_path, room)
    with open_only(tmp_path) as scene:
        path = tmp_path / "stereo" / "depth_maps" / f"{scene.frames[3].id}.geometric.bin"
        path.write_bytes(b"54&72&1&" + bytes(4 * 72 * 54))
        with pytest.raises(Exception, match="54x72 pixels; expected 72x54"):
            scene.frames[3].depth_m()


def image(name: bytes, numbers: tuple[float, ...] = (1, 0, 0, 0, 0, 0, 0), camera: int = 4, points: int = 0) -> bytes:
    return struct.pack("<I7dI", 9, *numbers, camera) + name + b"\0" + struct.pack("<Q", points)


def rewrite(change: Callable[[bytes], bytes], name: str = "images.bin") -> Callable[[Path], Any]:
    return lambda folder: (folder / "sparse" / name).write_bytes(change((folder / "sparse" / name).read_bytes()))


def one_more(entry: bytes) -> Callable[[Path], Any]:
    """One image more at the end of the model."""
    return rewrite(lambda data: struct.pack("<Q", 7) + data[8:] + entry)


@pytest.mark.parametrize(
    ("spoil", "why", "left", "total"),
    [
        (one_more(image(b"../../hidden.jpg")), "a link or path to", 6, 7),
        (one_more(image(b"a\nb.jpg")), "the file name", 6, 7),
        (one_more(image(b"x.jpg", (2, 0, 0, 0, 0, 0, 0))), "quaternion of length 2", 6, 7),
        (one_more(image(b"x.jpg", (1, 0, 0, 0, np.nan, 0, 0))), "x.jpg", 6, 7),
        (one_more(image(b"x.jpg", camera=5)), "camera 5", 6, 7),
        (one_more(image(NAMES[0].encode())), "more than once", 6, 7),
        (one_more(image(b"x.jpg", points=1 << 60)), "observations", 6, 7),
        (one_more(image(b"n" * 5000)), "without an end", 6, 6),
        (rewrite(lambda data: data[:-10]), "an end after|observations", 6, 6),
        (rewrite(lambda data: data[: len(data) // 2]), "an end after|observations", 3, 3),
    ],
)
def test_a_damaged_image_costs_itself(
    tmp_path: Path, room: RoomScene, spoil: Callable[[Path], Any], why: str, left: int, total: int
) -> None:
    write(tmp_path, room)
    spoil(tmp_path)
    with open_only(tmp_path) as scene:
        assert (len(scene.frames), scene.total_frames) == (left, total)
        assert any(part in issue.detail for issue in scene.issues for part in why.split("|"))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (rewrite(lambda data: struct.pack("<Q", 1 << 40) + data[8:]), "a count of"),
        (rewrite(lambda data: struct.pack("<Q", 1 << 40) + data[8:], "cameras.bin"), "a count of"),
        (rewrite(lambda data: struct.pack("<QIi", 1, 17, 99) + data[16:], "cameras.bin"), "camera model '99'"),
        (rewrite(lambda data: struct.pack("<QIi", 1, 17, 7) + data[16:] + bytes(99), "cameras.bin"), "'FOV'"),
        (rewrite(lambda data: data[:40], "cameras.bin"), "an end after"),
        (lambda folder: (folder / "sparse" / "cameras.bin").unlink(), "no readable file"),
        (lambda folder: (folder / "sparse" / "images.bin").unlink(), "no images.bin or images.txt"),
    ],
)
def test_a_model_that_is_none_costs_the_scene(
    tmp_path: Path, room: RoomScene, spoil: Callable[[Path], Any], why: str
) -> None:
    write(tmp_path, room)
    spoil(tmp_path)
    with pytest.raises(SceneError, match=why):
        open_only(tmp_path)


def test_the_sample(recordings: Path) -> None:
    with open_only(recordings / "written" / "colmap_dense") as scene:
        health = summarise_health(scene)
        assert health.ok
        assert health.agree > 0.6
        assert health.agree_next < 0.2
        assert len(scene.frames) == 8
