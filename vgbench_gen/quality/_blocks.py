"""Options of many questions as arrays, with the quantities of geometry and print that a text-only reader can compute.

Questions whose options look alike (as many, with as many numbers of the same meaning) form one block, so that every
audit works on arrays (questions, options, columns).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.quality import _values
from vgbench_gen.quality.questions import Question

_Columns = dict[str, FloatArray]
_NO_RECT = (float("nan"),) * 4
# Where a text names no camera: the focal length with which the published boxes project onto their rectangles (part 2).
_GUESSED_CAMERA = (800.0, 800.0, 320.0, 240.0)
_FAR = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Options of n questions with k options each."""

    kind: str
    """The kind of the options: "scalar", "vector", "matrix", "pose", "box", "rect", "point", "name" or "text"."""
    rows: IntArray
    """The places of the questions in the list given, (n,)."""
    values: FloatArray
    """The numbers of the options, (n, k, d)."""
    columns: _Columns
    """By name, quantities of one option by itself, each (n, k)."""
    gaps: FloatArray
    """Distances between the options, (n, k, k); zeros where options hold no numbers."""
    texts: tuple[tuple[str, ...], ...]
    """The options as printed."""


@dataclass(frozen=True, slots=True)
class OptionValues:
    """Options of one question before they are put into a block."""

    meaning: str
    """What the options are: "mark", "name", "numbers" or "text", as in `_values.read_option_values`."""
    values: FloatArray
    """The numbers of the options, (k, d); d is 0 where they hold none."""
    texts: tuple[str, ...]
    """The options as printed."""


def list_option_sets(questions: Sequence[Question]) -> list[OptionValues]:
    """Options of multi-choice questions."""
    return [OptionValues(*_values.read_option_values(q), q.options) for q in questions]


def list_claim_sets(questions: Sequence[Question]) -> tuple[list[OptionValues], IntArray]:
    """Claims of judgments as sets of one, or of all marks where one of several is named; and the place claimed."""
    claims = [_values.read_claim(q) for q in questions]
    sets = [
        OptionValues(
            "mark" if c.values.shape[0] > 1 else "numbers" if c.values.size else "text",
            c.values,
            (c.text,) * c.values.shape[0],
        )
        for c in claims
    ]
    return sets, np.array([c.claimed for c in claims], dtype=np.int64)


def make_blocks(questions: Sequence[Question], sets: Sequence[OptionValues]) -> list[Block]:
    """Blocks of questions, in order of kind and shape."""
    alike: dict[tuple[str, int, int], list[int]] = {}
    for row, options in enumerate(sets):
        k, d = options.values.shape
        alike.setdefault((_infer_kind(options.meaning, d), k, d), []).append(row)
    return [_make_block(kind, rows, questions, sets) for (kind, _, _), rows in sorted(alike.items())]


def read_text_context(questions: Sequence[Question]) -> _Columns:
    """name -> (n,) what the text says about images and marks: sizes, camera, rectangles, a point, in relative units."""
    readings = [_values.read(q.question, q.context) for q in questions]
    size = np.array([r.size for r in readings], dtype=np.float64).reshape(-1, 2)
    camera = np.array([r.camera for r in readings], dtype=np.float64).reshape(-1, 4)
    point = np.array([r.point for r in readings], dtype=np.float64).reshape(-1, 2)
    listed = [[*_values.list_rects(q), _NO_RECT, _NO_RECT][:2] for q in questions]
    rects = np.array(listed, dtype=np.float64).reshape(-1, 2, 4)
    columns = {"width": size[:, 0], "height": size[:, 1]}
    columns |= dict(zip(("fx", "fy", "cx", "cy"), camera.T, strict=True))
    columns |= {"point_x": point[:, 0], "point_y": point[:, 1]}
    for i in range(2):
        for name, values in zip(("x1", "y1", "x2", "y2"), rects[:, i].T, strict=True):
            columns[f"rect{i + 1}_{name}"] = values
    for i in range(2):
        x1, y1, x2, y2 = rects[:, i].T
        columns[f"rect{i + 1}_w"], columns[f"rect{i + 1}_h"] = x2 - x1, y2 - y1
        columns[f"rect{i + 1}_bottom"] = y2 / size[:, 1]
        columns[f"rect{i + 1}_angle"] = np.sqrt(np.abs((x2 - x1) * (y2 - y1))) / camera[:, 0]
    middle = (rects[:, :, :2] + rects[:, :, 2:]) / 2
    columns["rects_apart_px"] = np.linalg.norm(middle[:, 0] - middle[:, 1], axis=1)
    columns["rects_apart"] = columns["rects_apart_px"] / camera[:, 0]
    return columns


