"""What facts can be asked as: options drawn, claims found, words filled and checked, before anything is written.

Trying is dear and most facts are not needed, so plans are made as if all could be asked, and what a plan chooses is
tried before it counts: what turns out impossible is struck off and the plan is made anew, until it holds. Nothing is
lost by it. A plan that falls short although some of its supply was only assumed would fall short without that as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.rng import canonical_json, rng_for, stable_hash
from vgbench_gen.core.types import LETTERS, Fact, FloatArray, QuestionType
from vgbench_gen.distractors.base import OptionSet, set_problem, strategies
from vgbench_gen.pipeline.known import KnownFacts, knowing_tasks
from vgbench_gen.pipeline.plan import (
    Card,
    Forms,
    PackedOptions,
    Plan,
    Planned,
    choose,
    group_hash,
    partner_of,
    planned,
)
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.write import Wording, refusal
from vgbench_gen.store.schema import FACTS
from vgbench_gen.store.shards import iter_rows
from vgbench_gen.tasks.base import Task

# A form that fails this often is tried on all facts at once: one plan after the other would find out slowly.
_OFTEN = 0.3
_IN_POOL = "candidates.list.element"
_CARD_COLUMNS = (
    "task", "task_version", "ask", "dataset", "scene_id", "split", "key", "frame_ids", "truth", "margin",
    f"{_IN_POOL}.key", f"{_IN_POOL}.value.list.element", f"{_IN_POOL}.frame_ids.list.element",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """One fact of a shard to try in one form."""

    row: int
    group_id: str
    form: QuestionType


@dataclass(frozen=True, slots=True)
class Outcome:
    """reason: why the fact cannot be asked so, or "". options: of a multi-choice question that can be asked.

    unpaired: why it cannot be asked from its other side as well, or "". contents: digests of the options as printed, in
    any order, of either side that is asked; a set that stands under two truths tells by comparison.
    """

    reason: str
    options: PackedOptions | None = None
    unpaired: str = ""
    contents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SurveyJob:
    """Trials on one scene's facts; crosses process borders. known: see `pipeline.known`."""

    path: Path
    recipe: Recipe
    trials: tuple[Trial, ...]
    known: KnownFacts = field(default_factory=dict)


def survey(job: SurveyJob) -> list[Outcome]:
    """Outcomes in the order of the trials.

    Raises:
        DatasetError: the shard cannot be read.
    """
    facts = facts_at(job.path, {trial.row for trial in job.trials})
    by_name = knowing_tasks(job.recipe, job.known)
    return [_tried(facts[trial.row], trial, by_name[facts[trial.row].task], job.recipe) for trial in job.trials]


def settled(
    cards: Iterable[Card],
    recipe: Recipe,
    formats: Mapping[str, Forms],
    attempt: Callable[[Sequence[tuple[Card, QuestionType]]], Sequence[Outcome]],
) -> Plan:
    """A plan whose every choice was tried; `attempt` gives the outcomes of (card, form) in their order."""
    known = {card.group_id: card for card in cards}
    tried: set[tuple[str, QuestionType]] = set()
    failed: Counter[tuple[str, QuestionType]] = Counter()
    times: Counter[tuple[str, QuestionType]] = Counter()
    owner: dict[str, str] = {}  # content of an option set -> the fact that it is asked about
    while True:
        plan = choose(known.values(), recipe, formats)
        # A trial looks at both sides.
        asked = [(c.card, c.question_type) for c in plan.chosen if not c.side]
        batch = [(card, form) for card, form in asked if (card.group_id, form) not in tried]
        if not batch:
            return plan
        doubtful = {key for key, count in failed.items() if count > _OFTEN * times[key]}
        chosen = {(card.group_id, form) for card, form in batch}
        batch += [
            (card, form)
            for card in known.values()
            for form in card.forms
            if (card.task, form) in doubtful and (card.group_id, form) not in tried | chosen
        ]
        batch.sort(key=lambda pair: (pair[0].source, pair[0].scene_id, pair[0].row, pair[1]))
        for (card, form), outcome in zip(batch, attempt(batch), strict=True):
            tried.add((card.group_id, form))
            times[card.task, form] += 1
            current = known[card.group_id]
            taken = any(owner.setdefault(content, card.group_id) != card.group_id for content in outcome.contents)
            if outcome.reason or taken:
                failed[card.task, form] += bool(outcome.reason)
                forms = tuple(f for f in current.forms if f != form)
                reason = outcome.reason or "option_set_taken"
                current = replace(current, forms=forms, refused={**current.refused, form: reason})
            elif outcome.options is not None:
                current = replace(current, options=outcome.options)
            if outcome.unpaired:
                pairs = tuple(f for f in current.pairs if f != form)
                current = replace(current, pairs=pairs, unpaired={**current.unpaired, form: outcome.unpaired})
            known[card.group_id] = current


def cards_of(path: Path, tasks: Sequence[Task], recipe: Recipe) -> list[Card]:
    """Cards of one shard's facts of these tasks, untried; only the columns that cards need are read.

    Raises:
        DatasetError: the shard cannot be read.
    """
    by_name = {task.name: task for task in tasks}
    rows = enumerate(iter_rows([path], _CARD_COLUMNS))
    return [_card(raw, row, by_name[raw["task"]], recipe) for row, raw in rows if raw["task"] in by_name]


def forms_of(tasks: Sequence[Task]) -> dict[str, Forms]:
    """Task -> the forms it has."""
    return {task.name: task.formats for task in tasks}


