"""Datasets of our own: what `vgbench build` made, or its parquet files."""

from __future__ import annotations

from pathlib import Path

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks.vgbench.questions import Built
from vgbench_gen.evaluation.benchmarks.vgbench.scoring import VGBenchRules


@benchmarks.register("vgbench")
class VGBench(Benchmark):
    """Built datasets."""

    scoring = VGBenchRules()

    def open(self, path: Path, images: Path | None = None) -> Built:
        """As `Benchmark.open`."""
        if images is not None:
            raise ConfigError(
                f"--images {images}: found it with a built dataset, which holds its images. Leave it out."
            )
        return Built(path)
