"""Annotated objects of a ScanNet scan: mesh vertices chosen by over-segmentation and aggregation, boxed.

The three files of a set belong together; mixing the decimated with the full mesh gives wrong objects, so pairing is
strict. Bad annotation costs the objects, never the frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.errors import GeometryError, SceneError
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.geometry.boxes import contains, fit_gravity_aligned_box
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes._mesh import SegmentMembers, read_ply, read_segments
from vgbench_gen.scenes.base import Issue, SceneObject
from vgbench_gen.scenes.files import inside, read_json
from vgbench_gen.scenes.promised import note_missing, try_to_read

# (mesh, segments, aggregation), the decimated set first.
_SETS = (
    ("{}_vh_clean_2.ply", "{}_vh_clean_2.0.010000.segs.json", "{}.aggregation.json"),
    ("{}_vh_clean.ply", "{}_vh_clean.segs.json", "{}_vh_clean.aggregation.json"),
)
# Annotated segments spill over object borders, so this share is cut off at either end of each box axis.
_TRIM = 0.01
_POINT_MARGIN_M = 0.01
# Fewer vertices (2 cm apart in the decimated mesh) do not show an extent.
_MIN_POINTS = 20
_MAX_GROUPS = 5000
_WITHOUT = "no objects from this mesh"


def is_annotated(folder: Path, scan_id: str) -> bool:
    """Whether there is any segmentation or aggregation of the scan, whole or not."""
    return any((folder / name.format(scan_id)).exists() for names in _SETS for name in names[1:])


def read_objects(
    folder: Path,
    scan_id: str,
    world_from_file: FloatArray,
    up_world: FloatArray,
    annotated: bool,
    issues: list[Issue],
) -> tuple[list[SceneObject], list[tuple[object, ...]]]:
    """Objects in the delivered world frame, and entries for the source digest.

    Args:
        folder: scan folder. scan_id: its name, which the file names begin with.
        world_from_file: (4, 4), the axis alignment that poses were moved by, too.
        up_world: (3,) unit vector against gravity in the delivered world.
        annotated: whether there should be objects. issues: what was wrong is added.

    Box axes: longer horizontal side, shorter one, up. Labels are the raw ones, lower case.
    """
    sets = [[folder / name.format(scan_id) for name in names] for names in _SETS]
    for paths in sets:
        if all(path.is_file() for path in paths):
            read: partial[list[SceneObject]] = partial(
                list, _make_objects(folder, scan_id, paths, world_from_file, up_world, issues)
            )
            if (found := try_to_read(issues, read, _WITHOUT)) is not None:
                return found, [(path.name, path.stat().st_size) for path in paths]
        elif any(path.exists() for path in paths[1:]):
            note_missing(issues, paths, _WITHOUT)
    if annotated and not is_annotated(folder, scan_id):
        note_missing(issues, sets[0], _WITHOUT)
    return [], []


def _make_objects(
    folder: Path, scan_id: str, paths: list[Path], world_from_file: FloatArray, up: FloatArray, issues: list[Issue]
) -> Iterator[SceneObject]:
    mesh, segs_path, aggregation_path = (inside(folder, path) for path in paths)
    groups = _read_groups(aggregation_path, scan_id, paths[1].name, issues)
    vertices, _ = read_ply(mesh, want_faces=False)
    vertices_of = SegmentMembers(read_segments(segs_path, segs_path, len(vertices), scan_id))
    left = 4 * len(vertices)
    for instance_id, label, segments in groups:
        members = vertices_of.of(segments)
        left -= len(members)
        if left < 0:
            raise SceneError(aggregation_path, "groups that share most of the mesh", "separate objects")
        if len(members) < _MIN_POINTS:
            issues.append(Issue("", "object_too_small", f"object {instance_id} ({label}): {len(members)} vertices"))
            continue
        points = transform(world_from_file, vertices[members])
        try:
            box = fit_gravity_aligned_box(points, up, trim=_TRIM)
        except GeometryError as problem:
            issues.append(Issue("", "object_without_box", f"object {instance_id} ({label}): {problem}"))
            continue
        yield SceneObject(instance_id, label, box, points[contains(box, points, _POINT_MARGIN_M)], "surface")


def _check_whole_numbers(values: list[Any], path: Path, what: str) -> IntArray:
    # Types first: one long text among the numbers would make numpy take its length for every entry.
    kinds = set(map(type, values))
    if not kinds <= {int}:
        raise SceneError(path, f"{what} of {', '.join(sorted(kind.__name__ for kind in kinds))}", "whole numbers")
    try:
        return np.array(values, np.int64)
    except OverflowError as problem:
        raise SceneError(path, f"{what} beyond 64 bits", "whole numbers") from problem


def _read_groups(path: Path, scan_id: str, segs_name: str, issues: list[Issue]) -> list[tuple[str, str, IntArray]]:
    """(instance id, label, sorted unique segments) without repeats."""
    document = read_json(path, path)
    groups = document.get("segGroups") if isinstance(document, dict) else None
    if not isinstance(groups, list) or len(groups) > _MAX_GROUPS:
        raise SceneError(path, "no usable list 'segGroups'", f"a list of at most {_MAX_GROUPS} objects")
    named = document.get("sceneId", scan_id)
    if not (isinstance(named, str) and named.endswith(scan_id)):
        raise SceneError(path, f"sceneId {named!r:.80}", f"{scan_id} (with any prefix)")
    partner = document.get("segmentsFile", segs_name)
    if not (isinstance(partner, str) and partner.endswith(segs_name)):
        raise SceneError(path, f"segmentsFile {partner!r:.80}", f"{segs_name} (with any prefix)")
    kept: list[tuple[str, str, IntArray]] = []
    sets: dict[bytes, str] = {}
    ids: set[str] = set()
    repeats: list[str] = []
    for number, group in enumerate(groups):
        entry = group if isinstance(group, dict) else {}
        label, segments, object_id = entry.get("label"), entry.get("segments"), entry.get("objectId", entry.get("id"))
        if not (isinstance(label, str) and label.strip() and isinstance(segments, list) and isinstance(object_id, int)):
            issues.append(
                Issue("", "object_malformed", f"{path.name}: group {number} lacks objectId, label or segments")
            )
            continue
        unique = np.unique(_check_whole_numbers(segments, path, f"segments of group {number}"))
        # scene0217_00 of the release lists every object twice under new ids.
        if sets.setdefault(unique.tobytes(), str(object_id)) != str(object_id) or str(object_id) in ids:
            repeats.append(str(object_id))
            continue
        ids.add(str(object_id))
        kept.append((str(object_id), label.strip().lower(), unique))
    if repeats:
        issues.append(Issue("", "object_repeated", f"{len(repeats)} objects listed twice: {', '.join(repeats[:20])}"))
    return kept
