"""Triangle meshes in PLY files (Stanford polygon format 1.0: ASCII, binary of either byte order), read with bounds, and
depth rendered from them (`docs/formats.md#undistortion`)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import Camera, DepthArray, FloatArray, IntArray
from vgbench_gen.scenes.files import open_regular, read_bytes

MAX_PLY_BYTES = 300_000_000
_MAX_SEGMENTS_BYTES = 120_000_000
# One row of the result takes 24 bytes, so vertices and faces together stay below 600 MB.
MAX_ROWS = 25_000_000
_MAX_HEADER_BYTES = 64_000
_BLOCK_ROWS = 1_000_000
_MAX_LINE_BYTES = 10_000
# A ray that meets a million triangles in one place takes minutes; meshes have a handful within a millimeter.
_MAX_AT_ONE_PLACE = 1_000
_SAMPLED = 1_000_000
_TYPES = {
    name: kind
    for kind, names in {
        "i1": ("char", "int8"),
        "u1": ("uchar", "uint8"),
        "i2": ("short", "int16"),
        "u2": ("ushort", "uint16"),
        "i4": ("int", "int32"),
        "u4": ("uint", "uint32"),
        "f4": ("float", "float32"),
        "f8": ("double", "float64"),
    }.items()
    for name in names
}
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
# The range of the dataset's own renderer.
NEAR_M, FAR_M = 0.05, 20.0
# As fine as a depth sensor's picture: a scene's depth stays in memory, and finer rays would add nothing to answers.
RENDERED_WIDTH = 640


@dataclass(slots=True)
class _Element:
    """One table of a PLY file, such as its vertices."""

    name: str
    count: int
    properties: list[tuple[str, str, str]] = field(default_factory=list)
    """Name, type in numpy's short form and, of a list, the type of its length ("" for a plain number)."""

    def row(self, order: str) -> np.dtype[np.void]:
        """The layout of one row in bytes, where lists are taken as triples."""
        fields: list[tuple[str, str] | tuple[str, str, int]] = []
        for number, (_, kind, count_kind) in enumerate(self.properties):
            if count_kind:
                fields += [(f"n{number}", order + count_kind), (f"p{number}", order + kind, 3)]
            else:
                fields.append((f"p{number}", order + kind))
        return np.dtype(fields)

    def find(self, *names: str) -> int:
        """Position of the first property of one of these names, or -1."""
        return next((i for i, (name, *_) in enumerate(self.properties) if name in names), -1)


