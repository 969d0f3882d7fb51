"""ROVER's part in `vgbench eval --judge`: reading samples, judging them, averages and agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.evaluation.benchmarks.rover import tables
from vgbench_gen.evaluation.benchmarks.rover.evaluator import ROVEREvaluator, find_default_judge
from vgbench_gen.evaluation.benchmarks.rover.questions import open_tasks
from vgbench_gen.evaluation.benchmarks.rover.samples import EvaluationSample, read_samples


class RoverJudge:
    """The judge of ROVER; see `evaluation.base.Judge`."""

    def default_spec(self) -> str:
        return find_default_judge()

    def read_samples(self, path: Path) -> Sequence[EvaluationSample]:
        return list(read_samples(path))

    def generated_samples(self, data: Path, generated: Path) -> tuple[Sequence[EvaluationSample], int]:
        """(samples of the tasks that have a generated image, number of all tasks)."""
        source = open_tasks(data)
        return list(source.samples(generated)), len(source.items)

    def evaluator(self, spec: str, metrics: str, askings: int, options: BackendOptions, repeat: int) -> ROVEREvaluator:
        return ROVEREvaluator(metrics or None, askings, spec, options, repeat)

    def agreement(self, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
        return tables.measure_agreement(runs)
