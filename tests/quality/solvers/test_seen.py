from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import cv2
import numpy as np
import pytest

from tests.store.examples import make_item, textured
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import NOTATIONS, Notation, QuestionType
from vgbench_gen.quality.questions import read_question
from vgbench_gen.quality.solvers import look
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.tasks.presentation import make_number_slots
from vgbench_gen.tasks.solving import Image, Unread, seen
from vgbench_gen.text.render import fill_word, load_phrasings, render

# The inverse of the motion below, as the first camera sees the second one.
MOTION = (
    "0.53 m right, 0.09 m up, 0.96 m back; turned 12.8 degrees left, tilted 0.5 degrees down, "
    "rolled 5.5 degrees counterclockwise"
)
CORNERS = (
    "top left 1.0 px left, 2.0 px up; top right 3.0 px right, 4.0 px down; bottom right 5.0 px left, 6.0 px down; "
    "bottom left 0.0 px right, 8.5 px up"
)
MATRIX = "[[0.971, -0.095, 0.221],\n [0.095, 0.995, 0.012],\n [-0.221, 0.009, 0.975]]"
FILLED = {
    "width": "1024", "height": "768", "fx": "808", "fy": "810", "cx": "511", "cy": "377",
    "second_camera": fill_word(
        "second_camera.other", width="768", height="1024", fx="701", fy="702", cx="385", cy="519"
    ),
    **make_number_slots(4),
    "motion": MOTION,
    "corners": CORNERS,
    "rotation": MATRIX, "translation": "[-0.31, 0.05, 1.05]", "tolerance_deg": "5", "tolerance_m": "0.10",
    "matrix": MATRIX, "color": "pink", "color_a": "pink", "color_b": "green", "point": "(761, 428)",
    "mark": "the blue square", "points": "the green circle (748, 303), the blue square (598, 380)",
    "extreme": "farthest from the camera", "claim": "2.05", "tolerance": "10 percent", "box": "(0.10, 0.20, 1.00)",
}  # fmt: skip
WORDINGS: list[tuple[str, QuestionType, Notation]] = [
    *(("relative_pose", "judgment", notation) for notation in NOTATIONS),
    *(("relative_pose", "multi-choice", notation) for notation in NOTATIONS),
    *(("view_after_motion", "multi-choice", notation) for notation in NOTATIONS),
    *(("homography_to_image", "multi-choice", notation) for notation in NOTATIONS),
    ("point_tracking", "judgment", "matrix"),
    ("point_tracking", "multi-choice", "matrix"),
]
MARKS = {"the green circle": (748.0, 303.0), "the blue square": (598.0, 380.0)}


@pytest.mark.parametrize(("task", "form", "notation"), WORDINGS)
def test_every_wording_is_read(task: str, form: QuestionType, notation: Notation) -> None:
    K = [[[808, 0, 511], [0, 810, 377], [0, 0, 1]], [[701, 0, 385], [0, 702, 519], [0, 0, 1]]]
    for phrasing in load_phrasings(task, form, notation):
        question, context = render(phrasing, {name: FILLED[name] for name in phrasing.slots})
        if task in ("relative_pose", "view_after_motion"):
            assert np.array_equal(seen.read_cameras(context), K[: 1 + (task == "relative_pose")]), context
            stated = seen.read_motions(question)
            assert len(stated) == (0 if (task, form) == ("relative_pose", "multi-choice") else 1)
            for pose in stated:
                assert np.allclose(pose[:, 3], [-0.31, 0.05, 1.05], atol=0.01)
                assert np.allclose(
                    pose[:, :3], [[0.971, -0.095, 0.221], [0.095, 0.995, 0.012], [-0.221, 0.009, 0.975]], atol=0.02
                )
                assert np.allclose(pose[:, :3] @ pose[:, :3].T, np.eye(3))
        elif notation == "words":
            assert [m.tolist() for m in seen.read_corner_moves(question)] == [[[-1, -2], [3, 4], [-5, 6], [0, -8.5]]]
        elif task == "homography_to_image":
            assert [m.ravel()[0] for m in seen.read_matrices(question)] == [0.971]
        elif task == "point_tracking":
            assert seen.read_point(question).tolist() == [761, 428]
            options = ("the blue square", "the green circle") if form == "multi-choice" else ("Yes", "No")
            marks = seen.list_marks(seen.VisibleQuestion(task, form, "", question, context, options, (), MARKS))
            assert [mark.tolist() for mark in marks] == [[598, 380], [748, 303]]


