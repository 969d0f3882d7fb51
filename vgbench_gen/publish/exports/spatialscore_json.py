"""The schema in which SpatialScore is published (`haoningwu3639/SpatialScore: version_0/dataset/`).

Besides its eleven keys, rows have `group_id` and `pair_id` for audits. The options are in the question's text, one per
line; the prompt is left to the program that reads the file.
"""

from __future__ import annotations

import json
from typing import Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.prompting import find_prompt_set, make_full_text
from vgbench_gen.importers.base import read_origin_index
from vgbench_gen.publish.export import Export, ExportRow, Job, exports


@exports.register("spatialscore-json")
class SpatialScoreJson(Export):
    """Writes `NAME.json` and `images/`."""

    def write(self, job: Job) -> str:
        rows = [_make_row(row, job.source.benchmark) for row in job.rows()]
        numbers: dict[int, int] = {}
        for number, row in enumerate(rows):
            if (first := numbers.setdefault(row["index"], number)) != number:
                raise ConfigError(f"spatialscore-json: found index {row['index']} in rows {first} and {number}.")
        job.text(f"{job.name}.json", json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
        job.template("spatialscore-json/README.md", "README.md")
        return f"vgbench eval {job.name}.json --benchmark spatialscore --model …"


def _make_row(row: ExportRow, benchmark: str) -> dict[str, Any]:
    item = row.asked.item
    return {
        "index": item.index,
        "category": item.category,
        "subcategory": item.subcategory,
        "question_type": item.question_type,
        "input_modality": item.input_modality,
        "question": make_full_text(item, find_prompt_set(row.asked.key.prompt_set)),
        "answer": item.answer,
        "img_paths": [f"./{path}" for path in row.images],
        "source": item.benchmark.rpartition("/")[2] or benchmark,
        "index_origin": read_origin_index(item),
        "category_origin": item.category_origin,
        "group_id": item.group_id,
        "pair_id": item.pair_id,
    }
