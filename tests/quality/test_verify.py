from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.quality.conftest import NAMES, Rows, compose_rows
from tests.scene_factory import RoomScene
from tests.small_room import small_room, stored
from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Item
from vgbench_gen.quality.verify import VerifyJob, group_by_scene, plan_rows, verify_item, verify_scene, verify_set
from vgbench_gen.scenes import base
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.store.drawing import COLORS, CROSSHAIR, SHAPES
from vgbench_gen.tasks.row_evidence import rebuild_fact
from vgbench_gen.text.marks import name_mark

GATES = Gates()
Change = Callable[[dict[str, Any]], None]

JUNK: tuple[object, ...] = (None, [], "text", {"a": 1})


def checks(rows: Rows, item: Item, images: list[bytes] | None = None) -> set[str]:
    return {p.check for p in verify_item(item, rows.images(item) if images is None else images, GATES)}


def tampered(item: Item, change: Change) -> Item:
    evidence = copy.deepcopy(dict(item.evidence))
    change(evidence)
    return replace(item, evidence=evidence)


def test_rows_as_made_have_no_problems(rows: Rows) -> None:
    assert {item.task for item in rows.items} == set(NAMES)
    for item in rows.items:
        assert verify_item(item, rows.images(item), GATES) == []
    assert verify_set(rows.items) == []


def test_ids_change_with_the_distractor_seed_and_groups_do_not(rows: Rows, tmp_path: Path) -> None:
    again = compose_rows(tmp_path / "a")
    assert [item.id for item in again.items] == [item.id for item in rows.items]
    other = compose_rows(tmp_path / "b", distractor_seed=1)

    def by_place(items: Iterable[Item]) -> dict[tuple[str, ...], Item]:
        return {(i.group_id, i.question_type, i.twin_id and i.answer, i.evidence["side"]): i for i in items}

    before, after = by_place(rows.items), by_place(other.items)
    both = before.keys() & after.keys()
    assert len(both) >= 0.9 * len(before)  # not all: two facts may draw one option set under one seed alone
    for place in both:
        a, b = before[place], after[place]
        assert (a.id == b.id) == (a.question_type != "multi-choice")
        assert a.answer_value == b.answer_value


# --- the answer ----------------------------------------------------------------------------------------------------


def test_another_answer_value(rows: Rows) -> None:
    for form in ("judgment", "multi-choice", "open-ended"):
        item = rows.one("metric_depth", form)
        off = replace(item, answer_value=(item.answer_value[0] + 0.01,))
        assert "answer_value" in checks(rows, off)


def test_another_letter(rows: Rows) -> None:
    for task in NAMES:
        item = rows.one(task, "multi-choice")
        other = "ABCD"[("ABCD".index(item.answer) + 1) % 4]
        assert "answer_value" in checks(rows, replace(item, answer=other)), task
        assert checks(rows, replace(item, answer="E")) == {"evidence"}


def test_another_open_answer(rows: Rows) -> None:
    item = rows.one("metric_depth", "open-ended")
    assert checks(rows, replace(item, answer="9.99 meters")) == {"answer"}


def test_a_value_that_was_never_printed(rows: Rows) -> None:
    item = rows.one("metric_depth", "open-ended")
    value = item.answer_value[0] + 0.001

    def change(evidence: dict[str, Any]) -> None:
        evidence["truth"]["value"] = evidence["options"][0]["value"] = [value]

    assert "answer_value" in checks(rows, tampered(replace(item, answer_value=(value,)), change))


def test_measurements_that_give_another_answer(rows: Rows) -> None:
    def shift_blocks(evidence: dict[str, Any]) -> None:
        for block in evidence["truth"]["evidence"]["blocks"]:
            block[0] += 0.3

    def shift_corner(evidence: dict[str, Any]) -> None:
        evidence["truth"]["evidence"]["corners_px"][0][0] += 20

    def swap_order(evidence: dict[str, Any]) -> None:
        for option in evidence["options"]:
            option["evidence"]["quantiles_m"] = [q * 2 for q in option["evidence"]["quantiles_m"]]

    for task, change in (
        ("metric_depth", shift_blocks),
        ("homography_to_matrix", shift_corner),
        ("relative_depth", swap_order),
    ):
        assert "recomputed" in checks(rows, tampered(rows.one(task, "multi-choice"), change)), task


