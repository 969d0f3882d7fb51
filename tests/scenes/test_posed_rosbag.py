from __future__ import annotations

import random
import shutil
import struct
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

pytest.importorskip("rosbags.rosbag1", exc_type=ImportError)

from tests.scenes.bag_writer import START_NS, STEP_NS, BagWriter, render_shots
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import Scene
from vgbench_gen.scenes.health import summarise_health
from vgbench_gen.scenes.opening import open_scene
from vgbench_gen.scenes.posed.ros_tf import Transforms


def read(path: Path) -> Scene:
    (ref,) = discover(path, datasets=["posed"])
    return open_scene(ref)


def check(scene: Scene, writer: BagWriter, frames: list[int] | None = None) -> None:
    """See that a scene is the room, however its frames are asked for."""
    shots = render_shots()
    wanted = list(range(len(shots))) if frames is None else frames
    assert [frame.id for frame in scene.frames] == [str(START_NS + i * STEP_NS) for i in wanted]
    pairs = list(zip(scene.frames, (shots[i] for i in wanted), strict=True))
    random.Random(0).shuffle(pairs)
    for frame, truth in pairs:
        np.testing.assert_allclose(frame.world_from_camera, truth.pose, atol=1e-6)
        np.testing.assert_allclose(frame.camera.K, truth.camera.K)
        np.testing.assert_allclose(frame.depth_m(), truth.depth_m, atol=1e-6 if writer.depth == "32FC1" else 5.1e-4)
        if writer.color != "jpeg":
            assert np.array_equal(frame.color(), truth.color)
        assert frame.timestamp_s == pytest.approx(int(frame.id) * 1e-9, abs=1e-6)
    assert scene.up_world is not None
    assert scene.up_world.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"packing": "lz4", "color": "rgb8", "padding": 5},
        {"packing": "bz2", "color": "png", "depth": "compressedDepth"},
        {"form": "mcap", "depth": "32FC1", "color": "rgba8", "is_bigendian": True},
        {"form": "mcap", "packing": "zstd"},
        {"form": "db3", "color": "rgb8"},
        {"clock_ns": 500_000_000},
        {"form": "mcap", "clock_ns": 500_000_000},
    ],
)
def test_every_form_gives_the_room(tmp_path: Path, given: dict[str, Any]) -> None:
    writer = BagWriter(**given)
    with read(writer.write(tmp_path)) as scene:
        check(scene, writer)
        assert scene.issues == []
        assert scene.total_frames == 8


def test_a_single_mcap_is_a_recording(tmp_path: Path) -> None:
    writer = BagWriter("mcap", color="jpeg")
    shutil.move(writer.write(tmp_path / "made") / "lab.mcap", tmp_path / "walk.mcap")
    shutil.rmtree(tmp_path / "made")
    with read(tmp_path) as scene:
        check(scene, writer)
        assert scene.frames[2].encoded_color() == writer.written[f"color {START_NS + 2 * STEP_NS}"]


def test_a_split_recording_is_one_scene(tmp_path: Path) -> None:
    folder = BagWriter("db3").write(tmp_path)
    shutil.copy(folder / "lab.db3", folder / "lab_1.db3")  # the same messages again count once
    with read(tmp_path) as scene:
        check(scene, BagWriter("db3"))


def test_the_reading_is_decided(tmp_path: Path) -> None:
    with read(BagWriter().write(tmp_path)) as scene:
        health = summarise_health(scene, "")
    assert health.agree is not None
    assert health.agree > 0.85
    assert health.verdict == "ok"


def test_distortion_is_that_of_camera_info(tmp_path: Path) -> None:
    writer = BagWriter(distortion=(0.08, -0.05, 0.001, -0.002, 0.01))
    with read(writer.write(tmp_path)) as scene:
        frame, truth = scene.frames[0], render_shots()[0]
        assert frame.camera.fx != truth.camera.fx
        assert not np.array_equal(frame.color(), truth.color)
    with pytest.raises(SceneError, match="distortion 'plumb_bob' of 3 numbers"):
        read(BagWriter(distortion=(0.1, 0.2, 0.3)).write(tmp_path / "odd"))


