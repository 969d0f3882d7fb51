"""Hypersim: trajectories written of the room after its documentation, the sample, and hostile HDF5 files."""

from __future__ import annotations

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
from vgbench_gen.core.errors import FormatError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.health import compute_normals, summarise_health
from vgbench_gen.scenes.posed.cameras import split_uv_matrix
from vgbench_gen.scenes.posed.hypersim import _read_scene, read_array
from vgbench_gen.scenes.readings import Reading, measure_ray_lengths

h5py = pytest.importorskip("h5py", reason="the extra `recordings` is not installed")
GL = np.diag([1.0, -1.0, -1.0])
UNIT = 0.0254  # meters in a unit of the scene
TILT = Rotation.from_euler("xyz", (-2.5, 1.5, 0.5), degrees=True).as_matrix()  # of the frame against the image plane
NUMBERS = (2, 5, 11, 12, 30, 31, 40)
SIZE = (128, 96)


@pytest.fixture(scope="module")
def room() -> RoomScene:
    made = make_room(frames=len(NUMBERS), width=SIZE[0], height=SIZE[1])
    for frame in made.frames:  # depth has the size of color here
        frame.depth_camera = frame.camera
    return made


def put(path: Path, values: Any, **more: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.create_dataset("dataset", data=values, **more)


def camera_from_uv(room: RoomScene) -> FloatArray:
    """M of the room's camera behind a tilted plane; a multiple of it says the same."""
    width, height = SIZE
    pixel_from_uv = [[width / 2, 0, width / 2 - 0.5], [0, -height / 2, height / 2 - 0.5], [0, 0, 1]]
    return np.asarray(1.7 * TILT @ GL @ np.linalg.inv(room.frames[0].camera.K) @ pixel_from_uv)


def write(root: Path, room: RoomScene, camera: str = "cam_03", name: str = "ai_012_007") -> Path:
    """One trajectory of a scene; poses of every number up to 40, pictures of some."""
    scene = root / name
    poses = np.tile(np.eye(4), (41, 1, 1))
    poses[list(NUMBERS)] = stored_poses(room, Reading(axes="OpenGL"))
    put(scene / "_detail" / camera / "camera_keyframe_positions.hdf5", poses[:, :3, 3] / UNIT)
    put(scene / "_detail" / camera / "camera_keyframe_orientations.hdf5", poses[:, :3, :3] @ TILT.T)
    for number, frame in zip(NUMBERS, room.frames, strict=True):
        color = scene / "images" / f"scene_{camera}_final_preview" / f"frame.{number:04d}.tonemap.jpg"
        color.parent.mkdir(parents=True, exist_ok=True)
        png = cv2.imencode(".png", cv2.cvtColor(frame.color(), cv2.COLOR_RGB2BGR))[1]
        color.write_bytes(png.tobytes())  # what it is, its bytes say
        color.with_name(color.name.replace("tonemap", "color")).write_bytes(b"not this one")
        depth = (frame.depth_m() * measure_ray_lengths(frame.camera)).astype(np.float32)
        place = scene / "images" / f"scene_{camera}_geometry_hdf5"
        put(place / f"frame.{number:04d}.depth_meters.hdf5", depth, chunks=(24, 32), compression="gzip")
        put(place / f"frame.{number:04d}.position.hdf5", np.zeros((*depth.shape, 3), np.float16))
    (scene / "_detail" / "metadata_scene.csv").write_text(
        f"parameter_name,parameter_value\nother,1\nmeters_per_asset_unit,{UNIT}\n"
    )
    write_cameras(root / "metadata_camera_parameters.csv", name, camera_from_uv(room))
    return scene


def write_cameras(path: Path, name: str, M: FloatArray, unit: float = UNIT) -> None:
    heads = [f"M_cam_from_uv_{row}{column}" for row in range(3) for column in range(3)]
    rows = [
        ["scene_name", "camera_physical_color", "settings_units_info_meters_scale", *heads],
        ["ai_001_001", '"AColor(0, 0, 0, 0)"', "1", *map(str, [1, 0, 0, 0, 1, 0, 0, 0, -1])],
        [name, '"AColor(0, 0, 0, 0)"', str(unit), *map(repr, M.ravel().tolist())],
    ]
    path.write_text("\n".join(map(",".join, rows)) + "\n")


def test_a_trajectory_is_the_room(tmp_path: Path, room: RoomScene) -> None:
    write(tmp_path, room)
    (ref,) = discover(tmp_path)
    assert (ref.scene_id, ref.variant) == ("ai_012_007/cam_03", "hypersim")
    with open_only(tmp_path) as scene:
        assert_frames(scene.frames, room, range(len(NUMBERS)), depth_step_m=1e-5)
        assert [frame.id for frame in scene.frames] == [f"frame.{number:04d}" for number in NUMBERS]
        assert (scene.total_frames, scene.depth_kind, scene.licence) == (7, "laser", "cc-by-sa-3.0")
        assert not scene.issues
        np.testing.assert_array_equal(scene.up_world, [0, 0, 1])
        health = summarise_health(scene)
        assert health.ok
        assert health.agree > 0.8


@pytest.mark.parametrize("above", [0, 1, 2])
def test_the_table_of_cameras_lies_beside_or_above(tmp_path: Path, room: RoomScene, above: int) -> None:
    scene = write(tmp_path / "scenes", room)
    table = tmp_path / "scenes" / "metadata_camera_parameters.csv"
    table.rename((scene, scene.parent, scene.parent.parent)[above] / table.name)
    (scene / "_detail" / "metadata_scene.csv").unlink()  # the unit stands in that table as well
    with open_only(tmp_path) as opened:
        assert_frames(opened.frames, room, range(len(NUMBERS)), depth_step_m=1e-5)


def test_each_trajectory_is_a_recording(tmp_path: Path, room: RoomScene) -> None:
    write(tmp_path, room)
    write(tmp_path, room, "cam_00")
    assert [ref.scene_id for ref in discover(tmp_path)] == ["ai_012_007/cam_00", "ai_012_007/cam_03"]


def test_without_a_table_the_plain_camera_is_measured(tmp_path: Path, room: RoomScene) -> None:
    write(tmp_path, room)
    (tmp_path / "metadata_camera_parameters.csv").unlink()
    with open_only(tmp_path) as scene:
        camera = scene.frames[0].camera
        np.testing.assert_allclose(camera.K[:2], np.array([[110.851252, 0, 63.5], [0, 110.851252, 47.5]]), atol=1e-5)
        assert [issue.reason for issue in scene.issues] == ["camera_assumed"]


def test_unknown_depth_is_nought(tmp_path: Path, room: RoomScene) -> None:
    scene = write(tmp_path, room)
    values = np.full(SIZE[::-1], 3, np.float16)
    values[0, :3] = np.nan, np.inf, -1
    put(scene / "images" / "scene_cam_03_geometry_hdf5" / "frame.0005.depth_meters.hdf5", values)
    with open_only(tmp_path) as opened:
        depth = opened.frames[1].depth_m()
        assert not depth[0, :3].any()
        assert np.count_nonzero(depth) == depth.size - 3


def test_a_frame_without_depth_or_pose_costs_itself(tmp_path: Path, room: RoomScene) -> None:
    scene = write(tmp_path, room)
    (scene / "images" / "scene_cam_03_geometry_hdf5" / "frame.0005.depth_meters.hdf5").unlink()
    previews = scene / "images" / "scene_cam_03_final_preview"
    (previews / "frame.0041.tonemap.jpg").write_bytes((previews / "frame.0040.tonemap.jpg").read_bytes())
    depths = scene / "images" / "scene_cam_03_geometry_hdf5"
    (depths / "frame.0041.depth_meters.hdf5").write_bytes((depths / "frame.0040.depth_meters.hdf5").read_bytes())
    (previews / "frame.x.tonemap.jpg").write_bytes((previews / "frame.0040.tonemap.jpg").read_bytes())
    with open_only(tmp_path) as opened:
        assert_frames(opened.frames, room, (0, 2, 3, 4, 5, 6), depth_step_m=1e-5)
        assert opened.total_frames == 9
        assert [issue.frame_id for issue in opened.issues] == ["frame.0005", "frame.0041", "frame.x"]


def put_linked(path: Path, make: Callable[[Any, Path], None]) -> None:
    """A file whose numbers stand in another file."""
    put(path.parent / "other.hdf5", np.full(SIZE[::-1], 2, np.float32))
    path.unlink()
    with h5py.File(path, "w") as file:
        make(file, path.parent / "other.hdf5")


def make_virtual(file: Any, other: Path) -> None:
    layout = h5py.VirtualLayout(shape=SIZE[::-1], dtype="f4")
    layout[:] = h5py.VirtualSource(str(other), "dataset", shape=SIZE[::-1])
    file.create_virtual_dataset("dataset", layout)


def make_external_link(file: Any, other: Path) -> None:
    file["dataset"] = h5py.ExternalLink(str(other), "/dataset")


def make_external(file: Any, other: Path) -> None:
    file.create_dataset("dataset", SIZE[::-1], "f4", external=[(str(other), 0, h5py.h5f.UNLIMITED)])


def claim(path: Path, **more: Any) -> None:
    path.unlink()
    with h5py.File(path, "w") as file:
        file.create_dataset("dataset", dtype="f4", **more)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda path: path.write_bytes(b"no HDF5 at all"), "no readable HDF5"),
        (lambda path: path.write_bytes(path.read_bytes()[:3000]), "HDF5|array"),
        (lambda path: put(path, np.zeros((96, 127), np.float32)), "an array"),
        (lambda path: put(path, np.zeros((96, 128, 1), np.float32)), "an array"),
        (lambda path: put(path, np.zeros((96, 128), "S4")), "numbers"),
        (lambda path: put(path, [[b"x"] * 128] * 96, dtype=h5py.special_dtype(vlen=bytes)), "numbers"),
        (lambda path: claim(path, shape=(2_000_000, 1_000_000), chunks=(1000, 1000)), "numbers"),
        (lambda path: claim(path, shape=SIZE[::-1], maxshape=(None, None), chunks=(16_000, 16_000)), "numbers"),
        (lambda path: put_linked(path, make_virtual), "of its own"),
        (lambda path: put_linked(path, make_external_link), "of its own"),
        (lambda path: put_linked(path, make_external), "of its own"),
        (lambda path: put_linked(path, lambda file, other: file.create_group("dataset")), "of its own"),
        (lambda path: put_linked(path, lambda file, other: None), "of its own"),
    ],
)
def test_a_hostile_depth_file_costs_its_frame(
    tmp_path: Path, room: RoomScene, spoil: Callable[[Path], Any], why: str
) -> None:
    scene = write(tmp_path, room)
    spoil(scene / "images" / "scene_cam_03_geometry_hdf5" / "frame.0005.depth_meters.hdf5")
    with open_only(tmp_path) as opened:
        with pytest.raises(Exception, match=why):
            opened.frames[1].depth_m()
        assert opened.frames[2].depth_m().all()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda scene: put(positions(scene), np.zeros((41, 4))), "n x 3"),
        (lambda scene: put(orientations(scene), np.zeros((40, 3, 3))), "41 x 3 x 3"),
        (lambda scene: orientations(scene).write_bytes(b""), "no readable HDF5|bytes"),
        (lambda scene: link_out(positions(scene)), "a link or path to"),
        (lambda scene: remove(scene / "images" / "scene_cam_03_geometry_hdf5"), r"no frame.\*.depth_meters.hdf5"),
        (lambda scene: spoil_depths(scene), "nothing sound"),
        (lambda scene: write_table(scene, np.diag([1.0, np.inf, -1.0])), "rays"),
        (lambda scene: write_table(scene, np.diag([1.0, 1.0, 1.0])), "rays"),
        (lambda scene: write_table(scene, np.array([[0.5, 0.1, 0], [0, 0.4, 0], [0, 0, -1.0]])), "skewed"),
        (lambda scene: write_table(scene, np.diag([1e-4, 1e-4, -1.0])), "focal"),
        (lambda scene: (scene / "_detail" / "metadata_scene.csv").write_text("a,b\n"), "no column parameter_name"),
        (lambda scene: state_unit(scene, "-1"), "meters per unit"),
        (lambda scene: state_unit(scene, "nan"), "meters per unit"),
        (lambda scene: state_unit(scene, "inch"), "numbers"),
    ],
)
def test_a_scene_that_is_none_is_refused(
    tmp_path: Path, room: RoomScene, spoil: Callable[[Path], Any], why: str
) -> None:
    scene = write(tmp_path, room)
    spoil(scene)
    with pytest.raises(FormatError, match=why):
        open_only(tmp_path)


