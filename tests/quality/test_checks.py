"""Rows whose evidence contradicts itself, one defect at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.quality.conftest import Rows
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Item
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.quality.checks import find_consistency_problems
from vgbench_gen.quality.verify import verify_item
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import rebuild_fact
from vgbench_gen.tasks.scalar import ScalarTask

Change = Callable[[dict[str, Any]], None]
DEGREE = Rotation.from_rotvec([0.0, np.radians(1.0), 0.0]).as_matrix()


def found(item: Item, change: Change | None = None) -> set[str]:
    """Names of the checks that the row fails after a change of its evidence."""
    evidence = copy.deepcopy(dict(item.evidence))
    if change is not None:
        change(evidence)
    row = replace(item, evidence=evidence)
    return {
        check for check, _ in find_consistency_problems(row, rebuild_fact(row), tasks[item.task].with_gates(Gates()))
    }


def of(rows: Rows, task: str, form: str = "multi-choice", side: str = "") -> list[Item]:
    items = [i for i in rows.items if (i.task, i.question_type, i.evidence["side"]) == (task, form, side)]
    assert items, (task, form, side)
    return items


def in_options(change: Change) -> list[Change]:
    """The change made to each of four options in turn, decoys included."""

    def at(place: int) -> Change:
        return lambda evidence: change(evidence["options"][place])

    return [at(place) for place in range(4)]


def test_rows_of_every_task_form_and_side_have_no_problems(all_rows: Rows) -> None:
    assert {(i.task, i.question_type) for i in all_rows.items} == {(n, f) for n in tasks for f in tasks[n].formats}
    assert {i.task for i in all_rows.items if i.evidence["side"]} >= {"homography_to_matrix", "relative_pose"}
    for item in all_rows.items:
        assert verify_item(item, all_rows.images(item), Gates()) == [], (item.task, item.question_type)


@pytest.mark.parametrize("task", [name for name in tasks.names() if isinstance(tasks[name], ScalarTask)])
def test_an_answer_without_what_it_was_measured_from_is_not_taken_for_true(all_rows: Rows, task: str) -> None:
    for form in tasks[task].formats:
        item = of(all_rows, task, form)[0]
        evidence = copy.deepcopy(dict(item.evidence))
        truth = evidence["truth"]
        for record in (truth, *(option for option in evidence["options"] if option["key"] == truth["key"])):
            record["evidence"] = {}
            if task == "camera_parameters":
                del record["show"]["rect"]
        row = replace(item, evidence=evidence)
        with pytest.raises(DatasetError, match=r"evidence of the truth of .*found none"):
            tasks[task].recompute(rebuild_fact(row))
        assert verify_item(row, all_rows.images(item), Gates()), (task, form)


# --- points ----------------------------------------------------------------------------------------------------------


def test_a_track_with_the_poses_of_its_frames_exchanged(all_rows: Rows) -> None:
    def exchange(evidence: dict[str, Any]) -> None:
        stored = evidence["fact"]["world_from_camera"]
        a, b = stored
        stored[a], stored[b] = stored[b], stored[a]

    for form in ("multi-choice", "judgment"):
        assert "reprojection" in found(of(all_rows, "point_tracking", form)[0], exchange)


def shown(option: dict[str, Any]) -> bool:
    return option["show"].get("query") is not None


def nearer(option: dict[str, Any]) -> None:
    option["evidence"]["point_2_m"][2] *= 1.2
    if "z_1_m" in option["evidence"]:
        option["evidence"]["z_1_m"] *= 1.2


def aside(option: dict[str, Any]) -> None:
    option["value"] = [option["value"][0] + 3, option["value"][1]]


def point_elsewhere(option: dict[str, Any]) -> None:
    option["evidence"]["point_2_m"][0] += 0.05


def test_every_option_of_a_track_lies_where_its_point_is_seen(all_rows: Rows) -> None:
    for item in of(all_rows, "point_tracking"):
        for place, option in enumerate(item.evidence["options"]):
            for change in (aside, point_elsewhere, *([nearer] if shown(option) else [])):
                assert "reprojection" in found(item, in_options(change)[place]), (change, option["key"])


def test_a_track_that_does_not_lead_back(all_rows: Rows) -> None:
    def elsewhere(option: dict[str, Any]) -> None:
        option["evidence"]["uv_2_px"][1] += 4

    def measured(option: dict[str, Any]) -> None:
        option["evidence"]["cycle_px_at_640"] = 1.2

    item = of(all_rows, "point_tracking")[0]
    for place, option in enumerate(item.evidence["options"]):
        if shown(option):
            assert found(item, in_options(elsewhere)[place]) == {"cycle"}
            assert found(item, in_options(measured)[place]) == {"cycle"}


# --- motions ---------------------------------------------------------------------------------------------------------


def test_a_motion_printed_the_wrong_way_round(all_rows: Rows) -> None:
    def inverse(option: dict[str, Any]) -> None:
        R, t = np.array(option["value"])[:, :3], np.array(option["value"])[:, 3]
        option["value"] = np.column_stack([R.T, -R.T @ t]).tolist()

    for task in ("relative_pose", "view_after_motion"):
        for change in in_options(inverse):
            assert found(of(all_rows, task)[0], change) == {"pose_inverse"}, task


def test_a_motion_that_is_not_the_one_between_its_frames(all_rows: Rows) -> None:
    def turned(option: dict[str, Any]) -> None:
        frame_id = option["frame_ids"][-1]
        pose = np.array(option["evidence"]["world_from_camera"][frame_id]).reshape(4, 4)
        option["evidence"]["world_from_camera"][frame_id] = (pose @ make_pose(DEGREE, np.zeros(3))).ravel().tolist()

    def shifted(option: dict[str, Any]) -> None:
        option["value"][1][3] += 0.02

    def skewed(option: dict[str, Any]) -> None:
        option["value"][0][1] += 0.006

    for task in ("relative_pose", "view_after_motion"):
        for change in (turned, shifted, skewed):
            for at in in_options(change):
                assert found(of(all_rows, task)[0], at) == {"pose_inverse"}, (task, change)


# --- warps -----------------------------------------------------------------------------------------------------------


def test_a_matrix_that_does_not_go_with_its_corners(all_rows: Rows) -> None:
    def transposed(option: dict[str, Any]) -> None:
        H = np.array(option["value"]).T
        option["value"] = (H / H[2, 2]).tolist()

    def inverted(option: dict[str, Any]) -> None:
        H = np.linalg.inv(np.array(option["value"]))
        option["value"] = (H / H[2, 2]).tolist()

    def corner(option: dict[str, Any]) -> None:
        option["evidence"]["corners_px"][2][0] += 2

    sides = [("homography_to_image", ""), ("homography_to_matrix", ""), ("homography_to_matrix", "inverse")]
    for task, side in sides:
        for change in (transposed, inverted, corner):
            for at in in_options(change):
                assert found(of(all_rows, task, side=side)[0], at) == {"warp_inverse"}, (task, side, change)


def test_a_warp_that_the_frame_does_not_fill(all_rows: Rows) -> None:
    """Neither by the numbers of an option nor by what the row says that its images draw."""

    def cut_elsewhere(evidence: dict[str, Any]) -> None:
        evidence["fact"]["crop"][0] -= 1000

    def other_frame(evidence: dict[str, Any]) -> None:
        evidence["fact"]["frame_size"][0] += 1

    def out_of_frame(evidence: dict[str, Any]) -> None:
        evidence["fact"]["crop"][0] = evidence["fact"]["frame_size"][0] - evidence["fact"]["crop"][2] + 1

    def drawn_elsewhere(evidence: dict[str, Any]) -> None:
        op = next(op for picture in evidence["pictures"] for op in picture["ops"] if op["op"] == "warp")
        op["rect"][0] = 1000

    for task in ("homography_to_image", "homography_to_matrix"):
        for item in of(all_rows, task)[:2]:
            assert found(item, cut_elsewhere) == {"crop", "warp_filled"}
            assert found(item, other_frame) == {"crop"}
            assert "crop" in found(item, out_of_frame)
            assert found(item, drawn_elsewhere) == {"outside"}


# --- boxes -----------------------------------------------------------------------------------------------------------


def box(evidence: dict[str, Any], task: str) -> tuple[list[list[float]], list[int]]:
    """Stored corners and drawn rectangle of the object, or of the second of two."""
    (record,) = [option for option in evidence["options"] if option["key"] == evidence["truth"]["key"]]
    if task == "object_location":
        return record["evidence"]["corners_m"], record["show"]["rect"]
    return record["evidence"]["b"]["corners_m"], record["show"]["rect_b"]


@pytest.mark.parametrize("task", ["object_location", "object_distance"])
def test_a_box_that_is_none_or_lies_beside_its_rectangle(task: str, all_rows: Rows) -> None:
    def bent(evidence: dict[str, Any]) -> None:
        box(evidence, task)[0][5][1] += 0.006

    def moved(evidence: dict[str, Any]) -> None:
        corners = box(evidence, task)[0]
        width = np.ptp(np.array(corners)[:, 0])
        for corner in corners:
            corner[0] += 0.15 * width

    def drawn_elsewhere(evidence: dict[str, Any]) -> None:
        rect = box(evidence, task)[1]
        rect[1] += (rect[3] - rect[1]) // 5

    for form in tasks[task].formats:
        for item in of(all_rows, task, form):
            assert found(item, bent) == {"cuboid"}
            assert found(item, moved) == {"drawn_box"}
            assert found(item, drawn_elsewhere) == {"drawn_box"}


# --- regions and crops -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["metric_depth", "relative_depth"])
def test_a_region_whose_statistics_do_not_agree(all_rows: Rows, task: str) -> None:
    def parts(option: dict[str, Any]) -> None:
        option["evidence"]["blocks"][0][0] += 0.5

    def order(option: dict[str, Any]) -> None:
        option["evidence"]["quantiles_m"][:2] = option["evidence"]["quantiles_m"][1::-1]

    def mean(option: dict[str, Any]) -> None:
        option["evidence"]["blocks"] = [[depth + 0.4, known] for depth, known in option["evidence"]["blocks"]]
        option["evidence"]["mean_m"] += 0.4

    def value(option: dict[str, Any]) -> None:
        option["value"] = [option["value"][0] + 0.3]

    for item in of(all_rows, task):
        for change in (parts, order, mean, value):
            assert all("region" in found(item, one) for one in in_options(change)), change


def test_a_crop_with_the_camera_of_another(all_rows: Rows) -> None:
    def stored(option: dict[str, Any]) -> None:
        option["evidence"]["cy"] += 0.1

    def moved(option: dict[str, Any]) -> None:
        option["show"]["rect"][2] += 2

    def value(option: dict[str, Any]) -> None:
        option["value"] = [option["value"][0] + 2]  # a half may be rounded either way

    for item in of(all_rows, "camera_parameters"):
        for change in (stored, moved, value):
            assert all("crop" in found(item, one) for one in in_options(change)), change


# --- marks and claims ------------------------------------------------------------------------------------------------


def test_marks_and_crops_beyond_the_image(all_rows: Rows) -> None:
    def region(evidence: dict[str, Any]) -> None:
        evidence["pictures"][0]["ops"][-1]["rect"][2] = 320

    def point(evidence: dict[str, Any]) -> None:
        evidence["pictures"][1]["ops"][0]["uv"][1] = 240

    def crop(evidence: dict[str, Any]) -> None:
        op = next(op for op in evidence["pictures"][0]["ops"] if op["op"] == "crop_resize")
        op["rect"][0] = 321 - op["rect"][2]

    for task, change in (("metric_depth", region), ("point_tracking", point), ("camera_parameters", crop)):
        item = of(all_rows, task)[0]
        assert item.evidence["cameras"][item.frame_ids[0]]["width"] == 320
        assert found(item, change) == {"outside"}


def test_a_claim_whose_text_states_another_tolerance(all_rows: Rows) -> None:
    said = {"metric_depth": ("10 percent", "20 percent"), "relative_pose": ("0.10 meters", "0.20 meters")}
    said |= {"object_distance": ("20 percent", "10 percent")}
    for task, (stated, other) in said.items():
        item = of(all_rows, task, "judgment")[0]
        assert stated in item.question
        assert found(replace(item, question=item.question.replace(stated, other))) == {"tolerance"}
        assert found(replace(item, tolerance=0.15)) == {"tolerance"}
    item = of(all_rows, "relative_pose", "judgment")[0]
    assert found(replace(item, question=item.question.replace("5 degrees", "8 degrees"))) == {"tolerance"}
    centres = [i for i in of(all_rows, "camera_parameters", "judgment") if i.ask in ("cx", "cy")]
    assert centres
    for item in centres:
        assert f"{item.tolerance:.0f} pixels" in item.question
        assert found(replace(item, tolerance=item.tolerance + 1)) == {"tolerance"}


def test_a_pose_claimed_beyond_or_within_the_stated_tolerance(all_rows: Rows) -> None:
    for item in of(all_rows, "relative_pose", "judgment"):
        holds = item.evidence["claim"]["holds"]

        def claimed(evidence: dict[str, Any], degrees: float = 5.3 if holds else 4.7) -> None:
            truth = np.array(evidence["truth"]["value"])
            truth[:, :3] = Rotation.from_rotvec([np.radians(degrees), 0, 0]).as_matrix() @ truth[:, :3]
            evidence["claim"]["value"] = truth.tolist()

        assert found(item, claimed) == {"tolerance"}
