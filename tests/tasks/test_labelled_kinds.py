"""Kinds about labelled scenes: what released generators get wrong, each as a case, and what real captures show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.labelled_room import labelled_room, labelled_view
from tests.lenient import without_lines
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import FloatArray, Rejected
from vgbench_gen.geometry import boxes, poses
from vgbench_gen.geometry.floors import measure_area_m2
from vgbench_gen.geometry.overlap import compute_pairwise_states
from vgbench_gen.geometry.visibility import VISIBLE
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.opening import open_scene
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._floor_sights import find_corners, measure_overlooked_m2
from vgbench_gen.tasks._object_evidence import ObjectEvidence
from vgbench_gen.tasks._sightings import AREA_MIN, AREA_NONE, Sightings, find_links, get_sightings
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.directions import DirectionEvidence, DirectionTask, is_farther_both_ways
from vgbench_gen.tasks.nearest_object import NearestEvidence
from vgbench_gen.tasks.room_area import FloorEvidence
from vgbench_gen.tasks.seen import FramesEvidence, FramesTask, LabelledScene

UP = np.array([0.0, -1.0, 0.0])  # of a level camera
QUARTERS = ("front_right", "back_right", "back_left", "front_left")


def get_task(name: str) -> Any:
    return tasks[name].with_gates(without_lines(Gates()))


def answer(name: str, seen: Any) -> str:
    """The words of the answer; "" where it is not decided."""
    task = get_task(name)
    value, kept = task.settle(task.value(seen))
    return (seen.labels if isinstance(task, FramesTask) else QUARTERS)[int(value[0])] if kept["decided"] >= 1 else ""


def see(labels: list[str], *frames: list[float], about: str = "") -> FramesEvidence:
    return FramesEvidence(labels=labels, shares=np.array(frames), about=about)


def place(*at_m: float, name: str = "x") -> ObjectEvidence:
    """A cube of 20 cm in the frame of the first camera."""
    corners_m = np.array(at_m) + 0.1 * boxes.CORNER_SIGNS
    return ObjectEvidence(instance_id=name, label=name, corners_m=corners_m, visible=1.0)


# --- frames --------------------------------------------------------------------------------------------------------


def test_an_object_in_several_frames_counts_once_and_one_alone_counts_too() -> None:
    """OpenSpatial adds up frames and never says one; VLM-3R counts what is partly seen."""
    numbers = ["none in all", "one in all", "two in all", "three in all"]
    assert answer("object_count", see(numbers, [0.5, 0.0, 0.0], [0.6, 0.0, 0.0], about="chair")) == "one in all"
    assert answer("object_count", see(numbers, [0.5, 0.0, 0.4], [0.6, 0.3, 0.0], about="chair")) == "three in all"
    assert answer("object_count", see(numbers, [0.0, 0.0, 0.0], about="chair")) == "none in all"


def test_an_object_seen_at_fifteen_per_cent_is_neither_shown_nor_hidden() -> None:
    view = labelled_view()
    found = get_sightings(view)
    partly = (found.shares > 0.05) & (found.shares < 0.25)
    assert partly.sum() > 10
    assert not (partly & (found.shown | found.hidden)).any()
    for row, k in np.argwhere(partly)[:30].tolist():
        if (name := found.labels[k]) in found.names and len(found.list_alike(name)) == 1:
            assert np.isnan(found.measure_shown([row], [name])).all()
            assert k not in get_task("relative_direction").list_unique(view, [row])


def test_the_order_is_that_of_the_frames_shown() -> None:
    """VSI-Bench takes the order of the scan, whichever frames are shown."""
    labels = ["bed, cup, desk, lamp", "cup, desk, lamp, bed", "desk, lamp, bed, cup", "lamp, bed, cup, desk"]
    walk = np.repeat(np.eye(4), 2, axis=0)
    for k, said in enumerate(labels):
        shown = np.roll(walk, -2 * k, axis=0)
        assert answer("appearance_order", FramesEvidence(labels=labels, shares=shown)) == said
        again = np.concatenate([shown, shown[:1]])  # what is seen again had appeared before
        assert answer("appearance_order", FramesEvidence(labels=labels, shares=again)) == said
    assert answer("appearance_order", FramesEvidence(labels=labels, shares=walk[[0, 4, 2, 6]])) == ""


def test_frames_without_which_the_answer_changes_are_kept_with_it() -> None:
    task = get_task("object_existence")
    one = see(["bed", "cup", "desk", "lamp"], [0.0, 0.0, 0.0, 0.0], [0.4, 0.0, 0.0, 0.0])
    assert task.find_deciding(one) == (1,)
    assert task.find_deciding(see(["bed", "cup", "desk", "lamp"], [0.3, 0, 0, 0], [0.4, 0, 0, 0])) == ()
    count = see(["none in all", "one in all", "two in all", "three in all"], [0.5, 0.0], [0.5, 0.3], about="chair")
    assert get_task("object_count").find_deciding(count) == (1,)


def test_what_is_too_far_for_the_sensor_is_not_taken_for_absent() -> None:
    """Its color image shows it, and depth says nothing there."""
    view = SceneView(labelled_room(), Gates())
    known = get_sightings(view)
    row, k = np.argwhere(known.shown).tolist()[0]
    view.frames[row].depth_m = np.zeros_like(view.frames[row].depth_m)
    blind = Sightings(view)
    assert not blind.shown[row].any()
    assert not blind.hidden[row, k]
    outside = known.shares[row] + known._seen.unsure[row] == 0
    assert blind.hidden[row, outside].sum() > 0


def test_a_room_with_unlabelled_surface_shows_nothing_for_certain() -> None:
    """SpatialScore v2 takes what has no label for absent."""
    scene = labelled_room()
    scene.objects = [one for one in scene.objects if one.label != "wall"]
    view = SceneView(scene, Gates())
    for name in ("object_existence", "object_count", "appearance_order", "relative_direction"):
        assert get_task(name).list_rows(view) == []


def find_reasons(name: str, view: SceneView) -> set[str]:
    drafts = get_task(name).drafts(view, np.random.default_rng(0), 8)
    return {one.reason for one in drafts if isinstance(one, Rejected)}


@pytest.mark.parametrize("label", ["unknown", "mirror", "misc"])
def test_surface_whose_label_says_nothing_counts_as_unlabelled(label: str) -> None:
    scene = labelled_room()
    scene.objects = [replace(one, label=label if one.label == "wall" else one.label) for one in scene.objects]
    view = SceneView(scene, Gates())
    assert get_sightings(view).labelled.max() < 0.9
    for name in ("object_existence", "nearest_object", "map_relation"):
        assert find_reasons(name, view) == {"surface_unlabelled"}


def test_a_scene_without_what_a_kind_needs_is_counted() -> None:
    boxes_alone = labelled_room()
    boxes_alone.objects = [replace(one, points_m=None) for one in boxes_alone.objects]
    tilted = labelled_room()
    tilted.up_world = None
    bare, leaning = SceneView(boxes_alone, Gates()), SceneView(tilted, Gates())
    for task in (tasks[name] for name in tasks):
        if isinstance(task, LabelledScene):
            assert find_reasons(task.name, bare) == {"surface_unlabelled"}
            assert ("no_gravity" in find_reasons(task.name, leaning)) == task.needs_gravity


def test_the_floor_goes_from_wall_to_wall_however_little_of_it_is_free() -> None:
    """A released generator counts free floor alone: a room of 8 square meters reads as 3.6."""
    view = labelled_view()
    every = list(range(len(view.frames)))
    corners_m, closed, sure = find_corners(view, every)
    assert measure_area_m2(corners_m) == pytest.approx(30, rel=2e-3)
    assert (closed, sure) == (1, 1)
    assert measure_overlooked_m2(view, every) == pytest.approx([30] * 3, rel=0.02)
    found = get_sightings(view)
    floor = found.list_seen_m(every, found.list_instances("floor"))
    assert len(np.unique(np.floor(floor / 0.1 + 1e-6), axis=0)) * 0.01 < 28  # the free part
    assert find_corners(view, every[:4])[1] < 0.9  # a half of the room


def test_errors_of_walls_move_the_floor_by_little() -> None:
    view, noise = labelled_view(), Gates().noise.scannet
    seen = FloorEvidence(corners_m=find_corners(view, list(range(len(view.frames))))[0])
    task = get_task("room_area")
    drawn = task.value(task.disturb(seen, noise, np.random.default_rng(0), 400))
    assert drawn.shape == (400,)
    assert drawn.mean() == pytest.approx(30, rel=0.005)
    assert 0.1 < drawn.std() < 0.6


def test_labels_that_mean_the_same_are_not_told_apart() -> None:
    scene = labelled_room()
    label = {"stool": "office chair", "sofa": "chair", "desk": "cup", "bench": "mug", "drum": "potted plant"}
    scene.objects = [replace(one, label=label.get(one.label, one.label)) for one in scene.objects]
    scene.objects[-1] = replace(scene.objects[-1], label="books")
    found = Sightings(SceneView(scene, Gates()))
    assert {found.labels[k] for k in found.list_alike("chair")} == {"chair", "office chair"}
    assert {found.labels[k] for k in found.list_alike("office chair")} == {"chair", "office chair"}
    assert {found.labels[k] for k in found.list_alike("cup")} == {"cup", "mug"}
    assert {found.labels[k] for k in found.list_alike("pillow")} == {"chair", "office chair"}  # it may lie on one
    assert {found.labels[k] for k in found.list_alike("nightstand")} == {"wardrobe"}
    assert {"books", "wall"}.isdisjoint(found.names)


def test_spots_lie_on_the_objects_that_they_name() -> None:
    view, found = labelled_view(), get_sightings(labelled_view())
    compared = 0
    for frame, spots in zip(view.frames, found.list_spots(range(len(view.frames)), found.names), strict=True):
        for name, u, v in spots:
            ray = np.linalg.inv(frame.camera.K) @ [u, v, 1.0]
            at_m = poses.transform(frame.world_from_camera, ray[None] * frame.depth_at(np.array([[u, v]])))
            named = [view.objects[k].box for k in found.list_instances(name)]
            compared += any(boxes.contains(box, at_m, 0.1)[0] for box in named)
    total = sum(map(len, found.list_spots(range(len(view.frames)), found.names)))
    assert compared >= 0.9 * total >= 30  # the middle of what is seen of a hollow object may lie before it


def test_both_routes_to_what_a_frame_shows_agree() -> None:
    found = get_sightings(labelled_view())
    things = [k for k, label in enumerate(found.labels) if label in found.names]
    shown, hidden, areas = (table[:, things] for table in (found.shown, found.hidden, found.areas))
    assert shown.sum() > 50
    assert hidden.sum() > 100
    assert areas[shown].min() > AREA_MIN
    assert (areas[hidden] > AREA_NONE).mean() < 0.02  # what stands at a wall, whose pixels may lie on its back


def test_frames_of_one_place_hang_together_and_opposite_ones_do_not() -> None:
    view = labelled_view()
    links = find_links(view)
    assert (links == links.T).all()
    assert not links.diagonal().any()
    ahead = np.stack([frame.world_from_camera[:3, 2] for frame in view.frames])
    behind = (ahead @ ahead.T < -0.8) & (np.linalg.norm([f.center_m for f in view.frames], axis=1)[:, None] > 0)
    assert links.sum() > 20
    assert links[behind].mean() < 0.1


# --- directions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heading_deg", range(0, 360, 45))
def test_a_direction_has_one_answer_whatever_the_heading_and_turns_round_with_the_observer(heading_deg: int) -> None:
    """OpenSpatial gives one geometry two labels."""

    def turn(x: float, z: float) -> tuple[float, float, float]:
        c, s = np.cos(np.radians(heading_deg)), np.sin(np.radians(heading_deg))
        return c * x + s * z, 0.3, -s * x + c * z

    a, b, c = turn(0, 0), turn(0, 2), turn(1, 1)
    seen = DirectionEvidence(up=UP, a=place(*a), b=place(*b), c=place(*c))
    assert answer("relative_direction", seen) == "front_right"
    back = DirectionEvidence(up=UP, a=place(*b), b=place(*a), c=place(*c))
    assert answer("relative_direction", back) == "front_left"
    assert answer("relative_direction", seen.model_copy(update={"c": place(*turn(-1, -1))})) == "back_left"
    assert answer("relative_direction", seen.model_copy(update={"c": place(*turn(0.1, 1))})) == ""


@pytest.mark.parametrize("shift_m", [0.0, 100.0])
def test_the_last_camera_stands_where_it_stands_however_far_the_world_is_moved(shift_m: float) -> None:
    """VLM-3R takes the wrong centre of a camera-to-world pose."""
    world = poses.make_pose(np.eye(3), [shift_m, -shift_m, shift_m])
    turned = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # by 90 degrees to the right
    first, last = world, world @ poses.make_pose(turned, [1.0, 0.0, 2.0])
    motion = poses.relative_pose(first, last)
    seen = DirectionEvidence(up=UP, a=place(-0.5, 0.5, 3.5), motion=motion)
    assert answer("object_from_camera", seen) == "back_left"
    assert answer("object_from_camera", seen.model_copy(update={"a": place(2.5, 0.5, 0.5)})) == "front_right"


def test_beyond_is_along_the_view_and_not_up_the_image() -> None:
    near_high, far_low = place(0.5, -1.0, 2.0), place(-0.5, 1.0, 3.0)
    for name in ("relation_from_camera", "relation_across_views"):
        assert answer(name, DirectionEvidence(up=UP, a=near_high, b=far_low)) == "front_left"
        assert answer(name, DirectionEvidence(up=UP, a=far_low, b=near_high)) == "back_right"


@pytest.mark.parametrize(
    ("b_m", "clear"),
    [((3.0, 0.0, 2.5), True), ((0.2, 0.0, 2.9), False), ((0.5, 0.0, -4.0), False), ((0.5, 0.0, -1.0), True)],
)
def test_what_is_nearer_along_the_view_is_nearer_on_foot(b_m: tuple[float, float, float], clear: bool) -> None:
    """A place at the side can be far and little ahead, and one behind the camera farther than all."""
    assert is_farther_both_ways(DirectionEvidence(up=UP, a=place(2.3, 0.0, 2.0), b=place(*b_m))) is clear


def test_who_turns_round_finds_left_at_the_right() -> None:
    for walk_m in (0.5, 3.0):
        said = []
        for turn_deg in (90.0, -90.0, 180.0):
            seen = DirectionEvidence(up=UP, a=place(1.2, 0.4, 1.7), walk_m=walk_m, turn_deg=turn_deg)
            said.append(answer("imagined_move", seen))
        passed = ["front_right", "back_left", "front_left"]
        assert said == (["front_left", "back_right", "back_left"] if walk_m < 1.7 else passed)
    tilted = DirectionEvidence(
        up=np.array([0.0, -np.cos(0.4), -np.sin(0.4)]), a=place(1.2, 0.4, 1.7), walk_m=0.5, turn_deg=180.0
    )
    assert answer("imagined_move", tilted) == "back_left"


def test_an_object_that_reaches_into_another_quarter_is_not_asked_about() -> None:
    view, task = labelled_view(), get_task("relative_direction")
    assert isinstance(task, DirectionTask)
    rng, rows = np.random.default_rng(0), task.list_rows(view)
    unique, kept, dropped = task.list_unique(view, rows), 0, 0
    for _ in range(200):
        chosen = rng.choice(unique, 3, replace=False).tolist()
        stand, face, about = (view.objects[k].box for k in chosen)
        corners = boxes.corners(about) - stand.center_m
        ahead = face.center_m - stand.center_m
        angle = np.degrees(np.arctan2(ahead[0] * corners[:, 1] - ahead[1] * corners[:, 0], corners[:, :2] @ ahead[:2]))
        one = len(set(np.floor(angle / 90).tolist())) == 1
        assert (task.measure(view, rows, chosen) is not None) == one
        kept, dropped = kept + one, dropped + (not one)
    assert min(kept, dropped) > 20


def test_the_nearest_is_so_by_whole_boxes() -> None:
    """OpenSpatial measures between the visible shells, and takes what is equally near."""
    seen = NearestEvidence(
        labels=list("abcd"), about="e", gaps_m=np.array([0.5, 0.62, 2.0, 3.0]), instance_ids=list("eabcd")
    )
    task = get_task("nearest_object")
    assert task.settle(task.value(seen))[1]["decided"] < 1
    clear = seen.model_copy(update={"gaps_m": np.array([0.5, 0.7, 2.0, 3.0])})
    value, kept = task.settle(task.value(clear))
    assert (value[0], kept["decided"] >= 1) == (0, True)


# --- captures ------------------------------------------------------------------------------------------------------


def test_points_on_the_surface_that_a_sensor_measured_are_seen_by_it(captures: Path) -> None:
    """Within 2 cm of the surface at least 99 % are, and none that is clearly behind it."""
    rng, right, wrong, count = np.random.default_rng(0), 0, 0, 0
    for ref in discover(captures):
        with open_scene(ref) as scene:
            view = SceneView(scene, Gates(), wide=False)
        for frame in view.frames[::2]:
            points_m = frame.samples[1]
            rays = points_m - frame.center_m
            far_m = np.linalg.norm(rays, axis=1, keepdims=True)
            near = points_m + rays / far_m * rng.uniform(-0.02, 0.02, (len(rays), 1))
            behind = points_m + rays / far_m * (2.5 * np.asarray(view.tolerance.of(far_m)))
            right += int(_classify(view, frame, near).sum())
            wrong += int(_classify(view, frame, behind).sum())
            count += len(points_m)
    assert count > 5_000
    assert right / count >= 0.99
    assert wrong / count <= 0.01


def _classify(view: SceneView, frame: Any, points_m: FloatArray) -> FloatArray:
    camera = frame.depth_camera
    found = compute_pairwise_states(
        points_m, camera.K[None], frame.depth_m[None], frame.world_from_camera[None], view.tolerance
    )
    return np.asarray(found[0] == VISIBLE)
