"""Light of a static room, computed once and kept at the vertices of its mesh.

Daylight through windows and lamps are area lights with shadow rays; light between surfaces is gathered over the
hemisphere (radiosity by fixed sample directions, three bounces), which also darkens corners and contacts. The sun is
sharp: where its shadow crosses an edge of the mesh the edge is halved until it is short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.samples.mesh import Mesh, compute_side_lengths_m, halve_edges

Float32 = npt.NDArray[np.float32]
AnyFloat = FloatArray | Float32

_RAYS = 16  # per group of vertices; the noise is smoothed over neighbours below
_GROUP_M = 0.09  # vertices of one thing this near together, facing alike, share the light from other surfaces
_BOUNCES = 4
_LIFT_M = 0.002  # rays start off the surface
_CHUNK = 6_000  # vertices whose rays are in memory at once
_FIRST_SPOTS = 4  # of the twelve on a window
_SUN_EDGE_M = 0.022
_SUN_ROUNDS = 3
_SUN_STEP = 0.2  # difference along an edge that is worth halving it
_SUN_SPREAD = 0.006  # radius of the sun's disc with some haze, radians


@dataclass(frozen=True, eq=False)
class Window:
    """A rectangle that shines into the room."""

    center_m: FloatArray
    """Its centre in the room, (3,) meters."""
    half_m: FloatArray
    """The vectors from its centre to the middles of two sides, (2, 3) meters."""
    normal: FloatArray
    radiance: FloatArray
    """Its colour times its radiance, (3,)."""


@dataclass(frozen=True, eq=False)
class Lamp:
    """A ball of light."""

    center_m: FloatArray
    """Its centre in the room, (3,) meters."""
    radius_m: float
    power: FloatArray
    """Its colour times its power, (3,)."""


@dataclass(frozen=True, eq=False)
class Lights:
    """Everything that shines."""

    windows: Sequence[Window]
    lamps: Sequence[Lamp]
    sun: FloatArray | None
    """The unit vector towards the sun, (3,); None where it does not shine."""
    sun_color: FloatArray
    """The irradiance of a surface that faces the sun, (3,)."""


class Tracer:
    """Open3D's ray casting over a mesh, one thread."""

    def __init__(self, vertices_m: FloatArray, faces: IntArray) -> None:
        import open3d as o3d

        core: Any = o3d.core
        self._tensor = core.Tensor
        self._scene: Any = o3d.t.geometry.RaycastingScene(nthreads=1)
        self._scene.add_triangles(
            self._tensor(np.ascontiguousarray(vertices_m, np.float32)), self._tensor(faces.astype(np.uint32))
        )

    def cast(self, rays: Float32) -> tuple[Float32, npt.NDArray[np.int32], Float32]:
        """Rays (..., 6) as origin and direction -> (multiples of the direction, inf where none; triangle, -1 where
        none; (..., 2) barycentric weights of its second and third corner)."""
        found = self._scene.cast_rays(self._tensor(np.ascontiguousarray(rays)), nthreads=1)
        # The largest unsigned number stands for none.
        return found["t_hit"].numpy(), found["primitive_ids"].numpy().view(np.int32), found["primitive_uvs"].numpy()

    def is_blocked(self, rays: Float32, far: float = 1.0) -> npt.NDArray[np.bool_]:
        """Whether anything is met before `far` multiples of the direction."""
        found = self._scene.test_occlusions(self._tensor(np.ascontiguousarray(rays)), tfar=far, nthreads=1)
        return np.asarray(found.numpy(), dtype=bool)

    def distance_m(self, points: FloatArray) -> FloatArray:
        """(N,) distance of points (N, 3) from the nearest surface."""
        found = self._scene.compute_distance(self._tensor(np.ascontiguousarray(points, np.float32)), nthreads=1)
        return np.asarray(found.numpy(), dtype=np.float64)


