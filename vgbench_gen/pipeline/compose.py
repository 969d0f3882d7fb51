"""COMPOSE: facts on disk to a dataset on disk: ask, choose, write. No raw scene is opened; rerun at will."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from vgbench_gen.executors import Engine
from vgbench_gen.pipeline.ask import ask_facts
from vgbench_gen.pipeline.facts import FactsJob, list_fact_shards, map_plans, read_plans
from vgbench_gen.pipeline.measure import SceneReport, list_tasks, shard_path
from vgbench_gen.pipeline.plan import choose, difficulty_counts, list_forms, pair_counts
from vgbench_gen.pipeline.question import ask_as_planned, make_question
from vgbench_gen.pipeline.question_plan import ASKED, write_questions
from vgbench_gen.pipeline.quotas import ITEMS
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.rows import count_rows, question_rows
from vgbench_gen.pipeline.shortfall import QuotasNotMet, Shortfall, find_shortfalls, give_advice
from vgbench_gen.pipeline.words import load_wordings
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.schema import Row, make_item_row
from vgbench_gen.store.shards import write_item_rows


@dataclass(slots=True)
class ComposeReport:
    """What composing gave."""

    fingerprint: str = ""
    """Digest of the rows."""
    total: int = 0
    items: dict[str, int] = field(default_factory=dict)
    """Rows per "task/form/source"."""
    unasked: dict[str, int] = field(default_factory=dict)
    """Facts that are not asked, per "task/form/source/reason"."""
    fallbacks: dict[str, int] = field(default_factory=dict)
    """Option sets of another strategy than the task's own, per "task/source/why that has none"."""
    letters: dict[str, list[int]] = field(default_factory=dict)
    """How often each letter is the answer, per "task/source"."""
    difficulty: dict[str, dict[str, int]] = field(default_factory=dict)
    """Rows per level, per "task/form"."""
    pairs: dict[str, int] = field(default_factory=dict)
    """Consistency pairs per "task/form"."""
    short: list[Shortfall] = field(default_factory=list)
    """Totals of the recipe that are not met."""
    advice: list[str] = field(default_factory=list)
    wording: dict[str, Any] = field(default_factory=dict)
    """Which bank was drawn from, its digest and what of it was left out; empty without one."""


def compose(
    out: Path,
    recipe: Recipe,
    reports: Sequence[SceneReport],
    engine: Engine | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    allow_short: bool = False,
) -> ComposeReport:
    """Choose, word, draw and write `out/items/`.

    Args:
        reports: of the scenes whose facts are used; those of other scenes in the folder are left alone.
        progress: called with (questions written, questions planned).
        allow_short: write what there is where the recipe's totals cannot be met.

    Raises:
        QuotasNotMet: the facts cannot fill the recipe; `out/items/` stays as it was.
        DatasetError: no facts, or their images are missing.
    """
    engine = engine or Engine()
    tasks = list_tasks(recipe)
    recipe, wording = load_wordings(recipe, tasks)
    wanted = {shard_path(out, "facts", report.dataset, report.scene_id) for report in reports}
    shards = [path for path in list_fact_shards(out) if path in wanted]
    plans = [entry for path in shards for entry in read_plans(path, tasks, recipe)]
    plans = ask_facts(plans, out, recipe, engine)
    plan = choose(plans, recipe, list_forms(tasks))
    report = ComposeReport(difficulty=difficulty_counts(plan.chosen), pairs=pair_counts(plan.chosen), wording=wording)
    fallbacks = Counter(f"{entry.task}/{entry.source}/{entry.fallback}" for entry in plan.chosen if entry.fallback)
    report.fallbacks = dict(sorted(fallbacks.items()))
    if short := find_shortfalls(plan, recipe):
        report.short, report.advice = short, give_advice(short, plan, plans, reports, recipe)
        if not allow_short:
            missing = plan.targets.total - sum(ITEMS[entry.question_type] for entry in plan.chosen)
            raise QuotasNotMet(missing, plan.targets.total, short, report.advice)
    written = map_plans(write_job, plan.chosen, out, recipe, engine, progress)
    rows = [{**row, "index": k, "index_origin": k} for k, row in enumerate(chain.from_iterable(written))]
    asked = [(entry, ASKED) for entry in plan.chosen if not entry.side]
    write_questions(out, [*asked, *plan.unchosen], recipe.choosing)
    write_item_rows(out / "items", rows, MediaStore(out / "media"))
    report.total = len(rows)
    for name, count in count_rows(rows).items():
        setattr(report, name, count)
    unasked = Counter(f"{entry.cell}/{reason}" for entry, reason in plan.unchosen)
    report.unasked = dict(sorted(unasked.items()))
    return report


def write_job(job: FactsJob) -> list[list[Row]]:
    """The rows of each question, which was checked when it was asked; its pictures are drawn."""
    # Rows rather than items: their evidence is text, which takes an eighth of the memory of the objects in it.
    media = MediaStore(job.folder / "media")
    cache = PictureCache(job.folder / "pictures.sqlite" if job.shares_disk else None, media)
    written: list[list[Row]] = []
    with media.batch():
        for fact, plan, task, recipe in job.list_questions():
            there, options = ask_as_planned(fact, plan, task, recipe)
            made = make_question(there, options, plan, task, recipe, check=False)
            written.append([make_item_row(row) for row in question_rows(made, recipe, cache)])
    cache.close()
    return written
