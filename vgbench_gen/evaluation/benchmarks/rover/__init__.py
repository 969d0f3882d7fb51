"""ROVER: is the reasoning of an image generation model correct, in text and image (`docs/protocols.md#rover`)?

`cheryyunl/ROVER` on the Hub, configuration `ROVER-IG`, split `train` (arXiv 2511.01163): `id`, `dimension` (a class
label), `reasoning_type`, `prompt`, `target_description`, `keywords`, `image`, `target_image` (may be null).

There are two steps. `vgbench eval DATA --benchmark rover --model SPEC` asks a model that generates images and writes
`gen_{id}.png` and `gen_{id}.txt` to a folder next to its replies. A judge then grades them from 1 to 5: `--judge SPEC`,
or in Python the functions below, which have the names of ROVER's own code.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgbench_gen.core.lines import format_command
from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks.rover.evaluator import ROVEREvaluator, evaluate_batch, evaluate_single_sample
from vgbench_gen.evaluation.benchmarks.rover.judge import EXTRAS, METRICS
from vgbench_gen.evaluation.benchmarks.rover.judging import RoverJudge
from vgbench_gen.evaluation.benchmarks.rover.questions import Tasks, open_tasks
from vgbench_gen.evaluation.benchmarks.rover.samples import DIMENSIONS, REASONING_TYPES, EvaluationSample
from vgbench_gen.evaluation.benchmarks.rover.scoring import RoverRules

if TYPE_CHECKING:
    from vgbench_gen.evaluation.cases import ScoredCase

__all__ = [
    "DIMENSIONS",
    "EXTRAS",
    "METRICS",
    "REASONING_TYPES",
    "EvaluationSample",
    "ROVEREvaluator",
    "Tasks",
    "evaluate_batch",
    "evaluate_single_sample",
]


@benchmarks.register("rover")
class Rover(Benchmark):
    """ROVER's image generation tasks from their parquet files."""

    scoring = RoverRules()
    judge = RoverJudge()
    prompt_set = "rover"

    def open(self, path: Path, images: Path | None = None) -> Tasks:
        return open_tasks(path)

    def next_step(self, dataset: Path, made: Path) -> str:
        """The command with which a judge grades the generated images."""
        return format_command(
            "vgbench", "eval", dataset, "--benchmark", "rover", "--generated", made, "--judge", "SPEC"
        )

    def score_case(self, row: Mapping[str, Any]) -> ScoredCase:
        """As `Benchmark.score_case`; the cases are replies of a judge."""
        from vgbench_gen.evaluation.benchmarks.rover.cases import score_case

        return score_case(row)
