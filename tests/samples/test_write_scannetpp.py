from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from tests.samples.conftest import Opened
from tests.samples.test_write_scannet import check_likeness, psnr
from vgbench_gen.geometry.boxes import corners, transform_box
from vgbench_gen.geometry.cameras import rotate_camera_by_quarters
from vgbench_gen.geometry.poses import invert
from vgbench_gen.geometry.projection import valid_mask
from vgbench_gen.scenes._scannetpp_poses import read_nerfstudio

Open = Callable[[str, int], Opened]


@pytest.mark.parametrize("number", [0, 3])
def test_iphone_scenes_are_what_the_loader_reads(opened: Open, number: int) -> None:
    scene, spec, capture, path = opened("scannetpp", number)
    with scene:
        assert [f.id for f in scene.frames] == [f"frame_{n:06d}" for n in range(spec.frames) if n not in capture.lost]
        file_from_world = scene.frames[0].world_from_camera @ invert(capture.world_from_camera[0])
        assert np.allclose(file_from_world[2, :3], (0, 0, 1), atol=1e-6)
        likeness: dict[int, float] = {}
        for frame in scene.frames:
            index = int(frame.id[-6:])
            pose = capture.world_from_camera[index]
            # A portrait take lies on its side in the file; the loader turns it up again.
            assert frame.camera.size == capture.camera.size
            assert np.allclose(frame.world_from_camera, file_from_world @ pose, atol=1e-9)
            likeness[index] = psnr(frame.color(), capture.world.look(frame.camera, pose).color)
            assert frame.valid_mask() is None
            read, exact = frame.depth_m(), capture.world.render_depth(frame.depth_camera, pose)[0]
            assert np.median(np.abs(read - exact)[valid_mask(read)]) < 0.02
            assert valid_mask(read).mean() > 0.7
        check_likeness(likeness, capture)
        stored = capture.camera if number == 0 else rotate_camera_by_quarters(capture.camera, 1)
        records = json.loads((path / "iphone" / "pose_intrinsic_imu.json").read_text())
        assert len(records) == len(scene.frames)
        assert np.allclose(records["frame_000000"]["intrinsic"], stored.K)
        assert stored.width > stored.height


def test_dslr_scenes_are_what_the_loader_reads(opened: Open) -> None:
    scene, spec, capture, path = opened("scannetpp", 1)
    with scene:
        left_out = {int(i.frame_id[-5:]): i.reason for i in scene.issues if i.frame_id}
        first = min(int(p.stem[3:]) for p in (path / "dslr" / "resized_images").iterdir())
        assert left_out == {first + n: "pose_missing" for n in capture.lost} | {
            first + n: "marked_bad" for n in capture.blurred
        }
        file_from_world = scene.frames[0].world_from_camera @ invert(capture.world_from_camera[0])
        assert np.allclose(file_from_world[2, :3], (0, 0, 1), atol=1e-6)
        for frame in scene.frames:
            pose = capture.world_from_camera[int(frame.id[-5:]) - first]
            assert np.allclose(frame.world_from_camera, file_from_world @ pose, atol=1e-9)
            assert psnr(frame.color(), capture.world.look(frame.camera, pose).color) > 28
            exact = capture.world.render_depth(frame.depth_camera, pose)[0]
            assert np.median(np.abs(frame.depth_m() - exact)) < 1e-4
        other = read_nerfstudio(path / "dslr" / "nerfstudio" / "transforms.json", "test")
        for frame in scene.frames:
            assert np.allclose(other.poses[frame.id].world_from_camera, frame.world_from_camera, atol=1e-9)
    lists = json.loads((path / "dslr" / "train_test_lists.json").read_text())
    assert lists["test"]
    assert not set(lists["test"]) & set(lists["train"])
    assert len(lists["test"] + lists["train"]) == spec.frames - len(capture.lost)


def test_objects_have_upright_boxes_in_a_positive_frame(opened: Open) -> None:
    scene, _, capture, path = opened("scannetpp", 0)
    with scene:
        file_from_world = scene.frames[0].world_from_camera @ invert(capture.world_from_camera[0])
        things = [o for o in capture.world.objects if not o.structural]
        assert [o.label for o in scene.objects] == [o.label for o in things]
        for item, truth in zip(scene.objects, things, strict=True):
            expected = corners(transform_box(truth.box, file_from_world, "world"))
            assert np.abs(np.sort(corners(item.box), 0) - np.sort(expected, 0)).max() < 1e-6
            assert item.points_m is not None
            assert (item.points_m > 0).all()
        assert not [issue for issue in scene.issues if "box" in issue.reason]
    groups = json.loads((path / "scans" / "segments_anno.json").read_text())["segGroups"]
    assert [g["label"] for g in groups] == [o.label for o in capture.world.objects]
    splits = (path.parents[1] / "splits" / "nvs_sem_train.txt").read_text().split()
    assert path.name in splits
