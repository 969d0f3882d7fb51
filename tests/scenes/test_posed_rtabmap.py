from __future__ import annotations

import random
import sqlite3
import struct
import zlib
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.scenes.posed_writer import make_room
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.poses import invert, make_pose
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import Scene
from vgbench_gen.scenes.health import summarise_health
from vgbench_gen.scenes.opening import open_scene
from vgbench_gen.scenes.posed.rtabmap import open_database

ROBOT_FROM_CAMERA = make_pose(Rotation.from_quat([0.5, -0.5, 0.5, -0.5]).as_matrix(), np.array([0.12, 0.05, 0.61]))
WIDE = Camera(np.array([[150.0, 0, 80], [0, 150, 60], [0, 0, 1]]), 160, 120)
SCHEMA = """
CREATE TABLE Node (id INTEGER NOT NULL, map_id INTEGER NOT NULL, weight INTEGER, stamp FLOAT, pose BLOB,
    PRIMARY KEY (id));
CREATE TABLE Data (id INTEGER NOT NULL, image BLOB, depth BLOB, calibration BLOB, PRIMARY KEY (id));
CREATE TABLE Admin (version TEXT, opt_ids BLOB, opt_poses BLOB);
"""


@cache
def render_shots() -> list[tuple[ColorArray, DepthArray, FloatArray, Camera]]:
    return [(f.color(), f.depth_m(), f.world_from_camera, f.camera) for f in make_room(9).frames]


def pack_pose(pose: FloatArray) -> bytes:
    return pose[:3].astype("<f4").tobytes()


def pack_model(K: FloatArray, P: FloatArray | None, D: tuple[float, ...] = (), kind: int = 0) -> bytes:
    """A calibration as `CameraModel::serialize` writes it."""
    doubles = [*K.reshape(-1), *D, *np.eye(3).reshape(-1)]
    doubles += [] if P is None else [*np.hstack([P, np.zeros((3, 1))]).reshape(-1)]
    head = struct.pack("<11i", 0, 21, 4, kind, 160, 120, 9, len(D), 9, 0 if P is None else 12, 12)
    return head + np.array(doubles, "<f8").tobytes() + pack_pose(ROBOT_FROM_CAMERA)


def pack_matrix(values: Any, kind: int) -> bytes:
    return zlib.compress(values.tobytes()) + struct.pack("<3i", 1, values.size, kind)


def write(path: Path, **how: Any) -> Path:
    """The room as a database; `how` says what is otherwise than usual."""
    database = sqlite3.connect(path)
    database.executescript(how.get("schema", SCHEMA))
    ids, optimised = [], []
    for i, (color, depth_m, pose, camera) in enumerate(render_shots()):
        number = 3 + 4 * i
        world_from_robot = pose @ invert(ROBOT_FROM_CAMERA)
        ids.append(number)
        optimised.append(world_from_robot[:3])
        drift = make_pose(Rotation.from_rotvec([0, 0, 0.02 * i]).as_matrix(), np.array([0.2 * i, 0, 0]))
        stored = drift @ world_from_robot if how.get("drifts") else world_from_robot
        image = cv2.imencode(".png", cv2.cvtColor(color, cv2.COLOR_RGB2BGR))[1].tobytes()
        if how.get("depth") == "float":
            floats = np.ascontiguousarray(np.where(depth_m > 0, depth_m, np.nan).astype("<f4"))
            depth = cv2.imencode(".png", floats.view(np.uint8).reshape(*depth_m.shape, 4))[1].tobytes()
        else:
            depth = cv2.imencode(".png", np.rint(1000 * depth_m).astype(np.uint16))[1].tobytes()
        depth = how.get("depth_bytes", depth)
        map_id = 1 if i in how.get("other_map", ()) else 0
        K = camera.K
        model = how.get("model") or pack_model(K + np.diag([9.0, 9, 0]), K, (0.1, 0.02, 0.001, 0.002, 0.01))
        node = None if i in how.get("lost", ()) else pack_pose(stored)
        database.execute("INSERT INTO Node VALUES (?, ?, 0, ?, ?)", (number, map_id, 1.7e9 + 0.8 * i, node))
        kept = (image, depth) if how.get("pictures", True) and i not in how.get("without", ()) else (None, None)
        database.execute("INSERT INTO Data VALUES (?, ?, ?, ?)", (number, *kept, model))
    packed = pack_matrix(np.array(ids, "<i4"), 4), pack_matrix(np.array(optimised, "<f4"), 5)
    admin = how.get("admin", packed if how.get("drifts") else (None, None))
    database.execute("INSERT INTO Admin VALUES ('0.21.4', ?, ?)", admin)
    database.commit()
    database.close()
    return path


