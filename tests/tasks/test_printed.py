"""A fact keeps which of its images show print, and has no mirrored partner where one of them does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.small_room import small_room, small_view
from vgbench_gen.core.gates import FrameGates, Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Camera, Fact
from vgbench_gen.geometry import boxes, projection
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.base import SceneObject
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._printed import list_printed_frames
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.records import make_camera_record

GATES = Gates()
STROKES_ARE_PRINT = GATES.model_copy(update={"frame": FrameGates(print_share_max=1.0)})


def make_fact(gates: Gates, name: str = "metric_depth") -> Fact:
    view = SceneView(small_room(), gates)
    task = tasks[name].with_gates(gates)
    drafts = task.drafts(view, rng_for(0, name), 4)
    fact = next(draft for draft in drafts if isinstance(draft, Fact))
    cameras = {frame_id: make_camera_record(view.frame(frame_id).camera) for frame_id in fact.frame_ids}
    return replace(fact, cameras=cameras)


def test_a_texture_that_covers_everything_is_no_print() -> None:
    view = small_view()
    names = [frame.id for frame in view.frames]
    assert min(frame.print_share for frame in view.frames) > GATES.frame.print_share_max
    assert list_printed_frames(view, names) == []
    assert list_printed_frames(SceneView(small_room(), STROKES_ARE_PRINT), names) == sorted(names)


@pytest.mark.parametrize("name", ["metric_depth", "relative_depth"])
def test_an_image_with_print_has_no_mirrored_partner(name: str) -> None:
    plain, printed = make_fact(GATES, name), make_fact(STROKES_ARE_PRINT, name)
    assert not tasks[name].shows_print(plain)
    assert tasks[name].counterpart(plain) is not None
    assert tasks[name].fact_evidence.of(printed).printed == list(printed.frame_ids)
    assert tasks[name].shows_print(printed)
    assert tasks[name].counterpart(printed) is None
    # Print in an image that is not shown does no harm.
    elsewhere = tasks[name].fact_evidence.of(printed).with_fields(printed=["another frame"]).write()
    assert tasks[name].counterpart(replace(printed, evidence=elsewhere)) is not None


def test_tasks_that_mirror_nothing_do_not_look() -> None:
    fact = make_fact(STROKES_ARE_PRINT, "homography_to_matrix")
    assert tasks["homography_to_matrix"].fact_evidence.of(fact).printed is None


def test_labelled_things_bear_print_where_they_are_seen() -> None:
    scene = small_room()
    view = SceneView(scene, GATES)
    named = [
        replace(item, label=label) for item, label in zip(scene.objects, ("wall_clock", *["chair"] * 99), strict=False)
    ]
    seen = [frame.id for frame in view.frames if covers(frame.camera, frame.camera_from_world, named[0]) >= 0.002]
    assert seen
    view.objects = tuple(named)
    assert list_printed_frames(view, [frame.id for frame in view.frames]) == sorted(seen)
    view.objects = tuple(replace(item, label="chair") for item in named)
    assert list_printed_frames(view, [frame.id for frame in view.frames]) == []


def covers(camera: Camera, camera_from_world: np.ndarray, item: SceneObject) -> float:
    """Share of the image that the projected box covers, counted in pixels; 0 where it reaches behind the camera."""
    uv, z = projection.project(camera, transform(camera_from_world, boxes.corners(item.box)))
    if (z <= 0).any():
        return 0.0
    u, v = np.arange(camera.width), np.arange(camera.height)
    inside_u = (u >= uv[:, 0].min()) & (u <= uv[:, 0].max())
    inside_v = (v >= uv[:, 1].min()) & (v <= uv[:, 1].max())
    return float(inside_u.mean() * inside_v.mean())