def read_ply(path: Path, max_bytes: int = MAX_PLY_BYTES, *, want_faces: bool = True) -> tuple[FloatArray, IntArray]:
    """Vertices (N, 3) float64 in the file's own frame and unit, and triangles (M, 3) int64 (empty if not wanted).

    Raises:
        SceneError: unreadable, torn, too large, not a PLY, not finite, faces that are no triangles, or indices
            outside the vertices.
    """
    with open_regular(path, path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise SceneError(path, f"{size} bytes", f"at most {max_bytes}", "Use the decimated mesh.")
        order, elements = _read_header(file, path)
        return _read_body(file, path, size, order, elements, want_faces)


def _read_header(file: BinaryIO, path: Path) -> tuple[str, list[_Element]]:
    if file.readline(16).strip() != b"ply":
        raise SceneError(path, "no 'ply' in the first line", "a PLY mesh")
    order: str | None = None
    elements: list[_Element] = []
    try:
        while file.tell() < _MAX_HEADER_BYTES:
            match file.readline(_MAX_HEADER_BYTES).decode("ascii", "replace").split():
                case ["format", name, _]:
                    order = _ORDERS[name]
                case ["element", name, count]:
                    elements.append(_Element(name, int(count)))
                case ["property", "list", count_type, kind, name]:
                    elements[-1].properties.append((name, _TYPES[kind], _TYPES[count_type]))
                case ["property", kind, name]:
                    elements[-1].properties.append((name, _TYPES[kind], ""))
                case ["end_header"]:
                    if order is None:
                        raise SceneError(path, "no format line", "ascii or binary")
                    return order, elements
                case ["comment" | "obj_info", *_]:
                    pass
                case words:
                    raise SceneError(path, f"header line {' '.join(words)[:60]!r}", "a PLY header")
    except (KeyError, ValueError, IndexError) as problem:
        raise SceneError(path, f"a damaged header ({problem!r:.80})", "a PLY header") from problem
    raise SceneError(path, "no end_header", f"one in the first {_MAX_HEADER_BYTES} bytes")


def _read_body(
    file: BinaryIO, path: Path, size: int, order: str, elements: list[_Element], want_faces: bool
) -> tuple[FloatArray, IntArray]:
    vertices: FloatArray | None = None
    faces: IntArray = np.empty((0, 3), np.int64)
    for element in elements:
        if vertices is not None and not want_faces:
            break
        lists = sum(bool(count_kind) for *_, count_kind in element.properties)
        is_face = element.name == "face" and vertices is not None
        if lists and not is_face:
            raise SceneError(path, f"lists in element {element.name!r}", "vertices, then triangles")
        least = element.count * (element.row(order).itemsize if order else 2 * len(element.properties))
        # The last row of a text file may lack its line break.
        _check_room(path, element, least - (1 if is_face and not order else 0), size - file.tell())
        if is_face:
            column = element.find("vertex_indices", "vertex_index")
            if column < 0 or lists != 1 or not element.properties[column][2] or element.properties[column][1][0] == "f":
                raise SceneError(path, "faces without one list of whole vertex numbers", "'vertex_indices'")
            faces = _read_rows(file, path, order, element, [column], np.empty((element.count, 3), np.int64))
        elif element.name == "vertex":
            columns = [element.find(axis) for axis in "xyz"]
            if min(columns) < 0:
                raise SceneError(path, "a vertex without x, y, z", "x, y and z")
            vertices = _read_rows(file, path, order, element, columns, np.empty((element.count, 3), np.float64))
        elif order:
            file.seek(least, os.SEEK_CUR)
        else:
            for _ in _read_lines(file, path, element.count):
                pass
    if vertices is None:
        raise SceneError(path, "no vertices", "an element 'vertex'")
    _check_values(path, vertices, faces)
    return vertices, faces


def _read_lines(file: BinaryIO, path: Path, count: int) -> Iterator[str]:
    """At most `count` lines of text. Raises SceneError where one is longer than a row can be."""
    for _ in range(count):
        line = file.readline(_MAX_LINE_BYTES + 1)
        if len(line) > _MAX_LINE_BYTES:
            raise SceneError(path, f"a line of more than {_MAX_LINE_BYTES} bytes", "one row in a line")
        if not line:
            return
        yield line.decode("ascii", "replace")


def _check_values(path: Path, vertices: FloatArray, faces: IntArray) -> None:
    if not np.isfinite(vertices).all():
        raise SceneError(path, "vertices that are not finite", "finite coordinates")
    if len(faces) and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise SceneError(path, f"vertex number {faces.max()}", f"numbers below {len(vertices)}")
    if (many := _count_at_one_place(vertices, faces)) > _MAX_AT_ONE_PLACE:
        found = f"{many} triangles within a millimeter"
        raise SceneError(path, found, f"at most {_MAX_AT_ONE_PLACE}", "Remove repeated triangles.")


def _count_at_one_place(vertices: FloatArray, faces: IntArray) -> int:
    """About how many triangles have their centre in one cubic millimeter; a ray meets them one by one."""
    step = 1 + len(faces) // _SAMPLED
    sample = faces[::step]
    if not len(sample):
        return 0
    centres_mm = (vertices[sample[:, 0]] + vertices[sample[:, 1]] + vertices[sample[:, 2]]) * (1000.0 / 3.0)
    cells = np.floor(np.clip(centres_mm, -1e9, 1e9)).astype(np.int64) @ np.array([1, 2**21 - 9, 2**42 - 11])
    return int(np.unique(cells, return_counts=True)[1].max()) * step


def _check_room(path: Path, element: _Element, least: int, left: int) -> None:
    if not 0 <= element.count <= MAX_ROWS:
        raise SceneError(path, f"{element.count} of {element.name!r}", f"at most {MAX_ROWS}", "Use the decimated mesh.")
    if least > left:
        raise SceneError(path, f"{element.count} of {element.name!r} but {left} bytes", f"at least {least} bytes")


def _read_rows(
    file: BinaryIO, path: Path, order: str, element: _Element, columns: list[int], out: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """`out` filled with three plain columns, or with the members of one list, which must be three."""
    row, is_face = element.row(order), len(columns) == 1
    in_text = [columns[0] + i for i in range(4)] if is_face else columns
    for start in range(0, element.count, _BLOCK_ROWS):
        wanted = min(_BLOCK_ROWS, element.count - start)
        counts: Any = 3
        if order:
            block = np.fromfile(file, row, wanted)
            values = block[f"p{columns[0]}"] if is_face else np.stack([block[f"p{i}"] for i in columns], axis=1)
            counts = block[f"n{columns[0]}"] if is_face else counts
        else:
            try:
                lines = _read_lines(file, path, wanted)
                values = np.loadtxt(lines, np.float64, comments=None, usecols=in_text, ndmin=2)
            except ValueError as problem:
                raise SceneError(path, f"text that is no number ({problem!s:.80})", element.name) from problem
            if is_face:
                counts, values = values[:, 0], values[:, 1:]
        if len(values) != wanted:
            raise SceneError(path, f"{start + len(values)} of {element.name!r}", f"{element.count}")
        if np.any(counts != 3):
            raise SceneError(path, "faces that are no triangles", "3 vertices each", "Triangulate the mesh.")
        out[start : start + wanted] = values
    return out


def read_segments(path: Path, where: object, count: int, scan_id: str = "") -> IntArray:
    """(V,) segment id of each of `count` vertices, which the list `segIndices` of a JSON file gives.

    The list has an entry per vertex, millions of them: read as text of numbers, as Python objects it would take many
    times its size.

    Raises:
        SceneError: no list of whole numbers, another count, or the file says to be of another scan than `scan_id`.
    """
    text = read_bytes(path, where, _MAX_SEGMENTS_BYTES)
    found = re.search(rb'"segIndices"\s*:\s*\[([\s\d,+-]*)\]', text)
    scan = re.search(rb'"sceneId"\s*:\s*"([^"]*)"', text)
    if scan_id and scan and not scan[1].endswith(scan_id.encode()):
        raise SceneError(where, f"sceneId {scan[1].decode('utf-8', 'replace')!r:.80}", f"{scan_id} (with any prefix)")
    if found is None or re.search(rb"\d{19}", found[1]):
        raise SceneError(where, "no list of whole numbers under 'segIndices'", "one segment id per vertex")
    entries = found[1].count(b",") + 1 if found[1].strip() else 0
    try:
        ids = np.fromstring(found[1].decode("ascii"), np.int64, count=entries, sep=",")
    except ValueError as problem:
        raise SceneError(where, f"damaged numbers ({problem})", "one segment id per vertex") from problem
    if len(ids) != count:
        raise SceneError(where, f"{len(ids)} segment ids", f"one for each of {count} mesh vertices")
    return ids


class SegmentMembers:
    """Vertices of each segment of an over-segmented mesh, by one sort for all objects."""

    def __init__(self, segment_of_vertex: IntArray) -> None:
        self._order = np.argsort(segment_of_vertex, kind="stable")
        self._sorted = segment_of_vertex[self._order]

    def of(self, segments: IntArray) -> IntArray:
        """Vertex indices, ascending, of all vertices in any of the segments."""
        wanted = np.unique(segments)
        first = np.searchsorted(self._sorted, wanted, "left")
        length = np.searchsorted(self._sorted, wanted, "right") - first
        # Positions first[i] .. first[i] + length[i] - 1 for all i at once.
        starts = np.repeat(first - np.concatenate([[0], np.cumsum(length)[:-1]]), length)
        return np.sort(self._order[starts + np.arange(len(starts))])


class MeshDepth:
    """One mesh, ready to be rendered; the search structure is built when first used (it cannot be pickled).

    vertices_m: (V, 3) meters, world frame. faces: (F, 3) vertex indices.
    """

    def __init__(self, vertices_m: npt.NDArray[Any], faces: npt.NDArray[Any]) -> None:
        self._vertices, self._faces = vertices_m, faces
        self._scene: Any = None

    def _built(self) -> Any:
        if self._scene is None:
            import open3d

            o3d: Any = open3d  # its type stubs ask for arguments that have defaults
            # One thread: scenes are measured in parallel processes.
            self._scene = o3d.t.geometry.RaycastingScene(nthreads=1)
            vertices = o3d.core.Tensor(np.ascontiguousarray(self._vertices, np.float32))
            faces = o3d.core.Tensor(np.ascontiguousarray(self._faces, np.uint32))
            self._scene.add_triangles(vertices, faces)
            self._vertices = self._faces = np.empty((0, 3))  # the scene has its own copy
        return self._scene

    def render(self, camera: Camera, world_from_camera: FloatArray) -> DepthArray:
        """(H, W) float32 z-depth in meters at the centre of each pixel; 0 where nothing is hit in range.

        camera: pinhole, pixel (0, 0) is the centre of the first pixel. world_from_camera: (4, 4).
        """
        # Directions with camera-z 1, so that the ray parameter is z-depth, not distance.
        x = (np.arange(camera.width) - camera.cx) / camera.fx
        y = (np.arange(camera.height) - camera.cy) / camera.fy
        R = world_from_camera[:3, :3]
        rays = np.empty((camera.height, camera.width, 6), np.float32)
        for axis in range(3):
            direction = R[axis, 0] * x[None, :] + (R[axis, 1] * y + R[axis, 2])[:, None]
            # Starting on the near plane lets a ray pass what is nearer.
            rays[..., axis] = world_from_camera[axis, 3] + NEAR_M * direction
            rays[..., 3 + axis] = direction
        import open3d

        o3d: Any = open3d
        depth = self._built().cast_rays(o3d.core.Tensor(rays))["t_hit"].numpy() + np.float32(NEAR_M)
        depth[~(depth <= FAR_M)] = 0
        return np.asarray(depth, np.float32)
