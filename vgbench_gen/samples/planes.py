"""What every pixel of a view shows, from a sixth of the rays.

Rays are cast through every fourth pixel of every fourth row. Where the four around a cell meet one plane, and no line
at which a plane ends runs through the cell in front of it, all pixels of the cell see that plane: their depth follows
from it, and their triangle is found by walking from neighbour to neighbour. All other pixels get rays of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from vgbench_gen.core.types import BoolArray, Camera, FloatArray, IntArray
from vgbench_gen.samples.bands import BAND_PX, list_bands, take_columns
from vgbench_gen.samples.light import Tracer

Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]

_STRIDE = 4
_SMALL_PX = 100_000  # of views with fewer pixels all rays are cast: there is little to gain
_ONE_PLANE = 1e-9  # 1 - cosine between the normals of neighbours that go on in one plane
_NEAREST_M = 0.05  # lines are cut off this near to the camera; paths keep farther away from everything
_STEP_PX = 1.0  # between the points at which a line is looked at
_HIDDEN = 1.002  # lines farther away than this times the plane are hidden by it
_STEPS = 4  # triangles walked over before a ray is cast after all
_INSIDE = -1e-5  # least barycentric weight of a point that counts as inside of a triangle


@dataclass(frozen=True, eq=False)
class SeenSurface:
    """What each pixel of a view shows."""

    depth_m: Float32
    """The depth z, (H, W) metres; inf where nothing is met."""
    face: Int32
    """The triangle that is met, (H, W); -1 where none is."""
    weights: Float32
    """The barycentric weights of its second and third corner, (2, H, W)."""


class SurfaceViewer:
    """Finds what views of a mesh show."""

    def __init__(self, tracer: Tracer, vertices_m: FloatArray, faces: IntArray) -> None:
        """tracer: of the same mesh of vertices (N, 3) metres and faces (M, 3)."""
        self._tracer = tracer
        self._corners_m = vertices_m[faces]
        self._plane, self._beyond, rims = _find_planes(self._corners_m, faces)
        self._rims_m = vertices_m[rims].astype(np.float32)

    def see(self, camera: Camera, world_from_camera: FloatArray, locate: bool = True) -> SeenSurface:
        """What the pixels of a view show.

        locate: whether the triangle itself is wanted, with weights; else any triangle of the same plane will do.
        """
        shape = (camera.height, camera.width)
        seen = SeenSurface(np.empty(shape, np.float32), np.empty(shape, np.int32), np.zeros((2, *shape), np.float32))
        if camera.width * camera.height < _SMALL_PX:
            single = np.ones(shape, bool)
        else:
            single = self._see_planes(camera, world_from_camera, seen, locate)
        v, u = np.nonzero(single)
        for low in range(0, len(v), BAND_PX):
            at = v[low : low + BAND_PX], u[low : low + BAND_PX]
            rays = make_rays(camera, world_from_camera, at[1], at[0])
            seen.depth_m[at], seen.face[at], weights = self._tracer.cast(rays)
            seen.weights[0][at], seen.weights[1][at] = weights[:, 0], weights[:, 1]
        return seen

    def _see_planes(self, camera: Camera, world_from_camera: FloatArray, seen: SeenSurface, locate: bool) -> BoolArray:
        """Fill in what the cells show that see one plane only; returns the (H, W) other pixels."""
        width, height = camera.size
        u, v = (np.arange(0, size - 1 + _STRIDE, _STRIDE) for size in camera.size)
        coarse_m, coarse, _ = self._tracer.cast(make_rays(camera, world_from_camera, u[None], v[:, None]))
        plane, *others = _list_corners(np.where(coarse >= 0, self._plane[coarse], -1))
        whole = (plane >= 0) & np.logical_and.reduce([plane == other for other in others])
        whole &= ~self._mark_rims(camera, world_from_camera, np.maximum.reduce(_list_corners(coarse_m)))
        near = self._list_triangles_near(world_from_camera, coarse)
        x = ((np.arange(width) - camera.cx) / camera.fx).astype(np.float32)[None]
        y = ((np.arange(height) - camera.cy) / camera.fy).astype(np.float32)[:, None]
        cell = np.minimum(np.arange(width) // _STRIDE, whole.shape[1] - 1)
        ray = (np.arange(width) + _STRIDE // 2) // _STRIDE  # the one next to the pixel
        single = np.empty(seen.face.shape, bool)
        for rows in list_bands(camera):
            v = np.arange(height)[rows]
            easy = whole[np.minimum(v // _STRIDE, len(whole) - 1)][:, cell]
            at = near.place[coarse[(v + _STRIDE // 2) // _STRIDE][:, ray]]
            depth = seen.depth_m[rows]
            with np.errstate(divide="ignore"):
                np.divide(1, _evaluate(near.inverse_m, at, x, y[rows])[0], out=depth)
            if locate:
                easy &= near.walk(at, easy, x, y[rows], depth, seen.weights[:, rows])
            seen.face[rows] = near.face[at]
            single[rows] = ~easy
        return single

    def _list_triangles_near(self, world_from_camera: FloatArray, hit: Int32) -> _Triangles:
        """The triangles that were hit, and those around them."""
        wanted = np.zeros(len(self._plane) + 1, bool)  # the last is what -1 points at
        wanted[hit] = True
        for _ in range(2):
            wanted[self._beyond[wanted[:-1]]] = True
        face = np.flatnonzero(wanted[:-1]).astype(np.int32)
        place = np.full(len(wanted), -1, np.int32)
        place[face] = np.arange(len(face), dtype=np.int32)
        corners = (self._corners_m[face] - world_from_camera[:3, 3]) @ world_from_camera[:3, :3]
        a, b, c = corners.transpose(1, 2, 0)
        # With the corners as columns of M, weights / depth = M^-1 direction; its rows are cross products.
        forms = np.stack([_cross(b, c), _cross(c, a), _cross(a, b)])
        with np.errstate(divide="ignore", invalid="ignore"):
            forms /= (a * forms[0]).sum(axis=0)
        weights = np.concatenate([forms[1], forms[2]]).astype(np.float32)
        inverse_m = forms.sum(axis=0).astype(np.float32)
        beyond = place[self._beyond[face]]
        return _Triangles(face, place, beyond, np.ascontiguousarray(weights.T), np.ascontiguousarray(inverse_m.T))

    def _mark_rims(self, camera: Camera, world_from_camera: FloatArray, farthest_m: Float32) -> BoolArray:
        """(h, w) cells through which a line runs at which a plane ends and that lies before `farthest_m` (h, w)."""
        marked: BoolArray = np.zeros(farthest_m.shape, bool)
        pose = world_from_camera.astype(np.float32)
        ends = (self._rims_m.reshape(-1, 3) - pose[:3, 3]) @ pose[:3, :3]
        u, v, inverse_m = _draw_lines(camera, np.asarray(ends.reshape(-1, 2, 3), np.float32))
        row, column = (v // _STRIDE).astype(np.int64), (u // _STRIDE).astype(np.int64)
        inside = (row >= 0) & (column >= 0) & (row < marked.shape[0]) & (column < marked.shape[1])
        row, column = row[inside], column[inside]
        front = inverse_m[inside] * farthest_m[row, column] * _HIDDEN > 1
        marked[row[front], column[front]] = True
        return marked


@dataclass(frozen=True, eq=False)
class _Triangles:
    """Triangles as one view sees them. A linear form is three factors of (x, y, 1), a ray's direction in the camera."""

    face: Int32
    """Their places in the mesh, (K,)."""
    place: Int32
    """Where the triangles of the mesh stand here, (M + 1,); -1 for those that do not, and at the end for "none"."""
    beyond: Int32
    """Their neighbours in the same plane, (K, 3), across the side opposite to each corner; -1 for none."""
    weights: Float32
    """The forms of the second and third barycentric weight over the depth, (K, 6)."""
    inverse_m: Float32
    """The form of one over the depth, (K, 3)."""

    def walk(self, at: Int32, easy: BoolArray, x: Float32, y: Float32, depth_m: Float32, weights: Float32) -> BoolArray:
        """Move `at` (h, w) to the triangle that each easy pixel lies in, and set its `weights` (2, h, w).

        Returns:
            (h, w) whether the triangle was found.
        """
        found = np.ones(at.shape, bool)
        second, third = weights
        for weight, form in zip(weights, _evaluate(self.weights, at, x, y), strict=True):
            np.multiply(form, depth_m, out=weight)
        outside = ~(np.minimum(np.minimum(second, third), 1 - second - third) >= _INSIDE)
        v, u = np.nonzero(outside & easy)
        found[v, u] = False
        here, shares = at[v, u], np.stack([1 - second[v, u] - third[v, u], second[v, u], third[v, u]])
        for _ in range(_STEPS):
            here = self.beyond[here, shares.argmin(axis=0)]
            kept = here >= 0
            v, u, here = v[kept], u[kept], here[kept]
            if not len(here):
                break
            forms = _evaluate(self.weights, here, x[0, u], y[v, 0])
            b, c = (form * depth_m[v, u] for form in forms)
            shares = np.stack([1 - b - c, b, c])
            inside = shares.min(axis=0) >= _INSIDE
            there = v[inside], u[inside]
            at[there], second[there], third[there], found[there] = here[inside], b[inside], c[inside], True
            v, u, here, shares = v[~inside], u[~inside], here[~inside], shares[:, ~inside]
        return found


