"""`verl`: a parquet file for reinforcement learning with verl (`verl/utils/dataset/rl_dataset.py:RLHFDataset`)."""

from __future__ import annotations

from itertools import count
from typing import Any

from vgbench_gen.publish.export import Export, ExportRow, Job, exports
from vgbench_gen.publish.training_rows import TABLE, make_messages, write_table
from vgbench_gen.store.columns import Column

_COLUMNS = (
    Column("data_source", "string", ""),
    Column("prompt", "structs", "", fields=(Column("role", "string", ""), Column("content", "string", ""))),
    Column("ability", "string", ""),
    Column("reward_model", "struct", "", fields=(Column("style", "string", ""), Column("ground_truth", "string", ""))),
    Column("extra_info", "struct", "", fields=(Column("index", "int64", ""), Column("id", "string", ""))),
)


@exports.register("verl")
class Verl(Export):
    """Writes `data/train.parquet`, which holds the images, the reward and a README."""

    trains = True
    # Only the prompt is shown; qwen_vl_utils rounds the sides before the processor shrinks them: not the family's size.
    refuses = ("max_pixels", "rationale")

    def write(self, job: Job) -> str:
        numbers = count()
        write_table(job, "verl", _COLUMNS, lambda row: _make_record(row, next(numbers), job.settings.system))
        return f"python -m verl.trainer.main_ppo data.train_files={TABLE} …, with the settings of README.md"


def _make_record(row: ExportRow, number: int, system: str) -> dict[str, Any]:
    return {
        "data_source": f"vgbench/{row.item.task}",  # validation scores are grouped by it
        "prompt": make_messages(row, system)[:-1],
        "ability": row.item.category,
        "reward_model": {"style": "rule", "ground_truth": row.solution},
        "extra_info": {"index": number, "id": row.item.id},
    }
