"""Record3D: the rendered room as an export and as an archive, and what is refused."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.scene_factory import RoomScene
from tests.scenes.posed_writer import make_room, to_quaternion_row
from tests.scenes.test_posed import check, open_one
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import ColorArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes.health import summarise_health
from vgbench_gen.scenes.posed.archive import Archive, measure_lzfse, unpack_lzfse
from vgbench_gen.scenes.readings import Reading

exr = pytest.importorskip("OpenEXR")
lzfse = pytest.importorskip("lzfse")

YUP_FROM_ROOM = make_pose(np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]), np.array([0.4, -1.1, 2.0]))
NUMBERS = (2, 3, 5, 8, 9, 10, 14, 15, 21, 30)  # of the frames; the list has a row for every number up to 33


@pytest.fixture(scope="module")
def room() -> RoomScene:
    return make_room()


def list_frames(room: RoomScene, numbers: Sequence[int] = NUMBERS, last: int = 33) -> dict[str, Any]:
    """What the app lists; rows whose frames have no pictures hold poses that would be found out."""
    truth = np.stack([YUP_FROM_ROOM @ frame.world_from_camera for frame in room.frames])
    rows = [[0.1, 0.7, 0.1, 0.7, 5.0, 5.0, 5.0]] * (last + 1)
    for number, pose in zip(numbers, Reading(axes="OpenGL").undo(truth), strict=True):
        x, y, z, *q = to_quaternion_row(pose)
        rows[number] = [*q, x, y, z]
    K = room.frames[0].camera.K
    return {"h": 120, "w": 160, "fps": 60, "K": K.T.ravel().tolist(), "poses": rows}


def encode_jpeg(color: ColorArray) -> bytes:
    picture = cv2.cvtColor(np.ascontiguousarray(color), cv2.COLOR_RGB2BGR)
    done, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 99])
    assert done
    return bytes(data)


def write_exr(path: Path, channels: dict[str, Any]) -> None:
    header = {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage}
    exr.File(header, {name: values.astype(np.float16) for name, values in channels.items()}).write(str(path))


def write_export(folder: Path, room: RoomScene, **changed: Any) -> Path:
    for kind in ("rgb", "depth"):
        (folder / kind).mkdir(parents=True)
    for number, frame in zip(NUMBERS, room.frames, strict=True):
        (folder / f"rgb/{number}.jpg").write_bytes(encode_jpeg(frame.color()))
        write_exr(folder / f"depth/{number}.exr", {"R": frame.depth_m()})
    (folder / "metadata.json").write_text(json.dumps(list_frames(room) | changed))
    return folder


def list_members(room: RoomScene, **changed: Any) -> dict[str, bytes]:
    """The members of an archive: depth without a size of its own, unsure in the first rows."""
    found = list_frames(room)
    fx, fy, cx, cy = (room.frames[0].camera.K[at] for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
    found["perFrameIntrinsicCoeffs"] = [[fx + n / 10, fy + n / 20, cx - n / 50, cy + n / 50] for n in range(34)]
    found["frameTimestamps"] = [n / 60 for n in range(34)]
    members = {"metadata": json.dumps(found | changed).encode(), "icon": b"x"}
    for number, frame in zip(NUMBERS, room.frames, strict=True):
        sure = np.full((60, 80), 2, np.uint8)
        sure[:4], sure[4:8] = 0, 1
        members[f"rgbd/{number}.jpg"] = encode_jpeg(frame.color())
        members[f"rgbd/{number}.depth"] = lzfse.compress(frame.depth_m().astype("<f4").tobytes())
        members[f"rgbd/{number}.conf"] = lzfse.compress(sure.tobytes())
    return members


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_an_export_has_the_truth_of_the_room(tmp_path: Path, room: RoomScene) -> None:
    """Pictures and poses belong together by number, K stands column by column, EXR holds half floats of meters."""
    write_export(tmp_path / "cabin", room)
    scene = open_one(tmp_path)
    assert summarise_health(scene).verdict == "ok"
    assert [frame.id for frame in scene.frames] == [str(number) for number in NUMBERS]
    assert scene.up_world is not None
    assert scene.up_world.tolist() == [0, 1, 0]
    check(scene, room, YUP_FROM_ROOM, step_m=0.002)


def test_an_archive_has_the_truth_of_the_room(tmp_path: Path, room: RoomScene) -> None:
    members = list_members(room) | {"rgbd/": b"", "/etc/1.png": b"x", "../../2.png": b"x"}
    write_zip(tmp_path / "walk.r3d", members)
    with open_one(tmp_path) as scene:
        assert (summarise_health(scene).verdict, scene.issues) == ("ok", [])
        assert [(frame.id, frame.timestamp_s) for frame in scene.frames] == [(str(n), n / 60) for n in NUMBERS]
        for number, frame, truth in reversed(list(zip(NUMBERS, scene.frames, room.frames, strict=True))):
            np.testing.assert_allclose(frame.world_from_camera, YUP_FROM_ROOM @ truth.world_from_camera, atol=1e-6)
            shift = np.array([[number / 10, 0, -number / 50], [0, number / 20, number / 50], [0, 0, 0]])
            np.testing.assert_allclose(frame.camera.K, truth.camera.K + shift, atol=1e-9)
            assert frame.depth_camera.size == (80, 60)
            depth_m = truth.depth_m()
            depth_m[:4] = 0
            assert np.array_equal(frame.depth_m(), depth_m)
            assert frame.encoded_color() == members[f"rgbd/{number}.jpg"]
            assert np.abs(frame.color().astype(int) - truth.color()).mean() < 2
    with pytest.raises(FrameError, match="closed"):
        scene.frames[0].color()


def test_the_size_of_depth_follows_from_the_shape_of_color(tmp_path: Path, room: RoomScene) -> None:
    """Portrait pictures of an archive that says no size, intrinsics or confidence of its frames."""
    members = list_members(room, w=120, h=160, perFrameIntrinsicCoeffs=[])
    for number, frame in zip(NUMBERS, room.frames, strict=True):
        members[f"rgbd/{number}.jpg"] = encode_jpeg(np.rot90(frame.color()))
        members[f"rgbd/{number}.depth"] = lzfse.compress(np.rot90(frame.depth_m()).astype("<f4").tobytes())
        del members[f"rgbd/{number}.conf"]
    write_zip(tmp_path / "walk.r3d", members)
    with open_one(tmp_path) as scene:
        frame = getattr(scene.frames[2], "_frame", scene.frames[2])
        assert (frame.camera.size, frame.depth_camera.size) == ((120, 160), (60, 80))
        assert np.array_equal(frame.depth_m(), np.rot90(room.frames[2].depth_m()))


def test_the_world_of_a_first_camera_has_no_up(tmp_path: Path, room: RoomScene) -> None:
    """Where the list begins without any turn, the app set its world to the first camera."""
    poses = list_frames(room)["poses"]
    poses[0] = [1e-8, 3e-10, -3e-9, 1, 0, 0, 0]
    write_export(tmp_path / "cabin", room, poses=poses)
    with open_one(tmp_path) as scene:
        assert (scene.up_world, len(scene.frames)) == (None, len(NUMBERS))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"poses": [[0, 0, 0, 1, 0, 0, 0]] * 34}, "all the same"),
        ({"poses": []}, "no list `poses`"),
        ({"poses": "none"}, "no list `poses`"),
        ({"K": [1, 2, 3]}, "3 numbers"),
        ({"w": 1200}, "160x120 pixels"),
    ],
)
def test_what_the_list_lacks_is_said(tmp_path: Path, room: RoomScene, changed: dict[str, Any], words: str) -> None:
    write_export(tmp_path / "cabin", room, **changed)
    with pytest.raises(SceneError, match=words):
        open_one(tmp_path)


def test_a_frame_costs_only_itself(tmp_path: Path, room: RoomScene) -> None:
    found = list_frames(room)
    rows = found["poses"][:30]  # none for number 30
    rows[3] = [0.5, 0.5, 0.5, 0.9, 0, 0, 0]
    rows[5] = ["a", 0, 0, 1, 0, 0, 0]
    folder = write_export(tmp_path / "cabin", room, poses=rows, perFrameIntrinsicCoeffs=[[1, 2, 3, None]] * 3)
    (folder / "depth/8.exr").unlink()
    (folder / "rgb/99999999999999999999.jpg").write_bytes(b"x")
    (folder / "depth/14.exr").write_bytes((folder / "depth/14.exr").read_bytes()[:400])
    (folder / "depth/15.exr").write_bytes(b"no picture")
    write_exr(folder / "depth/21.exr", dict.fromkeys("ABGRZ", room.frames[8].depth_m()))
    with open_one(tmp_path) as scene:
        reasons = {(issue.frame_id, issue.reason) for issue in scene.issues}
        assert reasons == {("2", "unusable_file"), ("3", "bad_pose"), ("5", "bad_pose"), ("30", "bad_pose"),
                           ("8", "incomplete")}  # fmt: skip
        frames = {frame.id: frame for frame in scene.frames}
        assert list(frames) == ["9", "10", "14", "15", "21"]
        for number in ("14", "15", "21"):
            with pytest.raises(FrameError, match=rf"{number}\.exr"):
                frames[number].depth_m()
        frames["10"].depth_m()


def test_the_samples(recordings: Path) -> None:
    with open_one(recordings / "written" / "record3d") as scene:
        health = summarise_health(scene)
        assert (health.verdict, len(scene.frames)) == ("ok", 8)
    with pytest.raises(SceneError, match=r"49 poses, and 0 pictures of color.*export the recording again"):
        open_one(recordings / "real" / "record3d-metadata-only")


def test_a_damaged_member_costs_its_frame(tmp_path: Path, room: RoomScene) -> None:
    """Each wrong member: what LZFSE states is looked at before anything is unpacked."""
    members = list_members(room)
    flat = np.zeros((60, 80), "<f4").tobytes()
    members["rgbd/2.depth"] = b"\0" * 30
    members["rgbd/3.depth"] = lzfse.compress(flat + b"more")
    members["rgbd/5.depth"] = members["rgbd/5.depth"][:-8]
    members["rgbd/8.depth"] = b"bvx2" + members["rgbd/8.depth"][4:8] + b"\xff" * 24
    members["rgbd/9.conf"] = lzfse.compress(flat)
    members["rgbd/10.jpg"] = members["rgbd/10.jpg"][:-500]
    del members["rgbd/14.conf"]
    write_zip(tmp_path / "walk.r3d", members)
    with open_one(tmp_path) as scene:
        frames = {frame.id: frame for frame in scene.frames}
        assert list(frames) == [str(number) for number in NUMBERS]
        for number in ("2", "3", "5", "8", "9"):
            with pytest.raises(FrameError, match=rf"walk\.r3d/rgbd/{number}\."):
                frames[number].depth_m()
        with pytest.raises(FrameError, match=r"rgbd/10\.jpg"):
            frames["10"].color()
        frames["9"].color()
        assert frames["14"].depth_m()[0, 0] == room.frames[6].depth_m()[0, 0]


def test_lzfse_is_measured_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.cumsum(np.random.default_rng(0).normal(0, 1e-3, 49152)).astype("<f4").reshape(192, 256)
    packed = lzfse.compress(values.tobytes())
    assert packed.count(b"bvx2") > 3
    assert np.array_equal(unpack_lzfse(packed, "<f4", (256, 192), "here"), values)
    for data in (b"", b"abc", b"abc" * 9, bytes(range(256)) * 8, b"ab" * 200):
        if data:
            assert measure_lzfse(lzfse.compress(data), "here") == len(data)
    huge = lzfse.compress(bytes(3_000_000))
    empty = struct.pack("<4sI3Q", b"bvx2", 0, 0, 0, 32)
    monkeypatch.setattr(lzfse, "decompress", lambda data: pytest.fail("unpacked"))
    for bad in (huge, b"", b"bvx2", b"bvx-\xff\xff\xff\xffaaaabvx$", packed[:9000], empty * 1000 + packed):
        with pytest.raises(FrameError):
            unpack_lzfse(bad, "<f4", (256, 192), "here")


def test_a_member_unpacks_to_no_more_than_it_may(tmp_path: Path) -> None:
    """A directory that states little for a member of much, or much for a member of little."""
    path = write_zip(tmp_path / "a.r3d", {"big": bytes(60_000_000), "small": b"abc"})
    data = bytearray(path.read_bytes())
    for listed, size in ((b"big", 1000), (b"small", 1 << 31)):
        at = data.rindex(listed) - 46  # in the directory
        assert data[at : at + 4] == b"PK\1\2"
        struct.pack_into("<I", data, at + 24, size)
    path.write_bytes(data)
    archive = Archive(path)
    tracemalloc.start()
    try:
        for name, words in (("big", "damaged"), ("small", "2147483648 bytes"), ("none", "no such member")):
            with pytest.raises(FrameError, match=words):
                archive.read(path / name)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
        archive.close()


def test_a_broken_archive_is_refused(tmp_path: Path, room: RoomScene) -> None:
    path = write_zip(tmp_path / "walk.r3d", list_members(room))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SceneError, match="no archive that opens"):
        open_one(tmp_path)
    write_zip(path, {"rgbd/0.jpg": b"x", "rgbd/0.depth": b"x"})
    with pytest.raises(SceneError, match="no such member"):
        open_one(tmp_path)
    write_zip(path, {"metadata": list_members(room)["metadata"], "rgbd/2.jpg": b"x", "rgbd/2.depth": b"x"})
    with pytest.raises(SceneError, match="nothing sound"):
        open_one(tmp_path)
    with path.open("wb") as file:  # a directory of a gigabyte, in a file that is mostly a hole
        file.write(b"PK\3\4")
        file.seek(1_200_000_000)
        file.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, 1_000_000_000, 100_000_000, 0))
    with pytest.raises(SceneError, match="a part of 1000000000 bytes"):
        open_one(tmp_path)


def test_other_methods_of_packing_are_not_unpacked(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("metadata", b"{}")
    (tmp_path / "a.r3d").write_bytes(buffer.getvalue())
    archive = Archive(tmp_path / "a.r3d")
    with pytest.raises(FrameError, match="method 14"):
        archive.read(tmp_path / "a.r3d/metadata")
    archive.close()
