"""Aria Digital Twin: tables written of the room, around streams of a stand-in for projectaria-tools, as nothing writes
VRS files; and the sample, by the package itself where it is installed."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.scene_factory import RoomScene, room_scene
from tests.scenes.posed_compare import assert_boxes, assert_frames, open_only
from tests.scenes.posed_writer import to_quaternion_row
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.boxes import contains
from vgbench_gen.geometry.poses import invert, make_pose, relative_pose, transform
from vgbench_gen.geometry.projection import back_project_depth, project, sample_nearest
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.posed import aria
from vgbench_gen.scenes.readings import measure_ray_lengths

SIDE = 96
UP = np.array([0.0, 1.0, 0.0])
Y_UP = make_pose(Rotation.from_euler("x", -90, degrees=True).as_matrix(), np.array([0.3, 0.1, -2.0]))
DEVICE_FROM_CAMERA = make_pose(Rotation.from_euler("xyz", (30, -10, 5), degrees=True).as_matrix(), [0.02, -0.05, 0.01])
POSE = ",".join(f"{name}_world_device" for name in ("tx", "ty", "tz", "qx", "qy", "qz", "qw"))
START_NS = 412_000_000_000  # of a clock that began with the device
Kind = Enum("Kind", "IMAGE IMU")


class FakeCalibration:
    """A pinhole lens that says it is a fisheye; sees rays up to a slope."""

    def __init__(self, side: int, focal: float, slope: float) -> None:
        self.side, self.focal, self.slope = side, focal, slope

    def get_image_size(self) -> FloatArray:
        return np.array([self.side, self.side], np.int32)

    def get_focal_lengths(self) -> FloatArray:
        return np.array([self.focal, self.focal])

    def get_transform_device_camera(self) -> Any:
        return SimpleNamespace(to_matrix=lambda: DEVICE_FROM_CAMERA)

    def project(self, ray: FloatArray) -> FloatArray | None:
        return None if np.abs(ray[:2] / ray[2]).max() > self.slope else ray[:2]


class FakeProvider:
    """Streams by id: description, times and pictures."""

    def __init__(self, streams: dict[str, tuple[str, list[int], list[Any]]], calibration: Any = None) -> None:
        self.streams, self.calibration = streams, calibration
        self.claimed = SIDE

    def get_all_streams(self) -> list[str]:
        return [*self.streams, "1202-1"]

    def get_sensor_data_type(self, stream: str) -> Kind:
        return Kind.IMAGE if stream in self.streams else Kind.IMU

    def get_image_configuration(self, stream: str) -> Any:
        width = self.streams[stream][2][0]().shape[1]
        side = self.claimed if width == SIDE else width
        return SimpleNamespace(image_width=side, image_height=side, description=self.streams[stream][0])

    def get_timestamps_ns(self, stream: str, domain: str) -> list[int]:
        assert domain == "device"
        return self.streams[stream][1]

    def get_image_data_by_index(self, stream: str, i: int) -> Any:
        made = self.streams[stream][2][i]
        return SimpleNamespace(is_valid=lambda: made is not None, to_numpy_array=made), None

    def get_device_calibration(self) -> Any:
        lenses = {"camera-rgb": self.calibration}
        return None if self.calibration is None else SimpleNamespace(get_camera_calib=lenses.get)


def make_camera(focal: float) -> Camera:
    middle = (SIDE - 1) / 2
    return Camera(np.array([[focal, 0, middle], [0, focal, middle], [0, 0, 1]]), SIDE, SIDE)


@pytest.fixture(scope="module")
def room() -> RoomScene:
    made = room_scene(seed=1, frames=6, width=SIDE, height=SIDE, world_from_room=Y_UP)
    for frame in made.frames:  # depth has the size of color, and the axis goes through the middle
        frame.camera = frame.depth_camera = make_camera(80.0)
    return made


class Twin:
    """A recording in a folder; `providers` by file name may be spoiled before it is opened."""

    def __init__(self, folder: Path, room: RoomScene) -> None:
        self.folder = folder
        times = [START_NS + 33_328_000 * i for i in range(len(room.frames))]
        colors = [frame.color for frame in room.frames]
        depths = [self._quantise(frame) for frame in room.frames]
        other = np.zeros((30, 40), np.uint16)
        self.calibration = FakeCalibration(SIDE, 80.0, 10.0)
        self.providers: dict[str, Any] = {
            # The shutter is 97 us apart from the twin's clock, as in the sample.
            "video.vrs": FakeProvider(
                {"1201-1": ("", times, [lambda: other]), "214-1": ("", [t - 97_000 for t in times], colors)},
                self.calibration,
            ),
            "depth_images.vrs": FakeProvider(
                {
                    "345-1": ("1201-1", times, [lambda: other]),
                    "345-2": ("214-1", times[:2] + times[3:], depths[:2] + depths[3:]),
                }
            ),
        }
        folder.mkdir(parents=True)
        for name in self.providers:
            (folder / name).write_bytes(b"VRS")
        self.write_poses(room, times)
        self.write_objects(room)

    @staticmethod
    def _quantise(frame: Any) -> Callable[[], Any]:
        return lambda: np.rint(frame.depth_m() * 1000).astype(np.uint16)

    def write_poses(self, room: RoomScene, times: list[int]) -> None:
        rows = [f"graph_uid,tracking_timestamp_us,utc_timestamp_ns,{POSE},gravity_x_world,quality_score"]
        for time, frame in zip(times, room.frames, strict=True):
            pose = frame.world_from_camera @ invert(DEVICE_FROM_CAMERA)
            rows.append(",".join(["f27-a", str(time // 1000), "-1", *map(repr, to_quaternion_row(pose)), "0", "1.0"]))
        rows = [rows[0], *rows[:4:-1], *rows[1:5]]  # in no order
        (self.folder / "aria_trajectory.csv").write_text(
            "\n".join([*rows, f"f27-a,{START_NS // 1000 - 33_328},-1,0,0,0,0,0,0,1,0,1", "f27-a,4124"]) + "\n"
        )

    def write_objects(self, room: RoomScene) -> None:
        """Boxes that lie beside the origin of their object, in frames of their own with y up; one that moves."""
        sizes = [
            "object_uid,timestamp[ns]," + ",".join(f"p_local_obj_{a}{e}[m]" for a in "xyz" for e in ("min", "max"))
        ]
        poses = ["object_uid,timestamp[ns],t_wo_x[m],t_wo_y[m],t_wo_z[m],q_wo_w,q_wo_x,q_wo_y,q_wo_z"]
        about: dict[str, Any] = {}
        for number, each in enumerate(room.objects):
            uid, beside = str(4885175544866890 + number), np.array([0.1, 0.2, -0.3]) * number
            axes = each.box.rotation[:, [1, 2, 0]]
            half = each.box.size_m[[1, 2, 0]] / 2
            limits = np.stack([beside - half, beside + half], axis=1)
            origin = each.box.center_m - axes @ beside
            x, y, z, w = Rotation.from_matrix(axes).as_quat().tolist()
            sizes.append(",".join([uid, "-1", *map(repr, limits.ravel().tolist())]))
            times = [-1] if number != 1 else [START_NS + 700 * i for i in range(3)]  # one that could move and does not
            poses += [",".join([uid, str(t), *map(repr, [*origin.tolist(), w, x, y, z])]) for t in times]
            about[uid] = {"instance_name": f"X_{number}", "category": each.label.upper(), "motion_type": "static"}
        for uid, word in (("77", "cup"), ("78", "shelter"), ("79", "pencil"), ("80", "person"), ("81", "door")):
            sizes += [f"{uid},-1,-0.1,0.1,0,0.2,-0.1,0.1"] * (2 if word == "person" else 1)
            tilt = "0.9,0.43589,0,0" if word == "pencil" else "1,0,0,0"
            turned = "0.99995,0,0.01,0" if word == "door" else tilt
            poses += [f"{uid},{START_NS + i},{i if word == 'cup' else 0},0,0,{(tilt, turned)[i]}" for i in range(2)]
            about[uid] = {"category": word}
        (self.folder / "3d_bounding_box.csv").write_text("\n".join(sizes) + "\n")
        (self.folder / "scene_objects.csv").write_text("\n".join(poses) + "\n")
        (self.folder / "instances.json").write_text(json.dumps(about))


@pytest.fixture
def twin(tmp_path: Path, room: RoomScene, monkeypatch: pytest.MonkeyPatch) -> Twin:
    made = Twin(tmp_path / "Apartment_release_seq7", room)
    methods = SimpleNamespace(NEAREST_NEIGHBOR="nearest", BILINEAR="linear")

    def distort(picture: Any, destination: Any, source: Any, method: str) -> Any:
        assert source is made.calibration
        assert method == ("nearest" if picture.ndim == 2 else "linear")
        middle = SIDE // 2  # nearest for a longer focal length, which is enough here
        zoom = destination.focal / source.focal
        at = np.clip(np.rint((np.arange(SIDE) - middle) / zoom).astype(int) + middle, 0, SIDE - 1)
        return picture[np.ix_(at, at)] if zoom != 1 else picture

    core = SimpleNamespace(
        data_provider=SimpleNamespace(create_vrs_data_provider=lambda path: made.providers[Path(path).name]),
        sensor_data=SimpleNamespace(SensorDataType=Kind, TimeDomain=SimpleNamespace(DEVICE_TIME="device")),
        calibration=SimpleNamespace(
            get_linear_camera_calibration=lambda w, h, focal: FakeCalibration(w, focal, 99.0),
            distort_by_calibration=distort,
        ),
        image=SimpleNamespace(InterpolationMethod=methods),
    )
    monkeypatch.setattr(aria, "need", lambda module, extra: {("projectaria_tools.core", "aria"): core}[module, extra])
    return made


def test_a_twin_is_the_room(twin: Twin, room: RoomScene) -> None:
    (ref,) = discover(twin.folder.parent)
    assert (ref.scene_id, ref.variant) == ("Apartment_release_seq7", "aria")
    with open_only(twin.folder) as scene:
        assert_frames(scene.frames, room, (0, 1, 3, 4, 5), depth_step_m=0.001)
        assert [frame.id for frame in scene.frames][:2] == ["411999903000", "412033231000"]
        assert scene.frames[0].timestamp_s == pytest.approx(411.999903)
        assert (scene.total_frames, scene.depth_kind) == (6, "laser")
        assert_boxes(scene.objects, list(room.objects), UP)
        assert scene.objects[0].instance_id == "4885175544866890"
        np.testing.assert_array_equal(scene.up_world, UP)
        (lost,) = [issue for issue in scene.issues if issue.frame_id]
        assert (lost.frame_id, lost.reason) == ("412066559000", "incomplete")
        left_out = [issue.detail for issue in scene.issues if issue.reason == "box_unusable"]
        for word, text in zip(("moves", "vertical", "not one box", "moves"), left_out, strict=True):
            assert word in text


def test_a_picture_is_cut_to_what_the_lens_sees(twin: Twin) -> None:
    twin.calibration.slope = 0.5  # the corners of the whole picture lie at 47.5 / 80
    with open_only(twin.folder) as scene:
        camera = scene.frames[0].camera
        assert 47.5 / camera.fx <= 0.5 < 47.5 / (camera.fx - 1)
        assert (camera.cx, camera.cy, camera.fy) == (47.5, 47.5, camera.fx)
        assert scene.frames[0].color().shape == (SIDE, SIDE, 3)


def test_the_wearer_may_lie_on_the_side(twin: Twin, room: RoomScene) -> None:
    """The camera of the glasses is mounted on its side: its pictures are turned upright."""
    turned = make_pose(Rotation.from_euler("z", 90, degrees=True).as_matrix(), np.zeros(3))
    text = [f"_,tracking_timestamp_us,{POSE}"]
    for i, frame in enumerate(room.frames):
        pose = frame.world_from_camera @ turned @ invert(DEVICE_FROM_CAMERA)
        time = (START_NS + 33_328_000 * i) // 1000
        text.append(",".join(["_", str(time), *map(repr, to_quaternion_row(pose))]))
    (twin.folder / "aria_trajectory.csv").write_text("\n".join(text))
    with open_only(twin.folder) as scene:
        np.testing.assert_allclose(scene.frames[0].world_from_camera, room.frames[0].world_from_camera, atol=1e-6)
        np.testing.assert_array_equal(np.rot90(scene.frames[0].color()), room.frames[0].color())


def test_what_is_closed_says_so(twin: Twin) -> None:
    with open_only(twin.folder) as scene:
        frame = scene.frames[0]
    with pytest.raises(FrameError, match="do not decode"):
        frame.color()


@pytest.mark.parametrize(
    "picture",
    [
        None,
        lambda: np.zeros((SIDE, SIDE), np.uint8),
        lambda: np.zeros((9, 9, 3), np.uint8),
        lambda: np.zeros((SIDE, SIDE, 3), np.uint16),
    ],
)
def test_a_damaged_picture_costs_itself(twin: Twin, picture: Any) -> None:
    twin.providers["video.vrs"].streams["214-1"][2][1] = picture
    with open_only(twin.folder) as scene:
        with pytest.raises(FrameError, match="pixels"):
            scene.frames[1].color()
        scene.frames[0].color()


def write(name: str, text: str) -> Callable[[Twin], Any]:
    return lambda twin: (twin.folder / name).write_text(text)


@pytest.mark.parametrize(
    "spoil",
    [
        write("instances.json", "[]"),
        write("instances.json", "{"),
        write("scene_objects.csv", "object_uid,timestamp[ns]\n"),
        lambda twin: (twin.folder / "3d_bounding_box.csv").unlink(),
    ],
)
def test_damaged_tables_cost_the_boxes(twin: Twin, spoil: Callable[[Twin], Any]) -> None:
    spoil(twin)
    with open_only(twin.folder) as scene:
        assert len(scene.frames) == 5
        assert not scene.objects
        assert "no boxes" in next(issue.detail for issue in scene.issues if issue.reason == "file_unusable")


def replace_row(name: str, uid: str, row: str) -> Callable[[Twin], Any]:
    def spoil(twin: Twin) -> None:
        lines = (twin.folder / name).read_text().splitlines()
        (twin.folder / name).write_text("\n".join(row if line.startswith(f"{uid},") else line for line in lines))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (replace_row("scene_objects.csv", "4885175544866890", "4885175544866890,-1,0,0,0,2,0,0,0"), "quaternion"),
        (replace_row("scene_objects.csv", "4885175544866890", "4885175544866890,-1,0,0,0,nan,0,0,0"), "quaternion"),
        (replace_row("scene_objects.csv", "4885175544866890", "4885175544866890,-1,0,0,1e9,1,0,0,0"), "coordinate"),
        (replace_row("scene_objects.csv", "4885175544866890", "4885175544866890,-1,0,0,x,1,0,0,0"), "numbers"),
        (replace_row("3d_bounding_box.csv", "4885175544866890", "4885175544866890,-1,1,-1,0,1,0,1"), "side"),
        (replace_row("3d_bounding_box.csv", "4885175544866890", "9,-1,1,-1,0,1,0,1"), "not one box"),
    ],
)
def test_a_damaged_object_costs_itself(twin: Twin, room: RoomScene, spoil: Callable[[Twin], Any], why: str) -> None:
    spoil(twin)
    with open_only(twin.folder) as scene:
        assert len(scene.objects) == len(room.objects) - 1
        details = [issue.detail for issue in scene.issues if issue.reason == "box_unusable"]
        assert len(details) == 5
        assert any("4885175544866890" in detail and why in detail for detail in details)


def drop(file: str, value: Any) -> Callable[[Twin], Any]:
    return lambda twin: twin.providers.update({file: value})


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (drop("video.vrs", None), "no readable stream 214-1"),
        (drop("depth_images.vrs", None), "no readable stream 214-1"),
        (lambda twin: twin.providers["video.vrs"].streams.pop("214-1"), "no readable stream 214-1"),
        (lambda twin: setattr(twin.providers["video.vrs"], "claimed", 1 << 20), "1048576x1048576 pixels"),
        (lambda twin: setattr(twin.providers["video.vrs"], "claimed", 95), "those of color"),
        (lambda twin: setattr(twin.providers["video.vrs"], "calibration", None), "no calibration"),
        (lambda twin: setattr(twin.calibration, "side", 95), "no calibration"),
        (lambda twin: setattr(twin.calibration, "slope", 0.1), "pinhole picture"),
        (write("aria_trajectory.csv", "a,b\n"), "no column tracking_timestamp_us"),
        (lambda twin: keep_lines(twin.folder / "aria_trajectory.csv", 1), "none usable"),
        (lambda twin: link_out(twin.folder / "aria_trajectory.csv"), "a link or path to"),
    ],
)
def test_a_recording_that_is_none_is_refused(twin: Twin, spoil: Callable[[Twin], Any], why: str) -> None:
    spoil(twin)
    with pytest.raises(SceneError, match=why):
        open_only(twin.folder)


def keep_lines(path: Path, count: int) -> None:
    path.write_text("\n".join(path.read_text().splitlines()[:count]))


def link_out(path: Path) -> None:
    moved = path.parents[1] / "elsewhere.csv"
    path.rename(moved)
    path.symlink_to(moved)


def test_without_the_package_it_says_what_to_install(tmp_path: Path, room: RoomScene) -> None:
    if importlib.util.find_spec("projectaria_tools"):
        pytest.skip("projectaria_tools is installed")
    Twin(tmp_path / "take", room)
    with pytest.raises(SceneError, match=r"pip install 'vgbench-gen\[aria\]'"):
        open_only(tmp_path)


@pytest.fixture(scope="module")
def sample(recordings: Path) -> Path:
    pytest.importorskip("projectaria_tools", reason="the extra `aria` is not installed")
    return recordings / "real" / "aria-digital-twin"


def test_the_sample(sample: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its frames turn by less than a degree, so its reading cannot be decided; but depth of one is that of the next."""
    with open_only(sample) as scene:
        assert capfd.readouterr().out == ""
        assert (len(scene.frames), scene.total_frames) == (2, 3)
        first, second = scene.frames
        depth, other = first.depth_m(), second.depth_m()
        points, _ = back_project_depth(first.depth_camera, depth, 5)

        def share(relative: FloatArray, points: FloatArray, measured: Any) -> float:
            uv, z = project(second.depth_camera, transform(relative, points))
            there = sample_nearest(measured, uv)
            return float((np.abs(z - there)[there > 0] < 0.0005 + 0.001 * there[there > 0]).mean())

        relative = relative_pose(first.world_from_camera, second.world_from_camera)
        right = share(relative, points, other)
        lengths = measure_ray_lengths(first.depth_camera)
        along_ray, _ = back_project_depth(first.depth_camera, depth / lengths, 5)
        wrong = [share(np.eye(4), points, other), share(invert(relative), points, other)]
        wrong.append(share(relative, along_ray, other / lengths))
        assert right > max(wrong) + 0.2
        world = transform(first.world_from_camera, points)
        tables = [each for each in scene.objects if each.label == "table"]
        assert contains(tables[0].box, world, 0.01).sum() > 10_000
        assert all(each.box.rotation[1, 2] == 1 for each in scene.objects)
        assert len(scene.objects) > 200
        known = (depth > 0).mean()
        assert known > 0.99


def test_no_vrs_file_is_refused(sample: Path, tmp_path: Path) -> None:
    folder = next(sample.glob("aria*"))
    for name in ("video.vrs", "aria_trajectory.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "depth_images.vrs").write_bytes((folder / "depth_images.vrs").read_bytes()[:1000])
    with pytest.raises(SceneError, match=r"depth_images.vrs: found"):
        open_only(tmp_path)
