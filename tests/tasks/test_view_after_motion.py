from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.tasks.two_view_scenes import drawn, room_view, with_pictures, with_truth_value
from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Fact
from vgbench_gen.distractors.base import set_problem
from vgbench_gen.distractors.set_first import SetFirst
from vgbench_gen.geometry.poses import invert
from vgbench_gen.scenes.base import loaders
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks import _registration
from vgbench_gen.tasks._pairs import get_pair_table
from vgbench_gen.tasks.solving.seen import read_motions
from vgbench_gen.tasks.view_after_motion import ViewAfterMotion

TASK = ViewAfterMotion()


def confirmed(view: SceneView) -> list[Fact]:
    kept = []
    for fact in drawn(TASK, view)[0]:
        try:
            if TASK.agreement(TASK.recheck(fact, view), fact) <= 1:
                kept.append(fact)
        except GeometryError:
            continue
    return kept


def test_truth_is_the_frame_that_the_printed_motion_leads_to() -> None:
    view = room_view()
    facts, _ = drawn(TASK, view)
    assert len(facts) >= 4
    for fact in facts:
        source, seen = view.frame(fact.frame_ids[0]), view.frame(fact.truth_candidate.frame_ids[0])
        points = np.array(fact.evidence["points_m"])
        world = points @ source.world_from_camera[:3, :3].T + source.center_m
        in_seen = (world - seen.center_m) @ seen.world_from_camera[:3, :3]
        ahead = in_seen[:, 2] > 0.3
        value = fact.truth_candidate.value
        shown, _ = cv2.projectPoints(points[ahead], value[:, :3], value[:, 3], seen.camera.K, None)
        exact, _ = cv2.projectPoints(in_seen[ahead], np.eye(3), np.zeros(3), seen.camera.K, None)
        assert np.median(np.linalg.norm(shown - exact, axis=-1)) < 2.0


def test_no_point_is_drawn_on_what_hides_it() -> None:
    view = room_view()
    hidden = 0
    for fact in drawn(TASK, view)[0]:
        fact, seen = with_pictures(fact, view), view.frame(fact.truth_candidate.frame_ids[0])

        def measure_depth_behind(points: np.ndarray, seen: ViewFrame = seen) -> np.ndarray:
            in_seen = (points - seen.center_m) @ seen.world_from_camera[:3, :3]
            uvw = in_seen @ seen.camera.K.T
            return in_seen[:, 2] - seen.depth_at(uvw[:, :2] / uvw[:, 2:])

        shown = TASK.world_points(fact)
        assert shown
        assert np.abs(measure_depth_behind(np.array([point.point_m for point in shown]))).max() < 0.2
        evidence = replace(fact.truth_candidate, evidence={**fact.truth_candidate.evidence, "seen_points": None})
        known = tuple(evidence if option is fact.truth_candidate else option for option in fact.candidates)
        unfiltered = TASK.world_points(replace(fact, candidates=known))
        hidden += int((measure_depth_behind(np.array([point.point_m for point in unfiltered])) > 0.2).sum())
    assert hidden > 0


def test_every_set_keeps_margins_ceiling_and_overlap() -> None:
    view = room_view()
    facts, rejects = drawn(TASK, view)
    table = get_pair_table(view)
    index = {frame.id: k for k, frame in enumerate(view.frames)}
    for fact in facts:
        source = index[fact.frame_ids[0]]
        options = SetFirst().options(fact, TASK, rng_for(1, fact.key)).options
        assert set_problem(options, 4, fact, TASK) == ""
        overlaps = []
        for option in options:
            pair = table.pair(source, index[option.frame_ids[0]])
            assert pair is not None
            overlaps.append(pair.overlap)
            assert pair.rotation_deg >= 10 or pair.baseline_m >= 0.25
        assert min(overlaps) >= 0.3
        assert max(overlaps) - min(overlaps) <= TASK.limits.overlap_spread_max
        assert fact.frame_ids[0] not in {option.frame_ids[0] for option in options}
    pairs = [frozenset((f.frame_ids[0], f.truth_candidate.frame_ids[0])) for f in facts]
    assert len(set(pairs)) == len(pairs)
    assert all(r.reason and np.isfinite(r.value) for r in rejects)


