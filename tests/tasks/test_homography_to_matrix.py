from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.scene_factory import room_scene
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Candidate, Fact, FloatArray, Rejected
from vgbench_gen.distractors.base import compatibility, draw_truth, strategies, valid_sets
from vgbench_gen.pipeline.measure import confirm_draft, measure_task
from vgbench_gen.scenes import open_scenes
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store import pictures
from vgbench_gen.tasks._homographies import task as _homographies
from vgbench_gen.tasks._homographies.evidence import Components
from vgbench_gen.tasks._homographies.gates import HomographyGates
from vgbench_gen.tasks._homographies.task import (
    measure_component_moves_d,
    sample_pool,
    warp_correspondences,
)
from vgbench_gen.tasks.homography_to_matrix import HomographyToMatrix
from vgbench_gen.tasks.records import make_camera_record
from vgbench_gen.text.lint import lint
from vgbench_gen.text.numbers import parse_numbers
from vgbench_gen.text.render import load_phrasings, render

TASK = HomographyToMatrix()
NAME = "0" * 32 + ".png"


@pytest.fixture(scope="module")
def view() -> SceneView:
    return SceneView(room_scene(frames=3, width=480, height=360), Gates())


@pytest.fixture(scope="module")
def facts(view: SceneView) -> list[Fact]:
    kept, dropped = measure_task(TASK, view, 0, 10)
    assert not dropped
    return [
        replace(
            fact,
            pictures={fact.frame_ids[0]: NAME},
            cameras={fact.frame_ids[0]: make_camera_record(view.frame(fact.frame_ids[0]).camera)},
        )
        for fact in kept
    ]


def bare_fact(candidates: tuple[Candidate, ...], width: int = 640, height: int = 480) -> Fact:
    evidence = {"size": [width, height]}
    value = candidates[0].value
    return Fact("homography_to_matrix", 1, "", "d", "s", "val", "k", ("0",), candidates, 0, value, 1.0, evidence, "l")


