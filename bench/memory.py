"""Peak memory by number of scenes: of one worker that measures them one after the other, and of composing; and of
making sample scenes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.copies import copy_scenes
from bench.session import Session
from bench.table import Row
from vgbench_gen.executors.base import do_job, limit_to_one_thread
from vgbench_gen.pipeline.compose import compose
from vgbench_gen.pipeline.measure import MeasureJob, SceneReport, measure_scene
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.samples.make import list_default_specs, make_samples
from vgbench_gen.scenes.base import SceneRef

STEPS = (17, 34, 68)


def rows(session: Session) -> list[Row]:
    """The largest peak of a worker that measures, of the process that composes, and how the first grows."""
    refs = sorted(session.refs, key=lambda ref: (ref.dataset, ref.scene_id))
    out = session.scratch / "memory"
    measured, reports = _apart(_measuring_mb, refs, session.recipe, out)
    composing = {count: _apart(_composing_mb, session.recipe, out, reports[count]) for count in STEPS}
    again = f", {len(refs)} scenes again and again" if len(refs) < STEPS[-1] else ""
    grown = measured[STEPS[-1]] / measured[STEPS[0]]
    return [
        Row("peak memory of a worker", max(measured.values()), "MB", f"{_each(measured)} scenes{again}", at_most=600),
        Row(
            f"worker at {STEPS[-1]} scenes / at {STEPS[0]}", grown, "x", "flat is 1; one process all along", at_most=1.1
        ),
        Row(
            "peak memory of composing", max(composing.values()), "MB", f"{_each(composing)} scenes, one process",
            at_most=600,
        ),
        Row(
            "peak memory of making sample scenes", _apart(_rendering_mb, session.scratch / "rendered"), "MB",
            "one photographed and one filmed, 4 frames each; Open3D alone takes 180 MB", at_most=600,
        ),
    ]  # fmt: skip


def _each(peaks: dict[int, float]) -> str:
    return ", ".join(f"{peak:.0f} MB at {count}" for count, peak in peaks.items())


def _apart(function: Callable[..., Any], *arguments: object) -> Any:
    """What the function gives in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _measuring_mb(
    refs: list[SceneRef], recipe: Recipe, out: Path
) -> tuple[dict[int, float], dict[int, list[SceneReport]]]:
    """(scenes -> peak so far, scenes -> reports of what is there to compose by then).

    A round through all scenes that is not the first stands for others of their kind.
    """
    peaks: dict[int, float] = {}
    ready: dict[int, list[SceneReport]] = {}
    reports: list[SceneReport] = []
    for count in range(STEPS[-1]):
        turn, k = divmod(count, len(refs))
        folder = out if not turn else out.with_name(f"{out.name}-{turn}")
        with limit_to_one_thread():
            report = do_job(measure_scene, MeasureJob(refs[k], recipe, folder))
        reports.append(replace(report, scene_id=f"{report.scene_id}-{turn}") if turn else report)
        if turn and k == len(refs) - 1:
            copy_scenes(folder, out, str(turn))
        if count + 1 in STEPS:
            peaks[count + 1] = _peak_mb()
            # What no round has finished yet is not in the folder.
            ready[count + 1] = reports[: (count + 1) // len(refs) * len(refs) or None]
    return peaks, ready


def _composing_mb(recipe: Recipe, out: Path, reports: list[SceneReport]) -> float:
    compose(out, recipe, reports, allow_short=True)
    return _peak_mb()


def _rendering_mb(out: Path) -> float:
    make_samples(list_default_specs({"ca1m": 1, "scannetpp": 2}, frames=12), out)
    return _peak_mb()


def _peak_mb() -> float:
    # Not ru_maxrss: a spawned process inherits its parent's peak there.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
