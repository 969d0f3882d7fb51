"""What EasyR1 (hiyouga/EasyR1 at b44b311b) does with a defective row, at its settings but for `max_prompt_length`.

Places are files of its repository. A row that raises does so while prompts are counted (verl/utils/dataset.py:
_filter_overlong_prompts), and ends the start.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.training.damaged import BROKEN, LONG, UNUSUAL, Damage, Record, change, damage_images, leave_out


def damage_easyr1(good: Record) -> Iterator[Damage]:
    """Damaged copies of a row with one image or more."""
    images, text = good["images"], good["problem"]
    bare = text.replace("<image>", "")
    yield from damage_images(good, dict.fromkeys(BROKEN, "raised") | UNUSUAL)
    yield from damage_images(good, dict.fromkeys(BROKEN, "raised"), featured=False)
    for name, record, outcome in (
        ("more marks than images", change(good, images=images[:-1]), "raised"),  # IndexError of the processor
        # The loader keeps images that have no place; the model or the engine of the rollout meets them later.
        ("more images than marks", change(good, images=[*images, images[0]]), "altered"),
        ("no marks", change(good, problem=bare), "altered"),
        ("a mark in the question", change(good, problem=f"{text} What is <image>?"), "raised"),
        ("a mark of a video", change(good, problem=f"{text} What is <video>?"), "kept"),
        ("token of images", change(good, problem=f"{text} <|image_pad|>"), "raised"),
        ("too long", change(good, problem=text + LONG), "dropped"),
        ("images are paths", change(good, images=["none.jpg"] * len(images)), "raised"),  # unless `image_dir` is given
        ("one path instead of a list", change(good, images="none.jpg"), "raised"),  # by characters
        ("no images", change(good, images=[], problem=bare), "kept"),
        ("no images, marks left", change(good, images=[]), "altered"),  # places without images
        ("problem is null", change(good, problem=None), "raised"),
        ("answer is null", change(good, answer=None), "kept"),
    ):
        yield Damage(name, [record], outcome)
    yield Damage("no column images", leave_out([good], "images"), "altered")  # the marks stay words
    yield Damage("no column problem", leave_out([good], "problem"), "raised")
    yield Damage("no column answer", leave_out([good], "answer"), "raised")
    yield Damage("structs", [change(good)], "kept", featured=False)
