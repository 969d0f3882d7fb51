"""Ray: an instance of its own on this machine, or a running cluster whose nodes share their storage."""

from __future__ import annotations

import atexit
import os
import platform
import socket
import warnings
from collections.abc import Callable, Generator, Sequence
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.executors.base import (
    Engine,
    Executor,
    Job,
    OnSteps,
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
        on_steps: OnSteps,
    ) -> Generator[tuple[int, Result | WorkerDied], None, None]:
        """As `Executor.attempt`. Raises VGBenchError where a node has other code or does not see the folders."""
        ray = _connect(engine)
        locks = tuple((str(path.absolute()), _read_lock(path)) for path in [*folders, Path.cwd()])
        ground = _versions(), locks
        task = ray.remote(num_cpus=1, max_retries=0)(_work)
        # With a cluster that may grow, what waits is what makes it grow.
        at_once = engine.workers or (len(jobs) if engine.address else engine.cores)
        waiting = iter(enumerate(jobs))
        running: dict[Any, int] = {}
        outcomes: list[tuple[int, Any]] = []
        try:
            while True:
                for index, job in islice(waiting, at_once - len(running)):
                    running[task.remote(function, job, ground)] = index
                yield from outcomes
                if not running:
                    return
                outcomes = [(running.pop(done), _read_outcome(ray, done)) for done in ray.wait(list(running))[0]]
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
    errors = ray.exceptions
    try:
        return ray.get(reference)
    except errors.RayTaskError as error:
        raise error.cause from error
    except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError, errors.ObjectLostError) as error:
        return WorkerDied(
            f"the Ray worker ended before its work did ({_first_line(error)}). If memory ran out, give the nodes fewer "
            "CPUs (`ray start --num-cpus`) and run again: what was finished is kept."
        )


def _work(function: Callable[[Job], Result], job: Job, ground: _Ground) -> Result:
    """Runs in a Ray worker."""
    _check_node(ground)
    with limit_to_one_thread():
        return function(job)


_Ground = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, bytes | None], ...]]
"""What must be the same for every worker, or the same function would not give the same bytes: versions (`_versions`),
and folders, the working one last, each with the content of its lock: another machine may have another folder of that
name."""


@cache
def _check_node(ground: _Ground) -> None:
    """Once per worker: see that this node is like the one that sends the work, and enter its folder.

    Raises:
        VGBenchError: it is not.
    """
    versions, folders = ground
    for (name, here), (_, there) in zip(_versions(), versions, strict=True):
        if here != there:
            raise VGBenchError(
                f"Ray node {platform.node()}: found {name} {here}; expected {there}, as where the work comes from. "
                "Install the same versions on every node (constraints.txt)."
            )
    for folder, lock in folders:
        if not Path(folder).is_dir() or _read_lock(Path(folder)) != lock:
            raise VGBenchError(
                f"Ray node {platform.node()}: found no {folder}, or another one; expected the one where the work comes "
                "from. Scenes and build must lie on storage that every node sees under the same path."
            )
    os.chdir(folders[-1][0])


def _read_lock(folder: Path) -> bytes | None:
    try:
        return (folder / LOCK).read_bytes()
    except OSError:
        return None


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Name and version of Python, of our own source and of each package that bytes depend on."""
    ours = [("python", platform.python_version()), ("vgbench-gen source", code_version()["source"])]
    return tuple(ours + [(name, version(name)) for name in _BYTES_DEPEND_ON])


def _connect(engine: Engine) -> Any:
    """The module `ray`, connected; an instance of our own lasts until this process ends or asks for another.

    Raises:
        ConfigError: Ray is not installed.
        VGBenchError: no cluster answers.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports to anybody
    settings: dict[str, Any] = {"address": engine.address}
    if not engine.address:
        # Nothing listens beyond this machine. Read when Ray is imported.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        settings = {"address": "local", "num_cpus": engine.cores, "include_dashboard": False}
        settings |= {"object_store_memory": _OBJECT_STORE_BYTES}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _probe(engine.address)
            import ray

            if ray.is_initialized():
                # Somebody else's connection (a notebook's) is as good as ours.
                if _connected[-1:] in ([], [settings]):
                    return ray
                ray.shutdown()
            _connected.append(settings)
            ray.init(log_to_driver=False, logging_level="CRITICAL", configure_logging=True, **settings)
    except ImportError as error:
        raise ConfigError(
            'found no Ray; expected it for --engine ray. Install it with: pip install "vgbench-gen[ray]"'
        ) from error
    except Exception as error:  # Ray's own errors share no class with those of sockets
        raise VGBenchError(
            f"{engine.address or 'ray'}: found no Ray cluster ({_first_line(error)}); expected one to answer. Start it "
            "with `ray start --head`, or leave --address out for an instance on this machine."
        ) from error
    atexit.register(ray.shutdown)
    return ray


_connected: list[dict[str, Any]] = []


def _probe(address: str) -> None:
    """Ask whether anything listens at "host:port" or "ray://host:port"; Ray itself takes minutes to say no."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_S).close()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".")[:200] if lines else type(error).__name__
