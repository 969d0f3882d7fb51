"""Where work runs, never what it does: the same function gives the same bytes in one process, in many, or on Ray."""

from __future__ import annotations

from vgbench_gen.pipeline.executors.base import Engine, Executor, WorkerDied, begin_work, engines, run

__all__ = ["Engine", "Executor", "WorkerDied", "begin_work", "engines", "run"]