def test_a_second_route_that_disagrees(rows: Rows) -> None:
    for task in NAMES:
        item = rows.one(task, "multi-choice")

        def change(evidence: dict[str, Any]) -> None:
            value = np.array(evidence["second_value"])
            value.ravel()[min(2, value.size - 1)] += 40
            evidence["second_value"] = value.tolist()

        assert "second_route" in checks(rows, tampered(item, change)), task


def test_a_stored_pose_that_is_not_rigid(rows: Rows) -> None:
    item = rows.one("point_tracking", "multi-choice")
    assert item.evidence["fact"]["world_from_camera"]

    def change(evidence: dict[str, Any]) -> None:
        pose = next(iter(evidence["fact"]["world_from_camera"].values()))
        pose[0] += 0.01

    assert "pose" in checks(rows, tampered(item, change))


def test_a_stored_pose_elsewhere_gives_another_answer(rows: Rows) -> None:
    item = rows.one("point_tracking", "multi-choice")

    def change(evidence: dict[str, Any]) -> None:
        pose = next(iter(evidence["fact"]["world_from_camera"].values()))
        pose[3] += 0.5

    assert "recomputed" in checks(rows, tampered(item, change))


# --- options -------------------------------------------------------------------------------------------------------


def swapped(item: Item) -> Item:
    """Two wrong options exchange their texts; letters, truth and evidence stay."""
    a, b = (i for i in range(4) if i != "ABCD".index(item.answer) and i != ("ABCD".index(item.answer) + 1) % 4)
    texts = list(item.options)
    texts[a], texts[b] = texts[b], texts[a]
    return replace(item, options=tuple(texts))


def test_swapped_option_texts(rows: Rows) -> None:
    for task in NAMES:
        assert checks(rows, swapped(rows.one(task, "multi-choice"))) == {"option_text"}, task


def test_swapped_pictures(rows: Rows) -> None:
    item = rows.one("homography_to_image", "multi-choice")

    def change(evidence: dict[str, Any]) -> None:
        evidence["pictures"][1], evidence["pictures"][2] = evidence["pictures"][2], evidence["pictures"][1]

    assert "option_text" in checks(rows, tampered(item, change))


def test_another_option_text(rows: Rows) -> None:
    item = rows.one("metric_depth", "multi-choice")
    texts = [text if i else "4.44 m" for i, text in enumerate(item.options)]
    assert checks(rows, replace(item, options=tuple(texts))) == {"option_text"}
    texts[0] = item.options[1]
    assert {"options", "option_text"} <= checks(rows, replace(item, options=tuple(texts)))
    texts[0] = "1.20 m or 1.30 m"
    assert "option_text" in checks(rows, replace(item, options=tuple(texts)))
    assert checks(rows, replace(item, options=item.options[:3])) == {"options"}


def test_a_broken_margin_between_decoys(rows: Rows) -> None:
    item = rows.one("metric_depth", "multi-choice")
    a, b = [i for i in range(4) if i != "ABCD".index(item.answer)][:2]
    value = item.evidence["options"][a]["value"][0] + 0.05

    def change(evidence: dict[str, Any]) -> None:
        evidence["options"][b]["value"] = [round(value, 2)]

    texts = list(item.options)
    texts[b] = f"{value:.2f} m"
    off = tampered(replace(item, options=tuple(texts)), change)
    assert "option_set" in checks(rows, off)
    assert "option_set" not in checks(rows, replace(off, difficulty="stress"))