def positions(scene: Path) -> Path:
    return scene / "_detail" / "cam_03" / "camera_keyframe_positions.hdf5"


def orientations(scene: Path) -> Path:
    return scene / "_detail" / "cam_03" / "camera_keyframe_orientations.hdf5"


def link_out(path: Path) -> None:
    moved = path.parents[3] / "elsewhere.hdf5"
    path.rename(moved)
    path.symlink_to(moved)


def remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def spoil_depths(scene: Path) -> None:
    for path in (scene / "images" / "scene_cam_03_geometry_hdf5").glob("*.depth_meters.hdf5"):
        path.write_bytes(b"no HDF5 at all")


def write_table(scene: Path, M: FloatArray) -> None:
    write_cameras(scene.parent / "metadata_camera_parameters.csv", scene.name, M)


def state_unit(scene: Path, unit: str) -> None:
    text = f"parameter_name,parameter_value\nmeters_per_asset_unit,{unit}\n"
    (scene / "_detail" / "metadata_scene.csv").write_text(text)


def test_the_sample_has_no_color(recordings: Path) -> None:
    with pytest.raises(SceneError, match=r"final_preview: found no frame.\*.tonemap.jpg"):
        open_only(recordings / "real" / "hypersim")


def test_the_camera_of_the_sample_is_level(recordings: Path) -> None:
    """Its one depth frame: by its own matrix and along the ray, surfaces are level and upright; else they are not."""
    scene, size = recordings / "real" / "hypersim" / "ai_037_002", (1024, 768)
    M, unit = _read_scene(scene, size, [])
    assert unit == pytest.approx(0.01)
    path = scene / "images" / "scene_cam_00_geometry_hdf5" / "frame.0000.depth_meters.hdf5"
    depth = read_array(path, size[::-1]).astype(np.float32)
    frame = read_array(scene / "_detail" / "cam_00" / "camera_keyframe_orientations.hdf5", (100, 3, 3))[0]

    def level(matrix: FloatArray, along_ray: bool) -> float:
        """The share of normals within 2 degrees of the vertical."""
        intrinsics, rotation = split_uv_matrix(matrix, size, "the test")
        camera = intrinsics.make_lens(size, 0.0, "the test").camera
        z = depth / measure_ray_lengths(camera) if along_ray else depth
        normals = compute_normals(camera, z) @ (frame @ rotation @ GL).T
        return float((np.abs(normals[:, 2]) > np.cos(np.radians(2))).mean())

    slope = np.tan(np.radians(30))
    plain = np.diag([slope, slope * 0.75, -1.0])
    assert level(M, along_ray=True) > 0.1
    assert max(level(M, along_ray=False), level(plain, along_ray=True)) < 0.02
    assert split_uv_matrix(M, size, "the test")[1] == pytest.approx(
        frame.T @ Rotation.from_euler("x", 90, degrees=True).as_matrix(), abs=1e-6
    )
