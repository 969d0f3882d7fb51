"""What the review pages are filled with: images with their marks, questions, the truth with its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.quality.explain import find_overlay
from vgbench_gen.quality.review.lines import CANNOT_TELL, CONFIDENCES, FLAGS, VERDICTS
from vgbench_gen.quality.review.queue import list_items
from vgbench_gen.quality.review.session import Assignment, ReviewSession
from vgbench_gen.report.gallery_rows import list_decoys, list_margins, list_numbers, list_provenance
from vgbench_gen.report.matrices import split_matrices
from vgbench_gen.store.pictures import read_image_size
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.text.render import fill_word

_LABEL = 1 / 34  # height of a label, of the image's width: still readable where the image is as wide as a phone
_GLYPH = 0.56  # width of a letter, of the label's height

CONFIDENCE_LABELS = {
    "sure": ("s", "Sure"),
    "fairly": ("f", "Fairly sure"),
    "guess": ("g", "Guessing"),
}
VERDICT_LABELS = {
    "valid": ("v", "Valid", "clear question, right answer"),
    "invalid": ("i", "Invalid", "something is wrong"),
    "unsure": ("u", "Unsure", "cannot decide"),
}
FLAG_LABELS = {
    "wrong_answer": ("w", "Wrong answer"),
    "second_answer": ("a", "Another answer is true too"),
    "unclear": ("o", "Object or region unclear"),
    "occluded": ("c", "Covered (occluded)"),
    "marker_misplaced": ("m", "Marker misplaced"),
    "text_defect": ("t", "Text defect"),
    "needs_instrument": ("n", "Needs an instrument"),
    "privacy": ("p", "Privacy"),
}


def list_images(session: ReviewSession, assignment: Assignment, with_marks: bool) -> list[dict[str, Any]]:
    """Address, size in pixels, words and (after the answer) marks of each image."""
    item = session.show(assignment).item
    marks = find_overlay(item)[0] if with_marks else [[] for _ in item.images]
    found = []
    for k in range(len(item.images)):
        width, height = read_image_size(session.read_image(assignment, k), f"item {item.id}, image {k + 1}")
        found.append(
            {
                "url": f"/image/{assignment.token}/{k}",
                "number": k + 1,
                "width": width,
                "height": height,
                "shapes": [shape for mark in marks[k] for shape in _make_shapes(mark, width)],
                "font": width * _LABEL,
                "radius": max(3.0, width / 100),
            }
        )
    return found


def make_answer_page(session: ReviewSession, assignment: Assignment) -> dict[str, Any]:
    """What the page of the blind answer shows; nothing in it depends on the right answer."""
    item = session.show(assignment).item
    return {
        **_describe_place(session, assignment),
        **_describe_question(item),
        "images": list_images(session, assignment, False),
        "choices": _list_choices(item),
    }


def make_reveal_page(session: ReviewSession, assignment: Assignment) -> dict[str, Any]:
    """What the page of the verdict shows."""
    item = session.show(assignment).item
    given = session.require_answer(assignment)
    line = session.find_line(assignment, "verdict")
    return {
        **_describe_place(session, assignment),
        **_describe_question(item),
        "images": list_images(session, assignment, True),
        "options": [
            (letter, split_matrices(text), letter == item.answer)
            for letter, text in zip(ALPHABET, item.options, strict=False)
        ],
        "right_answer": item.answer,
        "given": "" if given.answer == CANNOT_TELL else given.answer,
        "same": list_items([item])[0].is_right(given.answer),  # with the stated answer, also where that is planted
        "evidence": list_evidence(item),
        "verdicts": [(v, *VERDICT_LABELS[v]) for v in VERDICTS],
        "flags": [(f, *FLAG_LABELS[f]) for f in FLAGS],
        "chosen": line.verdict if line else "",
        "chosen_flags": set(line.flags) if line else set(),
        "note": line.note if line else "",
    }


def _describe_place(session: ReviewSession, assignment: Assignment) -> dict[str, Any]:
    before = session.find_previous(assignment)
    return {
        "reviewer": session.name,
        "token": assignment.token,
        "number": session.assignments.index(assignment) + 1,
        "total": len(session.assignments),
        "done": session.done,
        "before": before.token if before else "",
    }


def _describe_question(item: Item) -> dict[str, Any]:
    return {
        "question": split_matrices(item.question),
        "context": item.context,
        "form": item.question_type,
        "unit": item.unit,
        "confidences": [(c, *CONFIDENCE_LABELS[c]) for c in CONFIDENCES],
        "cannot_tell": CANNOT_TELL,
    }


def _list_choices(item: Item) -> list[dict[str, Any]]:
    if item.question_type == "judgment":
        words = (fill_word("answer.yes"), fill_word("answer.no"))
        return [{"value": w, "letter": "", "text": split_matrices(w), "keys": w[0].lower()} for w in words]
    return [
        {"value": letter, "letter": letter, "text": split_matrices(text), "keys": f"{n} {letter.lower()}"}
        for n, (letter, text) in enumerate(zip(ALPHABET, item.options, strict=False), 1)
    ]


def _make_shapes(mark: Mark, width: int) -> Iterator[dict[str, Any]]:
    """Yield a mark as shapes of SVG in pixels of the image: {kind, points, right, label, anchor, at}.

    kind: "circle" (points has its center), "polygon" or "polyline"; the label stands at `at`, inside the image's width.
    """
    if not mark.points_px:
        return
    (x, y), size = mark.points_px[0], width * _LABEL
    corners: Sequence[tuple[float, float]] = mark.points_px
    if mark.kind == "rect":
        x2, y2 = mark.points_px[1]
        corners = ((x, y), (x2, y), (x2, y2), (x, y2))
    # Below a rectangle, clear of what stands above it.
    top = y2 + 1.1 * size if mark.kind == "rect" else max(y - 0.5 * size, 1.1 * size)
    long = len(mark.label) * size * _GLYPH
    anchor, at = ("start", max(x, 0.0)) if x + long <= width else ("end", min(x, width)) if x >= long else (
        "middle", width / 2)  # fmt: skip
    shared = {"right": mark.right, "anchor": anchor, "at": (at, top)}
    if mark.kind == "point":
        for k, point in enumerate(corners, 1):
            yield shared | {"kind": "circle", "points": point, "label": mark.label if k == len(corners) else ""}
        return
    points = " ".join(f"{u:.1f},{v:.1f}" for u, v in corners)
    kind = "polygon" if mark.kind == "rect" else "polyline"
    yield shared | {"kind": kind, "points": points, "label": mark.label}


def list_evidence(item: Item) -> list[tuple[str, str]]:
    """(name, value) in words and numbers; values may hold line breaks."""
    margins = sorted(list_margins(item), key=lambda pair: (pair[1], pair[0]))
    rows = [
        *list_numbers(item),
        ("Margins over required", "\n".join(f"{name} {value:.2f}" for name, value in margins)),
        *(
            (f"Wrong option {letter}", f"{key or strategy}: {separation:.2f} margins from the truth")
            for letter, strategy, separation, key in list_decoys(item)
        ),
        *list_provenance(item),
        ("Item", item.id),
    ]
    return [(name, value) for name, value in rows if value]
