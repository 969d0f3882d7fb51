"""`axolotl`: conversations for axolotl's trainer of vision models, and its configuration.

Images are parts of messages: of those in a column `images`, axolotl shows the first one alone.
"""

from __future__ import annotations

from typing import Any

from vgbench_gen.publish.export import Export, Job, exports
from vgbench_gen.publish.training_rows import find_model, format_settings, make_typed_records

SETTINGS = "axolotl.yaml"


@exports.register("axolotl")
class Axolotl(Export):
    """Writes `train.jsonl`, `axolotl.yaml` and `images/`."""

    trains = True

    def write(self, job: Job) -> str:
        job.json_lines("train.jsonl", make_typed_records(job))
        job.text(SETTINGS, format_settings(_make_settings(job)))
        job.template("axolotl/README.md", "README.md")
        return f"axolotl train {SETTINGS}"


def _make_settings(job: Job) -> dict[str, Any]:
    """Settings with which every row is trained with its images, and with Qwen's models only its answer is learned."""
    limit = {"processor_kwargs": {"max_pixels": job.train.max_pixels}} if job.train.max_pixels else {}
    return {
        "base_model": find_model(job),
        "processor_type": "AutoProcessor",
        # With another template, axolotl does not find the turns of Qwen's models, and the question is learned as well.
        "chat_template": "tokenizer_default" if job.train.family == "internvl" else "qwen2_vl",
        **limit,
        "datasets": [{"path": "train.jsonl", "type": "chat_template"}],
        "skip_prepare_dataset": True,  # else rows are turned into tokens without images
        "remove_unused_columns": False,
        "sample_packing": False,
        "sequence_len": 32768,
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 8,
        "learning_rate": 1.0e-5,
        "num_epochs": 1,
        "bf16": "auto",
        "output_dir": "output",
    }
