"""COMPOSE: facts on disk to a dataset on disk. No raw scene is opened; rerun at will."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.draws import choose_draws, write_draws
from vgbench_gen.pipeline.measure import SceneReport, list_tasks, name_tasks, shard_path
from vgbench_gen.pipeline.plan import Plan, difficulty_counts, letter_counts, pair_counts
from vgbench_gen.pipeline.question import QuestionRejectedError, QuestionSettings, ask_as_planned, make_question
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.pipeline.shortfall import QuotasNotMet, Shortfall, count_missing_items, find_shortfalls, give_advice
from vgbench_gen.pipeline.trials import TrialJob, feasible_plan, list_forms, read_facts, read_plans, try_questions
from vgbench_gen.pipeline.words import load_wordings
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.provenance import rows_fingerprint
from vgbench_gen.store.schema import Row, make_item_row
from vgbench_gen.store.shards import write_item_rows

FEW = 400  # trials that this process does itself
CHUNK = 128  # most questions per job, so that one rich scene does not keep a single worker busy at the end


@dataclass(frozen=True, slots=True)
class _WriteJob:
    """Questions about one scene to write; crosses process borders."""

    out: Path
    shard: Path
    plans: tuple[QuestionPlan, ...]
    recipe: Recipe
    remember: bool
    """Whether the names of drawn pictures are kept in a file, which only the processes of one machine may share."""


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
    unpaired: dict[str, int] = field(default_factory=dict)
    """Facts that could not stand in a pair, per "task/form/source/reason"."""
    short: list[Shortfall] = field(default_factory=list)
    """Totals of the recipe that are not met."""
    advice: list[str] = field(default_factory=list)
    wording: dict[str, Any] = field(default_factory=dict)
    """Which bank was drawn from, its digest and what of it was left out; empty without one."""


def list_fact_shards(out: Path) -> list[Path]:
    """All fact shards of a build in a fixed order.

    Raises:
        DatasetError: nothing was measured there.
    """
    paths = sorted((out / "facts").glob("*/*.parquet"), key=lambda path: (path.parent.name, path.name))
    if not paths:
        raise DatasetError(
            f"{out}: found no facts; expected facts/<dataset>/<scene>.parquet. Run `vgbench measure` first."
        )
    return paths


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
        out: the build folder.
        recipe: what to make.
        reports: of the scenes whose facts are used; those of other scenes in the folder are left alone.
        engine: where the work runs.
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
    by_shard = {path: read_plans(path, tasks, recipe) for path in shards}
    plans = [entry for path in shards for entry in by_shard[path]]
    shard_of = {(entry.source, entry.scene_id): path for path, members in by_shard.items() for entry in members}
    plans = choose_draws(plans, shard_of, recipe, QuestionSettings.of(recipe), engine, out)
    plan = feasible_plan(
        plans, recipe, list_forms(tasks), lambda batch: _try_batch(batch, shard_of, recipe, engine, out)
    )
    report = _report_on(plan, plans, reports, recipe)
    report.wording = wording
    if report.short and not allow_short:
        raise QuotasNotMet(count_missing_items(plan), plan.targets.total, report.short, report.advice)
    unasked = Counter(f"{entry.cell}/{reason}" for entry, reason in plan.unchosen)
    rows: list[Row] = []
    for entry, made in _write_questions(out, plan.chosen, shard_of, recipe, engine, progress):
        if isinstance(made, str):
            unasked[f"{entry.cell}/{made}"] += 1
            continue
        for row in made:
            rows.append({**row, "index": len(rows), "index_origin": len(rows)})
    write_draws(out, plans)
    write_item_rows(out / "items", rows, MediaStore(out / "media"))
    report.total = len(rows)
    report.fingerprint = rows_fingerprint(rows)
    cells = Counter(f"{row['task']}/{row['question_type']}/{row['source']}" for row in rows)
    report.items = dict(sorted(cells.items()))
    report.unasked = dict(sorted(unasked.items()))
    return report


def _report_on(
    plan: Plan, plans: Sequence[QuestionPlan], reports: Sequence[SceneReport], recipe: Recipe
) -> ComposeReport:
    """What a plan gives, and which totals it leaves short."""
    report = ComposeReport(letters=letter_counts(plan.chosen), difficulty=difficulty_counts(plan.chosen))
    report.pairs = pair_counts(plan.chosen)
    sets = [(entry, entry.options.fallback) for entry in plan.chosen if entry.options is not None]
    fallbacks = Counter(f"{entry.task}/{entry.source}/{reason}" for entry, reason in sets if reason)
    report.fallbacks = dict(sorted(fallbacks.items()))
    unpaired = Counter(f"{entry.cell}/{entry.unpaired_reason}" for entry in plan.unpaired)
    report.unpaired = dict(sorted(unpaired.items()))
    report.short = find_shortfalls(plan, recipe)
    if report.short:
        report.advice = give_advice(report.short, plan, plans, reports, recipe)
    return report


def _try_batch(
    batch: Sequence[QuestionPlan],
    shard_of: Mapping[tuple[str, str], Path],
    recipe: Recipe,
    engine: Engine,
    out: Path,
) -> list[QuestionPlan]:
    """Try a batch that is sorted by scene, each scene's questions in one job."""
    jobs = [
        TrialJob(shard_of[scene], recipe, tuple(members))
        for scene, members in itertools.groupby(batch, _identify_scene)
    ]
    # Workers take longer to start than a few trials take.
    where = engine if len(batch) > FEW else Engine()
    outcomes = dict(run(try_questions, jobs, where, [out]))
    return [outcome for k in range(len(jobs)) for outcome in outcomes[k]]


