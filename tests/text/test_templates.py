"""Every phrasing of every task, rendered with sample values."""

from __future__ import annotations

import difflib
import itertools
import re
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from vgbench_gen.core.types import NOTATIONS, Notation, QuestionType
from vgbench_gen.tasks import _poses
from vgbench_gen.tasks.presentation import make_number_slots
from vgbench_gen.text import lint, numbers, render
from vgbench_gen.text.render import Phrasing

EXPECTED: dict[str, tuple[QuestionType, ...]] = {
    "camera_parameters": ("judgment", "multi-choice", "open-ended"),
    "metric_depth": ("judgment", "multi-choice", "open-ended"),
    "relative_depth": ("multi-choice",),
    "object_distance": ("judgment", "multi-choice", "open-ended"),
    "homography_to_matrix": ("multi-choice",),
    "homography_to_image": ("multi-choice",),
    "object_location": ("judgment", "multi-choice"),
    "relative_pose": ("judgment", "multi-choice"),
    "view_after_motion": ("multi-choice",),
    "point_tracking": ("judgment", "multi-choice"),
    "size_comparison": ("judgment", "multi-choice"),
    "height_comparison": ("judgment", "multi-choice"),
    "object_size": ("multi-choice", "open-ended"),
    "object_gap": ("multi-choice", "open-ended"),
    "object_existence": ("judgment", "multi-choice"),
    "object_count": ("multi-choice",),
    "appearance_order": ("multi-choice",),
    "relative_direction": ("multi-choice",),
    "object_from_camera": ("multi-choice",),
    "relation_across_views": ("multi-choice",),
    "relation_from_camera": ("judgment", "multi-choice"),
    "imagined_move": ("multi-choice",),
    "nearest_object": ("multi-choice",),
    "room_area": ("multi-choice", "open-ended"),
    "map_relation": ("multi-choice",),
    "route_turns": ("multi-choice",),
    "depth_order": ("multi-choice",),
    "camera_motion_words": ("judgment", "multi-choice"),
    "camera_turn_angle": ("judgment", "multi-choice"),
    "camera_from_camera": ("judgment", "multi-choice"),
    "orthographic_view": ("multi-choice",),
    "box_match": ("multi-choice",),
    "rotated_arrangement": ("multi-choice",),
}
_CAMERA = {"size", "pinhole", "intrinsics"}
_POSE = _CAMERA | {"camera_axes", "direction", "meters"}
_WARP = {"size", "pixel_centre", "pixel_axes", "homography", "surroundings"}
STATED = {
    "camera_parameters": {"size", "pinhole"},
    "metric_depth": _CAMERA | {"depth", "mean_depth", "meters"},
    "relative_depth": {"depth", "median_depth"},
    "object_distance": _CAMERA | {"distance", "meters"},
    "homography_to_matrix": _WARP,
    "homography_to_image": _WARP | {"numbering"},
    "object_location": _CAMERA | {"camera_axes", "corner_order", "meters"},
    "relative_pose": _POSE,
    "view_after_motion": _POSE | {"numbering"},
    "point_tracking": {"pixel_axes"},
    "size_comparison": _CAMERA,
    "height_comparison": _CAMERA,
    "object_size": _CAMERA | {"meters"},
    "object_gap": _CAMERA | {"meters"},
    "object_existence": {"shown"},
    "object_count": {"shown"},
    "appearance_order": {"shown"},
    "relative_direction": {"floor_plan"},
    "object_from_camera": {"floor_plan"},
    "relation_across_views": {"floor_plan"},
    "relation_from_camera": _CAMERA | {"floor_plan"},
    "imagined_move": {"floor_plan", "walk"},
    "nearest_object": {"box_gaps"},
    "room_area": {"meters"},
    "map_relation": {"floor_plan"},
    "route_turns": {"floor_plan"},
    "depth_order": {"depth", "median_depth"},
    "camera_motion_words": _CAMERA | {"camera_axes"},
    "camera_turn_angle": _CAMERA,
    "camera_from_camera": _CAMERA | {"camera_axes"},
    "orthographic_view": {"numbering"},
    "box_match": set(),
    "rotated_arrangement": {"numbering"},
}
CLAUSES = tomllib.loads((render.find_templates_root() / "clauses.toml").read_text("utf-8"))
_CORNERS = {"size", "corner_moves", "surroundings"}
STATED_IN_WORDS = {
    "homography_to_matrix": _CORNERS,
    "homography_to_image": _CORNERS | {"numbering"},
    "relative_pose": _CAMERA | {"turns", "meters"},
    "view_after_motion": _CAMERA | {"turns", "meters", "numbering"},
    "object_location": _CAMERA | {"upright_box", "meters"},
}
CELLS: list[tuple[str, QuestionType, Notation]] = [
    (task, question_type, notation)
    for task, types in EXPECTED.items()
    for question_type in types
    for notation in (NOTATIONS if task in STATED_IN_WORDS else NOTATIONS[:1])
]


