"""Where textures lie on solids."""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.samples.textures import Texture

_RIM = 1e-4  # stretched textures end just before 1, which would be the other side of one that tiles


def map_by_side(
    corners: FloatArray,
    face_normals: FloatArray,
    texture: Texture,
    along: int | None,
    region: tuple[float, float, float, float] | None,
    bounds: FloatArray,
) -> FloatArray:
    """(M, 3, 2) texture coordinates of triangles (M, 3, 3), by the sides to which their normals (M, 3) look.

    along: axis along which a tiling texture's u runs, where it lies in a side. region: part (u1, v1, u2, v2) of a
    stretched texture that is shown. bounds: (2, 3) over which stretched textures are stretched.
    """
    axis = np.abs(face_normals).argmax(axis=1)
    uv = np.zeros((*corners.shape[:2], 2))
    low, size = bounds[0], np.maximum(bounds[1] - bounds[0], 1e-9)
    for k in range(3):
        rows = axis == k
        a, b = ((1, 2), (0, 2), (0, 1))[k]
        flip = np.where(face_normals[rows, k] > 0, 1.0, -1.0)[:, None]
        if k == 1:
            flip = -flip
        across, up = corners[rows][..., a], corners[rows][..., b]
        if texture.tiles:
            swap = along is not None and along == b
            u, v = (up, across * flip) if swap else (across * flip, -up)
            uv[rows, :, 0], uv[rows, :, 1] = u / texture.size_m[0], v / texture.size_m[1]
        else:
            s = (across - low[a]) / size[a]
            s = np.where(flip > 0, s, 1 - s)
            t = 1 - (up - low[b]) / size[b]
            u1, v1, u2, v2 = region or (0.0, 0.0, 1.0, 1.0)
            uv[rows, :, 0], uv[rows, :, 1] = u1 + s * (u2 - u1), v1 + t * (v2 - v1)
    return uv if texture.tiles else np.clip(uv, _RIM, 1 - _RIM)


def map_round_axis(
    corners: FloatArray, face_normals: FloatArray, texture: Texture, axis_xy: tuple[float, float]
) -> FloatArray:
    """(M, 3, 2) texture coordinates of triangles (M, 3, 3) with normals (M, 3), wound round the upright axis through
    `axis_xy`."""
    offset = corners[..., :2] - np.array(axis_xy)
    angle = np.arctan2(offset[..., 1], offset[..., 0])
    angle = np.where((np.ptp(angle, axis=1) > np.pi)[:, None] & (angle < 0), angle + 2 * np.pi, angle)
    radius = np.linalg.norm(offset, axis=-1)
    reach = max(float(radius.max()), 1e-6)
    # At the axis the angle means nothing; the mean of the other corners keeps the texture from twisting.
    on_axis = radius < 1e-6
    off = np.maximum((~on_axis).sum(axis=1, keepdims=True), 1)
    mean = np.where(on_axis, 0, angle).sum(axis=1, keepdims=True) / off
    angle = np.where(on_axis, mean, angle)
    z = corners[..., 2]
    uv = np.zeros((*corners.shape[:2], 2))
    flat = np.abs(face_normals[:, 2]) > 0.75
    if texture.tiles:
        turns = max(1.0, round(2 * np.pi * reach / texture.size_m[0]))
        uv[..., 0], uv[..., 1] = angle / (2 * np.pi) * turns, -z / texture.size_m[1]
        uv[flat] = offset[flat] / np.array(texture.size_m)
    else:
        low, high = float(z.min()), float(z.max())
        uv[..., 0], uv[..., 1] = angle / (2 * np.pi) + 0.5, 1 - (z - low) / max(high - low, 1e-9)
        uv[flat] = 0.5 + 0.5 * offset[flat] / reach
        uv = np.clip(uv, _RIM, 1 - _RIM)
    return uv
