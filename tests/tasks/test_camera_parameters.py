from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.lenient import without_lines
from tests.scene_factory import room_scene
from vgbench_gen.core.errors import GeometryError, TooFewOptionsError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray, Rejected
from vgbench_gen.distractors.base import OptionSet, compatibility, strategies, valid_sets
from vgbench_gen.geometry import cameras, projection
from vgbench_gen.pipeline.measure import confirm_draft, measure_task
from vgbench_gen.scenes import open_scenes
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store import pictures
from vgbench_gen.tasks.camera_parameters import CameraParameters
from vgbench_gen.tasks.camera_parameters import task as module
from vgbench_gen.tasks.camera_parameters.crops import (
    SizeEvidence,
    compute_parameter,
    keep_determined,
    make_shown_camera,
    propose_rects,
)
from vgbench_gen.tasks.camera_parameters.estimate import score_by_lines
from vgbench_gen.tasks.records import make_camera_record, read_camera_record
from vgbench_gen.tasks.solving import Image, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.camera_fit import NOISE_PX, detect_segments
from vgbench_gen.text.numbers import parse_numbers
from vgbench_gen.text.render import load_phrasings, render

TASK = CameraParameters()
LENIENT = CameraParameters(without_lines(Gates()))
NAME = "0" * 32 + ".png"
BASE = Camera(np.array([[576.0, 0, 322.5], [0, 570.0, 237.5], [0, 0, 1]]), 640, 480)


@pytest.fixture(scope="module")
def view() -> SceneView:
    return SceneView(room_scene(frames=2, panel_m=0.5), Gates())


def make_draft(
    frame: ViewFrame, view: SceneView, ask: str, seed: Any, task: CameraParameters = TASK
) -> Fact | Rejected:
    return task._draft(frame, detect_segments(frame.grey), view, ask, rng_for(seed, ask))


@pytest.fixture(scope="module")
def facts(view: SceneView) -> list[Fact]:
    """One per kind of question, all on the first frame."""
    found = []
    for ask in TASK.asks:
        draft = make_draft(view.frames[0], view, ask, 0)
        assert isinstance(draft, Fact), draft
        checked = confirm_draft(TASK, draft, view)
        assert isinstance(checked, Fact), checked
        found.append(_stored(checked, view))
    return found


def _stored(fact: Fact, view: SceneView) -> Fact:
    frame = view.frame(fact.frame_ids[0])
    return replace(fact, pictures={frame.id: NAME}, cameras={frame.id: make_camera_record(frame.camera)})


def _bare(ask: str, *values: float) -> Fact:
    pool = tuple(Candidate(str(i), np.array([v])) for i, v in enumerate(values))
    evidence = {"size": [640, 480]}
    return Fact("camera_parameters", 1, ask, "d", "s", "val", "k", ("0",), pool, 0, pool[0].value, 1.0, evidence, "l")


def test_hand_worked_crop() -> None:
    """A 320x240 crop at (100, 50), doubled: focal lengths double, centres move by the corner and the half pixel."""
    camera = make_shown_camera(BASE, {"rect": [100, 50, 320, 240], "size": [640, 480]})
    expected = {
        "fx": 1152.0,
        "fy": 1140.0,
        "cx": (322.5 - 100 + 0.5) * 2 - 0.5,  # 445.5
        "cy": (237.5 - 50 + 0.5) * 2 - 0.5,  # 375.5
        "hfov": math.degrees(math.atan(446 / 1152) + math.atan(194 / 1152)),
        "vfov": math.degrees(math.atan(376 / 1140) + math.atan(104 / 1140)),
    }
    shown = Candidate("crop", np.zeros(1), show={"rect": [100, 50, 320, 240], "size": [640, 480]})
    cropped = replace(_bare("fx", 0), frame_ids=("7",), cameras={"7": make_camera_record(BASE)}, candidates=(shown,))
    for ask, value in expected.items():
        assert compute_parameter(camera, ask) == pytest.approx(value, abs=1e-9)
        recomputed = TASK.recompute(replace(cropped, ask=ask))
        assert recomputed[0] == pytest.approx(round(value, 1 if "fov" in ask else 0), abs=1e-9)


