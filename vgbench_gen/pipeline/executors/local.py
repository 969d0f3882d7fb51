"""Processes of this machine."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import VGBenchError
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

_DIED = (
    "the worker process ended before its work did; most often memory ran out. Use fewer workers or more memory and run "
    "again: what was finished is kept."
)


@engines.register("local")
class Local(Executor):
    """Spawned processes; one worker or one job runs in this process.

    Each worker is a pool of one: a pool of many breaks as a whole when one of its processes dies, and then nobody
    knows whose job it was.
    """

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._blocks = 0

    @contextmanager
    def begin_work(self, engine: Engine, prepare: Callable[[], None] | None) -> Iterator[None]:
        if prepare is not None and engine.cores > 1 and not self._blocks:
            self._idle += [_Worker(prepare) for _ in range(engine.cores)]
        self._blocks += 1
        try:
            yield
        finally:
            self._blocks -= 1
            if not self._blocks:
                self._stop_idle()

    def _stop_idle(self) -> None:
        while self._idle:
            self._idle.pop().stop()

    def attempt(
        self,
        function: Callable[[Job], Result],
        jobs: Sequence[Job],
        engine: Engine,
        folders: Sequence[Path],
        apart: bool,
    ) -> Generator[tuple[int, Result | WorkerDied], None, None]:
        """See `Executor.attempt`; folders are those of this machine and need no check."""
        if not apart and (engine.cores <= 1 or len(jobs) <= 1):
            keep_freed_memory()
            with limit_to_one_thread():
                for index, job in enumerate(jobs):
                    yield index, function(job)
            return
        if apart:
            self._stop_idle()  # what they hold may be what was lacking
        waiting = list(enumerate(jobs))[::-1]
        running: dict[Future[Result], tuple[int, _Worker]] = {}
        wanted = min(engine.cores, len(jobs))
        workers = [self._idle.pop() if self._idle else _Worker() for _ in range(wanted)]

        def start(worker: _Worker) -> None:
            if waiting:
                index, job = waiting.pop()
                running[worker.submit(function, job)] = index, worker

        try:
            for worker in workers:
                worker.wait_until_started()
                start(worker)
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    index, worker = running.pop(future)
                    outcome: Result | WorkerDied
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        outcome = WorkerDied(_DIED)
                        workers.remove(worker)
                        worker.pool.shutdown()
                        if waiting:
                            worker = _Worker()
                            workers.append(worker)
                            worker.wait_until_started()
                    start(worker)
                    yield index, outcome
        except BaseException:
            for worker in workers:
                worker.kill()
            for worker in workers:
                worker.pool.shutdown()
            raise
        if self._blocks:
            self._idle += workers
        else:
            for worker in workers:
                worker.pool.shutdown()


class _Worker:
    """One process behind a pool of one. Spawned, not forked: OpenCV's and Open3D's threads do not survive a fork."""

    def __init__(self, first: Callable[[], None] | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(1, mp_context=context, initializer=prepare)
        self._pid = self.pool.submit(os.getpid)
        if first is not None:
            self.pool.submit(first)

    def wait_until_started(self) -> None:
        """Raises VGBenchError where the process cannot even begin: no job is to blame for that."""
        try:
            self._pid.result()
        except BrokenProcessPool as error:
            raise VGBenchError(
                "found a worker process that ended while starting; expected it to wait for work. Use fewer workers if "
                'memory is short. In a script, build below `if __name__ == "__main__":`.'
            ) from error

    def submit(self, function: Callable[[Job], Result], job: Job) -> Future[Result]:
        """The outcome to come; `BrokenProcessPool` where the process has ended before."""
        try:
            return self.pool.submit(function, job)
        except BrokenProcessPool as error:
            lost: Future[Result] = Future()
            lost.set_exception(error)
            return lost

    def stop(self) -> None:
        """End a process without work once it has started."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    def kill(self) -> None:
        """End the process at once, whatever it does; files appear under their names only when they are whole."""
        if self._pid.done() and not self._pid.exception():
            with suppress(ProcessLookupError):
                os.kill(self._pid.result(), signal.SIGKILL)


def prepare() -> None:
    """Begin a worker's life: it ends with its parent, leaves Ctrl-C to the parent, and computes on one thread."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_freed_memory()
    _forever.append(limit_to_one_thread())
    _forever[-1].__enter__()


_forever: list[Any] = []


def _end_with_parent() -> None:
    # A worker of a killed build would otherwise go on writing beside the next build, and then wait for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
