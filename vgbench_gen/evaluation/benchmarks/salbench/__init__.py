"""SalBench: in which features does one object differ from the others (`docs/protocols.md#salbench`; arXiv 2507.04741)?

`salbench-vlm/salbench` on the Hub, split `test`, six configurations: P3 (synthetic images, three features) and O3
(natural ones, seven), each for detection, referring (`_box`: the object's box in the text) and visual referring
(`_box_img`: drawn in red). Columns `image`, `question` (the complete prompt), `answer` ("Color, Size"), `image_id`.
A row without `question` gets one from `bbox`, `num_distractors` and `object_category`, with the answer in `label` or
`labels`; without `image_with_box` the box is drawn. A box is [xmin, ymin, xmax, ymax] or has these names; values up
to 1 are fractions of the image size. This raw form was never published; it follows the plan of the benchmark's authors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks._parquet import ParquetSource
from vgbench_gen.evaluation.benchmarks.salbench import labels
from vgbench_gen.evaluation.benchmarks.salbench.questions import SHORT, open_questions
from vgbench_gen.evaluation.benchmarks.salbench.scoring import SalBenchRules
from vgbench_gen.evaluation.cases import ScoredCase, format_case, get_text, read_case
from vgbench_gen.evaluation.scoring import score

if TYPE_CHECKING:
    from vgbench_gen.evaluation.board import Board, BoardRun
    from vgbench_gen.evaluation.tables import Table, TableMaker


@benchmarks.register("salbench")
class SalBench(Benchmark):
    """SalBench from its parquet files: a folder with one subfolder or file per configuration, or one such file."""

    scoring = SalBenchRules()
    prompt_set = "salbench"
    short_tasks = SHORT

    def open(self, path: Path, images: Path | None = None) -> ParquetSource:
        return open_questions(path)

    def tables(self, maker: TableMaker) -> Sequence[Table]:
        """SalBench's leaderboards."""
        from vgbench_gen.evaluation.benchmarks.salbench.tables import make_leaderboards

        return make_leaderboards(maker)

    def summary_note(self, board: Board) -> str:
        from vgbench_gen.evaluation.benchmarks.salbench.tables import make_summary_note

        return make_summary_note(board)

    def files(self, board: Board, runs: Sequence[BoardRun]) -> Mapping[str, str]:
        """A CSV file with macro F1 in the form of SalBench's own table."""
        from vgbench_gen.evaluation.benchmarks.salbench.tables import format_macro_csv, list_splits

        return {"salbench.csv": format_macro_csv(board, runs)} if list_splits(board) else {}

    def score_case(self, row: Mapping[str, Any]) -> ScoredCase:
        """As `Benchmark.score_case`; a case may have a field `split`, labels are lists and scores have names."""
        if row.get("split") is not None and str(row.get("benchmark")).casefold() == "salbench":
            row = {**row, "benchmark": f"{row['benchmark']}-{get_text(row, 'split')}"}
        name, case, response = read_case(row)
        scored = score(case, response)
        line = format_case(name, scored)
        for mode, value, measures in (
            ("sane", scored.reading.value, scored.measures),
            ("official", scored.official.extracted, scored.official_measures),
        ):
            if scored.official_measures:
                line[mode]["extracted"] = None if value is None else sorted(labels.convert_to_set(value))
                line[mode]["score"] = {key: measures[key] for key in labels.MEASURES}
        return ScoredCase(line, scored)
