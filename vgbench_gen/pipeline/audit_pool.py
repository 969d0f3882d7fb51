"""The audit pool: the dataset's own questions, topped up with those that could be asked as well and were not.

A few hundred questions leave an interval too wide to judge (`docs/validity.md#when-a-statistic-fails`). So
facts that the release did not ask are asked too, in words only: no picture is drawn. Folds go by scene, so no truth
stands on both sides of a split.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import QuestionType
from vgbench_gen.executors import Engine
from vgbench_gen.pipeline.ask import ask_facts
from vgbench_gen.pipeline.facts import FEW, FactsJob, map_plans, read_plans
from vgbench_gen.pipeline.measure import list_tasks, shard_path
from vgbench_gen.pipeline.plan import deal_letters
from vgbench_gen.pipeline.question import QuestionRejectedError, ask_as_planned, make_question
from vgbench_gen.pipeline.question_plan import QuestionPlan, read_questions
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.quality.questions import Question, group_by_cell, read_question
from vgbench_gen.store.pictures import Picture

POOL = 1200  # most questions of a task and form
_CHOSEN = ("cell_full", "asked_otherwise")  # reasons of questions that passed every check

Cell = tuple[str, QuestionType]


class _DescribedPictures:
    """Names pictures by what they show and draws nothing: equal descriptions are equal pictures."""

    def name(self, picture: Picture) -> str:
        return hash_stably("picture", picture.key(), size=16) if picture.ops else picture.base


def fill_pool(
    folder: Path,
    recipe: Recipe,
    release: Iterable[Question],
    scenes: Iterable[tuple[str, str]],
    most: int = POOL,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    alone: Container[Cell] = (),
) -> tuple[dict[Cell, list[Question]], float]:
    """(questions per task and form, at most `most` and the release's own first; CPU seconds that asking took).

    Args:
        folder: of the build, with `facts/`.
        recipe: that it was built with.
        release: the questions of the dataset.
        scenes: (source, id) whose facts may be asked; others in the folder are left alone.
        progress: called with (questions asked, questions wanted).
        alone: cells that get no more questions, because theirs were made otherwise than the recipe says.

    Raises:
        DatasetError: a file cannot be read.
    """
    engine, release = engine or Engine(), list(release)
    asked = {(question.group, question.form) for question in release}
    # Twins share their group, so that the cut leaves no half of a pair but the last.
    pool = {
        cell: sorted(members, key=lambda q: (hash_stably("pool", q.group), q.id))[:most]
        for cell, members in group_by_cell(release).items()
    }
    wanted: list[QuestionPlan] = []
    room = {cell: most - len(kept) for cell, kept in pool.items()}
    unasked = _list_unasked(folder, recipe, scenes, engine)
    for plan in sorted(unasked, key=lambda p: hash_stably("pool", p.group_id, p.question_type)):
        cell = plan.task, plan.question_type
        if plan.key not in asked and cell not in alone and room.setdefault(cell, most) > 0:
            room[cell] -= 2 if plan.question_type == "judgment" else 1
            wanted.append(plan)
    wanted = deal_letters(wanted, recipe.seed)
    found = map_plans(_ask_job, wanted, folder, recipe, engine, progress, few=FEW)
    for plan, (questions, _) in zip(wanted, found, strict=True):
        pool.setdefault((plan.task, plan.question_type), []).extend(questions)
    return pool, sum(seconds for _, seconds in found)


def _list_unasked(
    folder: Path, recipe: Recipe, scenes: Iterable[tuple[str, str]], engine: Engine
) -> list[QuestionPlan]:
    """Questions that passed every check and were not chosen; where the folder does not say, all that pass them now."""
    known, places = read_questions(folder, recipe.choosing), set(scenes)
    if known is not None:
        kept = [plan for plan, outcome in known if outcome in _CHOSEN and (plan.source, plan.scene_id) in places]
        return [replace(plan, places=recipe.count_options(plan.task)) for plan in kept]
    shards = (shard_path(folder, "facts", source, scene_id) for source, scene_id in sorted(places))
    plans = [plan for path in shards if path.is_file() for plan in read_plans(path, list_tasks(recipe), recipe)]
    found = ask_facts([replace(plan, counterpart_kind="") for plan in plans], folder, recipe, engine)
    return [plan for plan in found if not plan.rejection_reason]


def _ask_job(job: FactsJob) -> list[tuple[tuple[Question, ...], float]]:
    """Per question its texts, none where it cannot be asked, and the CPU seconds that it took."""
    found: list[tuple[tuple[Question, ...], float]] = []
    for fact, plan, task, recipe in job.list_questions():
        started = time.process_time()
        questions: tuple[Question, ...] = ()
        with suppress(QuestionRejectedError):
            there, options = ask_as_planned(fact, plan, task, recipe)
            made = make_question(there, options, plan, task, recipe, check=False)
            rows = question_rows(made, recipe, _DescribedPictures(), with_noise=False)
            questions = tuple(read_question(row) for row in rows)
        found.append((questions, time.process_time() - started))
    return found
