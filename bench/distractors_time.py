"""Choosing wrong options anew for a dataset whose options are texts: nothing is drawn, only rows are written."""

from __future__ import annotations

import os
import time

from bench.compose_time import ITEMS, copied
from bench.session import Session
from bench.table import Row
from vgbench_gen.pipeline.build import recompose
from vgbench_gen.pipeline.executors import Engine
from vgbench_gen.pipeline.redraw import redraw
from vgbench_gen.pipeline.redraw_sets import Settings
from vgbench_gen.store.dataset import load

TEXT = (
    "camera_parameters", "homography_to_matrix", "metric_depth", "object_distance", "object_location", "relative_pose"
)  # fmt: skip


def rows(session: Session) -> list[Row]:
    """One row, scaled to `ITEMS` questions, all of them multi-choice with text options."""
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

    began = time.perf_counter()
    report = redraw(
        out,
        Settings({"set_first": 1.0}, seed=1),
        session.scratch / "distractors-new",
        workers=workers,
        progress=mark,
    )
    ended = time.perf_counter()
    spent, new = ended - began, sum(report.new.values())
    size = sum(path.stat().st_size for path in (report.out / "items").iterdir()) / 1e6
    beside = (
        f"{new} of {report.total} questions in {spent:.1f} s with {workers.workers} workers, "
        f"{ended - marks['files']:.1f} s of it for {size:.0f} MB of files; {number} copies of the measured scenes"
    )
    return [Row(f"new text options for {ITEMS:,} items", spent * ITEMS / max(new, 1), "s", beside, at_most=10)]
