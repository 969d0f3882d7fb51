"""Filled texts: numbers tell what they belong to by their place alone, so their places are kept."""

from __future__ import annotations

import pytest

from tests.text.paraphrase.good_rewordings import GOOD
from vgbench_gen.text.bank import load_shipped
from vgbench_gen.text.paraphrase import rules
from vgbench_gen.text.paraphrase.checks import Original, Text, check
from vgbench_gen.text.paraphrase.filled import fill_text, merge_texts

SAMPLES = rules.list_slots().samples


def both(name: str) -> tuple[Text, Original]:
    """(a careful rewording, its original), both with numbers in place of placeholders."""
    template = load_shipped()[name]
    text = fill_text(Text(template.question, template.context), SAMPLES)
    return fill_text(GOOD[name][0], SAMPLES), Original(text, template.states, filled=True)


@pytest.mark.parametrize("name", GOOD)
def test_careful_rewordings_pass(name: str) -> None:
    proposed, original = both(name)
    assert check(proposed, original) == []


ATTACKS = [
    ("focal lengths", "metric_depth.open-ended.2", "fx = 577, fy = 578", "fx = 578, fy = 577", "formula"),
    ("sizes", "point_tracking.multi-choice.1", "640 x 480", "480 x 640", "formula"),
    ("images", "point_tracking.multi-choice.1", "first image is 640", "second image is 640", "frame"),
    ("regions", "relative_depth.multi-choice.1", "blue region [40, 30, 72, 94], the green region [80, 30, 112, 94]",
     "green region [40, 30, 72, 94], the blue region [80, 30, 112, 94]", "colour"),
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
    proposed, original = both("relative_pose.judgment.1")
    exchanged = proposed.context.replace("577", "?").replace("711", "577").replace("?", "711")
    assert [p.reason for p in check(Text(proposed.question, exchanged), original)] == ["formula"]


def test_colours_stay_with_their_regions() -> None:
    template = load_shipped()["object_distance.multi-choice.1"]
    original = Original(fill_text(Text(template.question, template.context), SAMPLES), template.states, filled=True)
    for a, b, fine in (("orange", "blue", True), ("blue", "orange", False)):
        asked = f"Which distance separates the object in the {a} rectangle [12, 96, 76, 160] from the "
        asked += f"object in the {b} rectangle [212, 300, 276, 411]?"
        found = {p.reason for p in check(Text(asked, original.text.context), original)}
        assert found == ({"near_copy"} if fine else {"near_copy", "colour"})


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
