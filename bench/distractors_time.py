"""Choosing wrong options anew for a dataset whose options are texts: nothing is drawn, only rows are written."""

from __future__ import annotations

import os
import resource
import shutil
import time
from pathlib import Path

from bench.compose_time import ITEMS, copied
from bench.session import Session
from bench.table import Row
from vgbench_gen.executors import Engine
from vgbench_gen.pipeline.build import recompose
from vgbench_gen.pipeline.redraw import RedrawSettings, redraw
from vgbench_gen.store.dataset import load
from vgbench_gen.store.files import sync_to_disk

TEXT = (
    "camera_parameters", "homography_to_matrix", "metric_depth", "object_distance", "object_location", "relative_pose"
)  # fmt: skip


def rows(session: Session) -> list[Row]:
    """What has to be done, and the files' own time, scaled to `ITEMS` multi-choice questions with text options."""
    built = session.built(2)
    each = ITEMS // len(TEXT)
    wanted = {task: {"multi-choice": each} for task in TEXT}
    changes = {"tasks": TEXT, "items": wanted, "items_per_task": 0, "sources": {}, "splits": {}, "difficulty": None}
    recipe = session.recipe.model_copy(update=changes)
    have = sum(item.task in TEXT and item.question_type == "multi-choice" for item in load(built.out))
    number = max(-(-ITEMS // max(have, 1)), 1)
    out = session.scratch / "distractors"
    copied(built.out, out, number)
    workers = Engine("local", min(2, len(os.sched_getaffinity(0))))
    recompose(recipe, out, workers, allow_short=True)

    marks: dict[str, float] = {}

    def mark(stage: str, done: int, total: int) -> None:
        marks.setdefault(stage, time.perf_counter())

    began, cpu_s = time.perf_counter(), _cpu_s()
    report = redraw(
        out,
        RedrawSettings({"default": 1.0}, seed=1),
        session.scratch / "distractors-new",
        workers=workers,
        progress=mark,
    )
    ended, cpu_s = time.perf_counter(), _cpu_s() - cpu_s
    assert report.out is not None  # some question has new options
    new, files = sum(report.new.values()), sorted((report.out / "items").iterdir())
    copying = marks["digest"] - marks["files"]
    work, scale = ended - began - copying, ITEMS / max(new, 1)
    written = [path for path in files if path.stat().st_nlink == 1]  # the others are linked
    size = sum(path.stat().st_size for path in written) / 1e6
    floor = sum(_copied(path, session.scratch / "copied.parquet") for path in written)
    started = marks["options"] - began
    beside = (
        f"{new} of {report.total} questions in {ended - began:.1f} s with {workers.workers} workers, {cpu_s:.1f} s of "
        f"processor time: {started:.1f} s until the first options, {marks['files'] - began - started:.1f} s for the "
        f"others, {copying:.1f} s to write, {ended - marks['digest']:.1f} s for the fingerprint; {number} copies of "
        "the measured scenes"
    )
    return [
        Row(f"new text options for {ITEMS:,} items, written", (work + copying) * scale, "s", beside, at_most=10),
        Row(
            f"choosing new text options for {ITEMS:,} items", work * scale, "s",
            "of the row above; reading, learning, options and fingerprint, without writing",
        ),
        Row(
            f"writing {ITEMS:,} items with new options", copying * scale, "s",
            f"of the row above; {size:.0f} MB in {len(written)} of {len(files)} files, images inside, in {copying:.1f} "
            f"s; a plain copy of them {floor:.1f} s",
        ),
    ]  # fmt: skip


def _cpu_s() -> float:
    """Of this process and its workers so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _copied(source: Path, target: Path) -> float:
    """Seconds to copy a file onto the disk."""
    began = time.perf_counter()
    shutil.copyfile(source, target)
    sync_to_disk(target)
    spent = time.perf_counter() - began
    target.unlink()
    return spent
