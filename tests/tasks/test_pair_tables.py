"""The tables that tasks make of all pairs at once, against their functions of one pair, and the searches over both; and
what the same facts keep as evidence."""

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
from tests.small_room import small_view
from tests.tasks.two_view_scenes import drawn, room_view, with_pictures
from vgbench_gen.core.errors import DatasetError, TooFewOptionsError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.distractors.base import (
    OptionSet,
    compatibility,
    margins_pair_by_pair,
    pair_problem,
    pair_problems,
    strategies,
)
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.evidence import Evidence

TABLED = [name for name in tasks.names() if type(tasks[name]).pair_margins is not Task.pair_margins]
SHORT = {"metric_depth"}  # pools of one image; in longer scans they are of one rectangle, which this room has none of
ELSEWHERE = {"object_distance"}  # its room is another one; the table is the one of all scalars


class PairByPair:
    """A task as an answer space that asks its pairs one by one."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        space: Any = self
        return margins_pair_by_pair(candidates, fact, space)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)


def options(task: Any, fact: Fact) -> OptionSet | None:
    try:
        return strategies["set_first"].options(fact, task, rng_for(5, "options", fact.key))
    except TooFewOptionsError:
        return None


@functools.cache
def drawn_facts(name: str) -> list[Fact]:
    view = small_view() if name in SHORT else room_view()
    return [with_pictures(fact, view) for fact in drawn(get_task(name), view, limit=12)[0]]


def get_task(name: str) -> Task:
    """The task, which asks about rooms without lines too."""
    return tasks[name].with_gates(without_lines(Gates()))


def list_stored(task: Task, fact: Fact) -> list[tuple[type[Evidence], dict[str, Any]]]:
    """What a row stores of a fact and of each candidate that was measured, with the records that read it."""
    stored: list[tuple[type[Evidence], dict[str, Any]]] = [(task.fact_evidence, dict(fact.evidence))]
    stored += [(task.candidate_evidence, dict(c.evidence)) for c in fact.candidates if c.evidence]
    return [(record, json.loads(json.dumps(evidence))) for record, evidence in stored]


@pytest.mark.parametrize("name", [name for name in TABLED if name not in ELSEWHERE])
def test_evidence_reads_back_as_it_was_written(name: str) -> None:
    task, turned = get_task(name), 0
    for fact in drawn_facts(name)[:4]:
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


@pytest.mark.parametrize("name", [name for name in TABLED if name not in ELSEWHERE])
def test_tables_say_what_pairs_say(name: str) -> None:
    task = get_task(name)
    facts = drawn_facts(name)
    assert len(facts) >= 2
    assert {fact.ask for fact in facts} == set(task.asks)  # a wrong table could leave a kind without facts
    found = 0
    for fact in facts:
        valid = [c for c in fact.candidates if task.valid(c, fact)]
        tables = task.pair_margins(valid, fact)
        for (i, a), (j, b) in itertools.product(enumerate(valid), repeat=2):
            if i != j:
                assert tables[0][i, j] == pytest.approx(task.margin_ratio(a, b, fact), rel=1e-9, abs=1e-12)
                assert tables[1][i, j] == pytest.approx(task.ceiling_ratio(a, b, fact), rel=1e-9, abs=1e-12)
        plain: Any = PairByPair(task)
        assert np.array_equal(compatibility(fact.candidates, fact, task), compatibility(fact.candidates, fact, plain))
        fast, slow = options(task, fact), options(plain, fact)
        assert (fast is None) == (slow is None)
        if fast is not None and slow is not None:
            found += 1
            assert [c.key for c in fast.options] == [c.key for c in slow.options]
            assert (fast.truth, fast.separations) == (slow.truth, slow.separations)
    assert found


def test_every_task_with_a_costly_metric_has_tables() -> None:
    assert {"relative_pose", "view_after_motion", "point_tracking", "homography_to_matrix"} <= set(TABLED)


def test_a_pair_on_the_edge_is_asked_itself() -> None:
    task: Any = tasks["point_tracking"]
    fact = drawn(task, room_view(), limit=2)[0][0]
    a, b = fact.candidates[:2]

    class Edge(PairByPair):
        # The pair's own word is that it just keeps the margin; the table rounds it below.
        asked = 0

        def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> Any:
            apart = np.full((len(candidates), len(candidates)), 1 - 1e-15)
            return apart, np.zeros_like(apart)

        def margin_ratio(self, a: Candidate, b: Candidate, fact: Fact) -> float:
            self.asked += 1
            return 1.0

    edge: Any = Edge(task)
    assert pair_problems([a, b], fact, edge).tolist() == [[0, 0], [0, 0]]
    assert edge.asked
    alike = pair_problems([a, replace(b, value=a.value)], fact, edge)
    assert alike[0, 1] > 0
    assert pair_problem(a, replace(b, value=a.value), fact, task) == "printed_alike"
