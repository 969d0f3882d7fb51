"""`trl`: a parquet file for TRL, which serves supervised training (`prompt`, `completion`) and GRPO (`solution`)."""

from __future__ import annotations

from typing import Any

from vgbench_gen.publish.export import Export, ExportRow, Job, exports
from vgbench_gen.publish.training_rows import protect, write_table
from vgbench_gen.store.columns import Column

# All messages have typed content: a column has one type, and TRL puts the images of a plain text in front of it. No
# part has a key `image`, because TRL fills only parts without one.
_PART = (Column("type", "string", ""), Column("text", "string", ""))
_MESSAGE = (Column("role", "string", ""), Column("content", "structs", "", fields=_PART))
_COLUMNS = (
    Column("prompt", "structs", "", fields=_MESSAGE),
    Column("completion", "structs", "", fields=_MESSAGE),
    Column("solution", "string", ""),
)


@exports.register("trl")
class Trl(Export):
    """Writes `data/train.parquet`, which holds the images, the reward and a README."""

    trains = True

    def write(self, job: Job) -> str:
        write_table(job, "trl", _COLUMNS, lambda row: _make_record(row, job.settings.system))
        return "trl sft --dataset_name data …, or trl grpo --dataset_name data …, with the settings of README.md"


def _make_record(row: ExportRow, system: str) -> dict[str, Any]:
    content = [_make_part(part["type"], part.get("text")) for part in row.parts()]
    prompt = [{"role": "system", "content": [_make_part("text", system)]}] if system else []
    return {
        "prompt": [*prompt, {"role": "user", "content": content}],
        "completion": [{"role": "assistant", "content": [_make_part("text", row.reply)]}],
        "solution": row.solution,
    }


def _make_part(kind: str, text: str | None) -> dict[str, str | None]:
    return {"type": kind, "text": None if text is None else protect(text)}
