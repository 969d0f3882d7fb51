"""Filled texts: numbers tell what they belong to by their place alone, so their places are kept."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.text.paraphrase.good_rewordings import GOOD
from vgbench_gen.text.bank import load_shipped
from vgbench_gen.text.paraphrase import rules
from vgbench_gen.text.paraphrase.checks import Original, Text, check
from vgbench_gen.text.paraphrase.filled import fill_text, merge_texts
from vgbench_gen.text.render import fill_word

SAMPLES = dict(rules.list_slots().samples)
TWO_CAMERAS = SAMPLES | {
    "second_camera": fill_word("second_camera.other", width="800", height="601", fx="711", fy="712", cx="399", cy="298")
}


def both(name: str, values: Mapping[str, str] = SAMPLES) -> tuple[Text, Original]:
    """(a careful rewording, its original), both with numbers in place of placeholders."""
    template = load_shipped()[name]
    text = fill_text(Text(template.question, template.context), values)
    return fill_text(GOOD[name][0], values), Original(text, template.states, filled=True)


@pytest.mark.parametrize("name", GOOD)
def test_careful_rewordings_pass(name: str) -> None:
    for values in (SAMPLES, TWO_CAMERAS):
        proposed, original = both(name, values)
        assert check(proposed, original) == []


ATTACKS = [
    ("focal lengths", "metric_depth.open-ended.2", "fx = 577, fy = 578", "fx = 578, fy = 577", "formula"),
    ("sizes", "homography_to_image.multi-choice.1", "640 x 480", "480 x 640", "formula"),
    ("images", "relative_pose.judgment.1", "first image has 640", "second image has 640", "direction"),
    ("marks", "point_tracking.multi-choice.1", "blue square (50, 77), the green circle (100, 77)",
     "green circle (50, 77), the blue square (100, 77)", "colour"),
    ("points", "point_tracking.multi-choice.1", "(100, 77), the pink triangle (150",
     "(150, 77), the pink triangle (100", "number"),
    ("entries of a matrix", "homography_to_image.multi-choice.1", "1.020, -0.1000", "-0.1000, 1.020", "number"),
    ("signs", "homography_to_image.multi-choice.1", "-0.1000", "0.1000", "number"),
    ("rows of a matrix", "relative_pose.judgment.1", "[[0.866, -0.500, 0.000],\n [0.500, 0.866, 0.000]",
     "[[0.500, 0.866, 0.000],\n [0.866, -0.500, 0.000]", "number"),
    ("rounding", "relative_pose.judgment.1", "[0.25, 0.00", "[0.3, 0.00", "number"),
    ("tolerances", "relative_pose.judgment.1", "5.0 degrees in rotation and 0.10",
     "0.10 degrees in rotation and 5.0", "unit"),
    ("colour", "metric_depth.judgment.1", "orange", "green", "colour"),
    ("extreme", "relative_depth.multi-choice.1", "farthest from", "closest to", "extreme"),
    ("claim", "metric_depth.judgment.1", "2.10 meters", "2.1 meters", "number"),
    ("placeholder", "metric_depth.judgment.1", "2.10", "{{ claim }}", "slot"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "reason"), [a[1:] for a in ATTACKS], ids=[a[0] for a in ATTACKS])
def test_numbers_keep_their_places(name: str, old: str, new: str, reason: str) -> None:
    proposed, original = both(name)
    changed = Text(proposed.question.replace(old, new, 1), proposed.context.replace(old, new, 1))
    assert changed != proposed
    assert reason in {problem.reason for problem in check(changed, original)}


def test_parameters_stay_with_their_images() -> None:
    proposed, original = both("relative_pose.judgment.1", TWO_CAMERAS)
    exchanged = proposed.context.replace("577", "?").replace("711", "577").replace("?", "711")
    assert [p.reason for p in check(Text(proposed.question, exchanged), original)] == ["formula"]


@pytest.mark.parametrize(("a", "b", "found"), [("blue", "pink", set()), ("pink", "blue", {"colour"})])
def test_colours_stay_with_their_points(a: str, b: str, found: set[str]) -> None:
    """Named in another order, each with its own point."""
    original = Original(Text("Which one?", "The marks are the blue square (50, 77) and the pink circle (100, 77)."))
    told = (
        f"Of the two marked places, one has a circle, {b}, which is (100, 77), and one a square, {a}, being (50, 77)."
    )
    assert {p.reason for p in check(Text("Which is it?", told), original)} - {"quantity"} == found


TWINS = [
    Text("Is it\nR =\n[[1.0, 0.0],\n [0.0, 1.0]]\nwithin 5.0 degrees of (2, 3)?", "Size 640 x 480 (of 3)."),
    Text("Is it\nR =\n[[0.0, 1.0],\n [1.0, 0.5]]\nwithin 5.0 degrees of (4, 3)?", "Size 640 x 480 (of 3)."),
]


def test_twins_share_a_text_with_placeholders_where_they_differ() -> None:
    found = merge_texts(TWINS)
    assert found is not None
    text, values = found
    assert text.question == "Is it\nR =\n{{ v1 }}\nwithin 5.0 degrees of {{ v2 }}?"
    assert text.context == TWINS[0].context
    assert values[1] == {"v1": "[[0.0, 1.0],\n [1.0, 0.5]]", "v2": "(4, 3)"}
    assert [fill_text(text, mine) for mine in values] == TWINS
    marked = [Text(f"Is it at the {mark}?", "the blue circle (1, 2)") for mark in ("blue circle", "pink square")]
    named = [{"v1": "the blue circle"}, {"v1": "the pink square"}]
    assert merge_texts(marked) == (Text("Is it at {{ v1 }}?", marked[0].context), tuple(named))
    assert merge_texts([TWINS[0]]) == (TWINS[0], ({},))
    assert merge_texts([TWINS[0], Text("Is it not?", TWINS[0].context)]) is None
    assert merge_texts([Text("Is (1.5) it?", "x"), Text("Is (2.5) it?", "x")]) == (
        Text("Is {{ v1 }} it?", "x"),
        ({"v1": "(1.5)"}, {"v1": "(2.5)"}),
    )


def test_the_lint_reads_every_twin() -> None:
    text, values = merge_texts(TWINS) or (TWINS[0], ({},))
    broken = ({**values[0]}, {**values[1], "v2": "-0.00"})
    told = Text("R =\n{{ v1 }}\nIs this so within 5.0 degrees of {{ v2 }}?", "The size (of 3) is 640 x 480.")
    assert not [p for p in check(told, Original(text, (), filled=True, samples=values)) if p.reason == "lint"]
    # What the original says as badly is not the rewording's fault; what it adds is.
    assert not [p for p in check(told, Original(text, (), filled=True, samples=broken)) if p.reason == "lint"]
    worse = Text(told.question.replace("of {{ v2 }}", "of of {{ v2 }}"), told.context)
    assert [p for p in check(worse, Original(text, (), filled=True, samples=broken)) if p.reason == "lint"]
