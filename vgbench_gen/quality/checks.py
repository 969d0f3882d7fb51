"""Whether a row's evidence holds together, and whether its words, marks and images say what it says
(`docs/validity.md#evidence`).

A task says what must hold between its own numbers (`Task.checks`); marks inside images, claims and their stated
tolerance are asked of every row here. Every option that has evidence is looked at, not the truth alone. Depth images
are not in a row; what needs them is asked by `verify.verify_scene`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import NOTATIONS, Candidate, Fact, Item
from vgbench_gen.store import pictures
from vgbench_gen.store.drawing import CROSSHAIR
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.base import Problems, Task
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text import lint, numbers
from vgbench_gen.text.bank import find_origin
from vgbench_gen.text.marks import compile_mark_names, name_mark
from vgbench_gen.text.render import fill_word, load_phrasings


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
            if (extent := _find_extent(op)) is not None:
                x1, y1, x2, y2 = extent
                if not (0 <= x1 <= x2 < width and 0 <= y1 <= y2 < height):
                    found.append(("outside", f"{op['op']} {[x1, y1, x2, y2]} in an image of {width} x {height}"))
    return found


def _find_extent(op: Mapping[str, Any]) -> tuple[float, float, float, float] | None:
    """First and last pixel (x1, y1, x2, y2) that an operation is about; None for one about the whole image."""
    if op["op"] == "point":
        return *op["uv"], *op["uv"]
    if op["op"] == "region":
        return tuple(op["rect"])
    if op["op"] == "crop_resize":
        x0, y0, width, height = op["rect"]
        return x0, y0, x0 + width - 1, y0 + height - 1
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


def find_shown_problems(item: Item, images: Sequence[bytes]) -> Problems:
    """(check, detail) of all that is wrong with a row's text, marks and images (encoded bytes in the order shown)."""
    row = RowEvidence.of(item)
    found = [("text", problem) for problem in _find_text_problems(item)]
    found += [("marks", problem) for problem in _find_mark_problems(item, row)]
    return found + [("images", problem) for problem in _find_image_problems(item, row, images)]


def _find_text_problems(item: Item) -> list[str]:
    """What the text lint finds, and conventions that the row's template promises and the text does not state."""
    cell = item.task, item.question_type
    known = {phrasing.id: phrasing.states for notation in NOTATIONS for phrasing in load_phrasings(*cell, notation)}
    template, language = find_origin(item.template_id)
    # Of other languages than English the lint knows no conventions.
    states = known.get(template, ()) if language == "en" else ()
    problems = lint.lint(item.question, item.context, item.options, states)
    return problems if template in known else [*problems, f"no template is called {item.template_id!r}"]


def _find_mark_problems(item: Item, row: RowEvidence) -> list[str]:
    """Drawn regions of which the evidence knows nothing, points whose coordinates do not stand in the text, and marks
    whose color does not."""
    text, problems = "\n".join((item.question, item.context, *item.options)), []
    places = [place for one in (row.truth, *row.options) for place in one.show.values()]
    for op in (op for picture in row.shown() for op in picture.ops if op["op"] in ("region", "point")):
        if op["op"] == "region" and list(op["rect"]) not in places:
            problems.append(f"region {op['rect']} is drawn, which is about no option")
        if op["op"] == "point" and numbers.format_point(op["uv"]) not in text:
            problems.append(f"point {numbers.format_point(op['uv'])} is drawn and not in the text")
        if fill_word(f"color.{op['color']}") not in text:
            problems.append(f"{op['op']} is drawn in {op['color']}, which the text does not say")
    return problems


def _find_image_problems(item: Item, row: RowEvidence, images: Sequence[bytes]) -> list[str]:
    """Images that are not those that the evidence describes."""
    shown = row.shown()
    if len(images) != len(item.images) or len(shown) != len(item.images):
        return [f"{len(item.images)} named, {len(images)} stored, {len(shown)} in the evidence"]
    problems = []
    for name, data, picture in zip(item.images, images, shown, strict=True):
        if digest_bytes(data) != name.partition(".")[0]:
            problems.append(f"{name} holds other bytes")
        expected, size = pictures.find_size(picture, row.base_size(picture.base)), pictures.read_image_size(data, name)
        if size != expected:
            problems.append(f"{name} is {size}, the evidence says {expected}")
    return problems


def find_claim_text_problem(item: Item, claimed: Candidate, fact: Fact, task: Task) -> str:
    """Why the text is not about the claimed value, or ""."""
    shown = RowEvidence.of(item).shown()
    marks = [op for picture in shown for op in picture.ops if op["op"] == "point" and op["shape"] != CROSSHAIR]
    if not task.printed_numbers(claimed.value).size:
        words = task.print_option(claimed, fact)
        return "" if words in item.question else f"the claim {words!r} is not in the question"
    if marks and claimed.value.size == 2:
        # Points are claimed by their marks: the one that the question names must stand at the claimed pixel.
        right = {name_mark(op) for op in marks if _place(op) == claimed.value.ravel().tolist()}
        named = {name for name in map(name_mark, marks) if re.search(rf"\b{re.escape(name)}\b", item.question)}
        return "" if named == right else f"the question names {sorted(named)}, the claim is {sorted(right)}"
    said = Counter(numbers.parse_numbers(f"{item.question}\n{item.context}").tolist())
    missing = Counter(task.printed_numbers(claimed.value).tolist()) - said
    return f"claimed numbers {sorted(missing)} are not in the text" if missing else ""


def is_name(text: str) -> bool:
    """Whether an option names an image or a mark that is shown, rather than saying a value."""
    return text == _name_image(text) or re.fullmatch(compile_mark_names(), text) is not None


def is_shown(name: str, option: Candidate, item: Item, pictures: Sequence[Picture]) -> bool:
    """Whether the image or the mark of that name is the one that belongs to this option."""
    if name != _name_image(name):
        places = (option.show.get("rect"), option.value.ravel().tolist())
        marks = [op for picture in pictures for op in picture.ops if op["op"] in ("point", "region")]
        named = [op for op in marks if op.get("shape") != CROSSHAIR and name_mark(op) == name]
        return len(named) == 1 and _place(named[0]) in places
    n = int(numbers.parse_numbers(name)[0])
    if not 1 <= n <= len(pictures):
        return False
    picture = pictures[n - 1]
    if option.frame_ids:
        return bool(picture.base == RowEvidence.of(item).bases.get(option.frame_ids[0]))
    drawn = [op["polygons"] for op in picture.ops if op["op"] == "plan"]
    if drawn:
        return bool(drawn[0] == option.value.tolist())
    return any(op.get("H") == option.show.get("H") for op in picture.ops if op["op"] == "warp")


def _name_image(text: str) -> str:
    """The name of an image with the one number of a text, "" where it holds none or several."""
    number = numbers.parse_numbers(text)
    return fill_word("option.image", n=str(int(number[0]))) if number.size == 1 else ""


def _place(op: Any) -> list[float]:
    return list(op["rect"] if op["op"] == "region" else op["uv"])
