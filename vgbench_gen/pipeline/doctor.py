"""What could stop a long build, looked at before it begins."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.pipeline.build import find_scenes
from vgbench_gen.pipeline.estimate import BuildEstimate, estimate
from vgbench_gen.pipeline.executors import Engine, run
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.store.files import replace_folder, write_bytes
from vgbench_gen.store.provenance import BuildLock, BuildLocked

Verdict = Literal["OK", "WARN", "FAIL"]
_PACKAGE = "vgbench-gen"
_EXTRAS = {"fast": "faster reading of PNG and tar files", "ray": "--engine ray"}
_SPARE_BYTES = 10**9
_LIBRARIES = {"libGL.so.1": "libgl1", "libEGL.so.1": "libegl1", "libusb-1.0.so.0": "libusb-1.0-0"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    """Whether it will do."""
    found: str
    remedy: str = ""
    """What to do, "" where all is well."""


def examine(recipe: Recipe, scenes: Sequence[Path], out: Path, engine: Engine) -> Iterator[Check]:
    """All checks in order. Nothing is left on the disk, and no pixel of a scan is decoded.

    Raises:
        UnknownNameError: the recipe names a task, or the engine's name, that is not registered.
    """
    yield from check_versions()
    yield check_imports()
    yield from check_storage(out)
    needs: BuildEstimate | None = None
    try:
        refs = find_scenes(scenes)
    except VGBenchError as error:
        yield Check("scenes", "FAIL", str(error), "Name the folder with your scans (--scenes).")
    else:
        needs = estimate(refs, recipe)
        counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(r.dataset for r in refs).items()))
        yield Check("scenes", "OK", f"{counts}; about {needs.keyframes} keyframes, at most {needs.items} questions")
        yield from check_room(out, needs, engine.cores)
        if not engine.address:
            yield check_memory(needs, engine.cores)
            hours = needs.cpu_s / 3600
            yield Check("time", "OK", f"measuring about {hours:.1f} core hours, {hours / engine.cores:.1f} h here")
    if engine.name != "local":
        yield check_nodes(scenes, out, engine)


def check_versions() -> Iterator[Check]:
    """Python and the packages against the ranges of pyproject.toml."""
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    about = metadata.metadata(_PACKAGE)
    wanted = about["Requires-Python"] or ""
    fits = SpecifierSet(wanted).contains(platform.python_version())
    yield Check(
        "python", "OK" if fits else "FAIL", platform.python_version(), "" if fits else f"Install Python {wanted}."
    )
    wrong = []
    missing: dict[str, list[str]] = {}
    for text in metadata.requires(_PACKAGE) or ():
        requirement = Requirement(text)
        extra = next(
            (name for name in about.get_all("Provides-Extra") or () if f'"{name}"' in str(requirement.marker)), ""
        )
        try:
            have = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            if extra:
                missing.setdefault(extra, []).append(requirement.name)
            else:
                wrong.append(f"no {requirement.name}")
            continue
        if not requirement.specifier.contains(have, prereleases=True):
            wrong.append(f"{requirement.name} {have}, wanted {requirement.specifier}")
    if wrong:
        yield Check("packages", "FAIL", "; ".join(wrong), "Install what constraints.txt names: make setup.")
    else:
        yield Check("packages", "OK", "all in the ranges of pyproject.toml")
    for extra, use in _EXTRAS.items():
        if extra in missing:
            remedy = f'Only for {use}: pip install "{_PACKAGE}[{extra}]".'
            yield Check(f"extra {extra}", "WARN", f"no {', '.join(missing[extra])}", remedy)


def check_imports() -> Check:
    """Whether the packages with libraries of the system behind them load."""
    absent = []
    for library, package in _LIBRARIES.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            absent.append(package)
    done = subprocess.run([sys.executable, "-c", "import cv2, open3d"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return Check("libraries", "OK", "opencv and open3d load")
    reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    remedy = f"apt-get install {' '.join(absent)}" if absent else "Install again: make setup."
    return Check("libraries", "FAIL", reason, remedy)


def check_storage(out: Path) -> Iterator[Check]:
    """Whether the file system of the build folder does what a build asks of it."""
    place = _find_existing(out)
    try:
        with tempfile.TemporaryDirectory(prefix=".vgbench-doctor-", dir=place) as folder:
            probe = Path(folder)
            with BuildLock(probe):
                write_bytes(probe / "file", b"old")
                write_bytes(probe / "file", b"new")
                (probe / "filled").mkdir()
                write_bytes(probe / "filled" / "file", b"new")
                (probe / "target").mkdir()
                write_bytes(probe / "target" / "file", b"old")
                replace_folder(probe / "filled", probe / "target")
                good = {(probe / name).read_bytes() for name in ("file", "target/file")} == {b"new"}
                try:
                    BuildLock(probe).__enter__()
                    good = False
                except BuildLocked:
                    pass
        found = "write, fsync, rename and lock work" if good else "a rename or a lock without effect"
        remedy = "" if good else "Build on another file system and copy the result."
        yield Check("storage", "OK" if good else "FAIL", f"{place}: {found}", remedy)
    except OSError as error:
        yield Check("storage", "FAIL", f"{place}: {error.strerror}", "Give a folder that you may write to (--out).")
        return
    if out.is_dir():
        try:
            with BuildLock(out):
                pass
        except BuildLocked as error:
            yield Check("lock", "FAIL", str(error), "Build elsewhere, or wait.")


def check_room(out: Path, needs: BuildEstimate, workers: int) -> Iterator[Check]:
    """Disk for the build and for the temporary files of its workers."""
    place, spool = _find_existing(out), Path(tempfile.gettempdir())
    wanted = {"disk": (place, needs.disk_bytes), "temporary files": (spool, needs.spool_bytes * workers)}
    for name, (folder, need) in wanted.items():
        free = shutil.disk_usage(folder).free
        found = f"{folder}: {_format_gb(free)} free, about {_format_gb(need)} needed"
        if free < need:
            remedy = "Free space, or name another folder: " + ("--out." if name == "disk" else "TMPDIR.")
            yield Check(name, "FAIL", found, remedy)
        elif free < need + _SPARE_BYTES:
            yield Check(name, "WARN", found, "Little is left over; a full disk stops the build, which goes on later.")
        else:
            yield Check(name, "OK", found)


def check_memory(needs: BuildEstimate, workers: int) -> Check:
    """Memory of this machine for so many workers."""
    free = available_bytes()
    need = needs.worker_bytes * workers
    most = _format_gb(needs.worker_bytes)
    found = f"{_format_gb(free)} free; {workers} workers of at most {most} take {_format_gb(need)}"
    if need <= free:
        return Check("memory", "OK", found)
    fit = free // needs.worker_bytes
    if fit < 1:
        return Check("memory", "FAIL", found, "Use a machine with more memory, or a lower gates.frame.max_keyframes.")
    return Check("memory", "WARN", found, f"Use --workers {fit}.")


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
    jobs = list(range(4 * (engine.workers or 16)))
    try:
        names = Counter(name for _, name in run(_check_node, jobs, engine, [_find_existing(out), *scenes]))
    except VGBenchError as error:
        return Check(engine.name, "FAIL", str(error), "See docs/cluster.md.")
    return Check(engine.name, "OK", f"{len(names)} nodes answer: {', '.join(sorted(names))}")


def _check_node(_: int) -> str:
    return platform.node()


def _find_existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def _format_gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
