"""Whether a row's evidence holds together (`docs/validity.md#evidence`).

A task says what must hold between its own numbers (`Task.checks`); marks inside images, claims and their stated
tolerance are asked of every row here.

Every option that has evidence is looked at, not the truth alone: each must be what it is said to be. Depth images are
not in a row; what needs them is asked by `verify.verify_scene`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vgbench_gen.core.types import Fact, Item
from vgbench_gen.store import pictures
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.base import Problems, Task
from vgbench_gen.tasks.row_evidence import RowEvidence


def find_consistency_problems(item: Item, fact: Fact, task: Task) -> Problems:
    """(check, detail) of all that does not hold together in a row.

    Args:
        item: the row.
        fact: as `rebuild_fact` reads it back: its options, or its truth alone.
        task: under the gates of the build.

    Raises:
        LookupError, TypeError, ValueError, VGBenchError: the evidence cannot be read.
    """
    found = _place_problems(item)
    if item.question_type == "judgment":
        found += _find_tolerance_problems(item, fact, task)
    return found + [problem for check in task.checks for problem in check(fact, task.gates)]


# --- marks and claims ------------------------------------------------------------------------------------------------


def _place_problems(item: Item) -> Problems:
    """Marks lie inside the image as it is at that step; crops and warps read inside the one before."""
    row = RowEvidence.of(item)
    found: Problems = []
    for picture in row.shown():
        base_size = row.base_size(picture.base)
        for k, op in enumerate(picture.ops):
            width, height = pictures.find_size(Picture(picture.base, picture.ops[:k]), base_size)
            if op["op"] == "warp" and not pictures.reads_inside(op, (width, height)):
                found.append(("outside", f"warp {op['H']} reaches out of an image of {width} x {height}"))
            corners = _find_extent(op)
            if corners is None:
                continue
            (x1, y1), (x2, y2) = corners
            if not (0 <= x1 <= x2 < width and 0 <= y1 <= y2 < height):
                found.append(("outside", f"{op['op']} {[x1, y1, x2, y2]} in an image of {width} x {height}"))
    return found


def _find_extent(op: Mapping[str, Any]) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """First and last pixel that an operation is about; None for one about the whole image."""
    if op["op"] == "point":
        u, v = op["uv"]
        return (u, v), (u, v)
    if op["op"] == "region":
        x1, y1, x2, y2 = op["rect"]
        return (x1, y1), (x2, y2)
    if op["op"] == "crop_resize":
        x0, y0, width, height = op["rect"]
        return (x0, y0), (x0 + width - 1, y0 + height - 1)
    return None


def _find_tolerance_problems(item: Item, fact: Fact, task: Task) -> Problems:
    """The tolerance that the text states is the item's, and by it the claim is what it is marked to be."""
    text = f"{item.question}\n{item.context}"
    found: Problems = [
        ("tolerance", f"the item's tolerance is {item.tolerance:g}, and the text does not say {words!r}")
        for words in task.tolerance_words(item.ask, item.tolerance)
        if not re.search(rf"(?<![\d.]){re.escape(words)}", text)  # "9 pixels" is not said by a claim of 89 pixels
    ]
    claim = RowEvidence.of(item).claim
    if claim is None:
        return found
    errors = task.claim_errors(fact.truth_candidate.value[None], claim.value, fact)
    if errors is not None and (float(errors[0]) <= 1) != claim.holds:
        found.append(("tolerance", f"the claim is off by {float(errors[0]):.2f} of it, marked holds={claim.holds}"))
    return found