def read(path: Path) -> Scene:
    (ref,) = discover(path, datasets=["posed"])
    return open_scene(ref)


def check(scene: Scene, frames: list[int], most_m: float = 5.1e-4) -> None:
    """See that a scene is the room, in whatever order its frames are asked for."""
    assert [frame.id for frame in scene.frames] == [str(3 + 4 * i) for i in frames]
    pairs = list(zip(scene.frames, frames, strict=True))
    random.Random(0).shuffle(pairs)
    for frame, i in pairs:
        color, depth_m, pose, camera = render_shots()[i]
        np.testing.assert_allclose(frame.world_from_camera, pose, atol=1e-5)
        np.testing.assert_allclose(frame.camera.K, camera.K)
        np.testing.assert_allclose(frame.depth_m(), depth_m, atol=most_m)
        assert np.array_equal(frame.color(), color)
        assert frame.timestamp_s == pytest.approx(1.7e9 + 0.8 * i)


ALL = list(range(9))


def test_a_database_gives_the_room(tmp_path: Path) -> None:
    with read(write(tmp_path / "flat.db")) as scene:
        check(scene, ALL)
        assert scene.issues == []
        assert scene.total_frames == 9
        assert scene.up_world is not None
        assert scene.up_world.tolist() == [0, 0, 1]
        health = summarise_health(scene, "")
    assert health.verdict == "ok"
    assert health.agree is not None
    assert health.agree > 0.85
    assert [path.name for path in tmp_path.iterdir()] == ["flat.db"]  # nothing is written beside it


def test_depth_of_floats(tmp_path: Path) -> None:
    with read(write(tmp_path / "flat.db", depth="float")) as scene:
        check(scene, ALL, 1e-6)


def test_optimised_poses_come_first(tmp_path: Path) -> None:
    with read(write(tmp_path / "flat.db", drifts=True, other_map=(5, 6))) as scene:
        check(scene, ALL)


def test_sessions_that_were_not_joined_are_not_mixed(tmp_path: Path) -> None:
    path = write(tmp_path / "flat.db", other_map=(5, 6), lost=(2,), without=(0,))
    with read(path) as scene:
        check(scene, [1, 3, 4, 7, 8])
        assert sorted((issue.frame_id, issue.reason) for issue in scene.issues) == [
            ("11", "pose_missing"), ("23", "pose_missing"), ("27", "pose_missing"), ("3", "incomplete"),
        ]  # fmt: skip


def test_without_p_distortion_is_that_of_k(tmp_path: Path) -> None:
    model = pack_model(WIDE.K, None, (0.08, -0.05, 0.001, -0.002, 0.01))
    with read(write(tmp_path / "flat.db", model=model)) as scene:
        assert scene.frames[0].camera.fx != WIDE.fx
        assert scene.frames[0].encoded_color() is None
    with read(write(tmp_path / "level.db", model=pack_model(WIDE.K, None))) as scene:
        np.testing.assert_allclose(scene.frames[0].camera.K, WIDE.K)
        assert scene.frames[0].encoded_color() is not None


RVL = b"DEPTHRVL" + bytes(40)


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ({"pictures": False}, "9 poses without pictures of color and depth"),
        ({"depth_bytes": RVL}, r"nothing sound .*4445505448.*Run rtabmap-export"),
        ({"depth_bytes": b"\x89PNG\r\n\x1a\n"}, "nothing sound"),
        ({"model": pack_model(WIDE.K, WIDE.K, kind=1)}, "Stereo, fisheye and several are not read"),
        ({"model": 2 * pack_model(WIDE.K, WIDE.K)}, "Stereo, fisheye and several are not read"),
        ({"model": pack_model(WIDE.K, None, (0.02, 0.01, 0, 0, -0.01, 0.002))}, "fisheye and several are not read"),
        ({"model": pack_model(WIDE.K, WIDE.K)[:-48]}, "a calibration of 284 bytes"),
        ({"model": pack_model(np.zeros((3, 3)), None)}, "none usable"),
    ],
)
def test_what_is_not_read_is_refused(tmp_path: Path, how: dict[str, Any], found: str) -> None:
    with pytest.raises(SceneError, match=found):
        read(write(tmp_path / "flat.db", **how))


