"""What verl 0.9.1 does with a defective row, where it leaves out long prompts: its dataset class's own default.

Places are files of the wheel. Its configuration leaves none out (trainer/config/data/legacy_data.yaml); rows that are
dropped here then raise, in the loader or in the rollout, and end the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.training.damaged import LONG, Damage, Record, change, damage_images, leave_out

# An image that `datasets` decodes raises while the filter reads the row, which ends the start. A struct is opened
# within the `try` of rl_dataset.py:doc2len, which takes each error for a prompt that is too long.
BROKEN = ("path without bytes", "image is no image", "image cut short")
UNUSUAL = {
    "image is null": "dropped",
    "image 201 times as wide as high": "dropped",  # qwen_vl_utils/vision_process.py:smart_resize
    "image of one pixel": "kept",
    "image of 16 bits": "kept",
    "image with alpha": "kept",
    "gray image": "kept",
}


def damage_verl(good: Record) -> Iterator[Damage]:
    """Damaged copies of a row with one image or more."""
    images, text = good["images"], good["prompt"][-1]["content"]

    def say(content: Any) -> list[dict[str, Any]]:
        return [*good["prompt"][:-1], {"role": "user", "content": content}]

    yield from damage_images(good, dict.fromkeys(BROKEN, "raised") | UNUSUAL)
    yield from damage_images(good, dict.fromkeys(BROKEN, "dropped"), featured=False)
    bare = text.replace("<image>", "")
    parts = [*({"type": "image", "text": None} for _ in images), {"type": "text", "text": bare}]
    for name, record, outcome in (
        # rl_dataset.py:_build_messages asserts that marks and images are as many.
        ("more marks than images", change(good, images=images[:-1]), "dropped"),
        ("more images than marks", change(good, images=[*images, images[0]]), "dropped"),
        ("no marks", change(good, prompt=say(bare)), "dropped"),
        ("a mark in the question", change(good, prompt=say(f"{text} What is <image>?")), "dropped"),
        ("a mark of a video", change(good, prompt=say(f"{text} What is <video>?")), "dropped"),
        ("typed content", change(good, prompt=[{"role": "user", "content": parts}]), "dropped"),
        ("empty prompt", change(good, prompt=[]), "dropped"),
        ("content is null", change(good, prompt=say(None)), "dropped"),
        ("the prompt is text", change(good, prompt=text), "dropped"),
        # The processor raises StopIteration. Without the filter, the rollout's thread gets it and waits for ever.
        ("token of images", change(good, prompt=say(f"{text} <|image_pad|>")), "dropped"),
        ("too long", change(good, prompt=say(text + LONG)), "dropped"),
        (
            "images are paths",
            change(good, images=["none.jpg"] * len(images)),
            "dropped",
        ),  # relative to the run's folder
        ("one path instead of a list", change(good, images="none.jpg"), "dropped"),  # counted by characters
        ("no images", change(good, images=[], prompt=say(bare)), "kept"),
        ("no images, marks left", change(good, images=[]), "altered"),  # the mark stays a word
        ("unknown role", change(good, prompt=[{"role": "human", "content": text}]), "kept"),
        # The reward raises: experimental/reward_loop/reward_manager/naive.py:run_single.
        ("reward_model is null", change(good, reward_model=None), "kept"),
        ("extra_info is null", change(good, extra_info=None), "kept"),
    ):
        yield Damage(name, [record], outcome)
    yield Damage("no column images", leave_out([good], "images"), "altered")
    yield Damage("no column prompt", leave_out([good], "prompt"), "dropped")
    yield Damage("structs", [change(good)], "kept", featured=False)
