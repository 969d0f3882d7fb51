"""`ms-swift`: rows and settings for `swift sft` and, with `solution` for a reward, for `swift rlhf` with GRPO."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.publish.export import Export, Job, exports
from vgbench_gen.publish.training_rows import describe_row, find_model, format_settings, make_messages
from vgbench_gen.training.families import FAMILIES

SFT, GRPO = "sft.yaml", "grpo.yaml"


@exports.register("ms-swift")
class MsSwift(Export):
    """Writes rows, images, and the settings of both kinds of training, with the reward of the second."""

    trains = True

    def write(self, job: Job) -> str:
        settings = make_settings(job)
        job.json_lines(f"{job.name}.jsonl", _make_records(job))
        job.text(SFT, format_settings(settings))
        rewards = {"rlhf_type": "grpo", "external_plugins": ["vgbench_reward.py"], "reward_funcs": ["vgbench"]}
        job.text(GRPO, format_settings(settings | rewards | {"num_generations": 8, "max_completion_length": 1024}))
        job.template("rewards/vgbench_reward.py", "vgbench_reward.py")
        job.scorer()
        job.template("ms-swift/README.md", "README.md")
        return f"swift sft {SFT}"


def _make_records(job: Job) -> Iterator[dict[str, Any]]:
    for row in job.rows():
        messages = make_messages(row, job.settings.system)
        yield {**describe_row(row), "messages": messages, "images": list(row.images), "solution": row.solution}


def make_settings(job: Job) -> dict[str, Any]:
    """Settings with which no row is replaced in silence and images are resized as the family's processor does it.

    Raises:
        ConfigError: a limit that cannot be told to ms-swift, which counts it in tokens.
    """
    family = FAMILIES[job.train.family or "qwen2.5-vl"]
    limits: dict[str, str] = {}
    if family.step_px:
        token_px = family.step_px**2
        limits = {"IMAGE_MIN_TOKEN_NUM": str(family.min_pixels // token_px)}  # 4 if left out, whatever the family
        if job.train.max_pixels % token_px:
            expected = f"a multiple of {token_px}, the pixels of one token"
            remedy = f"Give --max-pixels {job.train.max_pixels // token_px * token_px}."
            raise config_error("--max-pixels", str(job.train.max_pixels), expected, remedy)
        limits["IMAGE_MAX_TOKEN_NUM"] = str((job.train.max_pixels or family.max_pixels) // token_px)
    return {
        "ENV": limits,
        "model": find_model(job).removesuffix("-hf"),
        "dataset": [f"{job.name}.jsonl"],
        "strict": True,
        "torch_dtype": "bfloat16",
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 8,
        "learning_rate": 0.0001,
        "num_train_epochs": 1,
        "output_dir": "output",
    }
