"""Which objects may be asked about in a frame, against scenes worked out by hand and ray-cast ones."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.tasks.object_scenes import board_view, cuboid, depth_of, room_view, thing
from vgbench_gen.core.types import FloatArray, OrientedBox
from vgbench_gen.geometry import boxes
from vgbench_gen.geometry.poses import quaternion_to_matrix
from vgbench_gen.scenes.base import FrameObject, SceneObject
from vgbench_gen.tasks import _objects
from vgbench_gen.tasks._objects import FrameObjects, cross_box, gate_objects, order_in_strata, sort_depth_pixels

CRATE = thing("crate", [0, 0, 2.0], [0.6, 0.6, 0.4])  # front face at 1.8 m: 100 x 100 px around the centre


def seen(depth: FloatArray, *objects: SceneObject, listed: tuple[FrameObject, ...] = ()) -> FrameObjects:
    view = board_view(depth, objects, listed)
    return gate_objects(view.frames[0], view)


def reasons(objects: FrameObjects) -> dict[str, str]:
    return {name: reason for name, reason, _, _ in objects.dropped}


def test_a_crate_in_front_of_a_wall_is_fully_visible_and_drawn_around_its_projection() -> None:
    found = seen(depth_of([CRATE]), CRATE).found
    assert [item.instance_id for item in found] == ["crate"]
    assert found[0].visible == 1.0
    # 159.5 -+ 300 * 0.3 / 1.8 = 109.5 .. 209.5
    assert np.abs(np.array(found[0].rect_px) - [109.5, 69.5, 209.5, 169.5]).max() <= 0.5
    assert found[0].margins["area"] == pytest.approx(100 * 100 / (320 * 240) / 0.005, rel=0.03)


@pytest.mark.parametrize(("columns", "visible"), [(20, 0.8), (33, 0.67)])
def test_the_visible_fraction_is_what_an_occluder_leaves(columns: int, visible: float) -> None:
    depth = depth_of([CRATE])
    depth[:, : 110 + columns] = 1.0
    (found,) = seen(depth, CRATE).found
    assert found.visible == pytest.approx(visible, abs=0.015)


def test_hidden_objects_are_dropped_with_the_measured_fraction() -> None:
    depth = depth_of([CRATE])
    depth[:, :180] = 1.0
    ((name, reason, value, limit),) = seen(depth, CRATE).dropped
    assert (name, reason, limit) == ("crate", "object_hidden", 0.5)
    assert value == pytest.approx(0.3, abs=0.015)


def test_background_seen_through_a_chair_does_not_hide_it() -> None:
    depth = depth_of([CRATE])
    depth[(np.arange(240) - 69) // 10 % 2 == 1] = 4.0  # the wall shows between slats
    (found,) = seen(depth, CRATE).found
    assert found.visible == 1.0
    assert found.margins["area"] == pytest.approx(100 * 50 / (320 * 240) / 0.005, rel=0.05)


def test_a_rectangle_that_mostly_shows_something_else_is_dropped() -> None:
    depth = depth_of([CRATE])
    depth[(np.arange(240) - 69) % 5 >= 2] = 4.0  # three rows in five show the wall behind
    ((name, reason, value, limit),) = seen(depth, CRATE).dropped
    assert (name, reason, limit) == ("crate", "object_share", 0.5)
    assert value == pytest.approx(0.4, abs=0.02)


def test_what_stands_in_a_box_is_not_the_objects_own() -> None:
    """A chair pushed under a table: the pixels in the chair's box are the chair's, whatever the table's box holds."""
    depth = depth_of([CRATE])
    chair = thing("chair", [-0.2, 0, 1.9], [0.4, 0.6, 0.3], label="chair")  # the left half of its front
    assert [item.instance_id for item in seen(depth, CRATE).found] == ["crate"]
    dropped = {name: (reason, value) for name, reason, value, _ in seen(depth, CRATE, chair).dropped}
    reason, value = dropped["crate"]
    assert reason == "object_hidden"
    assert value == pytest.approx(0.47, abs=0.02)
    slim = replace(chair, box=cuboid([-0.3, 0, 1.9], [0.2, 0.6, 0.3]))
    crate = next(item for item in seen(depth, CRATE, slim).found if item.instance_id == "crate")
    assert crate.visible == pytest.approx(0.81, abs=0.02)
    # What holds the crate itself, and a part of the building, take nothing from it.
    rack = thing("rack", [0, 0, 2.0], [2.0, 2.0, 1.0], label="rack")
    wall = replace(slim, label="wall")
    assert next(item for item in seen(depth, CRATE, rack, wall).found if item.instance_id == "crate").visible == 1.0


