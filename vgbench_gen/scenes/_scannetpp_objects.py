"""Objects of ScanNet++ from `scans/segments.json` and `scans/segments_anno.json` (`docs/formats.md#annotated-objects`).

Objects may share vertices (a cushion and the sofa it lies on); each keeps all of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.errors import GeometryError, SceneError
from vgbench_gen.core.types import FloatArray, OrientedBox
from vgbench_gen.geometry.boxes import contains, fit_gravity_aligned_box
from vgbench_gen.geometry.poses import find_nearest_rotation, measure_orthonormality_deviation
from vgbench_gen.scenes._mesh import SegmentMembers, read_segments
from vgbench_gen.scenes.base import Issue, SceneObject
from vgbench_gen.scenes.files import read_json

# Bookkeeping words: nobody says what such a surface is.
_GENERIC = frozenset(
    [
        *("", "reflection", "mirror reflection", "structure", "object", "objects", "misc", "other", "unknown"),
        *("undefined", "unlabeled", "unlabelled", "void", "clutter"),
    ]
)
# Parts of the building, of which only the surface matters.
_BUILDING = frozenset(
    [
        *("roof", "pillar", "column", "beam", "room", "window frame", "windowframe", "door frame", "doorframe"),
        *("window sill", "windowsill", "skirting", "skirting board", "baseboard"),
    ]
)
_BUILDING_PART = re.compile(r"(^|.*\W)(wall|floor|ceiling)s?$")

_MAX_GROUPS = 20_000
_BOX_MARGIN_M = 0.05  # how far outside of its box a vertex may lie
# Share of an object's vertices that must lie in its box (plus margin); scans leave some strays.
_MIN_SHARE_INSIDE = 0.95
_MAX_TILT_COSINE = float(np.cos(np.radians(2.0)))
_MIN_POINTS_FOR_BOX = 50
_MIN_SIDE_M = 1e-3


def _name_building_part(label: str) -> str:
    """What a label (lower case, stripped) says of the building, such as "wall" for "office walls"; "" for an object."""
    part = _BUILDING_PART.match(label)
    return part[2] if part else label if label in _BUILDING else ""


def is_building(label: str) -> bool:
    """Whether a label (lower case, stripped) names a part of the building."""
    return bool(_name_building_part(label))


def _is_bookkeeping(label: str) -> bool:
    return label in _GENERIC or re.match(r"(remove|split)\b", label) is not None


def read_objects(
    scans: Path, vertices_m: FloatArray, up_world: FloatArray, where: str
) -> tuple[list[SceneObject], list[Issue]]:
    """Objects and parts of the building of one scene, with their mesh vertices (N, 3) and boxes in the world frame, in
    order of the file.

    vertices_m: (V, 3) vertices of `mesh_aligned_0.05.ply`. A damaged group costs that object and becomes an issue.

    Raises:
        SceneError: a file is missing or not what it should be, or does not fit the mesh.
    """
    members = SegmentMembers(read_segments(scans / "segments.json", f"{where}/segments.json", len(vertices_m)))
    anno = read_json(scans / "segments_anno.json", f"{where}/segments_anno.json")
    groups = anno.get("segGroups") if isinstance(anno, Mapping) else None
    if not isinstance(groups, list) or len(groups) > _MAX_GROUPS:
        found = "no list" if not isinstance(groups, list) else f"{len(groups)} groups"
        expected = f"a list of at most {_MAX_GROUPS} groups under 'segGroups'"
        raise SceneError(f"{where}/segments_anno.json", found, expected)
    objects: list[SceneObject] = []
    issues: list[Issue] = []
    taken: set[str] = set()
    for position, group in enumerate(groups):
        at = f"{where}/segments_anno.json group {position}"
        try:
            label = str(group["label"]).strip().lower()
            if _is_bookkeeping(label):
                continue
            instance_id = str(int(group["objectId"] if group.get("objectId") is not None else group["id"]))
            if instance_id in taken:
                raise ValueError(f"object id {instance_id} stands more than once")
            taken.add(instance_id)
            points = vertices_m[members.of(np.array(group["segments"], dtype=np.int64))]
            if part := _name_building_part(label):
                if len(points) >= _MIN_POINTS_FOR_BOX:
                    fitted = fit_gravity_aligned_box(points, up_world)
                    objects.append(SceneObject(instance_id, part, fitted, points, "surface"))
                continue
            box, remark = _box(group["obb"], points, up_world)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, GeometryError) as problem:
            issues.append(Issue("", "object_damaged", f"{at}: {type(problem).__name__} {str(problem)[:160]}"))
            continue
        if remark:
            issues.append(Issue("", "object_box", f"{at} ({label}): {remark}"))
        objects.append(SceneObject(instance_id, label, box, points, "surface" if remark else "annotated"))
    return objects, issues


def _box(obb: Mapping[str, Any], points: FloatArray, up_world: FloatArray) -> tuple[OrientedBox, str]:
    """Gravity-aligned box of one object and a remark where the file's own box was not taken as it stands."""
    center = np.array(obb["centroid"], dtype=np.float64)
    size = np.array(obb["axesLengths"], dtype=np.float64)
    # Axis i stands in entries 3i to 3i + 2: rows here, columns in our boxes.
    rotation = np.array(obb["normalizedAxes"], dtype=np.float64).reshape(3, 3).T
    if center.shape != (3,) or size.shape != (3,):
        raise ValueError("'centroid' or 'axesLengths' has not 3 numbers")
    if not all(np.isfinite(a).all() for a in (center, size, rotation)):
        raise ValueError("the box has numbers that are not finite")
    if measure_orthonormality_deviation(rotation) > 0.02:
        raise ValueError("the axes of the box are not perpendicular unit vectors")
    if not (size > _MIN_SIDE_M).all():
        raise ValueError(f"sides of {size.tolist()} m")
    box, remark = put_up_last(OrientedBox(center, size, rotation), up_world), ""
    if box is None:
        if len(points) < _MIN_POINTS_FOR_BOX:
            raise ValueError("the box is tilted and there are too few vertices for another")
        return fit_gravity_aligned_box(points, up_world), "tilted; fitted to the vertices instead"
    if not len(points):
        return box, "no vertices to check it with"
    if contains(box, points, _BOX_MARGIN_M).mean() < _MIN_SHARE_INSIDE:
        doubled = OrientedBox(box.center_m, 2 * box.size_m, box.rotation)
        if contains(doubled, points, _BOX_MARGIN_M).mean() >= _MIN_SHARE_INSIDE:
            return doubled, "holds its vertices only with doubled lengths; taken as half lengths"
        if len(points) < _MIN_POINTS_FOR_BOX:
            raise ValueError("the vertices lie outside the box and are too few for another")
        return fit_gravity_aligned_box(points, up_world), "does not hold its vertices; fitted to them instead"
    return box, remark


def put_up_last(box: OrientedBox, up_world: FloatArray) -> OrientedBox | None:
    """The same box, axis 3 pointing up exactly, right-handed; None where no axis points up or down."""
    cosines = up_world @ box.rotation
    up = int(np.argmax(np.abs(cosines)))
    if abs(cosines[up]) < _MAX_TILT_COSINE:
        return None
    order = [(up + 1) % 3, (up + 2) % 3, up]
    rough = box.rotation[:, order].copy()
    rough[:, 2] = up_world
    rough[:, 0] -= up_world * (up_world @ rough[:, 0])
    rough[:, 0] /= np.linalg.norm(rough[:, 0])
    rough[:, 1] = np.cross(rough[:, 2], rough[:, 0])
    return OrientedBox(box.center_m, box.size_m[order], find_nearest_rotation(rough), box.frame)
