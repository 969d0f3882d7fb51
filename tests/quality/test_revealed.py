"""What a row reveals suffices for its answer, by the tools alone, and says nothing of which option is right."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.agent.planner import (
    HEIGHTS,
    LENGTHS,
    MOTION_WORDS,
    WITHOUT_TOOL,
    compare_heights,
    find_match,
    lay_out,
    measure_length,
    name_motion,
    plan_with_oracle,
    sort_rects,
)
from tests.quality.conftest import Rows
from vgbench_gen.agent.tool import ToolError, ToolInput, tools
from vgbench_gen.agent.tools.oracle import plan_calls
from vgbench_gen.backends.base import Background
from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.core.types import ALPHABET, FloatArray, Item
from vgbench_gen.evaluation.background import reveal_item, reveal_shown, tell_background
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import Asked, make_asked
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.depth_order import rate_orders
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact


def ask(item: Item, rotation: int = 0, **options: Any) -> Asked:
    given = AskOptions(**options)
    return make_asked(item, given.settings(""), given, rotation, other=options.pop("other", None))


def call(name: str, evidence: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    tool = tools[name]
    return dict(
        tool.run(ToolInput(tool.Arguments.model_validate_json(json.dumps(arguments)), (), evidence=evidence)).values
    )


def rects(item: Item) -> list[list[int]]:
    """The rectangles that the question draws, as its words name them."""
    ops = [op for picture in RowEvidence.of(item).pictures for op in picture["ops"] if op["op"] == "region"]
    return [op["rect"] for op in ops]


def estimate(item: Item, evidence: dict[str, Any], images: int) -> list[FloatArray]:
    """The answer in the task's own space, or one per image that is an option, from tools and what the question says."""
    pair = {"image": ("image-0", "image-1")}
    others = [{"image": ("image-0", f"image-{k}")} for k in range(1, images)]
    if item.task == "metric_depth":
        return [np.array(call("OracleRegionDepth", evidence, image="image-0", bboxes=rects(item))["depths"])]
    if item.task == "object_location":
        (found,) = call("OracleObjectGeometry", evidence, image="image-0", bboxes=rects(item))["results"]
        return [np.array(found["corners_m"])]
    if item.task in LENGTHS:
        found = call("OracleObjectGeometry", evidence, image="image-0", bboxes=rects(item))["results"]
        return [measure_length(item.task, found)]
    if item.task in HEIGHTS:
        found = call("OracleObjectGeometry", evidence, image="image-0", bboxes=rects(item))["results"]
        return [compare_heights(item.task, found)]
    if item.task == "orthographic_view":
        found = call("OracleObjectGeometry", evidence, image="image-0", bboxes=rects(item))["results"]
        return [lay_out(found, np.array(item.answer_value).reshape(item.answer_shape))]
    if item.task == "box_match":
        drawn = rects(item)
        tool = "OracleObjectGeometry"
        objects = [call(tool, evidence, image=f"image-{k}", bboxes=b) for k, b in enumerate((drawn[:1], drawn[1:]))]
        return [np.array([find_match([*objects, call("OracleRelativePose", evidence, **pair)])])]
    if item.task == "camera_parameters":
        told = call("OracleCameraParameters", evidence, image="image-0")
        ((fx, _, cx), (_, fy, cy), _) = told["intrinsic"]
        known = {"fx": fx, "fy": fy, "cx": cx, "cy": cy, "hfov": told["hfov_deg"], "vfov": told["vfov_deg"]}
        return [np.array([known[item.ask]])]
    if item.task in MOTION_WORDS:
        return [name_motion(item, call("OracleRelativePose", evidence, **pair))]
    if item.task == "relative_pose":
        told = call("OracleRelativePose", evidence, **pair)
        return [np.column_stack([told["rotation"], told["translation_m"]])]
    if item.task == "homography_to_matrix":
        return [np.array(call("OracleHomographyMatrix", evidence, **pair)["homography_matrix"])]
    if item.task == "point_tracking":
        ops = [op for op in RowEvidence.of(item).pictures[0]["ops"] if op["op"] == "point"]
        return [np.array(call("OracleTrackPoint", evidence, **pair, point=ops[0]["uv"])["tracks"][0]["point"])]
    if item.task == "view_after_motion":
        poses = [call("OracleRelativePose", evidence, **one) for one in others]
        return [np.column_stack([one["rotation"], one["translation_m"]]) for one in poses]
    if item.task == "homography_to_image":
        return [np.array(call("OracleHomographyMatrix", evidence, **one)["homography_matrix"]) for one in others]
    depths = call("OracleRegionDepth", evidence, image="image-0", bboxes=rects(item), mode="median")["depths"]
    if item.task == "depth_order":
        return [np.array([float(np.argmax(rate_orders(np.array(depths))))])]
    place = int(np.argmax(depths) if item.ask == "deepest" else np.argmin(depths))
    shows = [record.show["rect"] for record in RowEvidence.of(item).options]
    return [np.array([float(shows.index(rects(item)[place]))])]


