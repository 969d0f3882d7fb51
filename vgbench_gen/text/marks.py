"""What drawn marks are called: "the orange circle", "the blue region", by their colours and shapes in `templates/`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from vgbench_gen.text.render import fill_word, list_words


def name_mark(op: Mapping[str, Any]) -> str:
    """The name of a `point` or `region` operation of a picture, as an option says it."""
    kind = op["shape"] if op["op"] == "point" else op["op"]
    return fill_word(f"mark.{kind}", color=fill_word(f"color.{op['color']}"))


def list_marks(ops: Sequence[Mapping[str, Any]], places: Sequence[str]) -> str:
    """Marks of one picture with their printed places in one line: "the orange circle (3, 4), the blue square ..."."""
    named = zip(map(name_mark, ops), places, strict=True)
    return fill_word("list.separator").join(fill_word("list.mark", mark=mark, place=place) for mark, place in named)


@cache
def compile_mark_names() -> str:
    """A pattern of every name that a mark may have, without groups."""
    names = [fill_word(mark, color=fill_word(color)) for mark in list_words("mark") for color in list_words("color")]
    return rf"\b(?:{'|'.join(map(re.escape, names))})\b"