def test_distractor_records_that_belong_to_other_options(rows: Rows) -> None:
    item = rows.one("metric_depth", "multi-choice")
    first, *rest = item.distractors
    assert checks(rows, replace(item, distractors=(replace(first, separation=first.separation + 1), *rest))) == {
        "distractors"
    }
    assert checks(rows, replace(item, distractors=(replace(first, key="region:0,0,1,1"), *rest))) == {"distractors"}
    assert checks(rows, replace(item, distractors=tuple(rest))) >= {"options"}


# --- claims --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["metric_depth", "point_tracking"])
def test_claim_polarity(rows: Rows, task: str) -> None:
    for item in (i for i in rows.items if (i.task, i.question_type) == (task, "judgment")):
        other = "No" if item.answer == "Yes" else "Yes"
        assert checks(rows, replace(item, answer=other)) == {"claim"}

        def change(evidence: dict[str, Any], holds: bool = other == "Yes") -> None:
            evidence["claim"]["holds"] = holds

        # A number that is claimed also says by the stated tolerance whether it is true; a point does not.
        expected = {"claim", "tolerance"} if task == "metric_depth" else {"claim"}
        assert checks(rows, tampered(replace(item, answer=other), change)) == expected


def test_a_true_claim_outside_its_tolerance(rows: Rows) -> None:
    item = next(i for i in rows.items if (i.task, i.answer) == ("metric_depth", "Yes"))
    said = item.evidence["claim"]["value"][0]
    value = round(item.answer_value[0] * 1.11, 2)

    def change(evidence: dict[str, Any]) -> None:
        evidence["claim"]["value"] = [value]

    off = replace(item, question=item.question.replace(f"{said:.2f}", f"{value:.2f}"))
    assert off.question != item.question
    assert checks(rows, tampered(off, change)) == {"claim", "tolerance"}


def test_a_claim_that_the_question_does_not_make(rows: Rows) -> None:
    item = rows.one("metric_depth", "judgment")
    said = f"{item.evidence['claim']['value'][0]:.2f}"
    assert checks(rows, replace(item, question=item.question.replace(said, "7.77"))) == {"claim_text"}
    item = rows.one("point_tracking", "judgment")
    named, other_name = sorted(list_mark_names(item), key=lambda name: name not in item.question)
    other = item.question.replace(named, other_name)
    assert other != item.question
    assert checks(rows, replace(item, question=other)) == {"claim_text"}


def list_mark_names(item: Item) -> list[str]:
    return [name_mark(op) for op in item.evidence["pictures"][1]["ops"]]


def test_a_mark_that_is_drawn_otherwise(rows: Rows) -> None:
    """Words, options and drawing must agree on colours and shapes."""
    item = rows.one("point_tracking", "multi-choice")

    def change(evidence: dict[str, Any], key: str, values: Sequence[str]) -> None:
        mark, *rest = evidence["pictures"][1]["ops"]
        mark[key] = next(value for value in values if all(value != op[key] for op in rest) and value != mark[key])

    for key, values in (("color", list(COLORS)), ("shape", [*SHAPES, CROSSHAIR])):
        assert "option_text" in checks(rows, tampered(item, partial(change, key=key, values=values)))
    wrong = replace(item, options=(item.options[1], item.options[0], *item.options[2:]))
    assert checks(rows, wrong) == {"option_text"}
    framed = rows.one("metric_depth", "open-ended")

    def paint(evidence: dict[str, Any]) -> None:
        (op,) = evidence["pictures"][0]["ops"]
        op["color"] = next(color for color in COLORS if color != op["color"])

    assert checks(rows, tampered(framed, paint)) == {"marks"}


# --- words and images ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "debris", [" {{ unit }}", " It is 1.23456789 m.", " -0.00 m.", " 1.2e-05", " the the", "  two spaces"]
)
def test_text_debris(rows: Rows, debris: str) -> None:
    item = rows.one("relative_depth", "multi-choice")
    assert "text" in checks(rows, replace(item, question=item.question + debris))
    assert "text" in checks(rows, replace(item, context=item.context + debris))


