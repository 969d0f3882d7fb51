"""A processor of a Qwen family, made without a network: the package's own image processor, a small tokenizer.

Run or imported in the environment of a trainer. The tokenizer has the family's special tokens at their own numbers,
because trainers have them written into their code; its other tokens are learned from this project's templates, so
that a text has about as many tokens as with the family's own tokenizer.

    python tiny_processor.py qwen2.5-vl FOLDER
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"
FIRST_SPECIAL = 151643
SPECIAL = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>"),
    *("<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
]
CHAT = """{%- for message in messages -%}
{%- if loop.first and message.role != 'system' -%}DEFAULT{%- endif -%}
<|im_start|>{{ message.role }}
{% if message.content is string -%}{{ message.content }}{%- else -%}
{%- for part in message.content -%}
{%- if part.type == 'text' -%}{{ part.text }}
{%- elif part.type in ('image', 'image_url') -%}<|vision_start|><|image_pad|><|vision_end|>{%- endif -%}
{%- endfor -%}
{%- endif -%}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""
# Values of preprocessor_config.json as published with Qwen2.5-VL and Qwen3-VL.
FAMILIES: dict[str, dict[str, Any]] = {
    "qwen2.5-vl": {
        "image": {"patch_size": 14, "size": {"shortest_edge": 3136, "longest_edge": 12845056}},
        "default": "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n",
        "config": "Qwen2_5_VLConfig",
        "model": "Qwen2_5_VLForConditionalGeneration",
        "processor": "Qwen2_5_VLProcessor",
        "video": "Qwen2VLVideoProcessor",
        "vision": {"out_hidden_size": 16, "fullatt_block_indexes": [0], "hidden_size": 16},
        "rope": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e6},
    },
    "qwen3-vl": {
        "image": {
            "patch_size": 16,
            "size": {"shortest_edge": 65536, "longest_edge": 16777216},
            "image_mean": [0.5] * 3,
            "image_std": [0.5] * 3,
        },
        "default": "",
        "config": "Qwen3VLConfig",
        "model": "Qwen3VLForConditionalGeneration",
        "processor": "Qwen3VLProcessor",
        "video": "Qwen3VLVideoProcessor",
        "vision": {"out_hidden_size": 16, "deepstack_visual_indexes": [0], "hidden_size": 16},
        "rope": {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 5e6},
    },
}


def import_torchvision() -> None:
    """Make torchvision importable beside a torch without CUDA, whose operators its wheel does not contain.

    Resizing is Python on torch's own operators; only two operators that nobody calls here must have a name.
    """
    import torch

    try:
        importlib.import_module("torchvision")
    except (RuntimeError, OSError):
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        kept = sys.modules["_kept_for_torchvision"] = ModuleType("_kept_for_torchvision")
        vars(kept)["library"] = library  # a library that is collected takes its names along
        importlib.import_module("torchvision")


def write_processor(family: str, folder: Path) -> Path:
    """Write tokenizer, image processor, chat template and the configuration of a tiny model of a family."""
    import_torchvision()
    import transformers

    facts = FAMILIES[family]
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    template = CHAT.replace("DEFAULT", facts["default"])
    image = transformers.Qwen2VLImageProcessor(**facts["image"])
    video = getattr(transformers, facts["video"])()
    processor = getattr(transformers, facts["processor"])(image, tokenizer, video, chat_template=template)
    processor.save_pretrained(folder)
    # One trainer looks for this name, which newer versions no longer write.
    (folder / "preprocessor_config.json").write_text(image.to_json_string(), encoding="utf-8")
    make_config(family).save_pretrained(folder)
    return folder


def make_tokenizer() -> Any:
    """A byte-level tokenizer with merges learned from the templates; every text can be written with it."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import Qwen2TokenizerFast

    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=6000, initial_alphabet=sorted(alphabet), show_progress=False)
    learned.train([str(path) for path in sorted(TEMPLATES.rglob("*.toml"))], trainer)
    model = json.loads(learned.to_str())["model"]
    vocabulary = model["vocab"] | {token: FIRST_SPECIAL + k for k, token in enumerate(SPECIAL)}
    vocabulary |= {f"<unused {k}>": k for k in range(len(model["vocab"]), FIRST_SPECIAL)}  # holes are warned about
    merges = [tuple(merge) for merge in model["merges"]]
    whole = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    whole.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.decoder = decoders.ByteLevel()
    whole.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return Qwen2TokenizerFast(
        tokenizer_object=whole,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token=None,
        additional_special_tokens=SPECIAL[1:],
        model_max_length=131072,
    )


def make_config(family: str) -> Any:
    """The configuration of a model of the family with one layer of 16 channels."""
    import transformers

    facts = FAMILIES[family]
    text = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "vocab_size": FIRST_SPECIAL + 256,
        "max_position_embeddings": 128000,
        "rope_scaling": facts["rope"],
        "rope_parameters": facts["rope"],
        "bos_token_id": FIRST_SPECIAL,
        "eos_token_id": FIRST_SPECIAL + 2,
    }
    vision = {"depth": 1, "num_heads": 2, "intermediate_size": 16, "patch_size": facts["image"]["patch_size"]}
    return getattr(transformers, facts["config"])(
        text_config=text,
        vision_config=vision | facts["vision"],
        architectures=[facts["model"]],
        image_token_id=FIRST_SPECIAL + SPECIAL.index("<|image_pad|>"),
        video_token_id=FIRST_SPECIAL + SPECIAL.index("<|video_pad|>"),
        vision_start_token_id=FIRST_SPECIAL + SPECIAL.index("<|vision_start|>"),
        vision_end_token_id=FIRST_SPECIAL + SPECIAL.index("<|vision_end|>"),
        tie_word_embeddings=True,
        dtype="float32",
    )


if __name__ == "__main__":
    print(write_processor(sys.argv[1], Path(sys.argv[2])))
