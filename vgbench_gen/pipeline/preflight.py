"""Pre-flight checks of a long build: packages, storage, and an estimate of time, memory and disk.

What needs OpenCV and Open3D is imported where it is used: wrong packages are named even where these do not load.
"""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from vgbench_gen.core.errors import DatasetError, VGBenchError
from vgbench_gen.store.files import check_name, replace_folder, write_bytes
from vgbench_gen.store.provenance import BuildLock, BuildLocked

if TYPE_CHECKING:
    from vgbench_gen.executors import Engine
    from vgbench_gen.pipeline.recipe import Recipe
    from vgbench_gen.scenes.base import SceneRef

_SPARE_BYTES = 10**9
# Measured on real captures with 2 to 57 keyframes of 640 to 1920 columns, rounded up; docs/cluster.md says how.
_SCENE_S, _KEYFRAME_S, _PAIR_S = 3.0, 0.2, 0.0002
_WORKER_BYTES, _KEYFRAME_BYTES = 520 * 10**6, 4 * 10**6
_FRAME_ON_DISK, _PICTURE_ON_DISK = 10**6, 40 * 10**4
_COPIES = 3  # of a picture: in media/, in items/, and in the new items/ before it takes the old one's place
_SAMPLE = 12  # scenes of a dataset that are opened


class Check(NamedTuple):
    """Result of one pre-flight check."""

    name: str
    verdict: Literal["OK", "WARN", "FAIL"]
    found: str
    remedy: str = ""


class BuildEstimate(NamedTuple):
    """What a build needs: keyframes, rows at most, core seconds of measuring, bytes in the build folder, and per worker
    bytes in the folder for temporary files and peak memory."""

    keyframes: int
    items: int
    cpu_s: float
    disk_bytes: int
    spool_bytes: int
    worker_bytes: int


def examine(load: Callable[[], Recipe], scenes: Sequence[Path], out: Path, engine: Engine) -> Iterator[Check]:
    """All checks in order. Nothing is left on the disk, and no pixel of a scan is decoded.

    load: gives the recipe; called after the packages were checked, some of which it imports.

    Raises:
        UnknownNameError: the recipe names a task, or the engine has a name, that is not registered; or as `load`.
    """
    yield check_packages()
    yield check_storage(out)
    yield from _check_scenes(load(), scenes, out, engine)
    if engine.name != "local":
        yield check_nodes(scenes, out, engine)


def check_packages() -> Check:
    """Whether the installed packages are within the ranges of pyproject.toml; packages of extras may be missing."""
    from packaging.requirements import Requirement

    wrong = []
    for requirement in map(Requirement, metadata.requires("vgbench-gen") or ()):
        try:
            have = metadata.version(requirement.name)
            if not requirement.specifier.contains(have, prereleases=True):
                wrong.append(f"{requirement.name} {have}, wanted {requirement.specifier}")
        except metadata.PackageNotFoundError:
            if "extra ==" not in str(requirement.marker):
                wrong.append(f"no {requirement.name}")
    if wrong:
        return Check("packages", "FAIL", "; ".join(wrong), "Install what constraints.txt names: make setup.")
    return Check("packages", "OK", f"Python {platform.python_version()}, all in the ranges of pyproject.toml")


def check_storage(out: Path) -> Check:
    """Whether the file system of the build folder does what a build asks of it, and no other build runs there."""
    place = _find_existing(out)
    try:
        check_name(out)
        with tempfile.TemporaryDirectory(prefix=".vgbench-preflight-", dir=place) as folder, BuildLock(Path(folder)):
            for name in ("filled", "target"):
                write_bytes(Path(folder) / name / "file", b"")
            replace_folder(Path(folder) / "filled", Path(folder) / "target")
        if out.is_dir():
            with BuildLock(out):
                pass
    except BuildLocked as error:
        return Check("storage", "FAIL", str(error), "Build elsewhere, or wait.")
    except (OSError, DatasetError) as error:
        reason = f"{place}: {error.strerror}" if isinstance(error, OSError) else str(error)
        return Check("storage", "FAIL", reason, "Give another folder, one that you may write to (--out).")
    return Check("storage", "OK", f"{place}: writing, renaming and locking work")


def _check_scenes(recipe: Recipe, scenes: Sequence[Path], out: Path, engine: Engine) -> Iterator[Check]:
    from vgbench_gen.pipeline.build import find_scenes

    try:
        refs = find_scenes(scenes)
    except VGBenchError as error:
        yield Check("scenes", "FAIL", str(error), "Name the folder with your scans (--scenes).")
        return
    needs = estimate(refs, recipe)
    counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(r.dataset for r in refs).items()))
    yield Check("scenes", "OK", f"{counts}; about {needs.keyframes} keyframes, at most {needs.items} questions")
    yield check_room("disk", _find_existing(out), needs.disk_bytes, "--out")
    yield check_room("temporary files", Path(tempfile.gettempdir()), needs.spool_bytes * engine.cores, "TMPDIR")
    if not engine.address:
        yield check_memory(needs.worker_bytes, engine.cores)
        hours = needs.cpu_s / 3600
        yield Check("time", "OK", f"measuring about {hours:.1f} core hours, {hours / engine.cores:.1f} h here")