def bake_light(mesh: Mesh, albedo: FloatArray, lights: Lights, rng: np.random.Generator) -> tuple[Mesh, Float32]:
    """(the mesh with more vertices along the edges of sunlight, (N, 3) float32 irradiance at its vertices).

    albedo: (T, 3) mean linear colour of each texture.
    """
    tracer = Tracer(mesh.vertices_m, mesh.faces)
    normals = mesh.normals.astype(np.float32)
    starts = (mesh.vertices_m + _LIFT_M * mesh.normals).astype(np.float32)
    direct = _compute_window_light(tracer, starts, normals, lights.windows)
    direct += _compute_lamp_light(tracer, starts, normals, lights.lamps)
    sun = _compute_sun_share(tracer, starts, normals, lights)
    color = albedo[mesh.texture].astype(np.float32)
    rest = direct + _compute_indirect_light(tracer, mesh, starts, color, direct + sun[:, None] * lights.sun_color, rng)
    if lights.sun is not None and sun.any():
        for _ in range(_SUN_ROUNDS):
            at_corners = sun[mesh.faces]
            step = np.abs(at_corners - np.roll(at_corners, -1, axis=1))
            long = (step > _SUN_STEP) & (compute_side_lengths_m(mesh) > _SUN_EDGE_M)
            if not long.any():
                break
            mesh, ends = halve_edges(mesh, long)
            added = slice(len(sun), None)
            lifted = mesh.vertices_m[added] + _LIFT_M * mesh.normals[added]
            sun = np.concatenate([sun, _compute_sun_share(tracer, lifted, mesh.normals[added], lights)])
            rest = np.concatenate([rest, rest[ends].mean(axis=1)])
    return mesh, (rest + sun[:, None] * lights.sun_color).astype(np.float32)


def _compute_window_light(tracer: Tracer, starts: Float32, normals: Float32, windows: Sequence[Window]) -> Float32:
    total = np.zeros((len(starts), 3), np.float32)
    own = np.einsum("ni,ni->n", starts, normals)
    a, b = np.tile([-0.75, -0.25, 0.25, 0.75], 3), np.array([-0.7, 0.7, -0.7, 0.7, *4 * [0.0], 0.7, -0.7, 0.7, -0.7])
    # Half a step to and fro, so that the twelve points make no lattice.
    shares = np.stack([a + 0.12 * np.sin(5 * b), b + 0.1 * np.cos(7 * a)], axis=1)
    for window in windows:
        sides = np.linalg.norm(window.half_m, axis=1)
        part = (4 * sides[0] * sides[1] / len(shares) * window.radiance).astype(np.float32)
        before = starts @ window.normal.astype(np.float32)
        met = np.zeros(len(starts), np.uint8)  # 1 where one of the first points was seen, plus 2 where one was hidden
        for number, spot in enumerate((window.center_m + shares @ window.half_m).astype(np.float32)):
            at_surface, at_window = normals @ spot - own, before - np.float32(spot @ window.normal)
            rows = np.flatnonzero((at_surface > 0) & (at_window > 0))
            way = spot - starts[rows]
            # Where the first points, which are spread over the window, agree, the others are taken to be alike.
            seen = met[rows] == 1
            asked = np.flatnonzero((number < _FIRST_SPOTS) | (met[rows] % 3 == 0))
            seen[asked] = ~tracer.is_blocked(np.concatenate([starts[rows[asked]], way[asked]], axis=1), 0.998)
            if number < _FIRST_SPOTS:
                met[rows] |= np.where(seen, 1, 2).astype(np.uint8)
            rows, way = rows[seen], way[seen]
            square = np.einsum("ni,ni->n", way, way)
            form = at_surface[rows] * at_window[rows] / (np.pi * np.maximum(square, 0.03) ** 2)
            total[rows] += form[:, None] * part
    return total


def _compute_lamp_light(tracer: Tracer, starts: Float32, normals: Float32, lamps: Sequence[Lamp]) -> Float32:
    total = np.zeros((len(starts), 3), np.float32)
    own = np.einsum("ni,ni->n", starts, normals)
    for lamp in lamps:
        for k in range(3):
            angle = 2.1 * k
            offset = 0.5 * lamp.radius_m * np.array([np.cos(angle), np.sin(angle), 0.0])
            center = (lamp.center_m + offset).astype(np.float32)
            at_surface = normals @ center - own
            rows = np.flatnonzero(at_surface > 0)
            way = center - starts[rows]
            distance = np.sqrt(np.einsum("ni,ni->n", way, way))
            away = distance > 1.02 * lamp.radius_m
            rows, way, distance = rows[away], way[away], distance[away]
            # The ray ends outside of the lamp's own shade.
            part = 1 - np.float32(1.6 * lamp.radius_m) / distance
            rays = np.concatenate([starts[rows], way * np.maximum(part, 0.01)[:, None]], axis=1)
            seen = ~tracer.is_blocked(rays)
            rows, distance = rows[seen], distance[seen]
            form = at_surface[rows] / distance / np.maximum(distance, np.float32(0.2)) ** 2 / np.float32(3)
            total[rows] += form[:, None] * lamp.power.astype(np.float32)
    return total