def test_a_convention_that_is_no_longer_said(rows: Rows) -> None:
    item = rows.one("metric_depth", "open-ended")
    assert "text" in checks(rows, replace(item, context=item.context.replace("optical axis", "axis")))
    assert checks(rows, replace(item, template_id="metric_depth.open-ended.99")) == {"text"}


def test_a_region_that_is_drawn_elsewhere(rows: Rows) -> None:
    item = rows.one("metric_depth", "open-ended")

    def change(evidence: dict[str, Any]) -> None:
        evidence["pictures"][0]["ops"][0]["rect"][0] += 3

    assert checks(rows, tampered(item, change)) == {"marks"}


def test_image_bytes(rows: Rows) -> None:
    item = rows.one("homography_to_matrix", "multi-choice")
    first, second = rows.images(item)
    assert checks(rows, item, [first, first]) == {"images"}
    assert checks(rows, item, [first]) == {"images"}
    assert checks(rows, item, [first, second[:-1] + b"\0"]) == {"images"}
    assert "evidence" in checks(rows, item, [first, b"no image"])


def test_a_camera_of_another_size(rows: Rows) -> None:
    item = rows.one("relative_depth", "multi-choice")

    def change(evidence: dict[str, Any]) -> None:
        next(iter(evidence["cameras"].values()))["width"] = 640

    assert checks(rows, tampered(item, change)) == {"images"}


def test_a_row_that_cannot_be_read_is_a_problem_of_that_row(rows: Rows) -> None:
    for task, form in (
        ("metric_depth", "judgment"),
        ("point_tracking", "multi-choice"),
        ("metric_depth", "open-ended"),
    ):
        item = rows.one(task, form)
        needed = {"truth", "options", "pictures", "cameras", "bases", "claim", "second_value", "margin"}
        for name in item.evidence:
            for junk in JUNK:

                def change(evidence: dict[str, Any], name: str = name, junk: object = junk) -> None:
                    evidence[name] = junk

                found = checks(rows, tampered(item, change))  # never raises
                assert found or name not in needed or junk is not None, (name, junk)
    assert checks(rows, replace(rows.items[0], task="no_such_task")) == {"evidence"}


# --- between rows --------------------------------------------------------------------------------------------------


def test_repeated_ids(rows: Rows) -> None:
    assert [p.check for p in verify_set([*rows.items, rows.items[0]])][:1] == ["repeated_id"]


def test_twins_are_one_true_and_one_false_claim_about_the_same(rows: Rows) -> None:
    pair = [i for i in rows.items if i.twin_id and i.twin_id == rows.one("metric_depth", "judgment").twin_id]
    assert sorted(i.answer for i in pair) == ["No", "Yes"]
    first, second = pair
    for broken in (
        [first],
        [first, replace(second, answer=first.answer)],
        [first, replace(second, images=("x.jpg",))],
        [first, replace(second, group_id="other")],
        [first, replace(second, context=second.context + " ")],
        [replace(first, twin_id=""), replace(second, twin_id="")],
        [first, second, replace(second, id="third")],
    ):
        assert [p.check for p in verify_set(broken)] == ["twins"]
    assert verify_set(pair) == []


# --- against the scan ----------------------------------------------------------------------------------------------


class OneRoom:
    """Stands in for the loaders: every scan is this room."""

    def __init__(self, scene: RoomScene) -> None:
        self.scene = scene

    def __getitem__(self, name: str) -> OneRoom:
        return self

    def open(self, ref: SceneRef) -> RoomScene:
        return self.scene


def raw_checks(monkeypatch: pytest.MonkeyPatch, items: list[Item], scene: RoomScene | None = None) -> set[str]:
    monkeypatch.setattr(base, "loaders", OneRoom(scene or small_room()))
    job = VerifyJob(SceneRef("ca1m", "room", Path()), tuple(items), GATES)
    return {p.check for p in verify_scene(job)}


