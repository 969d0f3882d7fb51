"""A vision-language model of 0.2 M random weights, made here in seconds: real in everything but what it says.

Seeded, so that a greedy reply to the same request is the same nonsense everywhere. Needs the extra `transformers`.
"""

from __future__ import annotations

from pathlib import Path

VOCABULARY = 600
IMAGE_SIDE_PX, PATCH_PX = 56, 14
IMAGE_TOKENS = (IMAGE_SIDE_PX // PATCH_PX) ** 2  # of every image in a prompt
CONTEXT_TOKENS = 1024
SENTENCES = [
    "How far is the red mug from the camera, in meters? The answer is (B), one and a half meters.",
    "Which of the four images shows the room after the camera turned to the left by thirty degrees?",
]
CHAT_TEMPLATE = """\
{% for message in messages %}{{ message['role'] }}: \
{% for part in message['content'] %}\
{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}\
{% endfor %}</s>{% endfor %}\
{% if add_generation_prompt %}assistant: {% endif %}"""


def make_tiny_vlm(folder: Path, seed: int = 0, context_tokens: int = CONTEXT_TOKENS) -> Path:
    """Write model and processor to `folder` as `save_pretrained` does; returns the folder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import (
        CLIPImageProcessor,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerFast,
    )

    specials = ["<pad>", "<s>", "</s>", "<image>"]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trained.train_from_iterator(
        SENTENCES,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens={"image_token": "<image>"},
        model_max_length=context_tokens,
    )
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=IMAGE_SIDE_PX,
            patch_size=PATCH_PX,
        ),
        text_config=LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=context_tokens,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        ),
        image_token_id=3,
        image_seq_length=IMAGE_TOKENS,
        vision_feature_select_strategy="default",
        vision_feature_layer=-1,
    )
    torch.manual_seed(seed)
    model = LlavaForConditionalGeneration(config)
    # Weights as drawn say the same token for every prompt; larger ones let the prompt, and its image, tell.
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(4.0 if weights.dim() > 1 else 1.0)
    model.generation_config.pad_token_id = 0
    processor = LlavaProcessor(
        CLIPImageProcessor(
            size={"height": IMAGE_SIDE_PX, "width": IMAGE_SIDE_PX},
            crop_size={"height": IMAGE_SIDE_PX, "width": IMAGE_SIDE_PX},
        ),
        tokenizer,
        patch_size=PATCH_PX,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT_TEMPLATE,
    )
    model.save_pretrained(folder, safe_serialization=True)
    processor.save_pretrained(folder)
    return folder
