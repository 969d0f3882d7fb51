"""What `vgbench show` draws for answers that move points from one image to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import boxes, homography, projection
from vgbench_gen.tasks import _poses
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.tasks.records import read_camera_record

_SHOWN = 8  # numbered points: enough to judge by eye, few enough to read
_CLEAR = 0.08  # of the image height: two labels so far below one another do not touch


def draw_moved_points(
    points_m: FloatArray, value: FloatArray, first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[list[Mark], list[Mark], FloatArray]:
    """Marks on the first and the second image: the same numbered points of the first camera's frame (N, 3), in the
    second image where the answer [R|t] (3, 4) puts them; and these points. Those that leave an image are left out."""
    camera_1, camera_2 = read_camera_record(first), read_camera_record(second)
    uv_1, _ = projection.project(camera_1, points_m)
    uv_2, _ = projection.project(camera_2, _poses.move_points(value, points_m))
    both = np.flatnonzero(projection.is_in_image(camera_1, uv_1) & projection.is_in_image(camera_2, uv_2))
    shown = both[np.unique(np.linspace(0, max(len(both) - 1, 0), _SHOWN).astype(int))] if len(both) else both
    return _number_points(uv_1[shown]), _number_points(uv_2[shown]), points_m[shown]


def draw_wireframe(corners_m: FloatArray, camera: Mapping[str, Any], label: str = "", right: bool = True) -> list[Mark]:
    """The edges of a box (8, 3) of the camera frame and a dot where its centre in space projects to, which bears the
    label inside the image; nothing where a corner is not in front of the camera."""
    with_centre_m, read = np.vstack([corners_m, corners_m.mean(axis=0)]), read_camera_record(camera)
    uv_px, z_m = projection.project(read, with_centre_m)
    if not (z_m > 0).all():
        return []
    edges = [Mark("line", (_pair(uv_px[a]), _pair(uv_px[b])), right=right) for a, b in boxes.EDGES]
    inside = bool(projection.is_in_image(read, uv_px[8:])[0])
    return [*edges, Mark("point", (_pair(uv_px[8]),), label if inside else "", right)]


def draw_span(uv_px: FloatArray, camera: Mapping[str, Any], label: str) -> Mark:
    """A line between two points (2, 2) that bear labels themselves, and its own label clear of theirs: in the middle
    of the line, or at the end of a stroke from there where both points are at about the same height."""
    middle, height = uv_px.mean(axis=0), float(camera["height"])
    clear, (upper, lower) = _CLEAR * height, np.sort(uv_px[:, 1])
    at = middle
    if lower - upper < 2 * clear:
        at = np.array([middle[0], lower + clear if lower + clear < height else upper - clear])
    return Mark("line", (_pair(at), _pair(middle), _pair(uv_px[0]), _pair(uv_px[1])), label)


def draw_warped_grid(H: FloatArray, size: tuple[int, int]) -> tuple[list[Mark], list[Mark]]:
    """Marks on a source of `size` pixels and on its warp by H: the same numbered grid points."""
    width, height = size
    u, v = np.meshgrid(np.linspace(0.15, 0.85, 4) * width, np.linspace(0.15, 0.85, 3) * height)
    source = np.stack([u.ravel(), v.ravel()], axis=-1)
    target = homography.apply(H, source)
    inside = ((target >= 0) & (target < size)).all(axis=-1)
    return _number_points(source[inside]), _number_points(target[inside])


def _number_points(uv_px: FloatArray) -> list[Mark]:
    return [Mark("point", (_pair(uv),), str(n + 1)) for n, uv in enumerate(uv_px)]


def _pair(uv_px: FloatArray) -> tuple[float, float]:
    return float(uv_px[0]), float(uv_px[1])
