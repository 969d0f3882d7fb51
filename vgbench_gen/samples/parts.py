"""Parts from which things are built: closed solids with a texture and where it lies on them.

Local frame of a thing: z up, standing on z = 0, centre of its footprint at the origin, front towards -y.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.samples.mapping import map_by_side, map_round_axis
from vgbench_gen.samples.textures import Texture

Vec3 = tuple[float, float, float]

_SIDES = ("-x", "+x", "-y", "+y", "-z", "+z")
_BEVEL_M = 0.003  # how far the edges of boards and boxes are cut off, on both of their sides
_BEVEL_SHARE = 0.1  # of the thinnest side at most
_BEVELLED_M = 0.15  # what is shorter, or thinner than a tenth of it, is too small for its edges to be seen
_WELDING = rng_for(0, "samples", "welding").integers(1 << 40, 1 << 62, 8) | 1
_SMOOTH_DOT = 0.75  # corners whose faces turn less than about 40 degrees from their mean are shaded round


@dataclass(eq=False)
class SolidPart:
    """One closed solid, or those of its sides that share a texture where sides differ.

    Vertices are split where normals or texture coordinates jump.
    """

    vertices_m: FloatArray
    """The vertices in meters, (N, 3)."""
    normals: FloatArray
    """The unit normals of the vertices, (N, 3)."""
    uv: FloatArray
    """The texture coordinates of the vertices in repeats of the texture, (N, 2)."""
    faces: IntArray
    """The triangles as places of their vertices, (M, 3)."""
    texture: Texture
    solid: int = 0
    """The number that parts of one closed solid share within their model."""
    coarse: bool = False
    """Whether it is never seen from inside the room, so that light on it needs no detail."""
    narrow: bool = False
    """Whether it is so narrow that light on it needs less detail."""


@dataclass(eq=False)
class Shelf:
    """A level rectangle on which things may stand, in the frame of its model."""

    center_m: FloatArray
    """Its centre in meters, (3,)."""
    half_m: FloatArray
    """Half of its sides in x and y, (2,) meters."""
    clear_m: float
    """The free height above it in meters."""


@dataclass(eq=False)
class Model:
    """A thing in its local frame."""

    label: str
    """What it is, as the datasets write it."""
    parts: list[SolidPart] = field(default_factory=list)
    shelves: list[Shelf] = field(default_factory=list)
    """The places where other things may stand."""
    hollow: tuple[float, float, float] | None = None
    """The free space under it as half its x, half its y and its height in meters; None where there is none."""
    lamp: tuple[Vec3, float, float] | None = None
    """The light in it as its centre and radius in meters and its power; None where it gives no light."""
    solids: int = 0
    """The number of closed solids so far, and so the number of the next one."""

    def add(self, vertices: FloatArray, faces: IntArray, texture: Texture, **how: object) -> Model:
        """Add one closed solid of vertices (N, 3) and triangles (M, 3) wound alike; see `map_texture` for `how`."""
        a, b, c = (vertices - vertices[0])[faces.T]
        if (a * cross_rows(b, c)).sum() < 0:  # its volume, where the triangles look inwards
            faces = faces[:, ::-1]
        part = map_texture(vertices, faces, texture, **how)  # type: ignore[arg-type]
        part.solid = self.solids
        self.solids += 1
        self.parts.append(part)
        return self

    def add_box(
        self,
        size: Vec3,
        base: Vec3,
        texture: Texture,
        sides: Mapping[str, Texture] | None = None,
        turn_deg: Vec3 = (0.0, 0.0, 0.0),
        along: int | None = None,
        region: tuple[float, float, float, float] | None = None,
        coarse: Collection[str] = (),
        bevel: bool = True,
    ) -> Model:
        """Add a cuboid whose bottom centre is `base`; `sides` ("-y", "+z", ...) override the texture.

        turn_deg: about x, y, z, in this order, around the bottom centre. along: axis along which a tiling texture's
        u runs (default: the longest). region: part (u1, v1, u2, v2) of stretched textures that the -y side shows.
        coarse: sides that nobody sees. bevel: whether its edges are cut off a little, if it is large enough to see it.
        """
        axis = int(np.argmax(size)) if along is None else along
        place = _make_yaw_rotation(turn_deg)
        cut_m = _choose_bevel_m(size) if bevel else 0.0
        alike: dict[tuple[int, bool, bool], list[int]] = {}
        for k, name in enumerate(_SIDES):
            used = (sides or {}).get(name, texture)
            alike.setdefault((id(used), name in coarse, region is not None and name == "-y"), []).append(k)
        made = []
        for (_, unseen, cut_out), places in alike.items():
            used = (sides or {}).get(_SIDES[places[0]], texture)
            made.append(_make_sides(np.array(size), places, used, axis, region if cut_out else None, cut_m))
            made[-1].coarse = unseen
        if cut_m:
            made.append(_make_bevel(np.array(size), texture, axis, cut_m))
        for part in made:
            part.solid = self.solids
            part.vertices_m = (part.vertices_m + np.array([0, 0, size[2] / 2])) @ place.T + np.array(base)
            part.normals = part.normals @ place.T
            self.parts.append(part)
        self.solids += 1
        return self

    def add_cylinder(
        self, radius: float, height: float, base: Vec3, texture: Texture, top: float | None = None, sections: int = 20
    ) -> Model:
        """Add an upright cylinder, or the frustum of a cone whose upper radius is `top`."""
        upper = radius if top is None else top
        return self.add_lathe([(0, 0), (radius, 0), (upper, height), (0, height)], base, texture, sections)

    def add_lathe(
        self,
        profile: Sequence[tuple[float, float]],
        base: Vec3,
        texture: Texture,
        sections: int = 24,
        smooth: bool = True,
    ) -> Model:
        """Add a solid of revolution about z; its profile of (radius, height) ends on the axis on both sides."""
        vertices, faces = _turn_profile(np.array(profile, np.float64), sections)
        return self.add(vertices + base, faces, texture, cylindrical=True, smooth=smooth, axis_xy=base[:2])

    def add_rod(self, start: Vec3, end: Vec3, radius: float, texture: Texture, sections: int = 10) -> Model:
        """Add a round bar between two points."""
        way = np.subtract(end, start)
        length = float(np.linalg.norm(way))
        vertices, faces = _turn_profile(np.array([[0, 0], [radius, 0], [radius, length], [0, length]]), sections)
        up = way / length
        side = np.cross(up, (1.0, 0, 0) if abs(up[2]) > 0.9 else (0, 0, 1.0))
        side /= np.linalg.norm(side)
        return self.add(vertices @ np.stack([side, np.cross(up, side), up]) + start, faces, texture, smooth=True)

    def add_ball(self, radii: Vec3, center: Vec3, texture: Texture, detail: int = 2) -> Model:
        """Add an ellipsoid."""
        angle = np.linspace(0, np.pi, 4 * detail + 1)
        vertices, faces = _turn_profile(np.stack([np.sin(angle).round(9), -np.cos(angle)], axis=1), 6 * detail)
        return self.add(vertices * radii + center, faces, texture, smooth=True)

    def add_cushion(
        self,
        size: Vec3,
        base: Vec3,
        texture: Texture,
        round_m: float = 0.05,
        puff: float = 0.0,
        turn_deg: Vec3 = (0, 0, 0),
    ) -> Model:
        """Add a rounded cuboid; `puff` raises the middle of its top by that many meters."""
        vertices, faces = _make_rounded_box(size, min(round_m, 0.49 * min(size)))
        if puff:
            inside = np.clip(1 - (2 * vertices[:, :2] / np.array(size[:2])) ** 2, 0, 1).prod(axis=1)
            vertices[:, 2] += puff * inside * (vertices[:, 2] > 0)
        vertices = (vertices + np.array([0, 0, size[2] / 2])) @ _make_yaw_rotation(turn_deg).T + np.array(base)
        return self.add(vertices, faces, texture, smooth=True)

    def add_tube(self, rings: FloatArray, texture: Texture, smooth: bool = True) -> Model:
        """Add a solid between rings of corners (R, C, 3); the first and the last ring are star-shaped from a corner."""
        count, corners = rings.shape[:2]
        k, j = np.mgrid[: count - 1, :corners].reshape(2, -1)
        a, b = k * corners + j, k * corners + (j + 1) % corners
        ends = np.arange(1, corners - 1)
        cap = np.stack([0 * ends, ends + 1, ends], axis=1)
        sides = [np.stack([a, b, b + corners], axis=1), np.stack([a, b + corners, a + corners], axis=1)]
        faces = np.concatenate([*sides, cap, cap[:, ::-1] + (count - 1) * corners])
        return self.add(rings.reshape(-1, 3), faces, texture, smooth=smooth)

    def extent_m(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest coordinates of all parts, (3,) each in meters."""
        points = np.concatenate([part.vertices_m for part in self.parts])
        return points.min(axis=0), points.max(axis=0)

    def add_shelf(self, center: Vec3, half: tuple[float, float], clear: float) -> Model:
        """Add a place where things may stand."""
        self.shelves.append(Shelf(np.array(center, dtype=np.float64), np.array(half, dtype=np.float64), clear))
        return self


