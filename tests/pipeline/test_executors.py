"""Workers that die cost their own job only, and leave nothing behind that writes."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from tests.pipeline.jobs import Task, count_to, fail, tried, work
from vgbench_gen.core.errors import ConfigError, UnknownNameError, VGBenchError
from vgbench_gen.executors import Engine, Executor, WorkerDied, begin_work, count_step, engines, run

TWO = Engine("local", 2)


def threads(_: int) -> tuple[int, list[int]]:
    assert np.linalg.norm(np.ones(3)) > 1
    return cv2.getNumThreads(), [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_a_killed_worker_costs_one_more_try_and_no_other_job(tmp_path: Path) -> None:
    tasks = [Task(tmp_path, k, deaths=int(k == 1), seconds=0.05) for k in range(6)]
    done = list(run(work, tasks, TWO))
    assert sorted(done) == [(k, (k, 2 if k == 1 else 1)) for k in range(6)]
    assert done[-1][0] == 1, "tried again when all others are done"


def test_in_a_block_a_job_is_tried_again_by_a_worker_of_its_own_when_the_others_are_gone(tmp_path: Path) -> None:
    tasks = [Task(tmp_path, k, deaths=int(k == 1), seconds=0.05) for k in range(4)]
    with begin_work(TWO):
        done = dict(run(work, tasks, TWO))
        first, second = (tmp_path / "1").read_text().split()
        others = {pid for k in (0, 2, 3) for pid in (tmp_path / str(k)).read_text().split()}
        assert done[1] == (1, 2)
        assert second not in {first, *others}
        until = time.monotonic() + 120
        while any(running(int(pid)) for pid in others):
            assert time.monotonic() < until, "workers that hold memory stayed beside it"
            time.sleep(0.02)


def test_a_worker_that_dies_twice_is_told_with_its_job(tmp_path: Path) -> None:
    tasks = [Task(tmp_path, 0, deaths=9), Task(tmp_path, 1)]
    done = dict(run(work, tasks, TWO, lost=lambda task, error: (-task.name - 1, tried(task))))
    assert done == {0: (-1, 2), 1: (1, 1)}


def test_workers_of_a_block_do_all_its_work_and_end(tmp_path: Path) -> None:
    jobs = [Task(tmp_path, k, seconds=0.1) for k in range(4)]

    def workers() -> set[str]:
        return {(tmp_path / str(k)).read_text().split()[-1] for k in range(4)}

    with begin_work(TWO):
        with begin_work(TWO):
            assert sorted(run(work, jobs, TWO)) == [(k, (k, 1)) for k in range(4)]
        early = workers()
        list(run(work, jobs, TWO))
        assert workers() & early, "the next work is done by the same ones"
        early |= workers()
    with begin_work(TWO):
        list(run(work, jobs, TWO))
        late = workers()
        assert not late & early
    until = time.monotonic() + 120
    while any(running(int(name)) for name in late | early):
        assert time.monotonic() < until, "workers stayed after their block"
        time.sleep(0.02)
    with begin_work(Engine()):
        assert list(run(abs, [-1])) == [(0, 1)]


def test_workers_that_are_killed_between_jobs_cost_no_job(tmp_path: Path) -> None:
    with begin_work(TWO):
        list(run(work, [Task(tmp_path, k) for k in range(2)], TWO))
        for pid in {(tmp_path / str(k)).read_text().strip() for k in range(2)}:
            os.kill(int(pid), signal.SIGKILL)
        done = sorted(run(work, [Task(tmp_path, k) for k in range(2, 6)], TWO))
    assert done == [(k, (k + 2, 1)) for k in range(4)]


class AlwaysDies(Executor):
    def attempt(
        self, function: Any, jobs: Sequence[Any], engine: Engine, folders: Sequence[Path], apart: bool, *more: Any
    ) -> Generator[tuple[int, Any], None, None]:
        yield from ((k, WorkerDied("memory ran out")) for k in range(len(jobs)))


def test_a_second_death_is_raised_where_nobody_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_entries", {**engines._entries, "dies": AlwaysDies()})
    with pytest.raises(WorkerDied, match="memory ran out"):
        list(run(abs, [1, 2], Engine("dies")))


def test_what_a_job_raises_is_raised_as_it_is_and_ends_the_others() -> None:
    began = time.monotonic()
    with pytest.raises(OSError, match="somewhere") as caught:
        list(run(fail, [0, 1, 2], TWO))
    assert (caught.value.errno, caught.value.filename) == (28, "somewhere")
    assert time.monotonic() - began < 300, "a job that sleeps for an hour was waited for"


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """A killed build must not go on writing into a folder that the next build has locked."""
    code = (
        "from pathlib import Path; import sys\n"
        "from tests.pipeline.jobs import Task, work\n"
        "from vgbench_gen.executors import Engine, run\n"
        "list(run(work, [Task(Path(sys.argv[1]), k, seconds=3600) for k in range(2)], Engine('local', 2)))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=Path(__file__).parents[2])
    while not all((tmp_path / str(k)).is_file() and (tmp_path / str(k)).read_text().strip() for k in range(2)):
        assert parent.poll() is None
        time.sleep(0.02)
    workers = [int((tmp_path / str(k)).read_text()) for k in range(2)]
    parent.kill()
    parent.wait()
    until = time.monotonic() + 120
    while any(running(pid) for pid in workers):
        assert time.monotonic() < until, "workers outlived their parent"
        time.sleep(0.02)


def test_an_interrupt_does_not_wait_for_jobs_under_way() -> None:
    code = (
        "import signal, time; from vgbench_gen.executors import Engine, run\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # where tests run in the background
        "    told = lambda steps: print(steps, flush=True)\n"
        "    list(run(time.sleep, [300, 300], Engine('local', 2), on_steps=told))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(60) != 0
        finally:
            process.kill()


@pytest.mark.parametrize("engine", [Engine(), TWO])
def test_steps_of_all_jobs_are_added_up(engine: Engine) -> None:
    with begin_work(engine):
        for jobs in ([3, 4], [5, 1, 2]):
            seen: list[int] = []
            assert sorted(run(count_to, jobs, engine, on_steps=seen.append)) == list(enumerate(jobs))
            assert seen == sorted(seen)
            assert seen[-1] == sum(jobs)
    count_step()  # outside a run it does nothing


def running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("engine", [Engine(), TWO])
def test_a_worker_computes_on_one_thread(engine: Engine) -> None:
    before = cv2.getNumThreads()
    for _, (opencv, blas) in run(threads, [0, 1], engine):
        assert opencv == 1
        assert blas
        assert set(blas) == {1}
    assert cv2.getNumThreads() == before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")
def test_memory_that_a_job_freed_goes_back_to_the_system() -> None:
    held: list[object] = []

    def resident_mb() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

    def fill(count: int) -> float:
        arrays = [np.ones(12_000) for _ in range(count)]  # 96 kB each: none has pages of its own
        held.append(arrays[-1])  # lies above the others, which the C library then keeps
        return resident_mb()

    ((_, full_mb),) = run(fill, [800])
    assert resident_mb() < full_mb - 50


def test_workers_that_cannot_start_blame_no_job(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from vgbench_gen.executors import Engine, run\n"
        "list(run(abs, [1, 2], Engine('local', 2), lost=lambda job, error: job))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    # Python's resource tracker may still warn of the semaphores of a process that was ended while it started.
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("vgbench_gen.core.errors.VGBenchError: ")]
    assert 'build below `if __name__ == "__main__":`' in said


def test_engines_are_found_by_name() -> None:
    assert engines.names() == ["local", "ray"]
    with pytest.raises(UnknownNameError, match=r"no engine is called 'rey'\. Did you mean ray\?"):
        list(run(abs, [1], Engine("rey")))


def test_ray_that_is_not_installed_is_the_users_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r'pip install "vgbench-gen\[ray\]"'):
        list(run(abs, [1], Engine("ray")))
    assert issubclass(ConfigError, VGBenchError)
