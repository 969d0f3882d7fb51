"""Facts in memory, asked without a build on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from vgbench_gen.core.types import Fact
from vgbench_gen.pipeline.ask import check_plan, refuse_shared_sets
from vgbench_gen.pipeline.facts import make_plans
from vgbench_gen.pipeline.plan import count_letters
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.store.schema import FACTS
from vgbench_gen.tasks.base import Task, tasks


def group_id(fact: Fact) -> str:
    """The group of a fact's questions."""
    task = tasks[fact.task]
    return make_plans(FACTS.to_row(fact), 0, task, Recipe())[0].group_id


def ask_facts_at_hand(facts: Sequence[Fact], known: Sequence[Task], recipe: Recipe) -> list[QuestionPlan]:
    """As `ask_facts` with the first draw of each; `row` of a question is the place of its fact."""
    by_name = {task.name: task for task in known}
    asked = [(row, fact, by_name[fact.task]) for row, fact in enumerate(facts) if fact.task in by_name]
    plans = [plan for row, fact, task in asked for plan in make_plans(FACTS.to_row(fact), row, task, recipe)]
    checked = (check_plan(facts[plan.row], plan, by_name[plan.task], recipe) for plan in plans)
    return refuse_shared_sets(replace(plan, options=None) for plan in checked)


def count_dealt(chosen: Iterable[QuestionPlan]) -> dict[str, list[int]]:
    """Task and source -> how often each letter was dealt."""
    return count_letters((f"{p.task}/{p.source}", p.places, p.letter) for p in chosen if p.letter is not None)
