"""Facts on disk: their questions without their evidence, single facts, and work on them scene by scene."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import format_canonical_json, hash_stably
from vgbench_gen.core.types import Fact, QuestionType
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.measure import name_tasks, shard_path
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.store.files import name_scene_file
from vgbench_gen.store.schema import FACTS
from vgbench_gen.store.shards import check_schema, damage_error, iterate_rows, open_parquet
from vgbench_gen.tasks.base import Task

Outcome = TypeVar("Outcome")

FEW = 400  # questions that are asked or drawn sooner than workers start; pictures take longer
CHUNK = 128  # most questions per job, so that one rich scene does not keep a single worker busy at the end
_IN_POOL = "candidates.list.element"
_PLAN_COLUMNS = (
    "task", "task_version", "ask", "dataset", "scene_id", "split", "key", "frame_ids", "truth",
    f"{_IN_POOL}.key", f"{_IN_POOL}.value.list.element", f"{_IN_POOL}.frame_ids.list.element",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FactsJob:
    """Questions about facts of one scene; crosses process borders."""

    folder: Path
    """The build, with `facts/` and `media/`."""
    recipe: Recipe
    plans: tuple[QuestionPlan, ...]
    shares_disk: bool
    """Whether all processes run on this machine, so that they may share an SQLite file."""

    def list_questions(self) -> Iterator[tuple[Fact, QuestionPlan, Task, Recipe]]:
        """Each plan with its fact, task and recipe; what a model proposes is in the place of the fact's own pool.

        Raises:
            DatasetError: as `read_facts`.
        """
        tasks, first = name_tasks(self.recipe), self.plans[0]
        path = shard_path(self.folder, "facts", first.source, first.scene_id)
        facts = read_facts(path, {plan.row for plan in self.plans})
        for plan in self.plans:
            fact = facts[plan.row]
            if plan.proposed:
                fact = replace(fact, candidates=(fact.truth_candidate, *plan.proposed), truth=0)
            yield fact, plan, tasks[plan.task], self.recipe


def map_plans(
    work: Callable[[FactsJob], Sequence[Outcome]],
    plans: Sequence[QuestionPlan],
    folder: Path,
    recipe: Recipe,
    engine: Engine,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    few: int = 0,
) -> list[Outcome]:
    """What `work` gives for each question, in their order, whoever did it.

    Jobs go by scene and frame, so that facts are read and an image is decoded for all of its questions at once; at most
    `CHUNK` questions make a job.

    Args:
        work: gives an outcome per question of a job; importable by name in another process.
        few: questions that this process works on itself, where workers would take longer to start.
    """
    order = sorted(range(len(plans)), key=lambda k: (plans[k].source, plans[k].scene_id, plans[k].frame))
    chunks: list[list[int]] = []
    for _, group in itertools.groupby(order, key=lambda k: (plans[k].source, plans[k].scene_id)):
        members = list(group)
        chunks += [members[k : k + CHUNK] for k in range(0, len(members), CHUNK)]
    chunks.sort(key=len, reverse=True)  # the largest first, so that no worker starts it when the others are done
    jobs = [FactsJob(folder, recipe, tuple(plans[k] for k in chunk), not engine.address) for chunk in chunks]
    outcomes: dict[int, Outcome] = {}
    for index, found in run(work, jobs, engine if len(plans) > few else Engine(), [folder]):
        outcomes.update(zip(chunks[index], found, strict=True))
        progress(len(outcomes), len(plans))
    return [outcomes[k] for k in range(len(plans))]


def list_fact_shards(out: Path) -> list[Path]:
    """All fact shards of a build in a fixed order.

    Raises:
        DatasetError: nothing was measured there.
    """
    paths = sorted((out / "facts").glob("*/*.parquet"), key=lambda path: (path.parent.name, path.name))
    if not paths:
        raise DatasetError(
            f"{out}: found no facts; expected facts/<dataset>/<scene>.parquet. Run `vgbench build` first."
        )
    return paths


def read_plans(path: Path, tasks: Sequence[Task], recipe: Recipe) -> list[QuestionPlan]:
    """Every fact of these tasks in every form of its task, unchecked; only the columns that plans need are read.

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
                plans += make_plans(raw, row, by_name[raw["task"]], recipe)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            raise damage_error(path, error) from error
    return plans


def make_plans(raw: Mapping[str, Any], row: int, task: Task, recipe: Recipe) -> list[QuestionPlan]:
    """A fact, given as the row of its shard at the place `row`, in every form of its task."""
    pool = raw["candidates"]
    truth = pool[raw["truth"]]
    version, value_json = str(raw["task_version"]), format_canonical_json(truth["value"])
    names = (raw["task"], version, raw["ask"], raw["dataset"], raw["scene_id"], raw["key"], truth["key"], value_json)
    group = hash_stably(*names, *(candidate["key"] for candidate in pool), size=12)
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


def read_facts(path: Path, rows: set[int]) -> dict[int, Fact]:
    """Some facts of a shard by their place in it; the others are not unpacked.

    Raises:
        DatasetError: the shard cannot be read, or holds what no task made.
    """
    with open_parquet(path) as file:
        check_schema(path, file, FACTS)
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
