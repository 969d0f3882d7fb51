"""Datasets of our own: what `vgbench build` made, or its parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks.vgbench.questions import Built
from vgbench_gen.evaluation.benchmarks.vgbench.scoring import VGBenchRules

if TYPE_CHECKING:
    from vgbench_gen.evaluation.layouts import TableLayout


@benchmarks.register("vgbench")
class VGBench(Benchmark):
    """Built datasets."""

    scoring = VGBenchRules()
    builds_datasets = True

    def open(self, path: Path, images: Path | None = None) -> Built:
        """As `Benchmark.open`."""
        if images is not None:
            raise ConfigError(
                f"--images {images}: found it with a built dataset, which holds its images. Leave it out."
            )
        return Built(path)

    @property
    def layouts(self) -> Sequence[TableLayout]:
        """See `Benchmark.layouts`."""
        from vgbench_gen.evaluation.benchmarks.vgbench.tables import VGBENCH

        return (VGBENCH,)