def test_frames_without_depth_or_pose_are_named(tmp_path: Path) -> None:
    writer = BagWriter(skip_tf=(3,), skip_depth=(5,))
    with read(writer.write(tmp_path)) as scene:
        check(scene, writer, [0, 1, 2, 4, 6, 7])
        assert sorted((issue.reason, issue.frame_id) for issue in scene.issues) == [
            ("incomplete", str(START_NS + 5 * STEP_NS)), ("pose_missing", str(START_NS + 3 * STEP_NS)),
        ]  # fmt: skip


def test_transforms_far_apart_are_not_interpolated(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match=r"8 frames, none usable .*image_raw has no pose"):
        read(BagWriter(tf_step_ns=1_000_000_000).write(tmp_path))


def make_message(at_s: float, parent: str, child: str, pose: FloatArray, stretch: float = 1.0) -> SimpleNamespace:
    """A message of one transform."""
    turn = Rotation.from_matrix(pose[:3, :3]).as_quat() * stretch
    move, spin = (
        SimpleNamespace(**dict(zip(names, row, strict=True))) for names, row in (("xyz", pose[:3, 3]), ("xyzw", turn))
    )
    stamp = SimpleNamespace(sec=int(at_s), nanosec=round(at_s % 1 * 1e9))
    header = SimpleNamespace(frame_id=parent, stamp=stamp)
    transform = SimpleNamespace(translation=move, rotation=spin)
    return SimpleNamespace(transforms=[SimpleNamespace(header=header, child_frame_id=child, transform=transform)])


def test_transforms_are_interpolated_and_chained() -> None:
    transforms = Transforms()
    turned = [make_pose(Rotation.from_rotvec([0, 0, 0.2 * i]).as_matrix(), np.array([i, 0.0, 0.0])) for i in range(3)]
    for at_s, i in ((11.0, 2), (10.0, 0), (10.1, 1)):  # out of order
        transforms.add(make_message(at_s, "/odom", "camera", turned[i]), False)
    transforms.add(make_message(10.05, "odom", "camera", turned[2], stretch=2.0), False)  # no rotation
    transforms.add(make_message(0, "odom", "other", turned[1]), False)
    transforms.add(make_message(0, "camera", "odom", turned[1]), True)  # a loop
    transforms.add(make_message(0, "robot/map", "odom", turned[1]), True)
    chain = transforms.find_chain("camera")
    assert chain == [("robot/map", "odom"), ("odom", "camera")]
    assert transforms.moves(chain)
    assert not transforms.moves(chain[:1])
    poses, known = transforms.compose(chain, np.array([9.96, 10.025, 10.14, 10.5, 10.99, 11.2]), 0.05)
    assert known.tolist() == [True, True, True, False, True, False]
    quarter = make_pose(Rotation.from_rotvec([0, 0, 0.05]).as_matrix(), np.array([0.25, 0.0, 0.0]))
    for pose, wanted in ((poses[0], turned[0]), (poses[1], quarter), (poses[2], turned[1]), (poses[4], turned[2])):
        np.testing.assert_allclose(pose, turned[1] @ wanted, atol=1e-9)
    assert transforms.find_chain("elsewhere") == []


def test_transforms_that_are_none_leave_no_pose() -> None:
    transforms = Transforms()
    transforms.add(make_message(1, "odom", "camera", np.eye(4), stretch=3.0), False)
    odd = make_message(2, "odom", "camera", np.eye(4))
    odd.transforms[0].transform.translation.y = "far"
    with pytest.raises(TypeError):
        transforms.add(odd, False)
    chain = transforms.find_chain("camera")
    assert not transforms.moves(chain)
    assert transforms.compose(chain, np.array([1.0, 2.0]), 0.05)[1].tolist() == [False, False]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"tf": ""}, "no transforms: it has no poses"),
        ({"tf": "static"}, r"no transforms that move the camera \(eye_optical\): it has no poses"),
    ],
)
def test_a_bag_without_poses_is_refused(tmp_path: Path, given: dict[str, Any], found: str) -> None:
    if not given["tf"]:
        given = given | {"depth_frame": "eye_depth"}
    with pytest.raises(SceneError, match=found) as caught:
        read(BagWriter(**given).write(tmp_path))
    assert "Run a SLAM such as RTAB-Map on it and save TUM RGB-D or an RTAB-Map export" in str(caught.value)


def test_depth_of_another_frame_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match=r"image_raw \(bgr8 88x66 in eye_optical\).*Align depth to color"):
        read(BagWriter(depth_frame="eye_depth").write(tmp_path))


