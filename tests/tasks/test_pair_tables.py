"""Margins of all pairs of candidates at once against those of two alone; and what the same facts keep as evidence."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.lenient import without_lines
from tests.quality.invariance_room import GRID, LABELLED, get_view
from tests.tasks.two_view_scenes import drawn, room_view, with_pictures
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors.base import (
    pair_problems,
)
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.evidence import Evidence

NAMES = tasks.names()
SHORT = {"metric_depth"}  # pools of one image; in longer scans they are of one rectangle, which this room has none of
ELSEWHERE = {"object_distance"}  # its room is another one; the table is the one of all scalars


@functools.cache
def drawn_facts(name: str) -> list[Fact]:
    view = get_view(name) if name in SHORT | GRID | LABELLED else room_view()
    return [with_pictures(fact, view) for fact in drawn(get_task(name), view, limit=12)[0]]


def get_task(name: str) -> Task:
    """The task, which asks about rooms without lines too."""
    return tasks[name].with_gates(without_lines(Gates()))


def list_stored(task: Task, fact: Fact) -> list[tuple[type[Evidence], dict[str, Any]]]:
    """What a row stores of a fact and of each candidate that was measured, with the records that read it."""
    stored: list[tuple[type[Evidence], dict[str, Any]]] = [(task.fact_evidence, dict(fact.evidence))]
    stored += [(task.candidate_evidence, dict(c.evidence)) for c in fact.candidates if c.evidence]
    return [(record, json.loads(json.dumps(evidence))) for record, evidence in stored]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE])
def test_evidence_reads_back_as_it_was_written(name: str) -> None:
    task, turned = get_task(name), 0
    for fact in drawn_facts(name)[:8]:
        other_side = task.counterpart(fact)
        turned += other_side is not None
        for one in (fact, other_side):
            if one is not None:  # as a row holds it that has no options
                alone = replace(one, candidates=(one.truth_candidate,), truth=0)
                assert not [problem for check in task.checks for problem in check(alone, task.gates)]
        for record, stored in list_stored(task, fact) + (list_stored(task, other_side) if other_side else []):
            assert record.read(stored, fact.key).write() == stored
            for key in stored:
                with pytest.raises(DatasetError, match=rf"\({record.__name__}\): {key}"):
                    record.read({**stored, key: [["damaged"]]}, fact.key)
    assert turned or not task.counterpart_kind


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE])
def test_a_table_of_many_says_what_that_of_two_says(name: str) -> None:
    task = get_task(name)
    facts = drawn_facts(name)
    assert len(facts) >= 2
    assert {fact.ask for fact in facts} == set(task.asks)  # a wrong table could leave a kind without facts
    for fact in facts:
        valid = [c for c in fact.candidates if task.valid(c, fact)]
        tables = task.pair_margins(valid, fact)
        for i, j in itertools.permutations(range(len(valid)), 2):
            for table, alone in zip(tables, task.pair_margins((valid[i], valid[j]), fact), strict=True):
                assert table[i, j] == pytest.approx(alone[0, 1], rel=1e-9, abs=1e-12)


def test_a_pair_on_the_edge_keeps_its_margin_however_the_table_rounds() -> None:
    task = tasks["point_tracking"]
    fact = drawn(task, room_view(), limit=2)[0][0]
    a, b = fact.candidates[:2]
    fact = replace(fact, candidates=(a, b))
    for ratio, problem in ((1 - 1e-15, 0), (1 - 1e-6, 2)):

        class Edge:
            def valid(self, candidate: Candidate, fact: Fact) -> bool:
                return True

            def pair_margins(self, candidates: Sequence[Candidate], fact: Fact, at: float = ratio) -> Any:
                return np.full((2, 2), at), np.full((2, 2), 2 - at)

        edge: Any = Edge()
        assert pair_problems([a, b], fact, edge)[0, 1] == problem
        assert pair_problems([a, replace(b, value=a.value)], fact, edge)[0, 1] == 1
