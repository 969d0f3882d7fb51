"""What the pixels of a view show, from a sixth of the rays.

Rays are cast through every fourth pixel of every fourth row. Where the four around a cell meet one plane, and no line
at which a plane ends runs through the cell in front of it, all pixels of the cell see that plane: their depth and their
place on its texture follow from it, at whatever size, and what changes slowly over a plane is mixed from the corners of
the cell. All other pixels get rays of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from vgbench_gen.core.types import BoolArray, Camera, FloatArray, IntArray
from vgbench_gen.samples.bands import BAND_PX, list_bands, take_columns
from vgbench_gen.samples.light import Tracer

Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]

STRIDE = 4
"""Pixels between two rays, and the side of a cell."""
_SMALL_PX = 100_000  # of views with fewer pixels all rays are cast: there is little to gain
_ONE_PLANE = 1e-9  # 1 - cosine between the normals of neighbours that go on in one plane
_ONE_MAP = 1e-5  # change of a texture's gradient, as a share of it, between neighbours on which it goes on
_NEAREST_M = 0.05  # lines are cut off this near to the camera; paths keep farther away from everything
_HIDDEN = 1.002  # lines farther away than this times the plane are hidden by it


@dataclass(frozen=True, eq=False)
class PlaneCells:
    """A view in cells of `STRIDE` by `STRIDE` pixels, of which the last ones may reach beyond the picture."""

    camera: Camera
    world_from_camera: FloatArray
    """Its pose, (4, 4)."""
    depth_m: Float32
    """The depth at the corners of the cells in meters, (h + 1, w + 1); inf where nothing is met."""
    face: Int32
    """The triangle that is met at the corners, (h + 1, w + 1); -1 where none is."""
    weights: Float32
    """The barycentric weights of its second and third corner, (2, h + 1, w + 1)."""
    whole: BoolArray
    """The cells all of whose pixels see one plane, (h, w)."""
    form: Int32
    """The row in `forms` of each cell's plane, (h, w)."""
    forms: Float32
    """What holds on the planes of the whole cells, as factors of (x, y, 1), a ray's direction in the camera: one over
    the depth, and the two texture coordinates over the depth, (P, 9). Row 0 says that the depth is 1."""


@dataclass(frozen=True, eq=False)
class SeenSurface:
    """What each pixel of a view shows."""

    depth_m: Float32
    """The depth z, (H, W) meters; inf where nothing is met."""
    face: Int32
    """The triangle that is met, or another of its plane, (H, W); -1 where none is."""


