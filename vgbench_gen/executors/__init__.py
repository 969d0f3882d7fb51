"""Where work runs, never what it does: the same function gives the same bytes in one process, in many, or on Ray."""

from __future__ import annotations

from vgbench_gen.executors.base import Engine, Executor, OnSteps, WorkerDied, begin_work, count_step, engines, run

__all__ = ["Engine", "Executor", "OnSteps", "WorkerDied", "begin_work", "count_step", "engines", "run"]