def plan_facts(facts: Sequence[Fact], tasks: Sequence[Task], recipe: Recipe) -> tuple[list[Planned], Plan]:
    """Survey and plan facts that are at hand: the questions to write, and the plan behind them."""
    by_name = {task.name: task for task in tasks}

    def attempt(batch: Sequence[tuple[Card, QuestionType]]) -> list[Outcome]:
        return [
            _tried(facts[card.row], Trial(card.row, card.group_id, form), by_name[card.task], recipe)
            for card, form in batch
        ]

    cards = [_card(FACTS.to_row(f), row, by_name[f.task], recipe) for row, f in enumerate(facts) if f.task in by_name]
    plan = settled(cards, recipe, forms_of(tasks), attempt)
    return [planned(entry, facts[entry.card.row], by_name[entry.card.task]) for entry in plan.chosen], plan


def facts_at(path: Path, rows: set[int]) -> dict[int, Fact]:
    """Some facts of a shard by their place in it; the others are not unpacked.

    Raises:
        DatasetError: the shard cannot be read.
    """
    found = iter_rows([path], [column.name for column in FACTS.columns], only=rows)
    return {row: FACTS.from_row(raw) for row, raw in zip(sorted(rows), found, strict=True)}


def _card(raw: Mapping[str, Any], row: int, task: Task, recipe: Recipe) -> Card:
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
    name = group_hash(where, truth["value"], [candidate["key"] for candidate in pool])
    refused = {form: reason for form in task.formats if (reason := _unwanted(raw, form, recipe))}
    shown = [*raw["frame_ids"], *(frame for candidate in pool for frame in candidate["frame_ids"])]
    forms = tuple(form for form in task.formats if form not in refused)
    return Card(
        task=raw["task"],
        source=raw["dataset"],
        split=raw["split"],
        scene_id=raw["scene_id"],
        group_id=name,
        margin=raw["margin"],
        frame=shown[0] if shown else "",
        row=row,
        forms=forms,
        refused=refused,
        side=task.partner_kind,
        ask=raw["ask"],
        value=float(truth["value"][0]) if len(truth["value"]) == 1 else math.nan,
        pairs=tuple(form for form in forms if _may_pair(form, task, recipe)),
    )


def _tried(fact: Fact, trial: Trial, task: Task, recipe: Recipe) -> Outcome:
    options: OptionSet | None = None
    if trial.form == "multi-choice":
        try:
            options = drawn_options(fact, trial.group_id, task, recipe)
        except TooFewOptionsError as error:
            return Outcome(error.reason)
    entry = Planned(fact, trial.group_id, trial.form, "", options)
    reason = refusal(entry, task, Wording.of(recipe), recipe.margins)
    if reason:
        return Outcome(reason)
    may_pair = _may_pair(trial.form, task, recipe)
    unpaired = _unpaired(entry, task, recipe) if may_pair else ""
    if options is None:
        return Outcome("", None, unpaired)
    sides = [entry, partner_of(entry, task)] if may_pair and not unpaired else [entry]
    return Outcome("", _packed(options, fact), unpaired, tuple(_content(side, task) for side in sides if side))


def _content(entry: Planned, task: Task) -> str:
    return content_of([option.value for option in entry.options.options] if entry.options else [], task)


def content_of(values: Sequence[FloatArray], task: Task) -> str:
    """Digest of the options' printed values, in any order."""
    return stable_hash(task.name, *sorted(canonical_json(task.rounded(value).tolist()) for value in values))


def _may_pair(form: QuestionType, task: Task, recipe: Recipe) -> bool:
    # Judgments have twins already.
    return bool(recipe.pairs and task.partner_kind and form != "judgment")


def _unpaired(entry: Planned, task: Task, recipe: Recipe) -> str:
    """Why the question cannot be asked from the other side, under the rules that hold for the first one; or ""."""
    other = partner_of(entry, task)
    problem = side_problem(other, task, recipe)
    if problem or other is None:
        return problem
    return refusal(other, task, Wording.of(recipe), recipe.margins)


def side_problem(other: Planned | None, task: Task, recipe: Recipe) -> str:
    """Why a question as `partner_of` turns it may not be asked, by its values alone; or ""."""
    if other is None:
        return "no_partner"
    fact = other.fact
    if other.options is not None:
        problem = set_problem(other.options.options, len(LETTERS), fact, task, recipe.margins)
        if problem:
            return problem
    if not task.valid(fact.truth_candidate, fact):
        return "invalid_truth"
    if not task.agreement(fact.second_value, fact) <= 1:
        return "second_route_disagrees"
    return ""


def _unwanted(raw: Mapping[str, Any], form: QuestionType, recipe: Recipe) -> str:
    if recipe.items and not recipe.items.get(raw["task"], {}).get(form):
        return "not_in_recipe"
    if raw["dataset"] not in recipe.only_from.get(raw["task"], (raw["dataset"],)):
        return "source_not_in_recipe"
    if recipe.only_splits and raw["split"] not in recipe.only_splits:
        return "split_not_in_recipe"
    return ""


def drawn_options(fact: Fact, name: str, task: Task, recipe: Recipe) -> OptionSet:
    """Options of the fact of this group by the recipe's strategy and seed.

    Raises:
        TooFewOptionsError: there is no set that could be asked.
    """
    rng = rng_for(recipe.seed, "options", name, recipe.strategy, str(recipe.distractor_seed))
    return strategies[recipe.strategy].options(fact, task, rng, len(LETTERS), recipe.margins)


def _packed(options: OptionSet, fact: Fact) -> PackedOptions:
    places: Mapping[int, int] = {id(candidate): k for k, candidate in enumerate(fact.candidates)}
    members = tuple(places.get(id(option), option) for option in options.options)
    return PackedOptions(members, options.truth, options.strategy, options.separations)