def _compute_sun_share(tracer: Tracer, starts: AnyFloat, normals: AnyFloat, lights: Lights) -> FloatArray:
    """(N,) share of the sun's disc that is seen, times the cosine."""
    share = np.zeros(len(starts))
    if lights.sun is None:
        return share
    facing = normals @ lights.sun
    rows = np.flatnonzero(facing > 0)
    side = np.cross(lights.sun, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    other = np.cross(lights.sun, side)
    seen = np.zeros(len(rows))
    for a, b in ((0.9, 0.3), (-0.3, 0.9), (-0.9, -0.3), (0.3, -0.9)):
        direction = lights.sun + _SUN_SPREAD * (a * side + b * other)
        rays = np.concatenate([starts[rows], np.broadcast_to(direction, (len(rows), 3))], axis=1).astype(np.float32)
        seen += ~tracer.is_blocked(rays, np.inf)
    share[rows] = facing[rows] * seen / 4
    return share


def _compute_indirect_light(
    tracer: Tracer, mesh: Mesh, starts: AnyFloat, color: Float32, direct: AnyFloat, rng: np.random.Generator
) -> FloatArray:
    """(N, 3) irradiance from other surfaces."""
    group, first = _group_vertices(mesh)
    hits = _cast_hemisphere_rays(tracer, starts[first], mesh.normals[first], rng)
    # The last column stands for "nothing": rays that leave through a window, whose light is counted with the windows.
    hits[hits < 0] = len(mesh.faces)
    seen = csr_array(
        (np.full(hits.size, 1 / _RAYS, np.float32), hits.ravel(), np.arange(0, hits.size + 1, _RAYS)),
        shape=(len(first), len(mesh.faces) + 1),
    )
    smooth = _make_smoothing(mesh.faces, len(starts))
    gathered = np.zeros((len(starts), 3), np.float32)
    for _ in range(_BOUNCES):
        given = color * (direct + gathered).astype(np.float32)
        by_face = np.zeros((len(mesh.faces) + 1, 3), np.float32)
        for corner in mesh.faces.T:
            by_face[:-1] += given[corner] / np.float32(3)
        share = seen @ by_face
        gathered = smooth @ (smooth @ share[group])
    return gathered.astype(np.float64)


def _group_vertices(mesh: Mesh) -> tuple[IntArray, IntArray]:
    """(group of each vertex (N,), one vertex of each group)."""
    cell = np.floor(mesh.vertices_m / _GROUP_M).astype(np.int64) + 2048
    side = np.rint(mesh.normals * 1.4).astype(np.int64) + 2
    key = ((cell[:, 0] << 24 | cell[:, 1] << 12 | cell[:, 2]) * 5 + side[:, 0]) * 25 + side[:, 1] * 5 + side[:, 2]
    # Things are told apart by a product that does not meet the cells': a collision would only share some light.
    _, first, group = np.unique(key * 4099 + mesh.instance, return_index=True, return_inverse=True)
    return np.asarray(group), np.asarray(first)


def _cast_hemisphere_rays(
    tracer: Tracer, starts: AnyFloat, normals: FloatArray, rng: np.random.Generator
) -> npt.NDArray[np.int32]:
    """(N, R) triangles hit by rays spread over the hemispheres by the cosine law, -1 where none."""
    count = len(starts)
    turn = rng.uniform(0, 2 * np.pi, count)
    k = np.arange(_RAYS)
    radius, angle = np.sqrt((k + 0.5) / _RAYS), k * (np.pi * (3 - np.sqrt(5)))  # Vogel's spiral: even over the disc
    height = np.sqrt(1 - radius**2)
    across = np.cross(normals, np.where(np.abs(normals[:, 2:]) > 0.9, [[1.0, 0, 0]], [[0, 0, 1.0]]))
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-12)
    up = np.cross(normals, across)
    hits = np.empty((count, _RAYS), np.int32)
    for low in range(0, count, _CHUNK):
        rows = slice(low, min(low + _CHUNK, count))
        a = (angle[None] + turn[rows, None]).astype(np.float32)
        x, y = radius.astype(np.float32) * np.cos(a), radius.astype(np.float32) * np.sin(a)
        rays = np.empty((*a.shape, 6), np.float32)
        for c in range(3):
            rays[..., c] = starts[rows, c, None]
            rays[..., 3 + c] = x * across[rows, c, None] + y * up[rows, c, None] + height * normals[rows, c, None]
        hits[rows] = tracer.cast(rays)[1]
    return hits


def _make_smoothing(faces: IntArray, count: int) -> csr_array:
    """(N, N) that gives each of `count` vertices the mean of itself and of those that share an edge with it; an edge
    between two faces counts twice, like the vertex itself."""
    one, other = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    itself = np.arange(count)
    rows, columns = np.concatenate([one, other, itself]), np.concatenate([other, one, itself])
    weight = np.ones(len(rows), np.float32)
    weight[-count:] = 2
    weight /= np.bincount(rows, weight, count).astype(np.float32)[rows]
    return csr_array((weight, (rows, columns)), shape=(count, count))
