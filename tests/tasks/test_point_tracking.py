from __future__ import annotations

import contextlib
import gc
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import cv2
import numpy as np
import pytest

from tests.scene_factory import render as ray_cast
from tests.tasks.two_view_scenes import (
    drawn,
    posed,
    room,
    room_view,
    with_pictures,
    with_truth_value,
)
from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Camera, Fact, FloatArray
from vgbench_gen.distractors.base import set_problem, strategies
from vgbench_gen.distractors.set_first import SetFirst
from vgbench_gen.geometry.projection import sample_nearest
from vgbench_gen.scenes.base import loaders
from vgbench_gen.scenes.view import GREY_WIDTH, SceneView, ViewFrame
from vgbench_gen.store.drawing import COLORS, CROSSHAIR, SHAPES
from vgbench_gen.tasks.gates import TrackGates
from vgbench_gen.tasks.point_tracking import PointTracking, track_looks, tracked
from vgbench_gen.text.numbers import parse_numbers
from vgbench_gen.text.render import load_phrasings, render

TASK = PointTracking()


def test_targets_are_where_a_ray_through_the_query_hits_the_room() -> None:
    view = room_view()
    facts, _ = drawn(TASK, view, limit=4)
    assert len(facts) == 4
    for fact in facts:
        a, b = (view.frame(frame_id) for frame_id in fact.frame_ids)
        for candidate in fact.candidates:
            if candidate.show["query"] is None:
                continue
            u, v = candidate.show["query"]
            # One pixel, cast on its own: a camera of 1 x 1 pixels whose centre is the query.
            one = Camera(
                np.array([[a.camera.fx, 0, a.camera.cx - u], [0, a.camera.fy, a.camera.cy - v], [0, 0, 1]]), 1, 1
            )
            z = ray_cast(one, a.world_from_camera, room().solids, shade=False)[0][0, 0]
            ray = np.array([(u - a.camera.cx) / a.camera.fx, (v - a.camera.cy) / a.camera.fy, 1.0])
            world = a.world_from_camera @ np.append(ray * z, 1.0)
            into_b = np.linalg.inv(b.world_from_camera)
            pixel, _ = cv2.projectPoints(world[:3], cv2.Rodrigues(into_b[:3, :3])[0], into_b[:3, 3], b.camera.K, None)
            assert np.linalg.norm(pixel.ravel() - candidate.value) < 1.5


def test_pool_keeps_all_margins() -> None:
    view = room_view()
    total = 0
    for seed in range(6):
        for fact in drawn(TASK, view, seed, limit=10)[0]:
            b = view.frame(fact.frame_ids[1])
            pool = fact.candidates
            assert 4 <= len(pool) <= TASK.pool_size - 1
            assert len({c.key for c in fact.candidates}) == len(fact.candidates)
            assert [n for n, c in enumerate(pool) if c.show["query"] is not None] == [fact.truth]
            query = np.array(fact.truth_candidate.show["query"], dtype=np.float64)
            moves = np.linalg.norm([c.value - query for c in pool], axis=1)
            assert (moves >= 0.08 * b.camera.diagonal_px - 1).all()
            for decoy in pool[1:]:
                assert set_problem([fact.truth_candidate, decoy], 2, fact, TASK) == ""
                assert passes_gates(b, decoy.value, view)
                assert decoy.evidence["point_2_m"][2] == pytest.approx(float(b.depth_at(decoy.value)), abs=1e-3)
            total += 1
            options = SetFirst().options(fact, TASK, rng_for(seed, fact.key))
            assert options.options[options.truth] is fact.truth_candidate
    assert total >= 40


def passes_gates(frame: ViewFrame, uv_px: FloatArray, view: SceneView) -> bool:
    """What `tracked.gate_grid` says of a single pixel, read from the depth image and the masks pixel by pixel."""
    border = max(view.gates.depth.border * max(frame.camera.size), 26 * frame.camera.width / GREY_WIDTH)
    inside = (uv_px >= border).all() and (uv_px <= np.array(frame.camera.size) - 1 - border).all()
    known = view.near_m <= frame.depth_at(uv_px) <= view.far_m
    edge = sample_nearest(frame.edge_mask(view.gates.depth), frame.depth_uv(uv_px), outside=True)
    textured = frame.textured()
    at = (uv_px + 0.5) * textured.shape[1] / frame.camera.width - 0.5
    return bool(inside and known and not edge and sample_nearest(textured, at, outside=False))


