from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.samples.conftest import Opened
from vgbench_gen.geometry.boxes import corners
from vgbench_gen.geometry.projection import valid_mask
from vgbench_gen.samples.base import Capture

Open = Callable[[str, int], Opened]


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / max(float(np.mean((a.astype(float) - b) ** 2)), 1e-9)))


def check_likeness(psnr_of_frame: dict[int, float], capture: Capture) -> None:
    """Pictures are those of the world, up to compression; shaken ones are clearly less so."""
    sharp = [value for number, value in psnr_of_frame.items() if number not in capture.blurred]
    shaken = [value for number, value in psnr_of_frame.items() if number in capture.blurred]
    assert min(sharp) > 30
    assert max(shaken, default=0.0) < min(sharp) - 2


def test_what_is_written_is_what_the_loader_reads(opened: Open) -> None:
    scene, spec, capture, path = opened("scannet", 0)
    with scene:
        assert scene.total_frames == spec.frames
        assert [(i.frame_id, i.reason) for i in scene.issues] == [(str(n), "lost_pose") for n in capture.lost]
        assert [f.id for f in scene.frames] == [str(n) for n in range(spec.frames) if n not in capture.lost]
        likeness: dict[int, float] = {}
        for frame in scene.frames:
            pose = capture.world_from_camera[int(frame.id)]
            # The alignment brings the scan back to the world it was made in; poses are stored with 32 bits.
            assert np.allclose(frame.world_from_camera, pose, atol=1e-5)
            assert np.allclose(frame.camera.K, capture.camera.K, atol=1e-4)
            likeness[int(frame.id)] = psnr(frame.color(), capture.world.look(capture.camera, pose).color)
            read, exact = frame.depth_m(), capture.world.render_depth(frame.depth_camera, pose)[0]
            error = (read - exact)[valid_mask(read)]
            assert np.median(np.abs(error / exact[valid_mask(read)] ** 2)) < 2e-3
            assert 0.6 < valid_mask(read).mean() < 0.99
        check_likeness(likeness, capture)
        color, depth = scene.frames[0].camera, scene.frames[0].depth_camera
        assert depth.size == (640, 480)
        # Corner pixels lie on corner pixels, while the focal lengths follow the sizes.
        assert np.isclose(depth.cx, color.cx * 639 / (color.width - 1), atol=1e-3)
        assert np.isclose(depth.fx, color.fx * 640 / color.width, atol=1e-3)
    written = dict(line.split(" = ") for line in (path / f"{spec.scene_id}.txt").read_text().splitlines())
    alignment = np.array(written["axisAlignment"].split(), float).reshape(4, 4)
    assert np.abs(alignment - np.eye(4)).max() > 0.5


def test_objects_come_from_the_annotated_mesh(opened: Open) -> None:
    scene, _, capture, _ = opened("scannet", 5)
    with scene:
        assert [o.label for o in scene.objects] == [o.label for o in capture.world.objects]
        for item, truth in zip(scene.objects, capture.world.objects, strict=True):
            assert item.points_m is not None
            assert len(item.points_m) > 20
            gap = np.abs(corners(item.box)[:, None] - corners(truth.box)).max(axis=-1).min(axis=1)
            assert gap.max() < 0.02, item.label


def test_test_scans_have_no_annotation(opened: Open) -> None:
    scene, spec, _, path = opened("scannet", 9)
    with scene:
        assert spec.split == "test"
        assert not scene.objects
    assert sorted(p.name for p in path.iterdir()) == [
        f"{spec.scene_id}.sens",
        f"{spec.scene_id}.txt",
        f"{spec.scene_id}_vh_clean_2.ply",
    ]
    assert "axisAlignment" not in (path / f"{spec.scene_id}.txt").read_text()
    assert (path.parents[1] / "scannetv2_test.txt").read_text().split() == [spec.scene_id]
