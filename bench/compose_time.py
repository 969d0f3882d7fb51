"""Composing a whole benchmark anew: facts measured, pictures drawn before."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from bench.copies import copy_scenes
from bench.session import Session
from bench.table import Row
from vgbench_gen.executors import Engine
from vgbench_gen.pipeline.build import recompose
from vgbench_gen.store.dataset import load

ITEMS = 6_000
_UNLIMITED = 10**6


def rows(session: Session) -> list[Row]:
    """One row, scaled to `ITEMS` where there are more or fewer."""
    built = session.built(2)
    recipe, out, have = session.recipe, built.out, len(load(built.out))
    copies = ""
    if have < ITEMS:
        out = session.scratch / "compose"
        number = -(-ITEMS // max(have, 1))
        copied(built.out, out, number)
        recipe = recipe.model_copy(update={"items_per_cell": _UNLIMITED}) if not recipe.items else recipe
        copies = f" from {number} copies of the measured scenes under other names"
    workers = min(2, len(os.sched_getaffinity(0)))

    if copies:  # pictures that only the larger set asks for
        recompose(recipe, out, Engine("local", workers), allow_short=True)
    began = time.perf_counter()
    recompose(recipe, out, Engine("local", workers), allow_short=True)
    spent = time.perf_counter() - began
    items = len(load(out))
    beside = f"{items} items{copies} in {spent:.1f} s with {workers} workers, {1e3 * spent / max(items, 1):.2f} ms each"
    return [Row(f"composing {ITEMS:,} items anew", spent * ITEMS / max(items, 1), "s", beside, at_most=10)]


def copied(source: Path, out: Path, number: int) -> None:
    """The facts of a build so many times over, each time as other scenes; images are shared."""
    out.mkdir()
    (out / "media").symlink_to(source / "media")
    shutil.copy(source / "pictures.sqlite", out)
    for k in range(number):
        copy_scenes(source, out, str(k))
