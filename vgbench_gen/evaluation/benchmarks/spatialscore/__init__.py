"""SpatialScore in its published form: a JSON list of rows, and a folder with their images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks.spatialscore.questions import REMEDY, Published
from vgbench_gen.evaluation.benchmarks.spatialscore.scoring import SpatialScoreRules
from vgbench_gen.store.files import dataset_error

if TYPE_CHECKING:
    from vgbench_gen.evaluation.layouts import TableLayout


@benchmarks.register("spatialscore")
class SpatialScore(Benchmark):
    """The published JSON files, including the hard subset."""

    scoring = SpatialScoreRules()

    def open(self, path: Path, images: Path | None = None) -> Published:
        if images is not None and not images.is_dir():
            raise dataset_error(images, "no folder", "the folder of images", REMEDY)
        return Published(path, images)

    @property
    def layouts(self) -> Sequence[TableLayout]:
        from vgbench_gen.evaluation.benchmarks.spatialscore.tables import SOURCES, SPATIALSCORE

        return (SPATIALSCORE, *SOURCES)
