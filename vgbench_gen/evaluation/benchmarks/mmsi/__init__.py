"""MMSI-Bench: spatial questions about several images (`docs/protocols.md#mmsi-bench`).

`RunsenXu/MMSI-Bench` on the Hub, split `test`, 1,000 questions: `id`, `images` (encoded), `question_type` (11 of them,
with an en dash in newer copies and a hyphen in older ones), `question` (its options inside: "Options: A: …, B: …"),
`answer` (A to D), `thought` (the authors' reasoning, never shown to a model). The paths of the parquet files in the
repository have changed, so any parquet file below the folder with these columns is read.

Task files of lmms-eval, including the shipped ones, call the functions with `msr_` in their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks._parquet import ParquetSource
from vgbench_gen.evaluation.benchmarks.mmsi.lmms_tasks import (
    msr_aggregate_results,
    msr_doc_to_text,
    msr_doc_to_text_with_gen_prompt,
    msr_doc_to_visual,
    msr_process_results,
)
from vgbench_gen.evaluation.benchmarks.mmsi.questions import REPOSITORY, TYPES, open_questions, task_of
from vgbench_gen.evaluation.benchmarks.mmsi.scoring import MMSIRules

if TYPE_CHECKING:
    from vgbench_gen.evaluation.layouts import TableLayout


__all__ = [
    "MMSI",
    "REPOSITORY",
    "msr_aggregate_results",
    "msr_doc_to_text",
    "msr_doc_to_text_with_gen_prompt",
    "msr_doc_to_visual",
    "msr_process_results",
    "task_of",
]


@benchmarks.register("mmsi")
class MMSI(Benchmark):
    """MMSI-Bench from its parquet files."""

    scoring = MMSIRules()
    prompt_set = "mmsi_official"
    max_tokens = 2048
    short_prompts: ClassVar[Mapping[str, str]] = {
        "seed": "mmsi_seed",
        "official": "mmsi_official",
        "lmms_unig2u": "mmsi_lmms_unig2u",
    }
    short_tasks: ClassVar[Mapping[str, str]] = {f"mmsi_{task}": task for task in TYPES}

    def open(self, path: Path, images: Path | None = None) -> ParquetSource:
        return open_questions(path)

    @property
    def layouts(self) -> Sequence[TableLayout]:
        from vgbench_gen.evaluation.benchmarks.mmsi.tables import MMSI as layout

        return (layout,)
