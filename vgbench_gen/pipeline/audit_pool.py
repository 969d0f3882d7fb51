"""The audit pool: the dataset's own questions, topped up from the same facts with the limits per scene relaxed.

A release cell of a few hundred questions leaves an interval too wide to judge (`docs/validity.md#enough-questions`). So
facts that the release did not ask are asked as well, in words only: no picture is drawn. Where they are not enough,
facts are asked again with other wrong options or claims; folds go by scene, so no truth stands on both sides of a
split.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import Fact, QuestionType
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.draws import choose_draws, read_draws
from vgbench_gen.pipeline.measure import list_tasks, name_tasks, shard_path
from vgbench_gen.pipeline.question import (
    QuestionRejectedError,
    QuestionSettings,
    draw_options,
    make_question,
    put_truth_at,
)
from vgbench_gen.pipeline.question_plan import Key, QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.pipeline.trials import read_facts, read_plans
from vgbench_gen.quality.findings import CONCLUSIVE
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.base import Task

POOL = 1200  # most questions of a task and form
_FEW = 600  # questions that this process asks itself: workers take longer to start
_ROUNDS = 16  # one is enough unless facts refuse a form; the others ask facts again
_AGAIN = 2  # times that a fact is asked again at most: a dozen facts asked a hundred times are still a dozen
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

Cell = tuple[str, QuestionType]


@dataclass(slots=True)
class Pool:
    """Questions to judge by."""

    questions: dict[Cell, list[Question]] = field(default_factory=dict)
    """Per task and form, the release's own questions first."""
    asked_again: Counter[Cell] = field(default_factory=Counter)
    """How many of them ask a fact that another one asks too with other options."""
    seconds: float = 0.0
    """CPU time that asking took."""


Ask = tuple[int, QuestionPlan]
"""How often the fact was asked before, and the question; turns above 0 have other options than the recipe's."""


@dataclass(frozen=True, slots=True)
class AskJob:
    """Facts of one scene to ask; crosses process borders."""

    path: Path
    recipe: Recipe
    asks: tuple[Ask, ...]


class _DescribedPictures:
    """Names pictures by what they show and draws nothing: equal descriptions are equal pictures."""

    def name(self, picture: Picture) -> str:
        return hash_stably("picture", picture.key(), size=16) if picture.ops else picture.base


def ask_facts(job: AskJob) -> tuple[list[tuple[Question, ...]], float]:
    """Questions of each ask in order, none where the fact cannot be asked so; and the CPU seconds it took.

    Raises:
        DatasetError: the shard cannot be read.
    """
    started = time.process_time()
    by_name = name_tasks(job.recipe)
    facts = read_facts(job.path, {plan.row for _, plan in job.asks})
    asked = [_ask_fact(facts[plan.row], plan, by_name[plan.task], job.recipe, turn) for turn, plan in job.asks]
    return asked, time.process_time() - started


def _ask_fact(fact: Fact, plan: QuestionPlan, task: Task, recipe: Recipe, turn: int) -> tuple[Question, ...]:
    if plan.rejection_reason:
        return ()
    options, settings = None, QuestionSettings.of(recipe, turn)
    try:
        if plan.letter is not None:
            options = put_truth_at(draw_options(fact, plan.group_id, task, settings, plan.draw), plan.letter)
        made = make_question(fact, options, plan, task, settings, check=False)
    except QuestionRejectedError:
        return ()
    rows = question_rows(made, settings, _DescribedPictures(), with_noise=False)
    return tuple(read_question(row) for row in rows)


def fill_pool(
    folder: Path,
    recipe: Recipe,
    release: Iterable[Question],
    scenes: Iterable[tuple[str, str]],
    most: int = POOL,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    alone: Container[Cell] = (),
) -> Pool:
    """The release's questions and more of the same facts, at most `most` per task and form.

    Args:
        folder: of the build, with `facts/`.
        recipe: that it was built with.
        release: the questions of the dataset.
        scenes: (source, id) whose facts may be asked; others in the folder are left alone.
        progress: called with (questions asked, questions wanted), which grows where facts refuse.
        alone: cells that get no more questions, because theirs were made otherwise than the recipe says.

    Raises:
        DatasetError: a shard cannot be read.
    """
    engine = engine or Engine()
    sampler = PoolSampler(recipe, list(release), most)
    shards = {}
    for source, scene_id in sorted(scenes):
        path = shard_path(folder, "facts", source, scene_id)
        if path.is_file():
            shards[source, scene_id] = path
            sampler.add(read_plans(path, list_tasks(recipe), recipe), alone)
    done = 0
    for _ in range(_ROUNDS):
        wanted = sampler.plan_round()
        if not wanted:
            break
        wanted.sort(key=lambda ask: (ask[1].source, ask[1].scene_id, ask[1].row, ask[1].question_type))
        wanted = _choose_draws(wanted, shards, recipe, engine, folder)
        jobs = [
            AskJob(shards[scene], recipe, tuple(group))
            for scene, group in itertools.groupby(wanted, key=lambda ask: (ask[1].source, ask[1].scene_id))
        ]
        outcomes = {}
        before = done
        for index, (answers, seconds) in run(ask_facts, jobs, engine if len(wanted) > _FEW else Engine(), [folder]):
            outcomes[index] = answers
            sampler.pool.seconds += seconds
            done += len(answers)
            progress(done, before + len(wanted))
        sampler.take([pair for k, job in enumerate(jobs) for pair in zip(job.asks, outcomes[k], strict=True)])
    return sampler.pool


