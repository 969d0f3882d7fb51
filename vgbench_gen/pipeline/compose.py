"""COMPOSE: facts on disk to a dataset on disk. No raw scene is opened; rerun at will."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Fact, Item
from vgbench_gen.pipeline.executors import run_local
from vgbench_gen.pipeline.measure import chosen_tasks
from vgbench_gen.pipeline.plan import Planned, letter_counts, plan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.write import Refused, Wording, write
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.provenance import dataset_fingerprint
from vgbench_gen.store.schema import FACTS
from vgbench_gen.store.shards import read_shard, write_items

CHUNK = 32  # questions per job: large enough to hide what a job costs, small enough to keep all workers busy to the end


@dataclass(frozen=True, slots=True)
class _Job:
    out: Path
    entries: tuple[Planned, ...]
    recipe: Recipe


@dataclass(slots=True)
class ComposeReport:
    """What composing gave.

    items: per "task/form/source". unasked: per "task/form/source/reason". letters: per "task/source".
    """

    fingerprint: str = ""
    total: int = 0
    items: dict[str, int] = field(default_factory=dict)
    unasked: dict[str, int] = field(default_factory=dict)
    letters: dict[str, list[int]] = field(default_factory=dict)


def fact_shards(out: Path) -> list[Path]:
    """All fact shards of a build in a fixed order."""
    return sorted((out / "facts").glob("*/*.parquet"), key=lambda path: (path.parent.name, path.name))


def read_facts(out: Path, scenes: set[tuple[str, str]] | None = None) -> list[Fact]:
    """All facts of a build, or of some scenes (dataset, id), in a fixed order.

    Raises:
        DatasetError: nothing was measured there.
    """
    paths = fact_shards(out)
    if not paths:
        raise DatasetError(
            f"{out}: found no facts; expected facts/<dataset>/<scene>.parquet. Run `vgbench measure` first."
        )
    facts = [fact for path in paths for fact in read_shard(path, FACTS)]
    return facts if scenes is None else [f for f in facts if (f.dataset, f.scene_id) in scenes]


def compose(
    out: Path,
    recipe: Recipe,
    workers: int = 1,
    scenes: set[tuple[str, str]] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ComposeReport:
    """Choose, word, draw and write `out/items/`.

    progress: called with (questions written, questions planned).

    Raises:
        DatasetError: no facts, or their images are missing.
    """
    report = ComposeReport()
    unasked: Counter[str] = Counter()
    planned, unchosen = plan(read_facts(out, scenes), chosen_tasks(recipe), recipe)
    for u in unchosen:
        unasked[f"{u.task}/{u.question_type}/{u.source}/{u.reason}"] += 1
    items: list[Item] = []
    for outcome in _written(out, planned, recipe, workers, progress):
        if isinstance(outcome, Refused):
            key = f"{outcome.task}/{outcome.question_type}/{outcome.source}/{outcome.reason}"
            unasked[key] += 1
        else:
            items.append(replace(outcome, index=len(items), index_origin=len(items)))
    write_items(out / "items", items, MediaStore(out / "media"))
    report.total = len(items)
    report.fingerprint = dataset_fingerprint(items)
    report.items = dict(sorted(Counter(f"{i.task}/{i.question_type}/{i.source}" for i in items).items()))
    report.unasked = dict(sorted(unasked.items()))
    report.letters = letter_counts(planned)
    return report


def _written(
    out: Path, planned: Sequence[Planned], recipe: Recipe, workers: int, progress: Callable[[int, int], None]
) -> Iterator[Item | Refused]:
    """Rows and refusals in the order of the plan, whoever wrote them.

    Jobs go by scene and frame, so that a base image is decoded for all of its pictures at once.
    """
    order = sorted(range(len(planned)), key=lambda n: _place(planned[n]))
    chunks = [order[i : i + CHUNK] for i in range(0, len(order), CHUNK)]
    jobs = [_Job(out, tuple(planned[n] for n in chunk), recipe) for chunk in chunks]
    rows: dict[int, list[Item] | Refused] = {}
    for index, outcomes in run_local(_write_chunk, jobs, workers):
        rows.update(zip(chunks[index], outcomes, strict=True))
        progress(len(rows), len(planned))
    for n in range(len(planned)):
        outcome = rows[n]
        yield from [outcome] if isinstance(outcome, Refused) else outcome


def _place(entry: Planned) -> tuple[str, str, tuple[str, ...]]:
    return entry.fact.dataset, entry.fact.scene_id, entry.fact.shown_frame_ids[:1]


def _write_chunk(job: _Job) -> list[list[Item] | Refused]:
    media = MediaStore(job.out / "media")
    cache = PictureCache(job.out / "pictures.sqlite", media)
    by_name = {task.name: task for task in chosen_tasks(job.recipe)}
    wording = Wording(job.recipe.seed, job.recipe.strategy, job.recipe.distractor_seed)
    with media.batch():
        outcomes = [write(entry, by_name[entry.fact.task], cache, wording) for entry in job.entries]
    cache.close()
    return outcomes
