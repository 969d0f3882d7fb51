"""What is kept of facts, candidates and rows reads back and gives the same bytes; what was damaged is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.quality.conftest import Rows
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.core.types import ALPHABET, Candidate, Item
from vgbench_gen.quality.verify import verify_item
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.evidence import Evidence, FactEvidence, PosesEvidence
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact


def one_of_each_task(rows: Rows) -> Iterator[Item]:
    seen: set[str] = set()
    for item in rows.items:
        if item.question_type == "multi-choice" and item.task not in seen:
            seen.add(item.task)
            yield item
    assert seen == set(tasks.names())


def test_what_is_kept_reads_back_and_writes_the_same_bytes(all_rows: Rows) -> None:
    for item in all_rows.items:
        assert format_canonical_json(RowEvidence.of(item).write()) == format_canonical_json(item.evidence)
        task, fact = tasks[item.task], rebuild_fact(item)
        written = format_canonical_json(task.fact_evidence.of(fact).write())
        assert written == format_canonical_json(fact.evidence)
        for candidate in fact.candidates:
            if candidate.evidence:
                written = format_canonical_json(task.candidate_evidence.of(candidate).write())
                assert written == format_canonical_json(candidate.evidence), candidate.key


@pytest.mark.parametrize("place", ["fact", "option"])
def test_a_damaged_row_is_refused_with_one_sentence_that_names_the_field(all_rows: Rows, place: str) -> None:
    for item in one_of_each_task(all_rows):
        task, fact = tasks[item.task], rebuild_fact(item)
        record = task.fact_evidence if place == "fact" else task.candidate_evidence
        stored = fact.evidence if place == "fact" else fact.truth_candidate.evidence
        for name in stored:
            changes: list[tuple[str, Any]] = [(name, {"damaged": "1"})]
            changes += [("unknown", 1.0)] if name == next(iter(stored)) else []
            for key, value in changes:
                evidence = copy.deepcopy(dict(item.evidence))
                letter = ALPHABET.index(item.answer)
                places = [evidence["fact"]] if place == "fact" else [evidence["truth"]["evidence"]]
                places += [] if place == "fact" else [evidence["options"][letter]["evidence"]]
                for target in places:
                    target[key] = value
                damaged = replace(item, evidence=evidence)
                (problem,) = verify_item(damaged, all_rows.images(item), Gates())
                assert problem.check == "evidence"
                assert f"({record.__name__}): {key}" in problem.detail, problem.detail
                assert "Take the row as it was published" in problem.detail


def test_a_damaged_row_of_the_common_part_is_refused(all_rows: Rows) -> None:
    item = next(one_of_each_task(all_rows))
    for key, value in (("margin", "wide"), ("second_value", ["1"]), ("bases", None), ("options", [{}]), ("more", 1)):
        damaged = replace(item, evidence={**item.evidence, key: value})
        (problem,) = verify_item(damaged, all_rows.images(item), Gates())
        assert problem.check == "evidence"
        assert f"evidence of item '{item.id}' (RowEvidence): {key}" in problem.detail, problem.detail
        assert RowEvidence.found(damaged) is None


def test_only_numbers_of_the_right_shape_are_read() -> None:
    pose = np.eye(4)
    poses = PosesEvidence(world_from_camera={"7": pose})
    assert poses.write() == {"world_from_camera": {"7": pose.ravel().tolist()}}
    np.testing.assert_array_equal(PosesEvidence.read(poses.write(), "x").poses()["7"], pose)
    for bad in ([1.0] * 15, ["1"] * 16, [True] * 16, [float("nan")] * 16, [[1.0] * 4] * 3, [[1.0], [2.0, 3.0]], None):
        with pytest.raises(DatasetError, match=r"evidence of x \(PosesEvidence\): world_from_camera.7: found"):
            PosesEvidence.read({"world_from_camera": {"7": bad}}, "x")


def test_a_field_that_is_none_is_not_stored_and_a_computed_value_has_no_evidence() -> None:
    kept = FactEvidence(margins={"valid": 1.0})
    assert kept.write() == {"margins": {"valid": 1.0}}
    assert Evidence.given(Candidate("rung:1", np.zeros(1))) is None
