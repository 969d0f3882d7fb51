"""Rewards of answers that are many numbers, written row by row: poses, boxes and points.

No question of ours asks for them without options. They are for those who ask for the numbers of `answer_value`: the
solution then has the question type "value". Credit ends about where the options of such questions begin
(`docs/constants.md`).
"""

from __future__ import annotations

import math
import re

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.evaluation.answers.clean import clean_reply
from vgbench_gen.evaluation.answers.places import find_containers
from vgbench_gen.evaluation.scoring import CaseError
from vgbench_gen.rewards.hacks import find_statements
from vgbench_gen.rewards.solution import Solution

POSE, BOX, POINT = (3, 4), (8, 3), (2,)
_BLOCK = re.compile(r"[\[(][-+0-9.,;\s\[\]()eE]{2,4000}[\])]|^[ \t]*-?[0-9][-+0-9.,; \teE]{2,4000}$", re.MULTILINE)
_NUMBER = re.compile(r"[-+]?[0-9]{1,9}(?:\.[0-9]{1,20})?(?:[eE][-+]?[0-9]{1,2})?")
# Errors with full credit, and from which on there is none.
_TURN_DEG, _SHIFT, _MISS, _AWAY = (2.0, 15.0), (0.05, 0.5), (0.25, 0.85), (0.01, 0.06)
_SHORTEST_M = 0.2  # a shorter translation has no direction
_SIGNS = np.array(
    [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]], dtype=float
)  # of corners, as `geometry.boxes` orders them; that module needs scipy, which exports must not need
_CELLS = 24  # of a box along each side, by which volumes are compared
_SKEW = 0.05  # how far corners may be from those of a box, over its diagonal


def compare_values(known: Solution, reply: str) -> tuple[float, dict[str, float]]:
    """(credit, errors by name) of the one value that a reply states; (0, {}) where there is none or several.

    Raises:
        CaseError: the solution has no value that can be compared.
    """
    truth = np.zeros(0) if known.value is None else known.value
    if truth.shape not in (POSE, BOX, POINT) or (truth.shape == POINT and not known.diagonal_px > 0):
        raise CaseError(
            f"solution: found a value of shape {truth.shape}; expected {POSE}, {BOX}, or {POINT} with `diagonal_px`. "
            "Keep the question type of other rows."
        )
    given = _read_value(reply, truth)
    if given is None:
        return 0.0, {}
    if truth.shape == BOX:
        iou = _measure_iou(given, truth)
        return _fade(1 - iou, *_MISS), {"iou": iou}
    if truth.shape == POINT:
        away = float(np.linalg.norm(given - truth)) / known.diagonal_px
        return _fade(away, *_AWAY), {"distance": away}
    chord = float(np.linalg.norm(given[:, :3] - truth[:, :3])) / (2 * math.sqrt(2))
    turn_deg = math.degrees(2 * math.asin(min(chord, 1.0)))
    shift = float(np.linalg.norm(given[:, 3] - truth[:, 3]) / max(float(np.linalg.norm(truth[:, 3])), _SHORTEST_M))
    return _fade(turn_deg, *_TURN_DEG) * _fade(shift, *_SHIFT), {"turn_deg": turn_deg, "shift": shift}


def _fade(error: float, full: float, none: float) -> float:
    return min(1.0, max(0.0, (none - error) / (none - full)))


def _read_value(reply: str, truth: FloatArray) -> FloatArray | None:
    """The value in the shape of the truth; a pose may have its fourth row."""
    text = next(iter(clean_reply(reply).texts), "")
    stated = [*find_containers(text), *(text[start:] for start in list(find_statements(text))[:1])]
    found = set()
    for block in _BLOCK.findall("\n\n".join(stated or [text])):
        numbers = tuple(map(float, _NUMBER.findall(block)))
        numbers = numbers[:12] if truth.shape == POSE and numbers[12:] == (0, 0, 0, 1) else numbers
        found |= {numbers} if len(numbers) == truth.size else set()
    return np.array(found.pop()).reshape(truth.shape) if len(found) == 1 else None


def _measure_iou(given: FloatArray, truth: FloatArray) -> float:
    """Intersection over union of two boxes by their corners (8, 3), by cells of the second; 0 if the first is none."""
    boxes = [(corners.mean(axis=0), _SIGNS.T @ corners / 8) for corners in (given, truth)]
    (center, half), (true_center, true_half) = boxes
    volume, true_volume = (8 * abs(float(np.linalg.det(sides))) for _, sides in boxes)
    skew = float(np.abs(center + _SIGNS @ half - given).max() / (2 * np.linalg.norm(half) + 1e-12))
    if not (volume > 1e-9 and true_volume > 1e-9 and skew <= _SKEW):
        return 0.0
    steps = (2 * np.arange(_CELLS) + 1) / _CELLS - 1
    cells = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3)
    inside = np.abs((true_center + cells @ true_half - center) @ np.linalg.inv(half)) <= 1 + 1e-9
    shared = min(float(inside.all(axis=1).mean()) * true_volume, volume)
    return shared / (volume + true_volume - shared)
