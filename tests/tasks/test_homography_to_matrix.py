from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.lenient import replace_section
from tests.scene_factory import room_scene
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Candidate, Fact, FloatArray, Rejected
from vgbench_gen.distractors.base import compatibility, draw_truth, set_problem, strategies
from vgbench_gen.distractors.factorial import list_wrong_parts
from vgbench_gen.pipeline.measure import confirm_draft, measure_task
from vgbench_gen.pipeline.question import turn_to_other_side
from vgbench_gen.scenes import open_scenes
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store import pictures
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks._homographies import task as _homographies
from vgbench_gen.tasks._homographies.evidence import KINDS, PART_FIELDS, PARTS, Components, Kind, WarpedImageEvidence
from vgbench_gen.tasks._homographies.sampler import find_warp_problem, sample_pool
from vgbench_gen.tasks._homographies.task import warp_correspondences
from vgbench_gen.tasks.gates import HomographyGates
from vgbench_gen.tasks.homography_to_matrix import HomographyToMatrix
from vgbench_gen.tasks.records import make_camera_record
from vgbench_gen.tasks.solving.seen import read_corner_moves
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
            cameras={fact.frame_ids[0]: make_camera_record(view.frame(fact.frame_ids[0]).wide_camera)},
        )
        for fact in kept
    ]


def image_of(kind: Kind = "similarity", frame: tuple[int, int] = (1120, 840), at: int = 0) -> WarpedImageEvidence:
    """A crop of 640x480, or of as large a share of another frame, `at` pixels right of and below the middle."""
    width, height = round(frame[0] * 640 / 1120), round(frame[1] * 480 / 840)
    crop = (frame[0] - width) // 2 + at, (frame[1] - height) // 2 + at, width, height
    return WarpedImageEvidence(kind=kind, frame_size=frame, crop=crop, size=(width, height))


def bare_fact(candidates: tuple[Candidate, ...], image: WarpedImageEvidence | None = None) -> Fact:
    evidence, value = (image or image_of()).write(), candidates[0].value
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
    assert TASK.pair_margins((a, b), fact)[1][0, 1] == pytest.approx(50 / 280)
    # Scale 0.5 about pixel (0, 0) of a 301x401 image moves its corners by 0, 150, 250 and 200 px.
    half = np.diag([0.5, 0.5, 1.0])
    image = WarpedImageEvidence(kind="similarity", frame_size=(500, 600), crop=(90, 90, 301, 401), size=(301, 401))
    assert TASK.metric(np.eye(3), half, bare_fact((a,), image)) == pytest.approx(150)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frame", [(1120, 840), (840, 1120), (1600, 1067)])
def test_every_warp_of_a_pool_passes_the_gates(kind: Kind, frame: tuple[int, int]) -> None:
    image = image_of(kind, frame, at=10)
    width, height = image.size
    pool, _ = sample_pool(image, HomographyGates(), rng_for(0, "pool"))
    assert len(pool) == 9
    white = np.full((height, width), 255, np.uint8)
    for candidate in pool:
        H = candidate.value
        assert candidate.show["H"] == H.ravel().tolist()
        np.testing.assert_array_equal(parse_numbers(TASK.printed(H)).reshape(3, 3), H)
        corners = np.array([[0, 0, 1], [width - 1, 0, 1], [width - 1, height - 1, 1], [0, height - 1, 1]])
        third = corners @ H[2] / ([(width - 1) / 2, (height - 1) / 2, 1] @ H[2])
        assert third.min() >= 0.6
        assert third.max() <= 1.67
        # Each image shows half of the other at least: what a white image covers there, and the other way.
        for way in (H, np.linalg.inv(H)):
            seen = cv2.warpPerspective(white, way, (width, height), flags=cv2.INTER_NEAREST)
            assert (seen > 0).mean() >= 0.50 - 0.01
        np.testing.assert_allclose(candidate.evidence["corners_px"], cv_corners(H, width, height), atol=1e-9)
        components = Components(**candidate.evidence["components"])
        assert np.abs(components.make_matrix(width, height) - H).max() < 0.06


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_is_of_one_kind_and_of_all_values_of_two_parts(kind: Kind) -> None:
    image = image_of(kind)
    for seed in range(12):
        pool, _ = sample_pool(image, HomographyGates(), rng_for(seed, "kinds"))
        Hs = np.stack([candidate.value for candidate in pool])
        linear = Hs[:, :2, :2]
        if kind == "projective":
            assert (np.abs(Hs[:, 2, :2]).max(axis=1) > 1e-5).all()
        else:
            assert (Hs[:, 2, :2] == 0).all()
            # Angles stay what they are under a similarity alone.
            is_similar = np.isclose(linear[:, 0, 0], linear[:, 1, 1]) & np.isclose(linear[:, 0, 1], -linear[:, 1, 0])
            assert is_similar.all() if kind == "similarity" else not is_similar.any()
        components = [Components(**candidate.evidence["components"]) for candidate in pool]
        first, second = (PART_FIELDS[part] for part in PARTS[kind])
        values = {(getattr(c, first), getattr(c, second)) for c in components}
        assert len(values) == 9
        assert [len({value[part] for value in values}) for part in (0, 1)] == [3, 3]
        others = {tuple(v for n, v in sorted(c.model_dump().items()) if n not in (first, second)) for c in components}
        assert len(others) == 1
        table = compatibility(pool, bare_fact(tuple(pool), image), TASK)
        assert table.all()