def _write_questions(
    out: Path,
    chosen: Sequence[QuestionPlan],
    shard_of: Mapping[tuple[str, str], Path],
    recipe: Recipe,
    engine: Engine,
    progress: Callable[[int, int], None],
) -> Iterator[tuple[QuestionPlan, list[Row] | str]]:
    """Each plan with its rows, or with the reason why there are none, in the order of the plan, whoever wrote them.

    Jobs go by scene and frame, so that facts are read and a base image is decoded for all of its questions at once.
    """
    order = sorted(range(len(chosen)), key=lambda n: (_identify_scene(chosen[n]), chosen[n].frame))
    chunks: list[tuple[int, ...]] = []
    for _, group in itertools.groupby(order, key=lambda n: _identify_scene(chosen[n])):
        members = tuple(group)
        chunks += [members[k : k + CHUNK] for k in range(0, len(members), CHUNK)]
    chunks.sort(key=len, reverse=True)  # the largest first, so that no worker starts one when the others are done
    jobs = [
        _WriteJob(
            out,
            shard_of[_identify_scene(chosen[chunk[0]])],
            tuple(chosen[n] for n in chunk),
            recipe,
            not engine.address,
        )
        for chunk in chunks
    ]
    rows: dict[int, list[Row] | str] = {}
    for index, outcomes in run(_write_job, jobs, engine, [out]):
        rows.update(zip(chunks[index], outcomes, strict=True))
        progress(len(rows), len(chosen))
    for n, plan in enumerate(chosen):
        yield plan, rows[n]


def _identify_scene(plan: QuestionPlan) -> tuple[str, str]:
    return plan.source, plan.scene_id


def _write_job(job: _WriteJob) -> list[list[Row] | str]:
    # Rows rather than items: their evidence is text, which takes an eighth of the memory of the objects in it.
    media = MediaStore(job.out / "media")
    cache = PictureCache(job.out / "pictures.sqlite" if job.remember else None, media)
    by_name, settings = name_tasks(job.recipe), QuestionSettings.of(job.recipe)
    facts = read_facts(job.shard, {plan.row for plan in job.plans})
    outcomes: list[list[Row] | str] = []
    with media.batch():
        for plan in job.plans:
            task = by_name[plan.task]
            fact, options = ask_as_planned(facts[plan.row], plan, task)
            try:
                made = make_question(fact, options, plan, task, settings, check=False)  # its trial checked it
            except QuestionRejectedError as error:
                outcomes.append(error.reason)
            else:
                outcomes.append([make_item_row(row) for row in question_rows(made, settings, cache)])
    cache.close()
    return outcomes
