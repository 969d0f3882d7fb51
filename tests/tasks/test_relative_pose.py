from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.transform import Rotation

from tests.tasks.two_view_scenes import (
    drawn,
    posed,
    room,
    room_view,
    with_pictures,
    with_truth_value,
)
from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray
from vgbench_gen.distractors.base import OptionSet, set_problem, strategies
from vgbench_gen.distractors.factorial import list_wrong_parts
from vgbench_gen.geometry import poses
from vgbench_gen.pipeline.question import QuestionRejectedError, require_other_side
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.scenes.base import loaders
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks import _poses, _registration, relative_pose
from vgbench_gen.tasks import base as tasks_base
from vgbench_gen.tasks._pairs import get_pair_table
from vgbench_gen.tasks.relative_pose import RelativePose, measure_claim_errors
from vgbench_gen.tasks.solving.images import match_descriptors
from vgbench_gen.tasks.solving.seen import read_motions
from vgbench_gen.text.numbers import parse_numbers

TASK = RelativePose()
MATRIX = RelativePose(Gates.model_validate({"relative_pose": {"notation": "matrix"}}))
BOTH = pytest.mark.parametrize("task", [TASK, MATRIX], ids=lambda task: task.notation)


def options_of(fact: Fact, seed: int = 0, strategy: str = "factorial") -> OptionSet:
    return strategies[strategy].options(fact, TASK, rng_for(seed, fact.key))


def turned(value: FloatArray, degrees: float) -> FloatArray:
    turn = Rotation.from_euler("y", degrees, degrees=True).as_matrix()
    return np.concatenate([turn @ value[:, :3], value[:, 3:]], axis=1)


def test_hand_worked_pose() -> None:
    # The second camera stands 0.3 m to the right of the first and looks 90 degrees to its right: what was straight
    # ahead of the first at 2 m lies to the left of the second (x = -2), and 0.3 m behind it (z = -0.3).
    first = np.eye(4)
    second = np.array([[0, 0, 1, 0.3], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1.0]])
    pose = _poses.compute_by_quaternions(first, second)
    assert _poses.move_points(pose, np.array([[0.0, 0.0, 2.0]])) == pytest.approx(np.array([[-2.0, 0.0, -0.3]]))


def test_truth_carries_scene_points_from_the_first_image_to_the_second() -> None:
    view = room_view()
    facts, _ = drawn(TASK, view)
    assert len(facts) >= 6
    for fact in facts:
        truth = fact.truth_candidate
        first, second = (view.frame(frame_id) for frame_id in truth.frame_ids)
        uv, points = first.samples
        in_first = np.concatenate([points, np.ones((len(points), 1))], axis=1) @ first.camera_from_world.T
        in_second = np.concatenate([points, np.ones((len(points), 1))], axis=1) @ second.camera_from_world.T
        ahead = (in_first[:, 2] > 0.5) & (in_second[:, 2] > 0.5)
        rotation, translation = truth.value[:, :3], truth.value[:, 3]
        shown, _ = cv2.projectPoints(in_first[ahead, :3], rotation, translation, second.camera.K, None)
        exact, _ = cv2.projectPoints(in_second[ahead, :3], np.eye(3), np.zeros(3), second.camera.K, None)
        assert np.median(np.linalg.norm(shown - exact, axis=-1)) < 2.0  # print rounding only
        stored = np.array(truth.evidence["points_m"])  # on what the first image shows, in its camera's frame
        at, _ = cv2.projectPoints(stored, np.zeros(3), np.zeros(3), first.camera.K, None)
        assert np.median(np.abs(first.depth_at(at[:, 0].astype(np.float64)) - stored[:, 2])) < 0.005
        assert len(uv) == len(points)


