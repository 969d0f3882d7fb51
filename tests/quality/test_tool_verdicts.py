"""What a tool gave is held against the row: right within half the margin, wrong beyond it; failures are counted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.agent.planner import WITHOUT_TOOL
from tests.quality.conftest import Rows
from tests.quality.test_revealed import ask, call, rects
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.agent_traces import (
    BELIEVED,
    IGNORED,
    NO_TOOL,
    NOT_JUDGED,
    TRACED,
    find_failures,
    judge_calls,
)
from vgbench_gen.evaluation.background import reveal_shown
from vgbench_gen.evaluation.tool_verdicts import judge_step, reveal_traced
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import RowEvidence

PAIR = {"image": ["image-0", "image-1"]}
Spoil = Callable[[dict[str, Any], float], None]


def scale(name: str) -> Spoil:
    def spoil(values: dict[str, Any], share: float) -> None:
        values[name] = (np.array(values[name]) * 1.25**share).tolist()

    return spoil


def turn(values: dict[str, Any], share: float) -> None:
    """About the vertical axis, by a share of the smallest margin that a task has between rotations."""
    angle = np.radians(8.0 * share)
    R = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    values["rotation"] = (R @ np.array(values["rotation"])).tolist()


def shift(values: dict[str, Any], share: float) -> None:
    values["homography_matrix"][0][2] += 0.06 * share * 180


def move(values: dict[str, Any], share: float) -> None:
    values["tracks"][0]["point"][0] += 0.06 * share * 400


def deepen(values: dict[str, Any], share: float) -> None:
    for one in values["results"]:
        one["depth"] *= 1.2**share


def use_tool(item: Item) -> tuple[dict[str, Any], Spoil]:
    """(a step with what the right tool gives, what makes it wrong by a share of the margin)."""
    image, boxes = {"image": "image-0"}, {"image": "image-0", "bboxes": rects(item)}
    points = [op["uv"] for op in RowEvidence.of(item).pictures[0]["ops"] if op["op"] == "point"]
    by_task: dict[str, tuple[str, dict[str, Any], Spoil]] = {
        "metric_depth": ("OracleRegionDepth", boxes, scale("depths")),
        "relative_depth": ("OracleRegionDepth", boxes, scale("depths")),
        "depth_order": ("OracleRegionDepth", boxes, scale("depths")),
        "object_location": ("OracleObjectGeometry", boxes, deepen),
        "object_distance": ("OracleObjectGeometry", boxes, deepen),
        "size_comparison": ("OracleObjectGeometry", boxes, deepen),
        "object_size": ("OracleObjectGeometry", boxes, deepen),
        "object_gap": ("OracleObjectGeometry", boxes, deepen),
        "height_comparison": ("OracleObjectGeometry", boxes, deepen),
        "orthographic_view": ("OracleObjectGeometry", boxes, deepen),
        "box_match": ("OracleRelativePose", PAIR, turn),
        "camera_parameters": ("OracleCameraParameters", image, scale("intrinsic")),
        "relative_pose": ("OracleRelativePose", PAIR, turn),
        "view_after_motion": ("OracleRelativePose", PAIR, turn),
        "camera_motion_words": ("OracleRelativePose", PAIR, turn),
        "camera_turn_angle": ("OracleRelativePose", PAIR, turn),
        "camera_from_camera": ("OracleRelativePose", PAIR, turn),
        "homography_to_matrix": ("OracleHomographyMatrix", PAIR, shift),
        "homography_to_image": ("OracleHomographyMatrix", PAIR, shift),
        "point_tracking": ("OracleTrackPoint", {**PAIR, "point": points[0] if points else None}, move),
    }
    name, arguments, spoil = by_task[item.task]
    values = call(name, reveal_shown(ask(item)), **arguments)
    return {"step": "tool", "name": name, "arguments": arguments, "values": values}, spoil


def make_trace(item: Item, *steps: dict[str, Any], **failures: int) -> dict[str, Any]:
    images = [{"name": f"image-{k}", "digest": name.partition(".")[0]} for k, name in enumerate(item.images)]
    return {"images": images, "steps": list(steps), "failures": failures}


def explain(trace: dict[str, Any], is_right: bool, item: Item | None) -> dict[str, int]:
    return find_failures(trace, is_right, judge_calls(trace, item))


@pytest.mark.parametrize("task", [name for name in tasks.names() if name not in WITHOUT_TOOL])
def test_results_are_right_within_half_the_margin_and_wrong_beyond_it(all_rows: Rows, task: str) -> None:
    items = [item for item in all_rows.items if item.task == task][:6]
    assert items
    for item in items:
        step, spoil = use_tool(item)
        trace = make_trace(item, step)
        revealed = reveal_traced(item, trace)
        assert revealed is not None
        assert judge_step(step, revealed) is True, item.id
        wrong = copy.deepcopy(step)
        spoil(wrong["values"], 2.5)
        assert judge_step(wrong, revealed) is False, item.id
        assert explain(make_trace(item, step), False, item) == {IGNORED: 1}
        assert explain(make_trace(item, step, wrong), False, item) == {BELIEVED: 1}  # the last one counts
        assert explain(make_trace(item, wrong), True, item) == {}
        nearly = copy.deepcopy(step)
        spoil(nearly["values"], 0.2)
        assert judge_step(nearly, revealed) is True, item.id


def test_images_are_known_by_their_digests_in_whatever_order(all_rows: Rows) -> None:
    item = all_rows.one("homography_to_image", "multi-choice")
    step, _ = use_tool(item)
    trace = make_trace(item, step)
    trace["images"].insert(1, {"name": "image-1", "digest": "0" * 32})
    revealed = reveal_traced(item, trace)
    assert revealed is not None
    assert judge_step(step, revealed) is None
    moved = step | {"arguments": {"image": ["image-0", "image-2"]}}
    assert judge_step(moved, revealed) is True


@pytest.mark.parametrize(
    "step",
    [
        {"step": "core", "text": "depths"},
        {"step": "tool", "arguments": {"image": 3}, "values": {"depths": ["x"]}},
        {"step": "tool", "arguments": {"image": "image-0", "bboxes": [[1]]}, "values": {"depths": [1], "results": 3}},
        {"step": "tool", "arguments": {"image": ["image-x"]}, "values": {"rotation": "x", "tracks": [None]}},
        {"step": "tool", "arguments": {}, "values": {"homography_matrix": [[1e999] * 3] * 3, "intrinsic": {}}},
        {"step": "tool", "arguments": {"image": "image-0"}, "values": {"translation_direction": None}},
    ],
)
def test_what_cannot_be_judged_is_said_so(all_rows: Rows, step: dict[str, Any]) -> None:
    item = all_rows.one("metric_depth", "multi-choice")
    revealed = reveal_traced(item, make_trace(item))
    assert revealed is not None
    assert judge_step(step, revealed) is None
    explained = explain(make_trace(item, step), False, item)
    assert explained == {NOT_JUDGED if step["step"] == "tool" else NO_TOOL: 1}


def test_every_kind_is_counted_and_no_wrong_answer_is_lost(all_rows: Rows) -> None:
    item = all_rows.one("metric_depth", "multi-choice")
    step, spoil = use_tool(item)
    wrong = copy.deepcopy(step)
    spoil(wrong["values"], 2.5)
    traces = [
        make_trace(item, step),
        make_trace(item, wrong),
        make_trace(item),
        make_trace(item, {**step, "values": {"x": 1}}),
    ]
    traces += [make_trace(item, step, **{kind: 2}) for kind in TRACED]
    found = [explain(trace, k >= 4, item) for k, trace in enumerate(traces)]
    assert found[:4] == [{IGNORED: 1}, {BELIEVED: 1}, {NO_TOOL: 1}, {NOT_JUDGED: 1}]
    assert found[4:] == [{kind: 2} for kind in TRACED]
    unknown = [explain(trace, k >= 4, None) for k, trace in enumerate(traces)]
    assert unknown == [{NOT_JUDGED: 1}, {NOT_JUDGED: 1}, {NO_TOOL: 1}, {NOT_JUDGED: 1}, *found[4:]]