ONE = pack_matrix(np.array([1], "<i4"), 4)


@pytest.mark.parametrize(
    "admin",
    [
        (ONE, ONE),
        (ONE[:-12] + struct.pack("<3i", 1 << 15, 1 << 15, 4), ONE),
        (zlib.compress(bytes(80_000_000)) + struct.pack("<3i", 1, 1, 4), ONE),
        (ONE[:-12] + struct.pack("<3i", -1, -1, 4), ONE),
        (b"no zlib" + bytes(12), ONE),
        (b"short", ONE),
        (7, 9.5),
    ],
)
def test_optimised_poses_that_are_none_are_passed_over(tmp_path: Path, admin: tuple[Any, Any]) -> None:
    with read(write(tmp_path / "flat.db", admin=admin)) as scene:
        check(scene, ALL)
        (issue,) = scene.issues
        assert issue.reason == "bad_pose"
        assert "Poses of odometry are used" in issue.detail


def test_other_databases_are_not_taken(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "database.db")  # as COLMAP has one
    database.execute("CREATE TABLE cameras (camera_id INTEGER)")
    database.commit()
    database.close()
    (tmp_path / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0")
    assert discover(tmp_path, datasets=["posed"]) == []


ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n AS id FROM c"


def test_a_statement_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgbench_gen.scenes.posed.rtabmap._MAX_STEPS", 2)
    with closing(open_database(write(tmp_path / "flat.db"))) as database:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            database.execute(f"SELECT max(id) FROM ({ENDLESS})").fetchone()
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            database.execute("DELETE FROM Node")


def test_a_view_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgbench_gen.scenes.posed.rtabmap._MAX_STEPS", 2)
    path = tmp_path / "flat.db"
    database = sqlite3.connect(path)
    picture = ENDLESS.replace("n AS id", "n AS id, x'' AS calibration, 'x' AS image, 'x' AS depth")
    database.executescript(f"CREATE TABLE Node (id, stamp, map_id, pose); CREATE VIEW Data AS {picture};")
    database.execute("INSERT INTO Node VALUES (-1, 0, 0, NULL)")
    database.commit()
    database.close()
    with pytest.raises(SceneError, match=r"a damaged database \(interrupted"):
        read(path)


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "flat.db"
    database = sqlite3.connect(path)
    database.executescript("CREATE TABLE Data (id INTEGER); CREATE TABLE Node (id INTEGER);")
    database.close()
    with pytest.raises(SceneError, match=r"a damaged database .no such column"):
        read(path)


@pytest.mark.parametrize("seed", range(6))
def test_damaged_databases_cost_no_more_than_themselves(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = write(tmp_path / "flat.db", drifts=seed % 2)
    data = bytearray(path.read_bytes())
    for _ in range(40):
        at = rng.randrange(16, len(data))
        data[at : at + 2] = rng.choice([b"\xff\xff", b"\0\0", rng.randbytes(2)])
    path.write_bytes(bytes(data[: rng.randrange(len(data) // 2, len(data))]))
    for ref in discover(path, datasets=["posed"]):  # none where the schema is gone
        with suppress(SceneError), open_scene(ref) as scene:
            for frame in scene.frames:
                with suppress(FrameError):
                    frame.color(), frame.depth_m()


def test_sample(recordings: Path) -> None:
    with read(recordings / "written/rtabmap/map.db") as scene:
        health = summarise_health(scene, "")
        assert len(scene.frames) == 8
    assert health.verdict == "ok"
    assert health.agree == pytest.approx(0.67, abs=0.03)
    assert health.agree_next is not None
    assert health.agree_next < 0.2