def test_gates_of_a_grid_are_those_of_its_pixels() -> None:
    view = room_view()
    for frame in view.frames[:3]:
        u_px, v_px = (np.floor(np.linspace(0, size - 1, 29)) for size in frame.camera.size)
        good, z_m = tracked.gate_grid(frame, u_px, v_px, view)
        pixels = [[np.array([u, v]) for u in u_px] for v in v_px]
        assert good.tolist() == [[passes_gates(frame, uv, view) for uv in row] for row in pixels]
        assert z_m.tolist() == [[float(frame.depth_at(uv)) for uv in row] for row in pixels]
        assert 20 < good.sum() < good.size


@cache
def facts_of(seed: int) -> tuple[Fact, ...]:
    view = room_view()
    return tuple(with_pictures(fact, view) for fact in drawn(TASK, view, seed, limit=24)[0])


def test_grounds_do_not_keep_the_frames_of_a_scene_that_is_done() -> None:
    view = room_view()
    ground = track_looks.get_ground(view.frames[0], view)
    assert not any(isinstance(held, ViewFrame) for held in gc.get_referents(ground))


def test_wrong_options_look_as_much_like_the_query_as_the_right_one() -> None:
    ranks = []
    for seed in range(3):
        for fact in facts_of(seed):
            cues = TASK.read_image_cues(fact, fact.candidates)[:, 2:]
            ranks.append((cues[1:] > cues[:1]).mean(axis=0))
    # Places drawn by where they lie alone hardly ever come nearer to the query's look in this plain room.
    assert len(ranks) >= 20
    assert (np.mean(ranks, axis=0) > 0.09).all(), np.mean(ranks, axis=0)


