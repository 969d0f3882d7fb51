"""What the review pages are filled with: images with their marks, questions, the truth with its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.quality.explain import find_overlay, find_words
from vgbench_gen.quality.review.lines import CANNOT_TELL, CONFIDENCES, FLAGS, VERDICTS
from vgbench_gen.quality.review.queue import list_items
from vgbench_gen.quality.review.session import Assignment, ReviewSession
from vgbench_gen.report.matrices import split_matrices
from vgbench_gen.store.pictures import read_image_size
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.numbers import format_value
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


@dataclass(frozen=True, slots=True)
class Shape:
    """One mark with its label as a shape of SVG, in pixels of the image."""

    kind: str
    """The shape: "circle", "polyline" or "rect"; a rectangle is given by its four corners."""
    points: tuple[tuple[float, float], ...]
    """The points (x, y) of the shape; a circle has its centre alone."""
    right: bool
    """Whether the mark belongs to the right answer."""
    label: str
    """The text beside it; empty for none."""
    anchor: str
    """Which part of the label stands at `at`: "start", "middle" or "end"."""
    at: tuple[float, float]
    """The place (x, y) of the label."""

    @property
    def joined(self) -> str:
        """Points as the attribute of a polyline."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)


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


def _make_shapes(mark: Mark, width: int) -> list[Shape]:
    points = mark.points_px
    if not points:
        return []
    # Below a rectangle, clear of what stands above it.
    at = (points[0][0], points[1][1]) if mark.kind == "rect" else points[0]
    size = width * _LABEL
    at = (at[0], at[1] + (1.1 * size if mark.kind == "rect" else -0.5 * size))
    place = _place_label(mark.label, at, width, size)
    if mark.kind == "point":
        dots = [Shape("circle", (point,), mark.right, "", "start", point) for point in points]
        return [*dots[:-1], Shape("circle", (points[-1],), mark.right, mark.label, *place)]
    kind = "rect" if mark.kind == "rect" else "polyline"
    return [Shape(kind, _list_corners(points) if kind == "rect" else points, mark.right, mark.label, *place)]


def _list_corners(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    (x1, y1), (x2, y2) = points[:2]
    return (x1, y1), (x2, y1), (x2, y2), (x1, y2)


def _place_label(label: str, at: tuple[float, float], width: int, size: float) -> tuple[str, tuple[float, float]]:
    """Anchor and place of a label so that it stays inside the image's width and top."""
    long = len(label) * size * _GLYPH
    x, y = at[0], max(at[1], 1.1 * size)
    if x + long <= width:
        return "start", (max(x, 0.0), y)
    return ("end", (min(x, width), y)) if x >= long else ("middle", (width / 2, y))


_DEPTH = 2  # of nested evidence that is spelled out
_LONG = 24  # numbers of an array that are spelled out


def list_evidence(item: Item) -> list[tuple[str, str]]:
    """(name, value) in words and numbers; values may hold line breaks."""
    row = RowEvidence.found(item)
    unit = f" {item.unit}" if item.unit else ""
    rows: list[tuple[str, str]] = []
    if row is not None:  # rows of other programs have none
        for name, value in (("First route", row.truth.value), ("Second route", row.second_value)):
            rows.append((name, find_words(item, value) or format_value(value.tolist()) + unit))
        if row.claim is not None:
            told = f"{row.claim.separation:.2f} margins from the truth"
            claimed = find_words(item, row.claim.value) or format_value(row.claim.value.tolist()) + unit
            rows.append(("Claim", f"{claimed}, {told}"))
    if item.tolerance:
        rows.append(("Tolerance", f"{item.tolerance:g}"))
    for n, distractor in enumerate(item.distractors, 1):
        how = distractor.key or distractor.strategy
        rows.append((f"Wrong option {n}", f"{how}: {distractor.separation:.2f} margins from the truth"))
    tightest = sorted((row.margins if row is not None else {}).items(), key=lambda pair: (pair[1], pair[0]))
    if tightest:
        rows.append(("Margins over required", "\n".join(f"{name} {value:.2f}" for name, value in tightest)))
    if row is not None and row.noise is not None:
        rows.append(("Noise test", row.noise.described))
    rows.append(("Source", f"{item.source} {item.scene_id}, frames {', '.join(item.frame_ids) or '-'}"))
    rows.append(("Difficulty", item.difficulty or "-"))
    rows.append(("Item", item.id))
    return rows


def _format_plain(value: Any, depth: int = 0) -> str:
    if isinstance(value, Mapping):
        if depth >= _DEPTH:
            return f"{len(value)} values"
        return ("\n" if depth == 0 else ", ").join(
            f"{k} {_format_plain(v, depth + 1)}" for k, v in sorted(value.items())
        )
    if isinstance(value, list | tuple):
        return format_value(value) if len(value) <= _LONG else f"{len(value)} values"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