def test_margins_by_what_is_asked() -> None:
    for ask, a, b in (("fx", 800, 1000), ("fy", 1000, 800), ("cx", 300, 376.8), ("cy", 257.6, 200), ("hfov", 50, 43)):
        fact = _bare(ask, a, b)
        assert TASK.margin_ratio(fact.candidates[0], fact.candidates[1], fact) == pytest.approx(1), ask
    for a, b in ((800, 0), (800, -800)):  # no focal lengths, so never far enough from one
        fact = _bare("fx", a, b)
        assert TASK.margin_ratio(fact.candidates[0], fact.candidates[1], fact) == 0
    wide = _bare("cx", 100, 200)
    narrow, long = (replace(c, evidence={"fx": f}) for c, f in zip(wide.candidates, (600, 1440), strict=True))
    assert TASK.pair_margins([narrow, long], wide)[1][0, 1] == pytest.approx(1)  # focal ratio 2.4, though cx is asked


def test_pools_keep_their_promises(view: SceneView, facts: list[Fact]) -> None:
    for fact in facts:
        for candidate in fact.candidates:
            x0, y0, width, height = candidate.show["rect"]
            assert x0 >= 0 <= y0
            assert x0 + width <= 640
            assert y0 + height <= 480
            if fact.ask in ("cx", "cy"):  # strips of one size, not enlarged
                assert candidate.show["size"] == [width, height] == ([400, 480] if fact.ask == "cx" else [640, 300])
                continue
            assert candidate.show["size"] == [256, 192]
            assert width >= 256  # not enlarged
            assert abs(height - width * 0.75) <= 0.5
            assert 1 <= candidate.evidence["zoom"] <= 3.001
            assert abs(candidate.evidence["cx"] - 127.5) <= 1  # as the question states
            assert abs(candidate.evidence["cy"] - 95.5) <= 1
        sets = valid_sets(compatibility(fact.candidates, fact, TASK), 4)
        assert (sets == fact.truth).any()
        for members in sets:
            focal = [fact.candidates[i].evidence["fx"] for i in members]
            assert max(focal) / min(focal) <= 2.4
            for i, j in itertools.combinations(members, 2):
                a, b = (float(fact.candidates[k].value[0]) for k in (i, j))
                if fact.ask in ("fx", "fy"):
                    assert max(a, b) / min(a, b) >= 1.25
                elif fact.ask in ("hfov", "vfov"):
                    assert abs(a - b) >= 7
                else:
                    assert abs(a - b) >= 0.12 * (400 if fact.ask == "cx" else 300)
    for fact, side in zip(facts[2:4], (400, 300), strict=True):
        offset = np.array([c.evidence[fact.ask] for c in fact.candidates]) - (side - 1) / 2
        assert (np.abs(offset) >= 0.1 * side).all()
        assert (offset > 0).any()
        assert (offset < 0).any()


def test_the_rank_of_the_truth_is_uniform(view: SceneView) -> None:
    ranks = []
    segments = [detect_segments(frame.grey) for frame in view.frames]
    for turn in range(60):
        rng = rng_for(turn, "rank")
        for ask in ("fx", "vfov"):
            draft = LENIENT._draft(view.frames[turn % 2], segments[turn % 2], view, ask, rng)
            if isinstance(draft, Fact):
                options = strategies["set_first"].options(draft, LENIENT, rng)
                ranks.append(sorted(float(o.value[0]) for o in options.options).index(_truth_value(options)))
    counts = np.bincount(ranks, minlength=4)
    assert len(ranks) > 100
    assert ((counts - len(ranks) / 4) ** 2).sum() / (len(ranks) / 4) < 16.3  # chi-square, 3 degrees, p = 0.001


def _truth_value(options: OptionSet) -> float:
    return float(options.options[options.truth].value[0])


