from __future__ import annotations

import json
import tarfile
from collections.abc import Callable

import numpy as np
import pytest

from tests.samples.conftest import Opened
from vgbench_gen.geometry.boxes import corners, transform_box
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import invert
from vgbench_gen.samples.encode import convert_to_millimetres
from vgbench_gen.samples.layout import expose_frame
from vgbench_gen.scenes._ca1m_members import Members
from vgbench_gen.scenes.ca1m import CA1MFrame
from vgbench_gen.scenes.files import decode_depth_u16

Open = Callable[[str, int], Opened]


@pytest.mark.parametrize("number", [0, 1])
def test_what_is_written_is_what_the_loader_reads(opened: Open, number: int) -> None:
    scene, spec, capture, path = opened("ca1m", number)
    with scene:
        assert (scene.id, scene.issues) == (spec.scene_id, [])
        assert len(scene.frames) == spec.frames - len(capture.lost)
        first = scene.frames[0]
        # Everything is known up to the frame the scanner chose; from the first camera on nothing is free.
        file_from_world = first.world_from_camera @ invert(capture.world_from_camera[0])
        assert np.allclose(file_from_world[2, :3], (0, 0, 1), atol=1e-9)
        assert not np.allclose(file_from_world, np.eye(4), atol=0.1)
        for index, frame in enumerate(scene.frames):
            assert isinstance(frame, CA1MFrame)
            pose = capture.world_from_camera[index]
            look = capture.world.look(capture.camera, pose)
            assert np.allclose(frame.world_from_camera, file_from_world @ pose, atol=1e-9)
            assert frame.camera.size == capture.camera.size
            assert np.array_equal(frame.camera.K, capture.camera.K)
            exposed = expose_frame(look.color, capture.camera, capture, spec, index)
            assert np.array_equal(frame.color(), exposed)
            off = np.abs(exposed.astype(int) - look.color).mean()
            assert (off < 4.5) == (index not in capture.blurred)
            exact, instance, _ = capture.world.render_depth(frame.depth_camera, pose)
            read = frame.depth_m()
            assert np.abs(read - exact)[read > 0].max() < 6e-3  # laser noise and rounding to millimeters
            window = next(o.instance_id for o in capture.world.objects if o.label == "window")
            assert not read[instance == window].any()
            assert 0.7 < (read > 0).mean() < 1
            camera = resize_camera(capture.camera, capture.camera.width // 4, capture.camera.height // 4)
            member = f"{scene.id}/{frame.id}.wide/depth.png"
            sensor = decode_depth_u16(Members(path).read(member), member, camera.size) / 1000
            error = np.abs(sensor - capture.world.render_depth(camera, pose)[0])[sensor > 0]
            assert 0.002 < np.median(error) < 0.02


def test_boxes_labels_and_visible_parts(opened: Open) -> None:
    scene, _, capture, _ = opened("ca1m", 0)
    with scene:
        file_from_world = scene.frames[0].world_from_camera @ invert(capture.world_from_camera[0])
        assert [o.label for o in scene.objects] == [o.label for o in capture.world.objects]
        for item, truth in zip(scene.objects, capture.world.objects, strict=True):
            expected = corners(transform_box(truth.box, file_from_world, "world"))
            assert np.abs(np.sort(corners(item.box), 0) - np.sort(expected, 0)).max() < 1e-6
        ids = {item.instance_id: truth for item, truth in zip(scene.objects, capture.world.objects, strict=True)}
        frame, pose = scene.frames[2], capture.world_from_camera[2]
        instance = capture.world.look(capture.camera, pose).instance
        seen = frame.objects()
        assert {"table", "box", "stool", "wall"} <= {o.label for o in seen}
        for view in seen:
            truth = ids[view.instance_id]
            expected = corners(transform_box(truth.box, invert(pose), "camera"))
            assert np.abs(np.sort(corners(view.box), 0) - np.sort(expected, 0)).max() < 1e-6
            assert view.box.size_m[1] == pytest.approx(truth.box.size_m[2])  # the vertical extent stands second
            rows, columns = np.nonzero(instance == truth.instance_id)
            expected_px = (columns.min() - 0.5, rows.min() - 0.5, columns.max() + 0.5, rows.max() + 0.5)
            assert view.rendered_px == pytest.approx(expected_px)


def test_members_are_those_of_the_release(opened: Open) -> None:
    scene, spec, _, path = opened("ca1m", 0)
    scene.close()
    with tarfile.open(path) as archive:
        names = archive.getnames()
        assert all(member.mtime == 0 for member in archive.getmembers())
        assert names[-1] == f"{spec.scene_id}/world.gt/instances.json"
        assert len(names) == 14 * len(scene.frames) + 1
        assert len({name.partition(".")[0] for name in names[:14]}) == 1
        size = archive.extractfile(next(name for name in names if name.endswith("._wide/image/size")))
        assert size is not None
        assert size.read() == b"[256, 192]"  # the official reader splits at ", "
    assert path.name == f"ca1m-train-{spec.scene_id}.tar"
    assert (path.parent / "data" / "train.txt").read_text().split() == [path.name]
    assert json.loads((path.parent / "SAMPLES.json").read_text())["licence"] == "cc0-1.0"
    assert convert_to_millimetres(np.array([[0.0, -1.0, 1.2344, 99.0, np.nan]])).tolist() == [[0, 0, 1234, 0, 0]]
