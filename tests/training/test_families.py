"""Points of images rewritten for families of models: what changes, what must not, and where a mark then lies."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.examples import make_item
from vgbench_gen.core.errors import ConfigError, UnknownNameError
from vgbench_gen.core.types import Item
from vgbench_gen.text.render import load_phrasings
from vgbench_gen.training.families import FAMILIES, find_family, rewrite_points, rewrite_text

CAMERA = "The image is 640 x 480 pixels, with fx = 812.4, fy = 812.4, cx = 320.0, cy = 240.0."
SIDES = st.integers(28, 2000)


def marked(uv: tuple[int, int], others: list[tuple[int, int]], context: str) -> Item:
    """A question about a point of the first image and marks of the second."""
    pictures: list[dict[str, Any]] = []
    for k, points in enumerate(([uv], others)):
        ops = [{"op": "point", "uv": list(at), "color": "blue", "shape": "circle"} for at in points]
        pictures.append({"base": f"{k:032x}.jpg", "ops": ops})
    listed = ", ".join(f"the blue circle ({u}, {v})" for u, v in others)
    return make_item(
        0,
        ["a.jpg", "b.jpg"],
        question=f"Which mark is the one at ({uv[0]}, {uv[1]})?",
        context=f"Marks: {listed}. {context}",
        options=tuple(f"({u}, {v})" for u, v in others),
        evidence={"pictures": pictures, "cameras": {}, "bases": {}},
    )


def read_points(text: str) -> list[tuple[float, float]]:
    return [(float(u), float(v)) for u, v in re.findall(r"\(([\d.]+), ([\d.]+)\)", text)]


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "pixels"])
@pytest.mark.parametrize("number", range(6))
def test_a_rewritten_point_lies_within_a_pixel_of_the_mark(name: str, number: int) -> None:
    family = find_family(name)
    clause = load_phrasings("point_tracking", "multi-choice")[number].context.rpartition("{{ points }}")[2].lstrip(" .")
    clause = clause[clause.find("Pos") :] if "Pos" in clause else clause
    sentence = next(one for one in re.findall(r"[^.]*\.", clause) if "(x, y)" in one).strip()
    item = marked((17, 460), [(600, 3), (0, 479), (639, 0)], sentence)
    sizes = [(640, 480), (640, 480)]
    found = rewrite_points(item, sizes, family)
    assert (found.answer, found.answer_value, found.images, found.evidence) == (
        item.answer,
        item.answer_value,
        item.images,
        item.evidence,
    )
    assert sentence not in found.context
    assert found.context.endswith(family.describe(sizes))
    assert found.context.count("x to the right") == 1
    seen = family.resize((640, 480)) if family.unit == "pixels" else None
    for before, after in zip(
        (item.question, item.context, *item.options), (found.question, found.context, *found.options), strict=True
    ):
        for (u, v), (x, y) in zip(read_points(before), read_points(after), strict=True):
            if seen is not None:
                at = ((x + 0.5) / seen[0] * 640 - 0.5, (y + 0.5) / seen[1] * 480 - 0.5)
            else:
                whole = 1000 if family.unit == "thousandths" else 1
                at = (x / whole * 640 - 0.5, y / whole * 480 - 0.5)
            assert max(abs(at[0] - u), abs(at[1] - v)) <= 1


def test_what_is_said_of_a_camera_stays() -> None:
    sentence = "Pixel coordinates (x, y): x to the right, y down, from the top-left corner."
    item = marked((17, 460), [(600, 3)], f"{CAMERA} {sentence}")
    found = rewrite_points(item, [(640, 480), (640, 480)], find_family("0-1000"))
    assert CAMERA in found.context
    assert "pixels" not in found.context.replace(CAMERA, "")
    assert "(27, 959)" in found.question


def test_rows_without_points_and_pixels_as_they_are_stay() -> None:
    plain = make_item(0, ["a.jpg"], context=CAMERA, question="How far is (3, 4)?")
    assert rewrite_points(plain, [(640, 480)], find_family("qwen2.5-vl")) is plain
    item = marked((17, 460), [(600, 3)], "Coordinates (x, y) are in pixels.")
    assert rewrite_points(item, [(640, 480)] * 2, find_family("pixels")) is item
    # Only what is marked is a point.
    assert "(0, 0)" in rewrite_text("(0, 0) and (17, 460)", item, [(640, 480)] * 2, find_family("0-1"))


def test_images_of_two_sizes_each_have_their_own() -> None:
    item = marked((10, 10), [(20, 20)], "Coordinates (x, y) are in pixels.")
    found = rewrite_points(item, [(640, 480), (1024, 768)], find_family("qwen2.5-vl"))
    assert "the images have 644 x 476, 1036 x 756 pixels" in found.context
    assert "(10, 10)" in found.question
    assert found.options == ("(20, 20)",)
    again = marked((10, 10), [(10, 10)], "Coordinates (x, y) are in pixels.")
    with pytest.raises(ConfigError, match="two sizes"):
        rewrite_points(again, [(640, 480), (1024, 768)], find_family("qwen2.5-vl"))


def test_a_text_that_does_not_say_how_points_are_counted_is_refused() -> None:
    item = marked((10, 10), [(20, 20)], "Look.")
    with pytest.raises(ConfigError, match="item0000"):
        rewrite_points(item, [(640, 480)] * 2, find_family("0-1"))


def test_unknown_families_and_limits_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"qwen9.*qwen2\.5-vl"):
        find_family("qwen9")
    with pytest.raises(ConfigError, match="internvl"):
        find_family("internvl", 1000)
    assert find_family("qwen2.5-vl", 28 * 28 * 1280).resize((1024, 1024)) == (980, 980)


@given(SIDES, SIDES, st.sampled_from(["qwen2.5-vl", "qwen3-vl"]), st.integers(200_000, 2_000_000))
def test_resized_images_keep_the_limits(width: int, height: int, name: str, max_pixels: int) -> None:
    family = replace(find_family(name), max_pixels=max_pixels)
    wide, high = family.resize((width, height))
    assert wide % family.step_px == high % family.step_px == 0
    if max(width, height) < 20 * min(width, height):
        assert wide * high <= max_pixels
        assert wide * high >= family.min_pixels
    assert family.count_tokens((width, height)) == wide * high // family.step_px**2
    assert family.resize((height, width)) == (high, wide)


def test_larger_images_take_more_tokens() -> None:
    for name in ("qwen2.5-vl", "qwen3-vl"):
        tokens = [find_family(name).count_tokens((side, side)) for side in (100, 300, 700, 1500)]
        assert all(small < large for small, large in pairwise(tokens))
    # Two pictures of 1024 x 765: the figures that shared rows were lost for.
    assert 2 * find_family("qwen2.5-vl").count_tokens((1024, 765)) == 1998
    assert 2 * find_family("qwen3-vl").count_tokens((1024, 765)) == 1536