def choose(item: Item, found: list[FloatArray]) -> str:
    """The letter whose option fits best; where options are images, the one whose measured motion or matrix is asked."""
    task, fact, row = tasks[item.task], rebuild_fact(item), RowEvidence.of(item)
    if item.task == "box_match":
        rect = rects(item)[1 + int(found[0][0])]
        return ALPHABET[[record.show["rect"] for record in row.options].index(rect)]
    if item.task == "relative_depth":
        return ALPHABET[int(found[0][0])]
    if len(found) > 1:
        return ALPHABET[int(np.argmin([task.metric(one, row.truth.value, fact) for one in found]))]
    return ALPHABET[int(np.argmin([task.metric(found[0], option.value, fact) for option in row.options]))]


def test_oracle_tools_suffice_for_every_task(all_rows: Rows) -> None:
    asked: Counter[str] = Counter()
    for item in (item for item in all_rows.items if item.task not in WITHOUT_TOOL):
        evidence = reveal_shown(ask(item))
        found = estimate(item, evidence, len(item.images))
        if item.question_type == "multi-choice":
            asked[item.task] += 1
            assert choose(item, found) == item.answer, (item.task, item.id)
        elif item.question_type == "open-ended":
            assert found[0] == pytest.approx(np.array(item.answer_value), rel=0.02, abs=0.006)
    assert set(asked) == set(tasks.names()) - WITHOUT_TOOL


def test_calls_are_planned_for_all_that_a_question_is_about_and_in_an_order_that_tells_nothing(all_rows: Rows) -> None:
    planned: Counter[str] = Counter()
    for item in all_rows.items:
        evidence = Revealed.read(reveal_shown(ask(item)), "x")
        calls = [(tools[key].name, given) for key, given in plan_calls(evidence)]
        planned[item.task] += bool(calls)
        assert all(given["bboxes"] == sorted(given["bboxes"]) for _, given in calls if "bboxes" in given)
        assert calls == sort_rects(plan_with_oracle(item)), item.task
    assert {name for name, count in planned.items() if not count} == WITHOUT_TOOL & set(planned)


def test_both_halves_of_a_pair_of_claims_reveal_the_same(all_rows: Rows) -> None:
    halves: dict[str, set[str]] = {}
    for item in all_rows.items:
        if item.twin_id:
            halves.setdefault(item.twin_id, set()).add(format_canonical_json(reveal_shown(ask(item))))
    assert len(halves) > 5
    assert all(len(told) == 1 for told in halves.values())


def test_images_are_told_by_the_places_in_which_they_are_shown(all_rows: Rows) -> None:
    item = all_rows.one("homography_to_image", "multi-choice")
    plain, turned = (Revealed.read(reveal_shown(ask(item, rotation)), "x") for rotation in (0, 1))
    first, second = ({one.second: one.H.tolist() for one in told.homographies} for told in (plain, turned))
    assert [second[k] for k in (1, 2, 3, 4)] == [first[k] for k in (2, 3, 4, 1)]
    assert reveal_shown(ask(item, first_image=True))["homographies"] == []
    assert reveal_shown(ask(item, blind=True)) == {}
    assert tell_background(ask(item), reads_evidence=False) == Background(item.benchmark)


def test_nothing_is_told_of_other_questions_and_other_rectangles(all_rows: Rows) -> None:
    item = all_rows.one("metric_depth", "multi-choice")
    other = next(one for one in all_rows.items if one.task == item.task and one.id != item.id)
    given = AskOptions(wrong_images=True)
    assert reveal_shown(make_asked(item, given.settings(""), given, other=other)) == {}
    with pytest.raises(ToolError, match="tells nothing"):
        call("OracleRegionDepth", reveal_shown(ask(item)), image="image-0", bboxes=[[0, 0, 9, 9]])
    with pytest.raises(ToolError, match="tells nothing"):
        call("OracleCameraParameters", {}, image="image-0")
    assert call("OracleRelativePose", {}, image=("image-0", "image-1"))["rotation"] is None


def test_pairs_are_told_both_ways(all_rows: Rows) -> None:
    item = all_rows.one("relative_pose", "multi-choice")
    evidence = reveal_shown(ask(item))
    there, back = (call("OracleRelativePose", evidence, image=pair) for pair in _both())
    assert np.array(there["rotation"]) @ np.array(back["rotation"]) == pytest.approx(np.eye(3), abs=1e-4)
    moved = np.array(there["rotation"]) @ np.array(back["translation_m"]) + np.array(there["translation_m"])
    assert moved == pytest.approx(np.zeros(3), abs=1e-3)
    warp = reveal_shown(ask(all_rows.one("homography_to_matrix", "multi-choice")))
    H, inverse = (np.array(call("OracleHomographyMatrix", warp, image=pair)["homography_matrix"]) for pair in _both())
    product = H @ inverse
    assert product / product[2, 2] == pytest.approx(np.eye(3), abs=1e-3)


def _both() -> tuple[tuple[str, str], tuple[str, str]]:
    return ("image-0", "image-1"), ("image-1", "image-0")


def test_rows_that_tell_nothing_reveal_nothing(all_rows: Rows) -> None:

    item = dataclasses.replace(all_rows.items[0], evidence={})
    assert reveal_item(item) is None
    assert reveal_shown(ask(item)) == {}
