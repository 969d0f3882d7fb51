"""Every row of a dataset worded anew by a language model, under the checks for filled texts; nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from vgbench_gen.backends.base import Request, Settings
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.derived import check_target, fill_beside, find_build, link_build
from vgbench_gen.pipeline.rows import row_with_words
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import code_version, dataset_fingerprint, read_manifest, write_manifest
from vgbench_gen.store.shards import write_items
from vgbench_gen.text.bank import find_origin, load_shipped
from vgbench_gen.text.paraphrase import rules
from vgbench_gen.text.paraphrase.checks import Original, Text
from vgbench_gen.text.paraphrase.filled import fill_text, merge_texts
from vgbench_gen.text.paraphrase.prompts import MAX_TOKENS, make_judge_request, make_reword_request
from vgbench_gen.text.paraphrase.rounds import Asker, RewordCounts, Stopped, reword


@dataclass(slots=True)
class ItemRewordReport:
    """What came of it."""

    out: Path = Path()
    """Folder of the new dataset."""
    fingerprint: str = ""
    """Digest of its rows."""
    rows: int = 0
    new: int = 0
    """Rows with new words."""
    unasked: int = 0
    """Rows that were left out of the choice, are not in English, or are twins that share no wording."""
    language: str = "en"
    cells: dict[str, RewordCounts] = field(default_factory=dict)
    """Counts per "task/type", in texts, of which twins share one."""
    stopped: str = ""
    """Why it ended early, in which case nothing was written."""

    @property
    def total(self) -> RewordCounts:
        """All cells together."""
        return RewordCounts.sum_over(self.cells.values())

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "out": str(self.out),
            **{name: getattr(self, name) for name in ("fingerprint", "rows", "new", "unasked", "language", "stopped")},
            "total": self.total.as_json(),
            "cells": {name: counts.as_json() for name, counts in sorted(self.cells.items())},
        }


@dataclass(frozen=True, slots=True)
class WordingGroup:
    """Rows that share one wording: a pair of twins, or one row."""

    places: tuple[int, ...]
    """Places of the rows in the dataset."""
    cell: str
    original: Original
    """The text that is to be reworded, with what must stay."""


def reword_items(
    dataset: str | PathLike[str],
    asker: Asker,
    out: str | PathLike[str],
    tasks: Sequence[str] = (),
    types: Sequence[str] = (),
    language: str = "en",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ItemRewordReport:
    """Write the dataset with reworded questions and contexts as a new one; the old one stays as it is.

    Twins share their wording; options, images, answers and groups stay. A row that could not be reworded keeps its
    words and its id. Nothing is under the name `out` until all is there; what was asked before comes from the cache.

    Args:
        dataset: a folder that `vgbench build` made, or one derived from it.
        asker: who is asked.
        out: folder of the new dataset.
        tasks, types: rows of these alone; all where empty.
        language: that is asked for.
        progress: called with (texts done, texts).

    Raises:
        ConfigError: no such language, or something else stands at `out`.
        DatasetError: the dataset or its images cannot be read.
        BuildLocked: another process writes there.
    """
    folder, target = find_build(Path(dataset), with_media=True), Path(out)
    rules.find_language(language)
    manifest = read_manifest(folder)
    items = list(load(dataset))
    parent = str(manifest.get("fingerprint") or dataset_fingerprint(items))
    check_target(target, "reworded", parent)
    groups = group_rows(items, tasks, types, language)
    report = ItemRewordReport(target, rows=len(items), language=language)
    report.unasked = len(items) - sum(len(group.places) for group in groups)
    wordings = _ask_wordings(groups, asker, report, progress)
    if report.stopped:
        return report
    rows = list(items)
    for group, text in zip(groups, wordings, strict=True):
        if text is not None:
            for place, values in zip(group.places, group.original.samples, strict=True):
                new = fill_text(text, values)
                rows[place] = row_with_words(items[place], new.question, new.context, asker.backend.model, language)
                report.new += 1
    report.fingerprint = dataset_fingerprint(rows)
    with fill_beside(target) as work:
        link_build(folder, work)
        write_items(work / "items", rows, MediaStore(work / "media"))
        judge = asker.judge.model if asker.judge is not None else ""
        note = {"from": parent, "model": asker.backend.model, "judge": judge, "language": language, "new": report.new}
        changed = {"reworded": note | {"code": code_version()}, "fingerprint": report.fingerprint}
        write_manifest(work, {**manifest, **changed})
    return report


def group_rows(
    items: Sequence[Item], tasks: Sequence[str] = (), types: Sequence[str] = (), language: str = "en"
) -> list[WordingGroup]:
    """What is asked about, in the order of the rows."""
    places: dict[str, list[int]] = {}
    for k, item in enumerate(items):
        wanted = item.task in (tasks or (item.task,)) and item.question_type in (types or (item.question_type,))
        if wanted and find_origin(item.template_id)[1] == "en":
            places.setdefault(f"twin {item.twin_id}" if item.twin_id else f"row {k}", []).append(k)
    states = {name: phrasing.states for name, phrasing in load_shipped().items()}
    groups = []
    for members in places.values():
        first = items[members[0]]
        found = merge_texts([Text(items[k].question, items[k].context) for k in members])
        if found is not None:
            known = states.get(find_origin(first.template_id)[0], ())
            original = Original(found[0], known, language, filled=True, samples=found[1])
            groups.append(WordingGroup(tuple(members), f"{first.task}/{first.question_type}", original))
    return groups


def make_requests(groups: Sequence[WordingGroup], n: int, judged: bool) -> Iterator[Request]:
    """The first request about each text, and one to the judge; for estimates."""
    for group in groups:
        yield make_reword_request(group.original, n, (), 0, Settings(max_tokens=MAX_TOKENS))
        if judged:
            yield make_judge_request(group.original, group.original.text, Settings())


def _ask_wordings(
    groups: Sequence[WordingGroup], asker: Asker, report: ItemRewordReport, progress: Callable[[int, int], None]
) -> list[Text | None]:
    found: list[Text | None] = [None] * len(groups)
    waiting, done = iter(range(len(groups))), 0

    async def work() -> None:
        nonlocal done
        for k in waiting:  # shared by all workers
            counts = report.cells.setdefault(groups[k].cell, RewordCounts())
            texts = await reword(groups[k].original, 1, asker, counts)
            found[k] = texts[0] if texts else None
            done += 1
            progress(done, len(groups))

    async def run() -> None:
        workers = [asyncio.create_task(work()) for _ in range(min(max(1, asker.backend.parallel), len(groups)))]
        try:
            await asyncio.gather(*workers)
        except Stopped as stop:
            report.stopped = str(stop)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for backend in {id(b): b for b in (asker.backend, asker.judge) if b is not None}.values():
                await backend.rest()

    asyncio.run(run())
    return found