def _choose_draws(
    wanted: Sequence[Ask], shards: Mapping[tuple[str, str], Path], recipe: Recipe, engine: Engine, folder: Path
) -> list[Ask]:
    """The same asks, each with its draw: that of the build, or where the build has none, as composing chooses, those of
    one turn together."""
    chosen = list(wanted)
    for turn in sorted({turn for turn, _ in wanted}):
        places = [k for k, (other, _) in enumerate(wanted) if other == turn]
        asked = [wanted[k][1] for k in places]
        plans = None if turn else read_draws(folder, asked)
        if plans is None:
            plans = choose_draws(asked, shards, recipe, QuestionSettings.of(recipe, turn), engine, folder)
        for k, plan in zip(places, plans, strict=True):
            chosen[k] = turn, plan
    return chosen


class PoolSampler:
    """Keeps what is wanted, what came, and whose turn it is; everything in an order fixed by hashes."""

    def __init__(self, recipe: Recipe, release: Sequence[Question], most: int) -> None:
        self.recipe, self.most = recipe, most
        self.pool = Pool()
        self._seen: set[tuple[str, QuestionType, tuple[str, ...]]] = set()
        self._asked: set[Key] = set()
        self._plans: dict[Cell, list[QuestionPlan]] = defaultdict(list)
        self._queue: dict[Cell, list[QuestionPlan]] = {}
        self._turn: Counter[Cell] = Counter()
        self._rejected: set[Key] = set()
        self._letters: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._blocks: Counter[tuple[str, str]] = Counter()
        by_cell: dict[Cell, list[Question]] = defaultdict(list)
        for question in release:
            by_cell[question.cell].append(question)
        for cell, members in sorted(by_cell.items()):
            # Twins share their group, so that the cut leaves no half of a pair but the last.
            kept = sorted(members, key=lambda q: (hash_stably("pool", q.group), q.id))[:most]
            self.pool.questions[cell] = kept
            for question in kept:
                self._seen.add(_identify_content(question))
            self._asked |= {(question.group, question.form) for question in members}

    def add(self, plans: Iterable[QuestionPlan], alone: Container[Cell]) -> None:
        """Add facts that may be asked, but in the cells that stay alone."""
        for plan in plans:
            cell = plan.task, plan.question_type
            if not plan.rejection_reason and cell not in alone:
                self._plans[cell].append(plan)

    def plan_round(self) -> list[Ask]:
        """What to ask next; empty when every cell is full or has nothing left."""
        wanted: list[Ask] = []
        for cell in sorted(self._plans):
            if cell not in self._queue:
                ranked = sorted(self._plans[cell], key=lambda plan: hash_stably("pool", plan.group_id))
                self._plans[cell] = ranked
                self._queue[cell] = [plan for plan in ranked if plan.key not in self._asked][::-1]
            have = len(self.pool.questions.get(cell, ()))
            goal = self.most if not self._turn[cell] else min(self.most, CONCLUSIVE)
            if not self._queue[cell] and have < min(self.most, CONCLUSIVE) and self._may_ask_again(cell):
                self._turn[cell] += 1
                goal = min(self.most, CONCLUSIVE)
                self._queue[cell] = [plan for plan in self._plans[cell] if plan.key not in self._rejected][::-1]
            per_ask = 2 if cell[1] == "judgment" else 1
            queue = self._queue[cell]
            for _ in range(min(len(queue), max(0, -(-(goal - have) // per_ask)))):
                plan = queue.pop()
                if cell[1] == "multi-choice":
                    plan = replace(plan, letter=self._deal_letter(plan))
                wanted.append((self._turn[cell], plan))
        return wanted

    def _may_ask_again(self, cell: Cell) -> bool:
        return cell[1] != "open-ended" and self._turn[cell] < _AGAIN

    def take(self, answered: Iterable[tuple[Ask, tuple[Question, ...]]]) -> None:
        """Take what came of a round, in its order. The letter of a rejected question goes to the next of its source."""
        for (turn, plan), questions in answered:
            cell = (plan.task, plan.question_type)
            new = [question for question in questions if _identify_content(question) not in self._seen]
            if not questions:
                self._rejected.add(plan.key)
            if len(new) < len(questions) or not questions:
                if plan.letter is not None:
                    self._letters[plan.task, plan.source].append(plan.letter)
                continue
            self._seen |= {_identify_content(question) for question in new}
            self.pool.questions.setdefault(cell, []).extend(new)
            if turn:
                self.pool.asked_again[cell] += len(new)

    def _deal_letter(self, plan: QuestionPlan) -> int:
        key = (plan.task, plan.source)  # a task has one number of options
        if not self._letters[key]:
            block = str(self._blocks[key])
            self._blocks[key] += 1
            dealt = rng_for(self.recipe.seed, "pool", "letters", *key, block).permutation(plan.places)
            self._letters[key] = [int(letter) for letter in dealt]
        return self._letters[key].pop()


def _identify_content(question: Question) -> tuple[str, QuestionType, tuple[str, ...]]:
    """What makes another question of the same truth: its options, or the numbers and words of a claim."""
    if question.form == "multi-choice":
        return question.group, question.form, tuple(sorted(question.options))
    numbers = _NUMBER.findall(question.question) or [question.question]
    return question.group, question.form, (str(question.truth), *numbers)
