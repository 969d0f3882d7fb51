"""ASK: every fact in every form, once. Options or claims are drawn, one draw is chosen, and the question is checked.

Options that are drawn for one fact after the other may tell a reader of many questions how right answers differ from
wrong ones, so a draw is chosen among several with all facts in view (`distractors.balanced`). The choice needs numbers
alone and no picture. What is left without a reason has passed every check, so a plan over it holds the first time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Candidate, Fact, IntArray, QuestionType
from vgbench_gen.distractors.balanced import CandidateSets, choose_sets
from vgbench_gen.distractors.base import strategies
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.facts import FEW, FactsJob, map_plans
from vgbench_gen.pipeline.measure import name_tasks
from vgbench_gen.pipeline.question import (
    QuestionRejectedError,
    digest_values,
    draw_by,
    draw_options,
    list_strategies,
    make_question,
    presentation_rng,
    put_truth_at,
    require_other_side,
)
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.base import Task

UNBALANCED = "unbalanced"  # why a fact is not asked whose every draw upsets the balance
CANDIDATE_CLAIMS = 8  # pairs of claims, of which one is chosen; each is dearer than a set, and has two members only


def ask_facts(plans: Sequence[QuestionPlan], folder: Path, recipe: Recipe, engine: Engine) -> list[QuestionPlan]:
    """The questions in their order, each with its draw and what its checks found, or with the reason why it cannot be
    asked. Questions that have a reason already keep it. Raises DatasetError where a shard cannot be read."""
    drawn = choose_draws(plans, folder, recipe, engine)
    return refuse_shared_sets(map_plans(_check_job, drawn, folder, recipe, engine, few=FEW))


def refuse_shared_sets(plans: Iterable[QuestionPlan]) -> list[QuestionPlan]:
    """The questions, of which those lose whose set of options stands under another truth as well; one of them stays."""
    plans = list(plans)
    owner: dict[str, str] = {}  # digest of an option set -> the fact that it is asked about
    for k in sorted(range(len(plans)), key=lambda k: hash_stably("set", plans[k].group_id)):
        if not plans[k].rejection_reason:
            group = plans[k].group_id
            if any(owner.setdefault(digest, group) != group for digest in plans[k].option_digests):
                plans[k] = replace(plans[k], rejection_reason="option_set_taken")
    return plans


# --- which of several draws -----------------------------------------------------------------------------------------


def choose_draws(plans: Sequence[QuestionPlan], folder: Path, recipe: Recipe, engine: Engine) -> list[QuestionPlan]:
    """The questions in their order, each with the draw that keeps the balance best; rejected as `UNBALANCED` where each
    upsets it. Questions that have a reason already keep it."""
    by_name = name_tasks(recipe)
    several = [
        k
        for k, plan in enumerate(plans)
        if not plan.rejection_reason and is_balanced(by_name[plan.task], plan.question_type, recipe)
    ]
    described = map_plans(_describe_draws, [plans[k] for k in several], folder, recipe, engine, few=FEW)
    cells: dict[tuple[str, str, str], list[tuple[int, IntArray, CandidateSets]]] = defaultdict(list)
    for k, found in zip(several, described, strict=True):
        if found is not None:
            cells[plans[k].task, plans[k].question_type, plans[k].ask].append((k, *found))
    # Most sets first, so that no worker starts them when the others are done.
    kinds = sorted(cells.values(), key=lambda members: -sum(len(sets.text) for _, _, sets in members))
    jobs = [tuple(sets for _, _, sets in members) for members in kinds]
    work = partial(choose_sets, seed=recipe.distractor_seed)
    chosen = list(plans)
    for index, (places, keeps) in run(work, jobs, engine if len(several) > FEW else Engine(), [folder]):
        for (k, numbers, _), place, keep in zip(kinds[index], places, keeps, strict=True):
            chosen[k] = replace(plans[k], draw=int(numbers[place]), rejection_reason="" if keep else UNBALANCED)
    return chosen


def is_balanced(task: Task, form: QuestionType, recipe: Recipe) -> bool:
    """Whether one of several draws is chosen for questions of this kind."""
    if task.candidate_draws < 2 or form == "open-ended":
        return False
    return form == "judgment" or any(strategies[name].balanced for name in list_strategies(recipe.strategy, task))


def _describe_draws(job: FactsJob) -> list[tuple[IntArray, CandidateSets] | None]:
    """The numbers of the draws that give each question, and what can be known of them without understanding an image;
    None where there is no choice."""
    return [_describe(*question) for question in job.list_questions()]


def _describe(fact: Fact, plan: QuestionPlan, task: Task, recipe: Recipe) -> tuple[IntArray, CandidateSets] | None:
    draw = _draw_claims if plan.question_type == "judgment" else _draw_sets
    drawn = draw(fact, plan, task, recipe)
    if len(drawn) < 2:
        return None
    # Many sets share their options, and describing one may be dear.
    options = list({id(option): option for one in drawn.values() for option in one}.values())
    place = {id(option): k for k, option in enumerate(options)}
    members = np.array([[place[id(option)] for option in one] for one in drawn.values()])
    text, looks = (
        np.asarray(cues, dtype=np.float32)[members]
        for cues in (task.read_text_cues(fact, options), task.read_image_cues(fact, options))
    )
    numbers = task.list_numbers(options).astype(np.float32)
    values = numbers[members] if numbers.shape[1] > 1 else None
    name = f"{plan.group_id}/{plan.question_type}"
    return np.array(list(drawn)), CandidateSets(f"{plan.source}/{plan.scene_id}", name, text, looks, values)


def _draw_sets(fact: Fact, plan: QuestionPlan, task: Task, recipe: Recipe) -> dict[int, list[Candidate]]:
    """Number of a draw -> its options, the truth first; by the first strategy that gives any."""
    drawn: dict[int, list[Candidate]] = {}
    for strategy in list_strategies(recipe.strategy, task):
        for number in range(task.candidate_draws):
            with suppress(QuestionRejectedError):
                options = draw_by(strategy, fact, plan.group_id, task, recipe, number)
                drawn[number] = list(put_truth_at(options, 0).options)
        if drawn:
            break
    return drawn


def _draw_claims(fact: Fact, plan: QuestionPlan, task: Task, recipe: Recipe) -> dict[int, list[Candidate]]:
    """Number of a draw -> what its true and its false claim are about."""
    drawn: dict[int, list[Candidate]] = {}
    for number in range(min(task.candidate_draws, CANDIDATE_CLAIMS)):
        pair = task.claim_pair(fact, presentation_rng(recipe.seed, plan.group_id, plan.question_type, number))
        if pair is not None and pair.false.separation >= 1:
            drawn[number] = [pair.true.get_candidate(fact), pair.false.get_candidate(fact)]
    return drawn


# --- checks ---------------------------------------------------------------------------------------------------------


def _check_job(job: FactsJob) -> list[QuestionPlan]:
    return [replace(check_plan(*question), options=None) for question in job.list_questions()]


def check_plan(fact: Fact, plan: QuestionPlan, task: Task, recipe: Recipe) -> QuestionPlan:
    """The question with the shares of its noise test, or with the reason why the fact cannot be asked so. Where it may
    be asked from the other side, that side is checked as well. One that is rejected already stays as it is."""
    if plan.rejection_reason:
        return plan
    try:
        options = (
            draw_options(fact, plan.group_id, task, recipe, plan.draw) if plan.question_type == "multi-choice" else None
        )
        sides = [make_question(fact, options, plan, task, recipe)]
    except QuestionRejectedError as error:
        return replace(plan, rejection_reason=error.reason)
    if plan.counterpart_kind:
        try:
            there, turned = require_other_side(fact, options, plan, task, recipe)
            sides.append(make_question(there, turned, replace(plan, side=plan.counterpart_kind), task, recipe))
        except QuestionRejectedError:
            plan = replace(plan, counterpart_kind="")
    return replace(
        plan,
        options=options,
        fallback=options.fallback if options is not None else "",
        option_digests=tuple(
            digest_values([option.value for option in made.options.options], task)
            for made in sides
            if made.options is not None and not task.options_recur
        ),
        noise=tuple(made.noise for made in sides if made.noise is not None),
    )