def test_values_of_a_part_are_exchangeable() -> None:
    """Which of three values is the middle one says nothing about its place in the pool, nor what it is with."""
    places = []
    for seed in range(150):
        pool, _ = sample_pool(image_of("affine"), HomographyGates(), rng_for(seed, "places"))
        stretches = [Components(**candidate.evidence["components"]).stretch for candidate in pool[::3]]
        places.append(int(np.argsort(stretches)[1]))
    counts = np.bincount(places, minlength=3)
    assert counts.min() > 30, counts  # 50 expected; 3.5 standard deviations


def test_the_frame_fills_what_a_warp_draws() -> None:
    """No black is left, wherever the crop lies; as soon as the frame ends too early, the gate says so."""
    found = set()
    for at in (-40, 0, 40):
        image = image_of("similarity", at=at)
        frame = np.full((*image.frame_size[::-1], 3), 255, np.uint8)
        for seed in range(10):
            for candidate in sample_pool(image, HomographyGates(), rng_for(seed, str(at)))[0]:
                op = image.make_warp_op(candidate.show["H"])
                assert pictures.apply(Picture(NAME, (op,)), frame).min() == 255
                # The same warp of a frame that ends a little past the crop.
                x0, y0, width, height = image.crop
                small = image.with_fields(frame_size=(x0 + width + 20, y0 + height + 20))
                outer = cv2.perspectiveTransform(
                    np.array([[[0.0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]]),
                    np.linalg.inv(candidate.value),
                )[0] + [x0, y0]
                room = float(min((np.array(small.frame_size) - 1 - outer).min(), outer.min()))
                problem, _ = find_warp_problem(candidate.value, small, HomographyGates())
                assert (problem == "border") == (room < 1)
                found.add(problem)
    assert found == {"", "border"}


def test_no_rule_finds_the_truth() -> None:
    """Nearest to the identity, or most in common with the others: right no more often than by chance."""
    rng = rng_for(0, "rule")
    hits = []
    for turn in range(240):
        pool, _ = sample_pool(image_of(KINDS[turn % 3]), TASK.gates.section(HomographyGates), rng)
        fact = bare_fact(tuple(pool), image_of(KINDS[turn % 3]))
        truth = draw_truth(compatibility(pool, fact, TASK), 4, rng)
        assert truth is not None
        options = strategies["set_first"].options(replace(fact, truth=truth), TASK, rng)
        values = np.stack([option.value for option in options.options])
        moved = [TASK.metric(value, np.eye(3), fact) for value in values]
        central = np.abs(values[:, None] - values).sum(axis=(1, 2, 3))
        hits.append([int(np.argmin(moved)) == options.truth, int(np.argmin(central)) == options.truth])
    assert np.abs(np.mean(hits, axis=0) - 0.25).max() < 0.084  # 3 standard deviations


def read_parts(H: FloatArray, image: WarpedImageEvidence) -> tuple[float, float]:
    """The two parts of a matrix, from its entries alone."""
    width, height = image.size
    centre = np.array([(width - 1) / 2, (height - 1) / 2, 1.0])
    if image.kind == "projective":
        tilt = H[2, :2] / (H[2] @ centre) * [width / 2, height / 2]
        return float(tilt[0]), float(tilt[1])
    linear = H[:2, :2]
    if image.kind == "similarity":
        return float(np.degrees(np.arctan2(linear[1, 0], linear[0, 0]))), float(np.sqrt(np.linalg.det(linear)))
    shape = linear.T @ linear / np.linalg.det(linear)  # what rotation and scale leave as it is
    return float(shape[0, 0]), float(shape[0, 1] / np.sqrt(shape[0, 0]))


def test_factorial_options_are_the_combinations_of_two_values_of_two_parts() -> None:
    tolerance = {"similarity": (0.1, 2e-3), "affine": (5e-3, 5e-3), "projective": (2e-3, 2e-3)}
    truths, wrong_seen = [], set()
    for seed in range(24):
        image = image_of(KINDS[seed % 3])
        pool, _ = sample_pool(image, HomographyGates(), rng_for(seed, "factorial"))
        drawn = TASK.with_drawn_truth(bare_fact(tuple(pool), image), rng_for(seed, "truth"))
        assert drawn is not None
        options = strategies["factorial"].options(drawn, TASK, rng_for(seed, "o"))
        assert set_problem(options.options, 4, drawn, TASK) == ""
        parts = np.array([read_parts(option.value, image) for option in options.options])
        same = np.abs(parts[:, None] - parts) < tolerance[image.kind]
        # Each value of a part stands in two options, and each pair of values in one.
        assert (same.sum(axis=1) == 2).all()
        assert (same.all(axis=-1) == np.eye(4, dtype=bool)).all()
        first, second = PARTS[image.kind]
        right = same[options.truth]
        expected = ["+".join(p for p, holds in zip((first, second), row, strict=True) if not holds) for row in right]
        assert list(list_wrong_parts(options)) == expected
        wrong_seen |= set(expected)
        truths.append(options.truth)
    assert len(wrong_seen) == 1 + 9
    assert len(set(truths)) == 4


def test_the_partner_of_a_factorial_set_is_one_of_inverses() -> None:
    kept = 0
    for seed in range(12):
        image = image_of(KINDS[seed % 3])
        pool, _ = sample_pool(image, HomographyGates(), rng_for(seed, "factorial"))
        fact = bare_fact(tuple(pool), image)
        options = strategies["factorial"].options(fact, TASK, rng_for(seed, "o"))
        turned = turn_to_other_side(fact, options, TASK)
        assert turned is not None
        there, others = turned
        assert others is not None
        assert list_wrong_parts(others) == list_wrong_parts(options)
        for a, b in zip(options.options, others.options, strict=True):
            assert np.abs(a.value @ b.value / (a.value @ b.value)[2, 2] - np.eye(3)).max() < 0.5
        kept += set_problem(others.options, 4, there, TASK) == ""
    assert kept >= 6


def test_facts_of_a_frame(view: SceneView, facts: list[Fact]) -> None:
    assert len(facts) == 2 * len(view.frames)
    assert len({fact.key for fact in facts}) == len(facts)
    for fact in facts:
        image = WarpedImageEvidence.of(fact)
        assert image.frame_size == (480, 360)
        assert image.size == tuple(round(0.6 * side) for side in image.crop[2:])
        for start, side, whole in zip(image.crop[:2], image.crop[2:], image.frame_size, strict=True):
            assert 0.55 <= side / whole < 0.58
            assert 0.25 < start / (whole - side) < 0.75
        assert fact.margin >= 1
        assert TASK.metric(fact.second_value, fact.truth_candidate.value, fact) < 0.1
        np.testing.assert_array_equal(TASK.recompute(fact), fact.truth_candidate.value)
    assert len({WarpedImageEvidence.of(fact).crop for fact in facts}) == len(facts)
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

    def swapped(H: FloatArray, image: WarpedImageEvidence) -> tuple[FloatArray, FloatArray]:
        return warp_correspondences(H, image)[::-1]

    monkeypatch.setattr(_homographies, "warp_correspondences", swapped)
    assert isinstance(confirm_draft(TASK, fact, view), Rejected)


@pytest.mark.parametrize("frame", [(1120, 840), (561, 420), (130, 90)])
def test_every_nth_pixel_of_a_warp_is_that_of_the_whole(frame: tuple[int, int]) -> None:
    u, v = np.meshgrid(np.arange(frame[0], dtype=np.float32), np.arange(frame[1], dtype=np.float32))
    rng = rng_for(0, "warp")
    for kind in KINDS:
        image = image_of(kind, frame)
        for candidate in sample_pool(image, HomographyGates(gap_min_d=4.0), rng)[0]:
            shifted = np.array([[1.0, 0, -image.crop[0]], [0, 1, -image.crop[1]], [0, 0, 1]])
            whole = cv2.warpPerspective(np.stack([u, v], axis=-1), candidate.value @ shifted, image.size)
            source, target = warp_correspondences(candidate.value, image)
            there = target.astype(int)
            # OpenCV rounds source coordinates to 1/32 pixel, and either way of writing them may fall on either side.
            expected = whole[there[:, 1], there[:, 0]] - np.array(image.crop[:2])
            np.testing.assert_allclose(source, expected, atol=1 / 32 + 1e-4)
            assert len(source) == 144


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frame", [(1120, 840), (840, 1120), (1600, 1067)])
def test_corners_in_words_give_the_matrix_back_all_over_the_image(kind: Kind, frame: tuple[int, int]) -> None:
    image = image_of(kind, frame, at=10)
    width, height = image.size
    corners_px = np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], dtype=float)
    grid = np.stack(np.meshgrid(np.linspace(0, width - 1, 9), np.linspace(0, height - 1, 9)), axis=-1).reshape(-1, 1, 2)
    fact = bare_fact(tuple(sample_pool(image, HomographyGates(), rng_for(0, "pool"))[0]), image)
    partner = TASK.counterpart(fact)
    assert partner is not None
    for side in (fact, partner):
        for candidate in side.candidates:
            (moves_px,) = read_corner_moves(TASK.print_option(candidate, side))
            read, _ = cv2.findHomography(corners_px, corners_px + moves_px)
            off_px = cv2.perspectiveTransform(grid, read) - cv2.perspectiveTransform(grid, candidate.value)
            assert np.linalg.norm(off_px, axis=-1).max() < 0.2  # WARP_PX is 0.5


