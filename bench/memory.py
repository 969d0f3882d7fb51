"""Peak memory of one worker: every scene measured in a process of its own."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from bench.table import Row
from vgbench_gen.pipeline.build import find_scenes
from vgbench_gen.pipeline.executors import quiet_worker
from vgbench_gen.pipeline.measure import MeasureJob, measure_scene
from vgbench_gen.pipeline.recipe import load_recipe


def rows(root: Path, scratch: Path) -> list[Row]:
    """One row: the largest resident set of any scene."""
    recipe = load_recipe("default")
    jobs = [MeasureJob(ref, recipe, scratch / "memory") for ref in find_scenes(root)]
    context = multiprocessing.get_context("spawn")
    peaks = {}
    for job in jobs:
        with context.Pool(1, initializer=quiet_worker) as pool:
            peaks[job.ref.scene_id] = pool.apply(_peak_mb, (job,))
    worst = max(peaks, key=lambda scene: peaks[scene])
    each = ", ".join(f"{scene} {peak:.0f}" for scene, peak in sorted(peaks.items()))
    return [Row("peak memory per worker", f"{peaks[worst]:.0f} MB", "<= 600 MB", each)]


def _peak_mb(job: MeasureJob) -> float:
    measure_scene(job)
    # Not ru_maxrss: a spawned process inherits its parent's peak there.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
