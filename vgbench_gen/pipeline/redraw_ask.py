"""Asks language models for the values that strategy `llm` chooses from, and counts how their answers fare."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
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
from vgbench_gen.pipeline.redraw import REPLIES, Progress, Propose, ProposedOptions
from vgbench_gen.tasks.base import Task

TURNS = 2  # times that a model is asked about a fact, where its first values give no set
UNNAMED = "options_are_images"
_AGAIN = ("not_asked", "no_set")  # what another answer may mend
_FATAL = ("refused_key", "cancelled")


@dataclass(slots=True)
class _Case:
    """One fact to name values for, and what was named so far."""

    group_id: str
    fact: Fact
    task: Task
    proposal: Proposal
    model: int
    """The place of the model that is asked, among those opened."""
    values: list[tuple[float, ...]] = field(default_factory=list)
    """The values named so far, each of `proposal.numbers` numbers."""
    found: tuple[Candidate, ...] = ()
    """The candidates made from these values."""
    reason: str = "not_asked"
    """Why these candidates are not enough, such as "no_set" or the kind of a failure; empty once they are."""


def make_proposer(open_models: Callable[[Path], Sequence[Backend]], seed: int) -> Propose:
    """Asks the models that `open_models` opens; questions are shared out among several by hash.

    Args:
        open_models: called with the file that keeps the replies where no other one was named; what stands there is not
            asked again.
        seed: of the draws.
    """

    def propose(asked: Sequence[QuestionPlan], recipe: Recipe, folder: Path, progress: Progress) -> ProposedOptions:
        cases, refused = _list_cases(asked, recipe, folder)
        models = open_models(folder / REPLIES)
        for case in cases:
            case.model = int(hash_stably("model", str(seed), case.group_id), 16) % len(models)
        replies: Counter[str] = Counter()
        try:
            for turn in range(TURNS):
                waiting = [case for case in cases if case.reason in _AGAIN]
                for number, model in enumerate(models):
                    mine = [case for case in waiting if case.model == number]
                    _ask_cases(model, mine, turn, seed, replies, progress)
        finally:
            for model in models:
                asyncio.run(model.close())
        values = {case.group_id: case.found for case in cases if not case.reason}
        refused |= {case.group_id: case.reason for case in cases if case.reason}
        return ProposedOptions(values, refused, _report(models, replies))

    return propose


def _list_cases(asked: Sequence[QuestionPlan], recipe: Recipe, folder: Path) -> tuple[list[_Case], dict[str, str]]:
    """(facts of which values can be named, why the others have none)."""
    by_shard: dict[Path, list[QuestionPlan]] = defaultdict(list)
    refused: dict[str, str] = {}
    for plan in asked:
        if not plan.rejection_reason:
            by_shard[shard_path(folder, "facts", plan.source, plan.scene_id)].append(plan)
    by_name, cases = name_tasks(recipe), []
    for shard, members in by_shard.items():
        facts = read_facts(shard, {plan.row for plan in members})
        for plan in members:
            fact, task = facts[plan.row], by_name[plan.task]
            proposal = task.proposal(fact)
            if proposal is None:
                refused[plan.group_id] = UNNAMED
            else:
                cases.append(_Case(plan.group_id, fact, task, proposal, 0))
    return cases, refused


def _ask_cases(
    model: Backend, cases: Sequence[_Case], turn: int, seed: int, replies: Counter[str], progress: Progress
) -> None:
    requests: list[Request] = [llm.request(case.fact, case.proposal, case.group_id, seed, turn) for case in cases]
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
    case.found = llm.make_candidates(case.fact, case.task, case.proposal, case.values, case.group_id, seed)
    pool = replace(case.fact, candidates=(case.fact.truth_candidate, *case.found), truth=0)
    case.reason = "" if llm.has_set(pool, case.task) else "no_set"


def _report(models: Sequence[Backend], replies: Mapping[str, int]) -> dict[str, Any]:
    """For the manifest: who was asked, what it cost, and how many replies could be read."""
    tallies = [model.tally for model in models]
    return {
        "models": [model.spec for model in models],
        "replies": dict(sorted(replies.items())),
        "requests": sum(tally.requests for tally in tallies),
        "tokens": sum(tally.tokens for tally in tallies),
        "usd": round(sum(tally.usd for tally in tallies), 6),
    }
