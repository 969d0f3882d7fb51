"""A ten-minute recording of 18,000 frames: opening and loading its keyframes, against decoding these once."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from pathlib import Path

from bench.session import Session
from bench.table import Row
from tests.scenes.posed_writer import make_room, write_own
from vgbench_gen.core.gates import Gates
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.opening import open_scene
from vgbench_gen.scenes.view import SceneView

FRAMES, POSES = 18_000, 60  # the camera rests at each pose for 300 frames


def rows(session: Session) -> list[Row]:
    """Time as a ratio, and peak memory of the process."""
    folder = session.scratch / "long"
    _write(folder)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        opening_s, loading_s, decoding_s, kept, peak_mb = pool.apply(_measure, (folder,))
    beside = (
        f"{opening_s:.1f} s to open {FRAMES} frames, {loading_s:.1f} s to load {kept}, {decoding_s:.1f} s to decode"
    )
    return [
        Row("long recording: loading keyframes / decoding them once", loading_s / decoding_s, "x", beside, at_most=4),
        Row("long recording: peak memory", peak_mb, "MB", f"{FRAMES} frames", at_most=800),
    ]


def _write(folder: Path) -> None:
    source = write_own(folder / "source", make_room(frames=POSES, width=640, height=480))
    long = folder / "long"
    poses = [line.split(",", 1)[1] for line in (source / "poses.csv").read_text().splitlines()]
    lines = [f"time,{poses[0]}"]
    for kind in ("rgb", "depth"):
        (long / kind).mkdir(parents=True)
    for number in range(FRAMES):
        pose, time_s = number * POSES // FRAMES, f"{1000 + number / 30:.4f}"
        for kind in ("rgb", "depth"):
            os.link(source / kind / f"{pose:06d}.png", long / kind / f"{time_s}.png")
        lines.append(f"{time_s},{poses[1 + pose]}")
    (long / "poses.csv").write_text("\n".join(lines))
    (long / "posed.toml").write_text((source / "posed.toml").read_text())


def _measure(folder: Path) -> tuple[float, float, float, int, float]:
    began = time.perf_counter()
    (ref,) = discover(folder / "long")
    with open_scene(ref) as scene:
        opened = time.perf_counter()
        view = SceneView(scene, Gates())
        loaded = time.perf_counter()
        kept = {frame.id for frame in view.frames} | {rejected.key for rejected in view.rejected}
        for frame in scene.frames:
            if frame.id in kept:
                frame.color(), frame.depth_m()
        decoded = time.perf_counter()
        view.close()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return opened - began, loaded - opened, decoded - loaded, len(kept), peak_mb
