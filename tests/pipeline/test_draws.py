"""One of several draws is asked for each fact of a balanced task: the one that is chosen, whoever chooses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pipeline.same_bytes import small_recipe
from vgbench_gen import load
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import BoolArray, IntArray
from vgbench_gen.distractors.balanced import CandidateSets, choose_sets
from vgbench_gen.executors import Engine, begin_work
from vgbench_gen.pipeline import ask
from vgbench_gen.pipeline.ask import choose_draws
from vgbench_gen.pipeline.facts import list_fact_shards, read_facts, read_plans
from vgbench_gen.pipeline.measure import list_tasks, name_tasks
from vgbench_gen.pipeline.question import draw_options
from vgbench_gen.pipeline.question_plan import ASKED, QuestionPlan, read_questions, write_questions
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import RowEvidence

RECIPE = small_recipe()


def chosen_plans(folder: Path, backwards: bool = False) -> list[QuestionPlan]:
    plans = [p for path in list_fact_shards(folder) for p in read_plans(path, list_tasks(RECIPE), RECIPE)]
    plans = [plan for plan in plans if not plan.rejection_reason]
    return choose_draws(plans[::-1] if backwards else plans, folder, RECIPE, Engine())


@pytest.fixture(scope="module")
def chosen(reference: tuple[Path, dict[str, str]]) -> list[QuestionPlan]:
    return chosen_plans(reference[0])


def test_the_choice_does_not_depend_on_the_order_of_plans(
    reference: tuple[Path, dict[str, str]], chosen: list[QuestionPlan]
) -> None:
    draws = {plan.key: plan.draw for plan in chosen}
    assert {plan.key: plan.draw for plan in chosen_plans(reference[0], backwards=True)} == draws
    assert any(plan.draw for plan in chosen if plan.task == "point_tracking")
    assert not any(plan.draw for plan in chosen if tasks[plan.task].candidate_draws == 1)


def test_workers_ask_alike(reference: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = reference
    # Of several draws, of one, and one whose facts some forms cannot ask. A whole build by two: `test_same_bytes`.
    some = RECIPE.model_copy(update={"tasks": ("point_tracking", "metric_depth", "homography_to_matrix")})
    plans = [p for path in list_fact_shards(folder) for p in read_plans(path, list_tasks(some), some)]
    expected = ask.ask_facts(plans, folder, RECIPE, Engine())
    monkeypatch.setattr(ask, "FEW", 0)
    two = Engine(workers=2)
    with begin_work(two):
        found = ask.ask_facts(plans[::-1], folder, RECIPE, two)[::-1]
    assert [repr(plan) for plan in found] == [repr(plan) for plan in expected]
    assert {plan.rejection_reason for plan in expected} != {""}


def test_a_build_asks_the_chosen_draw(reference: tuple[Path, dict[str, str]], chosen: list[QuestionPlan]) -> None:
    folder, _ = reference
    by_name, asked = name_tasks(RECIPE), 0
    plans = {plan.group_id: plan for plan in chosen if plan.question_type == "multi-choice"}
    shards = {path.stem: path for path in list_fact_shards(folder)}
    for item in load(folder):
        if item.question_type != "multi-choice" or by_name[item.task].candidate_draws == 1 or RowEvidence.of(item).side:
            continue
        plan = plans[item.group_id]
        path = next(path for path in shards.values() if path.parent.name == plan.source)
        fact = read_facts(path, {plan.row})[plan.row]
        options = draw_options(fact, plan.group_id, by_name[item.task], RECIPE, plan.draw)
        shown = {tuple(option.value.ravel().tolist()) for option in options.options}
        row = {tuple(option.value.ravel().tolist()) for option in RowEvidence.of(item).options}
        assert row == shown, (item.task, plan.draw)
        asked += plan.draw > 0
    assert asked >= 2


def test_the_choice_sees_the_numbers_of_answers_that_are_several(
    reference: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = reference
    seen: dict[str, CandidateSets] = {}

    def look(facts: Sequence[CandidateSets], seed: int) -> tuple[IntArray, BoolArray]:
        seen.update((fact.key, fact) for fact in facts)
        return choose_sets(facts, seed)

    monkeypatch.setattr(ask, "choose_sets", look)
    plans = {"/".join(plan.key): plan for plan in chosen_plans(folder)}
    tracked = {name: sets for name, sets in seen.items() if plans[name].task == "point_tracking"}
    assert tracked
    for name, sets in tracked.items():
        plan = plans[name]
        path = next(path for path in list_fact_shards(folder) if path.parent.name == plan.source)
        truth = read_facts(path, {plan.row})[plan.row].truth_candidate.value
        assert sets.values is not None
        assert sets.values.shape == (*sets.text.shape[:2], 2)
        assert np.array_equal(sets.values[:, 0], np.broadcast_to(truth, (len(sets.text), 2)))
    assert all(sets.values is None for name, sets in seen.items() if plans[name].task == "metric_depth")
    regions = [sets.values for name, sets in seen.items() if plans[name].task == "relative_depth"]
    assert regions
    assert all(values is not None and values.shape[2] == 4 for values in regions)  # what is drawn, as depths are unseen


def test_a_build_keeps_every_question_with_its_outcome(
    reference: tuple[Path, dict[str, str]], chosen: list[QuestionPlan]
) -> None:
    folder, _ = reference
    kept = {plan.key: (plan, outcome) for plan, outcome in read_questions(folder, RECIPE.choosing) or []}
    plans = [p for path in list_fact_shards(folder) for p in read_plans(path, list_tasks(RECIPE), RECIPE)]
    assert kept.keys() == {plan.key for plan in plans}
    for plan in chosen:
        assert kept[plan.key][0].draw == plan.draw
    asked = {(item.group_id, item.question_type) for item in load(folder)}
    assert {key for key, (_, outcome) in kept.items() if outcome == ASKED} == asked
    known = {plan.key: plan for plan in plans}
    for key, (plan, _) in kept.items():
        assert (plan.row, plan.frame) == (known[key].row, known[key].frame)
        assert (plan.task, plan.source, plan.scene_id, plan.ask) == (
            known[key].task, known[key].source, known[key].scene_id, known[key].ask
        )  # fmt: skip


def test_damaged_questions_are_named(tmp_path: Path) -> None:
    assert read_questions(tmp_path, {}) is None
    write_questions(tmp_path, [], {"seed": 1})
    assert read_questions(tmp_path, {"seed": 1}) == []
    assert read_questions(tmp_path, {"seed": 2}) is None
    (tmp_path / "questions.parquet").write_bytes(b"PAR1")
    with pytest.raises(DatasetError, match=r"questions\.parquet"):
        read_questions(tmp_path, {})


def test_a_column_of_another_type_is_refused_before_a_question_is_made(
    reference: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    path = list_fact_shards(reference[0])[0]
    table = pq.read_table(path)
    numbers = pa.array(range(len(table)))
    damaged = table.set_column(table.column_names.index("licence"), "licence", numbers)
    pq.write_table(damaged, tmp_path / path.name)
    with pytest.raises(DatasetError, match="wrong columns licence"):
        read_facts(tmp_path / path.name, {0})
    assert read_facts(path, {0})