def test_words_say_where_a_corner_goes() -> None:
    image = WarpedImageEvidence(kind="similarity", frame_size=(500, 600), crop=(90, 90, 301, 401), size=(301, 401))
    halved = Candidate("half", np.array([[0.5, 0, 10], [0, 0.5, -20.04], [0, 0, 1]]))  # about pixel (0, 0), then moved
    assert TASK.print_option(halved, bare_fact((halved,), image)) == (
        "top left 10.0 px right, 20.0 px up; top right 140.0 px left, 20.0 px up; "
        "bottom right 140.0 px left, 220.0 px up; bottom left 10.0 px right, 220.0 px up"
    )


def test_the_second_picture_is_the_first_one_warped(view: SceneView, facts: list[Fact]) -> None:
    """A dot of the source is found where OpenCV's own point transform puts it, not where the inverse would."""
    for fact in facts:
        options = strategies["set_first"].options(fact, TASK, rng_for(0, "o"))
        shown = TASK.choice(fact, options, rng_for(0, "c"))
        matrix = HomographyToMatrix(replace_section(Gates(), HomographyGates(notation="matrix")))
        printed = matrix.choice(fact, options, rng_for(0, "c")).options[options.truth]
        assert parse_numbers(printed).tolist() == fact.truth_candidate.value.ravel().tolist()
        image, H = np.zeros((360, 480, 3), np.uint8), fact.truth_candidate.value
        for x, y in ((240, 180), (215, 200)):
            cv2.circle(image, (x, y), 6, (255, 255, 255), -1)
            places = []
            for picture in shown.pictures:
                v, u = np.nonzero(pictures.apply(picture, image)[..., 0] > 100)
                places.append([u.mean(), v.mean()])
            # Found in the first picture where the crop has it, in the second where the matrix puts that place.
            cut = WarpedImageEvidence.of(fact)
            expected = (np.array([x, y]) + 0.5 - cut.crop[:2]) / cut.crop[2:] * cut.size - 0.5
            np.testing.assert_allclose(places[0], expected, atol=0.3)
            expected = cv2.perspectiveTransform(np.array([[places[0]]]), H)[0, 0]
            np.testing.assert_allclose(places[1], expected, atol=0.6)
            image[:] = 0
        for phrasing in load_phrasings(TASK.name, "multi-choice", "words"):
            question, context = render(phrasing, shown.slots)
            assert lint(question, context, shown.options, phrasing.states) == []
        size = WarpedImageEvidence.of(fact).size
        assert (shown.slots["width"], shown.slots["height"]) == tuple(map(str, size))
        assert [pictures.find_size(picture, (480, 360)) for picture in shown.pictures] == [size, size]


