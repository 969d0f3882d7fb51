"""One contract for every kind of question, the shipped ones and those of `examples/`.

Both routes agree, a row gives its answer again, neither the world's frame nor the size of images matters, every wording
states what it must, and nothing but the images tells the answer.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.example_kinds import EXAMPLES, register_examples
from tests.facts_at_hand import group_id
from tests.lenient import without_lines
from tests.quality.invariance_room import (
    GRID,
    NAMES,
    SCALE,
    SETTINGS,
    Room,
    as_asked,
    get_view,
    measured,
    moved_view,
    options_of,
    plan_of,
    smaller_view,
)
from tests.small_room import other_world, small_view
from vgbench_gen.core import gates
from vgbench_gen.core.errors import GeometryError, PluginError, VGBenchError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import ALPHABET, Candidate, Fact, FloatArray, Item, QuestionType, Rejected
from vgbench_gen.geometry import homography
from vgbench_gen.pipeline.measure import measure_task
from vgbench_gen.pipeline.question import QuestionRejectedError, make_question, presentation_rng
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.quality.explain import _list_numbers
from vgbench_gen.quality.verify import verify_item
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.tasks.base import Task, admit, tasks
from vgbench_gen.tasks.box_match import MatchEvidence, check_match, compare_rects
from vgbench_gen.tasks.depth_order import ORDERS, DepthOrder, weigh
from vgbench_gen.tasks.drawings import DrawingTask
from vgbench_gen.tasks.kind import MARK_COLORS, QuestionKind
from vgbench_gen.tasks.label import LabelTask
from vgbench_gen.tasks.places import OneObject, TwoObjects, TwoViews
from vgbench_gen.tasks.records import make_camera_record
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact
from vgbench_gen.tasks.seen import FramesTask, LabelledScene
from vgbench_gen.text import render as render_module
from vgbench_gen.text.lint import lint
from vgbench_gen.text.render import load_labels, load_phrasings, render

EVERY = [*NAMES, *EXAMPLES]
# Kinds that give `propose`, `value` and `second` alone.
KINDS = [
    *EXAMPLES,
    *(
        name
        for name in NAMES
        if isinstance(tasks[name], TwoViews | OneObject | TwoObjects | LabelledScene | LabelTask | DrawingTask)
    ),
]
LABELS = [
    name
    for name in KINDS
    if name in ("camera_turn", "wider_object") or (name in NAMES and isinstance(tasks[name], LabelTask))
]


@pytest.fixture(scope="module", autouse=True)
def kinds() -> Iterator[None]:
    with register_examples():
        yield


@pytest.fixture(scope="module")
def room(kinds: None, tmp_path_factory: pytest.TempPathFactory) -> Room:
    return measured(tmp_path_factory.mktemp("room"), EVERY)


# --- facts ---------------------------------------------------------------------------------------------------------

HOPS = {
    "box_match": {2},  # the object of one image and that of the other
    "depth_order": {3},
    "height_comparison": {2},
    "imagined_move": {3},  # the object, the walk and the turn
    "map_relation": {1},
    "metric_depth": {1},
    "nearest_object": {5},
    "object_distance": {2},
    "object_from_camera": {2},  # the object, and the way between the cameras
    "object_gap": {2},
    "object_size": {1},
    "orthographic_view": {2, 3, 4, 5},
    "point_tracking": {2},
    "relation_across_views": {3},
    "relation_from_camera": {2},
    "relative_depth": {4},
    "relative_direction": {3},
    "rotated_arrangement": {5, 6},
    "route_turns": {4},
    "size_comparison": {2},
}
"""Kind -> things to relate for an answer; 1 for others, but of kinds about frames as many as decide."""


@pytest.mark.parametrize("name", NAMES)
def test_hops_are_the_things_that_are_related(name: str, room: Room) -> None:
    task = tasks[name]
    found = {task.count_hops(as_asked(fact)) for fact in room.facts[name]}
    if isinstance(task, FramesTask):
        assert min(found) >= 1
        assert (max(found) == 1) == (name == "object_existence")  # one image tells; no single one has an order
    else:
        assert found <= HOPS.get(name, {1})


def measure(name: str, view: SceneView) -> list[Fact]:
    # Tops of objects of the room differ by the limit of 0.1 m exactly, so the last bit of a product would decide.
    gates = without_lines(Gates()).model_dump() | {"height_comparison": {"gap_min": 0.099}}
    return measure_task(tasks[name].with_gates(Gates.model_validate(gates)), view, 1, 5)[0]


@pytest.mark.parametrize("name", EVERY)
def test_facts_repeat_and_are_those_of_another_world(name: str) -> None:
    here, again, there = (measure(name, view) for view in (get_view(name), get_view(name), moved_view(name)))
    assert 2 <= len(here) <= 5
    assert len({fact.key for fact in here}) == len(here)
    assert [fact.key for fact in here] == [fact.key for fact in again] == [fact.key for fact in there]
    for fact, same, moved in zip(here, again, there, strict=True):
        assert [c.key for c in fact.candidates] == [c.key for c in same.candidates] == [c.key for c in moved.candidates]
        assert np.array_equal(fact.truth_candidate.value, same.truth_candidate.value)
        np.testing.assert_allclose(moved.truth_candidate.value, fact.truth_candidate.value, atol=0.011)
        assert fact.margin >= 1


# --- another world frame -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_another_world_frame_changes_no_answer(name: str, room: Room) -> None:
    task = tasks[name]
    for fact in room.facts[name]:
        assert task.agreement(fact.second_value, fact) <= 1
        assert np.array_equal(task.rounded(task.recompute(as_asked(fact))), fact.truth_candidate.value)
        here, there = (task.recheck(fact, view) for view in (get_view(name), moved_view(name)))
        np.testing.assert_allclose(there, here, atol=2e-3, rtol=1e-4)
        moved = _in_world(fact, other_world())
        np.testing.assert_allclose(task.recompute(as_asked(moved)), task.recompute(as_asked(fact)), atol=1e-9)


def _in_world(fact: Fact, world: FloatArray) -> Fact:
    def moved(stored: Mapping[str, Any]) -> dict[str, Any]:
        out = dict(stored)
        if "world_from_camera" in out:
            poses = {f: np.reshape(p, (4, 4)) for f, p in out["world_from_camera"].items()}
            out["world_from_camera"] = {f: (world @ p).ravel().tolist() for f, p in poses.items()}
        for name in (n for n in out if n.startswith("world_corners")):
            out[name] = (np.array(out[name]) @ world[:3, :3].T + world[:3, 3]).tolist()
        return out

    members = tuple(replace(member, evidence=moved(member.evidence)) for member in fact.candidates)
    return replace(fact, evidence=moved(fact.evidence), candidates=members)


# --- another image size --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_another_image_size_scales_pixels_and_leaves_meters(name: str, room: Room) -> None:
    """The second route on smaller images of the same captures, asked about the same places."""
    task, view = tasks[name], smaller_view(name)
    for fact in room.facts[name]:
        smaller = _resized(fact)
        for frame_id, record in smaller.cameras.items():
            np.testing.assert_allclose(make_camera_record(view.frame(frame_id).camera)["K"], record["K"], atol=1e-9)
        second = task.recheck(smaller, view)
        # Marks are whole pixels, so places move by up to half a smaller one.
        assert task.agreement(second, smaller) <= (3 if name == "camera_parameters" else 1), fact.key


def _resized(fact: Fact) -> Fact:
    """The fact as the images SCALE times as large tell it: edges on edges."""
    S = np.array([[SCALE, 0, (SCALE - 1) / 2], [0, SCALE, (SCALE - 1) / 2], [0, 0, 1]])

    def pixel(uv: Any) -> list[int]:
        return [int(np.floor(x + 0.5)) for x in (np.array(uv) + 0.5) * SCALE - 0.5]

    def camera(record: Mapping[str, Any]) -> dict[str, Any]:
        width, height = round(record["width"] * SCALE), round(record["height"] * SCALE)
        return {"K": (S @ np.reshape(record["K"], (3, 3))).ravel().tolist(), "width": width, "height": height}

    def member(c: Candidate) -> Candidate:
        value, show = c.value, dict(c.show)
        for name in (n for n in show if n.startswith("rect")):
            show[name] = pixel(show[name]) if "size" not in show else [round(x * SCALE) for x in show[name]]
        if "size" in show:
            show["size"] = [round(x * SCALE) for x in show["size"]]
            value = {"fx": value * SCALE, "fy": value * SCALE, "cx": (value + 0.5) * SCALE - 0.5,
                     "cy": (value + 0.5) * SCALE - 0.5}.get(fact.ask, value)  # fmt: skip
        if fact.task in KINDS:
            show = {name: pixel(place) for name, place in show.items()}
        if show.get("query") is not None:
            show["query"] = pixel(show["query"])
        if fact.task == "point_tracking":
            value = np.array(pixel(value), dtype=np.float64)
        if "H" in show:
            value = homography.normalise_homography(S @ value @ np.linalg.inv(S))
            show["H"] = value.ravel().tolist()
        return replace(c, value=value, show=show)

    changed = dict(fact.evidence)
    if "diagonal_px" in changed:
        changed["diagonal_px"] *= SCALE
    if "size" in changed:
        changed["size"] = [round(x * SCALE) for x in changed["size"]]
    return replace(
        fact,
        candidates=tuple(map(member, fact.candidates)),
        evidence=changed,
        cameras={frame_id: camera(record) for frame_id, record in fact.cameras.items()},
    )


# --- words and rows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_what_a_task_says_of_its_answers_is_said_in_words_of_the_house(name: str) -> None:
    task = tasks[name]
    assert all(isinstance(word, str) and word for pair in task.convention.items() for word in pair)
    assert task.convention.get("axes", "opencv") == "opencv"
    assert task.convention.get("unit", task.unit) == task.unit
    assert set(task.category_origin) == set(task.formats)


@pytest.mark.parametrize("name", EVERY)
def test_every_wording_of_every_form_is_a_row_that_verification_confirms(name: str, room: Room) -> None:
    task, cache = tasks[name], PictureCache(None, room.media)
    for form in task.formats:
        written: Counter[str] = Counter()
        for fact in room.facts[name]:
            options = options_of(fact) if form == "multi-choice" else None
            try:
                made = make_question(fact, options, plan_of(fact, form), task, SETTINGS)
            except QuestionRejectedError:
                continue
            for row in question_rows(made, SETTINGS, cache):
                problems = verify_item(row, [room.media.get(image) for image in row.images], Gates())
                assert not problems, [str(problem) for problem in problems]
                written[row.answer] += 1
            slots, texts = say(task, fact, form)
            for phrasing in load_phrasings(name, form, task.notation):
                assert not lint(*render(phrasing, slots), texts, phrasing.states), phrasing.id
        assert sum(written.values()) >= 2, form
        if form == "judgment":
            assert written["Yes"] == written["No"]


def say(task: Task, fact: Fact, form: str) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Slots of a question, and its options."""
    rng = presentation_rng(SETTINGS.seed, group_id(fact), "judgment")
    if form == "multi-choice":
        shown = task.choice(fact, options_of(fact), rng)
        return shown.slots, shown.options
    if form == "open-ended":
        return task.open_ended(fact).slots, ()
    twins = task.claim_pair(fact, rng)
    assert twins is not None
    return {**twins.slots, **twins.false.slots}, ()


