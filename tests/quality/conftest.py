"""Finished rows of the small room, with their images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.facts_at_hand import ask_facts_at_hand
from tests.quality.invariance_room import Room, measured
from tests.shared import recall_once
from tests.small_room import small_view
from vgbench_gen.core.types import Fact, Item
from vgbench_gen.pipeline.measure import measure_task, store_pictures
from vgbench_gen.pipeline.plan import choose, list_forms
from vgbench_gen.pipeline.question import ask_as_planned, make_question
from vgbench_gen.pipeline.recipe import Limits, Recipe
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.tasks.base import tasks

NAMES = ("metric_depth", "relative_depth", "homography_to_image", "homography_to_matrix", "point_tracking")


@dataclass(frozen=True)
class Rows:
    items: list[Item]
    media: MediaStore

    def images(self, item: Item) -> list[bytes]:
        return [self.media.get(name) for name in item.images]

    def one(self, task: str, form: str) -> Item:
        return next(item for item in self.items if (item.task, item.question_type) == (task, form))


def compose_rows(folder: Path, distractor_seed: int = 0) -> Rows:
    recipe = Recipe(tasks=NAMES, facts_per_scene=4, distractor_seed=distractor_seed, limits=Limits(forms_per_fact=3))
    view = small_view()
    media = MediaStore(folder / "media")
    chosen = [tasks[name].with_gates(recipe.gates) for name in NAMES]
    facts = [fact for task in chosen for fact in measure_task(task, view, recipe.seed, recipe.facts_per_scene)[0]]
    return write_rows(folder, store_pictures(facts, view, media), media, recipe)


def write_rows(folder: Path, facts: list[Fact], media: MediaStore, recipe: Recipe) -> Rows:
    by_name = {name: tasks[name].with_gates(recipe.gates) for name in dict.fromkeys(fact.task for fact in facts)}
    cache = PictureCache(folder / "pictures.sqlite", media)
    items: list[Item] = []
    known = list(by_name.values())
    for plan in choose(ask_facts_at_hand(facts, known, recipe), recipe, list_forms(known)).chosen:
        task = by_name[plan.task]
        fact, options = ask_as_planned(facts[plan.row], plan, task, recipe)
        made = make_question(fact, options, plan, task, recipe)
        items += [replace(row, index=len(items) + n) for n, row in enumerate(question_rows(made, recipe, cache))]
    cache.close()
    return Rows(items, media)


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return recall_once(tmp_path_factory, "rows", compose_rows)


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return recall_once(tmp_path_factory, "room", measured)


@pytest.fixture(scope="session")
def all_rows(room: Room, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Rows of every task in every form, some from both of their sides."""

    def make(folder: Path) -> Rows:
        facts = [fact for name in sorted(room.facts) for fact in room.facts[name]]
        return write_rows(folder, facts, room.media, Recipe(pairs=0.6, limits=Limits(forms_per_fact=3)))

    return recall_once(tmp_path_factory, "all_rows", make)
