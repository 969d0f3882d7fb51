"""Boxes of framed objects: corners by hand and by OpenCV, both routes, and options along the same rays."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.lenient import replace_section
from tests.tasks.object_scenes import board_view, cuboid, depth_of, room_view, thing
from vgbench_gen.core.errors import GeometryError, TooFewOptionsError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Candidate, Fact, FloatArray, OrientedBox, Rejected
from vgbench_gen.distractors.base import OptionSet, set_problem, strategies
from vgbench_gen.distractors.factorial import list_wrong_parts
from vgbench_gen.geometry import boxes
from vgbench_gen.geometry.poses import quaternion_to_matrix
from vgbench_gen.pipeline.measure import confirm_draft, measure_task
from vgbench_gen.pipeline.question import QuestionRejectedError, draw_options
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.quality import reading
from vgbench_gen.scenes import open_scenes
from vgbench_gen.scenes.base import FrameObject, SceneObject
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._box_pairs import find_needed_ratio
from vgbench_gen.tasks._box_words import print_box, read_back
from vgbench_gen.tasks._object_evidence import BoxEvidence, get_camera
from vgbench_gen.tasks._object_routes import order_corners
from vgbench_gen.tasks.gates import BoxMargins
from vgbench_gen.tasks.object_location import ObjectLocation
from vgbench_gen.tasks.records import make_camera_record
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.numbers import parse_numbers

WORDS = ObjectLocation()
TASK = ObjectLocation(replace_section(Gates(), BoxMargins(notation="matrix")))
CRATE = thing("crate", [0.2, 0.1, 2.0], [0.5, 0.4, 0.3])


def board(*objects: SceneObject, listed: tuple[FrameObject, ...] = ()) -> SceneView:
    return board_view(depth_of(objects), objects, listed)


def drafts(view: SceneView, limit: int = 10) -> list[Fact | Rejected]:
    return list(TASK.drafts(view, rng_for(0, "location"), limit))


def one_fact(view: SceneView) -> Fact:
    (fact,) = drafts(view)
    assert isinstance(fact, Fact)
    return shown(fact, view)


@cache
def crate_fact() -> Fact:
    """The fact about the crate before a board."""
    return one_fact(board(CRATE))


def shown(fact: Fact, view: SceneView) -> Fact:
    return replace(
        fact,
        pictures=dict.fromkeys(fact.frame_ids, "0" * 32 + ".png"),
        cameras={name: make_camera_record(view.frame(name).camera) for name in fact.frame_ids},
    )


def iou(a: Candidate, b: Candidate) -> float:
    return boxes.iou_3d(boxes.fit_to_corners(a.value), boxes.fit_to_corners(b.value))


def begins_below_and_nearest(value: FloatArray) -> bool:
    """Whether corners (8, 3) are listed as the words state; printing may make two of them equally near."""
    far_m = np.linalg.norm(value[:4], axis=1)
    return bool(value[:4, 1].mean() > value[4:, 1].mean() and far_m[0] <= far_m.min() + 0.02)


def test_the_answer_lists_the_lower_face_from_its_nearest_corner_and_then_the_upper_one() -> None:
    fact = crate_fact()
    assert TASK.printed(fact.truth_candidate.value) == (
        "(-0.05, 0.30, 1.85), (0.45, 0.30, 1.85), (0.45, 0.30, 2.15), (-0.05, 0.30, 2.15), "
        "(-0.05, -0.10, 1.85), (0.45, -0.10, 1.85), (0.45, -0.10, 2.15), (-0.05, -0.10, 2.15)"
    )
    assert np.array_equal(TASK.recompute(fact), fact.truth_candidate.value)


def test_answers_project_onto_the_drawn_rectangle_by_opencv() -> None:
    view = room_view()
    facts = [draft for draft in drafts(view, 12) if isinstance(draft, Fact)]
    assert len(facts) >= 4
    for fact in facts:
        camera = view.frame(fact.frame_ids[0]).camera
        corners = np.array(fact.truth_candidate.evidence["corners_m"])
        uv = cv2.projectPoints(corners, np.zeros(3), np.zeros(3), camera.K, None)[0][:, 0]
        size = np.array([camera.width, camera.height])
        expected = np.concatenate([np.clip(uv.min(axis=0), 1, size - 2), np.clip(uv.max(axis=0), 1, size - 2)])
        (op,) = TASK._pictures(shown(fact, view))[0].ops
        assert np.abs(expected - op["rect"]).max() <= 0.5
        assert TASK._slots(shown(fact, view))["color"] == op["color"]
        assert np.abs(np.array(fact.truth_candidate.value) - corners).max() <= 0.005 + 1e-9


def test_depth_that_is_elsewhere_sinks_the_draft() -> None:
    fact = crate_fact()
    assert isinstance(confirm_draft(TASK, fact, board(CRATE)), Fact)
    for scale in (0.8, 1.25):
        with pytest.raises(GeometryError, match="support"):
            TASK.recheck(fact, board_view(depth_of([CRATE]) * scale, [CRATE]))


def test_depth_that_is_elsewhere_for_half_of_the_object_sinks_the_draft() -> None:
    fact, depth = crate_fact(), depth_of([CRATE])
    x1, _, x2, _ = fact.truth_candidate.show["rect"]
    for share, passes in ((0.3, True), (0.6, False)):
        partly = depth.copy()
        partly[:, : int(x1 + share * (x2 - x1))] *= 1.35
        if passes:
            assert isinstance(confirm_draft(TASK, fact, board_view(partly, [CRATE])), Fact)
            continue
        with pytest.raises(GeometryError, match="support"):
            TASK.recheck(fact, board_view(partly, [CRATE]))


def test_a_wrong_answer_or_rectangle_sinks_the_draft() -> None:
    view = board(CRATE)
    fact = one_fact(view)
    truth = fact.truth_candidate
    nearer = replace(fact, candidates=(replace(truth, value=TASK.rounded(truth.value * 0.95)),))
    result = confirm_draft(TASK, nearer, view)
    assert isinstance(result, Rejected)
    assert result.reason == "second_route_disagrees"
    x1, y1, x2, y2 = truth.show["rect"]
    shifted = replace(fact, candidates=(replace(truth, show={"rect": [x1 + 8, y1, x2 + 8, y2]}),))
    with pytest.raises(GeometryError, match="drawn rectangle"):
        TASK.recheck(shifted, view)


def test_surface_points_measure_how_far_the_box_is() -> None:
    faces = np.random.default_rng(0).uniform(-0.5, 0.5, (8000, 3))
    # The face towards the camera, and a larger number of points that it hides.
    faces[:, 2] = np.where(np.arange(8000) < 2000, -0.5, np.where(np.arange(8000) < 7000, -0.3, 0.3))
    front = CRATE.box.center_m + faces * CRATE.box.size_m
    fact = crate_fact()
    far = board_view(depth_of([CRATE]) * 1.02, [replace(CRATE, points_m=front)])
    second = TASK.recheck(fact, far)
    assert second.mean(axis=0) == pytest.approx(np.array([0.2, 0.1, 2.0]) * 1.02, abs=0.004)
    few = board_view(np.zeros((240, 320)), [replace(CRATE, points_m=front)])
    with pytest.raises(GeometryError, match="are measured"):
        TASK.recheck(fact, few)


def test_the_frames_own_box_counts_whatever_the_order_of_its_corners() -> None:
    turned = OrientedBox(
        np.array([0.2, 0.1, 2.01]), np.array([0.3, 0.4, 0.5]), np.array([[0, 0, -1.0], [0, 1, 0], [1, 0, 0]]), "camera"
    )
    own = FrameObject("crate", "crate", turned)
    view = board(CRATE, listed=(own,))
    fact = one_fact(view)
    assert TASK.metric(fact.truth_candidate.value, TASK.recheck(fact, view), fact) == pytest.approx(0.01, abs=1e-9)
    off = replace(own, box=cuboid([0.3, 0.1, 2.0], [0.5, 0.4, 0.3], "camera"))
    with pytest.raises(GeometryError, match="overlaps"):
        TASK.recheck(fact, board(CRATE, listed=(off,)))


def test_corners_are_put_in_the_order_of_the_reference() -> None:
    corners = boxes.corners(cuboid([0, 0, 2], [0.3, 0.5, 0.7]))
    shuffled = corners[np.random.default_rng(0).permutation(8)] + 0.01
    assert np.array_equal(order_corners(shuffled, corners), corners + 0.01)


def test_separation_is_one_exactly_at_the_overlap_limit() -> None:
    fact = crate_fact()
    a = Candidate("", boxes.corners(cuboid([0, 0, 2.0], [1, 1, 1])))
    # Shifted by d, two unit cubes overlap by (1 - d) / (1 + d): 0.15 at d = 0.85 / 1.15.
    d = 0.85 / 1.15
    for shift, passes in ((d + 1e-6, True), (d - 1e-6, False)):
        b = Candidate("", boxes.corners(cuboid([shift, 0, 2.0], [1, 1, 1])))
        assert (TASK.margin_ratio(a, b, fact) >= 1) is passes
    assert TASK.pair_margins([a, Candidate("", a.value * 2.2)], fact)[1][0, 1] == pytest.approx(1.0)


def test_every_option_is_the_box_on_the_same_rays_and_overlaps_little() -> None:
    view = room_view()
    asked = 0
    for k, draft in enumerate(12 * drafts(view, 12)):
        if not isinstance(draft, Fact):
            continue
        try:
            rungs, rank = TASK.ladder(draft, 4, np.random.default_rng(k))
        except TooFewOptionsError:
            continue
        assert rungs[rank] is draft.truth_candidate
        camera = view.frame(draft.frame_ids[0]).camera
        if set_problem(rungs, 4, draft, TASK):
            continue
        asked += 1
        assert max(iou(a, b) for a, b in combinations(rungs, 2)) <= 0.15
        exact = np.array(draft.truth_candidate.evidence["corners_m"])
        uv = cv2.projectPoints(exact, np.zeros(3), np.zeros(3), camera.K, None)[0][:, 0]
        for rung in rungs:
            same = cv2.projectPoints(rung.value, np.zeros(3), np.zeros(3), camera.K, None)[0][:, 0]
            nearest = rung.value[:, 2].min()
            assert np.abs(same - uv).max() <= 2 * 0.005 * camera.fx / nearest * 1.5
            assert boxes.cuboid_residual_m(rung.value) <= 0.012
    assert asked >= 8


def test_the_needed_ratio_is_the_smallest_that_keeps_the_boxes_apart() -> None:
    box = cuboid([0, 0, 2.0], [0.6, 0.6, 0.6], "camera")
    needed = find_needed_ratio(box, TASK.limits)
    assert needed is not None
    assert 1.2 < needed < 1.3
    limit = 0.15
    assert boxes.iou_3d(box, boxes.scale_about_camera(box, needed)) <= limit
    assert boxes.iou_3d(box, boxes.scale_about_camera(box, needed - 0.004)) > limit * 0.97
    assert find_needed_ratio(cuboid([0, 0, 2.0], [0.1, 0.1, 0.1], "camera"), TASK.limits) == 1.2
    assert find_needed_ratio(cuboid([0, 0, 2.0], [1.0, 1.0, 1.5], "camera"), TASK.limits) is None


def test_boxes_too_large_for_a_ladder_are_rejected_with_their_overlap() -> None:
    deep = thing("deep", [0, 0, 2.4], [0.8, 0.8, 1.4])
    (draft,) = drafts(board(deep))
    assert isinstance(draft, Rejected)
    assert draft.reason == "ladder_overlap"
    assert draft.value > draft.limit == 0.15


@pytest.mark.parametrize(("size_m", "least"), [((0.5, 0.4, 0.025), 0.0), ((0.06, 0.06, 0.06), 0.5)])
def test_boxes_that_printing_changes_are_rejected(size_m: tuple[float, ...], least: float) -> None:
    box = cuboid([0.203, 0.104, 2.007], list(size_m), "camera")
    printed = TASK._measure_printed_iou(box, None)
    assert least <= printed < TASK.limits.printed_iou_min
    assert TASK._measure_printed_iou(cuboid([0.203, 0.104, 2.007], [0.5, 0.4, 0.3], "camera"), None) > 0.9


def test_a_thin_box_is_not_asked() -> None:
    (draft,) = drafts(board(thing("tray", [0.2, 0.1, 2.0], [0.5, 0.4, 0.025])))
    assert isinstance(draft, Rejected)
    assert (draft.reason, draft.limit) == ("print_coarse", 0.9)


def test_a_box_of_which_nobody_knows_that_it_stands_upright_is_not_told_in_words() -> None:
    view = board(CRATE)
    up_world, view.up_world = view.up_world, None
    (draft,) = WORDS.drafts(view, rng_for(0, "location"), 10)
    assert isinstance(draft, Rejected)
    assert (draft.reason, draft.value) == ("print_coarse", 0.0)
    view.up_world = up_world
    (draft,) = WORDS.drafts(view, rng_for(0, "location"), 10)
    assert isinstance(draft, Fact)


@pytest.mark.parametrize("seed", range(8))
def test_words_give_an_upright_box_back_to_who_knows_the_vertical(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        held = Rotation.from_euler(
            "XZ", [rng.uniform(-70, 40), rng.uniform(-30, 30)], degrees=True
        )  # level_from_camera
        size, yaw_deg = rng.uniform(0.06, 1.5, 3), rng.uniform(-180, 180)
        standing = Rotation.from_euler("YX", [yaw_deg, 90], degrees=True)  # its third axis goes up
        center = held.apply([rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(2, 4)])
        box = OrientedBox(center, size, standing.as_matrix())
        corners = held.inv().apply(boxes.corners(box))
        value = WORDS.rounded(corners)
        text = print_box(value, held.inv().apply([0, -1, 0]))
        x, y, z, wide, deep, high, turn = reading.read_numbers(text)
        said = OrientedBox(
            np.array([x, y, z]), np.array([wide, deep, high]),
            Rotation.from_euler("YX", [turn, 90], degrees=True).as_matrix(),
        )  # fmt: skip
        # The level frame of the words has the forward direction of the camera, that of the test its own.
        ahead = held.apply([0, 0, 1])
        around = Rotation.from_euler("Y", np.degrees(np.arctan2(ahead[0], ahead[2])), degrees=True)
        again = OrientedBox(around.apply(said.center_m), said.size_m, around.as_matrix() @ said.rotation)
        assert boxes.iou_3d(box, again) > 0.9
        assert -45.0 <= turn <= 45.0


def test_words_of_a_box_say_where_it_is_and_how_it_is_turned() -> None:
    fact = asked(turned_crate(20.0))  # about y, which points down: to the right, as seen from above
    exact, up = BoxEvidence.of(fact.truth_candidate).corners_m, np.array([0.0, -1.0, 0.0])
    assert print_box(exact, up) == (
        "0.100 m right, 0.900 m down, 2.200 m forward; "
        "0.700 m wide, 0.450 m deep, 0.500 m high; turned 20.0 degrees right"
    )
    # The fact was measured to be printed as corners, to a centimeter.
    said, known = map(reading.read_numbers, (WORDS.print_option(fact.truth_candidate, fact), print_box(exact, up)))
    np.testing.assert_allclose(said[:6], known[:6], atol=0.01)
    assert abs(said[6] - known[6]) < 1
    left = asked(turned_crate(-30.0, (0.4, 0.6, 0.8)))
    assert print_box(BoxEvidence.of(left.truth_candidate).corners_m, up) == (
        "0.100 m right, 0.900 m down, 2.200 m forward; "
        "0.400 m wide, 0.800 m deep, 0.600 m high; turned 30.0 degrees left"
    )


def test_claims_in_words_share_enough_with_the_exact_box_as_they_are_told() -> None:
    kept, rng = 0, np.random.default_rng(0)
    for yaw_deg in np.linspace(-40, 40, 60):
        fact = asked(turned_crate(float(yaw_deg)))
        twins = WORDS.claim_pair(fact, rng)
        if twins is None:
            continue
        kept += 1
        exact = boxes.fit_to_corners(BoxEvidence.of(fact.truth_candidate).corners_m, "camera")
        for claim, low, high in ((twins.true, 0.75, 1.0), (twins.false, 0.0, 0.15)):
            assert claim.slots["box"] == print_box(claim.value, exact.rotation[:, 2])
            assert low <= boxes.iou_3d(exact, read_back(claim.value, exact.rotation[:, 2])) <= high
    assert kept > 20


def test_claims_are_judged_against_the_exact_box() -> None:
    """Printing moved the corners: who claims the printed box is off, who claims the exact one is right."""
    fact = crate_fact()
    truth = fact.truth_candidate
    moved = replace(truth, value=truth.value + [0.04, 0, 0])
    off = replace(fact, candidates=(moved,), truth=0)
    exact = Candidate("", BoxEvidence.of(truth).corners_m)
    assert TASK.claim_ratio(exact, off) < 1e-6 < 0.1 < TASK.claim_ratio(Candidate("", moved.value), off)


# (share, mean, standard deviation) of the meters from the camera down to the lowest corner: floor, table, elsewhere.
_DROPS_M = ((0.545, 1.45, 0.16), (0.377, 0.57, 0.28), (0.078, -0.44, 0.77))


def usual_depths(fact: Fact, rng: np.random.Generator, count: int, lower: float = 0.0) -> list[Fact]:
    """The box moved down, nearer and farther; depths and drops as in rooms (it stands upright)."""
    exact = np.array(fact.truth_candidate.evidence["corners_m"]) + [0, lower, 0]
    depths = np.linspace(0.4, 5.0, 2000)
    drops = depths * exact[:, 1].max() / exact[:, 2].mean()
    stands = sum(share / sd * np.exp(-(((drops - mean) / sd) ** 2) / 2) for share, mean, sd in _DROPS_M)
    # The factor of an area of (depth, drop) at one ratio of both is the depth; that of its logarithm takes it away.
    weights = stands * np.exp(-((np.log(depths / 2.17) / 0.44) ** 2) / 2)
    made = []
    for depth in rng.choice(depths, count, p=weights / weights.sum()).tolist():
        corners = exact * depth / exact[:, 2].mean()
        evidence = {**fact.truth_candidate.evidence, "corners_m": corners.tolist()}
        truth = replace(fact.truth_candidate, value=TASK.rounded(corners), evidence=evidence)
        made.append(replace(fact, candidates=(truth,)))
    return made


def test_ladders_hold_the_truth_at_any_rank() -> None:
    fact, ranks = crate_fact(), Counter[int]()
    for seed in range(80):
        with contextlib.suppress(TooFewOptionsError):
            rungs, rank = TASK.ladder(fact, 4, np.random.default_rng(seed))
            assert rungs[rank] is fact.truth_candidate
            assert all(TASK.valid(rung, fact) for rung in rungs)
            ranks[rank] += 1
    assert len(ranks) >= 3


def test_cues_of_boxes_are_those_of_the_printed_corners() -> None:
    fact = crate_fact()
    truth = fact.truth_candidate
    farther = Candidate("", TASK.rounded(truth.value * 1.5))
    cues = TASK.read_text_cues(fact, [truth, farther])
    grown = np.log(1.5)
    assert cues.shape == (2, 12)
    assert cues[1] - cues[0] == pytest.approx(
        [grown] * 4 + [0.5 * truth.value[:, 1].max(), 0, 0, 3 * grown, 0] + [grown] * 3, abs=0.05
    )
    assert (np.diff(cues[:, 9:], axis=1) >= 0).all()
    assert cues[:, 9:].sum(axis=1) == pytest.approx(cues[:, 7])


def test_cues_of_words_are_those_of_the_camera_held_level() -> None:
    """However the camera is tilted, words tell how far below it a thing reaches."""
    fact = asked(turned_crate(20.0))
    level = WORDS.read_text_cues(fact, [fact.truth_candidate])
    tilt = Rotation.from_euler("x", 30, degrees=True)
    stored = BoxEvidence.of(fact.truth_candidate)
    truth = replace(
        fact.truth_candidate,
        value=tilt.apply(fact.truth_candidate.value),
        evidence=stored.with_fields(corners_m=tilt.apply(stored.corners_m)).write(),
    )
    tilted = replace(fact, candidates=(truth,))
    assert WORDS.read_text_cues(tilted, [truth]) == pytest.approx(level, abs=1e-6)
    assert TASK.read_text_cues(tilted, [truth]) != pytest.approx(level, abs=0.1)


def turned_crate(yaw_deg: float, size: tuple[float, float, float] = (0.7, 0.5, 0.45)) -> SceneObject:
    """A crate on the ground in front of the camera, y downwards, turned about the vertical."""
    turn = Rotation.from_euler("y", yaw_deg, degrees=True).as_matrix()
    return SceneObject("crate", "crate", OrientedBox(np.array([0.1, 0.9, 2.2]), np.array(size), turn))


def asked(item: SceneObject) -> Fact:
    """A fact about it, as measuring makes one, whatever the depth image shows."""
    view = board(item)
    box = boxes.transform_box(item.box, view.frames[0].camera_from_world, "camera")
    listing = boxes.find_listing(box, 1)
    corners = boxes.corners(boxes.rename_axes(box, listing))
    uv = cv2.projectPoints(corners, np.zeros(3), np.zeros(3), view.frames[0].camera.K, None)[0][:, 0]
    size = np.array([view.frames[0].camera.width, view.frames[0].camera.height])
    rect = [int(x) for x in np.round([*np.clip(uv.min(axis=0), 1, size - 2), *np.clip(uv.max(axis=0), 1, size - 2)])]
    evidence = BoxEvidence(
        instance_id="crate", label="crate", corners_m=corners, visible=1.0, needed_ratio=1.2, upright=2,
        world_corners_m=boxes.corners(boxes.rename_axes(item.box, listing)),
    )  # fmt: skip
    truth = Candidate("object:crate", TASK.rounded(corners), show={"rect": rect}, evidence=evidence.write())
    return shown(TASK.new_fact(view, (truth,), frame_ids=("0",), key="0/object:crate"), view)


def test_factorial_options_differ_in_two_parts_and_fill_the_drawn_rectangle() -> None:
    sets, refused = Counter[str](), Counter[str]()
    for k in range(120):
        fact = asked(turned_crate(float(k)))
        try:
            options = strategies["factorial"].options(fact, TASK, rng_for(k, "o"))
        except TooFewOptionsError as error:
            refused[error.reason] += 1
            continue
        parts = list_wrong_parts(options)
        both = max(parts, key=len)
        sets[both] += 1
        assert sorted(parts) == sorted(["", *both.split("+"), both])
        assert options.options[options.truth] is fact.truth_candidate
        rect, camera = fact.truth_candidate.show["rect"], get_camera(fact)
        for option, wrong in zip(options.options, parts, strict=True):
            uv = cv2.projectPoints(option.value, np.zeros(3), np.zeros(3), camera.K, None)[0][:, 0]
            found = boxes.clip_rect((*uv.min(axis=0), *uv.max(axis=0)), camera.width, camera.height)
            assert boxes.rect_iou(found, tuple(rect)) >= 0.9
            assert begins_below_and_nearest(option.value)
            elsewhere = abs(np.log(option.value[:, 2].mean() / fact.truth_candidate.value[:, 2].mean())) > np.log(1.15)
            assert elsewhere == ("depth" in wrong)
            if elsewhere:
                assert iou(option, fact.truth_candidate) <= 0.15
        assert not set_problem(options.options, 4, fact, TASK)
    assert sets["depth+yaw"] > 15
    assert sets["depth+thickness"] > 15
    assert refused.total() < 60


def test_wrong_boxes_are_drawn_below_the_true_one() -> None:
    fact = asked(turned_crate(10.0))
    options = strategies["factorial"].options(fact, TASK, rng_for(0, "o"))
    row = replace(fact, candidates=options.options, truth=options.truth)
    (marks,) = TASK.overlay(row, RowEvidence.model_construct())
    assert [mark.right for mark in marks] == [False] * 3 * 13 + [True] * 13  # twelve edges and the centre of each
    for right in (True, False):
        drawn = np.array([end for m in marks if m.kind == "line" and m.right == right for end in m.points_px])
        values = [option.value for k, option in enumerate(options.options) if (k == options.truth) == right]
        uv = [cv2.projectPoints(v, np.zeros(3), np.zeros(3), get_camera(fact).K, None)[0][:, 0] for v in values]
        gaps = np.linalg.norm(drawn[:, None] - np.concatenate(uv), axis=2)
        assert gaps.min(axis=1).max() < 1e-6
        assert gaps.min(axis=0).max() < 1e-6


def test_objects_without_a_factorial_set_are_asked_set_first_and_say_why() -> None:
    square = asked(turned_crate(45.0, (0.5, 0.5, 0.5)))
    for fact, reason in (
        (square, "near_square"),
        (replace_upright(square), "no_gravity"),
    ):
        with pytest.raises(TooFewOptionsError, match=reason):
            strategies["factorial"].options(fact, TASK, rng_for(0, "o"))
        found = [_draw(fact, seed) for seed in range(20)]
        drawn = [options for options in found if options is not None]
        assert {(options.strategy, options.fallback) for options in drawn} == {("set_first", reason)}
    long = [_draw(asked(turned_crate(10.0)), seed) for seed in range(20)]
    assert {(o.strategy, o.fallback) for o in long if o is not None and not o.fallback} == {("factorial", "")}


def replace_upright(fact: Fact) -> Fact:
    """The fact of a scan that does not say where up is."""
    evidence = {key: value for key, value in fact.truth_candidate.evidence.items() if key != "upright"}
    return replace(fact, candidates=(replace(fact.truth_candidate, evidence=evidence),))


def _draw(fact: Fact, seed: int) -> OptionSet | None:
    try:
        return draw_options(fact, "g", TASK, Recipe(seed=0, distractor_seed=seed))
    except QuestionRejectedError:
        return None  # a ladder asks some facts only now and then


def test_options_print_and_parse() -> None:
    fact = crate_fact()
    options = strategies["set_first"].options(fact, TASK, np.random.default_rng(2))
    show = TASK.choice(fact, options, np.random.default_rng(0))
    for text, option in zip(show.options, options.options, strict=True):
        assert np.array_equal(parse_numbers(text).reshape(8, 3), option.value)
    assert options.options[options.truth] is fact.truth_candidate


def test_only_cuboids_in_front_of_the_camera_are_options() -> None:
    fact = crate_fact()
    good = fact.truth_candidate
    assert TASK.valid(good, fact)
    bent = good.value.copy()
    bent[0] += 0.05
    for value in (bent, good.value[::-1] * [1, 1, -1], good.value * 3, good.value[[1, 0, 2, 3, 4, 5, 6, 7]]):
        assert not TASK.valid(replace(good, value=value), fact)


def test_twins_are_one_box_near_the_truth_and_its_copy_elsewhere() -> None:
    sides, rng = Counter[bool](), np.random.default_rng(0)
    for fact in usual_depths(crate_fact(), rng, 500):
        twins = TASK.claim_pair(fact, rng)
        if twins is None:
            continue
        true, false = (Candidate("", claim.value) for claim in (twins.true, twins.false))
        assert begins_below_and_nearest(true.value)
        assert begins_below_and_nearest(false.value)
        assert iou(true, fact.truth_candidate) >= 0.75
        assert iou(false, fact.truth_candidate) <= 0.15
        assert np.array_equal(parse_numbers(twins.false.slots["box"]).reshape(8, 3), false.value)
        ratio = false.value[:, 2].mean() / true.value[:, 2].mean()
        assert 1 / 2.25 < ratio < 2.25
        assert np.abs(false.value / ratio - true.value).max() < 0.02
        sides[ratio > 1] += 1
    assert sides.total() > 250
    assert 0.3 < sides[True] / sides.total() < 0.7  # few boxes may be farther; choosing among draws evens it out


def test_a_false_claim_that_overlaps_the_truth_is_never_made() -> None:
    fact = crate_fact()
    truth = fact.truth_candidate
    hasty = replace(fact, candidates=(replace(truth, evidence=dict(truth.evidence) | {"needed_ratio": 1.01}),))
    found = [TASK.claim_pair(hasty, np.random.default_rng(k)) for k in range(60)]
    assert any(twins is None for twins in found)
    assert all(iou(truth, Candidate("", twins.false.value)) <= 0.15 for twins in found if twins is not None)


def test_the_papers_rules_stand_beside_it() -> None:
    other = thing("other", [-0.5, -0.2, 2.6], [0.4, 0.4, 0.4])
    fact = next(draft for draft in drafts(board(CRATE, other)) if isinstance(draft, Fact))
    assert {candidate.key for candidate in fact.candidates} == {"object:crate", "object:other"}
    noisy = TASK.perturbed(fact, np.random.default_rng(0))
    assert noisy is not None
    assert TASK.valid(noisy, fact)
    assert 0 < TASK.metric(noisy.value, fact.truth_candidate.value, fact) < 0.25
    assert all(begins_below_and_nearest(value) for value in (noisy.value, fact.candidates[1].value))


def test_printed_corners_of_a_turned_box_are_still_a_cuboid() -> None:
    rng = np.random.default_rng(4)
    fact = crate_fact()
    for _ in range(50):
        box = OrientedBox(np.array([0.1, 0, 1.5]), rng.uniform(0.05, 0.8, 3), quaternion_to_matrix(rng.normal(size=4)))
        assert TASK.valid(Candidate("", TASK.rounded(boxes.corners(box))), fact)


def test_real_captures_give_facts_that_both_routes_confirm(captures: Path) -> None:
    found = 0
    for scene in open_scenes(captures, datasets=["ca1m", "scannetpp"]):
        with scene:
            facts, rejected = measure_task(TASK, SceneView(scene, Gates()), 0, 6)
        assert not [r for r in rejected if "route" in r.reason]
        for fact in facts:
            assert np.array_equal(TASK.recompute(fact), fact.truth_candidate.value)
        found += len(facts)
    assert found >= 6


def test_the_table_of_all_pairs_says_what_pairs_say() -> None:
    fact, rng = crate_fact(), np.random.default_rng(7)
    truth = fact.truth_candidate
    near = [
        Candidate(f"near:{k}", TASK.rounded(truth.value * float(rng.uniform(0.6, 1.7)) + rng.normal(0, 0.05, 3)))
        for k in range(12)
    ]
    like = boxes.fit_to_corners(truth.value, "camera")
    turned = [replace(like, rotation=quaternion_to_matrix(rng.normal(size=4))) for _ in range(4)]
    members = [truth, *near, *(Candidate(f"turned:{k}", boxes.corners(box)) for k, box in enumerate(turned))]
    members = [member for member in members if TASK.valid(member, fact)]
    apart, ratios = TASK.pair_margins(members, fact)
    assert len(members) > 10
    overlaps = 0
    for i, j in combinations(range(len(members)), 2):
        for k, m in ((i, j), (j, i)):
            assert apart[k, m] == pytest.approx(TASK.margin_ratio(members[k], members[m], fact), rel=1e-9, abs=1e-12)
            alone = TASK.pair_margins([members[k], members[m]], fact)[1][0, 1]
            assert ratios[k, m] == pytest.approx(alone, rel=1e-9, abs=1e-12)
        overlaps += 0 < apart[i, j] < 1 / (1 - TASK.gates.section(BoxMargins).iou_max) - 1e-6
    assert overlaps > 10


def test_published_corners_are_no_box() -> None:
    """Rule 2 of SpatialScore v2 moves each coordinate of each corner; opposite edges then differ, which tells."""
    rng = np.random.default_rng(0)
    fact = crate_fact()
    truth = fact.truth_candidate
    assert TASK.valid(truth, fact)
    for _ in range(20):
        moved = TASK.rounded(truth.value + rng.uniform(-0.1, 0.1, (8, 3)))
        assert not TASK.valid(Candidate("", moved), fact)
    with pytest.raises(TooFewOptionsError, match="no_rule"):
        TASK.published(fact, 3, rng)
