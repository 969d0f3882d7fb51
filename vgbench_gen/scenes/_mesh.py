"""Triangle meshes in PLY files (Stanford polygon format 1.0: ASCII, binary of either byte order), read with bounds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.scenes.files import open_regular

MAX_PLY_BYTES = 300_000_000
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
_REMEDY = "Copy or download the mesh again."


@dataclass(slots=True)
class _Property:
    """One column of an element of a PLY file."""

    name: str
    type: str
    """The kind of number in numpy's short form, such as "f4"; of a list, that of its members."""
    count_type: str = ""
    """The kind of number that counts the members of a list; empty for a plain number."""


@dataclass(slots=True)
class _Element:
    """One table of a PLY file, such as its vertices."""

    name: str
    count: int
    """The number of rows that the header promises."""
    properties: list[_Property] = field(default_factory=list)

    def row(self, order: str) -> np.dtype[np.void]:
        """The layout of one row in bytes, where lists are taken as triples."""
        fields: list[tuple[str, str] | tuple[str, str, int]] = []
        for number, p in enumerate(self.properties):
            if p.count_type:
                fields += [(f"n{number}", order + p.count_type), (f"p{number}", order + p.type, 3)]
            else:
                fields.append((f"p{number}", order + p.type))
        return np.dtype(fields)

    def index(self, *names: str) -> int:
        return next((i for i, p in enumerate(self.properties) if p.name in names), -1)


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
        raise SceneError(path, "no 'ply' in the first line", "a PLY mesh", _REMEDY)
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
                    elements[-1].properties.append(_Property(name, _TYPES[kind], _TYPES[count_type]))
                case ["property", kind, name]:
                    elements[-1].properties.append(_Property(name, _TYPES[kind]))
                case ["end_header"]:
                    if order is None:
                        raise SceneError(path, "no format line", "ascii or binary", _REMEDY)
                    return order, elements
                case ["comment" | "obj_info", *_]:
                    pass
                case words:
                    raise SceneError(path, f"header line {' '.join(words)[:60]!r}", "a PLY header", _REMEDY)
    except (KeyError, ValueError, IndexError) as problem:
        raise SceneError(path, f"a damaged header ({problem!r:.80})", "a PLY header", _REMEDY) from problem
    raise SceneError(path, "no end_header", f"one in the first {_MAX_HEADER_BYTES} bytes", _REMEDY)


def _read_body(
    file: BinaryIO, path: Path, size: int, order: str, elements: list[_Element], want_faces: bool
) -> tuple[FloatArray, IntArray]:
    vertices: FloatArray | None = None
    faces: IntArray = np.empty((0, 3), np.int64)
    for element in elements:
        if vertices is not None and not want_faces:
            break
        has_list = any(p.count_type for p in element.properties)
        is_face = element.name == "face" and vertices is not None
        if has_list and not is_face:
            raise SceneError(path, f"lists in element {element.name!r}", "vertices, then triangles", _REMEDY)
        least = element.count * (element.row(order).itemsize if order else 2 * len(element.properties))
        # The last row of a text file may lack its line break.
        _check_room(path, element, least - (1 if is_face and not order else 0), size - file.tell())
        if is_face:
            faces = _read_faces(file, path, order, element)
        elif element.name == "vertex":
            vertices = _read_vertices(file, path, order, element)
        elif order:
            file.seek(least, os.SEEK_CUR)
        else:
            for _ in _read_lines(file, path, element.count):
                pass
    if vertices is None:
        raise SceneError(path, "no vertices", "an element 'vertex'", _REMEDY)
    _check_values(path, vertices, faces)
    return vertices, faces


def _read_lines(file: BinaryIO, path: Path, count: int) -> Iterator[str]:
    """At most `count` lines of text. Raises SceneError where one is longer than a row can be."""
    for _ in range(count):
        line = file.readline(_MAX_LINE_BYTES + 1)
        if len(line) > _MAX_LINE_BYTES:
            raise SceneError(path, f"a line of more than {_MAX_LINE_BYTES} bytes", "one row in a line", _REMEDY)
        if not line:
            return
        yield line.decode("ascii", "replace")


