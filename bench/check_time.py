"""What comes after a build, against the build itself: every answer verified, and the audit."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np

from bench.session import Session
from bench.table import Row
from vgbench_gen.store.dataset import load

_EVERY = 5  # of the frames of a sample scene one in so many is looked at again
_SCENE_X, _VIEW_X = 3, 2


def rows(session: Session) -> list[Row]:
    """Processor time of verify and of audit over that of the build, and their peaks; all with two workers."""
    built = session.built(2)
    items = len(load(built.out))
    found = []
    for verb, more in (("verify", ["--scenes", str(session.root)]), ("audit", [])):
        seconds, cpu_s, peak_mb = _run([verb, str(built.out), "--workers", "2", *more])
        beside = (
            f"{seconds:.1f} s by the clock, {cpu_s:.1f} s of processor time for {items} items "
            f"({1e3 * cpu_s / max(items, 1):.1f} ms each); the build took {built.cpu_s:.1f} s"
        )
        found.append(Row(f"{verb} / build, processor time", cpu_s / built.cpu_s, "x", beside))
        found.append(Row(f"{verb}, largest process", peak_mb, "MB", "peak of resident memory", at_most=600))
    return found


def _run(arguments: list[str]) -> tuple[float, float, float]:
    """(seconds, processor time of it and its workers, peak MB of the largest of them) of a command of ours.

    Raises:
        RuntimeError: it ended otherwise than with 0 or 1; it has said why.
    """
    began = time.perf_counter()
    code = (
        "import json, resource, sys\n"
        "from vgbench_gen.cli.main import main\n"
        f"status = main({arguments!r})\n"
        "used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]\n"
        "told = {'status': status, 'cpu_s': sum(u.ru_utime + u.ru_stime for u in used),\n"
        "        'peak_kb': max(u.ru_maxrss for u in used)}\n"
        "print(json.dumps(told), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    told = json.loads(done.stderr.splitlines()[-1]) if done.returncode == 0 else {"status": done.returncode}
    if told["status"] not in (0, 1):
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr}")
    return time.perf_counter() - began, told["cpu_s"], told["peak_kb"] / 1e3


def sample_rows(session: Session) -> list[Row]:
    """A whole sample scene, and its views alone, against casting one ray for each of their pixels."""
    from vgbench_gen.samples.captures import make_capture
    from vgbench_gen.samples.make import list_default_specs, make_scene
    from vgbench_gen.samples.planes import make_rays
    from vgbench_gen.samples.render import RoomWorld

    # Loads Open3D and draws what all rooms of a process share.
    make_scene(list_default_specs({"wildrgbd": 1}, frames=4)[0], session.scratch / "samples")
    spec = list_default_specs({"ca1m": 1}, frames=30)[0]
    began = _cpu_s()
    make_scene(spec, session.scratch / "samples")
    made_s, began = _cpu_s() - began, _cpu_s()
    capture = make_capture(spec)
    furnished_s, world = _cpu_s() - began, capture.world
    if not isinstance(world, RoomWorld):
        raise TypeError(f"{type(world).__name__}: expected a room")
    looked_s = cast_s = 0.0
    u, v = np.arange(capture.camera.width)[None], np.arange(capture.camera.height)[:, None]
    for pose in capture.world_from_camera[::_EVERY]:
        began = _cpu_s()
        world.look(capture.camera, pose)
        looked_s += _cpu_s() - began
        rays = make_rays(capture.camera, pose, u, v)
        began = _cpu_s()
        world.tracer.cast(rays)
        cast_s += _cpu_s() - began
    views, frames = len(capture.world_from_camera[::_EVERY]), len(capture.world_from_camera)
    beside = (
        f"{made_s:.1f} s of processor time for {frames} frames of {capture.camera.width}x{capture.camera.height} with "
        f"depth and files, of it the room {furnished_s:.1f} s; all rays of a view {cast_s / views:.2f} s"
    )
    return [
        Row("sample scene / a ray for each pixel", made_s / (cast_s / views * frames), "x", beside, at_most=_SCENE_X),
        Row("sample view / a ray for each pixel", looked_s / cast_s, "x", f"{looked_s / views:.2f} s", at_most=_VIEW_X),
    ]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