def test_a_look_is_the_difference_of_colours_and_of_surroundings() -> None:
    view = room_view()
    for fact in facts_of(0)[:4]:
        a, b = (view.frame(frame_id) for frame_id in fact.frame_ids)
        here, there = (track_looks.get_ground(frame, view) for frame in (a, b))
        query = np.array(fact.truth_candidate.show["query"], dtype=np.float64)
        looks = track_looks.Looks(here, query, here)
        assert looks.of_pixel(query) == pytest.approx(np.zeros(track_looks.PARTS), abs=1e-3)
        places = looks.of_places(np.arange(len(here.uv_px)))
        assert (places >= -1e-3).all()
        wanted = places[len(places) // 3]
        off = np.abs(places - wanted) / (
            2 * (np.array([0.6, 0.6, 0.25, 1.5, 0.15, 0.06]) + [*(0.15 * wanted[:5]), 0.0])
        )
        alike = np.flatnonzero((off <= 1).all(axis=1))
        assert looks.find_alike(wanted, 2.0).tolist() == alike.tolist()
        assert sorted(track_looks.SortedLooks(places).find_alike(wanted, 2.0).tolist()) == alike.tolist()
        assert 0 < len(alike) < len(places) / 2
        again = track_looks.look_at_pairs(here, query[None], there, fact.truth_candidate.value[None])
        assert again[0] == pytest.approx(fact.truth_candidate.evidence["look"], abs=2e-3)


def test_pixels_confirm_the_target_and_a_wrong_target_is_found() -> None:
    view = room_view()
    for fact in drawn(TASK, view, limit=6)[0]:
        second = TASK.recheck(fact, view)
        assert TASK.agreement(second, fact) <= 1
        assert not np.array_equal(second, fact.truth_candidate.value)  # from pixels, not the projection again
        for offset in ((9.0, 0.0), (0.0, -9.0), (6.0, 6.0)):  # 2.2 D% of a 320 x 240 image
            wrong = with_truth_value(fact, fact.truth_candidate.value + offset)
            with contextlib.suppress(GeometryError):
                assert TASK.agreement(TASK.recheck(wrong, view), wrong) > 1


def test_wrong_pose_files_and_wrong_pixels_give_no_facts() -> None:
    facts, _ = drawn(TASK, room_view(), limit=12)
    frame_id = Counter(i for f in facts for i in f.frame_ids).most_common(1)[0][0]
    frame = next(f for f in room().frames if f.id == frame_id)
    moved = frame.world_from_camera.copy()
    moved[:3, 3] += frame.world_from_camera[:3, 0] * 0.12
    rolled = np.roll(frame.color(), 9, axis=1)
    for view in (posed({frame_id: moved}), posed({}, {frame_id: rolled})):
        got, rejects = drawn(TASK, view, limit=12)
        assert not [f for f in got if frame_id in f.frame_ids]
        mine = {r.reason for r in rejects if frame_id in r.key.split("-")}
        assert any(reason.startswith("points_") for reason in mine)


def test_rounding_and_print() -> None:
    value = TASK.rounded(np.array([12.5, -0.4]))
    assert value.tolist() == [13.0, 0.0]
    assert TASK.printed(value) == "(13, 0)"
    assert parse_numbers(TASK.printed(value)).tolist() == value.tolist()


def test_separation_needs_pixels_and_space() -> None:
    fact = drawn(TASK, room_view(), limit=1)[0][0]
    truth = fact.truth_candidate
    diagonal = fact.evidence["diagonal_px"]
    place = np.array(truth.evidence["point_2_m"])
    aside = replace(
        truth,
        value=truth.value + np.array([0.06 * diagonal, 0.0]),
        evidence={**truth.evidence, "point_2_m": (place + np.array([0.2, 0, 0])).tolist()},
    )
    assert TASK.margin_ratio(truth, aside, fact) == pytest.approx(1.0)
    close = replace(aside, evidence={**truth.evidence, "point_2_m": (place + np.array([0.05, 0, 0])).tolist()})
    assert TASK.margin_ratio(truth, close, fact) == pytest.approx(0.5)
    assert TASK.agreement(truth.value + np.array([0.012 * diagonal, 0.0]), fact) == pytest.approx(1.0)


def test_marks_and_options_name_the_same_points() -> None:
    view = room_view()
    right = Counter[str]()
    for fact in (with_pictures(f, view) for f in drawn(TASK, view)[0]):
        options = SetFirst().options(fact, TASK, rng_for(0, fact.key))
        for seed in range(40):
            shown = TASK.choice(fact, options, rng_for(seed, fact.key))
            first, second = shown.pictures
            (query,) = first.ops
            assert query["uv"] == fact.truth_candidate.show["query"]
            assert query["shape"] == CROSSHAIR
            name_of = {tuple(op["uv"]): f"the {op['color']} {op['shape']}" for op in second.ops}
            assert len({op["color"] for op in (query, *second.ops)}) == 5
            assert {op["shape"] for op in second.ops} == set(SHAPES)
            for text, option in zip(shown.options, options.options, strict=True):
                u, v = (int(x) for x in option.value)
                assert text == name_of[u, v]
                assert f"{text} ({u}, {v})" in shown.slots["points"]
            _, color, shape = shown.options[options.truth].split()
            right.update((color, shape, f"listed {list(name_of.values()).index(shown.options[options.truth])}"))
        for phrasing in load_phrasings("point_tracking", "multi-choice"):
            render(phrasing, shown.slots)
    # Neither a colour, nor a shape, nor a place in the list goes with the truth.
    for alike in (COLORS, SHAPES, [f"listed {k}" for k in range(4)]):
        counts = [right[name] for name in alike]
        assert min(counts) > 0.45 * sum(counts) / len(counts)  # a dozen queries take their own colors away


def test_twins_show_two_points_and_name_one_each() -> None:
    view = room_view()
    shapes = set()
    for fact in (with_pictures(f, view) for f in drawn(TASK, view)[0]):
        twins = TASK.claim_pair(fact, rng_for(0, fact.key))
        assert twins is not None
        by_name = {f"the {op['color']} {op['shape']}": op["uv"] for op in twins.pictures[1].ops}
        assert len(by_name) == 2
        assert by_name[twins.true.slots["mark"]] == fact.truth_candidate.value.astype(int).tolist()
        assert by_name[twins.false.slots["mark"]] == twins.false.value.astype(int).tolist()
        assert twins.true.slots["mark"] != twins.false.slots["mark"]
        assert twins.true.separation == 0
        assert twins.false.separation >= 1
        shapes.add(twins.true.slots["mark"].split()[2])
        for phrasing in load_phrasings("point_tracking", "judgment"):
            render(phrasing, {**twins.slots, **twins.true.slots})
    assert len(shapes) > 2


def test_jacobian_is_the_derivative_of_the_way_back() -> None:
    view = room_view()
    fact = drawn(TASK, view, limit=1)[0][0]
    a, b = (view.frame(frame_id) for frame_id in fact.frame_ids)
    uv = fact.truth_candidate.value
    seen = tracked.carry_into(b, a, uv)
    assert np.linalg.norm(seen.uv_back - fact.truth_candidate.show["query"]) < 1.5
    for axis in range(2):
        step = np.eye(2)[axis] * 3
        moved = (tracked.carry_into(b, a, uv + step).uv_back - tracked.carry_into(b, a, uv - step).uv_back) / 6
        assert moved == pytest.approx(seen.jacobian[:, axis], abs=0.1)


@pytest.mark.parametrize(("dataset", "least"), [("scannet", 8), ("scannetpp", 2), ("ca1m", 2), ("wildrgbd", 2)])
def test_real_captures(captures: Path, dataset: str, least: int) -> None:
    loader, count = loaders[dataset], 0
    for ref in loader.discover(captures / dataset):
        with loader.open(ref) as scene:
            view = SceneView(scene, Gates())
            for fact in drawn(TASK, view)[0]:
                assert TASK.agreement(TASK.recheck(fact, view), fact) <= 1
                count += 1
    assert count >= least


def test_hidden_points_are_no_tracks_whatever_the_cycle_says() -> None:
    view = room_view()
    a, b = view.frames[2], view.frames[5]
    found = tracked.find_tracks(a, b, view, TrackGates(cycle_max_px_at_640=1e9, motion_min_d=0.1))
    assert len(found.uv_a) > 20
    surface = b.depth_at(found.uv_b)
    assert (np.abs(surface - found.points_b_m[:, 2]) <= view.tolerance.of(surface)).all()


def test_a_point_on_the_ramp_that_smoothing_makes_of_a_step_is_no_track() -> None:
    """Behind a step of twice the tolerance a smoothed depth agrees to within it with what nobody sees there."""
    view = room_view()
    camera, tolerance = view.frames[0].camera, float(view.tolerance.of(3.0))
    step = np.where(np.arange(camera.width) < camera.width // 2, 3.0 - 2 * tolerance, 3.0)
    sloped = np.linspace(2.0, 3.0, camera.width)

    def is_clear(across: FloatArray, u_px: float, z_m: float) -> bool:
        depth = cv2.GaussianBlur(np.tile(across, (camera.height, 1)), (0, 0), 2.25 * camera.width / GREY_WIDTH)
        frame = SimpleNamespace(camera=camera, depth_at=lambda uv: sample_nearest(depth, uv, outside=0))
        here = np.array([[u_px, camera.height / 2]])
        assert abs(sample_nearest(depth, here, outside=0)[0] - z_m) <= tolerance
        return bool(tracked._is_clear(cast(ViewFrame, frame), here, np.array([z_m]), view)[0])

    edge_px = camera.width // 2
    assert not is_clear(step, edge_px, 3.0)
    assert is_clear(step, edge_px + 10, 3.0)
    assert is_clear(step, edge_px - 10, 3.0 - 2 * tolerance)
    assert is_clear(sloped, edge_px, 2.5)


def test_the_published_rule_leaves_the_truth_nearest_to_where_the_query_was() -> None:
    nearest = []
    for fact in facts_of(0):
        query = np.array(fact.truth_candidate.show["query"])
        for seed in range(20):
            members, truth = strategies["published"].find_set(fact, TASK, rng_for(seed, fact.key), 4, "recorded")
            assert all(TASK.valid(member, fact) for member in members)
            nearest.append(int(np.argmin([np.linalg.norm(m.value - query) for m in members])) == truth)
    assert np.mean(nearest) > 0.45  # by chance 0.25