def cross_rows(a: FloatArray, b: FloatArray) -> FloatArray:
    """(N, 3) cross products of (N, 3) and (N, 3); `numpy.cross` takes several times as long."""
    return a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]


def map_texture(
    vertices: FloatArray,
    faces: IntArray,
    texture: Texture,
    smooth: bool = False,
    cylindrical: bool = False,
    axis_xy: tuple[float, float] = (0.0, 0.0),
    along: int | None = None,
    region: tuple[float, float, float, float] | None = None,
) -> SolidPart:
    """A mesh with texture coordinates: by the side its faces look to, or round the z axis through `axis_xy`.

    Tiling textures keep their size in meters; others are stretched over each side, or show `region` of the image.
    """
    corners = vertices[faces]  # (M, 3, 3)
    face_normals = cross_rows(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    weight = np.linalg.norm(face_normals, axis=1, keepdims=True)
    face_normals /= np.maximum(weight, 1e-20)
    normals = np.repeat(face_normals[:, None], 3, axis=1)
    if smooth:
        mean: FloatArray = np.stack(
            [np.bincount(faces.ravel(), np.repeat(c, 3)) for c in (face_normals * weight).T], axis=1
        )
        mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
        round_ = (mean[faces] * normals).sum(axis=-1) > _SMOOTH_DOT
        normals = np.where(round_[..., None], mean[faces], normals)
    if cylindrical:
        uv = map_round_axis(corners, face_normals, texture, axis_xy)
    else:
        bounds = np.stack([vertices.min(axis=0), vertices.max(axis=0)])
        uv = map_by_side(corners, face_normals, texture, along, region, bounds)
    rows = np.concatenate([corners.reshape(-1, 3), normals.reshape(-1, 3), uv.reshape(-1, 2)], axis=1)
    # Equal rows are found by a product of their millionths that no two others share.
    key = np.rint(rows * 1e6).astype(np.int64) @ _WELDING
    _, first, welded = np.unique(key, return_index=True, return_inverse=True)
    kept = rows[first]
    return SolidPart(kept[:, :3], kept[:, 3:6], kept[:, 6:], np.asarray(welded).reshape(-1, 3), texture)


def _make_sides(
    size: FloatArray,
    places: Sequence[int],
    texture: Texture,
    along: int,
    region: tuple[float, float, float, float] | None,
    cut_m: float,
) -> SolidPart:
    """Sides of a cuboid centred at the origin, as places in `_SIDES`, without what its bevels take: four vertices and
    two triangles each."""
    all_corners, all_normals, all_triangles = _list_unit_sides()
    corners, normals, triangles = all_corners[places], all_normals[places], all_triangles[places]
    lies_at = np.abs(normals) > 0.5
    vertices = corners * (size - 2 * cut_m * ~lies_at)[:, None]
    bounds = np.stack([cut_m - size / 2, size / 2 - cut_m])
    uv = map_by_side(vertices, normals, texture, along, region, bounds)
    faces = triangles + 4 * np.arange(len(places))[:, None, None]
    return SolidPart(
        vertices.reshape(-1, 3), np.repeat(normals, 4, axis=0), uv.reshape(-1, 2), faces.reshape(-1, 3), texture
    )


@lru_cache(maxsize=1)
def _list_unit_sides() -> tuple[FloatArray, FloatArray, IntArray]:
    """Of the sides of the unit cube: their corners (6, 4, 3), normals (6, 3) and triangles (6, 2, 3)."""
    normals = np.repeat(np.eye(3), 2, axis=0) * np.tile([-1.0, 1.0], 3)[:, None]
    corners = np.empty((6, 4, 3))
    for side, (axis, sign) in zip(corners, itertools.product(range(3), (-1, 1)), strict=True):
        side[:, axis] = sign / 2
        side[:, [(axis + 1) % 3, (axis + 2) % 3]] = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])[::sign] / 2
    return corners, normals, np.tile(np.array([[0, 1, 2], [0, 2, 3]]), (6, 1, 1))