def test_a_frame_without_corners_is_rejected_with_its_count(view: SceneView) -> None:
    strict = HomographyToMatrix(replace_section(Gates(), HomographyGates(keypoints_min=10**6)))
    drafts = list(strict.drafts(view, rng_for(0, "r"), 10))
    assert len(drafts) == 2 * len(view.frames)
    for draft in drafts:
        assert isinstance(draft, Rejected)
        assert (draft.reason, draft.limit) == ("keypoints", 10**6)
        assert 0 < draft.value < len(view.frame(draft.key.split("/")[0]).corners_uv)


def test_a_crop_that_leaves_no_room_is_rejected(view: SceneView) -> None:
    whole = HomographyToMatrix(replace_section(Gates(), HomographyGates(crop_share=0.95)))
    drafts = list(whole.drafts(view, rng_for(0, "r"), 10))
    assert {draft.reason for draft in drafts if isinstance(draft, Rejected)} == {"warps_border"}
    assert not any(isinstance(draft, Fact) for draft in drafts)


def test_invalid_matrices_are_not_options() -> None:
    fact = bare_fact((Candidate("a", np.eye(3)),))
    singular = np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    steep = np.array([[1.0, 0, 60], [0, 1, 0], [-0.001, 0, 1]])  # denominator 0.36 at the right edge
    gone = np.array([[1.0, 0, 400], [0, 1, 0], [0, 0, 1]])
    beyond = np.array([[1.0, 0, 245], [0, 1, 0], [0, 0, 1]])  # the frame ends 240 px left of the crop
    blurred = np.array([[2.1, 0, -350], [0, 2.1, -260], [0, 0, 1]])
    good = np.array([[1.0, 0, 60], [0, 1, 0], [0, 0, 1]])
    bad = (singular, steep, gone, beyond, blurred, np.eye(3), 2 * good)
    assert not any(TASK.valid(Candidate("c", H), fact) for H in bad)
    assert TASK.valid(Candidate("c", good), fact)


def test_features_of_real_pictures_find_the_matrix(captures: Path) -> None:
    """An image-only solver (SIFT and RANSAC) reaches the printed matrix."""
    with next(iter(open_scenes(captures, datasets=["scannet"]))) as scene:
        view = SceneView(scene, Gates())
        kept, _ = measure_task(TASK, view, 0, 4)
        assert len(kept) == 4
        for fact in kept:
            frame = view.frame(fact.frame_ids[0])
            image = pictures.decode(frame.base_image(wide=True)[0])
            shown = replace(fact, pictures={frame.id: NAME}, cameras={frame.id: make_camera_record(frame.wide_camera)})
            options = strategies["set_first"].options(shown, TASK, rng_for(0, "o"))
            first, second = TASK.choice(shown, options, rng_for(0, "c")).pictures
            x1, x2 = _matches(pictures.apply(first, image), pictures.apply(second, image))
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