def test_separation_is_turn_or_place_and_what_the_image_shows() -> None:
    fact = drawn(TASK, room_view())[0][0]
    truth = fact.truth_candidate
    gates = TASK.limits
    turn = Rotation.from_euler("y", gates.rotation_gap_min_deg, degrees=True).as_matrix()
    turned = replace(truth, value=turn @ truth.value)
    assert TASK.margin_ratio(truth, turned, fact) == pytest.approx(1.0, abs=0.01)
    shifted = truth.value.copy()
    shifted[:, 3] -= (0.0, 0.0, 1.5 * gates.shift_gap_min_m)
    assert TASK.margin_ratio(truth, replace(truth, value=shifted), fact) <= 1.5 + 1e-6
    far_apart = replace(truth, evidence={**truth.evidence, "pair": {**truth.evidence["pair"], "overlap": 0.3}})
    near = replace(truth, evidence={**truth.evidence, "pair": {**truth.evidence["pair"], "overlap": 0.6}})
    assert TASK.pair_margins((far_apart, near), fact)[1][0, 1] == pytest.approx(0.3 / gates.overlap_spread_max)


def test_routes_agree_and_a_break_in_either_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    view = room_view()
    facts = confirmed(view)
    assert facts
    fact = facts[0]
    inverse = np.eye(4)
    inverse[:3] = fact.truth_candidate.value
    wrong = with_truth_value(fact, invert(inverse)[:3])
    assert TASK.agreement(TASK.recheck(fact, view), wrong) > 1
    slightly = fact.truth_candidate.value.copy()
    slightly[:, 3] += (0.0, 0.1, 0.0)
    assert TASK.agreement(TASK.recheck(fact, view), with_truth_value(fact, slightly)) > 1
    monkeypatch.setattr(_registration, "estimate_second_route", lambda *_: invert(inverse)[:3])
    assert TASK.agreement(TASK.recheck(fact, view), fact) > 1


def test_choice_shows_source_then_candidates_in_option_order() -> None:
    view = room_view()
    fact = with_pictures(drawn(TASK, view)[0][0], view)
    options = SetFirst().options(fact, TASK, rng_for(0, "options"))
    shown = TASK.choice(fact, options, rng_for(0, "choice"))
    ids = [fact.frame_ids[0], *(option.frame_ids[0] for option in options.options)]
    assert [p.base for p in shown.pictures] == [fact.pictures[frame_id] for frame_id in ids]
    assert shown.options == ("image 2", "image 3", "image 4", "image 5")
    (read,) = read_motions(shown.slots["motion"])
    assert np.allclose(read, options.options[options.truth].value, atol=1e-8)


def test_overlap_does_not_tell_the_truth() -> None:
    view = room_view()
    ranks: Counter[int] = Counter()
    for seed in range(40):
        for fact in drawn(TASK, view, seed, limit=5)[0]:
            options = SetFirst().options(fact, TASK, rng_for(seed, fact.key))
            overlaps = [option.evidence["pair"]["overlap"] for option in options.options]
            ranks[sorted(range(4), key=lambda k: overlaps[k]).index(options.truth)] += 1
    total = sum(ranks.values())
    assert total > 120
    assert max(abs(ranks[k] / total - 0.25) for k in range(4)) < 0.12


def test_captures_give_facts_where_their_paths_allow_it(captures: Path) -> None:
    loader = loaders["scannet"]
    ref = next(ref for ref in loader.discover(captures / "scannet") if ref.scene_id == "scene9001_00")
    with loader.open(ref) as scene:
        view = SceneView(scene, Gates())
        rejects = drawn(TASK, view)[1]
        loose = ViewAfterMotion(
            Gates.model_validate({"view_after_motion": {"overlap_min": 0.2, "overlap_spread_max": 0.5}})
        )
        facts = drawn(loose, view)[0]
        agreed = [fact for fact in facts if loose.agreement(loose.recheck(fact, view), fact) <= 1]
    assert all(r.reason in {"no_option_set", "few_alike"} or r.reason.startswith("views_") for r in rejects)
    assert agreed


def test_a_long_scan_is_not_measured_whole_for_one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    view = room_view()
    table = get_pair_table(view)
    everyone, _ = TASK._gate_frames(table, 0, rng_for(0, "views"))
    gated = [j for j in range(len(view.frames)) if j != 0 and TASK._find_problem(table, 0, j) is None]
    assert sorted(everyone) == gated
    monkeypatch.setattr("vgbench_gen.tasks.view_after_motion._VIEWS", 4)
    some = [tuple(TASK._gate_frames(table, 0, rng_for(k, "views"))[0]) for k in range(20)]
    assert {len(kept) for kept in some} == {4}
    assert set().union(*some) == set(gated)