# --- kinds on the shared base --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in KINDS if name != "room_area"])  # a room has one floor
def test_a_row_with_the_evidence_of_another_place_is_found(name: str, room: Room) -> None:
    task, cache = tasks[name], PictureCache(None, room.media)
    fact, other = next(
        (one, other)
        for one, other in combinations(room.facts[name], 2)
        if one.truth_candidate.value.shape == other.truth_candidate.value.shape
        and not np.array_equal(one.truth_candidate.value, other.truth_candidate.value)
    )
    truth = replace(fact.truth_candidate, evidence=other.truth_candidate.evidence)
    wrong = replace(fact, candidates=tuple(truth if k == fact.truth else c for k, c in enumerate(fact.candidates)))
    made = make_question(wrong, options_of(wrong), plan_of(wrong), task, SETTINGS, check=False)
    (row,) = question_rows(made, SETTINGS, cache)
    found = verify_item(row, [room.media.get(image) for image in row.images], Gates())
    assert "recomputed" in {problem.check for problem in found}


def write_rows(name: str, form: QuestionType, room: Room) -> list[Item]:
    task, rows = tasks[name], []
    for fact in room.facts[name]:
        with suppress(QuestionRejectedError):
            options = options_of(fact) if form == "multi-choice" else None
            made = make_question(fact, options, plan_of(fact, form), task, SETTINGS)
            rows += question_rows(made, SETTINGS, PictureCache(None, room.media))
    return rows


