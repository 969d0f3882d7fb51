"""Where work runs, never what it does: the same function gives the same bytes in this process or in many."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from vgbench_gen.core.errors import VGBenchError

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_local(function: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[tuple[int, Result]]:
    """(index of the job, result) as they finish, in `workers` processes; one worker runs in this process.

    A failure is raised here and cancels what has not started. Workers are spawned, not forked: OpenCV's and Open3D's
    threads do not survive a fork.

    Raises:
        VGBenchError: a worker was killed, or could not start.
    """
    if workers <= 1 or len(jobs) <= 1:
        for index, job in enumerate(jobs):
            yield index, function(job)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=context, initializer=quiet_worker) as pool:
        waiting = {pool.submit(function, job): index for index, job in enumerate(jobs)}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool as error:
            raise VGBenchError(
                f"found a worker of {workers} that ended before its work; expected it to finish. Most often memory ran "
                "out: use fewer workers and run again, what was finished is kept. In a script, build below "
                '`if __name__ == "__main__":`.'
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def quiet_worker() -> None:
    """One thread per worker: processes are the parallelism, and threads inside them only fight over cores."""
    import cv2

    cv2.setNumThreads(1)