@pytest.mark.parametrize("label", ["door", "kitchen_cabinets", "window", "counter", "curtain"])
def test_things_whose_box_says_nothing_of_their_end_are_counted_and_not_asked(label: str) -> None:
    result = seen(depth_of([CRATE]), replace(CRATE, label=label))
    assert not result.found
    assert reasons(result) == {"crate": "object_unbounded"}


def test_two_hundredths_of_the_projection_may_leave_the_image() -> None:
    for shift_m, dropped in ((0.668, {}), (0.676, {"x": "object_cut_off"})):
        # The front is 100 px wide and ends at 159.5 + 300 / 1.8 * (shift + 0.3); the image ends at 319.5.
        item = thing("x", [shift_m, 0, 1.8 + 5e-4], [0.6, 0.6, 1e-3])
        assert reasons(seen(depth_of([item]), item)) == dropped


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (thing("x", [0, 0, 5.4], [1.5, 1.5, 0.4]), "object_far"),
        (thing("x", [0, 0, 0.35], [0.1, 0.1, 0.1]), "object_near"),
        (thing("x", [0, 0, 1.0], [0.5, 0.03, 0.04]), "object_thin"),
        (thing("x", [1.1, 0, 2.0], [0.6, 0.6, 0.4]), "object_cut_off"),
        (thing("x", [0, 0, 3.0], [0.15, 0.15, 0.15]), "object_small"),
        (thing("x", [0, 0, 1.0], [0.6, 0.6, 2.6]), "object_around_camera"),
    ],
)
def test_each_gate_names_itself(item: SceneObject, reason: str) -> None:
    result = seen(depth_of([item], 7.0), item)
    assert not result.found
    assert reasons(result) == {"x": reason}


def test_unknown_depth_decides_nothing() -> None:
    depth = depth_of([CRATE])
    depth[:, ::2] = 0
    assert reasons(seen(depth, CRATE)) == {"crate": "object_depth_unknown"}


def test_a_rectangle_that_fits_two_things_is_ambiguous_unless_the_other_is_hidden() -> None:
    twin = thing("twin", [0, 0.05, 2.02], [0.65, 0.65, 0.4], label="object")
    assert reasons(seen(depth_of([CRATE]), CRATE, twin))["crate"] == "object_ambiguous"
    wall = replace(twin, label="wall")
    assert [item.instance_id for item in seen(depth_of([CRATE]), CRATE, wall).found] == ["crate"]
    hidden = thing("hidden", [0, 0, 2.9], [0.87, 0.87, 0.4])
    assert [item.instance_id for item in seen(depth_of([CRATE, hidden]), CRATE, hidden).found] == ["crate"]


@pytest.mark.parametrize("label", ["wall", "floor", "door_frame", "object", "unknown", ""])
def test_building_parts_and_unnamed_things_are_never_asked(label: str) -> None:
    result = seen(depth_of([CRATE]), replace(CRATE, label=label))
    assert not result.found
    assert not result.dropped


