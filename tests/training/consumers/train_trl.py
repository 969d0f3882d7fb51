"""Twenty steps of TRL's GRPO on an export, on the CPU, with a tiny random model of the Qwen2.5-VL family.

    python train_trl.py FOLDER [STEPS]

Prints one JSON object: by step, the mean of the export's own reward and of a reward for the form of a reply, which a
random model reaches by chance and learns within a few steps.
"""

from __future__ import annotations

import importlib
import json
import os
import string
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiny_processor import CHAT, import_torchvision

import_torchvision()
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>")
SPECIAL = (*SPECIAL, "<|video_pad|>")
LETTERS = "ABCDEF"
PROMPTS, REPLIES = 2, 16  # of a step
ROWS = 32  # those with the shortest prompts
LEARNING_RATE = 0.02


def judge_form(completions: Sequence[Any], **_: Any) -> list[float]:
    """1 for a reply that is one letter of an option, 0.5 for another capital letter."""
    said = [one[0]["content"].strip() for one in completions]
    return [1.0 if one in tuple(LETTERS) else 0.5 * (one in tuple(string.ascii_uppercase)) for one in said]


def make_processor() -> Any:
    """A processor with a token for each printed character, which shrinks images to sixteen tokens at most."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    tokens = [*SPECIAL, "?", *(sign for sign in string.printable if sign != "?")]
    letters = Tokenizer(models.WordLevel({token: k for k, token in enumerate(tokens)}, unk_token="?"))
    letters.pre_tokenizer = pre_tokenizers.Split(Regex("(?m)."), "isolated")
    letters.decoder = decoders.Fuse()
    letters.add_special_tokens(list(SPECIAL))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=letters, unk_token="?", pad_token=SPECIAL[0], eos_token=SPECIAL[2], padding_side="left"
    )
    image = Qwen2VLImageProcessor(size={"shortest_edge": 4 * 28 * 28, "longest_edge": 16 * 28 * 28})
    return Qwen2_5_VLProcessor(image, tokenizer, Qwen2VLVideoProcessor(), chat_template=CHAT.replace("DEFAULT", ""))


def make_model(processor: Any) -> Any:
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, set_seed

    set_seed(0)
    numbers = {token: processor.tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 1e6}
    text = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    text |= {"num_key_value_heads": 2, "vocab_size": len(processor.tokenizer), "rope_parameters": rope}
    text |= {"bos_token_id": numbers["<|im_start|>"], "eos_token_id": numbers["<|im_end|>"]}
    vision = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64, "out_hidden_size": 64}
    config = Qwen2_5_VLConfig(
        text_config=text | {"pad_token_id": numbers["<|endoftext|>"]},
        vision_config=vision | {"fullatt_block_indexes": [0]},
        image_token_id=numbers["<|image_pad|>"],
        video_token_id=numbers["<|video_pad|>"],
        vision_start_token_id=numbers["<|vision_start|>"],
        vision_end_token_id=numbers["<|vision_end|>"],
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def train(folder: Path, steps: int, out: str) -> dict[str, Any]:
    from datasets import load_dataset
    from trl import GRPOConfig, GRPOTrainer

    rows = load_dataset(str(folder / "data"))["train"]
    choices = [place for place, case in enumerate(rows["solution"]) if json.loads(case)["truth"] in tuple(LETTERS)]
    lengths = {place: len(str(prompt)) for place, prompt in enumerate(rows["prompt"])}
    choices = sorted(choices, key=lengths.__getitem__)[:ROWS]
    sys.path.insert(0, str(folder.resolve()))
    reward = importlib.import_module("vgbench_reward").reward
    config = GRPOConfig(
        output_dir=out,
        use_cpu=True,
        bf16=False,
        report_to=[],
        logging_steps=1,
        max_steps=steps,
        per_device_train_batch_size=PROMPTS * REPLIES,
        num_generations=REPLIES,
        max_completion_length=1,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        reward_weights=[1.0, 0.5],
        gradient_checkpointing=False,
        save_strategy="no",
        seed=0,
    )
    processor = make_processor()
    trainer = GRPOTrainer(
        make_model(processor),
        [reward, judge_form],
        config,
        train_dataset=rows.select(choices),
        processing_class=processor,
    )
    trainer.train()
    log = [line for line in trainer.state.log_history if "reward" in line]
    means = {name: [line[f"rewards/{name}/mean"] for line in log] for name in ("reward", "judge_form")}
    return {"rows": len(choices), "total": [line["reward"] for line in log], **means}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        os.environ["HF_DATASETS_CACHE"] = work
        print(json.dumps(train(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 20, work)))
