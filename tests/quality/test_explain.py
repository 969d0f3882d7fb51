from __future__ import annotations

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.quality.conftest import NAMES, Rows
from vgbench_gen.core.types import Item
from vgbench_gen.quality import explain
from vgbench_gen.store import pictures
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.presentation import Mark

GREEN, RED = np.array([0, 158, 115]), np.array([215, 0, 30])


def near(image: np.ndarray, color: np.ndarray, at: tuple[float, float], radius: int = 3) -> bool:
    x, y = (round(v) for v in at)
    patch = image[max(y - radius, 0) : y + radius + 1, max(x - radius, 0) : x + radius + 1].astype(int)
    return bool((np.abs(patch - color).max(axis=-1) < 40).any())


@pytest.mark.parametrize("task", NAMES)
def test_every_task_and_form_is_drawn(rows: Rows, task: str) -> None:
    for form in tasks[task].formats:
        item = rows.one(task, form)
        page = explain.draw_row(item, rows.images(item))
        assert page.dtype == np.uint8
        assert page.shape[2] == 3
        assert page.shape[1] == 1440
        assert np.array_equal(pictures.decode(explain.encode_png(page)), page)


def apart(item: Item) -> int:
    """Pixels between the two regions that lie closest to one another, along the wider of both gaps."""
    boxes = np.array([option["show"]["rect"] for option in item.evidence["options"]])
    gaps = [max(np.maximum(a[:2], b[:2]) - np.minimum(a[2:], b[2:])) for a, b in itertools.combinations(boxes, 2)]
    return int(min(gaps))


def test_the_true_region_is_green_and_the_others_are_not(rows: Rows) -> None:
    # Outlines of regions that touch would be taken for one another's.
    item = max((item for item in rows.items if item.task == "relative_depth"), key=apart)
    page = explain.draw_row(item, rows.images(item))
    for option in item.evidence["options"]:
        x1, y1, x2, y2 = option["show"]["rect"]
        outline = [(x, y) for x in range(x1, x2) for y in (y1, y2)] + [(x, y) for y in range(y1, y2) for x in (x1, x2)]
        right = option["key"] == item.evidence["truth"]["key"]
        # Labels cover some of it.
        assert np.mean([near(page, GREEN if right else RED, at, 1) for at in outline]) > 0.5, option["key"]
        assert np.mean([near(page, RED if right else GREEN, at, 1) for at in outline]) < 0.35, option["key"]


def test_how_far_off_the_wrong_options_are_is_told_by_their_letters(rows: Rows) -> None:
    for item in (item for item in rows.items if item.question_type == "multi-choice"):
        told = [line for line in explain._list_numbers(item) if line[1:2] == ":"]
        assert [line[0] for line in told] == [letter for letter in "ABCD" if letter != item.answer]
        for line, distractor in zip(told, item.distractors, strict=True):
            assert f"{distractor.separation:.2f} margins" in line
            parts = item.error_parts["ABCD".index(line[0])] if item.error_parts else ""
            assert ("(wrong: " in line) == bool(parts)


@pytest.mark.parametrize("scale", [0.5, 1, 4])
def test_marks_land_on_their_pixels(scale: float) -> None:
    """In a smaller tile, in one of the same size, and in one four times as large, to which nothing is enlarged."""

    def centre(x: float, y: float) -> tuple[float, float]:
        return min(scale, 1) * (x + 0.5) - 0.5, min(scale, 1) * (y + 0.5) - 0.5

    image = np.full((400, 800, 3), 90, dtype=np.uint8)
    marks = [
        Mark("point", ((80.0, 200.0),)),
        Mark("line", ((400.0, 120.0), (600.0, 320.0)), right=False),
        Mark("rect", ((640.0, 240.0), (760.0, 360.0)), "far"),
        Mark("point", ()),
    ]
    tile = explain._tile(image, marks, "image 1", round(800 * scale))
    assert tile.shape == (round(400 * min(scale, 1)), round(800 * min(scale, 1)), 3)
    assert near(tile, GREEN, centre(80, 200))
    assert near(tile, RED, centre(500, 220))
    assert near(tile, GREEN, centre(640, 320))
    assert near(tile, GREEN, centre(700, 360))
    assert not near(tile, GREEN, centre(700, 300))
    assert (image == 90).all()


def test_images_stand_side_by_side_in_the_order_shown(rows: Rows) -> None:
    item = rows.one("homography_to_image", "multi-choice")
    page = explain.draw_row(item, rows.images(item))
    sizes = [pictures.decode(data).shape for data in rows.images(item)]
    beside = len(explain._fill_rows([width / height for height, width, _ in sizes])[0])
    for n, data in enumerate(rows.images(item)):
        shown = pictures.decode(data)
        height, width = shown.shape[:2]
        row, column = divmod(n, beside)
        tile = page[row * height :, column * width :][:height, :width]
        # Most pixels are the image's own: marks and titles cover little, if more of small images.
        assert (np.abs(tile.astype(int) - shown.astype(int)).max(axis=-1) <= 2).mean() > 0.5


def test_the_panel_follows_the_row(rows: Rows) -> None:
    item = rows.one("metric_depth", "judgment")
    panel = explain._draw_panel(item, 1440)
    for change in (
        replace(item, answer="Yes" if item.answer == "No" else "No"),
        replace(item, question="Is it?"),
        replace(item, scene_id="another"),
    ):
        other = explain._draw_panel(change, 1440)
        assert other.shape != panel.shape or not np.array_equal(other, panel)
    evidence = copy.deepcopy(dict(item.evidence))
    evidence["second_value"] = [9.99]
    assert not np.array_equal(explain._draw_panel(replace(item, evidence=evidence), 1440), panel)


def test_a_long_matrix_stays_on_the_page(rows: Rows) -> None:
    item = rows.one("homography_to_matrix", "multi-choice")
    panel = explain._draw_panel(item, 1440)
    assert (panel[:, -12:] == 24).all()  # nothing runs into the right edge
    assert (panel[-8:] == 24).all()


def test_another_number_of_images_is_an_error(rows: Rows) -> None:
    item = rows.one("homography_to_matrix", "multi-choice")
    with pytest.raises(ValueError, match="zip"):
        explain.draw_row(item, rows.images(item)[:1])


@pytest.mark.parametrize(
    ("aspects", "rows_of"),
    [
        ([1.33], [1]),
        ([0.75], [1]),
        ([1.33, 1.33], [2]),
        ([0.75] * 2, [2]),
        ([1.33] * 5, [2, 2, 1]),
        ([0.75] * 5, [3, 2]),
    ],
)
def test_rows_are_about_as_wide_as_the_page(aspects: list[float], rows_of: list[int]) -> None:
    assert [len(row) for row in explain._fill_rows(aspects)] == rows_of


def test_a_row_of_another_program_is_drawn_with_its_words_and_without_marks(rows: Rows) -> None:
    item = rows.one("metric_depth", "multi-choice")
    images = rows.images(item)
    strange = [
        replace(item, task="counting", evidence={}),
        replace(item, evidence={}),
        replace(item, evidence={"fact": 3}),
    ]
    for other, why in zip(strange, ("not one of this program", "does not give", "does not give"), strict=True):
        marks, problem = explain.find_overlay(other)
        assert marks == [[] for _ in images]
        assert why in problem
        page = explain.draw_row(other, images)
        assert page.shape[1] == 1440
        assert not np.array_equal(page, explain.draw_row(item, images)[: page.shape[0]])
    with_marks, problem = explain.find_overlay(item)
    assert any(with_marks)
    assert problem == ""
