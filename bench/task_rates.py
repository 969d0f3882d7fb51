"""Facts per second of each task per core, and finished two-view items with their pictures; pixels decoded before."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from pathlib import Path

from bench.session import Session
from bench.table import Row
from tests.facts_at_hand import ask_facts_at_hand
from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import Fact
from vgbench_gen.pipeline.measure import list_tasks, measure_task, store_pictures
from vgbench_gen.pipeline.plan import choose, list_forms
from vgbench_gen.pipeline.question import ask_as_planned, make_question
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.scenes.base import loaders
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.tasks.base import Task, tasks

TWO_VIEWS = ("point_tracking", "relative_pose", "view_after_motion")
SCENES = 12  # at most; rates do not depend on how many


def rows(session: Session) -> list[Row]:
    """One row for two-view items, one per task for facts."""
    recipe = session.recipe
    spent: defaultdict[str, float] = defaultdict(float)
    facts: Counter[str] = Counter()
    drafts: Counter[str] = Counter()
    items, finished_s = 0, 0.0
    every = max(1, len(session.refs) // SCENES)
    for number, ref in enumerate(session.refs[::every]):
        try:
            scene = loaders[ref.dataset].open(ref)
        except SceneError:
            continue
        with scene:
            view = SceneView(scene, recipe.gates)
            began = time.process_time()
            if len(view.frames) > 1:
                view.mutual_overlap  # noqa: B018 - the pair table is shared by all tasks
            finished_s += time.process_time() - began
            two_views: list[Fact] = []
            for task in list_tasks(recipe):
                began = time.process_time()
                kept, dropped = measure_task(task, view, recipe.seed, recipe.find_most_facts(task.name))
                task_s = time.process_time() - began
                spent[task.name] += task_s
                facts[task.name] += len(kept)
                drafts[task.name] += len(kept) + len(dropped)
                if task.name in TWO_VIEWS:
                    finished_s += task_s
                    two_views += kept
            began = time.process_time()
            items += _finished(two_views, view, recipe, session.scratch / f"rates-{number}")
            finished_s += time.process_time() - began
            view.close()
    beside = f"{items} of {', '.join(TWO_VIEWS)} in {finished_s:.2f} s: pair tables, facts, words, pictures"
    made = [Row("two-view items with images", items / finished_s, "/s", beside, at_least=25)] if items else []
    return made + [
        Row(
            f"facts of {name}",
            facts[name] / spent[name],
            "/s",
            f"{facts[name]} facts of {drafts[name]} drafts in {spent[name]:.2f} s",
        )
        for name in sorted(spent)
    ]


def kind_rows(session: Session) -> list[Row]:
    """One row: all kinds there are against the ten of the paper, on the scene with the most labelled objects."""
    best: tuple[int, float, float, str] = (-1, 0.0, 0.0, "")
    for ref in (ref for ref in session.refs if ref.dataset in ("scannet", "scannetpp")):
        with loaders[ref.dataset].open(ref) as scene:
            labelled = len({item.label for item in scene.objects})
            if labelled <= best[0]:
                continue
            view, spent = SceneView(scene, session.recipe.gates), {True: 0.0, False: 0.0}
            view.mutual_overlap  # noqa: B018 - shared by all
            for task in tasks.values():
                began = time.process_time()
                measure_task(task.with_gates(session.recipe.gates), view, 0, session.recipe.find_most_facts(task.name))
                spent[task.by_default] += time.process_time() - began
            best = (labelled, spent[True], spent[False], f"{scene.id}, {len(view.frames)} keyframes, {labelled} labels")
            view.close()
    _, ten_s, other_s, where = best
    if not ten_s:
        return []
    beside = f"{ten_s:.1f} s and {other_s:.1f} s more; {where}"
    name = f"measuring all {len(tasks.names())} kinds against the ten"
    return [Row(name, 1 + other_s / ten_s, "x", beside, at_most=2.5)]


def _finished(facts: list[Fact], view: SceneView, recipe: Recipe, folder: Path) -> int:
    """Items written from facts, every picture drawn."""
    media = MediaStore(folder / "media")
    cache = PictureCache(folder / "pictures.sqlite", media)
    tasks: dict[str, Task] = {task.name: task for task in list_tasks(recipe) if task.name in TWO_VIEWS}
    free = Recipe(seed=recipe.seed, gates=recipe.gates, strategy=recipe.strategy)
    drawn = store_pictures(facts, view, media)
    items = 0
    with media.batch():
        known = list(tasks.values())
        for plan in choose(ask_facts_at_hand(drawn, known, free), free, list_forms(known)).chosen:
            task = tasks[plan.task]
            fact, options = ask_as_planned(drawn[plan.row], plan, task, free)
            made = make_question(fact, options, plan, task, free, check=False)
            items += len(question_rows(made, free, cache))
    cache.close()
    return items