def _choose_bevel_m(size: Vec3) -> float:
    """How far the edges of a cuboid are cut off in meters; 0 where that would not be seen."""
    if max(size) < _BEVELLED_M or min(size) < _BEVEL_SHARE * _BEVELLED_M:
        return 0.0
    return min(_BEVEL_M, _BEVEL_SHARE * min(size))


def _make_bevel(size: FloatArray, texture: Texture, along: int, cut_m: float) -> SolidPart:
    """The strips between the sides of a cuboid centred at the origin, and the triangles at its corners."""
    corners, axis, normals, faces = _list_unit_bevel()
    vertices = corners * (size - 2 * cut_m * (np.arange(3) != axis[:, None]))
    bounds = np.stack([vertices.min(axis=0), vertices.max(axis=0)])
    uv = map_by_side(vertices[:, None], normals, texture, along, None, bounds)[:, 0]
    return SolidPart(vertices, normals, uv, faces, texture, narrow=True)


@lru_cache(maxsize=1)
def _list_unit_bevel() -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Of the bevel of the unit cube: the corner next to each vertex (48, 3), the axis of the side at which the vertex
    lies (48,), the normals (48, 3) and the triangles (32, 3)."""
    corners: list[FloatArray] = []
    sides, normals, faces = [], [], []
    at: dict[tuple[tuple[float, ...], int, int], int] = {}
    for a, b in ((0, 1), (1, 2), (2, 0)):
        for sign_a, sign_b in itertools.product((-0.5, 0.5), repeat=2):
            first = len(corners)
            for end in (-0.5, 0.5):
                corner = np.zeros(3)
                corner[[a, b, 3 - a - b]] = sign_a, sign_b, end
                for side, other in ((a, b), (b, a)):
                    at[tuple(corner), side, other] = len(corners)
                    corners.append(corner)
                    sides.append(side)
                    normals.append(np.sqrt(2) * corner * (np.arange(3) != 3 - a - b))
            faces += [[first, first + 1, first + 3], [first, first + 3, first + 2]]
    for signs in itertools.product((-0.5, 0.5), repeat=3):
        faces.append([at[signs, side, (side + 1) % 3] for side in range(3)])
    places, of_side, triangles = np.array(corners), np.array(sides), np.array(faces, np.int64)
    a, b, c = (places * (1 - 0.2 * (np.arange(3) != of_side[:, None])))[triangles].transpose(1, 0, 2)
    inward = (np.cross(b - a, c - a) * (a + b + c)).sum(axis=1) < 0
    triangles[inward] = triangles[inward, ::-1]
    return places, of_side, np.array(normals), triangles


def _turn_profile(profile: FloatArray, sections: int) -> tuple[FloatArray, IntArray]:
    """Vertices and triangles of a profile (P, 2) of radii and heights turned about z; points on the axis are single."""
    point, corner, faces = _list_turned(tuple((profile[:, 0] == 0).tolist()), sections)
    angle = corner * (2 * np.pi / sections)
    radius, height = profile[point].T
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1), faces


@lru_cache(maxsize=256)
def _list_turned(on_axis: tuple[bool, ...], sections: int) -> tuple[IntArray, IntArray, IntArray]:
    """Of a turned profile: the point (N,) of each vertex, its place on the circle (N,) and the triangles (M, 3)."""
    sizes = [1 if single else sections for single in on_axis]
    first = np.cumsum([0, *sizes])
    i = np.arange(sections)
    j = np.roll(i, -1)
    faces = []
    for k in range(len(on_axis) - 1):
        a, b = (first[n] + np.stack([i, j]) * (not on_axis[n]) for n in (k, k + 1))
        if not on_axis[k]:
            faces.append(np.stack([a[0], a[1], b[1]], axis=1))
        if not on_axis[k + 1]:
            faces.append(np.stack([a[0], b[1], b[0]], axis=1))
    if not on_axis[0]:  # a closed profile, whose last ring is the first one
        faces = [np.where(part >= first[-2], part - first[-2], part) for part in faces]
    corner = np.concatenate([np.arange(size) for size in sizes])
    return np.repeat(np.arange(len(sizes)), sizes), corner, np.concatenate(faces)


@lru_cache(maxsize=2)
def _list_grid_box(steps: int) -> tuple[FloatArray, IntArray]:
    """Vertices of the cube from -1 to 1 whose sides are divided into `steps` by `steps`, and triangles."""
    line = np.linspace(-1, 1, steps + 1)
    u, v = (side.ravel() for side in np.meshgrid(line, line))
    i, j = (side.ravel() for side in np.mgrid[:steps, :steps])
    a = i * (steps + 1) + j
    flat = np.concatenate([np.stack([a, a + 1, a + steps + 2], 1), np.stack([a, a + steps + 2, a + steps + 1], 1)])
    vertices, faces = [], []
    for axis, sign in itertools.product(range(3), (-1.0, 1.0)):
        side = np.empty((len(u), 3))
        side[:, axis], side[:, (axis + 1) % 3], side[:, (axis + 2) % 3] = sign, u, v
        vertices.append(side)
        faces.append((flat if sign > 0 else flat[:, ::-1]) + len(u) * (2 * axis + (sign > 0)))
    joined, place = np.unique(np.concatenate(vertices).round(9), axis=0, return_inverse=True)
    return joined, np.asarray(place).ravel()[np.concatenate(faces)]


def _make_rounded_box(size: Vec3, radius: float) -> tuple[FloatArray, IntArray]:
    """Vertices and triangles of a rounded cuboid centred at the origin."""
    unit, faces = _list_grid_box(8 if max(size) > 0.3 else 4)
    half = np.array(size) / 2
    inner = half - radius
    # Grid lines at 0, 1/4, 1/2, 3/4, 1 of each half side become 0, inner/2, inner, and two steps round the edge.
    position = np.interp(np.abs(unit), [0, 0.5, 1], [0, 1, 2])
    along = np.where(position <= 1, position * inner, inner + (position - 1) * radius) * np.sign(unit)
    core = np.clip(along, -inner, inner)
    outward = along - core
    length = np.linalg.norm(outward, axis=1, keepdims=True)
    return core + radius * outward / np.maximum(length, 1e-12), faces


def _make_yaw_rotation(degrees: Vec3) -> FloatArray:
    rx, ry, rz = np.radians(degrees)
    about_x = np.array([[1, 0, 0], [0, np.cos(rx), -np.sin(rx)], [0, np.sin(rx), np.cos(rx)]])
    about_y = np.array([[np.cos(ry), 0, np.sin(ry)], [0, 1, 0], [-np.sin(ry), 0, np.cos(ry)]])
    about_z = np.array([[np.cos(rz), -np.sin(rz), 0], [np.sin(rz), np.cos(rz), 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x)