def find_checks(row: Item, room: Room) -> set[str]:
    return {found.check for found in verify_item(row, [room.media.get(name) for name in row.images], Gates())}


def test_words_that_say_another_answer_than_the_evidence_are_found(room: Room) -> None:
    claim = write_rows("camera_turn", "judgment", room)[0]
    other = {"to the left": "to the right", "to the right": "to the left"}
    said = next(words for words in other if words in claim.question)
    assert find_checks(replace(claim, question=claim.question.replace(said, other[said])), room) == {"claim_text"}
    choice = write_rows("camera_turn", "multi-choice", room)[0]
    assert find_checks(replace(choice, options=choice.options[::-1]), room) == {"option_text"}
    # Points are marked, and the claim is a number all the same.
    number = write_rows("point_distance", "judgment", room)[0]
    claimed = f"{number.evidence['claim']['value'][0]:.2f}"
    assert find_checks(replace(number, question=number.question.replace(claimed, "9.87")), room) == {"claim_text"}


@pytest.mark.parametrize("name", KINDS)
def test_a_second_route_that_contradicts_sinks_the_draft(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task, honest = tasks[name], type(tasks[name]).second  # type: ignore[attr-defined]
    monkeypatch.setattr(
        type(task), "second", lambda self, view, seen: np.flip(np.atleast_1d(honest(self, view, seen))) * 1.5
    )
    facts, rejects = measure_task(task, get_view(name), 1, 5)
    assert not facts
    assert "second_route_disagrees" in {reject.reason for reject in rejects}


@pytest.mark.parametrize("name", KINDS)
def test_a_place_below_a_margin_is_rejected_by_name(name: str) -> None:
    task = tasks[name]
    assert isinstance(task, QuestionKind)
    strict = {key: 100.0 for key in ("min", "gap_min", "ratio_min") if key in task.margins}
    limits = Gates.model_validate({name: strict | ({"max": 101.0} if "max" in task.margins else {})})
    found = list(task.with_gates(limits).drafts(get_view(name), np.random.default_rng(0), 4))
    assert found
    assert all(isinstance(one, Rejected) for one in found)
    assert {"min", "decided"} & {one.reason for one in found if isinstance(one, Rejected)}


@pytest.mark.parametrize("name", KINDS)
def test_no_frame_and_no_target_is_asked_about_more_often_than_allowed(name: str) -> None:
    task = tasks[name]
    assert isinstance(task, QuestionKind)
    facts, _ = measure_task(task, get_view(name), 3, 40)
    asked = Counter(frozenset(fact.frame_ids) for fact in facts)
    assert max(asked.values()) <= (1 if isinstance(task, TwoViews) else task.per_frame)
    assert len(facts) < 40 or isinstance(task, LabelledScene)  # many things, and frames in every combination


@pytest.mark.parametrize("name", LABELS)
def test_every_label_is_right_equally_often_whatever_a_reader_guesses(name: str) -> None:
    task = tasks[name]
    assert isinstance(task, LabelTask)
    right: dict[tuple[float, ...], Counter[float]] = {}
    for seed in range(6):
        for fact in measure_task(task, get_view(name), seed, 8)[0]:
            labels = tuple(float(one.value[0]) for one in fact.candidates)
            assert len(labels) == task.count_options(4)
            right.setdefault(labels, Counter(dict.fromkeys(labels, 0)))[labels[fact.truth]] += 1
    assert sum(map(Counter.total, right.values())) >= 12
    assert all(max(n.values()) - min(n.values()) <= (6 if task.symmetric else 0) for n in right.values())


@pytest.mark.parametrize(
    "name", ["wider_object", *(one for one in sorted(GRID) if isinstance(tasks[one], TwoObjects) and one in LABELS)]
)
def test_cues_of_labels_are_how_their_rectangles_differ(name: str, room: Room) -> None:
    for fact in room.facts[name]:
        orange, blue = fact.candidates
        cues = tasks[name].read_text_cues(fact, [orange, blue])
        np.testing.assert_allclose(cues, -cues[::-1], atol=1e-12)
        np.testing.assert_array_equal(tasks[name].read_text_cues(fact, [blue, orange]), cues[::-1])
        (ax1, ay1, ax2, ay2), (bx1, by1, bx2, by2) = (rect for _, rect in sorted(fact.truth_candidate.show.items()))
        record = fact.cameras[fact.frame_ids[0]]
        told = 2 * cues[0] * [record["width"], record["height"], 1, 1, 1, record["height"], record["height"]]
        known = ((ax1 + ax2 - bx1 - bx2) / 2, (ay1 + ay2 - by1 - by2) / 2, ay1 - by1, ay2 - by2)
        np.testing.assert_allclose(told[[0, 1, 5, 6]], known, atol=1e-9)
        sides = np.log([(ax2 - ax1 + 1) / (bx2 - bx1 + 1), (ay2 - ay1 + 1) / (by2 - by1 + 1)])
        np.testing.assert_allclose(told[3:5], sides, atol=1e-9)


def test_cues_of_orders_are_those_of_their_marks_in_turn(room: Room) -> None:
    task = tasks["depth_order"]
    for fact in room.facts["depth_order"]:
        cues = task.read_text_cues(fact, fact.candidates).reshape(6, 3, 7)
        record, shown = fact.cameras[fact.frame_ids[0]], sorted(fact.truth_candidate.show.values())
        assert len(shown) == 3
        for option, cue in zip(fact.candidates, cues, strict=True):
            rects = [fact.truth_candidate.show["abc"[k]] for k in ORDERS[int(option.value[0])]]
            heights = np.array([(y1 + y2) / 2 for _, y1, _, y2 in rects]) / record["height"]
            np.testing.assert_allclose(cue[:, 1], heights - heights.mean(), atol=1e-9)
            assert task.print_option(option, fact).split(", ") == [MARK_COLORS[k] for k in ORDERS[int(option.value[0])]]


def test_the_order_of_regions_is_that_of_their_depths_and_not_of_their_nearest_parts(room: Room) -> None:
    """OpenSpatial averages the nearest tenth of a region, which of a slanted one lies before all of another."""
    task = tasks["depth_order"]
    assert isinstance(task, DepthOrder)
    seen = task.candidate_evidence.of(room.facts["depth_order"][0].truth_candidate)
    spreads = [(2.0, 0.05), (2.4, 1.4), (3.0, 0.1)]  # median, and from 5 to 95 %
    quantiles_m = [median_m + spread_m * (np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]) - 0.5) / 0.9
                   for median_m, spread_m in spreads]  # fmt: skip
    assert [one[0] for one in quantiles_m] != sorted(one[0] for one in quantiles_m)
    stored = {name: one.model_copy(update={"quantiles_m": q}) for (name, one), q in zip(seen, quantiles_m, strict=True)}
    scores = task.value(seen.model_copy(update=stored))
    assert ORDERS[int(np.argmax(scores))].tolist() == [0, 1, 2]
    np.testing.assert_allclose(np.sort(scores)[-2:], [-1.0, 1.0])  # the smaller step is 0.4 m of 0.2 m


