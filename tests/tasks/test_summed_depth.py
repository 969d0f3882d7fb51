"""Statistics of rectangles from sums, against numpy on the pixels themselves and planes worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from vgbench_gen.core.types import Camera, FloatArray, IntArray
from vgbench_gen.tasks._summed_depth import SummedDepth

CAMERA = Camera(np.array([[210.0, 0, 118.0], [0, 205.0, 92.5], [0, 0, 1]]), 240, 180)
WIDE = Camera(np.array([[840.0, 0, 473.5], [0, 820.0, 371.5], [0, 0, 1]]), 960, 720)


def plane_depth(camera: Camera, normal: FloatArray, distance_m: float) -> FloatArray:
    """(h, w) depth of the plane normal . X = distance."""
    v, u = np.mgrid[: camera.height, : camera.width]
    rays = np.stack([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones(u.shape)], axis=-1)
    return np.asarray(distance_m / (rays @ normal))


def some_rects(camera: Camera, rng: np.random.Generator, count: int = 60) -> IntArray:
    size = rng.integers(camera.width // 16, camera.width // 6, (count, 2))
    low = np.floor(rng.random((count, 2)) * (np.array(camera.size) - size)).astype(int)
    return np.concatenate([low, low + size], axis=1)


@pytest.mark.parametrize("camera", [CAMERA, WIDE])
def test_a_plane_fits_itself_wherever_it_is(camera: Camera) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        normal = np.array([*rng.uniform(-0.8, 0.8, 2), 1.0])
        depth = plane_depth(camera, normal / np.linalg.norm(normal), 2.0)
        depth[rng.random(depth.shape) < 0.08] = 0
        fits = SummedDepth(camera, depth.astype(np.float32)).fit_planes(some_rects(camera, rng))
        assert fits.residual_m.max() < 1e-4 * 4
        assert fits.spread_deg.max() < 0.5


def test_the_fit_is_that_of_least_squares() -> None:
    """Against `numpy.linalg.lstsq` on the pixels, and the angle between the planes through the points themselves."""
    rng = np.random.default_rng(1)
    depth = plane_depth(CAMERA, np.array([0.3, -0.5, 0.8]), 1.5) + 0.02 * rng.standard_normal((180, 240))
    depth[:, 90:] += 0.3
    rects, stored = some_rects(CAMERA, rng), depth.astype(np.float32)
    fits = SummedDepth(CAMERA, stored).fit_planes(rects)

    def fit(rect: list[int]) -> tuple[FloatArray, float, float]:
        x1, y1, x2, y2 = rect
        v, u = np.mgrid[y1:y2, x1:x2]
        A = np.stack(
            [(u.ravel() - CAMERA.cx) / CAMERA.fx, (v.ravel() - CAMERA.cy) / CAMERA.fy, np.ones(u.size)], axis=1
        )
        inverse = 1 / stored[y1:y2, x1:x2].ravel().astype(np.float64)
        normal, *_ = np.linalg.lstsq(A, inverse, rcond=None)
        return normal / np.linalg.norm(normal), float((A @ normal - inverse).std()), float(1 / inverse.mean())

    for k, (x1, y1, x2, y2) in enumerate(rects.tolist()):
        normal, off, at_m = fit([x1, y1, x2, y2])
        x, y = (x1 + x2) // 2, (y1 + y2) // 2
        cosines = [fit(q)[0] @ normal for q in ([x1, y1, x, y], [x, y1, x2, y], [x1, y, x, y2], [x, y, x2, y2])]
        assert fits.residual_m[k] == pytest.approx(off * at_m**2, rel=1e-4)
        assert fits.depth_m[k] == pytest.approx(at_m, rel=1e-6)
        assert fits.spread_deg[k] == pytest.approx(np.degrees(np.arccos(np.clip(min(cosines), 0, 1))), abs=1e-3)


def test_folds_steps_and_balls_are_no_plane() -> None:
    rect = np.array([[80, 60, 120, 100]])
    v, u = np.mgrid[:180, :240]
    flat = plane_depth(CAMERA, np.array([0.0, 0.0, 1.0]), 2.0)
    corner = np.maximum(
        plane_depth(CAMERA, np.array([0.6, 0.0, 0.8]), 1.56), plane_depth(CAMERA, np.array([-0.8, 0.0, 0.6]), 1.3)
    )
    step = np.where(u < 100, flat, flat + 0.05)
    ball = 2.0 - np.sqrt(np.maximum(0.3**2 - ((u - 100) ** 2 + (v - 80) ** 2) * (2.0 / 210) ** 2, 0))
    measured = {
        name: SummedDepth(CAMERA, depth.astype(np.float32)).fit_planes(rect)
        for name, depth in {"flat": flat, "corner": corner, "step": step, "ball": ball}.items()
    }
    assert measured["flat"].residual_m < 1e-6
    assert measured["flat"].spread_deg < 0.1
    # The sides of the corner stand 90 degrees apart, and either is 30 to 60 off the plane between them.
    assert 25 < measured["corner"].spread_deg[0] < 65
    assert measured["step"].residual_m[0] == pytest.approx(0.05 / 4, rel=0.05)
    assert measured["ball"].spread_deg > 20


def test_unknown_depth_is_left_out_and_where_all_is_unknown_nothing_is_flat() -> None:
    depth = plane_depth(CAMERA, np.array([0.0, 0.3, 0.95]), 1.5)
    depth[60:80, 80:100] = 0
    sums = SummedDepth(CAMERA, depth.astype(np.float32))
    rects = np.array([[80, 60, 120, 100], [80, 60, 100, 80]])
    known, mean, _ = sums.measure_means(rects)
    assert known.tolist() == [0.75, 0.0]
    assert mean[0] == pytest.approx(depth[60:100, 80:120][depth[60:100, 80:120] > 0].mean(), rel=1e-5)
    assert sums.fit_planes(rects).spread_deg.tolist() == [90.0, 90.0]
