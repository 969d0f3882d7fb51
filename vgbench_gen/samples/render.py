"""A lit room that can be looked at: ray casting, filtered textures, light from the vertices, a plain camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray, IntArray
from vgbench_gen.samples.atlas import Atlas, linear_from_srgb
from vgbench_gen.samples.bands import list_bands, take_columns
from vgbench_gen.samples.base import RenderedView, SampleObject, WorldSurface
from vgbench_gen.samples.gloss import Gloss, list_probe_rays
from vgbench_gen.samples.light import Tracer
from vgbench_gen.samples.mesh import Mesh, refine_mesh
from vgbench_gen.samples.parts import cross_rows
from vgbench_gen.samples.planes import (
    STRIDE,
    PlaneCells,
    SurfaceViewer,
    evaluate_form,
    list_pixels,
    make_rays,
    mix_corners,
    put_cells,
    spread_cells,
)

Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]

# Pixels; with their middle they make four places, no two in a row or column, whose mean is the middle.
_SUBSAMPLES = ((0.4, 0.13), (-0.13, -0.4), (-0.27, 0.27))
_BRIGHTEST = np.float32(6)  # of what is mixed at edges, so that a lamp's rim is smooth too
_CELLS = 4_096  # that are worked on at a time
_EDGE_RELATIVE = 0.03  # depth steps of this share of the depth get more rays
_ROUND = 5e-7  # 1 - cosine between the normals of a triangle and of a corner
_SATURATION = 0.92
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # of linear sRGB
_OUTSIDE = 3.0  # brightness of the world outside over a white wall in daylight
_WHITEST = 250.0  # grey level of the brightest light, below the end of the scale, so that grain is not cut off
_VIGNETTE = 0.16  # loss in the corners
# A camera sets its exposure by what it sees: half of the way, on a logarithmic scale, to a mean of `_METERED`.
_METERED, _METERING, _GAINS, _METER_PX = 0.2, 0.5, (0.6, 1.5), 8


class RoomWorld:
    """See `samples.base.World`."""

    def __init__(
        self,
        mesh: Mesh,
        light: Float32,
        atlas: Atlas,
        objects: Sequence[SampleObject],
        outside: ColorArray,
        exposure: float,
        tint: FloatArray,
    ) -> None:
        """light: (N, 3) irradiance at the vertices. outside: panorama for rays that leave. exposure, tint (3,):
        what linear colours are multiplied by."""
        # The atlas has the pictures; what else `surface` needs of the textures is their size.
        self._per_metre = np.array([max(t.image.shape[1] / max(t.size_m[0], 1e-6), 1) for t in mesh.textures])
        glow = np.array([item.glow for item in mesh.textures])
        gloss = np.array([item.gloss for item in mesh.textures])
        mesh = replace(mesh, textures=[])
        self._mesh, self._light, self._atlas = mesh, light, atlas
        self._objects = tuple(sorted(objects, key=lambda item: item.instance_id))
        self._outside = outside
        self._gain = (exposure * tint).astype(np.float32)
        self.tracer = Tracer(mesh.vertices_m, mesh.faces)
        """Casts rays over the mesh."""
        self._viewer = SurfaceViewer(self.tracer, mesh.vertices_m, mesh.faces, mesh.uv)
        self._face_instance = mesh.face_instance.astype(np.int32)
        corners = mesh.vertices_m[mesh.faces]
        normal = cross_rows(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        area = np.linalg.norm(normal, axis=1)
        self._face_normal = normal / np.maximum(area, 1e-20)[:, None]
        texture = mesh.face_texture
        texels = mesh.uv[mesh.faces] * atlas.size_px[texture][:, None]
        a, b = texels[:, 1] - texels[:, 0], texels[:, 2] - texels[:, 0]
        texel_area = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
        # [u v r g b] at the first corner and their steps to the other two; then log2 of texels per meter.
        first, *others = np.concatenate([mesh.uv, light], axis=1, dtype=np.float32, casting="same_kind")[mesh.faces.T]
        density = 0.5 * np.log2(np.maximum(texel_area, 1e-9) / np.maximum(area, 1e-12))
        self._face_texture = texture.astype(np.int32)
        # What a ray's direction times the normal is times the depth, less the part that the camera's place has.
        self._face_offset = np.einsum("ij,ij->i", corners[:, 0], self._face_normal)
        # Where a thing glows, its own light is added to what falls on it.
        steps = [other - first for other in others]
        first[:, 2:] += glow[texture][:, None]
        self._face_values = np.concatenate([first, *steps, density[:, None]], axis=1, dtype=np.float32)
        # Thing, texture and direction of each face in one number: where neighbours differ, there is an edge.
        side = np.rint(self._face_normal * 2.4).astype(np.int32) + 3
        # What is shaded round has no folds.
        for corner in mesh.faces.T:
            side[1 - np.einsum("ij,ij->i", mesh.normals[corner], self._face_normal) > _ROUND] = 0
        part = self._face_instance * len(gloss) + self._face_texture
        self._face_key = ((part * 7 + side[:, 0]) * 7 + side[:, 1]) * 7 + side[:, 2]
        self._tone = _make_tone_curve()
        rays = list_probe_rays(self.tracer, mesh)
        t, met, _ = self.tracer.cast(rays)
        self._gloss = Gloss(mesh, light, gloss, rays, t, self._estimate_brightness(rays, met))

    @property
    def objects(self) -> tuple[SampleObject, ...]:
        return self._objects

    def render_depth(
        self, camera: Camera, world_from_camera: FloatArray, view: RenderedView | None = None
    ) -> tuple[DepthArray, np.ndarray, FloatArray]:
        cells = None if view is None else view.cells
        seen = self._viewer.see(camera, world_from_camera, cells)
        depth, cosine = _keep_hits(seen.depth_m, seen.face), np.zeros(seen.face.shape)
        facing = self._measure_facing(world_from_camera)
        length = np.sqrt(_square_directions(camera))
        np.divide(np.abs(facing[seen.face]), seen.depth_m * length, out=cosine, where=seen.face >= 0)
        return depth, self._find_instances(seen.face), cosine

    def look(self, camera: Camera, world_from_camera: FloatArray) -> RenderedView:
        cells = self._viewer.divide(camera, world_from_camera)
        facing = self._measure_facing(world_from_camera)
        gloss = self._gloss.compute(world_from_camera[:3, 3])
        color, depth, face = self._fill_cells(cells, facing, gloss)
        flat_color, flat_depth, flat_face = color.reshape(3, -1), depth.reshape(-1), face.reshape(-1)
        single = ~spread_cells(cells.whole)
        single[camera.height :] = single[:, camera.width :] = False
        for at, v, u in list_pixels(single):
            rays = make_rays(camera, world_from_camera, u, v)
            flat_color[:, at], flat_depth[at], flat_face[at] = self._look_along(camera, facing, gloss, rays)
        edge: BoolArray = np.zeros(face.shape, bool)
        for rows in list_bands(camera):
            more = slice(rows.start, min(rows.stop + 1, camera.height)), slice(camera.width)
            edge[more] |= self._find_edges(depth[more], face[more])
        for at, v, u in list_pixels(edge):
            # The ray through the middle is one of them.
            mean: Float32 = np.minimum(np.take(flat_color, at, axis=1), _BRIGHTEST)
            for du, dv in _SUBSAMPLES:
                rays = make_rays(camera, world_from_camera, u + du, v + dv)
                mean += np.minimum(self._look_along(camera, facing, gloss, rays)[0], _BRIGHTEST)
            flat_color[:, at] = mean / np.float32(len(_SUBSAMPLES) + 1)
        shown = self._develop(camera, color)
        del color, flat_color  # the largest picture of all, before two more are made
        face = face[: camera.height, : camera.width]
        depth = _keep_hits(depth[: camera.height, : camera.width], face)
        return RenderedView(shown, depth, self._find_instances(face), cells)

    def make_surface(self, edge_m: float = 0.05) -> WorldSurface:
        mesh = self._mesh
        seen = mesh.edge_m[mesh.faces[:, 0]] < 10  # sides that nobody can see were never scanned
        pieces: list[tuple[FloatArray, IntArray, ColorArray, IntArray]] = []
        start = 0
        # Thing by thing: edges never join two of them, and the whole at once would need much memory.
        for item in self._objects:
            fine = _refine_instance(
                mesh, self._light, np.flatnonzero(seen & (self._face_instance == item.instance_id)), edge_m
            )
            # Colours come from the texture seen at the size of the edges.
            per_metre = np.minimum(self._per_metre[fine.texture], self._atlas.size_px[fine.texture, 0])
            level = np.log2(np.maximum(per_metre * edge_m, 1)).astype(np.float32)
            u, v = fine.uv.T.astype(np.float32)
            color = self._atlas.sample(fine.texture.astype(np.int32), u, v, level)
            shown = self._apply_tone(color * fine.normals[:, 3:].T.astype(np.float32) * self._gain[:, None])
            pieces.append((fine.vertices_m, fine.faces + start, shown.T, np.full(len(fine.faces), item.instance_id)))
            start += len(fine.vertices_m)
        vertices, faces, colors, instance = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return WorldSurface(vertices, faces, colors, instance.astype(np.int64))

    def clearance_m(self, points: FloatArray) -> FloatArray:
        """(N,) distance of points (N, 3) from the nearest surface."""
        return self.tracer.distance_m(points)

    def _estimate_brightness(self, rays: Float32, face: Int32) -> Float32:
        """(P,) linear brightness of what rays (P, 6) meet, textures taken by their mean."""
        light = self._face_values[face, 2:5] + (self._face_values[face, 7:10] + self._face_values[face, 12:15]) / 3
        seen = (light * self._atlas.mean[self._face_texture[face]].astype(np.float32)).T
        seen[:, face < 0] = self._shade_sky(rays[face < 0])
        return np.asarray(np.array(_LUMINANCE, np.float32) @ seen, np.float32)

    def _find_instances(self, face: Int32) -> np.ndarray:
        found = np.take(self._face_instance, face, mode="clip")
        found[face < 0] = 0
        return found

    def _measure_facing(self, world_from_camera: FloatArray) -> Float32:
        """(M,) of each triangle, the product of its normal with what leads from the camera to its plane."""
        return np.asarray(self._face_offset - self._face_normal @ world_from_camera[:3, 3], np.float32)

    def _find_edges(self, depth_m: Float32, face: Int32) -> BoolArray:
        """(H, W) pixels next to another thing or texture, a step in depth or a fold."""
        key = np.take(self._face_key, face, mode="clip")
        key[face < 0] = -1
        near = np.where(face >= 0, depth_m, np.float32(1e6))
        edge = np.zeros(face.shape, dtype=bool)
        for first, second in (
            ((slice(None, -1), slice(None)), (slice(1, None), slice(None))),
            ((slice(None), slice(None, -1)), (slice(None), slice(1, None))),
        ):
            step = key[first] != key[second]
            step |= np.abs(near[first] - near[second]) > np.float32(_EDGE_RELATIVE) * near[first]
            edge[first] |= step
            edge[second] |= step
        return edge

    def _fill_cells(self, cells: PlaneCells, facing: Float32, gloss: Float32) -> tuple[Float32, Float32, Int32]:
        """(3, H, W) linear colour, (H, W) depth and (H, W) triangles of all pixels of the cells of a view, right where
        they are whole.

        facing: see `_measure_facing`. gloss: see `Gloss.compute`.
        """
        camera, (high, wide) = cells.camera, cells.whole.shape
        K = np.array([[camera.fx, 0, camera.cx], [0, camera.fy, camera.cy], [0, 0, STRIDE]]) / STRIDE
        grid = Camera(K, wide + 1, high + 1)  # whose pixels are the corners of the cells
        lit = self._gather_light(
            camera, facing, gloss, _square_directions(grid), cells.depth_m, cells.face, cells.weights
        )[2:]
        shape = (high * STRIDE, wide * STRIDE)
        color: Float32 = np.empty((3, *shape), np.float32)
        depth = np.empty(shape, np.float32)
        x = ((np.arange(shape[1]) - camera.cx) / camera.fx).astype(np.float32)
        y = ((np.arange(shape[0]) - camera.cy) / camera.fy).astype(np.float32)
        x, y = (np.ascontiguousarray(side.reshape(-1, STRIDE).T) for side in (x, y))
        level = cv2.blur(lit[4], (2, 2), anchor=(0, 0))[:-1, :-1].ravel()  # one for all pixels of a cell
        whole = np.flatnonzero(cells.whole)
        # Enlarged textures first, as they need no mixing of levels.
        whole = whole[np.argsort(level[whole] > 0, kind="stable")]
        for low in range(0, len(whole), _CELLS):
            some = whole[low : low + _CELLS]
            row, column = np.divmod(some, wide)
            spread: Float32 = np.empty((7, STRIDE, STRIDE, len(some)), np.float32)
            forms = take_columns(cells.forms, np.take(cells.form, some))
            across, down = np.take(x, column, axis=1), np.take(y, row, axis=1)
            for form, out in zip(forms.reshape(3, 3, -1), spread, strict=False):
                evaluate_form(form, across, down, out)
            for corner, out in zip(lit, spread[3:], strict=False):
                mix_corners(corner, some, out)
            inverse = spread[0]
            np.divide(1, inverse, out=inverse)
            spread[1:3] *= inverse
            texture = np.take(self._face_texture, cells.face[row, column])
            seen = self._atlas.sample(texture, spread[1], spread[2], level[some])
            seen *= spread[3:6]
            seen += spread[6]
            for values, picture in zip((inverse, *seen), (depth, *color), strict=True):
                put_cells(values, some, picture)
        return color, depth, spread_cells(cells.face[:-1, :-1])

    def _look_along(
        self, camera: Camera, facing: Float32, gloss: Float32, rays: Float32
    ) -> tuple[Float32, Float32, Int32]:
        """(3, N) linear colour, (N,) depth and (N,) triangles that rays (N, 6) meet. Other arguments: see
        `_fill_cells`."""
        t, face, weights = self.tracer.cast(rays)
        square = np.einsum("ni,ni->n", rays[:, 3:], rays[:, 3:])
        lit = self._gather_light(camera, facing, gloss, square, t, face, np.ascontiguousarray(weights.T))
        color = self._atlas.sample(np.take(self._face_texture, face, mode="clip"), lit[0], lit[1], lit[6])
        color *= lit[2:5]
        color += lit[5]
        color[:, face < 0] = self._shade_sky(rays[face < 0])
        return color, t, face

    def _gather_light(
        self,
        camera: Camera,
        facing: Float32,
        gloss: Float32,
        square: Float32,
        t: Float32,
        face: Int32,
        weights: Float32,
    ) -> Float32:
        """(7, ...) of what rays meet: place on its texture, light that falls on it, brightness that it mirrors, and
        which of the textures' levels a pixel sees.

        square: (...,) squared lengths of the rays' directions. t, face, weights: (...,), (...,) and (2, ...), what
        they met. Other arguments: see `_fill_cells`.
        """
        columns = take_columns(self._face_values, face)
        mirrored = take_columns(gloss, face)
        for first, second, third in ((columns[:5], columns[5:10], columns[10:15]), mirrored[:, None]):
            second *= weights[0]
            third *= weights[1]
            first += second
            first += third
        reach = np.where(face >= 0, t, np.float32(1))
        # Width of a pixel on the surface: the geometric mean of both directions of its slanted footprint.
        slant = np.maximum(np.abs(np.take(facing, face, mode="clip")) / (reach * np.sqrt(square)), np.float32(0.06))
        level = columns[15] + np.float32(0.5) * np.log2(reach * reach / slant) - np.float32(np.log2(camera.fx))
        return np.concatenate([columns[:5], mirrored[:1], level[None]])

    def _shade_sky(self, rays: Float32) -> Float32:
        """(3, N) linear colour of rays (N, 6) that leave the room."""
        direction = rays[:, 3:]
        h, w = self._outside.shape[:2]
        turn = np.arctan2(direction[:, 1], direction[:, 0]) / (2 * np.pi) + 0.5
        rise = np.arctan2(direction[:, 2], np.hypot(direction[:, 0], direction[:, 1])) / np.pi
        x, y = (turn * w).astype(np.float32)[:, None], ((0.5 - rise) * h).astype(np.float32)[:, None]
        found = np.empty((len(x), 1, 3), np.uint8)
        for k in range(0, len(x), 30000):
            few = slice(k, k + 30000)
            found[few] = cv2.remap(self._outside, x[few], y[few], cv2.INTER_LINEAR, None, cv2.BORDER_REPLICATE)
        return linear_from_srgb(found[:, 0].T.astype(np.float32)) * np.float32(_OUTSIDE)

    def _develop(self, camera: Camera, color: Float32) -> ColorArray:
        """(H, W, 3) of linear colour (3, H or more, W or more): exposure, vignette, tone curve, 8 bits."""
        w, h = camera.size
        half = np.hypot(w, h) / 2
        x, y = ((np.arange(n) - n / 2) / half for n in (w, h))
        few = color[:, _METER_PX // 2 : h : _METER_PX, _METER_PX // 2 : w : _METER_PX]
        metered = np.tensordot(np.array(_LUMINANCE, np.float32) * self._gain, few, 1)
        usual = float(np.exp(np.log(np.maximum(metered, 1e-3)).mean()))
        gain = self._gain * np.float32(np.clip((_METERED / usual) ** _METERING, *_GAINS))
        shown = np.empty((h, w, 3), np.uint8)
        for rows in list_bands(camera):
            fall = (1 - _VIGNETTE * (x[None] ** 2 + y[rows, None] ** 2)).astype(np.float32)
            band = color[:, rows, :w] * fall
            band *= gain[:, None, None]
            shown[rows] = cv2.merge(list(self._apply_tone(band)))
        return shown

    def _apply_tone(self, color: Float32) -> ColorArray:
        """(3, ...) grey levels 0..255 of linear colour (3, ...)."""
        red, green, blue = (channel * np.float32(weight) for channel, weight in zip(color, _LUMINANCE, strict=True))
        # Cameras and eyes see bright colours paler.
        paler = color * np.float32(_SATURATION)
        paler += (red + green + blue) * np.float32(1 - _SATURATION)
        index = np.sqrt(np.clip(paler, 0, 15.99, out=paler), out=paler)
        index *= np.float32(4095 / 4)
        return np.asarray(np.take(self._tone, index.astype(np.uint16), mode="clip"))


def _refine_instance(mesh: Mesh, light: Float32, rows: IntArray, edge_m: float) -> Mesh:
    """Some faces of a mesh with edges of at most `edge_m`; `normals` has the light in its last three columns."""
    used, faces = np.unique(mesh.faces[rows], return_inverse=True)
    part = Mesh(
        mesh.vertices_m[used],
        np.concatenate([mesh.normals[used], light[used]], axis=1),
        mesh.uv[used],
        mesh.instance[used],
        mesh.texture[used],
        np.full(len(used), edge_m),
        np.asarray(faces).reshape(-1, 3),
        [],
    )
    return refine_mesh(part, rounds=12)


def _make_tone_curve() -> ColorArray:
    """(4096,) sRGB of linear values (i / 4095)^2 * 16: firm shadows, 0.18 at 0.16, highlights that roll off to 250."""
    x = 1.62 * ((np.arange(4096) / 4095) ** 2 * 16) ** 1.25
    # E. Reinhard and others, SIGGRAPH 2002, equation 4: the brightest value there is becomes the whitest.
    y = x * (1 + x / x[-1] ** 2) / (1 + x)
    return np.asarray(np.floor(_WHITEST * y ** (1 / 2.2) + 0.5), np.uint8)


def _square_directions(camera: Camera) -> Float32:
    """(H, W) the squared lengths of the directions of pixels, whose z is 1."""
    x, y = (np.arange(camera.width) - camera.cx) / camera.fx, (np.arange(camera.height) - camera.cy) / camera.fy
    return ((x**2 + 1)[None] + (y**2)[:, None]).astype(np.float32)


def _keep_hits(depth_m: Float32, face: Int32) -> DepthArray:
    """(H, W) depth in meters, 0 where nothing was met."""
    return np.where(face >= 0, depth_m, np.float32(0))
