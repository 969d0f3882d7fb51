"""What an executor is, and what happens to a job whose worker dies."""

from __future__ import annotations

import abc
import ctypes
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.registry import Registry

Job = TypeVar("Job")
Result = TypeVar("Result")
OnSteps = Callable[[int], None]
"""Called with the number of steps (`count_step`) that all jobs of a run have counted so far."""


class WorkerDied(VGBenchError):
    """A worker ended before its job did: killed, out of memory, or crashed in a library."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Where work runs."""

    name: str = "local"
    """Name of a registered executor."""
    workers: int = 1
    """Jobs at once; 0 for all cores that this process may use, or all of a cluster."""
    address: str = ""
    """Address of a running cluster, for executors that use one."""

    @property
    def cores(self) -> int:
        """`workers`, with 0 resolved on this machine."""
        return self.workers or len(os.sched_getaffinity(0))


class Executor(abc.ABC):
    """One way of running independent jobs."""

    @abc.abstractmethod
    def attempt(
        self,
        function: Callable[[Job], Result],
        jobs: Sequence[Job],
        engine: Engine,
        folders: Sequence[Path],
        apart: bool,
        on_steps: OnSteps,
    ) -> Generator[tuple[int, Result | WorkerDied], None, None]:
        """(index of the job, result) as they finish, each job once.

        A job whose worker died gives a `WorkerDied` and costs no other job anything; what a job raises is raised here
        and ends the run. Closing the iterator ends all workers.

        Args:
            folders: what every worker must see under the same path.
            apart: jobs may kill their process, so none runs in this one.
            on_steps: called now and then, where steps can be counted.

        Raises:
            VGBenchError: workers cannot be started, or the cluster cannot be reached.
        """

    @contextmanager
    def begin_work(self, engine: Engine) -> Iterator[None]:
        """As the function `begin_work`; executors whose workers last anyway have nothing to begin."""
        yield


engines: Registry[Executor] = Registry("engine", "vgbench_gen.executors")


def run(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    engine: Engine | None = None,
    folders: Sequence[Path] = (),
    lost: Callable[[Job, WorkerDied], Result] | None = None,
    on_steps: OnSteps = lambda steps: None,
) -> Iterator[tuple[int, Result]]:
    """(index of the job, result) as they finish; start order is the order of `jobs`.

    A job whose worker died is tried once more when all others are done and alone, so that it has the memory to itself.

    Args:
        function: importable by name in another process.
        engine: one local worker by default, which is this process.
        folders: what workers on other machines must see under the same path.
        lost: the result of a job whose worker died twice; without it the second death is raised.
        on_steps: called with the steps (`count_step`) so far, twice a second; Ray counts none.

    Raises:
        UnknownNameError: no such engine.
        WorkerDied: see `lost`.
        VGBenchError: see `Executor.attempt`. Whatever a job raises is raised here and cancels the rest.
    """
    engine = engine or Engine()
    executor = engines[engine.name]
    give_back_memory()
    died: list[int] = []
    with closing(executor.attempt(function, jobs, engine, folders, False, on_steps)) as attempt:
        for index, outcome in attempt:
            if isinstance(outcome, WorkerDied):
                died.append(index)
            else:
                yield index, outcome
    for index in sorted(died):
        with closing(executor.attempt(function, [jobs[index]], engine, folders, True, lambda steps: None)) as attempt:
            for _, outcome in attempt:
                if not isinstance(outcome, WorkerDied):
                    yield index, outcome
                elif lost is None:
                    raise outcome
                else:
                    yield index, lost(jobs[index], outcome)


@contextmanager
def begin_work(engine: Engine) -> Iterator[None]:
    """Workers that stay until the block ends: every `run` in it takes them, in place of new ones that would import
    everything again. A block in a block keeps the workers of the outer one. Changes nothing but the time it takes.

    Args:
        engine: as `run` gets it; workers start with the first `run`.

    Raises:
        UnknownNameError: no such engine.
    """
    with engines[engine.name].begin_work(engine):
        yield


_note_step: Callable[[], object] = bool


def count_step() -> None:
    """Count a step of the job that this process is doing, such as one rendered frame; `run` reports the sum."""
    _note_step()


def set_counter(note_step: Callable[[], object]) -> Callable[[], object]:
    """Have `count_step` call `note_step` in this process; returns what it called before."""
    global _note_step
    before, _note_step = _note_step, note_step
    return before


def do_job(function: Callable[[Job], Result], job: Job) -> Result:
    """What the function gives; the memory that it freed goes back to the system."""
    try:
        return function(job)
    finally:
        give_back_memory()


def give_back_memory() -> None:
    """Give what was freed back to the system: the C library keeps it, and work of another kind, whose arrays have other
    sizes, takes more."""
    if arrow := sys.modules.get("pyarrow"):
        arrow.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def limit_to_one_thread() -> Iterator[None]:
    """One thread per worker: processes are the parallelism, and the order of sums must not follow the core count."""
    import cv2
    import scipy.linalg  # noqa: F401 - loads a BLAS of its own, which must be loaded to be limited
    from threadpoolctl import threadpool_limits

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        cv2.setNumThreads(before)
