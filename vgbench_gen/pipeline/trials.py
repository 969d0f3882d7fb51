"""What facts can be asked as: questions are made and checked before anything is written.

Trying is dear and most facts are not needed, so plans are made as if all could be asked, and what a plan chooses is
tried before it counts: what turns out impossible is struck off and the plan is made anew, until it holds. Nothing is
lost by it. A plan that falls short although some of its supply was only assumed would fall short without that as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.types import Fact, QuestionType
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.pipeline.measure import name_tasks
from vgbench_gen.pipeline.plan import Forms, Plan, choose
from vgbench_gen.pipeline.question import (
    QuestionRejectedError,
    QuestionSettings,
    digest_options,
    draw_options,
    make_question,
    require_other_side,
)
from vgbench_gen.pipeline.question_plan import Key, PackedOptions, QuestionPlan, group_hash
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.store.files import name_scene_file
from vgbench_gen.store.schema import FACTS
from vgbench_gen.store.shards import damage_error, iterate_rows
from vgbench_gen.tasks.base import Task

# A form that fails this often is tried on all facts at once: one plan after the other would find out slowly.
_OFTEN = 0.3
_IN_POOL = "candidates.list.element"
_PLAN_COLUMNS = (
    "task", "task_version", "ask", "dataset", "scene_id", "split", "key", "frame_ids", "truth", "margin",
    f"{_IN_POOL}.key", f"{_IN_POOL}.value.list.element", f"{_IN_POOL}.frame_ids.list.element",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrialJob:
    """Questions about one scene to try; crosses process borders."""

    path: Path
    recipe: Recipe
    plans: tuple[QuestionPlan, ...]


def try_questions(job: TrialJob) -> list[QuestionPlan]:
    """The plans with what their trials found, in order.

    Raises:
        DatasetError: the shard cannot be read.
    """
    facts = read_facts(job.path, {plan.row for plan in job.plans})
    by_name, settings = name_tasks(job.recipe), QuestionSettings.of(job.recipe)
    return [try_question(facts[plan.row], plan, by_name[plan.task], settings) for plan in job.plans]


def try_question(fact: Fact, plan: QuestionPlan, task: Task, settings: QuestionSettings) -> QuestionPlan:
    """The plan with the options that were drawn for it and the shares of the noise test, or with the reason why the
    fact cannot be asked so. Where the plan may be asked from the other side, that side is tried as well."""
    options = None
    try:
        if plan.question_type == "multi-choice":
            options = draw_options(fact, plan.group_id, task, settings, plan.draw)
        sides = [make_question(fact, options, plan, task, settings)]
    except QuestionRejectedError as error:
        return replace(plan, rejection_reason=error.reason)
    unpaired_reason, other_options = "", None
    if plan.counterpart_kind:
        try:
            there, turned = require_other_side(fact, options, plan, task, settings)
            sides.append(make_question(there, turned, replace(plan, side=plan.counterpart_kind), task, settings))
            other_options = pack_drawn(turned, there, task)
        except QuestionRejectedError as error:
            unpaired_reason = error.reason
    has_own_options = options is not None and not task.options_recur
    return replace(
        plan,
        unpaired_reason=unpaired_reason,
        options=PackedOptions.pack(options, fact) if options is not None else None,
        other_options=other_options,
        option_digests=tuple(digest_options(made.options, task) for made in sides if has_own_options),
        noise_kept=tuple(made.noise_kept for made in sides if made.noise_kept is not None),
    )


def pack_drawn(options: OptionSet | None, there: Fact, task: Task) -> PackedOptions | None:
    """What a plan keeps of the options of the other side of a fact: those that were drawn there; turned ones are turned
    again (`ask_as_planned`)."""
    drawn = options is not None and options.strategy in task.partner_draws
    return PackedOptions.pack(options, there) if options is not None and drawn else None


def feasible_plan(
    plans: Iterable[QuestionPlan],
    recipe: Recipe,
    formats: Mapping[str, Forms],
    attempt: Callable[[Sequence[QuestionPlan]], Sequence[QuestionPlan]],
) -> Plan:
    """Make a plan whose every choice was tried.

    Args:
        plans: every fact in every form of its task, untried.
        recipe: what is wanted.
        formats: the forms of each task that is asked.
        attempt: tries questions and gives them back in their order, as `try_questions` does.
    """
    known = {plan.key: plan for plan in plans}
    tried: set[Key] = set()
    failed: Counter[tuple[str, QuestionType]] = Counter()
    times: Counter[tuple[str, QuestionType]] = Counter()
    owner: dict[str, str] = {}  # digest of an option set -> the fact that it is asked about
    while True:
        plan = choose(known.values(), recipe, formats)
        # A trial looks at both sides.
        chosen = {entry.key for entry in plan.chosen if not entry.side and entry.key not in tried}
        if not chosen:
            return plan
        doubtful = {key for key, count in failed.items() if count > _OFTEN * times[key]}
        batch = [
            entry
            for entry in known.values()
            if entry.key in chosen
            or ((entry.task, entry.question_type) in doubtful and not entry.rejection_reason and entry.key not in tried)
        ]
        batch.sort(key=lambda entry: (entry.source, entry.scene_id, entry.row, entry.question_type))
        for outcome in attempt(batch):
            kind = outcome.task, outcome.question_type
            tried.add(outcome.key)
            times[kind] += 1
            failed[kind] += bool(outcome.rejection_reason)
            group = outcome.group_id
            if any(owner.setdefault(digest, group) != group for digest in outcome.option_digests):
                outcome = replace(outcome, rejection_reason="option_set_taken")
            known[outcome.key] = outcome


def read_plans(path: Path, tasks: Sequence[Task], recipe: Recipe) -> list[QuestionPlan]:
    """Every fact of these tasks in every form of its task, untried; only the columns that plans need are read.

    Raises:
        DatasetError: the shard cannot be read.
    """
    by_name = {task.name: task for task in tasks}
    plans: list[QuestionPlan] = []
    for row, raw in enumerate(iterate_rows([path], _PLAN_COLUMNS)):
        try:
            if (raw["dataset"], f"{name_scene_file(raw['scene_id'])}.parquet") != (path.parent.name, path.name):
                raise ValueError(f"row {row} is of another scene")
            if raw["task"] in by_name:
                plans += _make_plans(raw, row, by_name[raw["task"]], recipe)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            raise damage_error(path, error) from error
    return plans


def list_forms(tasks: Sequence[Task]) -> dict[str, Forms]:
    """Task -> the forms it has."""
    return {task.name: task.formats for task in tasks}


def read_facts(path: Path, rows: set[int]) -> dict[int, Fact]:
    """Some facts of a shard by their place in it; the others are not unpacked.

    Raises:
        DatasetError: the shard cannot be read, or holds what no task made.
    """
    found = iterate_rows([path], [column.name for column in FACTS.columns], only=rows)
    facts = {row: FACTS.from_row(raw, path) for row, raw in zip(sorted(rows), found, strict=True)}
    for row, fact in facts.items():
        if problem := _find_damage(fact):
            raise damage_error(path, ValueError(f"row {row} has {problem}"))
    return facts


def _find_damage(fact: Fact) -> str:
    """What is wrong with a fact that can be read but not asked about; "" where nothing is."""
    frames = {*fact.frame_ids, *(frame for candidate in fact.candidates for frame in candidate.frame_ids)}
    for kept, name in ((fact.cameras, "cameras"), (fact.pictures, "pictures")):
        if kept.keys() != frames:
            return f"{name} of the frames {_shorten(kept)}, not of those that are shown: {_shorten(frames)}"
    if not (np.isfinite(fact.margin) and np.isfinite(fact.second_value).all()):
        return "a margin or a second value that is not finite"
    if fact.second_value.shape != fact.truth_candidate.value.shape:
        return f"a second value of shape {fact.second_value.shape}, which the truth has not"
    return ""


def _shorten(frames: Iterable[str]) -> str:
    return str(sorted(map(str, frames))[:3])


def plan_facts(facts: Sequence[Fact], tasks: Sequence[Task], recipe: Recipe) -> Plan:
    """Plan questions about facts that are at hand; `row` of a plan is the place of its fact."""
    by_name, settings = {task.name: task for task in tasks}, QuestionSettings.of(recipe)

    def attempt(batch: Sequence[QuestionPlan]) -> list[QuestionPlan]:
        return [try_question(facts[plan.row], plan, by_name[plan.task], settings) for plan in batch]

    known = [(row, fact, by_name[fact.task]) for row, fact in enumerate(facts) if fact.task in by_name]
    plans = [plan for row, fact, task in known for plan in _make_plans(FACTS.to_row(fact), row, task, recipe)]
    return feasible_plan(plans, recipe, list_forms(tasks), attempt)


def _make_plans(raw: Mapping[str, Any], row: int, task: Task, recipe: Recipe) -> list[QuestionPlan]:
    """A stored fact in every form of its task."""
    pool = raw["candidates"]
    truth = pool[raw["truth"]]
    where = (
        raw["task"],
        str(raw["task_version"]),
        raw["ask"],
        raw["dataset"],
        raw["scene_id"],
        raw["key"],
        truth["key"],
    )
    group = group_hash(where, truth["value"], [candidate["key"] for candidate in pool])
    shown = [*raw["frame_ids"], *(frame for candidate in pool for frame in candidate["frame_ids"])]
    value = float(truth["value"][0]) if len(truth["value"]) == 1 else math.nan
    return [
        QuestionPlan(
            task=raw["task"],
            source=raw["dataset"],
            split=raw["split"],
            scene_id=raw["scene_id"],
            group_id=group,
            question_type=form,
            places=recipe.count_options(task.name),
            row=row,
            ask=raw["ask"],
            margin=raw["margin"],
            value=value,
            frame=shown[0] if shown else "",
            # Judgments have twins already.
            counterpart_kind=task.counterpart_kind if recipe.pairs and form != "judgment" else "",
            rejection_reason=_unwanted_reason(raw, form, recipe),
        )
        for form in task.formats
    ]


def _unwanted_reason(raw: Mapping[str, Any], form: QuestionType, recipe: Recipe) -> str:
    """Why the recipe does not want a fact in this form, or ""."""
    if recipe.items and not recipe.items.get(raw["task"], {}).get(form):
        return "not_in_recipe"
    if raw["dataset"] not in recipe.only_from.get(raw["task"], (raw["dataset"],)):
        return "source_not_in_recipe"
    if recipe.only_splits and raw["split"] not in recipe.only_splits:
        return "split_not_in_recipe"
    return ""
