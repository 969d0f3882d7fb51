"""What TRL 1.16.0 does with a defective row in `SFTTrainer` and `GRPOTrainer`, at default settings, for Qwen2.5-VL.

Places are files of the wheel. A row that raises ends the run at its step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.training.damaged import BROKEN, LONG, UNUSUAL, Damage, Record, change, damage_images, leave_out

GRPO = {"too long": "kept", "too long before the images": "kept", "no column completion": "kept"}
"""Outcomes of `GRPOTrainer` where it differs: it cuts no prompts and reads no completions."""
CHANCE = {"completion is null", "the completion is text"}
"""Here `GRPOTrainer` keeps or raises by chance: data_utils.py:is_conversational looks at `prompt` or at `completion`,
whichever a set of both gives first, which differs from run to run."""


def damage_trl(good: Record) -> Iterator[Damage]:
    """Damaged copies of a row with one image or more."""
    images, prompt, completion = good["images"], good["prompt"], good["completion"]
    content = prompt[-1]["content"]

    def say(parts: Any) -> list[dict[str, Any]]:
        return [*prompt[:-1], {"role": "user", "content": parts}]

    def put(text: str | None) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def reply(content: Any) -> list[dict[str, Any]]:
        return [{"role": "assistant", "content": content}]

    yield from damage_images(good, dict.fromkeys(BROKEN, "raised") | UNUSUAL)
    filled = [{**one, "content": [{**part, "image": None} for part in one["content"]]} for one in prompt]
    for name, record, outcome in (
        # data_utils.py:prepare_multimodal_messages counts parts without a key `image`.
        ("more parts than images", change(good, images=images[:-1]), "raised"),
        ("more images than parts", change(good, images=[*images, images[0]]), "raised"),
        ("parts with a key image", change(good, prompt=filled), "raised"),
        ("images is null", change(good, images=None), "raised"),
        ("no images", change(good, images=[], prompt=say([put("How deep?")])), "kept"),
        ("a mark in the question", change(good, prompt=say([*content, put("What is <image>?")])), "kept"),
        ("token of images", change(good, prompt=say([*content, put("<|image_pad|>")])), "raised"),
        # trainer/sft_trainer.py:_collate_prompt_completion cuts at `max_length`; _compute_loss tells of cut images.
        ("too long", change(good, prompt=say([*content, put(LONG)])), "dropped"),
        ("too long before the images", change(good, prompt=say([put(LONG), *content])), "raised"),
        ("unknown role", change(good, prompt=[{**prompt[-1], "role": "human"}]), "raised"),
        ("empty prompt", change(good, prompt=[]), "raised"),
        ("text is null", change(good, prompt=say([*content[:-1], put(None)])), "altered"),
        ("completion is null", change(good, completion=None), "raised"),
        ("empty reply", change(good, completion=reply([put("")])), "kept"),
        ("the completion is text", change(good, completion="Answer: A"), "raised"),
        ("prompt and completion are texts", change(good, prompt="How deep?", completion="Answer: A"), "raised"),
        ("plain contents", change(good, prompt=_join(prompt), completion=_join(completion)), "altered"),
        (
            "plain contents with marks",
            change(good, prompt=_join(prompt, "<image>"), completion=_join(completion)),
            "altered",
        ),
        ("images are paths", change(good, images=["none.jpg"] * len(images)), "raised"),
        ("one path instead of a list", change(good, images="none.jpg"), "raised"),  # by characters
    ):
        yield Damage(name, [record], outcome)
    yield Damage("structs", [change(good)], "raised", featured=False)
    for column, outcome in {"images": "raised", "prompt": "raised", "completion": "raised", "solution": "kept"}.items():
        yield Damage(f"no column {column}", leave_out([good], column), outcome)


def _join(messages: list[dict[str, Any]], mark: str = "") -> list[dict[str, Any]]:
    return [{**one, "content": "".join(part["text"] or mark for part in one["content"])} for one in messages]
