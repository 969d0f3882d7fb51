"""`llama-factory`: rows in the form sharegpt, the `dataset_info.json` that describes them, and the settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from vgbench_gen.publish.export import Export, Job, exports
from vgbench_gen.publish.training_rows import describe_row, find_model, format_settings, make_messages

SETTINGS = "train.yaml"
_TAGS = {"role_tag": "role", "content_tag": "content"} | {f"{who}_tag": who for who in ("user", "assistant", "system")}
_TAGS |= {"function_tag": "function_call", "observation_tag": "observation"}  # none if left out


@exports.register("llama-factory")
class LlamaFactory(Export):
    """Writes `NAME.jsonl`, `dataset_info.json`, `train.yaml` and `images/`."""

    trains = True
    # It shrinks an image first, and the processor rounds once more: not the family's size.
    refuses = ("max_pixels",)

    def write(self, job: Job) -> str:
        job.json_lines(f"{job.name}.jsonl", _make_records(job))
        write_settings(job, "messages", "images")
        job.template("llama-factory/README.md", "README.md")
        return f"llamafactory-cli train {SETTINGS}"


def _make_records(job: Job) -> Iterator[dict[str, Any]]:
    for row in job.rows():
        yield {**describe_row(row), "messages": make_messages(row, job.settings.system), "images": list(row.images)}


def write_settings(job: Job, *columns: str) -> None:
    """Write what LLaMA-Factory needs to find these columns of `NAME.jsonl`, and settings with which no row is cut or
    raises and no image is resized before the model's processor sees it."""
    named = {column: column for column in columns}
    info = {"file_name": f"{job.name}.jsonl", "formatting": "sharegpt", "columns": named, "tags": _TAGS}
    job.text("dataset_info.json", json.dumps({job.name: info}, indent=2) + "\n")
    templates = {"qwen3-vl": "qwen3_vl_nothink", "internvl": "intern_vl"}
    settings = {
        "model_name_or_path": find_model(job),
        "template": templates.get(job.train.family, "qwen2_vl"),
        "stage": "sft",
        "do_train": True,
        "finetuning_type": "lora",
        "dataset_dir": ".",
        "dataset": job.name,
        "cutoff_len": 131072,  # 2048 if left out: a longer row loses the end of its prompt, images included
        "image_max_pixels": 16777216,  # 589824 if left out: shrinks larger images, so that points no longer fit
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 8,
        "learning_rate": 1.0e-4,
        "num_train_epochs": 1.0,
        "bf16": True,
        "output_dir": "output",
    }
    job.text(SETTINGS, format_settings(settings))