class SurfaceViewer:
    """Finds what views of a mesh show."""

    def __init__(self, tracer: Tracer, vertices_m: FloatArray, faces: IntArray, uv: FloatArray) -> None:
        """tracer: of the same mesh of vertices (N, 3) meters, with texture coordinates (N, 2), and faces (M, 3)."""
        self._tracer = tracer
        self._vertices_m, self._uv, self._faces = vertices_m, uv, faces
        self._plane, rims = _find_planes(vertices_m[faces], uv[faces], faces)
        self._rims_m = vertices_m[rims].astype(np.float32)

    def see(self, camera: Camera, world_from_camera: FloatArray, cells: PlaneCells | None = None) -> SeenSurface:
        """What the pixels of a view show.

        cells: of another view from the same pose, where there is one; without them the view is divided itself.
        """
        if cells is None:
            cells = self.divide(camera, world_from_camera)
        depth_m = np.empty((camera.height, camera.width), np.float32)
        face = np.empty(depth_m.shape, np.int32)
        single = np.empty(depth_m.shape, bool)
        x = ((np.arange(camera.width) - camera.cx) / camera.fx).astype(np.float32)[None]
        y = ((np.arange(camera.height) - camera.cy) / camera.fy).astype(np.float32)[:, None]
        column = np.floor((x[0] * cells.camera.fx + cells.camera.cx) / STRIDE).astype(np.int64)
        row = np.floor((y[:, 0] * cells.camera.fy + cells.camera.cy) / STRIDE).astype(np.int64)
        high, wide = cells.whole.shape
        inside = (column >= 0) & (column < wide)
        column = np.clip(column, 0, wide - 1)
        table = np.ascontiguousarray(cells.forms[:, :3])
        for rows in list_bands(camera):
            at = np.clip(row[rows], 0, high - 1)[:, None] * wide + column
            single[rows] = ~(np.take(cells.whole, at) & inside & ((row[rows] >= 0) & (row[rows] < high))[:, None])
            a, b, c = take_columns(table, np.take(cells.form, at))
            a *= x
            b *= y[rows]
            a += b
            a += c
            with np.errstate(divide="ignore"):
                np.divide(1, a, out=depth_m[rows])
            face[rows] = np.take(cells.face[:-1, :-1], at)
        flat_depth_m, flat_face = depth_m.reshape(-1), face.reshape(-1)
        for at, v, u in list_pixels(single):
            flat_depth_m[at], flat_face[at], _ = self._tracer.cast(make_rays(camera, world_from_camera, u, v))
        return SeenSurface(depth_m, face)

    def divide(self, camera: Camera, world_from_camera: FloatArray) -> PlaneCells:
        """The cells of a view."""
        wide, high = (-(-size // STRIDE) for size in camera.size)
        if camera.width * camera.height < _SMALL_PX:
            shape = (high + 1, wide + 1)
            face, weights = np.full(shape, -1, np.int32), np.zeros((2, *shape), np.float32)
            depth, whole = np.full(shape, np.inf, np.float32), np.zeros((high, wide), bool)
            forms = self._list_forms(world_from_camera, face[:-1, :-1])
            return PlaneCells(camera, world_from_camera, depth, face, weights, whole, *forms)
        u, v = np.arange(wide + 1) * STRIDE, np.arange(high + 1) * STRIDE
        depth, face, weights = self._tracer.cast(make_rays(camera, world_from_camera, u[None], v[:, None]))
        plane, *others = _list_corners(np.where(face >= 0, self._plane[face], -1))
        whole = (plane >= 0) & np.logical_and.reduce([plane == other for other in others])
        whole &= ~self._mark_rims(camera, world_from_camera, np.maximum.reduce(_list_corners(depth)))
        forms = self._list_forms(world_from_camera, np.where(whole, face[:-1, :-1], -1))
        weights = np.ascontiguousarray(np.moveaxis(weights, -1, 0))
        return PlaneCells(camera, world_from_camera, depth, face, weights, whole, *forms)

    def _list_forms(self, world_from_camera: FloatArray, face: Int32) -> tuple[Int32, Float32]:
        """`PlaneCells.form` and `PlaneCells.forms` of triangles (h, w), -1 for none."""
        seen = np.zeros(len(self._faces) + 1, bool)
        seen[face] = True
        seen[-1] = True  # none, which becomes row 0
        used = np.flatnonzero(seen[:-1])
        row = np.zeros(len(seen), np.int32)
        row[used] = np.arange(1, len(used) + 1)
        vertices = self._faces[used]
        corners = (self._vertices_m[vertices] - world_from_camera[:3, 3]) @ world_from_camera[:3, :3]
        a, b, c = corners.transpose(1, 2, 0)
        # With the corners as columns of M, weights / depth = M^-1 direction; its rows are cross products.
        weights = np.stack([_cross(b, c), _cross(c, a), _cross(a, b)])
        with np.errstate(divide="ignore", invalid="ignore"):
            weights /= (a * weights[0]).sum(axis=0)
        uv = np.einsum("kij,ink->jnk", self._uv[vertices], weights)
        forms = np.zeros((len(used) + 1, 9), np.float32)
        forms[0, 2] = 1
        forms[1:] = np.concatenate([weights.sum(axis=0), uv[0], uv[1]]).T
        return row[face], forms

    def _mark_rims(self, camera: Camera, world_from_camera: FloatArray, farthest_m: Float32) -> BoolArray:
        """(h, w) cells through which a line runs at which a plane ends and that lies before `farthest_m` (h, w)."""
        marked: BoolArray = np.zeros(farthest_m.shape, bool)
        pose = world_from_camera.astype(np.float32)
        ends = (self._rims_m.reshape(-1, 3) - pose[:3, 3]) @ pose[:3, :3]
        row, column, inverse_m = _draw_lines(camera, np.asarray(ends.reshape(-1, 2, 3), np.float32))
        inside = (row >= 0) & (column >= 0) & (row < marked.shape[0]) & (column < marked.shape[1])
        row, column = row[inside], column[inside]
        front = inverse_m[inside] * farthest_m[row, column] * _HIDDEN > 1
        marked[row[front], column[front]] = True
        return marked


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


def list_pixels(mask: BoolArray) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """The places (in reading order), rows and columns of the marked pixels of a picture (H, W), `BAND_PX` at a time."""
    places = np.flatnonzero(mask)
    for low in range(0, len(places), BAND_PX):
        some = places[low : low + BAND_PX]
        yield some, *np.divmod(some, mask.shape[1])


def spread_cells(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(n STRIDE, w STRIDE) the values (n, w) of cells at their pixels."""
    return np.repeat(np.repeat(values, STRIDE, axis=1), STRIDE, axis=0)


def mix_corners(corners: Float32, cell: IntArray, out: Float32) -> None:
    """Mix values at the corners of cells, (h + 1, w + 1), over the pixels (STRIDE, STRIDE, K) of some cells (K,)."""
    place = cell + cell // (corners.shape[1] - 1)
    first, second, third, fourth = (
        np.take(corners, place + off) for off in (0, 1, corners.shape[1], corners.shape[1] + 1)
    )
    third -= first
    fourth -= second
    for i in range(STRIDE):
        left, right = first + third * np.float32(i / STRIDE), second + fourth * np.float32(i / STRIDE)
        right -= left
        right *= np.float32(1 / STRIDE)
        out[i, 0] = left
        for j in range(1, STRIDE):
            np.add(out[i, j - 1], right, out=out[i, j])


def evaluate_form(form: Float32, x: Float32, y: Float32, out: Float32) -> None:
    """Evaluate forms (3, K) for the directions x (STRIDE, K) and y (STRIDE, K), out: (STRIDE, STRIDE, K)."""
    across = form[0] * x
    down = form[1] * y
    down += form[2]
    np.add(down[:, None], across[None], out=out)


def put_cells(values: Float32, cell: IntArray, out: Float32) -> None:
    """Write the pixels (STRIDE, STRIDE, K) of some cells (K,) into a picture (h STRIDE, w STRIDE)."""
    wide = out.shape[1] // STRIDE
    row, column = np.divmod(cell, wide)
    # The pixels of a cell in one row are 16 bytes, which are written as one number.
    words = out.reshape(-1).view(np.complex128)
    first = row * (STRIDE * wide) + column
    for i in range(STRIDE):
        words[first + i * wide] = cv2.merge(list(values[i])).reshape(-1).view(np.complex128)


def _list_corners(grid: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """The four corners (h, w) of the cells between the points (h + 1, w + 1) of a grid."""
    return [grid[:-1, :-1], grid[:-1, 1:], grid[1:, :-1], grid[1:, 1:]]


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """(3, N) cross products of (3, N) and (3, N)."""
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _find_planes(corners_m: FloatArray, uv: FloatArray, faces: IntArray) -> tuple[Int32, IntArray]:
    """(M,) the number of each triangle's plane, on which its texture goes on too; (E, 2) the vertices of the sides at
    which planes end. uv: (M, 3, 2) of the corners."""
    a, b, c = corners_m.transpose(1, 2, 0)
    normal = _cross(b - a, c - a)
    normal /= np.maximum(np.sqrt((normal**2).sum(axis=0)), 1e-20)
    # Vectors across the sides at the first corner: their products with the steps of a value make its gradient.
    over_b, over_c = _cross(c - a, normal), _cross(normal, b - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        over_b /= ((b - a) * over_b).sum(axis=0)
        over_c /= ((c - a) * over_c).sum(axis=0)
    steps = (uv[:, 1:] - uv[:, :1]).transpose(1, 2, 0)
    gradient = np.concatenate([steps[0, k] * over_b + steps[1, k] * over_c for k in range(2)])
    count = int(faces.max()) + 1
    sides = faces[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2)
    key = sides.min(axis=1) * count + sides.max(axis=1)
    order = np.argsort(key)
    same = np.diff(key[order]) == 0
    # Of two triangles: the side before and the side after are others.
    pair = np.flatnonzero(same & ~np.append(False, same[:-1]) & ~np.append(same[1:], False))
    one, other = order[pair], order[pair + 1]
    flat = 1 - (normal[:, one // 3] * normal[:, other // 3]).sum(axis=0) < _ONE_PLANE
    change = np.abs(gradient[:, one // 3] - gradient[:, other // 3]).max(axis=0)
    flat &= change <= _ONE_MAP * np.abs(gradient[:, one // 3]).max(axis=0)
    one, other = one[flat], other[flat]
    ends = np.ones(len(sides), bool)
    ends[one] = ends[other] = False
    joined = coo_array((np.ones(len(one), bool), (one // 3, other // 3)), shape=(len(faces), len(faces)))
    plane = connected_components(joined, directed=False)[1]
    rims = np.stack(np.divmod(np.unique(key[ends]), count), axis=1)
    return plane.astype(np.int32), rims


def _draw_lines(camera: Camera, ends_m: Float32) -> tuple[IntArray, IntArray, Float32]:
    """The cells through which lines (E, 2, 3) in the camera run, as rows and columns (P,), with one over their depth
    there. Of lines that leave the picture there is only what lies within."""
    x, y, depth = np.moveaxis(ends_m, -1, 0)
    across, down = camera.fx * x + camera.cx * depth, camera.fy * y + camera.cy * depth
    # Lines whose ends are both behind the camera or beyond the same side of the picture are not seen.
    margin = np.float32(2)
    beyond = [depth - _NEAREST_M, across + margin * depth, (camera.width + margin) * depth - across]
    beyond += [down + margin * depth, (camera.height + margin) * depth - down]
    seen_part = np.logical_and.reduce([(side > 0).any(axis=1) for side in beyond])
    ends_m, depth = ends_m[seen_part], depth[seen_part]
    # A line that comes from behind the camera begins before it.
    part = (_NEAREST_M - depth) / np.where(depth[:, ::-1] == depth, np.inf, depth[:, ::-1] - depth)
    ends_m = ends_m + np.where(depth < _NEAREST_M, part, 0)[..., None] * (ends_m[:, ::-1] - ends_m)
    inverse = 1 / ends_m[..., 2]
    seen = np.stack(
        [
            (ends_m[..., 0] * inverse * camera.fx + camera.cx) / STRIDE,
            (ends_m[..., 1] * inverse * camera.fy + camera.cy) / STRIDE,
            inverse,
        ]
    )
    start, way = seen[..., 0], seen[..., 1] - seen[..., 0]
    # The shares of each line at which it comes into the picture and leaves it.
    step = np.where(way[:2] == 0, 1e-12, way[:2])
    size = np.array(camera.size)[:, None] / STRIDE
    bounds = [(edge - start[:2]) / step for edge in (np.full((2, 1), -1 / STRIDE), size)]
    enter = np.maximum(np.minimum(*bounds).max(axis=0), 0)
    leave = np.minimum(np.maximum(*bounds).min(axis=0), 1)
    shown = enter <= leave
    first = start[:, shown] + enter[shown] * way[:, shown]
    last = start[:, shown] + leave[shown] * way[:, shown]
    found = [(np.floor(end[1]), np.floor(end[0]), end[2]) for end in (first, last)]
    # A line goes on from cell to cell where it crosses a side of both.
    for axis in (0, 1):
        low, high = np.sort(np.floor(np.stack([first[axis], last[axis]])), axis=0)
        count = (high - low).astype(np.int64)
        line = np.repeat(np.arange(len(count)), count)
        side = low[line] + 1 + (np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count))
        a, b = first[:, line], last[:, line]
        share = (side - a[axis]) / (b[axis] - a[axis])
        along = np.floor(a[1 - axis] + share * (b[1 - axis] - a[1 - axis]))
        inverse = a[2] + share * (b[2] - a[2])
        for cell in (side, side - 1):
            found.append((along, cell, inverse) if axis == 0 else (cell, along, inverse))
    row, column, inverse = (np.concatenate(part) for part in zip(*found, strict=True))
    return row.astype(np.int64), column.astype(np.int64), inverse.astype(np.float32)