def test_a_second_camera_may_be_the_same() -> None:
    slots = FILLED | {"second_camera": fill_word("second_camera.same")}
    for phrasing in load_phrasings("relative_pose", "multi-choice"):
        _, context = render(phrasing, {name: slots[name] for name in phrasing.slots})
        first, second = seen.read_cameras(context)
        assert np.array_equal(first, second), context


def test_the_key_never_gets_in() -> None:
    """Whatever is the truth, and whatever the evidence says of it, a solver is given the same."""
    keys: list[dict[str, Any]] = [
        {"answer": letter, "answer_value": (k,), "evidence": {"truth": k}, "distractors": ()}
        for k, letter in enumerate("ABCD")
    ]
    shown = [Image(b"", "a"), Image(b"", "b")]
    given = [look(read_question(make_item(**key, images=["a", "b"])), shown) for key in keys]
    for other in given[1:]:
        assert all(getattr(other, f.name) == getattr(given[0], f.name) for f in fields(other))
    assert {f.name for f in fields(given[0])} == {
        "task",
        "form",
        "ask",
        "question",
        "context",
        "options",
        "images",
        "marks",
    }
    question = read_question(make_item())
    assert look(replace(question, truth=3, value=7.0, id="x", group="y", pair="z"), shown).options == question.options


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (seen.read_cameras, "no camera here"),
        (seen.read_cameras, "fx = 5 and fy = 6"),
        (seen.read_motions, f"R =\n{MATRIX}"),
        (seen.read_motions, f"R =\n{MATRIX}\nt = [1.0, 2.0]"),
        (seen.read_motions, "0.10 m right, 0.20 m up, 0.30 m back"),
        (seen.read_corner_moves, "top left 1.0 px left, 2.0 px up"),
        (seen.read_point, "somewhere"),
        (seen.read_number, "image two"),
        (seen.read_number, "image 2 or 3"),
    ],
)
def test_unknown_wordings_are_refused(read: Any, text: str) -> None:
    with pytest.raises(Unread):
        read(text)


def test_options_must_name_what_is_shown() -> None:
    images = (Image(b""), Image(b""))
    bare = seen.VisibleQuestion("view_after_motion", "multi-choice", "", "", "", ("image 2", "image 3"), images)
    with pytest.raises(Unread):
        seen.list_candidate_images(bare)
    assert seen.list_candidate_images(replace(bare, options=("image 2",))) == [images[1]]
    with pytest.raises(Unread):
        seen.list_candidate_images(replace(bare, options=("image 1",)))
    listed = replace(bare, marks={"the blue square": (3.0, 4.0)}, options=("the blue square",))
    assert [place.tolist() for place in seen.list_marks(listed)] == [[3, 4]]
    with pytest.raises(Unread):
        seen.list_marks(replace(listed, options=("the pink square",)))


def test_an_image_keeps_grey_pixels_without_its_colours() -> None:
    pixels = textured(96, 72)
    image = Image(encode_jpeg(pixels))
    assert image.size == (96, 72)
    assert "gray" not in vars(image)  # the size stands in the header
    grey = image.gray
    assert "color" not in vars(image)
    assert np.array_equal(grey, cv2.cvtColor(image.color, cv2.COLOR_RGB2GRAY))
    assert image.gray is grey
    with pytest.raises(DatasetError):
        Image(b"no image").size  # noqa: B018
