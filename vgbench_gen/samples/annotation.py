"""The mesh of a world as annotators deliver it: vertices, colours, small segments, and which of them an object owns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vgbench_gen.core.types import ColorArray, FloatArray, IntArray
from vgbench_gen.geometry.poses import transform
from vgbench_gen.samples.base import SampleObject, World, WorldSurface

EDGE_M = 0.1  # gives rooms some 150,000 vertices, as many as the decimated meshes of ScanNet have
_CELL_M = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatedMesh:
    """The mesh of a world with its segments and the objects that own them."""

    vertices_m: FloatArray
    """The vertices in the frame of the file, (V, 3) meters."""
    faces: IntArray
    """The triangles as places of their vertices, (F, 3)."""
    color: ColorArray
    """The colours of the vertices, (V, 3) uint8 RGB."""
    segment: IntArray
    """The id of the segment of each vertex, (V,)."""
    objects: tuple[tuple[SampleObject, IntArray], ...]
    """The objects that own vertices, each with the sorted ids of its segments."""

    def points(self, segments: IntArray) -> FloatArray:
        """The vertices of some segments, (N, 3)."""
        found: FloatArray = self.vertices_m[np.isin(self.segment, segments)]
        return found


def segment_mesh(world: World, file_from_world: FloatArray) -> AnnotatedMesh:
    """Mesh of a world moved to the frame of a file, cut into segments of one object, one place and one direction."""
    surface = world.make_surface(EDGE_M)
    owner = np.zeros(len(surface.vertices_m), np.int16)
    for corner in range(3):
        # Of faces of two objects that share a vertex the later one counts; ids are whole, so the order is fixed.
        owner[surface.faces[:, corner]] = surface.instance
    cell = np.floor(surface.vertices_m / _CELL_M).astype(np.int64)
    cell -= cell.min(axis=0)
    columns = owner.astype(np.int64), _find_sides(surface), *cell.T
    key = np.ravel_multi_index(columns, [int(column.max()) + 1 for column in columns])
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    # The segmentator of ScanNet names a segment after one of its vertices.
    segment = first[group.reshape(-1)].astype(np.int64)
    owners = owner[first]
    found = ((o, np.sort(first[owners == o.instance_id]).astype(np.int64)) for o in world.objects)
    objects = tuple((item, segments) for item, segments in found if len(segments))
    vertices = transform(file_from_world, surface.vertices_m)
    return AnnotatedMesh(vertices, surface.faces, surface.color, segment, objects)


def _find_sides(surface: WorldSurface) -> IntArray:
    """(V,) to which of the six sides of the world each vertex of a surface looks."""
    normals = np.zeros((len(surface.vertices_m), 3))
    corners = surface.vertices_m[surface.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    for corner in range(3):
        np.add.at(normals, surface.faces[:, corner], across)
    side = np.argmax(np.abs(normals), axis=1)
    found: IntArray = 2 * side + (np.take_along_axis(normals, side[:, None], 1)[:, 0] > 0)
    return found


def format_segments(mesh: AnnotatedMesh, scene_id: str) -> dict[str, Any]:
    """Content of `*.segs.json` (ScanNet) and `segments.json` (ScanNet++)."""
    params = {"kThresh": "0.0001", "segMinVerts": "20", "minPoints": "750", "maxPoints": "30000"}
    return {"params": params, "sceneId": scene_id, "segIndices": mesh.segment.tolist()}
