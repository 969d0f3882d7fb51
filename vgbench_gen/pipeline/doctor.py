"""What could stop a long build, looked at before it begins.

What needs OpenCV and Open3D is imported where it is used: whether they load is one of the questions.
"""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from vgbench_gen.core.errors import DatasetError, VGBenchError
from vgbench_gen.core.surroundings import DEBIAN_PACKAGES, describe_missing_library, explain_surroundings
from vgbench_gen.store.files import check_name, replace_folder, write_bytes
from vgbench_gen.store.provenance import BuildLock, BuildLocked

if TYPE_CHECKING:
    from vgbench_gen.pipeline.estimate import BuildEstimate
    from vgbench_gen.pipeline.executors import Engine

Verdict = Literal["OK", "WARN", "FAIL"]
_PACKAGE = "vgbench-gen"
_EXTRAS = {"fast": "faster reading of PNG and tar files", "ray": "--engine ray"}
_SPARE_BYTES = 10**9
# What Open3D takes from the system.
_LIBRARIES = ("libGL.so.1", "libEGL.so.1", "libX11.so.6", "libusb-1.0.so.0", "libudev.so.1", "libidn2.so.0")


class Check(NamedTuple):
    """One thing that was looked at: what it is, whether it will do, what there is, and what to do where it will not."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


def examine(recipe: str, scenes: Sequence[Path], out: Path, engine: Engine) -> Iterator[Check]:
    """All checks in order, of a recipe by its name. Nothing is left on the disk, and no pixel of a scan is decoded.

    Raises:
        UnknownNameError: no such recipe, or it names a task, or the engine's name, that is not registered.
    """
    yield from check_versions()
    yield check_imports()
    yield from check_storage(out)
    try:
        yield from _check_scenes(recipe, scenes, out, engine)
    except (ImportError, OSError) as error:
        if explain_surroundings(error) is None:
            raise  # else the check of imports says it
    if engine.name != "local":
        yield check_nodes(scenes, out, engine)


def _check_scenes(recipe: str, scenes: Sequence[Path], out: Path, engine: Engine) -> Iterator[Check]:
    from vgbench_gen.pipeline.build import find_scenes
    from vgbench_gen.pipeline.estimate import estimate
    from vgbench_gen.pipeline.recipe import load_recipe

    wanted = load_recipe(recipe)
    try:
        refs = find_scenes(scenes)
    except VGBenchError as error:
        yield Check("scenes", "FAIL", str(error), "Name the folder with your scans (--scenes).")
        return
    needs = estimate(refs, wanted)
    counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(r.dataset for r in refs).items()))
    yield Check("scenes", "OK", f"{counts}; about {needs.keyframes} keyframes, at most {needs.items} questions")
    yield from check_room(out, needs, engine.cores)
    if not engine.address:
        yield check_memory(needs, engine.cores)
        hours = needs.cpu_s / 3600
        yield Check("time", "OK", f"measuring about {hours:.1f} core hours, {hours / engine.cores:.1f} h here")


def check_versions() -> Iterator[Check]:
    """Python and the packages against the ranges of pyproject.toml."""
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    wanted = metadata.metadata(_PACKAGE)["Requires-Python"] or ""
    fits = SpecifierSet(wanted).contains(platform.python_version())
    remedy = "" if fits else f"Install Python {wanted}."
    yield Check("python", "OK" if fits else "FAIL", platform.python_version(), remedy)
    problems: dict[str, list[str]] = defaultdict(list)  # by extra, "" for what everybody needs
    for requirement in map(Requirement, metadata.requires(_PACKAGE) or ()):
        extra = re.search(r'extra == "([^"]+)"', str(requirement.marker))
        try:
            have = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            problems[extra[1] if extra else ""].append(f"no {requirement.name}")
        else:
            if not requirement.specifier.contains(have, prereleases=True):
                problems[""].append(f"{requirement.name} {have}, wanted {requirement.specifier}")
    wrong = "; ".join(problems[""])
    remedy = "Install what constraints.txt names: make setup." if wrong else ""
    yield Check("packages", "FAIL" if wrong else "OK", wrong or "all in the ranges of pyproject.toml", remedy)
    for name, use in _EXTRAS.items():
        if missing := problems[name]:
            remedy = f'Only for {use}: pip install "{_PACKAGE}[{name}]".'
            yield Check(f"extra {name}", "WARN", ", ".join(missing), remedy)


def check_imports() -> Check:
    """Whether the packages with libraries of the system behind them load."""
    done = subprocess.run([sys.executable, "-c", "import cv2, open3d"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return Check("libraries", "OK", "opencv and open3d load")
    reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    remedy = describe_missing_library(reason) or "Install again: make setup."
    others = []
    for library in _LIBRARIES:
        try:
            ctypes.CDLL(library)
        except OSError:
            others.append(DEBIAN_PACKAGES[library])
    if more := [package for package in others if package not in remedy]:
        remedy += f" Then: apt-get install {' '.join(more)}."
    return Check("libraries", "FAIL", reason, remedy)


def check_storage(out: Path) -> Iterator[Check]:
    """Whether the file system of the build folder does what a build asks of it."""
    place, good = _find_existing(out), False
    try:
        check_name(out)
        with tempfile.TemporaryDirectory(prefix=".vgbench-doctor-", dir=place) as folder:
            probe = Path(folder)
            with BuildLock(probe):
                for name in ("file", "target/file", "filled/file"):
                    write_bytes(probe / name, b"old")
                for name in ("file", "filled/file"):
                    write_bytes(probe / name, b"new")
                replace_folder(probe / "filled", probe / "target")
                with suppress(BuildLocked):
                    BuildLock(probe).__enter__()
                    raise OSError(0, "a lock without effect")
                good = {(probe / name).read_bytes() for name in ("file", "target/file")} == {b"new"}
    except (OSError, DatasetError) as error:
        reason = f"{place}: {error.strerror}" if isinstance(error, OSError) else str(error)
        yield Check("storage", "FAIL", reason, "Give a folder that you may write to (--out).")
        return
    found = "write, fsync, rename and lock work" if good else "a rename without effect"
    remedy = "" if good else "Build on another file system and copy the result."
    yield Check("storage", "OK" if good else "FAIL", f"{place}: {found}", remedy)
    if out.is_dir():
        try:
            with BuildLock(out):
                pass
        except BuildLocked as error:
            yield Check("lock", "FAIL", str(error), "Build elsewhere, or wait.")


def check_room(out: Path, needs: BuildEstimate, workers: int) -> Iterator[Check]:
    """Disk for the build and for the temporary files of its workers."""
    wanted = {
        "disk": (_find_existing(out), needs.disk_bytes, "--out"),
        "temporary files": (Path(tempfile.gettempdir()), needs.spool_bytes * workers, "TMPDIR"),
    }
    for name, (folder, need, option) in wanted.items():
        free = shutil.disk_usage(folder).free
        found = f"{folder}: {_format_gb(free)} free, about {_format_gb(need)} needed"
        if free < need:
            yield Check(name, "FAIL", found, f"Free space, or name another folder: {option}.")
        elif free < need + _SPARE_BYTES:
            yield Check(name, "WARN", found, "Little is left over; a full disk stops the build, which goes on later.")
        else:
            yield Check(name, "OK", found)


def check_memory(needs: BuildEstimate, workers: int) -> Check:
    """Memory of this machine for so many workers."""
    free, need = available_bytes(), needs.worker_bytes * workers
    most = _format_gb(needs.worker_bytes)
    found = f"{_format_gb(free)} free; {workers} workers of at most {most} take {_format_gb(need)}"
    if need <= free:
        return Check("memory", "OK", found)
    if fit := free // needs.worker_bytes:
        return Check("memory", "WARN", found, f"Use --workers {fit}.")
    return Check("memory", "FAIL", found, "Use a machine with more memory, or a lower gates.frame.max_keyframes.")


def available_bytes() -> int:
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
    from vgbench_gen.pipeline.executors import run

    jobs = list(range(4 * (engine.workers or 16)))
    try:
        names = Counter(name for _, name in run(_name_node, jobs, engine, [_find_existing(out), *scenes]))
    except VGBenchError as error:
        return Check(engine.name, "FAIL", str(error), "See docs/cluster.md.")
    return Check(engine.name, "OK", f"{len(names)} nodes answer: {', '.join(sorted(names))}")


def _name_node(_: int) -> str:
    return platform.node()


def _find_existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def _format_gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