def test_every_option_keeps_the_rules() -> None:
    view = room_view()
    facts, rejects = drawn(TASK, view)
    pairs = [tuple(sorted(f.truth_candidate.frame_ids)) for f in facts]
    assert len(set(pairs)) == len(pairs)
    assert {r.reason for r in rejects} & {"overlap_high", "parallax_large", "translation_long"}
    assert all(r.task == "relative_pose" and r.key for r in rejects)
    assert all(np.isfinite([r.value, r.limit]).all() for r in rejects)
    for fact in facts:
        assert fact.frame_ids == ()
        options = options_of(fact)
        assert set_problem(options.options, 4, fact, TASK) == ""
        right = TASK.as_stated(fact.truth_candidate.value)
        parts = list_wrong_parts(options)
        assert sorted(parts) == ["", "rotation", "rotation+translation", "translation"]
        for option, wrong in zip(options.options, parts, strict=True):
            told = TASK.as_stated(option.value)
            assert np.allclose(told[:, :3], right[:, :3], atol=1e-8) == ("rotation" not in wrong)
            assert np.allclose(told[:, 3], right[:, 3], atol=1e-8) == ("translation" not in wrong)
        angles = [float(Rotation.from_matrix(c.value[:, :3]).magnitude()) for c in fact.candidates]
        assert max(angles) / min(angles) <= 1.3 / 0.7 * 1.05
        assert max(angles) <= np.radians(60.5)


def test_separation_takes_the_clearer_difference_but_never_less_than_the_image_shows() -> None:
    fact = drawn(TASK, room_view())[0][0]
    truth = fact.truth_candidate
    by_15 = replace(truth, value=turned(truth.value, 15.0))
    assert _poses.measure_rotation_between_deg(truth.value, by_15.value) == pytest.approx(15.0, abs=0.1)
    assert TASK.margin_ratio(truth, by_15, fact) == pytest.approx(1.0, abs=0.02)
    # The same turn without anything to see: no margin is left.
    blind = replace(truth, evidence={**truth.evidence, "points_m": []})
    assert TASK.margin_ratio(blind, by_15, fact) == 0.0
    # Short translations have no direction that could be told.
    shorter = truth.value.copy()
    shorter[:, 3] *= -0.15 / np.linalg.norm(shorter[:, 3])
    assert TASK.margin_ratio(truth, replace(truth, value=shorter), fact) < 0.1


def test_shift_counts_points_behind_a_camera_as_far_away() -> None:
    camera = Camera(np.array([[100.0, 0, 50], [0, 100, 50], [0, 0, 1]]), 100, 100)
    ahead = np.eye(3, 4)
    behind = turned(ahead, 180.0)
    points = np.array([[0.0, 0.0, 2.0]] * 3)
    assert _poses.measure_median_shifts_d(camera, ahead, behind[None], points) == [_poses.HIDDEN_SHIFT_D]
    aside = ahead.copy()
    aside[0, 3] = 0.2  # 0.2 m at 2 m and f = 100 px: 10 px of a 141.4 px diagonal
    assert _poses.measure_median_shifts_d(camera, ahead, aside[None], points) == pytest.approx([10 / 1.41421], abs=1e-3)
    far = np.array([[10.0, 0.0, 2.0]])
    assert _poses.measure_median_shifts_d(camera, ahead, aside[None], far, inside=True) == [0.0]


def test_printed_pose_reads_back_and_is_a_rotation_within_print() -> None:
    rng = np.random.default_rng(0)
    for R in Rotation.random(50, random_state=1).as_matrix():
        value = MATRIX.rounded(np.concatenate([R, rng.normal(size=(3, 1))], axis=1))
        read = parse_numbers(MATRIX.printed(value))
        assert np.array_equal(read, np.concatenate([value[:, :3].ravel(), value[:, 3]]))
        assert _poses.is_pose(value)
        assert "-0.00]" not in MATRIX.printed(value)
    assert not _poses.is_pose(np.concatenate([np.diag([1.0, 1.0, -1.0]), np.zeros((3, 1))], axis=1))
    assert not _poses.is_pose(np.concatenate([np.eye(3) * 1.01, np.zeros((3, 1))], axis=1))


_REACH = st.floats(-1, 1, allow_subnormal=False)


