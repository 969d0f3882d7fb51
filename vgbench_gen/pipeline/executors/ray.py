"""Ray: an instance of its own on this machine, or a running cluster whose nodes share their storage."""

from __future__ import annotations

import atexit
import os
import platform
import socket
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.core.memory import keep_freed_memory
from vgbench_gen.pipeline.executors.base import (
    Engine,
    Executor,
    Job,
    Result,
    WorkerDied,
    engines,
    limit_to_one_thread,
)
from vgbench_gen.store.provenance import LOCK, code_version

# Results are rows of text and numbers; without a limit Ray reserves a third of the memory for them.
_OBJECT_STORE_BYTES = 100 * 2**20
_PROBE_S = 10.0
_BYTES_DEPEND_ON = ("numpy", "scipy", "opencv-python", "open3d", "pyarrow")


@engines.register("ray")
class Ray(Executor):
    """One Ray task per job. Retries are ours, so that a job is tried as often here as in local processes."""

    def attempt(
        self,
        function: Callable[[Job], Result],
        jobs: Sequence[Job],
        engine: Engine,
        folders: Sequence[Path],
        apart: bool,
    ) -> Generator[tuple[int, Result | WorkerDied], None, None]:
        """See `Executor.attempt`. Raises VGBenchError where a node has other code or does not see the folders."""
        ray = _connect(engine)
        ground = _Ground.here(folders)
        task = ray.remote(num_cpus=1, max_retries=0)(_work)
        # With a cluster that may grow, what waits is what makes it grow.
        at_once = engine.workers or (len(jobs) if engine.address else engine.cores)
        waiting = iter(enumerate(jobs))
        running: dict[Any, int] = {}

        def start() -> None:
            for index, job in waiting:
                running[task.remote(function, job, ground)] = index
                return

        try:
            for _ in range(at_once):
                start()
            while running:
                done, _ = ray.wait(list(running))
                for reference in done:
                    index = running.pop(reference)
                    outcome = _read_outcome(ray, reference)
                    start()
                    yield index, outcome
        except ray.exceptions.RayError as error:
            raise VGBenchError(
                f"found that Ray failed ({_first_line(error)}); expected it to last as long as the work. "
                "Run again: what was finished is kept."
            ) from error
        finally:
            for reference in running:
                ray.cancel(reference, force=True)


def _read_outcome(ray: Any, reference: Any) -> Any:
    """The result, or a `WorkerDied`; what the job raised is raised as it was."""
    gone = ray.exceptions
    try:
        return ray.get(reference)
    except gone.RayTaskError as error:
        raise error.cause from error
    except (gone.WorkerCrashedError, gone.OutOfMemoryError, gone.NodeDiedError, gone.ObjectLostError) as error:
        return WorkerDied(
            f"the Ray worker ended before its work did ({_first_line(error)}). If memory ran out, give the nodes fewer "
            "CPUs (`ray start --num-cpus`) and run again: what was finished is kept."
        )


def _work(function: Callable[[Job], Result], job: Job, ground: _Ground) -> Result:
    """Runs in a Ray worker."""
    _enter_ground(ground)
    keep_freed_memory()
    with limit_to_one_thread():
        return function(job)


@dataclass(frozen=True, slots=True)
class _Ground:
    """What must be the same for every worker, or the same function would not give the same bytes."""

    versions: tuple[tuple[str, str], ...]
    """The name and version of Python, of our own source and of each package that bytes depend on."""
    folder: str
    folders: tuple[tuple[str, bytes | None], ...]
    """Paths that every worker must see, each with the content of the lock in it, None where it has none; another
    machine may have a folder of that name which is not this one."""

    @classmethod
    def here(cls, folders: Sequence[Path]) -> _Ground:
        seen = tuple((str(folder.absolute()), _lock(folder)) for folder in [*folders, Path.cwd()])
        return cls(_versions(), str(Path.cwd()), seen)


@cache
def _enter_ground(ground: _Ground) -> None:
    """Once per worker. Raises VGBenchError: this node is not like the one that sends the work."""
    node = platform.node()
    for (name, here), (_, there) in zip(_versions(), ground.versions, strict=True):
        if here != there:
            raise VGBenchError(
                f"Ray node {node}: found {name} {here}; expected {there}, as where the work comes from. "
                "Install the same versions on every node (constraints.txt)."
            )
    for folder, lock in ground.folders:
        if not Path(folder).is_dir() or _lock(Path(folder)) != lock:
            raise VGBenchError(
                f"Ray node {node}: found no {folder}, or another one; expected the one where the work comes from. "
                "Scenes and build must lie on storage that every node sees under the same path."
            )
    os.chdir(ground.folder)


def _lock(folder: Path) -> bytes | None:
    try:
        return (folder / LOCK).read_bytes()
    except OSError:
        return None


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    ours = [("python", platform.python_version()), ("vgbench-gen source", code_version()["source"])]
    return tuple(ours + [(name, version(name)) for name in _BYTES_DEPEND_ON])


def _connect(engine: Engine) -> Any:
    """The module `ray`, connected; an instance of our own lasts until this process ends or asks for another.

    Raises:
        ConfigError: Ray is not installed.
        VGBenchError: no cluster answers.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports to anybody
    if engine.address:
        _probe(engine.address)
    else:
        # Without a cluster nothing listens beyond this machine. Read when Ray is imported.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError as error:
        raise ConfigError(
            'found no Ray; expected it for --engine ray. Install it with: pip install "vgbench-gen[ray]"'
        ) from error
    wanted = engine.address or f"local, {engine.cores} workers"
    if ray.is_initialized():
        # Somebody else's connection (a notebook's) is as good as ours.
        if _connected[-1:] in ([], [wanted]):
            return ray
        ray.shutdown()
    _connected.append(wanted)
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "CRITICAL", "configure_logging": True}
    if engine.address:
        settings["address"] = engine.address
    else:
        settings |= {"address": "local", "num_cpus": engine.cores, "include_dashboard": False}
        settings |= {"object_store_memory": _OBJECT_STORE_BYTES}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(**settings)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, ray.exceptions.RayError) as error:
        raise _explain_no_cluster(engine.address or "ray", error) from error
    atexit.register(ray.shutdown)
    return ray


_connected: list[str] = []


def _probe(address: str) -> None:
    """Ask whether anything listens at "host:port" or "ray://host:port"; Ray itself takes minutes to say no."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_S).close()
        except OSError as error:
            raise _explain_no_cluster(address, error) from error


def _explain_no_cluster(address: str, error: Exception) -> VGBenchError:
    return VGBenchError(
        f"{address}: found no Ray cluster ({_first_line(error)}); expected one to answer. Start it with "
        "`ray start --head`, or leave --address out for an instance on this machine."
    )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".")[:200] if lines else type(error).__name__
