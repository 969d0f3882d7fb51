"""Asks language models for the values that strategy `llm` chooses from, and counts how their answers fare."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vgbench_gen.backends.base import Backend, BackendError, Reply, Request
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors import llm
from vgbench_gen.distractors.base import Proposal
from vgbench_gen.pipeline.facts import read_facts
from vgbench_gen.pipeline.measure import name_tasks, shard_path
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.base import Task

Progress = Callable[[str, int, int], None]
"""Called with (stage, done, in all)."""
OpenModels = Callable[[Path], Sequence[Backend]]
"""Called with the file that keeps the replies where no other one was named; what stands there is not asked again."""

REPLIES = "replies.sqlite"  # in the folder of the new dataset
TURNS = 2  # times that a model is asked about a fact, where its first values give no set
UNNAMED = "options_are_images"
_AGAIN = ("not_asked", "no_set")  # what another answer may mend
_FATAL = ("refused_key", "cancelled")


@dataclass(slots=True)
class _Case:
    """One fact to name values for, and what was named so far."""

    plan: QuestionPlan
    fact: Fact
    task: Task
    proposal: Proposal
    order: int
    """Its remainder by the number of models is the place of the one that is asked."""
    values: list[tuple[float, ...]] = field(default_factory=list)
    """The values named so far, each of `proposal.numbers` numbers."""
    found: tuple[Candidate, ...] = ()
    """The candidates made from these values."""
    reason: str = "not_asked"
    """Why these candidates are not enough, such as "no_set" or the kind of a failure; empty once they are."""


def name_values(
    plans: Sequence[QuestionPlan],
    folder: Path,
    recipe: Recipe,
    open_models: OpenModels,
    seed: int,
    progress: Progress,
) -> tuple[list[QuestionPlan], dict[str, Any]]:
    """(the questions with the values that models name, or with the reason why these give no set; for the manifest: who
    was asked, what it cost, and how many replies could be read).

    Args:
        plans: questions, shared out among several models by hash; those that are rejected already stay as they are.
        folder: of the new dataset, with `facts/`; it outlives a killed run.
        recipe: that names the tasks.
        open_models: opens the models.
        seed: of the draws.
        progress: called as questions are asked.
    """
    by_shard: dict[Path, list[QuestionPlan]] = defaultdict(list)
    for plan in plans:
        if not plan.rejection_reason:
            by_shard[shard_path(folder, "facts", plan.source, plan.scene_id)].append(plan)
    by_name, cases = name_tasks(recipe), dict[str, _Case]()
    for shard, members in by_shard.items():
        facts = read_facts(shard, {plan.row for plan in members})
        for plan in members:
            fact, task = facts[plan.row], by_name[plan.task]
            if (proposal := task.proposal(fact)) is not None:
                order = int(hash_stably("model", str(seed), plan.group_id), 16)
                cases[plan.group_id] = _Case(plan, fact, task, proposal, order)
    models = open_models(folder / REPLIES)
    replies: Counter[str] = Counter()
    try:
        for turn in range(TURNS):
            waiting = [case for case in cases.values() if case.reason in _AGAIN]
            for number, model in enumerate(models):
                mine = [case for case in waiting if case.order % len(models) == number]
                _ask_cases(model, mine, turn, seed, replies, progress)
    finally:
        for model in models:
            asyncio.run(model.close())
    tallies = [model.tally for model in models]
    told = {
        "models": [model.spec for model in models],
        "replies": dict(sorted(replies.items())),
        "requests": sum(tally.requests for tally in tallies),
        "tokens": sum(tally.tokens for tally in tallies),
        "usd": round(sum(tally.usd for tally in tallies), 6),
    }
    return [plan if plan.rejection_reason else _name_options(plan, cases.get(plan.group_id)) for plan in plans], told


def _name_options(plan: QuestionPlan, case: _Case | None) -> QuestionPlan:
    if case is None:
        return replace(plan, rejection_reason=UNNAMED)
    return replace(plan, proposed=() if case.reason else case.found, rejection_reason=case.reason)


def _ask_cases(
    model: Backend, cases: Sequence[_Case], turn: int, seed: int, replies: Counter[str], progress: Progress
) -> None:
    requests: list[Request] = [llm.request(case.fact, case.proposal, case.plan.group_id, seed, turn) for case in cases]
    outcomes = ask_all(model, requests, progress=lambda done, total: progress("asking", done, total))
    for case, outcome in zip(cases, outcomes, strict=True):
        if isinstance(outcome, BackendError):
            if outcome.kind in _FATAL:
                raise outcome
            case.reason = outcome.kind
            replies[outcome.kind] += 1
            continue
        _read_reply(case, outcome, seed, replies)


def _read_reply(case: _Case, reply: Reply, seed: int, replies: Counter[str]) -> None:
    """What a reply says, with what earlier ones said."""
    read = "truncated" if reply.finish_reason == "length" else "readable"
    if read == "readable":
        try:
            case.values += llm.read_values(reply.text, case.proposal.numbers)
        except llm.UnreadableReply as error:
            read = error.reason
    replies[read] += 1
    case.found = llm.make_candidates(case.fact, case.task, case.proposal, case.values, case.plan.group_id, seed)
    pool = replace(case.fact, candidates=(case.fact.truth_candidate, *case.found), truth=0)
    case.reason = "" if llm.has_set(pool, case.task) else "no_set"
