"""All triangles of a world in one array, welded, and split until light can be kept at the vertices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import BoolArray, FloatArray, IntArray
from vgbench_gen.samples.parts import SolidPart
from vgbench_gen.samples.textures import Texture

_COARSE_M = 50.0
_NARROW = 3  # times as long edges do where light changes little


@dataclass(eq=False)
class Mesh:
    """All triangles of a world in one array.

    A vertex belongs to one part, so what holds at a vertex holds on its faces.
    """

    vertices_m: FloatArray
    """The vertices in meters, (N, 3)."""
    normals: FloatArray
    """The unit normals of the vertices, (N, 3 or more); further columns are carried along."""
    uv: FloatArray
    """The texture coordinates of the vertices in repeats of the texture, (N, 2)."""
    instance: IntArray
    """The instance of each vertex, (N,) int64."""
    texture: IntArray
    """The place in `textures` of each vertex's texture, (N,) int64."""
    edge_m: FloatArray
    """The longest edge wanted at each vertex in meters, (N,)."""
    faces: IntArray
    """The triangles as places of their vertices, (M, 3)."""
    textures: list[Texture]
    """The textures of the parts, each once."""

    @property
    def face_instance(self) -> IntArray:
        """The instance of each face, (M,)."""
        return self.instance[self.faces[:, 0]]

    @property
    def face_texture(self) -> IntArray:
        """The place in `textures` of each face's texture, (M,)."""
        return self.texture[self.faces[:, 0]]


def join_parts(parts: Sequence[tuple[int, SolidPart, float]]) -> Mesh:
    """One mesh of (instance, part in world coordinates, longest edge in meters)."""
    textures: list[Texture] = []
    number: dict[int, int] = {}
    columns: list[list[np.ndarray]] = [[] for _ in range(7)]
    count = 0
    for instance, part, edge_m in parts:
        if id(part.texture) not in number:
            number[id(part.texture)] = len(textures)
            textures.append(part.texture)
        n = len(part.vertices_m)
        values = (
            part.vertices_m,
            part.normals,
            part.uv,
            np.full(n, instance),
            np.full(n, number[id(part.texture)]),
            np.full(n, _COARSE_M if part.coarse else edge_m * (_NARROW if part.narrow else 1)),
            part.faces + count,
        )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
        count += n
    v, n_, uv, inst, tex, edge, faces = (np.concatenate(column) for column in columns)
    return Mesh(v, n_, uv, inst.astype(np.int64), tex.astype(np.int64), edge, faces.astype(np.int64), textures)


def halve_edges(mesh: Mesh, long: BoolArray) -> tuple[Mesh, IntArray]:
    """The mesh with the marked sides cut in half, and (K, 2) the ends of those whose middles are the new vertices.

    long: (M, 3) of the sides 0-1, 1-2, 2-0 of each face; both faces of a side must agree.
    """
    f, count = mesh.faces, len(mesh.vertices_m)
    pairs = np.sort(np.stack([f, np.roll(f, -1, axis=1)], axis=-1)[long], axis=1)
    _, first, index = np.unique(pairs[:, 0] * count + pairs[:, 1], return_index=True, return_inverse=True)
    ends = pairs[first]
    active = long.any(axis=1)
    middle = np.full((int(active.sum()), 3), -1)
    middle[long[active]] = count + np.asarray(index)
    normals = mesh.normals[ends].mean(axis=1)
    normals[:, :3] /= np.maximum(np.linalg.norm(normals[:, :3], axis=1, keepdims=True), 1e-12)
    grown = Mesh(
        np.concatenate([mesh.vertices_m, mesh.vertices_m[ends].mean(axis=1)]),
        np.concatenate([mesh.normals, normals]),
        np.concatenate([mesh.uv, mesh.uv[ends].mean(axis=1)]),
        np.concatenate([mesh.instance, mesh.instance[ends[:, 0]]]),
        np.concatenate([mesh.texture, mesh.texture[ends[:, 0]]]),
        np.concatenate([mesh.edge_m, mesh.edge_m[ends].min(axis=1)]),
        np.concatenate([f[~active], _cut(f[active], middle)]),
        mesh.textures,
    )
    return grown, ends


def compute_side_lengths_m(mesh: Mesh) -> FloatArray:
    """(M, 3) lengths of the sides 0-1, 1-2, 2-0 of each face."""
    # Column by column: NumPy is slow along a last axis of three.
    columns = [np.ascontiguousarray(column) for column in mesh.vertices_m.T]
    sides = []
    for k in range(3):
        one, other = mesh.faces[:, k], mesh.faces[:, (k + 1) % 3]
        x, y, z = (column[one] - column[other] for column in columns)
        sides.append(np.sqrt(x * x + y * y + z * z))
    return np.stack(sides, axis=1)


def refine_mesh(mesh: Mesh, rounds: int = 8) -> Mesh:
    """Split until no edge is longer than wanted."""
    for _ in range(rounds):
        wanted = mesh.edge_m[mesh.faces]
        long = compute_side_lengths_m(mesh) > np.minimum(wanted, np.roll(wanted, -1, axis=1))
        if not long.any():
            break
        mesh, _ = halve_edges(mesh, long)
    return mesh


def _cut(faces: IntArray, middle: IntArray) -> IntArray:
    """Faces with -1 or a new vertex per side (0-1, 1-2, 2-0): cut into one to four, sides shared with neighbours."""
    count = (middle >= 0).sum(axis=1)
    made = []
    for sides in (1, 2, 3):
        rows = np.flatnonzero(count == sides)
        if not len(rows):
            continue
        f, m = faces[rows], middle[rows]
        if sides == 3:
            a, b, c = f.T
            ab, bc, ca = m.T
            made += [np.stack(t, axis=1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
            continue
        # Turn the corners so that the only cut side, or the only whole one, is between corners 0 and 1.
        turn = (m >= 0).argmax(axis=1) if sides == 1 else (m < 0).argmax(axis=1)
        order = (turn[:, None] + np.arange(3)) % 3
        f, m = np.take_along_axis(f, order, axis=1), np.take_along_axis(m, order, axis=1)
        a, b, c = f.T
        if sides == 1:
            ab = m[:, 0]
            made += [np.stack(t, axis=1) for t in ((a, ab, c), (ab, b, c))]
        else:
            bc, ca = m[:, 1], m[:, 2]
            made += [np.stack(t, axis=1) for t in ((bc, c, ca), (a, b, bc), (a, bc, ca))]
    return np.concatenate(made)