@given(st.tuples(*[_REACH] * 6))
def test_motions_read_back_as_they_are_printed_and_undo_the_measured_way_back(numbers: tuple[float, ...]) -> None:
    """Within what `verify` allows, by the words alone."""
    exact = np.eye(4)
    exact[:3, :3] = Rotation.from_rotvec(np.radians(60 / np.sqrt(3) * np.array(numbers[:3]))).as_matrix()
    exact[:3, 3] = 2 / np.sqrt(3) * np.array(numbers[3:])
    for task in (TASK, MATRIX):
        value = task.rounded(exact[:3])
        assert np.array_equal(task.rounded(value), value)
        assert not np.signbit(value[value == 0]).any()
        (read,) = read_motions(task.printed(value))
        assert np.array_equal(task.rounded(read), value) or task is MATRIX  # R is brought back onto the rotations
        assert _poses.compare_with_way_back(Candidate("read", read), poses.invert(exact)) == []


def test_words_say_where_the_second_camera_is_and_looks() -> None:
    """As in `test_hand_worked_pose`, but half as far around, then up, and then clockwise as seen from behind."""
    level = Rotation.from_matrix(np.array([[1, 0, 1], [0, np.sqrt(2), 0], [-1, 0, 1]]) / np.sqrt(2))
    up = Rotation.from_matrix(np.array([[1, 0, 0], [0, np.cos(0.3), -np.sin(0.3)], [0, np.sin(0.3), np.cos(0.3)]]))
    first_from_second = (level * up).as_matrix()
    ahead, right = first_from_second[:, 2], first_from_second[:, 0]
    assert np.array_equal(np.sign(ahead), [1, -1, 1])  # it looks to the right and up
    rolled = Rotation.from_matrix([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    assert (level * up * rolled).as_matrix()[1, 0] > right[1]  # its right side goes down
    seen = np.concatenate([(level * up * rolled).as_matrix(), [[0.3], [-0.1], [-2.0]]], axis=1)
    assert TASK.printed(_poses.turn_around(seen)) == (
        "0.30 m right, 0.10 m up, 2.00 m back; turned 45.0 degrees right, tilted 17.2 degrees up, "
        "rolled 36.9 degrees clockwise"
    )
    other = np.concatenate([(level * up * rolled).as_matrix().T, [[-0.3], [0.1], [2.0]]], axis=1)
    assert "0.30 m left, 0.10 m down, 2.00 m forward; turned " in TASK.printed(_poses.turn_around(other))


def test_both_second_routes_find_the_pose_without_the_pose_files() -> None:
    view = room_view()
    for fact in drawn(TASK, view)[0][:6]:
        first, second = (view.frame(frame_id) for frame_id in fact.truth_candidate.frame_ids)
        assert TASK.agreement(TASK.recheck(fact, view), fact) < 0.5
        start = np.eye(4)
        start[:3] = turned(fact.truth_candidate.value, 2.0)  # a start that is off must not stay off
        assert TASK.agreement(_registration.register_depth(first, second, start, view), fact) < 0.5


def test_matches_pass_the_ratio_test_both_ways() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0, 120, (n, 128)).astype(np.float32).round() for n in (60, 80))
    b[:40] = a[:40] + rng.normal(0, 20, (40, 128)).round()
    a[50], b[45], a[51] = a[0], b[1], a[1]  # two that look alike are no match
    apart = np.linalg.norm(a[:, None] - b, axis=-1)
    expected = []
    for i, row in enumerate(apart):
        j = int(np.argmin(row))
        column = apart[:, j]
        second = min(np.sort(row)[1], np.sort(column)[1])
        if np.argmin(column) == i and row[j] <= 0.8 * second:
            expected.append((i, j))
    assert match_descriptors(a, b, 0.8, both_ways=True).tolist() == [list(pair) for pair in expected]
    assert 5 < len(expected) < 40


