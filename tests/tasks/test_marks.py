"""A second kind on the base of marked places: which of four regions is the highest above the ground, or the lowest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.small_room import small_view
from vgbench_gen.core import gates
from vgbench_gen.core.errors import GeometryError, PluginError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Fact, FloatArray, Rejected
from vgbench_gen.distractors.base import set_problem, strategies
from vgbench_gen.pipeline.measure import measure_task
from vgbench_gen.quality.noise import measure_leads
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks._regions import find_frame_regions
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.evidence import Evidence
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.marks import RULES, MarkedPlace, MarksTask, make_rules
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.solving import NoSolver


class HeightEvidence(Evidence):
    up_m: Any
    grey: float | None = None


@dataclass(frozen=True)
class Spot:
    rect_px: tuple[int, int, int, int]
    point_m: FloatArray
    up_m: float

    def evidence(self) -> HeightEvidence:
        return HeightEvidence(up_m=self.up_m)


@pytest.fixture(scope="module")
def task() -> Iterator[MarksTask]:
    class HighestRegion(MarksTask):
        name = "highest_region"
        asks = ("highest", "lowest")
        unit = "m"
        category, subcategory = "Depth and Distance", "Relative"
        convention: ClassVar[Mapping[str, str]] = {"up": "gravity"}
        margins: ClassVar[Mapping[str, float]] = {"gap_min": 0.2}
        candidate_evidence = HeightEvidence
        checks = ()
        solvers = NoSolver("None.")

        def find_places(self, frame: ViewFrame, view: SceneView) -> tuple[Sequence[MarkedPlace], Mapping[str, int]]:
            assert view.up_world is not None
            found, dropped = find_frame_regions(frame, view)
            return [Spot(one.rect_px, one.point_m, float(one.point_m @ view.up_world)) for one in found], dropped

        def value(self, seen: HeightEvidence) -> Any:
            return seen.up_m

        def second(self, view: SceneView, measured: Measured) -> float:
            assert view.up_world is not None
            x1, y1, x2, y2 = measured.marks["rect"]
            points_m = measured.frames[0].points_at(np.array([[(x1 + x2) / 2, (y1 + y2) / 2]]))
            return float((points_m @ view.up_world)[0])

        def disturb(self, seen: HeightEvidence, noise: SensorNoise, rng: np.random.Generator, n: int) -> HeightEvidence:
            return seen.model_copy(update={"up_m": seen.up_m + noise.depth_m * rng.standard_normal(n)})

    kind = HighestRegion()
    tasks.names()
    tasks._entries[kind.name] = kind
    yield kind
    for known in (tasks._entries, gates._SECTIONS):
        known.pop(kind.name)


@pytest.fixture(scope="module")
def facts(task: MarksTask) -> list[Fact]:
    return measure_task(task, small_view(), 1, 12)[0]


def test_facts_of_both_kinds_of_question_are_confirmed_and_keep_the_gap(task: MarksTask, facts: list[Fact]) -> None:
    assert {fact.ask for fact in facts} == {"highest", "lowest"}
    assert len(facts) >= 8
    for fact in facts:
        up_m = np.array([option.evidence["up_m"] for option in fact.candidates])
        sign = 1 if fact.ask == "highest" else -1
        assert (sign * (up_m[fact.truth] - np.delete(up_m, fact.truth)) >= 0.2).all()
        assert task.recompute(fact) == pytest.approx(fact.truth_candidate.value)
        assert task.agreement(fact.second_value, fact) <= 1
        assert task.could_be_true(fact, fact.candidates, fact.truth) == [fact.truth]


def test_every_set_of_a_fact_passes_and_its_truth_may_have_any_letter(task: MarksTask, facts: list[Fact]) -> None:
    places: Counter[int] = Counter()
    for fact in facts:
        for seed in range(8):
            options = strategies["set_first"].options(fact, task, np.random.default_rng(seed))
            assert set_problem(options.options, 4, fact, task) == ""
            places[options.truth] += 1
            drawn = task.overlay(
                replace(fact, candidates=options.options, truth=options.truth), RowEvidence.model_construct()
            )
            assert [mark.right for mark in drawn[0]] == [k == options.truth for k in range(4)]
    assert set(places) == set(range(4))


def test_noise_beyond_the_gap_moves_the_extreme_and_less_does_not(task: MarksTask, facts: list[Fact]) -> None:
    def stays(fact: Fact, error_m: float) -> float:
        noise = SensorNoise(depth_m=error_m, depth_per_m=0, turn_deg=0, shift_m=0, focal=0, box_m=0)
        gaps = task.noisy_gaps(fact, fact.candidates[:4], 0, noise, np.random.default_rng(0), 200)
        return float((measure_leads(gaps, 0) > 0).mean())

    assert min(stays(fact, 0.01) for fact in facts) == 1
    assert max(stays(fact, 20.0) for fact in facts) < 0.5


def test_a_second_route_by_which_another_place_is_the_extreme_sinks_the_draft(
    task: MarksTask, facts: list[Fact], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = type(task).second
    monkeypatch.setattr(type(task), "second", lambda *given: -honest(*given))
    with pytest.raises(GeometryError, match=r"by the second route \d+ is the"):
        task.recheck(facts[0], small_view())
    _, rejects = measure_task(task, small_view(), 1, 4)
    assert {one.reason for one in rejects} == {"no_second_route"}


def test_a_wider_gap_leaves_no_set(task: MarksTask) -> None:
    strict = task.with_gates(Gates.model_validate({"highest_region": {"gap_min": 9.0}}))
    found = list(strict.drafts(small_view(), np.random.default_rng(0), 4))
    assert {one.reason for one in found if isinstance(one, Rejected)} == {"no_option_set"}
    assert not any(isinstance(one, Fact) for one in found)


def test_draws_that_start_elsewhere_than_the_evidence_are_an_error(
    task: MarksTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(task), "disturb", lambda self, seen, noise, rng, n: HeightEvidence(up_m=np.full(n, 99.0)))
    with pytest.raises(PluginError, match="by `value` for one draw without noise"):
        list(task.drafts(small_view(), np.random.default_rng(0), 4))


def test_each_rule_and_its_opposite_choose_by_one_measure() -> None:
    names = [name for most, least, _ in RULES for name in (most, least)]
    assert len(set(names)) == len(names) == 10
    assert [rule.name for rule in make_rules(*names)] == names
    with pytest.raises(KeyError):
        make_rules("any other region")
