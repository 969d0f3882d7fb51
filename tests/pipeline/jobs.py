"""Jobs of the tests of executors; the processes that do them import this module, which therefore loads little."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from vgbench_gen.executors import count_step


@dataclass(frozen=True)
class Task:
    """deaths: attempts that kill their process. seconds: how long the rest takes."""

    folder: Path
    name: int
    deaths: int = 0
    seconds: float = 0.0


def work(task: Task) -> tuple[int, int]:
    """(name, attempts so far); killed as the kernel does when memory runs out."""
    with (task.folder / str(task.name)).open("a") as tries:
        tries.write(f"{os.getpid()}\n")
    attempts = tried(task)
    if attempts <= task.deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(task.seconds)
    return task.name, attempts


def tried(task: Task) -> int:
    return len((task.folder / str(task.name)).read_text().split())


def count_to(number: int) -> int:
    for _ in range(number):
        count_step()
    return number


def fail(job: int) -> int:
    if job == 1:
        raise OSError(28, "No space left on device", "somewhere")
    time.sleep(3600)
    return job
