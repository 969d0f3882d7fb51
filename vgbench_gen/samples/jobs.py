"""Scenes in several processes, whose frames are counted while they are rendered."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.memory import keep_freed_memory
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.samples.base import RenderedView, World

Made = TypeVar("Made")
OnFrame = Callable[[int, int], None]
_LOOK_S = 0.5  # between looks at how many frames the workers have rendered


def _count_no_frame() -> None:
    pass


_count_frame: Callable[[], None] = _count_no_frame
"""Is called for every frame that this process renders."""


class CountedWorld:
    """A world that counts the pictures taken of it."""

    def __init__(self, world: World) -> None:
        self._world, self._looks = world, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def look(self, camera: Camera, world_from_camera: FloatArray) -> RenderedView:
        view = self._world.look(camera, world_from_camera)
        self._looks += 1
        _count_frame()
        return view

    def count_rest(self, frames: int) -> None:
        """Count the frames of a finished scene that nobody looked at: those whose pose is lost may be left out."""
        for _ in range(self._looks, frames):
            _count_frame()


def run_jobs(
    make: Callable[..., Made], jobs: Sequence[tuple[Any, ...]], workers: int, frames: int, on_frame: OnFrame
) -> Iterator[Made]:
    """What `make` gives for each job, as they are finished.

    Workers are spawned: Open3D's and OpenCV's threads do not survive a fork.

    Args:
        make: called with a job, here or in another process.
        jobs: the arguments of each call.
        workers: processes.
        frames: how many all jobs are to render.
        on_frame: told of (frames rendered, `frames`), at the beginning and at least each second.

    Raises:
        VGBenchError: a worker ended before its work.
    """
    global _count_frame
    if jobs:
        on_frame(0, frames)
    if workers <= 1 or len(jobs) <= 1:
        from threadpoolctl import threadpool_limits

        numbers = itertools.count(1)

        def count_here() -> None:
            on_frame(next(numbers), frames)

        _count_frame = count_here
        try:
            with threadpool_limits(limits=1):  # as in workers: the last digits of sums follow the number of threads
                for job in jobs:
                    yield make(*job)
        finally:
            _count_frame = _count_no_frame
        return
    context = multiprocessing.get_context("spawn")
    rendered = context.Value("q", 0)
    with ProcessPool(
        min(workers, len(jobs)), context=context, initializer=_prepare_worker, initargs=[rendered]
    ) as pool:
        waiting = {pool.schedule(make, args=job) for job in jobs}
        try:
            while waiting:
                finished, waiting = wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
                on_frame(rendered.value, frames)
                for future in finished:
                    yield future.result()
        except ProcessExpired as error:
            raise VGBenchError(
                f"found a worker of {workers} that ended before its work; expected it to finish. Most often memory ran "
                "out: use fewer workers and run again, finished scenes are kept."
            ) from error
        finally:
            pool.stop()  # nobody who ends the program waits for scenes under way; they are made again


def _prepare_worker(rendered: Any) -> None:
    """One thread per worker: processes are the parallelism, and threads that wait use processor time too."""
    import cv2
    from threadpoolctl import threadpool_limits

    def count_frame() -> None:
        with rendered.get_lock():
            rendered.value += 1

    global _count_frame
    _count_frame = count_frame
    keep_freed_memory()
    cv2.setNumThreads(1)
    threadpool_limits(limits=1)
