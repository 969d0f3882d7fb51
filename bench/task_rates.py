"""Facts per second of each task on one core, drafts and second route included, pixels already decoded."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from pathlib import Path

import cv2

from bench.table import Row
from vgbench_gen.pipeline.build import find_scenes
from vgbench_gen.pipeline.measure import chosen_tasks, measure_task
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.scenes.base import loaders
from vgbench_gen.scenes.view import SceneView


def rows(root: Path, scratch: Path) -> list[Row]:
    """One row per task."""
    cv2.setNumThreads(1)
    recipe = load_recipe("default")
    spent: defaultdict[str, float] = defaultdict(float)
    facts: Counter[str] = Counter()
    drafts: Counter[str] = Counter()
    for ref in find_scenes(root):
        with loaders[ref.dataset].open(ref) as scene:
            view = SceneView(scene, recipe.gates)
            if len(view.frames) > 1:
                view.mutual_overlap  # noqa: B018 - the pair table is shared by all tasks
            for task in chosen_tasks(recipe):
                began = time.perf_counter()
                kept, dropped = measure_task(task, view, recipe.seed, recipe.facts_per_scene)
                spent[task.name] += time.perf_counter() - began
                facts[task.name] += len(kept)
                drafts[task.name] += len(kept) + len(dropped)
            view.close()
    return [
        Row(
            f"facts of {name} per second",
            f"{facts[name] / spent[name]:.1f}",
            "",
            f"{facts[name]} facts of {drafts[name]} drafts in {spent[name]:.2f} s",
        )
        for name in sorted(spent)
    ]