def check_room(name: str, folder: Path, need_bytes: int, option: str) -> Check:
    """Free space of a folder that `option` names, against the bytes that a build needs there."""
    free_bytes = shutil.disk_usage(folder).free
    found = f"{folder}: {_format_gb(free_bytes)} free, about {_format_gb(need_bytes)} needed"
    if free_bytes < need_bytes:
        return Check(name, "FAIL", found, f"Free space, or name another folder: {option}.")
    if free_bytes < need_bytes + _SPARE_BYTES:
        return Check(name, "WARN", found, "Little is left over; a full disk stops the build, which goes on later.")
    return Check(name, "OK", found)


def check_memory(worker_bytes: int, workers: int) -> Check:
    """Memory of this machine for so many workers."""
    free = read_available_bytes()
    found = f"{_format_gb(free)} free; {workers} workers of at most {_format_gb(worker_bytes)}"
    if enough := free // worker_bytes:
        remedy = f"Use --workers {enough}." if enough < workers else ""
        return Check("memory", "WARN" if remedy else "OK", found, remedy)
    return Check("memory", "FAIL", found, "Use a machine with more memory, or a lower gates.frame.max_keyframes.")


def read_available_bytes() -> int:
    """Memory that this machine, or the container, can still give."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) * 1024
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text())
        return min(free, limit - int((group / "memory.current").read_text()))
    except (OSError, ValueError):  # no limit: "max"
        return free


def check_nodes(scenes: Sequence[Path], out: Path, engine: Engine) -> Check:
    """Whether the workers of a cluster start, have the same code and see the same folders."""
    from vgbench_gen.executors import run

    jobs = list(range(4 * (engine.workers or 16)))
    try:
        names = sorted({name for _, name in run(_name_node, jobs, engine, [_find_existing(out), *scenes])})
    except VGBenchError as error:
        return Check(engine.name, "FAIL", str(error), "See docs/cluster.md.")
    return Check(engine.name, "OK", f"{len(names)} nodes answer: {', '.join(names)}")


def estimate(refs: Sequence[SceneRef], recipe: Recipe) -> BuildEstimate:
    """Open up to twelve scenes per dataset, from the largest to the smallest, and count for all of them.

    Scenes that cannot be opened count nothing; the build will drop them.
    """
    from vgbench_gen.pipeline.measure import list_tasks
    from vgbench_gen.scenes.opening import lay_to_scene, open_scene
    from vgbench_gen.scenes.view import choose_keyframes

    keyframes, cpu_s, most = 0.0, 0.0, 0
    for dataset in sorted({ref.dataset for ref in refs}):
        of_dataset = sorted((r for r in refs if r.dataset == dataset), key=lambda r: (-r.size_bytes, r.scene_id))
        counts = []
        for ref in of_dataset[:: max(1, -(-len(of_dataset) // _SAMPLE))]:
            with suppress(VGBenchError), lay_to_scene(ref), open_scene(ref) as scene:
                counts.append(len(choose_keyframes(scene.frames, recipe.gates.frame)))
        share = len(of_dataset) / max(len(counts), 1)
        keyframes += sum(counts) * share
        cpu_s += sum(map(estimate_scene_s, counts)) * share
        most = max(most, *counts, 0)
    formats = {task.name: len(task.formats) for task in list_tasks(recipe)}
    facts = sum(count * recipe.find_most_facts(name) for name, count in formats.items())
    items = recipe.total or min(recipe.items_per_cell * sum(formats.values()), facts * len(refs))
    return BuildEstimate(
        keyframes=round(keyframes),
        items=items,
        cpu_s=cpu_s,
        disk_bytes=round(keyframes) * _FRAME_ON_DISK + items * _PICTURE_ON_DISK * _COPIES,
        spool_bytes=most * _FRAME_ON_DISK,
        worker_bytes=_WORKER_BYTES + most * _KEYFRAME_BYTES,
    )


def estimate_scene_s(keyframes: int) -> float:
    """Core seconds of measuring one scene."""
    return _SCENE_S + _KEYFRAME_S * keyframes + _PAIR_S * keyframes * (keyframes - 1)


def _name_node(_: int) -> str:
    return platform.node()


def _find_existing(folder: Path) -> Path:
    """The folder, or the nearest existing one above it."""
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def _format_gb(size_bytes: float) -> str:
    return f"{size_bytes / 1e9:.1f} GB"