def test_sets_are_weighed_so_that_every_order_by_a_look_is_as_heavy() -> None:
    rng = np.random.default_rng(0)
    frames = [rng.choice(6, (400, 4), p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]) for _ in range(12)]
    found = dict(weigh([*frames, frames[0][:0]]))
    assert sorted(found) == list(range(12))
    for look in range(4):
        total = np.mean([np.bincount(frames[n][:, look], found[n], 6) for n in found], axis=0)
        np.testing.assert_allclose(total, 1 / 6, atol=0.01)


# --- boxes that are matched ----------------------------------------------------------------------------------------


def test_a_matched_box_is_that_of_the_instance_and_others_are_apart(room: Room) -> None:
    task = tasks["box_match"]
    for fact in room.facts["box_match"]:
        stored = [MatchEvidence.of(one) for one in fact.candidates]
        same = [one.seen.instance_id == one.query.instance_id for one in stored]
        assert same == [k == fact.truth for k in range(len(stored))]
        assert min(min(one.seen.visible, one.query.visible) for one in stored) >= 0.3
        assert fact.truth_candidate.value[0] == pytest.approx(1.0, abs=1e-9)
        for one in options_of(fact).options:
            assert task.valid(one, fact)
            gap = fact.truth_candidate.value[0] - one.value[0]
            assert one is fact.truth_candidate or gap >= 0.4 - 1e-9
        rects = np.array([one.show["rect"] for one in options_of(fact).options])
        for a, b in itertools.combinations(rects, 2):
            common = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0).prod()
            assert common <= 0.5 * min((a[2:] - a[:2]).prod(), (b[2:] - b[:2]).prod())