def _check_values(path: Path, vertices: FloatArray, faces: IntArray) -> None:
    if not np.isfinite(vertices).all():
        raise SceneError(path, "vertices that are not finite", "finite coordinates", _REMEDY)
    if len(faces) and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise SceneError(path, f"vertex number {faces.max()}", f"numbers below {len(vertices)}", _REMEDY)
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
        found = f"{element.count} of {element.name!r} but {left} bytes"
        raise SceneError(path, found, f"at least {least} bytes", _REMEDY)


def _read_vertices(file: BinaryIO, path: Path, order: str, element: _Element) -> FloatArray:
    columns = [element.index(axis) for axis in "xyz"]
    if min(columns) < 0:
        raise SceneError(path, "a vertex without x, y, z", "x, y and z", _REMEDY)
    out = np.empty((element.count, 3), np.float64)
    if not order:
        return _read_text_rows(file, path, element, out, columns)
    row = element.row(order)
    for start in range(0, element.count, _BLOCK_ROWS):
        block = np.fromfile(file, row, min(_BLOCK_ROWS, element.count - start))
        for axis, column in enumerate(columns):
            out[start : start + len(block), axis] = block[f"p{column}"]
    return out


def _read_faces(file: BinaryIO, path: Path, order: str, element: _Element) -> IntArray:
    column = element.index("vertex_indices", "vertex_index")
    if column < 0 or not element.properties[column].count_type or element.properties[column].type[0] == "f":
        raise SceneError(path, "faces without a list of whole vertex numbers", "'vertex_indices'", _REMEDY)
    if sum(bool(p.count_type) for p in element.properties) > 1:
        raise SceneError(path, "faces with further lists", "only 'vertex_indices'", _REMEDY)
    no_triangles = SceneError(path, "faces that are no triangles", "3 vertices each", "Triangulate the mesh.")
    out = np.empty((element.count, 3), np.int64)
    if not order:
        rows = _read_text_rows(file, path, element, np.empty((element.count, 4)), [column + i for i in range(4)])
        if (rows[:, 0] != 3).any():
            raise no_triangles
        out[:] = rows[:, 1:]
        return out
    row = element.row(order)
    for start in range(0, element.count, _BLOCK_ROWS):
        block = np.fromfile(file, row, min(_BLOCK_ROWS, element.count - start))
        if (block[f"n{column}"] != 3).any():
            raise no_triangles
        out[start : start + len(block)] = block[f"p{column}"]
    return out


def _read_text_rows(file: BinaryIO, path: Path, element: _Element, out: FloatArray, columns: list[int]) -> FloatArray:
    for start in range(0, element.count, _BLOCK_ROWS):
        wanted = min(_BLOCK_ROWS, element.count - start)
        lines = _read_lines(file, path, wanted)
        try:
            rows = np.loadtxt(lines, np.float64, comments=None, usecols=columns, ndmin=2)
        except ValueError as problem:
            raise SceneError(path, f"text that is no number ({problem!s:.80})", element.name, _REMEDY) from problem
        if len(rows) != wanted:
            raise SceneError(path, f"{start + len(rows)} of {element.name!r}", f"{element.count}", _REMEDY)
        out[start : start + wanted] = rows
    return out


class SegmentMembers:
    """Vertices of each segment of an over-segmented mesh, by one sort for all objects."""

    def __init__(self, segment_of_vertex: IntArray) -> None:
        self._order = np.argsort(segment_of_vertex, kind="stable")
        self._sorted = segment_of_vertex[self._order]

    def of(self, segments: IntArray) -> IntArray:
        """Vertex indices, ascending, of all vertices in any of the segments."""
        if segments.ndim != 1:
            raise ValueError("'segments' is no list of numbers")
        wanted = np.unique(segments)
        first = np.searchsorted(self._sorted, wanted, "left")
        length = np.searchsorted(self._sorted, wanted, "right") - first
        # Positions first[i] .. first[i] + length[i] - 1 for all i at once.
        starts = np.repeat(first - np.concatenate([[0], np.cumsum(length)[:-1]]), length)
        return np.sort(self._order[starts + np.arange(len(starts))])