def cv_corners(H: FloatArray, width: int, height: int) -> npt.NDArray[Any]:
    corners = np.array([[[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]], dtype=np.float64)
    return np.asarray(cv2.perspectiveTransform(corners, H)[0])


def test_hand_worked_margins() -> None:
    shift = np.array([[1.0, 0, 30], [0, 1, 40], [0, 0, 1]])
    a, b = Candidate("a", np.eye(3)), Candidate("b", shift)
    fact = bare_fact((a, b))
    assert TASK.metric(a.value, b.value, fact) == pytest.approx(50)  # 3-4-5, the same for all corners
    assert TASK.margin_ratio(a, b, fact) == pytest.approx(50 / 48)  # 6 % of the 800 px diagonal
    assert TASK.ceiling_ratio(a, b, fact) == pytest.approx(50 / 280)
    # Scale 0.5 about pixel (0, 0) of a 301x401 image moves its corners by 0, 150, 250 and 200 px.
    half = np.diag([0.5, 0.5, 1.0])
    assert TASK.metric(np.eye(3), half, bare_fact((a,), 301, 401)) == pytest.approx(150)


def test_every_warp_of_a_pool_passes_the_gates() -> None:
    width, height = 640, 480
    gates = HomographyGates()
    pool, _ = sample_pool(width, height, 12, gates, rng_for(0, "pool"))
    assert len(pool) == 12
    white = np.full((height, width), 255, np.uint8)
    for candidate in pool:
        H = candidate.value
        assert candidate.show["H"] == H.ravel().tolist()
        np.testing.assert_array_equal(parse_numbers(TASK.printed(H)).reshape(3, 3), H)
        third = np.array([[0, 0, 1], [639, 0, 1], [639, 479, 1], [0, 479, 1]]) @ H[2]
        assert third.min() >= 0.6
        assert third.max() <= 1.67
        # What comes back from the target is what was kept.
        back = cv2.warpPerspective(
            cv2.warpPerspective(white, H, (width, height), flags=cv2.INTER_NEAREST),
            np.linalg.inv(H),
            (width, height),
            flags=cv2.INTER_NEAREST,
        )
        assert (back > 0).mean() >= 0.60 - 0.01
        np.testing.assert_allclose(candidate.evidence["corners_px"], cv_corners(H, width, height), atol=1e-9)
        components = Components(**candidate.evidence["components"])
        assert len(components.list_parts()) >= 2
        assert measure_component_moves_d(components, width, height) >= 1.0
        assert np.abs(components.make_matrix(width, height) - H).max() < 0.06


def test_components_are_absent_or_present_in_all_pairs() -> None:
    rng = rng_for(0, "components")
    seen = set()
    for _ in range(300):
        c = _homographies.sample_components(640, 480, rng)
        seen.add((c.angle_deg != 0, c.scale != 1, (c.tx_px, c.ty_px) != (0, 0), (c.px, c.py) != (0, 0)))
    assert len(seen) == 11  # all sets of two, three or four out of four


def test_sets_are_plentiful_and_no_rule_finds_the_truth() -> None:
    """Nearest to the identity: right no more often than by chance."""
    rng = rng_for(0, "rule")
    shares, hits = [], []
    for _ in range(120):
        pool, _ = sample_pool(640, 480, 12, TASK.gates.section(HomographyGates), rng)
        fact = bare_fact(tuple(pool))
        table = compatibility(pool, fact, TASK)
        shares.append(len(valid_sets(table, 4)) / 495)
        truth = draw_truth(table, 4, rng)
        assert truth is not None
        options = strategies["set_first"].options(replace(fact, truth=truth), TASK, rng)
        moved = [TASK.metric(o.value, np.eye(3), fact) for o in options.options]
        hits.append(int(np.argmin(moved)) == options.truth)
    assert np.mean(shares) > 0.5
    assert 0.13 < np.mean(hits) < 0.37  # 3 standard deviations around 1/4


def test_facts_of_a_frame(view: SceneView, facts: list[Fact]) -> None:
    assert len(facts) == 2 * len(view.frames)
    assert len({fact.key for fact in facts}) == len(facts)
    by_frame: dict[str, list[Fact]] = {}
    for fact in facts:
        by_frame.setdefault(fact.frame_ids[0], []).append(fact)
        assert fact.margin >= 1
        assert TASK.metric(fact.second_value, fact.truth_candidate.value, fact) < 0.1
        np.testing.assert_array_equal(TASK.recompute(fact), fact.truth_candidate.value)
    for one, other in by_frame.values():
        assert TASK.margin_ratio(one.truth_candidate, other.truth_candidate, one) >= 1
    again, _ = measure_task(TASK, view, 0, 10)
    assert [f.truth_candidate.key for f in again] == [f.truth_candidate.key for f in facts]


def test_a_break_in_either_route_sinks_the_draft(
    view: SceneView, facts: list[Fact], monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = facts[0]
    truth = fact.truth_candidate
    for wrong in (np.linalg.inv(truth.value), truth.value + np.array([[0, 0, 1.0], [0, 0, 0], [0, 0, 0]])):
        members = list(fact.candidates)
        members[fact.truth] = replace(truth, value=wrong / wrong[2, 2])
        outcome = confirm_draft(TASK, replace(fact, candidates=tuple(members)), view)
        assert isinstance(outcome, Rejected)
        assert outcome.reason == "second_route_disagrees"
        assert outcome.value > 1
    swapped = lambda H, w, h: warp_correspondences(H, w, h)[::-1]  # noqa: E731
    monkeypatch.setattr(_homographies, "warp_correspondences", swapped)
    assert isinstance(confirm_draft(TASK, fact, view), Rejected)


@pytest.mark.parametrize("size", [(640, 480), (561, 420), (30, 9)])
def test_every_nth_pixel_of_a_warp_is_that_of_the_whole(size: tuple[int, int]) -> None:
    width, height = size
    u, v = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    rng = rng_for(0, "warp")
    for _ in range(10):
        H = _homographies.sample_components(width, height, rng).make_matrix(width, height)
        whole = cv2.warpPerspective(np.stack([u, v], axis=-1), H, size, borderValue=(-1e6, -1e6))
        source, target = warp_correspondences(H, width, height)
        there = target.astype(int)
        # OpenCV rounds source coordinates to 1/32 pixel, and either way of writing them may fall on either side.
        np.testing.assert_allclose(source, whole[there[:, 1], there[:, 0]], atol=1 / 32 + 1e-4)
        assert len(source) > 0.3 * min(12, width) * min(12, height)


def test_the_second_picture_is_the_first_one_warped(view: SceneView, facts: list[Fact]) -> None:
    """A dot of the source is found where OpenCV's own point transform puts it, not where the inverse would."""
    for fact in facts:
        options = strategies["set_first"].options(fact, TASK, rng_for(0, "o"))
        shown = TASK.choice(fact, options, rng_for(0, "c"))
        assert parse_numbers(shown.options[options.truth]).tolist() == fact.truth_candidate.value.ravel().tolist()
        assert shown.pictures[0].ops == ()
        image = np.zeros((360, 480, 3), np.uint8)
        H = fact.truth_candidate.value
        for x, y in ((240, 180), (180, 220)):
            cv2.circle(image, (x, y), 6, (255, 255, 255), -1)
            warped = pictures.apply(shown.pictures[1], image)
            v, u = np.nonzero(warped[..., 0] > 100)
            expected = cv2.perspectiveTransform(np.array([[[x, y]]], dtype=np.float64), H)[0, 0]
            np.testing.assert_allclose([u.mean(), v.mean()], expected, atol=0.6)
            image[:] = 0
        for phrasing in load_phrasings(TASK.name, "multi-choice"):
            question, context = render(phrasing, shown.slots)
            assert lint(question, context, shown.options, phrasing.states) == []
        assert (shown.slots["width"], shown.slots["height"]) == ("480", "360")


def test_a_frame_without_corners_is_rejected_with_its_count(view: SceneView) -> None:
    strict = HomographyToMatrix(Gates().with_section(HomographyGates(keypoints_min=10**6)))
    drafts = list(strict.drafts(view, rng_for(0, "r"), 10))
    assert len(drafts) == len(view.frames)
    for draft, frame in zip(sorted(drafts, key=lambda d: d.key), sorted(view.frames, key=lambda f: f.id), strict=True):
        assert isinstance(draft, Rejected)
        assert (draft.reason, draft.value, draft.limit) == ("keypoints", frame.corner_count, 10**6)


def test_invalid_matrices_are_not_options() -> None:
    fact = bare_fact((Candidate("a", np.eye(3)),))
    singular = np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    steep = np.array([[1.0, 0, 60], [0, 1, 0], [-0.001, 0, 1]])  # denominator 0.36 at the right edge
    gone = np.array([[1.0, 0, 400], [0, 1, 0], [0, 0, 1]])
    good = np.array([[1.0, 0, 60], [0, 1, 0], [0, 0, 1]])
    valid = [TASK.valid(Candidate("c", H), fact) for H in (singular, steep, gone, np.eye(3), 2 * good, good)]
    assert valid == [False, False, False, False, False, True]


def test_features_of_real_pictures_find_the_matrix(captures: Path) -> None:
    """An image-only solver (SIFT and RANSAC) reaches the printed matrix."""
    with next(iter(open_scenes(captures, datasets=["scannet"]))) as scene:
        view = SceneView(scene, Gates())
        kept, _ = measure_task(TASK, view, 0, 4)
        assert len(kept) == 4
        for fact in kept:
            frame = view.frame(fact.frame_ids[0])
            image = pictures.decode(frame.base_image()[0])
            shown = replace(fact, pictures={frame.id: NAME}, cameras={frame.id: make_camera_record(frame.camera)})
            options = strategies["set_first"].options(shown, TASK, rng_for(0, "o"))
            warped = pictures.apply(TASK.choice(shown, options, rng_for(0, "c")).pictures[1], image)
            x1, x2 = _matches(image, warped)
            H, _ = cv2.findHomography(x1, x2, cv2.RANSAC, 2.0)
            assert TASK.metric(np.asarray(H, dtype=np.float64), fact.truth_candidate.value, fact) < 3
        view.close()


def _matches(a: npt.NDArray[np.uint8], b: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    sift = cv2.SIFT.create(1000)
    points_a, values_a = sift.detectAndCompute(a, None)
    points_b, values_b = sift.detectAndCompute(b, None)
    pairs = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(values_a, values_b)
    x1 = np.array([points_a[p.queryIdx].pt for p in pairs])
    return x1, np.array([points_b[p.trainIdx].pt for p in pairs])
