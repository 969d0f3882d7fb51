"""Choosing 100,000 questions of VGBench's kinds among five times as many."""

from __future__ import annotations

import resource
import time

import numpy as np

from bench.session import Session
from bench.table import Row
from vgbench_gen.pipeline.plan import choose
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import NoiseRecord

ITEMS = 100_000
_SCENES = 68  # that give 6,000 items
_SOURCES = ("scannet", "scannetpp", "ca1m", "wildrgbd")


def rows(session: Session) -> list[Row]:
    """One row; the plans are made up, as only their numbers matter here."""
    rng, recipe = np.random.default_rng(0), load_recipe("vgbench")
    times = -(-ITEMS // sum(sum(forms.values()) for forms in recipe.items.values()))
    plans = [
        QuestionPlan(
            name, _SOURCES[scene % 4], "val", f"scene{scene}", f"{name}/{scene}/{k}", form, k,
            noise=(NoiseRecord(kept=1.0, draws=200, lead=float(rng.random())),),
            value=float(np.exp(rng.normal())), frame=str(k),
            counterpart_kind="" if form == "judgment" else "swap",
        )
        for name, forms in recipe.items.items()
        for scene in range(times * _SCENES)
        for k in range(recipe.find_most_facts(name))
        for form in tasks[name].formats
        if forms.get(form)
    ]  # fmt: skip
    items = {name: {form: times * count for form, count in forms.items()} for name, forms in recipe.items.items()}
    recipe = recipe.model_copy(update={"items": items, "sources": {}, "only_from": {}})
    began = time.process_time()
    chosen = len(choose(plans, recipe, {name: tasks[name].formats for name in items}).chosen)
    spent = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    beside = f"{chosen:,} of {len(plans):,} questions in {spent:.1f} s of processor time; {peak:.2f} GB in all"
    return [Row(f"choosing {ITEMS:,} items", spent, "s", beside, at_most=60)]
