"""The page of a trace: hostile texts stay texts, marks lie where tools say, nothing scrolls sideways."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.agent.cores import IMAGE
from tests.browser import OpenPage
from vgbench_gen.report.trace_marks import MAX_MARKS, TraceMark, find_marks
from vgbench_gen.report.trace_page import make_trace_page

EVIL = '</pre></style><script>alert(1)</script><img src=x onerror="alert(2)">{{ 7*7 }}\u202e'
SIZES = [(60, 40), (60, 40)]


def make_trace() -> dict[str, Any]:
    step = {"thought": EVIL, "actions": [{"name": EVIL, "arguments": {"image": "../../etc/passwd", EVIL: EVIL}}]}
    pair = {"image": ["image-0", "image-1"]}
    return {
        "kind": "react",
        "mode": "sane",
        "core": EVIL,
        "tiers": ["classical", EVIL],
        "question": EVIL,
        "images": [{"name": f"image-{k}", "digest": "d", "size_px": [60, 40]} for k in range(2)]
        + [{"name": "image-2", "digest": "d", "size_px": [60, 40], "made_by": "Crop"}],
        "steps": [
            {"step": "core", "role": "react", "text": json.dumps(step)},
            {"step": "tool", "name": EVIL, "arguments": {EVIL: EVIL}, "failure": "unknown_tool", "message": EVIL},
            {"step": "tool", "name": "Match", "arguments": pair, "values": {"matches": [[[10, 10], [20, 30]]]}},
            {
                "step": "tool",
                "name": "Crop",
                "arguments": {"image": "image-0", "bbox": [0, 0, 0.5, 0.5]},
                "values": {"image": "image-2", "rect_px": [0, 0, 29, 19], "object": EVIL},
                "images": ["image-2"],
            },
            {"step": "core", "role": "last", "text": ""},
        ],
        "failures": {EVIL: 1},
        "answer": EVIL,
    }


def test_nothing_of_a_trace_becomes_markup(tmp_path: Path, open_page: OpenPage) -> None:
    page = make_trace_page(make_trace(), {f"image-{k}": IMAGE for k in range(3)}, EVIL)
    assert "<script" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    path = tmp_path / "page.html"
    path.write_text(page)
    for width in (360, 1200):
        seen = open_page(path.as_uri(), width)
        assert seen.errors == []
        assert seen.foreign == []
        assert seen.overflow_px() == 0
        assert seen.page.locator("svg.drawing").count() == 2
        assert seen.page.locator("section.step").count() == 7


def test_images_may_be_addresses_and_may_be_missing() -> None:
    page = make_trace_page(make_trace(), {"image-0": '../media/a.jpg"onload="x'})
    assert re.search(r'href="\.\./media/a\.jpg&#34;onload', page)
    assert "base64" not in page
    assert make_trace_page({}, {})


@pytest.mark.parametrize(
    ("arguments", "values", "marks"),
    [
        ({"bbox": [0, 0, 0.5, 0.5]}, {}, [TraceMark("box", 0, (0, 0, 30, 20))]),
        ({"bbox": [0, 0, 1, 1]}, {"rect_px": [1, 2, 3, 4]}, [TraceMark("box", 0, (1, 2, 3, 4))]),
        ({}, {"results": [{"object": "cat", "bbox": [1, 2, 3, 4]}]}, [TraceMark("box", 0, (1, 2, 3, 4), "cat")]),
        ({}, {"matches": [[[1, 2], [3, 4]]]}, [TraceMark("match", 0, (1, 2, 3, 4))]),
        ({"points": [[1, 2], [3, 4]]}, {}, [TraceMark("point", 0, (1, 2), "1"), TraceMark("point", 0, (3, 4), "2")]),
        (
            {"point": [1, 2]},
            {"tracks": [{"point": [5, 6]}]},
            [TraceMark("point", 0, (1, 2)), TraceMark("point", 0, (5, 6))],
        ),
        ({}, {"point_second": [5, 6]}, [TraceMark("point", 1, (5, 6))]),
        ({}, {"segment": [[1, 2], [3, 4]]}, [TraceMark("segment", 1, (1, 2, 3, 4))]),
        ({}, {"point": [10**400, 2], "segment": [[1, 2], [-(10**400), 4]], "box": [float("inf")] * 4}, []),
        ({}, {"point": [1e9, 2], "points": [True, 2], "bbox": ["a", 1, 2, 3], "rect_px": [float("nan")] * 4}, []),
    ],
)
def test_marks_are_found_by_the_names_of_fields(arguments: Any, values: Any, marks: list[TraceMark]) -> None:
    assert find_marks(arguments, values, SIZES) == marks


def test_marks_are_bounded() -> None:
    assert len(find_marks({}, {"points": [[1, 2]] * 10_000}, SIZES)) == MAX_MARKS
    deep: Any = [1, 2]
    for _ in range(500):
        deep = [deep]
    assert find_marks({}, {"points": deep}, SIZES) == []
    assert find_marks({}, {"points": [[1, 2]]}, []) == []


@pytest.mark.parametrize("size", [[10**400, 1], [1, -1], [0, 0], "ab", [1.5, 2], None])
def test_an_image_without_a_size_is_left_out(size: object) -> None:
    trace = make_trace()
    trace["images"][0]["size_px"] = size
    assert "</html>" in make_trace_page(trace, {"image-0": "a.jpg", "image-1": "b.jpg"})


@pytest.mark.parametrize("given", [7, True, {"a": 1}, None, [1, None]])
def test_a_call_with_something_else_than_an_image_is_shown(given: object) -> None:
    trace = make_trace()
    step = next(step for step in trace["steps"] if step["step"] == "tool")
    step["arguments"]["image"] = given
    assert "</html>" in make_trace_page(trace, {})