def test_the_scan_gives_every_answer_again(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    assert raw_checks(monkeypatch, rows.items) == set()


@pytest.mark.parametrize("task", ["metric_depth", "point_tracking"])
def test_stored_camera_pose_and_pixels_are_compared_with_the_scan(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    item = rows.one(task, "multi-choice")

    def camera(evidence: dict[str, Any]) -> None:
        next(iter(evidence["cameras"].values()))["K"][0] += 1e-3

    def pixels(evidence: dict[str, Any]) -> None:
        frame_id = next(iter(evidence["bases"]))
        evidence["bases"][frame_id] = "0" * 32 + ".png"

    def pose(evidence: dict[str, Any]) -> None:
        next(iter(evidence["fact"]["world_from_camera"].values()))[3] += 1e-6

    assert "camera" in raw_checks(monkeypatch, [tampered(item, camera)])
    assert raw_checks(monkeypatch, [tampered(item, pixels)]) == {"pixels"}
    if task == "point_tracking":
        assert "pose" in raw_checks(monkeypatch, [tampered(item, pose)])


def test_a_scan_with_other_depth_or_pixels_is_noticed(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    item = rows.one("metric_depth", "open-ended")
    other = small_room()
    for frame in stored(other):
        frame.stored_depth_m = (frame.stored_depth_m * np.float32(1.2)).astype(np.float32)
    assert raw_checks(monkeypatch, [item], other) == {"raw_route"}
    other = small_room()
    for frame in stored(other):
        frame.stored_color = np.roll(frame.stored_color, 1, axis=1)
    assert raw_checks(monkeypatch, [item], other) == {"pixels"}


def test_a_missing_frame_or_scan_is_said(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    item = rows.one("metric_depth", "open-ended")
    empty = small_room()
    empty.frames = []
    assert raw_checks(monkeypatch, [item], empty) == {"raw_route"}

    def unreadable(ref: SceneRef) -> RoomScene:
        raise SceneError("room", "noise", "a scene", "Copy it again.")

    room = OneRoom(small_room())
    monkeypatch.setattr(room, "open", unreadable)
    monkeypatch.setattr(base, "loaders", room)
    (problem,) = verify_scene(VerifyJob(SceneRef("ca1m", "room", Path()), (item,), GATES))
    assert problem.check == "scene_unreadable"
    assert "Copy it again." in str(problem)

    here, elsewhere = SceneRef("ca1m", "room", Path()), SceneRef("ca1m", "hall", Path())
    jobs, missing = group_by_scene(rows.items, [here, elsewhere], GATES)
    assert [len(job.items) for job in jobs] == [len(rows.items)]
    assert missing == []
    jobs, missing = group_by_scene(rows.items, [elsewhere], GATES)
    assert jobs == []
    assert {p.check for p in missing} == {"scene_missing"}
    assert len(missing) == len(rows.items)


def test_the_fact_comes_back_from_the_row(rows: Rows) -> None:
    item = rows.one("metric_depth", "multi-choice")
    fact = rebuild_fact(item)
    assert fact.candidates[fact.truth].value.tolist() == list(item.answer_value)
    assert fact.truth == "ABCD".index(item.answer)
    assert fact.frame_ids == item.frame_ids
    assert rebuild_fact(rows.one("metric_depth", "open-ended")).truth == 0


@pytest.mark.parametrize(
    ("group_starts", "jobs"),
    [
        ((0, 70, 150, 210, 400, 410), [(0, 210), (210, 410)]),
        ((0, 500, 500, 510), [(0, 500), (500, 510)]),
        ((0, 3), [(0, 3)]),
        ((0, 0), []),
        ((0,), []),
    ],
)
def test_jobs_of_rows_cover_every_row_once_and_part_no_row_group(
    group_starts: tuple[int, ...], jobs: list[tuple[int, int]]
) -> None:
    assert [(job.start, job.stop) for job in plan_rows("set", group_starts, GATES)] == jobs