def test_the_frame_list_decides_what_is_seen_where_there_is_one() -> None:
    whole = FrameObject("crate", "crate", cuboid([0, 0, 2], [0.6, 0.6, 0.4], "camera"), (110, 70, 210, 170))
    depth = depth_of([CRATE])
    assert seen(depth, CRATE, listed=(whole,)).found
    corner = replace(whole, rendered_px=(110.0, 70.0, 150.0, 110.0))
    assert reasons(seen(depth, CRATE, listed=(corner,))) == {"crate": "object_rect_unlike"}
    other = replace(whole, instance_id="another")
    assert reasons(seen(depth, CRATE, listed=(other,))) == {"crate": "object_not_listed"}


def test_crossings_agree_with_points_along_the_ray() -> None:
    rng = np.random.default_rng(3)
    box = OrientedBox(
        np.array([0.2, -0.1, 2.0]), np.array([0.8, 0.5, 0.6]), quaternion_to_matrix(rng.normal(size=4)), "camera"
    )
    rays = np.concatenate([rng.uniform(-0.4, 0.4, (200, 2)), np.ones((200, 1))], axis=1)
    entry, leave = cross_box(rays, box)
    steps = np.linspace(0.5, 3.5, 3001)
    inside = boxes.contains(box, (rays[:, None] * steps[None, :, None]).reshape(-1, 3)).reshape(200, -1)
    hit = np.asarray(inside.any(axis=1))
    assert 20 < hit.sum() < 190
    assert ((entry < leave) | ~hit).all()
    assert np.abs(entry[hit] - steps[inside[hit].argmax(axis=1)]).max() < 0.002
    assert np.abs(leave[hit] - steps[3000 - inside[hit][:, ::-1].argmax(axis=1)]).max() < 0.002
    assert not hit[entry > leave].any()


def test_drawn_rectangles_hold_the_projected_corners_and_stay_inside() -> None:
    view = room_view()
    rects = 0
    for frame in view.frames:
        for found in gate_objects(frame, view).found:
            uv, _ = cv2.projectPoints(boxes.corners(found.box), np.zeros(3), np.zeros(3), frame.camera.K, None)
            low, high = uv[:, 0].min(axis=0), uv[:, 0].max(axis=0)
            x1, y1, x2, y2 = found.rect_px
            assert 1 <= x1 < x2 <= frame.camera.width - 2
            assert 1 <= y1 < y2 <= frame.camera.height - 2
            expected = np.clip([*low, *high], 1, [318, 238, 318, 238])
            assert np.abs(expected - found.rect_px).max() <= 0.5
            rects += 1
    assert rects >= 8


def test_another_world_frame_finds_the_same_objects() -> None:
    here, there = room_view(), room_view(moved=True)
    for a, b in zip(here.frames, there.frames, strict=True):
        first, second = gate_objects(a, here), gate_objects(b, there)
        assert [item.rect_px for item in first.found] == [item.rect_px for item in second.found]
        assert [entry[:2] for entry in first.dropped] == [entry[:2] for entry in second.dropped]


def test_strata_take_turns_and_new_targets_come_first() -> None:
    values = [1.01] * 6 + [3.0] * 2
    targets = ["a", "a", "a", "a", "b", "c", "d", "d"]
    for seed in range(20):
        order = order_in_strata(values, targets, np.random.default_rng(seed)).tolist()
        assert sorted(order) == list(range(8))
        assert {values[k] for k in order[:2]} == {values[k] for k in order[2:4]} == {1.01, 3.0}
        near = [targets[k] for k in order if values[k] < 2]
        assert sorted(near[:3]) == ["a", "b", "c"]
    assert len(order_in_strata([], [], np.random.default_rng(0))) == 0


def test_objects_are_measured_once_per_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    view = board_view(depth_of([CRATE]), [CRATE])
    calls: list[int] = []

    def counted(*args: object) -> _objects.Sight:
        calls.append(1)
        return sort_depth_pixels(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(_objects, "sort_depth_pixels", counted)
    first = gate_objects(view.frames[0], view)
    assert gate_objects(view.frames[0], view) is first
    assert len(calls) == 1