def test_a_recording_of_the_realsense_viewer_is_refused(tmp_path: Path) -> None:
    name = "/device_0/sensor_0/Depth_0/image/data"
    with pytest.raises(SceneError, match=r"it has no poses.*Run a SLAM"):
        read(BagWriter(depth_name=name, depth_frame="0", tf="").write(tmp_path))


@pytest.mark.parametrize("seed", range(12))
def test_damaged_bags_cost_no_more_than_themselves(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    form, packing = [("bag", ""), ("bag", "lz4"), ("mcap", ""), ("mcap", "zstd"), ("db3", ""), ("bag", "bz2")][seed % 6]
    path = BagWriter(form, packing).write(tmp_path)
    file = path if path.is_file() else next(each for each in path.iterdir() if each.suffix != ".yaml")
    data = bytearray(file.read_bytes())
    for _ in range(60):
        at = rng.randrange(len(data))
        data[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", rng.randbytes(4)])
    file.write_bytes(bytes(data[: rng.randrange(len(data) // 2, len(data))]))
    with suppress(SceneError), read(path) as scene:
        for frame in scene.frames:
            with suppress(FrameError):
                frame.color(), frame.depth_m()


def test_a_bag_without_its_index_is_refused(tmp_path: Path) -> None:
    path = BagWriter().write(tmp_path)
    path.write_bytes(path.read_bytes()[:60_000])
    with pytest.raises(SceneError, match=r"Bag index looks damaged.*rosbag reindex"):
        read(tmp_path)


def test_a_chunk_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgbench_gen.scenes.posed.rosbag._MAX_CHUNK_BYTES", 50_000)
    with pytest.raises(SceneError, match=r"a chunk of \d+ bytes; expected at most 50000"):
        read(BagWriter().write(tmp_path))


def test_raw_pictures_that_are_too_large_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgbench_gen.scenes.files.MAX_PIXELS", 88 * 66 - 1)
    with pytest.raises(SceneError, match=r"found /eye/depth/image_rect_raw \(16UC1 44x33 in eye_depth\);"):
        read(BagWriter().write(tmp_path))


def test_a_message_that_is_shorter_than_it_claims_costs_its_frame(tmp_path: Path) -> None:
    path = BagWriter().write(tmp_path)
    data = path.read_bytes()
    head = struct.pack("<I", 66) + struct.pack("<I", 88) + struct.pack("<I", 4) + b"bgr8\0" + struct.pack("<I", 264)
    places = [at for at in range(len(data)) if data.startswith(head, at)]
    for at, change in ((places[2], 65), (places[4], 1 << 30), (places[6] + 17, 300)):  # rows, and their bytes
        data = data[:at] + struct.pack("<I", change) + data[at + 4 :]
    path.write_bytes(data)
    with read(tmp_path) as scene:
        for i, frame in enumerate(scene.frames):
            if i in (2, 4, 6):
                with pytest.raises(FrameError, match=r"image_raw: found 88x\d+, 17424 bytes in rows of (264|300)"):
                    frame.color()
            else:
                assert np.array_equal(frame.color(), render_shots()[i].color)


def test_messages_packed_one_by_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match="a bag without readable pictures"):
        read(BagWriter("db3", packing="messages").write(tmp_path))


def test_a_closed_recording_gives_no_pictures(tmp_path: Path) -> None:
    with read(BagWriter().write(tmp_path)) as scene:
        frame = scene.frames[0]
    with pytest.raises(FrameError, match="not open"):
        frame.color()


def test_what_is_no_bag_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.bag").write_text("not a bag")
    with pytest.raises(SceneError, match="expected a whole bag, with its index"):
        read(tmp_path)
    (tmp_path / "text.bag").unlink()
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/metadata.yaml").write_text("{}")
    (tmp_path / "lab/lab_0.db3.zstd").write_bytes(b"x")
    with pytest.raises(SceneError, match=r"found lab_0\.db3\.zstd, metadata\.yaml; .*Unpack it"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["ros1/cabinet.bag", "ros2/cabinet"])
def test_samples(recordings: Path, name: str) -> None:
    with read(recordings / "written" / name) as scene:
        health = summarise_health(scene, "")
        assert len(scene.frames) == 6
    assert health.verdict == "ok"
    assert health.agree == pytest.approx(0.64, abs=0.03)
    assert health.agree_next is not None
    assert health.agree_next < 0.2
    assert health.agree_still is not None
    assert health.agree_still < 0.45
