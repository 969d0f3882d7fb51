"""Workers that die are said in one line, whatever killed them."""

from __future__ import annotations

import os
import signal

import pytest

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.pipeline.executors import run_local


def die(job: int) -> int:
    if job == 0:
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out
    return job


def test_a_killed_worker_is_the_users_to_mend() -> None:
    with pytest.raises(VGBenchError, match="use fewer workers and run again"):
        list(run_local(die, [0, 1, 2], workers=2))