def test_a_rectangle_around_another_object_fails_the_second_route_and_the_check(room: Room) -> None:
    task, view = tasks["box_match"], get_view("box_match")
    for fact in room.facts["box_match"]:
        assert task.agreement(task.recheck(fact, view), fact) <= 1
        swapped = replace(fact, truth=(fact.truth + 1) % len(fact.candidates))
        with pytest.raises(GeometryError, match="in another"):
            task.recheck(swapped, view)
        assert {name for name, _ in check_match(swapped, Gates())} == {"instance"}
        assert not check_match(fact, Gates())


def test_rectangles_are_compared_by_what_a_reader_sees_of_both() -> None:
    query = np.array([0.1, 0.2, 0.3, 0.4])
    found = compare_rects(query, np.array([query, query + [0.3, 0.4, 0.3, 0.4], [0.1, 0.2, 0.5, 0.3]]))
    np.testing.assert_allclose(found[0], 0, atol=1e-12)
    np.testing.assert_allclose(found[1], [0.3, 0.4, 0.5, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(found[2], [0.1, -0.05, np.hypot(0.1, 0.05), 0, np.log(4), 0], atol=1e-12)


def derive_kind(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **data: Any) -> Task:
    """An example under another name, with other class data and a template file of its own."""
    base = type(tasks[name])
    for module, kept in ((gates, "_SECTIONS"), (render_module, "_BROUGHT")):
        monkeypatch.setattr(module, kept, dict(getattr(module, kept)))
    load_labels.cache_clear()
    words = base.templates.read_text("utf-8").replace(f'task = "{name}"', 'task = "other_kind"')  # type: ignore[union-attr]
    (folder / "other_kind.toml").write_text(words, "utf-8")
    given = {"name": "other_kind", "templates": folder / "other_kind.toml", **data}
    kind = type("OtherKind", (base,), given)
    return kind()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"labels": ()}, "found labels []; expected 2 to 6 different keys of"),
        ({"labels": ("left", "up")}, "found labels ['left', 'up']"),
        ({"category": ""}, "found no category;"),
        ({"convention": ""}, "found no convention;"),
        (
            {"formats": ("judgment", "open-ended")},
            "found no 'open-ended' in the templates; expected one of judgment, multi-",
        ),
        ({"margins": {"gp_min": 10.0}}, "found margins ['gp_min']; expected either ratio_min or gap_min"),
        ({"margins": {"gap_min": 10.0, "ratio_min": 1.2}}, "found margins ['gap_min', 'ratio_min']"),
    ],
)
def test_class_data_that_does_not_hold_together_is_refused_in_one_line(
    data: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit(derive_kind("camera_turn", tmp_path, monkeypatch))
    with pytest.raises(TypeError, match="other_kind") as refused:
        admit(derive_kind("camera_turn", tmp_path, monkeypatch, **data))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def lose_draws(self: Any, seen: Any) -> FloatArray:
    return np.array([np.ptp(found.corners_m @ seen.up, axis=-1) for found in (seen.a, seen.b)])


def lose_up(self: Any, seen: Any) -> FloatArray:
    return lose_draws(self, seen).T + (np.ndim(seen.a.corners_m) == 3)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (lose_draws, "found shape (2, 1) of `value` for one draw; expected (1, 2), draws first"),
        (lose_up, "by `value` for one draw without noise; expected ["),
        (lambda self, seen: lose_draws(self, seen) - 9, "expected positive ones under `ratio_min`"),
        (lambda self, seen: lose_draws(self, seen)[:1], "found scores of shape (1,); expected (2,)"),
    ],
)
def test_a_value_that_does_not_serve_is_an_error_that_says_why(
    value: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tasks["wider_object"]
    monkeypatch.setattr(type(task), "value", value)
    monkeypatch.setattr(type(task), "_agrees", lambda *_: True)
    with pytest.raises(VGBenchError, match="wider_object") as refused:
        list(task.drafts(small_view(), np.random.default_rng(0), 4))
    assert said in str(refused.value)


def test_a_second_route_by_ratio_without_positive_scores_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    task = tasks["wider_object"]
    monkeypatch.setattr(type(task), "second", lambda *_: np.array([0.0, 1.0]))
    _, rejects = measure_task(task, small_view(), 1, 5)
    assert any("expected positive ones" in reject.detail for reject in rejects if reject.reason == "no_second_route")


def test_a_guess_that_is_no_label_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    task, honest = tasks["wider_object"], type(tasks["wider_object"]).propose  # type: ignore[attr-defined]

    def propose(self: Any, view: SceneView, rng: np.random.Generator) -> Iterator[Any]:
        for one in honest(self, view, rng):
            yield one if isinstance(one, Rejected) else replace(one, guess="red")

    monkeypatch.setattr(type(task), "propose", propose)
    with pytest.raises(PluginError, match="found the guess 'red'; expected one of orange, blue"):
        list(task.drafts(small_view(), np.random.default_rng(0), 4))


@pytest.mark.parametrize("name", [*EXAMPLES, *(one for one in LABELS if one not in EXAMPLES)])
def test_the_answer_stands_at_the_mark_that_it_names_or_at_the_foot(name: str, room: Room) -> None:
    for row in write_rows(name, "multi-choice", room):
        fact = rebuild_fact(row)
        truth, drawn = fact.truth_candidate, tasks[name].overlay(fact, RowEvidence.of(row))
        marks, deciding = drawn[0], truth.evidence.get("deciding", ())
        assert [any(mark.label == "decides" for mark in one) for one in drawn] == [
            k in deciding for k in range(len(drawn))
        ]
        spots = truth.evidence.get("spots", ())
        assert len(spots) in (0, len(drawn))
        for one, shown in zip(drawn, spots, strict=False):
            assert {mark.label for mark in one if mark.kind == "point"} == {spot[0] for spot in shown}
        words = tasks[name].print_option(truth, fact)
        (answer,) = (mark for mark in marks if mark.label == words and mark.kind != "point")
        if not isinstance(tasks[name], TwoObjects):
            assert answer.points_px[0][1] > fact.cameras[fact.frame_ids[0]]["height"] - 10
        else:
            named = truth.show["ab"["blue" in answer.label]]
            assert answer.points_px == (tuple(named[:2]), tuple(named[2:]))


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_shown_in_words_with_the_numbers_behind_them(name: str, room: Room) -> None:
    task = tasks[name]
    for form in task.formats:
        for row in write_rows(name, form, room):
            fact, lines = rebuild_fact(row), _list_numbers(row)
            word = task.print_option(fact.truth_candidate, fact)
            assert lines[:2] == [f"first route:  {word}", f"second route: {word}"]
            scores = task.value(task.candidate_evidence.of(fact.truth_candidate))  # type: ignore[attr-defined]
            told = next(line for line in lines if line.startswith("scores"))
            assert f"{word} {max(scores):.3f}" in told
            assert not any("margins from the truth" in line for line in lines)


def test_two_objects_of_a_scene_are_asked_about_once() -> None:
    for seed in range(4):
        facts = [
            f
            for f in tasks["wider_object"].drafts(small_view(), np.random.default_rng(seed), 40)
            if isinstance(f, Fact)
        ]
        pairs = Counter(f.truth_candidate.key for f in facts)
        assert max(pairs.values()) == 1


def test_a_gate_of_a_kind_alone_rejects_by_its_name() -> None:
    task = tasks["camera_turn"].with_gates(Gates.model_validate({"camera_turn": {"turn_share_min": 0.97}}))
    found = list(task.drafts(small_view(), np.random.default_rng(0), 8))
    assert "turn_share" in {one.reason for one in found if isinstance(one, Rejected)}
    for fact in (one for one in found if isinstance(one, Fact)):
        motion = np.reshape(fact.truth_candidate.evidence["motion"], (4, 4))
        turn_deg = abs(np.degrees(np.arctan2(motion[2, 0], motion[2, 2])))
        assert turn_deg >= 0.97 * np.degrees(Rotation.from_matrix(motion[:3, :3]).magnitude()) - 1e-9


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("wider_object", lambda x1, y1, x2, y2: x2 - x1),
        ("size_comparison", lambda x1, y1, x2, y2: y2 - y1),
        ("height_comparison", lambda x1, y1, x2, y2: -y1),
        ("depth_order", lambda x1, y1, x2, y2: -y1 - y2),
    ],
)
def test_what_the_rectangles_suggest_is_right_as_often_as_not(name: str, rate: Callable[..., int]) -> None:
    task, right = tasks[name], Counter[bool]()
    for seed in range(6):
        for fact in task.drafts(get_view(name), np.random.default_rng(seed), 8):
            if isinstance(fact, Fact):
                rates = [rate(*rect) for _, rect in sorted(fact.truth_candidate.show.items())]
                guess = np.argmax(rates)
                if name == "depth_order":
                    guess = (np.argsort(rates) == ORDERS).all(axis=1).argmax()
                right[bool(guess == fact.truth_candidate.value[0])] += 1
    assert right[True] * (len(task.labels) - 1) == right[False] >= 6  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in NAMES if isinstance(tasks[name], DrawingTask)])
def test_the_right_drawing_alone_is_framed(name: str, room: Room) -> None:
    for row in write_rows(name, "multi-choice", room):
        drawn = tasks[name].overlay(rebuild_fact(row), RowEvidence.of(row))
        framed = [k for k, marks in enumerate(drawn) if any(m.points_px == ((2.0, 2.0), (397.0, 397.0)) for m in marks)]
        assert framed == [len(row.images) - len(row.options) + ALPHABET.index(row.answer)]