def make_rays(camera: Camera, world_from_camera: FloatArray, u_px: npt.NDArray[Any], v_px: npt.NDArray[Any]) -> Float32:
    """(..., 6) centre and direction of the rays through pixels (...,).

    The direction has z = 1 in the camera, so that its multiples are z-depth.
    """
    turn, center = world_from_camera[:3, :3], world_from_camera[:3, 3]
    x, y = (u_px - camera.cx) / camera.fx, (v_px - camera.cy) / camera.fy
    rays = np.empty((*np.broadcast_shapes(x.shape, y.shape), 6), np.float32)
    for k in range(3):
        rays[..., k] = center[k]
        rays[..., 3 + k] = (turn[k, 0] * x + turn[k, 2]) + turn[k, 1] * y
    return rays


def _evaluate(forms: Float32, at: Int32, x: Float32, y: Float32) -> list[Float32]:
    """The values (...,) of the linear forms (K, 3 n) that stand at the places (...,)."""
    columns = take_columns(forms, at)
    return [columns[k] * x + columns[k + 1] * y + columns[k + 2] for k in range(0, len(columns), 3)]


def _list_corners(grid: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """The four corners (h, w) of the cells between the points (h + 1, w + 1) of a grid."""
    return [grid[:-1, :-1], grid[:-1, 1:], grid[1:, :-1], grid[1:, 1:]]


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """(3, N) cross products of (3, N) and (3, N)."""
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _find_planes(corners_m: FloatArray, faces: IntArray) -> tuple[Int32, Int32, IntArray]:
    """(M,) the number of each triangle's plane; (M, 3) its neighbours in that plane across the side opposite to each
    corner, -1 for none; (E, 2) the vertices of the sides at which planes end."""
    a, b, c = corners_m.transpose(1, 2, 0)
    normal = _cross(b - a, c - a)
    normal /= np.maximum(np.sqrt((normal**2).sum(axis=0)), 1e-20)
    count = int(faces.max()) + 1
    sides = faces[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2)
    key = sides.min(axis=1) * count + sides.max(axis=1)
    order = np.argsort(key, kind="stable")
    same = np.diff(key[order]) == 0
    # Of two triangles: the side before and the side after are others.
    pair = np.flatnonzero(same & ~np.append(False, same[:-1]) & ~np.append(same[1:], False))
    one, other = order[pair], order[pair + 1]
    flat = 1 - (normal[:, one // 3] * normal[:, other // 3]).sum(axis=0) < _ONE_PLANE
    one, other = one[flat], other[flat]
    beyond = np.full(len(sides), -1, np.int32)
    beyond[one], beyond[other] = other // 3, one // 3
    joined = coo_array((np.ones(len(one), bool), (one // 3, other // 3)), shape=(len(faces), len(faces)))
    plane = connected_components(joined, directed=False)[1]
    rims = np.stack(np.divmod(np.unique(key[beyond < 0]), count), axis=1)
    return plane.astype(np.int32), beyond.reshape(-1, 3), rims


def _draw_lines(camera: Camera, ends_m: Float32) -> tuple[Float32, Float32, Float32]:
    """Points on lines (E, 2, 3) in the camera, near one another in the picture: their pixels u and v and one over their
    depth, (P,) each. Of lines that leave the picture there are only the points within."""
    depth = ends_m[..., 2]
    ends_m, depth = (part[(depth > _NEAREST_M).any(axis=1)] for part in (ends_m, depth))
    # A line that comes from behind the camera begins before it.
    part = (_NEAREST_M - depth) / np.where(depth[:, ::-1] == depth, np.inf, depth[:, ::-1] - depth)
    ends_m = ends_m + np.where(depth < _NEAREST_M, part, 0)[..., None] * (ends_m[:, ::-1] - ends_m)
    inverse = 1 / ends_m[..., 2]
    seen = np.stack(
        [
            ends_m[..., 0] * inverse * camera.fx + camera.cx,
            ends_m[..., 1] * inverse * camera.fy + camera.cy,
            inverse,
        ]
    )
    start, way = seen[..., 0], seen[..., 1] - seen[..., 0]
    # The shares of each line at which it comes into the picture and leaves it.
    step = np.where(way[:2] == 0, 1e-12, way[:2])
    bounds = [(edge - start[:2]) / step for edge in (np.array([[-1.0], [-1.0]]), np.array(camera.size)[:, None])]
    enter = np.maximum(np.minimum(*bounds).max(axis=0), 0)
    leave = np.minimum(np.maximum(*bounds).min(axis=0), 1)
    shown = enter <= leave
    start, way, enter, leave = start[:, shown], way[:, shown], enter[shown], leave[shown]
    pieces = np.ceil((leave - enter) * np.abs(way[:2]).max(axis=0) / _STEP_PX).astype(np.int64) + 1
    line = np.repeat(np.arange(len(pieces)), pieces)
    number = (np.arange(len(line)) - np.repeat(np.cumsum(pieces) - pieces, pieces)).astype(np.float32)
    share = enter[line] + number * ((leave - enter) / np.maximum(pieces - 1, 1))[line]
    u, v, inverse_m = start[:, line] + share * way[:, line]
    return u, v, inverse_m