def four_digits(x: float) -> str:
    return numbers.format_significant(x, 4)


def sample_slots(task: str) -> dict[str, str]:
    rotation = [[0.866, -0.5, 0.0], [0.5, 0.866, -0.0001], [0.0, 0.0, 1.0]]
    corners = [[x, y, z] for z in (1.2, 2.4) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    points = [f"point {n} {numbers.format_point([50 * n, 77])}" for n in range(1, 5)]
    everything = {
        **make_number_slots(4),
        "quantity": render.fill_word("quantity.fx"),
        "unit": render.fill_word("unit.pixels"),
        "definition": render.fill_word("definition.fx"),
        "claim": "2.10",
        "tolerance": render.fill_word("tolerance.percent", value="10"),
        "color": render.fill_word("color.orange"),
        "colors": "orange, blue and yellow",
        "color_a": render.fill_word("color.orange"),
        "color_b": render.fill_word("color.blue"),
        "extreme": render.fill_word("extreme.deepest"),
        "points": ", ".join(points),
        "point": numbers.format_point([301, 222]),
        "mark": "the blue square",
        "label": "the object in the blue rectangle",
        **{name: f"{name} chair" for name in ("a", "b", "c", "d", "about")},
        "names": "the chair, the desk, the fan and the oven",
        "walk": "1.5",
        "turn": render.fill_word("about_turn.left", value="90"),
        "matrix": numbers.format_matrix([[1.02, -0.1, 20.5], [0.0, 0.98, -5.25], [0.00012345, 0, 1]], four_digits),
        "box": numbers.format_corners(corners),
        "rotation": numbers.format_matrix(rotation, lambda x: numbers.format_fixed(x, 3)),
        "translation": numbers.format_vector([0.25, -0.001, 0.1], lambda x: numbers.format_fixed(x, 2)),
        "motion": _poses.print_pose(np.array([[1, 0, 0, -0.25], [0, 1, 0, 0], [0, 0, 1, 0.1]]), "words"),
        "corners": "top left 1.0 px left, 2.0 px up; top right 3.0 px right, 4.0 px down; "
        "bottom right 5.0 px left, 6.0 px down; bottom left 0.0 px right, 8.5 px up",
        "tolerance_deg": "5.0",
        "tolerance_m": "0.10",
        "width": "640",
        "height": "480",
        "fx": "577",
        "fy": "578",
        "cx": "319",
        "cy": "239",
        "second_camera": render.fill_word("second_camera.same"),
    }
    if task == "camera_parameters":
        everything["claim"] = "612"
    if task == "camera_motion_words":
        everything["label"] = "turned left and moved forward"
    if task == "camera_turn_angle":
        everything["label"] = "twenty degrees"
    if task == "camera_from_camera":
        everything["label"] = "ahead to the left"
    return everything


def filled(phrasing: Phrasing) -> tuple[str, str]:
    values = sample_slots(phrasing.task)
    return render.render(phrasing, {name: values[name] for name in phrasing.slots})


def test_every_task_and_type_has_phrasings() -> None:
    assert set(render.list_task_names()) == set(EXPECTED)
    for task, types in EXPECTED.items():
        assert render.list_question_types(task) == types


@pytest.mark.parametrize(("task", "question_type", "notation"), CELLS)
def test_every_phrasing_renders_clean(task: str, question_type: QuestionType, notation: Notation) -> None:
    bank = render.load_phrasings(task, question_type, notation)
    assert 6 <= len(bank) <= 8
    assert len({p.id for p in bank}) == len(bank)
    assert all(p.states for p in bank) or not STATED[task]  # what only shows images states nothing
    for phrasing in bank:
        question, context = filled(phrasing)
        assert lint.lint(question, context, states=phrasing.states) == [], phrasing.id
        for text in (question, context):
            assert text[0].isupper(), phrasing.id
            assert text[-1] in ".?", phrasing.id
            assert text.isascii(), phrasing.id
            # American and British spellings of the same word must not alternate between phrasings.
            assert not re.search(r"\b(?:metres?|center\w*|color\w*|normalized)\b", text), phrasing.id
            assert "option" not in text.lower(), phrasing.id
            assert "world" not in text.lower(), phrasing.id


@pytest.mark.parametrize(("task", "question_type", "notation"), CELLS)
def test_phrasings_of_a_cell_are_really_different(task: str, question_type: QuestionType, notation: Notation) -> None:
    bank = render.load_phrasings(task, question_type, notation)
    for a, b in itertools.combinations(bank, 2):
        for part in ("question", "context"):
            words_a, words_b = (re.findall(r"[a-z]+", getattr(p, part).lower()) for p in (a, b))
            ratio = difflib.SequenceMatcher(None, words_a, words_b, autojunk=False).ratio()
            assert ratio < 0.8, f"{a.id} and {b.id}: {part} {ratio:.2f}"


@pytest.mark.parametrize(("task", "question_type", "notation"), [cell for cell in CELLS if cell[1] == "judgment"])
def test_judgments_ask_for_yes_when_the_claim_is_true(
    task: str, question_type: QuestionType, notation: Notation
) -> None:
    for phrasing in render.load_phrasings(task, question_type, notation):
        question, _ = filled(phrasing)
        assert question.endswith("?") or ":" in question, phrasing.id
        assert not re.search(r"\b(?:not|wrong|incorrect|false|differ|fail|outside|more than|less than)\b", question)


@pytest.mark.parametrize(("task", "question_type", "notation"), CELLS)
def test_conventions_are_stated_and_each_can_be_missed(
    task: str, question_type: QuestionType, notation: Notation
) -> None:
    """Each kind states its conventions, and each is missed where the sentence that states it is taken away."""
    stated = (STATED_IN_WORDS if notation == "words" else STATED)[task]
    for number, phrasing in enumerate(render.load_phrasings(task, question_type, notation)):
        assert stated <= set(phrasing.states), phrasing.id
        question, _ = filled(phrasing)
        for state in stated - {"meters"}:  # which numbers in the question may say as well
            assert f"text: does not state {state!r}" in lint.lint(question, "Look.", states=[state]), phrasing.id
        for name, clause in CLAUSES.items():
            if clause["texts"][number] not in phrasing.context:
                continue
            short = replace(phrasing, context=phrasing.context.replace(clause["texts"][number], "Look."))
            for state in stated & set(clause.get("states", ())) - {"meters"}:
                problems = lint.lint(*filled(short), states=[state])
                assert f"text: does not state {state!r}" in problems, f"{phrasing.id}, {name}, {state}"


@pytest.mark.parametrize("key", ["fx", "fy", "cx", "cy", "hfov", "vfov"])
def test_camera_questions_read_well_for_every_parameter(key: str) -> None:
    unit = render.fill_word("unit.degrees" if key.endswith("fov") else "unit.pixels")
    for question_type in EXPECTED["camera_parameters"]:
        for phrasing in render.load_phrasings("camera_parameters", question_type):
            values = sample_slots("camera_parameters") | {
                "quantity": render.fill_word(f"quantity.{key}"),
                "definition": render.fill_word(f"definition.{key}"),
                "unit": unit,
            }
            question, context = render.render(phrasing, {name: values[name] for name in phrasing.slots})
            assert lint.lint(question, context, states=phrasing.states) == []
            assert render.fill_word(f"definition.{key}").endswith(".")
            assert f" {unit}" in question


def test_no_indefinite_article_stands_before_a_slot_that_may_begin_with_a_vowel() -> None:
    for cell in CELLS:
        for phrasing in render.load_phrasings(*cell):
            for name in re.findall(r"\b[Aa]n? \{\{ (\w+) \}\}", phrasing.question + phrasing.context):
                assert name == "quantity", phrasing.id  # horizontal, vertical, principal-point: never a vowel


def test_golden_questions() -> None:
    assert filled(render.load_phrasings("metric_depth", "judgment")[0])[0] == (
        "Is the mean depth of the region outlined in orange within 10 percent of 2.10 meters?"
    )
    question, context = filled(render.load_phrasings("homography_to_image", "multi-choice")[0])
    assert question == (
        "The first image is warped with the homography\nH =\n"
        "[[1.020, -0.1000, 20.50],\n [0.000, 0.9800, -5.250],\n [0.0001234, 0.000, 1.000]]\n"
        "Which of the images 2 to 5 is the result?"
    )
    assert context.startswith("Image 1 is the first image; images 2 to 5 are the candidates. All images are 640 x 480")
    question, context = filled(render.load_phrasings("relative_pose", "judgment")[0])
    assert question == (
        "Is the relative pose (R, t) from the first camera to the second equal to\nR =\n"
        "[[0.866, -0.500, 0.000],\n [0.500, 0.866, 0.000],\n [0.000, 0.000, 1.000]]\nt = [0.25, 0.00, 0.10]\n"
        "to within 5.0 degrees in rotation and 0.10 meters in translation?"
    )
    assert "The first image is 640 x 480 pixels with fx = 577, fy = 578" in context
    assert "Second image: the same." in context
