"""Our own datasets: folders of `vgbench build`, or their parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks.vgbench.questions import Built
from vgbench_gen.evaluation.benchmarks.vgbench.scoring import VGBenchRules
from vgbench_gen.store.files import dataset_error

if TYPE_CHECKING:
    from vgbench_gen.evaluation.layouts import TableLayout


_OTHER_FORMATS = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".toml", ".zip", ".tar")


@benchmarks.register("vgbench")
class VGBench(Benchmark):
    """Built datasets."""

    scoring = VGBenchRules()
    builds_datasets = True

    def open(self, path: Path, images: Path | None = None) -> Built:
        if images is not None:
            raise ConfigError(
                f"--images {images}: found it with a built dataset, which contains its images. Leave it out."
            )
        if path.is_file() and path.suffix.casefold() in _OTHER_FORMATS:
            others = ", ".join(name for name in benchmarks if benchmarks[name] is not self)
            raise dataset_error(
                path,
                f"a {path.suffix} file",
                "a dataset of `vgbench build`, or its parquet files",
                f"If it is of another benchmark, name that with --benchmark: {others}.",
            )
        return Built(path)

    @property
    def layouts(self) -> Sequence[TableLayout]:
        from vgbench_gen.evaluation.benchmarks.vgbench.tables import VGBENCH, make_counterparts

        return (VGBENCH, *make_counterparts())
