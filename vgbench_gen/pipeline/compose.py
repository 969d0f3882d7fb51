"""COMPOSE: facts on disk to a dataset on disk. No raw scene is opened; rerun at will."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item, QuestionType
from vgbench_gen.pipeline.executors import Engine, run
from vgbench_gen.pipeline.known import KnownFacts, knowing_tasks, learnt
from vgbench_gen.pipeline.measure import SceneReport, chosen_tasks, shard_path
from vgbench_gen.pipeline.plan import Card, Chosen, difficulty_counts, letter_counts, pair_counts, planned
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.shortfall import QuotasNotMet, Shortfall, advice, missing_items, shortfalls
from vgbench_gen.pipeline.survey import Outcome, SurveyJob, Trial, cards_of, facts_at, forms_of, settled, survey
from vgbench_gen.pipeline.words import worded
from vgbench_gen.pipeline.write import Refused, Wording, write
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.provenance import dataset_fingerprint
from vgbench_gen.store.shards import write_items

FEW = 400  # trials that this process does itself
CHUNK = 128  # most questions per job, so that one rich scene does not keep a single worker busy at the end


@dataclass(frozen=True, slots=True)
class _Job:
    """Questions about one scene.

    shard: its facts. known: see `pipeline.known`. remember: keep the names of drawn pictures in a file, which only the
    processes of one machine may share.
    """

    out: Path
    shard: Path
    entries: tuple[Chosen, ...]
    recipe: Recipe
    known: KnownFacts
    remember: bool


@dataclass(slots=True)
class ComposeReport:
    """What composing gave.

    items: per "task/form/source". unasked: per "task/form/source/reason". letters: per "task/source". difficulty: items
    per level, per "task/form". pairs: consistency pairs per "task/form"; unpaired: facts that could not stand in one,
    per "task/form/source/reason". short: totals of the recipe that are not met; advice: what would help, for a person.
    wording: which bank was drawn from, its digest and what of it was left out; empty without one.
    """

    fingerprint: str = ""
    total: int = 0
    items: dict[str, int] = field(default_factory=dict)
    unasked: dict[str, int] = field(default_factory=dict)
    letters: dict[str, list[int]] = field(default_factory=dict)
    difficulty: dict[str, dict[str, int]] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)
    unpaired: dict[str, int] = field(default_factory=dict)
    short: list[Shortfall] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    wording: dict[str, Any] = field(default_factory=dict)


def fact_shards(out: Path) -> list[Path]:
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
    tasks = chosen_tasks(recipe)
    recipe, wording = worded(recipe, tasks)
    wanted = {shard_path(out, "facts", report.dataset, report.scene_id) for report in reports}
    shards = [path for path in fact_shards(out) if path in wanted]
    by_shard = {path: cards_of(path, tasks, recipe) for path in shards}
    cards = [card for path in shards for card in by_shard[path]]
    shard_of = {(card.source, card.scene_id): path for path, members in by_shard.items() for card in members}
    known = learnt(shards, recipe)
    plan = settled(cards, recipe, forms_of(tasks), lambda batch: _attempts(batch, shard_of, recipe, known, engine, out))
    report = ComposeReport(letters=letter_counts(plan.chosen), difficulty=difficulty_counts(plan.chosen))
    report.wording = wording
    report.pairs = pair_counts(plan.chosen)
    unpaired = Counter(f"{u.task}/{u.question_type}/{u.source}/{u.reason}" for u in plan.unpaired)
    report.unpaired = dict(sorted(unpaired.items()))
    report.short = shortfalls(plan, recipe)
    if report.short:
        report.advice = advice(report.short, plan, cards, reports, recipe)
        if not allow_short:
            raise QuotasNotMet(missing_items(plan), plan.targets.total, report.short, report.advice)
    unasked = Counter(f"{u.task}/{u.question_type}/{u.source}/{u.reason}" for u in plan.unchosen)
    items: list[Item] = []
    for outcome in _written(out, plan.chosen, shard_of, recipe, known, engine, progress):
        if isinstance(outcome, Refused):
            unasked[f"{outcome.task}/{outcome.question_type}/{outcome.source}/{outcome.reason}"] += 1
        else:
            items.append(replace(outcome, index=len(items), index_origin=len(items)))
    write_items(out / "items", items, MediaStore(out / "media"))
    report.total = len(items)
    report.fingerprint = dataset_fingerprint(items)
    report.items = dict(sorted(Counter(f"{i.task}/{i.question_type}/{i.source}" for i in items).items()))
    report.unasked = dict(sorted(unasked.items()))
    return report


def _attempts(
    batch: Sequence[tuple[Card, QuestionType]],
    shard_of: Mapping[tuple[str, str], Path],
    recipe: Recipe,
    known: KnownFacts,
    engine: Engine,
    out: Path,
) -> list[Outcome]:
    """Outcomes of a batch that is sorted by scene, each scene's in one job."""
    jobs = []
    for scene, members in itertools.groupby(batch, key=lambda pair: (pair[0].source, pair[0].scene_id)):
        trials = tuple(Trial(card.row, card.group_id, form) for card, form in members)
        jobs.append(SurveyJob(shard_of[scene], recipe, trials, known))
    # Workers take longer to start than a few trials take.
    where = engine if len(batch) > FEW else Engine()
    outcomes = dict(run(survey, jobs, where, [out]))
    return [outcome for k in range(len(jobs)) for outcome in outcomes[k]]


def _written(
    out: Path,
    chosen: Sequence[Chosen],
    shard_of: Mapping[tuple[str, str], Path],
    recipe: Recipe,
    known: KnownFacts,
    engine: Engine,
    progress: Callable[[int, int], None],
) -> Iterator[Item | Refused]:
    """Rows and refusals in the order of the plan, whoever wrote them.

    Jobs go by scene and frame, so that facts are read and a base image is decoded for all of its questions at once.
    """
    order = sorted(range(len(chosen)), key=lambda n: (_scene(chosen[n]), chosen[n].card.frame))
    chunks: list[tuple[int, ...]] = []
    for _, members in itertools.groupby(order, key=lambda n: _scene(chosen[n])):
        chunks += _batched(list(members))
    chunks.sort(key=len, reverse=True)  # the largest first, so that no worker starts one when the others are done
    jobs = [
        _Job(
            out, shard_of[_scene(chosen[chunk[0]])], tuple(chosen[n] for n in chunk), recipe, known, not engine.address
        )
        for chunk in chunks
    ]
    rows: dict[int, list[Item] | Refused] = {}
    for index, outcomes in run(_write_chunk, jobs, engine, [out]):
        rows.update(zip(chunks[index], outcomes, strict=True))
        progress(len(rows), len(chosen))
    for n in range(len(chosen)):
        outcome = rows[n]
        yield from [outcome] if isinstance(outcome, Refused) else outcome


def _batched(members: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(members[k : k + CHUNK]) for k in range(0, len(members), CHUNK)]


def _scene(entry: Chosen) -> tuple[str, str]:
    return entry.card.source, entry.card.scene_id


def _write_chunk(job: _Job) -> list[list[Item] | Refused]:
    media = MediaStore(job.out / "media")
    cache = PictureCache(job.out / "pictures.sqlite" if job.remember else None, media)
    by_name = knowing_tasks(job.recipe, job.known)
    wording = Wording.of(job.recipe)
    facts = facts_at(job.shard, {entry.card.row for entry in job.entries})
    with media.batch():
        outcomes = []
        for entry in job.entries:
            task = by_name[entry.card.task]
            outcomes.append(write(planned(entry, facts[entry.card.row], task), task, cache, wording))
    cache.close()
    return outcomes