def test_a_break_in_the_first_route_sinks_the_draft(view: SceneView, monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(camera: Camera, x0: int, y0: int, width: int, height: int) -> Camera:
        K = camera.K - np.array([[0, 0, x0 + 3], [0, 0, y0 + 3], [0, 0, 0]])
        return Camera(K, width, height)

    def stretched(camera: Camera, width: int, height: int) -> Camera:
        s = (width - 1) / camera.width
        K = np.array([[camera.fx * s, 0, camera.cx * s], [0, camera.fy * s, camera.cy * s], [0, 0, 1]])
        return Camera(K, width, height)

    for name, broken, asks in (("crop_camera", shifted, ("cx", "cy")), ("resize_camera", stretched, ("fx", "fy"))):
        with monkeypatch.context() as patch:
            patch.setattr(cameras, name, broken)
            for ask in asks:
                outcomes = []
                for turn in range(4):
                    draft = make_draft(view.frames[0], view, ask, turn, LENIENT)
                    if isinstance(draft, Fact):
                        outcomes.append(confirm_draft(TASK, draft, view))
                assert any(isinstance(o, Rejected) and o.reason == "second_route_disagrees" for o in outcomes), name


def test_a_break_in_the_second_route_sinks_the_draft(
    view: SceneView, facts: list[Fact], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = module._resize_map

    def half_the_zoom(*args: Any, **kwargs: Any) -> tuple[FloatArray, FloatArray]:
        out, base = whole(*args, **kwargs)
        return out, base * 1.01

    monkeypatch.setattr(module, "_resize_map", half_the_zoom)
    assert all(isinstance(confirm_draft(TASK, fact, view), Rejected) for fact in facts)


def test_no_depth_no_second_route(view: SceneView, facts: list[Fact], monkeypatch: pytest.MonkeyPatch) -> None:
    frame = view.frame(facts[0].frame_ids[0])
    monkeypatch.setattr(frame, "depth_m", np.zeros_like(frame.depth_m))
    with pytest.raises(GeometryError, match="too little known depth"):
        TASK.recheck(facts[0], view)


def test_the_picture_shows_the_crop_of_the_stated_camera(facts: list[Fact], view: SceneView) -> None:
    """A point in front of the camera, drawn into the base image, is found in the picture where the values say."""
    by_ask = {fact.ask: fact for fact in facts}
    fact = by_ask["cx"]
    frame, truth = view.frame(fact.frame_ids[0]), fact.truth_candidate
    x0, y0, width, height = truth.show["rect"]
    middle = np.array([x0 + width // 2, y0 + height // 2])
    image = np.zeros((480, 640, 3), np.uint8)
    image[middle[1] - 2 : middle[1] + 3, middle[0] - 2 : middle[0] + 3] = 255
    ray = np.linalg.solve(frame.camera.K, [*middle, 1.0])
    shown = pictures.apply(TASK.pictures(fact)[0], image)
    assert shown.shape == (480, 400, 3)
    v, u = np.nonzero(shown[..., 0] > 120)
    e = truth.evidence
    np.testing.assert_allclose(
        [u.mean(), v.mean()], [e["fx"] * ray[0] + e["cx"], e["fy"] * ray[1] + e["cy"]], atol=0.75
    )


def test_words_numbers_and_sizes(facts: list[Fact]) -> None:
    for fact in facts:
        truth = float(fact.truth_candidate.value[0])
        options = strategies["set_first"].options(fact, TASK, rng_for(0, "o"))
        choice = TASK.choice(fact, options, rng_for(0, "c"))
        assert [parse_numbers(text)[0] for text in choice.options] == [o.value[0] for o in options.options]
        unit = "degrees" if "fov" in fact.ask else "pixels"
        plain = TASK.with_gates(Gates.model_validate({"camera_parameters": {"wall_m": 0}}))
        numbers = plain.choice(fact, options, rng_for(0, "c")).options
        assert all(text.endswith(unit) for text in numbers)
        assert all(text.startswith(number) for text, number in zip(choice.options, numbers, strict=True))
        opened = TASK.open_ended(fact)
        assert opened.answer.endswith(unit)
        assert parse_numbers(opened.answer).tolist() == [truth]
        size = {"cx": ("400", "480"), "cy": ("640", "300")}.get(fact.ask, ("256", "192"))
        assert (choice.slots["width"], choice.slots["height"]) == size


def test_a_lens_shows_so_much_of_a_wall_two_meters_away(facts: list[Fact]) -> None:
    """By the pixels of both borders: where the camera of the crop sees them on the plane z = 2 m."""
    seen: Counter[str] = Counter()
    for fact in facts:
        axis, way = (0, "across") if fact.ask in ("fx", "hfov") else (1, "up")
        twins = next(filter(None, (TASK.claim_pair(fact, rng_for(seed, "t")) for seed in range(60))))
        if fact.ask in ("cx", "cy"):
            assert twins.true.slots["unit"] == "pixels"
            continue
        for option in fact.candidates:
            camera = make_shown_camera(read_camera_record(fact.cameras["0"]), option.show)
            ends = np.array([[-0.5, -0.5], [camera.width - 0.5, camera.height - 0.5]])
            low, high = projection.back_project(camera, ends, np.array([2.0, 2.0]))[:, axis]
            text = TASK.print_option(option, fact)
            assert f" m {way} a wall 2 m away)" in text
            np.testing.assert_allclose(parse_numbers(text)[1], high - low, rtol=0.003, atol=0.005)
        words = TASK.print_option(Candidate("", twins.false.value), fact)
        assert f"{twins.false.slots['claim']} {twins.false.slots['unit']}" == words
        seen[fact.ask] += 1
    assert len(seen) == 4


def test_twins_stay_on_their_side_of_the_tolerance(facts: list[Fact]) -> None:
    asked: Counter[str] = Counter()
    for fact in facts:
        truth = float(fact.truth_candidate.value[0])
        digit = 0.1 if "fov" in fact.ask else 1.0
        side = fact.evidence["size"][fact.ask == "cy"]
        band = round(0.04 * side) if fact.ask in ("cx", "cy") else 0.10 * truth
        above, made = 0, 0
        for seed in range(60):
            twins = TASK.claim_pair(fact, rng_for(seed, "t"))
            if twins is None:
                continue  # with its noise, the false claim would be nearer than the margin
            made += 1
            assert abs(twins.true.value[0] - truth) <= band / 2 + digit
            assert abs(twins.false.value[0] - truth) > band
            assert fact.ask in ("cx", "cy") or abs(twins.false.value[0] - truth) > 0.10 * twins.false.value[0]
            assert twins.true.separation <= 0.5
            assert twins.false.separation >= 1
            assert parse_numbers(twins.false.slots["claim"]).tolist() == twins.false.value.tolist()
            above += twins.true.value[0] > truth
        if fact.ask not in ("cx", "cy"):
            assert made >= 48
            assert 0.2 <= above / made <= 0.8
        asked[fact.ask] += made
    assert asked["cx"] + asked["cy"]


def test_a_true_claim_about_a_wide_angle_stays_within_half_a_margin(facts: list[Fact]) -> None:
    fact = next(f for f in facts if f.ask == "hfov")
    values = np.linspace(96.0, 60.0, len(fact.candidates))
    wide = tuple(replace(c, value=np.array([value])) for c, value in zip(fact.candidates, values, strict=True))
    fact = replace(fact, candidates=wide, truth=0)
    claims = [twins for seed in range(60) if (twins := TASK.claim_pair(fact, rng_for(seed, "t"))) is not None]
    assert len(claims) > 20
    assert max(twins.true.separation for twins in claims) <= 0.5


def test_a_false_claim_is_false_however_the_tolerance_is_read(facts: list[Fact]) -> None:
    fact = next(f for f in facts if f.ask == "hfov")
    # 7 degrees above a truth of 66.5 is more than a tenth of the truth, and less than a tenth of the claim.
    values = 66.5 + 7.4 * np.arange(len(fact.candidates))
    near = tuple(replace(c, value=np.array([value])) for c, value in zip(fact.candidates, values, strict=True))
    fact = replace(fact, candidates=near, truth=0)
    claims = [twins for seed in range(60) if (twins := TASK.claim_pair(fact, rng_for(seed, "t"))) is not None]
    assert claims
    assert all(abs(t.false.value[0] - 66.5) > 0.10 * t.false.value[0] for t in claims)


def test_what_a_reader_knows_of_a_value_follows_the_image(facts: list[Fact]) -> None:
    for fact in facts:
        shares, sizes, logs, sides = TASK.read_text_cues(fact, fact.candidates).T
        width, height = (int(side) for side in SizeEvidence.of(fact).size)
        assert set(sides) == {width if fact.ask in ("fx", "cx", "hfov") else height}
        assert np.array_equal(sizes, np.abs(shares))
        assert np.array_equal(np.argsort(logs), np.argsort([c.value[0] for c in fact.candidates]))
        if fact.ask in ("cx", "cy"):  # the same distance on the other side of the middle
            turned = [replace(c, value=sides[0] - c.value) for c in fact.candidates]
            assert np.allclose(TASK.read_text_cues(fact, turned)[:, :2].T, [-shares, sizes])
        else:
            assert (shares > 0).all()


def test_the_published_noise(facts: list[Fact]) -> None:
    for fact in facts:
        for seed in range(20):
            noisy = TASK.perturbed(fact, rng_for(seed, "p"))
            assert noisy is not None
            off = abs(noisy.value[0] / fact.truth_candidate.value[0] - 1)
            assert 0.045 < off < 0.155


def test_kinds_take_turns_up_to_the_limit(view: SceneView) -> None:
    facts, rejects = measure_task(LENIENT, view, 5, 4)
    assert len(facts) + len(rejects) == 2 * len(view.frames)
    assert [fact.ask in ("cx", "cy") for fact in facts] == [False, True] * len(view.frames)
    assert len({fact.ask for fact in facts}) == len(facts)
    assert len(measure_task(LENIENT, view, 5, 1)[0]) == 1
    without = CameraParameters(Gates.model_validate({"camera_parameters": {"undecided_max": 1e9}}))
    assert not {fact.ask for fact in measure_task(without, view, 5, 4)[0]} & {"cx", "cy"}


def test_fewer_frames_are_looked_at_than_facts_wanted() -> None:
    view = SceneView(room_scene(frames=6, width=320, height=240), Gates())
    assert len(view.distinct_frames(rng_for(0, "x"))) == 6
    for limit, frames, drafts in ((5, 3, 6), (12, 6, 12), (16, 6, 16), (60, 6, 24)):
        keys = [draft.key for draft in LENIENT.drafts(view, rng_for(0, "limit"), limit)]
        assert len({key.split("/")[0] for key in keys}) == frames
        assert len(keys) == len(set(keys)) <= drafts  # the limit may be reached first


def test_rejects_say_what_was_missing(view: SceneView) -> None:
    strict = CameraParameters(Gates.model_validate({"camera_parameters": {"undecided_max": 1e-4}}))
    narrow = CameraParameters(Gates.model_validate({"camera_parameters": {"zoom_max": 1.2}}))
    off = CameraParameters(Gates.model_validate({"camera_parameters": {"principal_off_centre_min": 0.35}}))
    for task, ask, reason in (
        (strict, "cx", "pixels_undecided"),
        (strict, "fx", "pixels_undecided"),
        (narrow, "hfov", "crops_none"),
        (off, "cy", "crops_none"),
    ):
        draft = make_draft(view.frames[0], view, ask, 0, task)
        assert isinstance(draft, Rejected)
        assert (draft.reason, draft.value, draft.limit) == (reason, 0, 4)


def test_a_room_without_lines_is_not_asked_about() -> None:
    """The same room with noise on every face: corners and depth in plenty, no line."""
    facts, rejects = measure_task(TASK, SceneView(room_scene(frames=4), Gates()), 5, 12)
    assert not facts
    assert {reject.reason for reject in rejects} == {"pixels_undecided"}


def test_a_wrong_camera_is_found_out(view: SceneView, facts: list[Fact]) -> None:
    """Where the stored camera is not the one that took the image, no question passes."""
    frame = view.frames[0]
    segments = detect_segments(frame.grey)
    for ask, change in (("fx", [0.7, 1, 0, 0]), ("vfov", [1, 0.7, 0, 0]), ("cx", [1, 1, 60, 0]), ("cy", [1, 1, 0, 60])):
        K = frame.camera.K * np.array([[change[0], 1, 1], [1, change[1], 1], [1, 1, 1]])
        K[:2, 2] += change[2:]
        sets = propose_rects(frame.camera, ask, TASK.limits, rng_for(0, ask))
        kept, wrong = (
            keep_determined(camera, segments, NOISE_PX, sets, ask, TASK.limits)
            for camera in (frame.camera, Camera(K, *frame.camera.size))
        )
        assert len(kept) >= 4, ask
        assert not wrong, ask


def test_the_solver_reads_and_answers_questions(view: SceneView, facts: list[Fact]) -> None:
    choices, claims = [], []
    for fact in facts:
        base = pictures.decode(*view.frame(fact.frame_ids[0]).base_image())
        picture = pictures.apply(TASK.pictures(fact)[0], base)
        image = (Image(cv2.imencode(".png", picture[..., ::-1])[1].tobytes()),)
        options = strategies["set_first"].options(fact, TASK, rng_for(0, "o"))
        choice = TASK.choice(fact, options, rng_for(0, "c"))
        question, context = render(load_phrasings(TASK.name, "multi-choice")[0], choice.slots)
        seen = VisibleQuestion(TASK.name, "multi-choice", fact.ask, question, context, choice.options, image)
        choices.append(score_by_lines(seen).argmax() == options.truth)
        if fact.ask in ("cx", "cy"):
            with pytest.raises(Unread):
                score_by_lines(replace(seen, context="The image is 400 x 480 pixels."))
        twins = TASK.claim_pair(fact, rng_for(0, "t"))
        if twins is None:
            continue
        for claim, right in ((twins.true, 0), (twins.false, 1)):
            for phrasing in load_phrasings(TASK.name, "judgment"):
                question, context = render(phrasing, {**twins.slots, **claim.slots})
                seen = VisibleQuestion(TASK.name, "judgment", fact.ask, question, context, ("Yes", "No"), image)
                claims.append(score_by_lines(seen).argmax() == right)
    assert len(choices) == 6
    assert sum(choices) >= 5, choices
    assert len(claims) >= 5 * 2 * 6
    by_claim = np.reshape(claims, (-1, 6))
    assert (by_claim == by_claim[:, :1]).all()  # every wording is read alike
    assert by_claim[:, 0].mean() >= 0.7


def test_real_captures_give_every_kind(captures: Path) -> None:
    with next(iter(open_scenes(captures, datasets=["wildrgbd"]))) as scene:
        view = SceneView(scene, Gates())
        frame = view.frames[0]
        for ask in TASK.asks:
            draft = make_draft(frame, view, ask, 0, LENIENT)
            assert isinstance(draft, Fact), draft
            outcome = confirm_draft(TASK, draft, view)
            assert isinstance(outcome, Fact), outcome
            np.testing.assert_array_equal(TASK.recompute(_stored(outcome, view)), draft.second_value)
            if ask not in ("cx", "cy"):
                assert cameras.fov_deg(frame.camera)[0] > max(c.evidence["hfov"] for c in draft.candidates)
        view.close()


def test_the_published_rule_stays_near_the_truth_and_has_no_angles(facts: list[Fact]) -> None:
    off: dict[bool, list[float]] = {True: [], False: []}
    for fact in facts:
        if fact.ask in ("hfov", "vfov"):
            with pytest.raises(TooFewOptionsError, match="no_rule"):
                TASK.published(fact, 3, rng_for(0, "p"))
            continue
        for seed in range(40):
            found = TASK.published(fact, 3, rng_for(seed, "p"))
            assert found is not None
            ratios = [option.value[0] / fact.truth_candidate.value[0] - 1 for option in found]
            off[fact.ask in ("cx", "cy")] += ratios
    for centre, most in ((True, 0.2), (False, 0.25)):
        assert max(map(abs, off[centre])) == pytest.approx(most, abs=0.02)
        assert np.mean(np.array(off[centre]) > 0) == pytest.approx(0.5, abs=0.1)  # so the truth is inner in 75 %
