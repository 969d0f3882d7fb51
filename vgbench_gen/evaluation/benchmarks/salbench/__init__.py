"""SalBench: in which features does one object of many differ (`docs/protocols.md#salbench`; arXiv 2507.04741).

`salbench-vlm/salbench` on the Hub, split `test`, six configurations: P3 (synthetic images, three features) and O3
(natural ones, seven), each for detection, referring (`_box`: the object's box in the text) and visual referring
(`_box_img`: drawn in red). Columns `image`, `question` (the complete prompt), `answer` ("Color, Size"), `image_id`.
ImagePlace `question` is not there it is built from `bbox`, `num_distractors` and `object_category`, with the answer in
`label` or `labels`; the box is drawn where `image_with_box` is not there. A box is [xmin, ymin, xmax, ymax] or has
these names; values up to 1 are taken as shares of the image. That raw form was never published; it follows the plan of
the benchmark's authors, and how many rows O3 has is only known once it is there.
"""

from __future__ import annotations

from pathlib import Path

from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks._parquet import ParquetSource
from vgbench_gen.evaluation.benchmarks.salbench.questions import SHORT, open_questions


@benchmarks.register("salbench")
class SalBench(Benchmark):
    """SalBench from its parquet files: a folder with one subfolder or file per configuration, or one such file."""

    prompt_set = "salbench"
    short_tasks = SHORT

    def open(self, path: Path, images: Path | None = None) -> ParquetSource:
        """As `Benchmark.open`."""
        return open_questions(path)
