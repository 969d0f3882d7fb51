"""What polished surfaces mirror: the room around, blurred, more of it the flatter the look.

The room is seen once from its middle, without textures, and kept as a panorama. A mirrored ray is followed to the box
of the room, and what stands there in the panorama is what it meets (box-projected probe: S. Lagarde and A. Zanuttini,
SIGGRAPH 2012 talks). It is computed at the vertices for every view, as highlights move with the eye.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import FloatArray
from vgbench_gen.samples.light import Tracer
from vgbench_gen.samples.mesh import Mesh

Float32 = npt.NDArray[np.float32]

_ROWS, _COLUMNS = 64, 128
_BLUR_PX = (5.0, 1.5)  # of the panorama, for dull and for polished things; a pixel is 2.8 degrees
_POLISHED = 0.6  # from this gloss on
_FACING = 0.07  # share of the light that gloss 1 mirrors when looked at straight
_GRAZING = 0.7  # how much of Fresnel's rise towards grazing looks is left, times the gloss: rough things keep less
_SHADE = 0.75  # of the usual light: where less arrives, things stand in the way of the mirrored ray too


def list_probe_rays(tracer: Tracer, mesh: Mesh) -> Float32:
    """(rows * columns, 6) the rays of the panorama, from the place near the middle with the most room around."""
    low, high = mesh.vertices_m.min(axis=0), mesh.vertices_m.max(axis=0)
    share = np.stack(np.meshgrid([0.35, 0.5, 0.65], [0.35, 0.5, 0.65], [0.45, 0.6]), axis=-1).reshape(-1, 3)
    places = low + share * (high - low)
    center = places[int(tracer.distance_m(places).argmax())]
    rise = np.pi * (0.5 - (np.arange(_ROWS) + 0.5) / _ROWS)[:, None]
    turn = 2 * np.pi * ((np.arange(_COLUMNS) + 0.5) / _COLUMNS - 0.5)[None]
    rays = np.empty((_ROWS, _COLUMNS, 6), np.float32)
    rays[..., :3] = center
    rays[..., 3], rays[..., 4] = np.cos(rise) * np.cos(turn), np.cos(rise) * np.sin(turn)
    rays[..., 5] = np.sin(rise)
    return rays.reshape(-1, 6)


class Gloss:
    """The mirrored light of a room's mesh."""

    def __init__(self, mesh: Mesh, light: Float32, gloss: FloatArray, rays: Float32, t: Float32, seen: Float32) -> None:
        """light: (N, 3) irradiance at the vertices. gloss: (T,) of the textures. rays (P, 6) of `list_probe_rays`, how
        far they go in multiples of their direction (P,) and the brightness that they meet (P,)."""
        self._count, self._faces = len(mesh.vertices_m), mesh.faces
        of_vertex = gloss[mesh.texture]
        self._rows = np.flatnonzero(of_vertex > 0)
        self._gloss: Float32 = of_vertex[self._rows].astype(np.float32)
        self._points: Float32 = mesh.vertices_m[self._rows].astype(np.float32)
        normal = mesh.normals[self._rows, :3]
        normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
        self._normal: Float32 = normal.astype(np.float32)
        brightness = light.mean(axis=1)
        usual = max(float(np.median(brightness)), 1e-6)
        self._open: Float32 = np.clip(brightness[self._rows] / (_SHADE * usual), 0, 1).astype(np.float32)
        self._center: Float32 = rays[0, :3]
        ends = rays[:, :3] + rays[:, 3:] * np.where(np.isfinite(t), t, 0)[:, None]
        # Rays that leave through a window end at the middle and do not count.
        self._low, self._high = np.percentile(ends, [2, 98], axis=0).astype(np.float32)
        panorama = np.concatenate([seen.reshape(_ROWS, _COLUMNS)] * 3, axis=1)  # the turn has no ends
        middle = slice(_COLUMNS - 1, 2 * _COLUMNS + 1)
        blurred = [cv2.GaussianBlur(panorama, (0, 0), px, borderType=cv2.BORDER_REPLICATE) for px in _BLUR_PX]
        self._panorama: Float32 = np.concatenate([each[:, middle] for each in blurred]).astype(np.float32)

    def compute(self, eye_m: FloatArray) -> Float32:
        """(M, 3) of every triangle, the brightness that it mirrors towards an eye (3,) at its first corner, and the
        steps to the other two."""
        way = self._points - eye_m.astype(np.float32)
        facing = -np.einsum("ni,ni->n", way, self._normal)
        some = np.flatnonzero(facing > 0)
        points, normal, way, facing = (values[some] for values in (self._points, self._normal, way, facing))
        gloss, rows = self._gloss[some], self._rows[some]
        length = np.maximum(np.sqrt(np.einsum("ni,ni->n", way, way)), np.float32(1e-6))
        facing /= length
        away = way / length[:, None] + 2 * facing[:, None] * normal
        bound = np.where(away > 0, self._high, self._low) - points
        step = np.abs(bound / np.where(np.abs(away) < 1e-6, np.float32(1e-6), away)).min(axis=1)
        x, y, z = (points + step[:, None] * away - self._center).T
        turn = np.arctan2(y, x) * np.float32(_COLUMNS / (2 * np.pi)) + np.float32(_COLUMNS / 2 + 0.5)
        rise = np.arctan2(z, np.hypot(x, y)) * np.float32(-_ROWS / np.pi) + np.float32(_ROWS / 2 - 0.5)
        rise = np.clip(rise, 0, _ROWS - 1) + np.where(gloss >= _POLISHED, np.float32(_ROWS), np.float32(0))
        straight = np.float32(_FACING) * gloss
        grazing = np.minimum(np.float32(_GRAZING) * gloss, 1)
        beside = 1 - np.minimum(facing, 1)
        mirrored = straight + (1 - straight) * grazing * beside * (beside * beside) ** 2
        met = self._look_up(turn, rise)
        met *= mirrored * self._open[some]
        all_vertices = np.zeros(self._count, np.float32)
        all_vertices[rows] = met
        corners = all_vertices[self._faces]
        corners[:, 1:] -= corners[:, :1]
        return corners

    def _look_up(self, x: Float32, y: Float32) -> Float32:
        """(K,) the panorama at columns and rows (K,) each, bilinear."""
        # remap wants fewer than 32,768 rows, and at least one.
        rows = max(-(-len(x) // 1024), 1)
        folded = np.zeros((2, rows * 1024), np.float32)
        folded[0, : len(x)], folded[1, : len(x)] = x, y
        columns, lines = folded.reshape(2, rows, 1024)
        found = cv2.remap(self._panorama, columns, lines, cv2.INTER_LINEAR, None, cv2.BORDER_REPLICATE)
        return np.asarray(found.ravel()[: len(x)], np.float32)
