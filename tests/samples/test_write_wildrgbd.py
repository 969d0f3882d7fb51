from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from tests.samples.conftest import Opened
from vgbench_gen.geometry.poses import invert
from vgbench_gen.geometry.projection import valid_mask
from vgbench_gen.samples.layout import expose_frame
from vgbench_gen.scenes.wildrgbd import WildRGBDScene

Open = Callable[[str, int], Opened]


@pytest.mark.parametrize("number", [0, 1])
def test_what_is_written_is_what_the_loader_reads(opened: Open, number: int) -> None:
    scene, spec, capture, path = opened("wildrgbd", number)
    assert isinstance(scene, WildRGBDScene)
    with scene:
        assert (scene.id, scene.issues) == (spec.scene_id, [])
        assert len(scene.frames) == spec.frames
        for index, frame in enumerate(scene.frames):
            pose = capture.world_from_camera[index]
            look = capture.world.look(capture.camera, pose)
            # The world starts at the first camera: gravity is lost on the way.
            expected = invert(capture.world_from_camera[0]) @ pose
            assert np.allclose(frame.world_from_camera, expected, atol=1e-8)
            assert np.allclose(frame.camera.K, capture.camera.K)
            exposed = expose_frame(look.color, capture.camera, capture, spec, index)
            assert np.array_equal(frame.color(), exposed)
            off = np.abs(exposed.astype(int) - look.color).mean()
            assert (off < 4.5) == (index not in capture.blurred)
            mask = frame.object_mask()
            assert mask is not None
            assert np.array_equal(mask, look.instance == capture.focus)
            read = frame.depth_m()
            assert read.shape == look.depth_m.shape
            assert np.median(np.abs(read - look.depth_m)[valid_mask(read)]) < 0.02
    stored = json.loads((path / "metadata").read_text())
    assert stored["K"] == [capture.camera.fx, 0, 0, 0, capture.camera.fy, 0, capture.camera.cx, capture.camera.cy, 1]
    lists = json.loads((path.parents[1] / "nvs_list.json").read_text())
    assert lists[spec.split] == [f"scenes/{path.name}"]
