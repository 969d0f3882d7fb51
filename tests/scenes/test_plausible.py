"""Numbers that no scan has cost the frame, box or scene that states them, whatever the loader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.scene_factory import RoomScene, room_scene
from tests.scenes import wildrgbd_writer
from tests.scenes.scannet_writer import pictures, scan_folder, write_python_export
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Camera
from vgbench_gen.scenes import base, discover
from vgbench_gen.scenes.opening import decode_depth, open_scene
from vgbench_gen.scenes.view import SceneView


def open_changed(change: Callable[[RoomScene], None], monkeypatch: pytest.MonkeyPatch) -> base.Scene:
    """A rendered room of three frames, changed, through the border."""
    room = room_scene(frames=3, width=96, height=72)
    change(room)
    monkeypatch.setattr(base, "loaders", {room.dataset: type("Rooms", (), {"open": lambda self, ref: room})()})
    return open_scene(base.SceneRef(room.dataset, room.id, Path("rooms")))


def scale_K(frame: base.Frame, fx: float, fy: float) -> None:
    K = frame.camera.K.copy()
    K[0, 0] *= fx
    K[1, 1] *= fy
    frame.camera = Camera(K, *frame.camera.size)


def shift(frame: base.Frame, metres: float) -> None:
    frame.world_from_camera = frame.world_from_camera.copy()
    frame.world_from_camera[0, 3] += metres


def grow_first_box(scene: base.Scene, factor: float) -> None:
    first = scene.objects[0]
    box = replace(first.box, size_m=first.box.size_m * factor)
    scene.objects = (replace(first, box=box), *scene.objects[1:])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda s: shift(s.frames[1], 7e6), "coordinate 7e+06 m; expected -10000 to 10000 m"),
        (lambda s: scale_K(s.frames[1], 1, 3), "ratio of the focal lengths 3; expected 0.5 to 2"),
        (lambda s: scale_K(s.frames[1], 1e6, 1e6), "focal length over the longer side"),
    ],
)
def test_a_frame_is_left_out_and_counted(change: Any, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = open_changed(change, monkeypatch)
    assert [frame.id for frame in scene.frames] == ["0", "20"]
    assert Counter(issue.reason for issue in scene.issues)["implausible"] == 1
    assert told in scene.issues[-1].detail
    assert "frame 10" in scene.issues[-1].detail


def test_a_box_of_1e34_m_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(room_scene(frames=3, width=96, height=72).objects)
    scene = open_changed(lambda s: grow_first_box(s, 1e34), monkeypatch)
    assert len(scene.objects) == count - 1 > 0
    assert len(scene.frames) == 3
    assert "side of a box" in scene.issues[-1].detail


def test_a_scene_without_a_plausible_frame_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def shift_all(scene: base.Scene) -> None:
        for frame in scene.frames:
            shift(frame, 7e6)

    with pytest.raises(SceneError, match=r"no plausible frame \(.*coordinate 7e\+06 m"):
        open_changed(shift_all, monkeypatch)


def test_a_sound_scene_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = open_changed(lambda s: None, monkeypatch)
    assert len(scene.frames) == 3
    assert not any(issue.reason == "implausible" for issue in scene.issues)


@pytest.mark.parametrize("unit", [3e38, 1000.0, np.nan, -1.0])
def test_depth_beyond_the_law_of_its_sensor_costs_the_frame(unit: float) -> None:
    room = room_scene(frames=2, width=96, height=72)
    sound = room.frames[0].depth_m()
    vars(room.frames[0])["depth_m"] = lambda: np.full_like(sound, np.float32(unit))
    with pytest.raises(FrameError, match=r"depth of frame 0: found depth of a sensor .*; expected 0 to 30 m"):
        decode_depth(room.frames[0], "sensor")
    view = SceneView(room, Gates())
    assert [(reject.key, reject.reason) for reject in view.rejected if reject.reason == "unreadable"] == [
        ("0", "unreadable")
    ]


def test_a_few_stray_pixels_count_as_unknown() -> None:
    room = room_scene(frames=2, width=96, height=72)
    sound = room.frames[0].depth_m().copy()
    stray = sound.copy()
    stray[0, :5] = 3e38, np.inf, np.nan, -2.0, 31.0
    vars(room.frames[0])["depth_m"] = lambda: stray
    got = decode_depth(room.frames[0], "sensor")
    assert (got[0, :5] == 0).all()
    np.testing.assert_array_equal(got[1:], sound[1:])


def test_a_byte_order_mark_does_not_drop_the_alignment(tmp_path: Path) -> None:
    folder = scan_folder(tmp_path)
    write_python_export(folder, pictures(2))
    turn = "axisAlignment = 0 -1 0 1 1 0 0 2 0 0 1 3 0 0 0 1\n"
    (folder / f"{folder.name}.txt").write_text(turn, encoding="utf-8")
    plain = [frame.world_from_camera for frame in open_scene(discover(tmp_path)[0]).frames]
    (folder / f"{folder.name}.txt").write_text(turn, encoding="utf-8-sig")
    marked = [frame.world_from_camera for frame in open_scene(discover(tmp_path)[0]).frames]
    np.testing.assert_array_equal(plain, marked)


def test_a_byte_order_mark_costs_no_pose(tmp_path: Path) -> None:
    poses = wildrgbd_writer.write_scene(tmp_path) / "cam_poses.txt"
    poses.write_text(poses.read_text(), encoding="utf-8-sig")
    assert len(open_scene(discover(tmp_path)[0]).frames) == 4