def test_a_pool_holds_gated_pairs_of_like_size_only() -> None:
    view, gates = room_view(), Gates()
    table = get_pair_table(view)
    within = TASK.limits.matched_within
    ids = {frame.id: k for k, frame in enumerate(view.frames)}
    pools = [[[ids[i] for i in c.frame_ids] for c in fact.candidates] for fact in drawn(TASK, view)[0]]
    assert pools
    for pool in pools:
        assert len({tuple(pair) for pair in pool}) == len(pool)
        assert all(table.find_problem(i, j, gates.pair, planes=True) is None for i, j in pool)
        for sizes in (table.rotation_deg, table.baseline_m):
            own = sizes[tuple(pool[0])]
            assert all(abs(sizes[i, j] - own) <= within * own for i, j in pool)
    # Whoever may be in a pool of the first pair, is, unless the pool is full.
    first = pools[0]
    could = [
        (i, j)
        for i in range(len(view.frames))
        for j in range(len(view.frames))
        if i != j
        and table.find_problem(i, j, gates.pair, planes=True) is None
        and table.overlap[i, j] >= gates.pair.overlap_min / 2
        and all(
            abs(s[i, j] - s[tuple(first[0])]) <= within * s[tuple(first[0])]
            for s in (table.rotation_deg, table.baseline_m)
        )
    ]
    assert len(first) == min(len(could), TASK.pool_size)


def test_a_wrong_first_route_is_found() -> None:
    view = room_view()
    fact = drawn(TASK, view)[0][0]
    for wrong in (turned(fact.truth_candidate.value, 4.0), fact.truth_candidate.value + np.eye(3, 4, 3) * 0.2):
        assert TASK.agreement(TASK.recheck(with_truth_value(fact, wrong), view), with_truth_value(fact, wrong)) > 1
    transposed = np.concatenate([fact.truth_candidate.value[:, :3].T, fact.truth_candidate.value[:, 3:]], axis=1)
    assert TASK.agreement(TASK.recheck(fact, view), with_truth_value(fact, transposed)) > 1


def test_a_broken_second_route_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    view = room_view()
    fact = drawn(TASK, view)[0][0]
    exact = fact.truth_candidate.value
    monkeypatch.setattr(_registration, "estimate_pnp_pose", lambda *_: (np.eye(3, 4), 500, 1.0))
    assert TASK.agreement(TASK.recheck(fact, view), fact) > 1
    monkeypatch.setattr(_registration, "estimate_pnp_pose", lambda *_: (exact, 500, 1.0))
    assert TASK.agreement(TASK.recheck(fact, view), fact) == 0


def test_wrong_pose_files_do_not_become_facts() -> None:
    wrong = room().frames[4]
    off = np.eye(4)
    off[:3, :3] = Rotation.from_euler("z", 6, degrees=True).as_matrix()
    view = posed({wrong.id: wrong.world_from_camera @ off})
    caught = 0
    facts, rejects = drawn(TASK, view, 2, limit=6)
    for fact in facts:
        passes = TASK.agreement(TASK.recheck(fact, view), fact) <= 1
        touched = wrong.id in fact.truth_candidate.frame_ids
        assert not (passes and touched)
        caught += touched
    assert caught or any(wrong.id in r.key.split("-") and r.reason == "essential_rotation" for r in rejects)


@BOTH
def test_twins_keep_their_tolerance_and_show_the_same_pixels(task: RelativePose) -> None:
    view = room_view()
    for fact in drawn(task, view)[0]:
        twins = task.claim_pair(with_pictures(fact, view), rng_for(0, fact.key))
        assert twins is not None
        truth = fact.truth_candidate.value
        said = twins.true.slots.get("motion") or "R = {rotation}, t = {translation}".format(**twins.true.slots)
        (claimed,) = read_motions(said)
        off_deg = np.degrees(Rotation.from_matrix(claimed[:, :3] @ truth[:, :3].T).magnitude())
        assert off_deg <= 2.5
        shift_m = claimed[:, 3] - truth[:, 3]
        if task is TASK:  # in words the place of the camera is told
            shift_m = claimed[:, :3].T @ claimed[:, 3] - truth[:, :3].T @ truth[:, 3]
        assert np.linalg.norm(shift_m) <= 0.05 + 1e-9
        assert measure_claim_errors(task.as_stated(truth[None]), task.as_stated(twins.false.value))[0] >= 2
        assert twins.true.separation < 0.5 < 1 <= twins.false.separation


