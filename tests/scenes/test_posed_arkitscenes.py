"""ARKitScenes: recordings written of the room after its documentation, the sample, and what is broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.scene_factory import RoomScene
from tests.scenes.posed_compare import assert_boxes, open_only
from tests.scenes.posed_writer import make_room, stored_poses
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.health import summarise_health
from vgbench_gen.scenes.readings import Reading

VIDEO = "47333471"
W2C = Reading("world to camera")
UP = np.array([0.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def room() -> RoomScene:
    return make_room(frames=7, width=128, height=96)


def times(room: RoomScene) -> list[float]:
    """Ten poses a second, on a clock that does not begin at nought."""
    return [98112.4 + 0.1 * i for i in range(len(room.frames))]


def write(folder: Path, room: RoomScene) -> Path:
    """`lowres_*` and the trajectory: pictures 3 ms off their poses, intrinsics 1 ms off, and pictures between poses."""
    for name in ("lowres_wide", "lowres_depth", "lowres_wide_intrinsics"):
        (folder / name).mkdir(parents=True)
    rows = []
    for i, (time, frame, pose) in enumerate(zip(times(room), room.frames, stored_poses(room, W2C), strict=True)):
        turn = Rotation.from_matrix(pose[:3, :3]).as_rotvec()
        rows.append(" ".join(f"{value:.9f}" for value in (time, *turn, *pose[:3, 3])))
        for late in (0.003, 0.05):  # the second is a picture that no pose belongs to
            name = f"{VIDEO}_{time + late:.3f}.png"
            color = cv2.cvtColor(frame.color(), cv2.COLOR_RGB2BGR)
            cv2.imwrite(str(folder / "lowres_wide" / name), color if late < 0.01 else color // 2)
            steps = np.rint(frame.depth_m() * 1000).astype(np.uint16)
            cv2.imwrite(str(folder / "lowres_depth" / name), steps)
            c = frame.camera
            text = f"{c.width} {c.height} {c.fx + i:.7f} {c.fy + i:.7f} {c.cx:.7f} {c.cy:.7f}"
            (folder / "lowres_wide_intrinsics" / f"{VIDEO}_{time + late + 0.001:.3f}.pincam").write_text(text)
    (folder / "lowres_wide.traj").write_text("\n".join(rows) + "\n")
    return folder


def annotate(path: Path, room: RoomScene, change: Callable[[list[Any]], Any] = lambda data: data) -> None:
    data: list[Any] = []
    for number, each in enumerate(room.objects):
        # The rows of the nine numbers are the axes, in any order and of either sense.
        order = np.roll(np.arange(3), number)
        axes = each.box.rotation.T[order] * np.array([[(-1.0) ** number], [1.0], [1.0]])
        box = {
            "centroid": each.box.center_m.tolist(),
            "axesLengths": each.box.size_m[order].tolist(),
            "normalizedAxes": axes.ravel().tolist(),
        }
        word = each.label.title() + " "
        data.append({"uid": f"u-{number}", "label": word, "segments": {"obbAligned": box, "obb": {}}})
    path.write_text(json.dumps({"skipped": False, "data": change(data)}))


def test_3dod_is_the_room(tmp_path: Path, room: RoomScene) -> None:
    folder = write(tmp_path / "Validation" / VIDEO / f"{VIDEO}_frames", room)
    annotate(folder.parent / f"{VIDEO}_3dod_annotation.json", room)
    (ref,) = discover(tmp_path)
    assert (ref.scene_id, ref.variant) == (VIDEO, "arkitscenes")
    with open_only(tmp_path) as scene:
        assert (scene.total_frames, len(scene.frames)) == (14, 7)
        for i, frame in enumerate(scene.frames):  # each has the focal length of its own file
            assert frame.camera.fx == pytest.approx(room.frames[i].camera.fx + i)
            assert frame.timestamp_s == pytest.approx(times(room)[i])
            np.testing.assert_allclose(frame.world_from_camera, room.frames[i].world_from_camera, atol=1e-6)
            np.testing.assert_array_equal(frame.color(), room.frames[i].color())
            np.testing.assert_allclose(frame.depth_m(), room.frames[i].depth_m(), atol=0.00051)
        assert_boxes(scene.objects, room.objects, UP)
        assert scene.objects[0].instance_id == "u-0"
        assert sum(issue.reason == "pose_missing" for issue in scene.issues) == 7
        np.testing.assert_array_equal(scene.up_world, UP)


def test_raw_is_the_room(tmp_path: Path, room: RoomScene) -> None:
    folder = write(tmp_path / "raw" / "Training" / VIDEO, room)
    annotate(folder / f"{VIDEO}_3dod_annotation.json", room)
    (folder / "confidence").mkdir()
    for path in (folder / "lowres_depth").iterdir():
        sure = np.full((48, 64), 2, np.uint8)
        sure[:, :10] = 0
        cv2.imwrite(str(folder / "confidence" / path.name), sure)
    with open_only(tmp_path) as scene:
        assert scene.id == VIDEO
        assert_boxes(scene.objects, room.objects, UP)
        depth = scene.frames[3].depth_m()
        assert not depth[:, :10].any()
        np.testing.assert_allclose(depth[:, 10:], room.frames[3].depth_m()[:, 10:], atol=0.00051)


def test_no_annotation_is_no_loss(tmp_path: Path, room: RoomScene) -> None:
    write(tmp_path / VIDEO / f"{VIDEO}_frames", room)
    with open_only(tmp_path) as scene:
        assert not scene.objects
        assert summarise_health(scene).ok


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda data: [data[0] | {"segments": None}, *data[1:]], "no segments.obbAligned"),
        (lambda data: [data[0] | {"label": 7}, *data[1:]], "no label"),
        (lambda data: [spoil_box(data[0], normalizedAxes=[1.0] * 9), *data[1:]], "R^T R"),
        (lambda data: [spoil_box(data[0], normalizedAxes=[1, 0, 0, 0, 0.8, 0.6, 0, -0.6, 0.8]), *data[1:]], "vertical"),
        (lambda data: [spoil_box(data[0], axesLengths=[1e9, 1, 1]), *data[1:]], "side of a box"),
        (lambda data: [spoil_box(data[0], axesLengths=[0, 1, 1]), *data[1:]], "sides above 0"),
        (lambda data: [spoil_box(data[0], centroid="x y z"), *data[1:]], "3 numbers"),
        (lambda data: [*data[1:], data[1]], "a second time"),
        (lambda data: [[], *data[1:]], "no label"),
    ],
)
def test_a_damaged_object_costs_itself(
    tmp_path: Path, room: RoomScene, spoil: Callable[[list[Any]], Any], why: str
) -> None:
    folder = write(tmp_path / VIDEO / f"{VIDEO}_frames", room)
    annotate(folder.parent / f"{VIDEO}_3dod_annotation.json", room, spoil)
    with open_only(tmp_path) as scene:
        assert len(scene.objects) == len(room.objects) - 1
        (issue,) = [issue for issue in scene.issues if issue.reason == "box_unusable"]
        assert why in issue.detail


def spoil_box(entry: dict[str, Any], **values: Any) -> dict[str, Any]:
    return entry | {"segments": {"obbAligned": entry["segments"]["obbAligned"] | values}}


def test_a_damaged_annotation_costs_the_boxes(tmp_path: Path, room: RoomScene) -> None:
    folder = write(tmp_path / VIDEO / f"{VIDEO}_frames", room)
    (folder.parent / f"{VIDEO}_3dod_annotation.json").write_text('{"data": [')
    with open_only(tmp_path) as scene:
        assert len(scene.frames) == 7
        assert "no boxes" in next(issue.detail for issue in scene.issues if issue.reason == "file_unusable")


def test_an_annotation_elsewhere_is_not_read(tmp_path: Path, room: RoomScene) -> None:
    folder = write(tmp_path / "a" / VIDEO / f"{VIDEO}_frames", room)
    annotate(tmp_path / "elsewhere.json", room)
    (folder.parent / f"{VIDEO}_3dod_annotation.json").symlink_to(tmp_path / "elsewhere.json")
    with open_only(tmp_path) as scene:
        assert not scene.objects
        assert "a link or path to" in next(issue.detail for issue in scene.issues if issue.reason == "file_unusable")


def test_the_sample(recordings: Path) -> None:
    with open_only(recordings / "written" / "arkitscenes") as scene:
        health = summarise_health(scene)
        assert health.ok
        assert health.agree > 0.6
        assert health.agree_next < 0.2
        assert [each.label for each in scene.objects] == ["cabinet"]
