"""`easyr1`: a parquet file for reinforcement learning with EasyR1 (`hiyouga/EasyR1: verl/utils/dataset.py`)."""

from __future__ import annotations

from vgbench_gen.publish.export import Export, ExportRow, Job, exports
from vgbench_gen.publish.training_rows import TABLE, make_messages, write_table
from vgbench_gen.store.columns import Column

_COLUMNS = (Column("problem", "string", ""), Column("answer", "string", ""))


@exports.register("easyr1")
class EasyR1(Export):
    """Writes `data/train.parquet`, which holds the images, the reward and a README."""

    trains = True
    refuses = ("rationale",)  # only the prompt is shown

    def write(self, job: Job) -> str:
        write_table(job, "easyr1", _COLUMNS, lambda row: _make_record(row, job.settings.system))
        return f"python -m verl.trainer.main data.train_files={TABLE} …, with the settings of README.md"


def _make_record(row: ExportRow, system: str) -> dict[str, str]:
    # EasyR1 makes one message of `problem`, so a system prompt becomes its first words.
    texts = [message["content"] for message in make_messages(row, system)[:-1]]
    return {"problem": "\n\n".join(texts), "answer": row.solution}
