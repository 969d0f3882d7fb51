"""Processes of this machine."""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.executors.base import (
    Engine,
    Executor,
    Job,
    OnSteps,
    Result,
    WorkerDied,
    do_job,
    engines,
    limit_to_one_thread,
    set_counter,
)

_DIED = (
    "the worker process ended before its work did; most often memory ran out. Use fewer workers or more memory and run "
    "again: what was finished is kept."
)
_NO_START = (
    "found worker processes that ended while starting; expected them to wait for work. Use fewer workers if memory is "
    'short. In a script, build below `if __name__ == "__main__":`.'
)
_BREAKS_MAX = 3  # pools in a row of which no process ever did a job
_LOOK_S = 0.5  # between looks at the steps counted and at the health of the pool


class WorkerPool:
    """Spawned processes, started with the first call; OpenCV's and Open3D's threads do not survive a fork.

    They compute on one thread, leave Ctrl-C to this process and end with it. A process that dies, or that a time limit
    or a cancelled future ends, costs the call in it, and another takes its place.

    Args:
        count: processes.
        prepare: called in each when it starts, outside any time limit; importable by name.
    """

    def __init__(self, count: int, prepare: Callable[[], object] | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self.count = count
        self._steps = context.Value("q", 0)
        self._pool = ProcessPool(count, context=context, initializer=_begin_worker, initargs=[self._steps, prepare])

    def submit(self, function: Callable[..., Result], *args: Any, limit_s: float | None = None) -> Future[Result]:
        """The future result of a call; `function` is importable by name, and cancelling it ends its process.

        The future raises what the function raises, `TimeoutError` after `limit_s`, pebble's `ProcessExpired` where the
        process died, and `BrokenProcessPool` where processes end before they begin a call.
        """
        # Pickled here and unpickled within the call: pebble unpickles under a lock that all processes share, where the
        # imports of one would hold up the others, and its death would block them.
        pickled = pickle.dumps((function, args))
        try:
            call: Future[Result] = self._pool.schedule(_call, args=[pickled], timeout=limit_s)
        except RuntimeError as error:  # all processes have ended
            call = Future()
            call.set_exception(BrokenProcessPool(str(error)))
        return call

    @property
    def steps(self) -> int:
        """Steps that the processes have counted (`count_step`)."""
        return int(self._steps.value)

    @property
    def is_broken(self) -> bool:
        """Whether no further call will be answered."""
        return not self._pool.active

    def stop(self) -> None:
        """End all processes at once, whatever they do; files appear under their names only when they are whole."""
        self._pool.stop()
        self._pool.join()


@engines.register("local")
class Local(Executor):
    """A `WorkerPool`; one worker or one job runs in this process."""

    def __init__(self) -> None:
        self._idle: WorkerPool | None = None
        self._blocks = 0

    @contextmanager
    def begin_work(self, engine: Engine) -> Iterator[None]:
        self._blocks += 1
        try:
            yield
        finally:
            self._blocks -= 1
            if not self._blocks:
                self._stop_idle()

    def attempt(
        self,
        function: Callable[[Job], Result],
        jobs: Sequence[Job],
        engine: Engine,
        folders: Sequence[Path],
        apart: bool,
        on_steps: OnSteps,
    ) -> Generator[tuple[int, Result | WorkerDied], None, None]:
        """As `Executor.attempt`; folders are those of this machine and need no check."""
        if not apart and (engine.cores <= 1 or len(jobs) <= 1):
            numbers = itertools.count(1)
            before = set_counter(lambda: on_steps(next(numbers)))
            try:
                with limit_to_one_thread():
                    for index, job in enumerate(jobs):
                        yield index, do_job(function, job)
            finally:
                set_counter(before)
            return
        if apart:
            self._stop_idle()  # what its processes hold may be the memory that was lacking
        waiting, breaks = deque(range(len(jobs))), 0
        running: dict[Future[Result], int] = {}
        outcomes: list[tuple[int, Result | WorkerDied]] = []
        pool = self._take_pool(min(engine.cores, len(jobs)))
        other_steps = -pool.steps
        try:
            while True:
                while waiting and len(running) < pool.count:
                    index = waiting.popleft()
                    running[pool.submit(do_job, function, jobs[index])] = index
                yield from outcomes
                if not running:
                    break
                done, outcomes = wait(running, _LOOK_S, FIRST_COMPLETED).done, []
                on_steps(other_steps + pool.steps)
                is_broken = pool.is_broken
                for future in list(running) if is_broken else done:
                    index = running.pop(future)
                    error = future.exception() if future.done() else BrokenProcessPool()
                    if isinstance(error, BrokenProcessPool):
                        waiting.appendleft(index)  # no process has begun it
                    else:
                        died = isinstance(error, ProcessExpired)
                        outcomes.append((index, WorkerDied(_DIED) if died else future.result()))
                breaks = 0 if outcomes else breaks + is_broken
                if is_broken:
                    if breaks == _BREAKS_MAX:
                        raise VGBenchError(_NO_START)
                    other_steps += pool.steps
                    pool.stop()
                    pool = WorkerPool(pool.count)
        except BaseException:
            pool.stop()
            raise
        if self._blocks and self._idle is None:
            self._idle = pool
        else:
            pool.stop()

    def _take_pool(self, count: int) -> WorkerPool:
        """The pool that the last work of a block left, or a new one where that is broken or has fewer processes."""
        pool = self._idle
        if pool is None or pool.is_broken or pool.count < count:
            self._stop_idle()
            pool = WorkerPool(count)
        self._idle = None
        return pool

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.stop()
            self._idle = None


def _call(pickled: bytes) -> Any:
    """What the function gives; runs in a worker."""
    function, args = pickle.loads(pickled)
    return function(*args)


def _begin_worker(steps: Any, prepare: Callable[[], object] | None) -> None:
    """Begin a worker's life: it ends with its parent, at SIGTERM at once, and computes on one thread."""

    def note_step() -> None:
        with steps.get_lock():
            steps.value += 1

    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # pebble's own handler waits for library calls to return
    threading.Thread(target=_end_with_parent, daemon=True).start()
    set_counter(note_step)
    _forever.append(limit_to_one_thread())
    _forever[-1].__enter__()
    if prepare is not None:
        prepare()


_forever: list[Any] = []


def _end_with_parent() -> None:
    # A worker of a killed build would otherwise go on writing beside the next build, and then wait for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
