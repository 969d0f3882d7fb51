"""What TRL does with each row: `python read_trl.py FOLDER... [KEY=VALUE...]`, in its environment.

Rows are loaded as its command line does it, and given to the collator of `SFTTrainer` or to the code with which
`GRPOTrainer` makes prompts, with a tiny random model. Keys: `trainer` (sft or grpo), `max_length` (1024 as in TRL, or
null), `family`. A row is dropped where nothing of its completion is left to learn.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from fates import explain, start_fates
from parquet_rows import Fates, Judge, Settings, name_rows, run
from tiny_processor import import_torchvision


def make_trainer(rows: Any, processor: Any, model: Any, settings: Settings, out: str) -> Any:
    from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

    given = {"output_dir": out, "use_cpu": True, "bf16": False, "report_to": []}
    if settings.get("trainer") == "grpo":
        config = GRPOConfig(per_device_train_batch_size=2, num_generations=2, **given)
        return GRPOTrainer(model, lambda **_: [], config, train_dataset=rows, processing_class=processor)
    config = SFTConfig(max_length=settings.get("max_length", 1024), **given)
    return SFTTrainer(model, config, train_dataset=rows, processing_class=processor)


def collate(trainer: Any, row: dict[str, Any]) -> str:
    """Why nothing is learned from a row; "" where something is. Raises what `SFTTrainer` raises."""
    import torch

    trainer._set_signature_columns_if_needed()
    batch = trainer.data_collator([{key: value for key, value in row.items() if key in trainer._signature_columns}])
    most = trainer.args.max_length
    if most is not None and batch["input_ids"].shape[1] == most:  # cut, perhaps among the images
        with torch.no_grad():
            trainer.compute_loss(trainer.model, batch)
    return "" if (batch["labels"] != -100).any() else f"nothing of the completion within {most} tokens"


def make_prompt(trainer: Any, row: dict[str, Any]) -> str:
    """What `GRPOTrainer._generate_and_score_completions` does before it generates."""
    from trl.data_utils import is_conversational, prepare_multimodal_messages

    prompt = row["prompt"]
    if row.get("images"):
        assert is_conversational(row), "Multimodal training requires conversational prompts."
        prompt = prepare_multimodal_messages(prompt, images=row["images"])
    trainer._tokenize_prompts([prompt])
    return ""


def find_difference(row: dict[str, Any]) -> str:
    """How the prompt differs from the row; "" where it does not."""
    contents = [message["content"] for message in row["prompt"]]
    if row.get("images") and all(isinstance(content, str) for content in contents):
        return "all images before the first words"
    texts = [part["text"] for content in contents if not isinstance(content, str) for part in content if _is_text(part)]
    return "the word None for a text" if None in texts else ""


def _is_text(part: dict[str, Any]) -> bool:
    return part["type"] == "text"


def make_judge(model: Path) -> Judge:
    import_torchvision()
    from datasets import load_dataset
    from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(model, padding_side="left", truncation_side="left")
    network = AutoModelForImageTextToText.from_config(AutoConfig.from_pretrained(model))

    def judge(folder: Path, settings: Settings) -> Fates:
        rows, found = load_dataset(str(folder / "data"))["train"], start_fates()
        with tempfile.TemporaryDirectory() as out:
            trainer = make_trainer(rows, processor, network, settings, out)
        use = make_prompt if settings.get("trainer") == "grpo" else collate
        for place, name in enumerate(name_rows(rows)):
            try:
                if why := use(trainer, rows[place]):
                    found["dropped"][name] = why
                    continue
                why = find_difference(rows[place])
            except Exception as error:
                found["raised"][name] = explain(error)
                continue
            found["kept"].append(name)
            found["altered"] |= {name: why} if why else {}
        return found

    return judge


if __name__ == "__main__":
    run(sys.argv[1:], make_judge)