def rank_options(values: FloatArray) -> FloatArray:
    """Rank of each option among the others (n, k), 0 smallest to k - 1, ties in the middle; NaN counts as a tie."""
    above = (values[:, :, None] > values[:, None, :]).sum(axis=2)
    below = (values[:, :, None] < values[:, None, :]).sum(axis=2)
    return np.asarray((above - below + values.shape[1] - 1) / 2, dtype=np.float64)


def summarise_gaps(gaps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(nearest, mean) distance of each option to the others, (n, k) each."""
    k = gaps.shape[1]
    if k < 2:
        return np.zeros(gaps.shape[:2]), np.zeros(gaps.shape[:2])
    apart = np.where(np.eye(k, dtype=bool), np.inf, gaps)
    return apart.min(axis=2), gaps.sum(axis=2) / (k - 1)


def _infer_kind(meaning: str, d: int) -> str:
    if meaning in ("name", "text"):
        return meaning
    if meaning == "mark":
        return {2: "point", 4: "rect"}.get(d, "vector")
    return {1: "scalar", 2: "point", 4: "rect", 9: "matrix", 12: "pose", 16: "pose", 24: "box"}.get(d, "vector")


def _make_block(kind: str, rows: list[int], questions: Sequence[Question], sets: Sequence[OptionValues]) -> Block:
    values = np.stack([sets[row].values for row in rows])
    values = np.clip(values, -1e12, 1e12)  # nothing measured comes near, and squares stay finite
    texts = tuple(sets[row].texts for row in rows)
    context = read_text_context([questions[row] for row in rows])
    with np.errstate(invalid="ignore", divide="ignore"):
        geometry = _GEOMETRY[kind](values, context)
        gaps = _measure_gaps(kind, values)
    columns = {
        name: np.clip(np.nan_to_num(c, nan=0.0, posinf=_FAR, neginf=-_FAR), -1e12, 1e12) for name, c in geometry.items()
    }
    return Block(kind, np.array(rows, dtype=np.int64), values, columns | _print(texts), gaps, texts)


def _measure_gaps(kind: str, values: FloatArray) -> FloatArray:
    """Ratios for positive single numbers, otherwise distances with every number in units of its own spread."""
    n, k, d = values.shape
    if kind in ("name", "text") or d == 0:
        return np.zeros((n, k, k))
    if kind == "scalar" and (values > 0).all():
        scaled = np.log(values)
    else:
        spread = values.reshape(-1, d).std(axis=0)
        scaled = values / np.where(spread > 0, spread, 1.0)
    return np.asarray(np.linalg.norm(scaled[:, :, None] - scaled[:, None], axis=3), dtype=np.float64)


def _describe_plain(values: FloatArray, _context: _Columns) -> _Columns:
    return {"value": values[..., 0]} if values.shape[2] else {}


def _describe_vector(values: FloatArray, _context: _Columns) -> _Columns:
    columns = {"norm": np.linalg.norm(values, axis=2)}
    return columns | {f"entry {i}": values[..., i] for i in range(min(values.shape[2], 12))}


def _describe_rotation(R: FloatArray, prefix: str = "") -> _Columns:
    trace = np.einsum("nkii->nk", R)
    deviation = np.linalg.norm(np.einsum("nkij,nkil->nkjl", R, R) - np.eye(3), axis=(2, 3))
    return {
        f"{prefix}angle": np.degrees(np.arccos(np.clip((trace - 1) / 2, -1, 1))),
        f"{prefix}deviation": np.minimum(deviation, _FAR),
        f"{prefix}det": np.linalg.det(R),
    }


def _describe_pose(values: FloatArray, _context: _Columns) -> _Columns:
    n, k, d = values.shape
    if d == 16:
        matrix = values.reshape(n, k, 4, 4)
        R, t = matrix[..., :3, :3], matrix[..., :3, 3]
    else:
        R, t = values[..., :9].reshape(n, k, 3, 3), values[..., 9:12]
    columns = {"move": np.linalg.norm(t, axis=2), **_describe_rotation(R)}
    columns |= {"right": R[..., 0, 2], "up": R[..., 1, 2], "roll": R[..., 0, 1]}
    columns |= {name: t[..., i] for i, name in enumerate(("tx", "ty", "tz"))}
    if k == 1:
        return columns
    # Whether the inverse of an option stands among the others: distance to the closest one.
    inverse = -np.einsum("nkji,nkj->nki", R, t)
    turns = np.linalg.norm(np.swapaxes(R, 2, 3)[:, :, None] - R[:, None], axis=(3, 4))
    shifts = np.linalg.norm(inverse[:, :, None] - t[:, None], axis=3)
    columns["inverse_near"] = (turns + shifts + np.where(np.eye(k, dtype=bool), _FAR, 0)).min(axis=2)
    return columns


def _describe_matrix(values: FloatArray, context: _Columns) -> _Columns:
    n, k, _ = values.shape
    H = values.reshape(n, k, 3, 3)
    A = H[..., :2, :2]
    size = np.stack([context["width"], context["height"]], axis=1)
    size = np.where(np.isfinite(size), size, (640.0, 480.0)) - 1
    corners = size[:, None] * np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.float64)
    moved = np.einsum("nkij,ncj->nkci", H, np.concatenate([corners, np.ones((n, 4, 1))], axis=2))
    moved = moved[..., :2] / moved[..., 2:]
    columns = {"corner_move": np.linalg.norm(moved - corners[:, None], axis=3).mean(axis=2)}
    columns |= {"scale": np.sqrt(np.abs(np.linalg.det(A))), "turn": np.degrees(np.arctan2(A[..., 1, 0], A[..., 0, 0]))}
    columns |= {"tx": H[..., 0, 2], "ty": H[..., 1, 2], "px": H[..., 2, 0], "py": H[..., 2, 1]}
    columns["perspective"] = np.linalg.norm(H[..., 2, :2], axis=2)
    columns["shear"] = np.linalg.norm(np.stack([A[..., 0, 0] - A[..., 1, 1], A[..., 0, 1] + A[..., 1, 0]]), axis=0)
    columns["zeros"] = (values == 0).sum(axis=2).astype(np.float64)
    return columns | _describe_rotation(H, "rotation_")


def _box(values: FloatArray, context: _Columns) -> _Columns:
    n, k, _ = values.shape
    corners = values.reshape(n, k, 8, 3)
    center = corners.mean(axis=2)
    offsets = corners - center[:, :, None]
    radii = np.linalg.norm(offsets, axis=3)
    # Corners of a cuboid, in any order, have the squared half sizes as the eigenvalues of their covariance.
    sizes = 2 * np.sqrt(np.clip(np.linalg.eigvalsh(np.einsum("nkci,nkcj->nkij", offsets, offsets) / 8), 0, None))
    columns = {"depth": center[..., 2], "volume": sizes.prod(axis=2), "distance": np.linalg.norm(center, axis=2)}
    columns |= {f"size {i}": sizes[..., i] for i in range(3)}
    columns |= {"x": center[..., 0], "y": center[..., 1], "tall": np.ptp(corners[..., 1], axis=2)}
    ordered = np.abs(
        corners[:, :, 4:] - corners[:, :, :4] - (corners[:, :, 4:] - corners[:, :, :4]).mean(axis=2, keepdims=True)
    )
    columns |= {
        "not_cuboid": np.ptp(radii, axis=2),
        "not_ordered": ordered.max(axis=(2, 3)),
        "near": corners[..., 2].min(axis=2),
    }
    camera = np.stack([context[name] for name in ("fx", "fy", "cx", "cy")], axis=1)
    size = np.stack([context["width"], context["height"]], axis=1)
    centred = np.concatenate([np.full((n, 2), 800.0), (size - 1) / 2], axis=1)
    camera = np.where(np.isfinite(camera).all(axis=1, keepdims=True), camera, centred)
    camera = np.where(np.isfinite(camera), camera, _GUESSED_CAMERA)[:, None, None]
    uv = corners[..., :2] / np.maximum(corners[..., 2:], 1e-3) * camera[..., :2] + camera[..., 2:]
    if np.isfinite(size).all():
        uv = np.clip(uv, -0.5, size[:, None, None] - 0.5)
    shown = np.concatenate([uv.min(axis=2), uv.max(axis=2)], axis=2)
    given = np.stack([context[f"rect1_{name}"] for name in ("x1", "y1", "x2", "y2")], axis=1)[:, None]
    common = np.clip(np.minimum(shown[..., 2:], given[..., 2:]) - np.maximum(shown[..., :2], given[..., :2]), 0, None)
    area = [np.clip(rect[..., 2:] - rect[..., :2], 0, None).prod(axis=2) for rect in (shown, given)]
    overlap = common.prod(axis=2)
    columns["projection"] = overlap / (area[0] + area[1] - overlap)
    columns["projection_area"] = area[0] / area[1]
    columns["off_centre"] = np.linalg.norm(
        (shown[..., :2] + shown[..., 2:] - given[..., :2] - given[..., 2:]) / 2, axis=2
    )
    return columns


def _describe_rect(values: FloatArray, context: _Columns) -> _Columns:
    width, height = context["width"][:, None], context["height"][:, None]
    width, height = np.where(width > 0, width, 1.0), np.where(height > 0, height, 1.0)
    x1, y1, x2, y2 = (values[..., i] for i in range(4))
    columns = {"area": (x2 - x1) * (y2 - y1) / (width * height), "y": (y1 + y2) / 2 / height, "bottom": y2 / height}
    columns |= {
        "x": (x1 + x2) / 2 / width,
        "w": (x2 - x1) / width,
        "h": (y2 - y1) / height,
        "aspect": (x2 - x1) / (y2 - y1),
    }
    columns["from_centre"] = np.hypot((x1 + x2) / 2 - width / 2, (y1 + y2) / 2 - height / 2) / np.hypot(width, height)
    return columns


def _describe_point(values: FloatArray, context: _Columns) -> _Columns:
    size = np.stack([context["width"], context["height"]], axis=1)[:, None]
    size = np.where(size > 0, size, 1.0)
    query = np.stack([context["point_x"], context["point_y"]], axis=1)[:, None]
    diagonal = np.linalg.norm(size, axis=2)
    columns = {
        "from_query": np.linalg.norm(values - query, axis=2) / diagonal,
        "from_centre": np.linalg.norm(values - size / 2, axis=2) / diagonal,
    }
    columns |= {"x": values[..., 0] / size[..., 0], "y": values[..., 1] / size[..., 1]}
    return columns | {"dx": (values - query)[..., 0] / diagonal, "dy": (values - query)[..., 1] / diagonal}


_GEOMETRY: dict[str, Callable[[FloatArray, _Columns], _Columns]] = {
    "scalar": _describe_plain,
    "name": _describe_plain,
    "text": _describe_plain,
    "vector": _describe_vector,
    "matrix": _describe_matrix,
    "pose": _describe_pose,
    "box": _box,
    "rect": _describe_rect,
    "point": _describe_point,
}


def _print(texts: Sequence[Sequence[str]]) -> _Columns:
    """How options are printed, name -> (n, k)."""
    rows = [_read_prints(options) for options in texts]
    array = np.array(rows, dtype=np.float64).reshape(len(texts), -1, len(PRINTED))
    return {name: array[..., i] for i, name in enumerate(PRINTED)}


PRINTED = ("length", "words", "digits", "decimals", "trailing_zeros", "significant", "minus_signs", "shared_words")


def _read_prints(options: Sequence[str]) -> list[list[float]]:
    words = [set(_values.WORD.findall(option.lower())) for option in options]
    rows: list[list[float]] = []
    for i, option in enumerate(options):
        printed = _values.find_number_tokens(option)
        shared = sum(len(words[i] & other) for j, other in enumerate(words) if j != i)
        decimals = [len(token.partition(".")[2]) for token in printed]
        kept = [token.lstrip("+-").replace(".", "").lstrip("0") for token in printed]
        rows.append(
            [
                len(option),
                len(words[i]),
                sum(map(str.isdigit, option)),
                max(decimals, default=0),
                sum(len(k) - len(k.rstrip("0")) for k in kept),
                sum(len(k.rstrip("0")) for k in kept),
                option.count("-"),
                shared,
            ]
        )
    return rows
