"""What the facts of a build tell a reader of the text alone, learnt once and taken along to wherever options are drawn.

It follows from the facts and the recipe, so whoever draws options later learns it anew and gets the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vgbench_gen.core.types import Fact
from vgbench_gen.pipeline.measure import list_tasks
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.store.schema import FACTS
from vgbench_gen.store.shards import iterate_rows, read_columns
from vgbench_gen.tasks.base import Task

KnownFacts = Mapping[str, Any]  # what `Task.learn` gave, by task; tasks that learn nothing are absent


def learn_from_shards(shards: Iterable[Path], recipe: Recipe) -> dict[str, Any]:
    """What the facts that the recipe may ask teach about each task that learns (`Task.learn`).

    Args:
        shards: fact shards of the build, in any order.
        recipe: that is composed; facts of sources and splits that it leaves out teach nothing.

    Raises:
        DatasetError: a shard cannot be read.
    """
    learning = {task.name: task for task in list_tasks(recipe) if task.learns}
    facts: dict[str, list[Fact]] = {name: [] for name in learning}
    for path in shards if learning else ():
        for fact in _read_facts(path, recipe, learning):
            facts[fact.task].append(fact)
    found = {name: task.learn(facts[name]) for name, task in learning.items()}
    return {name: known for name, known in found.items() if known is not None}


def teach_tasks(recipe: Recipe, known: KnownFacts) -> dict[str, Task]:
    """The recipe's tasks by name, which draw options for readers who know this."""
    return {task.name: task.knowing(known.get(task.name)) for task in list_tasks(recipe)}


def _read_facts(path: Path, recipe: Recipe, learning: Mapping[str, Task]) -> Iterator[Fact]:
    """Those that may be asked, each with as many candidates as its task learns from."""
    rows = {
        row
        for row, (task, dataset, split) in enumerate(read_columns(path, ("task", "dataset", "split")))
        if task in learning
        and dataset in recipe.only_from.get(task, (dataset,))
        and (not recipe.only_splits or split in recipe.only_splits)
    }
    for raw in iterate_rows([path], [column.name for column in FACTS.columns], only=rows) if rows else ():
        if learning[raw["task"]].learns == "truths":
            # Unpacking the evidence of all others takes longer than learning.
            raw = {**raw, "candidates": [raw["candidates"][raw["truth"]]], "truth": 0}
        yield FACTS.from_row(raw)
