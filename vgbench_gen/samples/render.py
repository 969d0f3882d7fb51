"""A lit room that can be looked at: ray casting, filtered textures, light from the vertices, a plain camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.rng import digest_bytes, rng_for
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray, IntArray
from vgbench_gen.samples.atlas import Atlas, linear_from_srgb
from vgbench_gen.samples.base import RenderedView, SampleObject, WorldSurface
from vgbench_gen.samples.light import Tracer
from vgbench_gen.samples.mesh import Mesh, refine_mesh

Float32 = npt.NDArray[np.float32]

_SUBSAMPLES = ((0.125, 0.375), (-0.375, 0.125), (0.375, -0.125), (-0.125, -0.375))  # rotated grid, pixels
_EDGE_RELATIVE = 0.03  # depth steps of this share of the depth get more rays
_SATURATION = 0.82
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # of linear sRGB
_NOISE = 0.9  # standard deviation of the sensor's noise, grey levels in the middle of the scale
_BAND_PX = 49_152
_OUTSIDE = 3.0  # brightness of the world outside over a white wall in daylight
_VIGNETTE = 0.16  # loss in the corners


class RoomWorld:
    """See `samples.base.World`."""

    def __init__(
        self,
        mesh: Mesh,
        light: Float32,
        atlas: Atlas,
        objects: Sequence[SampleObject],
        outside: ColorArray,
        seed: int,
        key: str,
        exposure: float,
        tint: FloatArray,
    ) -> None:
        """light: (N, 3) irradiance at the vertices. outside: panorama for rays that leave. exposure, tint (3,):
        what linear colours are multiplied by. seed, key: name the noise."""
        # The atlas has the pictures; what else `surface` needs of the textures is their size.
        self._per_metre = np.array([max(t.image.shape[1] / max(t.size_m[0], 1e-6), 1) for t in mesh.textures])
        glow = np.array([item.glow for item in mesh.textures])
        mesh = replace(mesh, textures=[])
        self._mesh, self._light, self._atlas = mesh, light, atlas
        self._objects = tuple(sorted(objects, key=lambda item: item.instance_id))
        self._outside = outside
        self._seed, self._key = seed, key
        self._gain = (exposure * tint).astype(np.float32)
        self.tracer = Tracer(mesh.vertices_m, mesh.faces)
        """Casts rays over the mesh."""
        self._face_instance = mesh.face_instance.astype(np.int32)
        corners = mesh.vertices_m[mesh.faces]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        area = np.linalg.norm(normal, axis=1)
        self._face_normal = (normal / np.maximum(area, 1e-20)[:, None]).astype(np.float32)
        texture = mesh.face_texture
        texels = mesh.uv[mesh.faces] * atlas.size_px[texture][:, None]
        a, b = texels[:, 1] - texels[:, 0], texels[:, 2] - texels[:, 0]
        texel_area = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
        # [u v r g b] at the first corner and their steps to the other two; then log2 of texels per metre.
        values = np.concatenate([mesh.uv, light], axis=1).astype(np.float32)[mesh.faces]
        density = 0.5 * np.log2(np.maximum(texel_area, 1e-9) / np.maximum(area, 1e-12))
        self._face_texture = texture.astype(np.int32)
        # Where a thing glows, its own light is added to what falls on it.
        values[..., 2:] += glow[texture][:, None, None]
        self._face_values = np.concatenate(
            [
                values[:, 0],
                values[:, 1] - values[:, 0],
                values[:, 2] - values[:, 0],
                density[:, None],
                self._face_normal,
            ],
            axis=1,
        ).astype(np.float32)
        # Thing and direction of each face in one number: where neighbours differ, there is an edge.
        side = np.rint(self._face_normal * 2.4).astype(np.int32) + 3
        self._face_key = ((self._face_instance * 7 + side[:, 0]) * 7 + side[:, 1]) * 7 + side[:, 2]
        self._tone = _make_tone_curve()

    @property
    def objects(self) -> tuple[SampleObject, ...]:
        """See `World`."""
        return self._objects

    def render_depth(self, camera: Camera, world_from_camera: FloatArray) -> tuple[DepthArray, np.ndarray, FloatArray]:
        """See `World`."""
        rays = make_pixel_rays(camera, world_from_camera)
        t, face, _ = self.tracer.cast(rays)
        hit = face >= 0
        return np.where(hit, t, 0).astype(np.float32), self._find_instances(face), self._measure_cosine(rays, face)

    def look(self, camera: Camera, world_from_camera: FloatArray) -> RenderedView:
        """See `World`."""
        shape = (camera.height, camera.width)
        t, face = np.empty(shape, np.float32), np.empty(shape, np.int64)
        color = np.empty((*shape, 3), np.float32)
        # In bands, so that what numpy works on stays in the processor's cache.
        step = max(1, _BAND_PX // camera.width)
        for low in range(0, camera.height, step):
            rows = slice(low, min(low + step, camera.height))
            rays = make_pixel_rays(camera, world_from_camera, rows)
            t[rows], face[rows], weights = self.tracer.cast(rays)
            shaded = self._shade(
                camera, rays.reshape(-1, 6), t[rows].ravel(), face[rows].ravel(), weights.reshape(-1, 2)
            )
            color[rows] = shaded.reshape(-1, camera.width, 3)
        v, u = np.nonzero(self._find_edges(t, face))
        for low in range(0, len(v), _BAND_PX):
            few = slice(low, low + _BAND_PX)
            mean: Float32 = np.zeros((len(v[few]), 3), np.float32)
            for du, dv in _SUBSAMPLES:
                more = _make_rays_at(camera, world_from_camera, u[few] + du, v[few] + dv)
                mean += np.minimum(self._shade(camera, more, *self.tracer.cast(more)), 6)
            color[v[few], u[few]] = mean / len(_SUBSAMPLES)
        depth = np.where(face >= 0, t, 0).astype(np.float32)
        return RenderedView(self._develop(camera, world_from_camera, color), depth, self._find_instances(face))

    def make_surface(self, edge_m: float = 0.05) -> WorldSurface:
        """See `World`."""
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
            color = self._atlas.sample(fine.texture.astype(np.int32), fine.uv.astype(np.float32), level)
            shown = self._apply_tone(color * fine.normals[:, 3:].astype(np.float32) * self._gain)
            pieces.append((fine.vertices_m, fine.faces + start, shown, np.full(len(fine.faces), item.instance_id)))
            start += len(fine.vertices_m)
        vertices, faces, colors, instance = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return WorldSurface(vertices, faces, colors, instance.astype(np.int64))

    def clearance_m(self, points: FloatArray) -> FloatArray:
        """(N,) distance of points (N, 3) from the nearest surface."""
        return self.tracer.distance_m(points)

    def _find_instances(self, face: IntArray) -> np.ndarray:
        return np.where(face >= 0, self._face_instance[face], 0).astype(np.int32)

    def _measure_cosine(self, rays: Float32, face: IntArray) -> FloatArray:
        direction = rays[..., 3:]
        length = np.sqrt(np.einsum("hwi,hwi->hw", direction, direction))
        cosine = np.abs(np.einsum("hwi,hwi->hw", self._face_normal[face], direction)) / length
        return np.where(face >= 0, cosine, 0).astype(np.float64)

    def _find_edges(self, t: Float32, face: IntArray) -> BoolArray:
        """(H, W) pixels next to another thing, a step in depth or a fold."""
        key = np.where(face >= 0, self._face_key[face], -1)
        near = np.where(face >= 0, t, np.float32(1e6))
        edge = np.zeros(t.shape, dtype=bool)
        for first, second in (
            ((slice(None, -1), slice(None)), (slice(1, None), slice(None))),
            ((slice(None), slice(None, -1)), (slice(None), slice(1, None))),
        ):
            step = key[first] != key[second]
            step |= np.abs(near[first] - near[second]) > np.float32(_EDGE_RELATIVE) * near[first]
            edge[first] |= step
            edge[second] |= step
        return edge

    def _shade(self, camera: Camera, rays: Float32, t: Float32, face: IntArray, weights: Float32) -> Float32:
        """(N, 3) linear colour of rays (N, 6) and what they hit."""
        values = np.take(self._face_values, face, axis=0, mode="clip")
        mixed = values[:, :5] + weights[:, :1] * values[:, 5:10]
        mixed += weights[:, 1:] * values[:, 10:15]
        direction = rays[:, 3:]
        facing = np.einsum("ni,ni->n", values[:, 16:19], direction)
        square = np.einsum("ni,ni->n", direction, direction)
        # Width of a pixel on the surface: the geometric mean of both directions of its slanted footprint.
        slant = np.maximum(np.abs(facing) / np.sqrt(square), np.float32(0.06))
        reach = np.where(face >= 0, t, np.float32(1))
        level = values[:, 15] + np.float32(0.5) * np.log2(reach * reach / slant) - np.float32(np.log2(camera.fx))
        color = self._atlas.sample(np.take(self._face_texture, face, mode="clip"), mixed[:, :2], level)
        color *= mixed[:, 2:5]
        miss = np.flatnonzero(face < 0)
        if len(miss):
            color[miss] = self._shade_sky(direction[miss])
        return color

    def _shade_sky(self, direction: Float32) -> Float32:
        h, w = self._outside.shape[:2]
        turn = np.arctan2(direction[:, 1], direction[:, 0]) / (2 * np.pi) + 0.5
        rise = np.arctan2(direction[:, 2], np.hypot(direction[:, 0], direction[:, 1])) / np.pi
        x, y = (turn * w).astype(np.float32)[:, None], ((0.5 - rise) * h).astype(np.float32)[:, None]
        chunks = [
            cv2.remap(self._outside, x[k : k + 30000], y[k : k + 30000], cv2.INTER_LINEAR, None, cv2.BORDER_REPLICATE)
            for k in range(0, len(x), 30000)
        ]
        return linear_from_srgb(np.concatenate(chunks).reshape(-1, 3).astype(np.float32)) * np.float32(_OUTSIDE)

    def _develop(self, camera: Camera, world_from_camera: FloatArray, color: Float32) -> ColorArray:
        """Vignette, tone curve, noise, 8 bits."""
        h, w = color.shape[:2]
        half = np.hypot(w, h) / 2
        x, y = ((np.arange(n) - n / 2) / half for n in (w, h))
        view = digest_bytes(
            np.ascontiguousarray(world_from_camera).tobytes() + camera.K.tobytes() + bytes(f"{w}x{h}", "ascii")
        )
        rng = rng_for(self._seed, "samples", "sensor noise", self._key, view)
        grain = rng.standard_normal((h, w), dtype=np.float32)
        # Pixels of real images are not independent: demosaicing and denoising spread the grain.
        grain = cv2.GaussianBlur(grain, (3, 3), 0.6) * np.float32(1.7 * _NOISE)
        shown = np.empty((h, w, 3), np.uint8)
        step = max(1, _BAND_PX // w)
        for low in range(0, h, step):
            rows = slice(low, min(low + step, h))
            fall = (1 - _VIGNETTE * (x[None] ** 2 + y[rows, None] ** 2)).astype(np.float32)
            band = self._apply_tone(color[rows] * fall[..., None] * self._gain).astype(np.float32)
            shown[rows] = np.clip(band + (grain[rows, :, None] + np.float32(0.5)), 0, 255)
        return shown

    def _apply_tone(self, color: Float32) -> ColorArray:
        red, green, blue = (color[..., k] * np.float32(weight) for k, weight in enumerate(_LUMINANCE))
        grey = (red + green + blue)[..., None]
        # Cameras and eyes see bright colours paler.
        paler = grey + np.float32(_SATURATION) * (color - grey)
        index = np.sqrt(np.clip(paler, 0, 15.99)) * np.float32(4095 / 4)
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
    """sRGB of linear values (i / 4095)^2 * 16: straight in the shadows, with a soft shoulder."""
    x = (np.arange(4096) / 4095) ** 2 * 16
    # Filmic curve of J. Hable (Uncharted 2, GDC 2010) in K. Narkowicz's ACES fit, scaled so that 0.18 stays 0.18.
    x = x * 0.62
    y = x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14)
    return np.clip(255 * np.clip(y, 0, 1) ** (1 / 2.2) + 0.5, 0, 255).astype(np.uint8)


def make_pixel_rays(camera: Camera, world_from_camera: FloatArray, rows: slice = slice(None)) -> Float32:
    """(H, W, 6) centre and direction of the pixels of some rows; the direction has z = 1 in the camera, so that its
    multiples are z-depth."""
    turn, center = world_from_camera[:3, :3], world_from_camera[:3, 3]
    x = (np.arange(camera.width) - camera.cx) / camera.fx
    y = (np.arange(camera.height)[rows] - camera.cy) / camera.fy
    rays = np.empty((len(y), camera.width, 6), np.float32)
    for k in range(3):
        rays[..., k] = center[k]
        rays[..., 3 + k] = (turn[k, 0] * x + turn[k, 2])[None] + (turn[k, 1] * y)[:, None]
    return rays


def _make_rays_at(
    camera: Camera, world_from_camera: FloatArray, u_px: npt.NDArray[Any], v_px: npt.NDArray[Any]
) -> Float32:
    """(N, 6) as `make_pixel_rays`, of pixels (N,) and (N,)."""
    turn, center = world_from_camera[:3, :3], world_from_camera[:3, 3]
    x, y = (u_px - camera.cx) / camera.fx, (v_px - camera.cy) / camera.fy
    rays = np.empty((len(x), 6), np.float32)
    for k in range(3):
        rays[:, k] = center[k]
        rays[:, 3 + k] = turn[k, 0] * x + turn[k, 1] * y + turn[k, 2]
    return rays
