"""Which of several draws of its options, or of its claims, each question is asked with.

Options that are drawn for one fact after the other may tell a reader of many questions how right answers differ from
wrong ones, so the choice looks at all facts at once (`distractors.balanced`). It needs numbers alone and no picture,
follows from facts, recipe and seeds, and does not depend on the order of files or on who does the work.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.core.types import BoolArray, Candidate, Fact, IntArray, QuestionType
from vgbench_gen.distractors.balanced import CandidateSets, choose_sets
from vgbench_gen.distractors.base import strategies
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.measure import name_tasks
from vgbench_gen.pipeline.question import (
    QuestionRejectedError,
    QuestionSettings,
    draw_members,
    list_strategies,
    presentation_rng,
)
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.trials import read_facts
from vgbench_gen.store.files import dataset_error, write_bytes
from vgbench_gen.tasks.base import Task

UNBALANCED = "unbalanced"  # why a fact that fits with no draw is not asked
CANDIDATE_CLAIMS = 8  # pairs of claims, of which one is chosen; each is dearer than a set, and has two members only
DRAWS = "draws.json"
_LEFT_OUT = -1  # in the place of a draw
FEW = 400  # facts that this process describes itself: workers take longer to start


@dataclass(frozen=True, slots=True)
class _DescribeJob:
    """Facts of one scene whose draws are described; crosses process borders."""

    path: Path
    recipe: Recipe
    settings: QuestionSettings
    plans: tuple[QuestionPlan, ...]


@dataclass(frozen=True, slots=True)
class _ChooseJob:
    """All facts of one kind of question; crosses process borders."""

    facts: tuple[CandidateSets, ...]
    seed: int


def choose_draws(
    plans: Sequence[QuestionPlan],
    shard_of: Mapping[tuple[str, str], Path],
    recipe: Recipe,
    settings: QuestionSettings,
    engine: Engine,
    folder: Path,
) -> list[QuestionPlan]:
    """The plans, each with the draw that fits best, in their order; rejected as `UNBALANCED` where none fits.

    Args:
        plans: questions about any facts; those that are rejected already keep their draw.
        shard_of: (source, id) of a scene -> its facts.
        recipe: that is composed.
        settings: seeds and strategy of the draws; each set of draws is chosen by itself.
        engine: where the work runs.
        folder: of the build.

    Raises:
        DatasetError: a shard cannot be read.
    """
    by_name = name_tasks(recipe)
    asked = [
        k
        for k, plan in enumerate(plans)
        if not plan.rejection_reason and is_balanced(by_name[plan.task], plan.question_type, settings)
    ]
    asked.sort(key=lambda k: (plans[k].source, plans[k].scene_id, plans[k].row, plans[k].question_type))
    grouped = [
        (scene, tuple(members))
        for scene, members in itertools.groupby(asked, key=lambda k: (plans[k].source, plans[k].scene_id))
    ]
    jobs = [
        _DescribeJob(shard_of[scene], recipe, settings, tuple(plans[k] for k in members)) for scene, members in grouped
    ]
    where = engine if len(asked) > FEW else Engine()
    cells: dict[tuple[str, str, str], list[tuple[int, IntArray, CandidateSets]]] = defaultdict(list)
    described = dict(run(_describe_draws, jobs, where, [folder]))
    for index, (_, members) in enumerate(grouped):
        for k, found in zip(members, described[index], strict=True):
            if found is not None:
                cells[plans[k].task, plans[k].question_type, plans[k].ask].append((k, *found))
    # Most sets first, so that no worker starts them when the others are done.
    kinds = sorted(cells.values(), key=lambda members: -sum(len(sets.text) for _, _, sets in members))
    choices = [_ChooseJob(tuple(sets for _, _, sets in members), settings.distractor_seed) for members in kinds]
    chosen = list(plans)
    for index, (places, fits) in run(_choose, choices, where, [folder]):
        for (k, numbers, _), place, fit in zip(kinds[index], places, fits, strict=True):
            chosen[k] = replace(plans[k], draw=int(numbers[place]), rejection_reason="" if fit else UNBALANCED)
    return chosen


def write_draws(folder: Path, plans: Sequence[QuestionPlan]) -> None:
    """Keep what `choose_draws` chose for a build, so that an audit asks further facts as the build would have.

    One JSON object: "GROUP/FORM" -> number of the draw, where it is not the first, or -1 for a fact that is left out.
    """
    chosen = {
        "/".join(plan.key): _LEFT_OUT if plan.rejection_reason == UNBALANCED else plan.draw
        for plan in plans
        if plan.draw or plan.rejection_reason == UNBALANCED
    }
    write_bytes(folder / DRAWS, format_canonical_json(chosen).encode())


def read_draws(folder: Path, plans: Sequence[QuestionPlan]) -> list[QuestionPlan] | None:
    """The plans with the draws that the build in a folder chose; None where it keeps none, as one that was redrawn.

    Raises:
        DatasetError: the file is damaged.
    """
    path = folder / DRAWS
    if not path.is_file():
        return None
    try:
        kept = read_json(path)
        draws = {str(key): int(draw) for key, draw in kept.items()}
    except (ValueError, TypeError, AttributeError) as error:
        expected = "an object of draws by question"
        raise dataset_error(path, f"none ({type(error).__name__})", expected, "Delete it, or compose again.") from None
    return [
        replace(plan, rejection_reason=UNBALANCED) if draw == _LEFT_OUT else replace(plan, draw=draw)
        for plan in plans
        for draw in [draws.get("/".join(plan.key), 0)]
    ]


def is_balanced(task: Task, form: QuestionType, settings: QuestionSettings) -> bool:
    """Whether one of several draws is chosen for questions of this kind."""
    if task.candidate_draws < 2 or form == "open-ended":
        return False
    return form == "judgment" or any(strategies[name].balanced for name in list_strategies(settings.strategy, task))


def _describe_draws(job: _DescribeJob) -> list[tuple[IntArray, CandidateSets] | None]:
    """The numbers of the draws that give each question, and what can be known of them without understanding an image;
    None where there is no choice.

    Raises:
        DatasetError: the shard cannot be read.
    """
    facts = read_facts(job.path, {plan.row for plan in job.plans})
    tasks = name_tasks(job.recipe)
    return [_describe(facts[plan.row], plan, tasks[plan.task], job.settings) for plan in job.plans]


def _choose(job: _ChooseJob) -> tuple[IntArray, BoolArray]:
    return choose_sets(job.facts, job.seed)


def _describe(
    fact: Fact, plan: QuestionPlan, task: Task, settings: QuestionSettings
) -> tuple[IntArray, CandidateSets] | None:
    draw = _draw_claims if plan.question_type == "judgment" else _draw_sets
    drawn = draw(fact, plan, task, settings)
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
    several = fact.truth_candidate.value.size > 1
    values = np.array([option.value.ravel() for option in options], dtype=np.float32)[members] if several else None
    name = f"{plan.group_id}/{plan.question_type}"
    return np.array(list(drawn)), CandidateSets(f"{plan.source}/{plan.scene_id}", name, text, looks, values)


def _draw_sets(fact: Fact, plan: QuestionPlan, task: Task, settings: QuestionSettings) -> dict[int, list[Candidate]]:
    """Number of a draw -> its options, the truth first; none of a second strategy where the first one has some."""
    for strategy in list_strategies(settings.strategy, task):
        drawn = {}
        for number in range(task.candidate_draws):
            with suppress(QuestionRejectedError):
                drawn[number] = draw_members(strategy, fact, plan.group_id, task, settings, number)
        if drawn:
            return drawn
    return {}


def _draw_claims(fact: Fact, plan: QuestionPlan, task: Task, settings: QuestionSettings) -> dict[int, list[Candidate]]:
    """Number of a draw -> what its true and its false claim are about."""
    drawn: dict[int, list[Candidate]] = {}
    for number in range(min(task.candidate_draws, CANDIDATE_CLAIMS)):
        pair = task.claim_pair(fact, presentation_rng(settings.words_seed, plan.group_id, plan.question_type, number))
        if pair is not None and pair.false.separation >= 1:
            drawn[number] = [pair.true.get_candidate(fact), pair.false.get_candidate(fact)]
    return drawn