@BOTH
def test_true_and_false_claims_are_off_and_rounded_by_one_law(task: RelativePose) -> None:
    """Rounded twice, or printed as stored, a claim would be known by how far its R is from a rotation."""
    view, rng = room_view(), rng_for(0, "law")
    deviations, errors = [], []
    for fact in 12 * [with_pictures(fact, view) for fact in drawn(task, view)[0]]:
        twins = task.claim_pair(fact, rng)
        if twins is None:
            continue
        claims = (twins.true, twins.false)
        own = [next(c.value for c in fact.candidates if c.key == claim.key) for claim in claims]
        deviations.append([poses.measure_orthonormality_deviation(claim.value[:, :3]) for claim in claims])
        errors.append(
            [
                measure_claim_errors(task.as_stated(value[None]), task.as_stated(claim.value))[0]
                for value, claim in zip(own, claims, strict=True)
            ]
        )
    assert len(errors) > 30
    assert np.max(errors) <= 0.5
    assert np.mean(np.array(errors) == 0) < 0.02
    for pairs in (deviations, errors) if task is MATRIX else (errors,):  # words always are a rotation
        assert stats.ks_2samp(*np.array(pairs).T).pvalue > 0.01


def test_either_motion_of_a_pair_of_claims_is_the_true_one_equally_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the false claim any motion that suits the truth, one that suits few others would be false more often."""
    view, rng = room_view(), rng_for(0, "either")
    fact = max(drawn(TASK, view)[0], key=lambda fact: len(fact.candidates))
    fact = with_pictures(replace(fact, candidates=fact.candidates[:6]), view)
    table = np.zeros((6, 6), dtype=bool)
    for members in ((0, 1, 2, 3), (0, 1, 2, 4), (0, 1, 2, 5), (5, 4, 0, 1)):
        table[np.ix_(members, members)] = True
    for module in (tasks_base, relative_pose):
        monkeypatch.setattr(module, "compatibility", lambda *_: table)
    told = Counter[tuple[str, str]]()
    for _ in range(1000):
        one = TASK.with_drawn_truth(fact, rng)
        assert one is not None
        if twins := TASK.claim_pair(one, rng):
            told[twins.true.key, twins.false.key] += 1
    either = {frozenset(pair): (told[pair], told[pair[::-1]]) for pair in told}
    assert len(either) > 6
    assert sum((a - b) ** 2 / (a + b) for a, b in either.values()) < stats.chi2.ppf(0.999, len(either))


def test_choice_shows_the_truth_and_prints_the_options() -> None:
    view = room_view()
    fact = with_pictures(drawn(TASK, view)[0][0], view)
    options = options_of(fact)
    shown = TASK.choice(fact, options, rng_for(0, "choice"))
    assert [p.base for p in shown.pictures] == [fact.pictures[i] for i in fact.truth_candidate.frame_ids]
    assert len(set(shown.options)) == 4
    (read,) = read_motions(shown.options[options.truth])
    assert np.allclose(read, fact.truth_candidate.value, atol=1e-8)


def test_no_rank_of_size_tells_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    view = room_view()
    monkeypatch.setattr(_registration, "estimate_essential_motion", lambda *_: None)  # slow, and after the draw
    larger, seen = Counter[str](), 0
    for seed in range(36):
        for fact in drawn(TASK, view, seed, limit=3)[0]:
            try:
                options = options_of(fact, seed)
            except TooFewOptionsError:  # asked by claims alone
                continue
            right = fact.truth_candidate.value
            both = next(o for o, w in zip(options.options, list_wrong_parts(options), strict=True) if "+" in w)
            larger["turn"] += float(np.trace(right[:, :3])) < float(np.trace(both.value[:, :3]))
            larger["shift"] += float(np.linalg.norm(right[:, 3])) > float(np.linalg.norm(both.value[:, 3]))
            seen += 1
    assert seen > 80
    assert all(abs(larger[part] / seen - 0.5) < 0.17 for part in ("turn", "shift"))  # three standard deviations


def test_motions_without_a_set_of_options_are_asked_by_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    view = room_view()
    facts, _ = drawn(TASK, view, limit=3)
    assert all(TASK.with_drawn_truth(fact, rng_for(0)) is not None for fact in facts)  # those with sets come first
    monkeypatch.setattr(RelativePose, "with_drawn_truth", lambda *_: None)
    facts, _ = drawn(TASK, view, limit=3)
    assert len(facts) == 3
    for fact in facts:
        assert TASK.agreement(TASK.recheck(fact, view), fact) <= 1
        assert TASK.claim_pair(with_pictures(fact, view), rng_for(0)) is not None


def test_a_factorial_set_turned_around_is_none_and_its_partner_draws_its_own() -> None:
    view = room_view()
    fact = with_pictures(drawn(TASK, view)[0][0], view)
    recipe = Recipe(seed=0)
    options = options_of(fact)
    asked = replace(fact, candidates=options.options, truth=options.truth)
    back = TASK.counterpart(asked)
    assert back is not None
    assert [TASK.valid(option, back) for option in back.candidates].count(True) == 2  # what was measured
    plan = QuestionPlan(fact.task, "ca1m", "val", "s", "g", "multi-choice", counterpart_kind="inverse")
    tried = 0
    for one in drawn(TASK, view)[0]:
        shown = with_pictures(one, view)
        try:
            there, turned = require_other_side(shown, options_of(shown), plan, TASK, recipe)
        except QuestionRejectedError:
            continue
        assert turned is not None
        tried += 1
        assert turned.strategy == "factorial"
        assert set_problem(turned.options, 4, there, TASK) == ""
        assert turned.options[turned.truth] is there.truth_candidate
        assert there.truth_candidate.frame_ids == shown.truth_candidate.frame_ids[::-1]
    assert tried


def test_margins_come_from_the_gates() -> None:
    fact = drawn(TASK, room_view())[0][0]
    loose = RelativePose(Gates.model_validate({"relative_pose": {"rotation_gap_min_deg": 5.0, "image_gap_min_d": 2.0}}))
    pairs = itertools.combinations(fact.candidates, 2)
    a, b = next((a, b) for a, b in pairs if 0.1 < TASK.margin_ratio(a, b, fact) < 3)
    assert loose.margin_ratio(a, b, fact) > TASK.margin_ratio(a, b, fact)


def test_real_captures(captures: Path) -> None:
    loader = loaders["scannet"]
    ref = next(ref for ref in loader.discover(captures / "scannet") if ref.scene_id == "scene9001_00")
    with loader.open(ref) as scene:
        view = SceneView(scene, Gates())
        facts, rejects = drawn(TASK, view)
        agreed = [fact for fact in facts if TASK.agreement(TASK.recheck(fact, view), fact) <= 1]
    assert len(agreed) >= 2
    assert {r.reason for r in rejects} >= {"overlap_low"}


@BOTH
def test_the_published_rule_repeats_the_parts_of_the_truth(task: RelativePose) -> None:
    facts, _ = drawn(task, room_view(), limit=8)
    told, renamed = 0, 0
    for fact in facts:
        for seed in range(8):
            options = strategies["published"].options(fact, task, rng_for(seed, fact.key), margins="recorded").options
            stated = [task.as_stated(option.value) for option in options]
            parts = [[one[:, :3] for one in stated], [one[:, 3] for one in stated]]
            votes = [[sum(np.allclose(a, b, atol=2e-3) for b in part) for a in part] for part in parts]
            told += int(np.argmax(np.sum(votes, axis=0))) == [option.key for option in options].index(
                fact.truth_candidate.key
            )
            turns_deg = [poses.rotation_angle_deg(one[:, :3]) for one in stated]
            own_deg = poses.rotation_angle_deg(fact.truth_candidate.value[:, :3])
            renamed += int(np.isclose(turns_deg, own_deg, atol=0.2).sum() >= 3)
    assert told == renamed == 8 * len(facts)  # by chance a quarter; other axes keep the angle of the turn
