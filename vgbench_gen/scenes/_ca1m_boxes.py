"""Object lists of CA-1M (`instances.json`): per frame in that camera's frame, once per capture in the world.

Fields: `apple/ml-cubifyanything: cubifyanything/dataset.py` and `boxes.py`. `corners` is not read: its order is not
documented, and position, scale and R say the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vgbench_gen.core.errors import FrameError
from vgbench_gen.core.types import Camera, OrientedBox
from vgbench_gen.geometry.boxes import project_rect
from vgbench_gen.geometry.poses import find_nearest_rotation, measure_orthonormality_deviation
from vgbench_gen.scenes.base import FrameObject, Issue, SceneObject
from vgbench_gen.scenes.files import parse_matrix
from vgbench_gen.scenes.plausible import check_box

Rect = tuple[float, float, float, float]

_MAX_OBJECTS = 20_000
# Beyond this R is no rotation with rounding errors, and the nearest rotation would be an invention.
_MAX_REPAIR = 0.1
_MAX_TILT_DEG = 5.0
_UNNAMED = "object"


def read_entries(value: Any, where: object) -> list[dict[str, Any]]:
    """The list of one file. Entries that are no JSON objects stay out. Raises FrameError."""
    if not isinstance(value, list) or len(value) > _MAX_OBJECTS:
        found = f"{len(value)} entries" if isinstance(value, list) else type(value).__name__
        raise FrameError(where, found, f"a list of at most {_MAX_OBJECTS} objects")
    return [entry for entry in value if isinstance(entry, dict)]


def label_of(entry: dict[str, Any]) -> str:
    """Category in lower case; "object" (the dataset's word for an unnamed one) where there is none."""
    label = entry.get("category")
    return " ".join(label.lower().split()) or _UNNAMED if isinstance(label, str) else _UNNAMED


def read_id(entry: dict[str, Any], position: int) -> str:
    """Id as written, or "unnamed-<position in the list>": an object without id still makes its label ambiguous."""
    stated = entry.get("id")
    return str(stated) if isinstance(stated, str | int) and str(stated) else f"unnamed-{position}"


def box_of(entry: dict[str, Any], frame: str, where: object) -> OrientedBox:
    """Box of one entry. A slightly non-rigid R is replaced by the nearest rotation, a mirrored one by the rotation
    that spans the same box.

    Raises:
        FrameError: position, scale or R are missing, not finite or absurd, or R is far from a rotation.
    """
    center = parse_matrix(entry.get("position"), where, [(3,)])
    size = parse_matrix(entry.get("scale"), where, [(3,)])
    R = parse_matrix(entry.get("R"), where, [(3, 3)])
    check_box(OrientedBox(center, size, R, frame), where)
    if not (size > 0).all():
        raise FrameError(where, f"scale {size.tolist()}", "sides above 0", "The object is left out.")
    deviation = float(measure_orthonormality_deviation(R))
    if deviation > _MAX_REPAIR:
        raise FrameError(where, f"|R^T R - I| = {deviation:.3g}", f"at most {_MAX_REPAIR}", "The object is left out.")
    if np.linalg.det(R) < 0:
        R = R * (1.0, 1.0, -1.0)
    return OrientedBox(center, size, find_nearest_rotation(R), frame)


def make_upright(box: OrientedBox) -> OrientedBox | None:
    """The same world box with its third axis exactly up, or None where no axis is within 5 degrees of vertical."""
    vertical = int(np.argmax(np.abs(box.rotation[2])))
    if np.degrees(np.arccos(min(abs(box.rotation[2, vertical]), 1.0))) > _MAX_TILT_DEG:
        return None
    first = {0: 1, 1: 2, 2: 0}[vertical]  # cyclic, so that the axes stay right-handed
    second = {0: 2, 1: 0, 2: 1}[vertical]
    yaw = np.arctan2(box.rotation[1, first], box.rotation[0, first])
    c, s = np.cos(yaw), np.sin(yaw)
    # An axis that pointed down is turned up and the second one with it: another description of the same box.
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return OrientedBox(box.center_m, box.size_m[[first, second, vertical]], rotation, box.frame)


def read_world_objects(value: Any, where: str) -> tuple[list[SceneObject], list[Issue]]:
    """Objects of `world.gt/instances.json` with gravity-aligned boxes, and what was left out. Raises FrameError."""
    found: dict[str, SceneObject] = {}
    issues: list[Issue] = []
    for position, entry in enumerate(read_entries(value, where)):
        name = read_id(entry, position)
        try:
            box = make_upright(box_of(entry, "world", f"{where}[{position}]"))
        except FrameError as error:
            issues.append(Issue("", "box_unusable", str(error)))
            continue
        if box is None:
            issues.append(Issue("", "box_tilted", f"{name}: no axis within {_MAX_TILT_DEG:g} degrees of vertical"))
        elif name in found:
            issues.append(Issue("", "object_repeated", f"{name}: the id stands twice; the first counts"))
        else:
            found[name] = SceneObject(name, label_of(entry), box)
    return list(found.values()), issues


def read_frame_objects(value: Any, camera: Camera, made_for: tuple[int, int], where: str) -> list[FrameObject]:
    """Objects of one frame's `wide/instances.json`. Entries without a usable box stay out.

    `rendered_px` falls back to `bbox` (x, y, w, h), `projected_px` to the projection of the box.

    Args:
        value: parsed file. camera: of the image. made_for: (width, height) that stored rectangles refer to.

    Raises:
        FrameError: the file is no list of objects.
    """
    listed: list[FrameObject] = []
    for position, entry in enumerate(read_entries(value, where)):
        try:
            box = box_of(entry, "camera", f"{where}[{position}]")
        except FrameError:
            continue
        rendered = _read_rect(entry, "box_2d_rend", camera, made_for)
        projected = _read_rect(entry, "box_2d_proj", camera, made_for)
        if rendered is None and projected is None:
            rendered = _read_rect(entry, "bbox", camera, made_for)
        if projected is None:
            projected = project_rect(camera, box)
        listed.append(FrameObject(read_id(entry, position), label_of(entry), box, rendered, projected))
    return listed


def _read_rect(entry: dict[str, Any], key: str, camera: Camera, made_for: tuple[int, int]) -> Rect | None:
    try:
        x1, y1, x2, y2 = parse_matrix(entry.get(key), key, [(4,)]).tolist()
    except FrameError:
        return None
    if key == "bbox":
        x2, y2 = x1 + x2, y1 + y2
    if not np.isfinite([x1, y1, x2, y2]).all() or x2 < x1 or y2 < y1:
        return None
    if made_for == camera.size:
        return x1, y1, x2, y2
    sx, sy = camera.width / made_for[0], camera.height / made_for[1]
    return (x1 + 0.5) * sx - 0.5, (y1 + 0.5) * sy - 0.5, (x2 + 0.5) * sx - 0.5, (y2 + 0.5) * sy - 0.5
