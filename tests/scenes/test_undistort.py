"""Undistortion against OpenCV's own, and by projecting points."""

from __future__ import annotations

import tracemalloc
from typing import Any

import cv2
import numpy as np
import pytest

from tests.scenes import scannetpp_writer as writer
from vgbench_gen.core.errors import SceneError
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.scenes._lens import Lens, Undistorter

PHONE = Lens("opencv", 320, 240, 300.0, 302.0, 161.5, 117.5, (*writer.PHONE_DISTORTION, 0.0, 0.0, 0.0, 0.0))
PINCUSHION = Lens("opencv", 320, 240, 300.0, 302.0, 161.5, 117.5, (0.15, -0.02, 0.002, -0.001, 0.0, 0.0, 0.0, 0.0))
FISHEYE = Lens("fisheye", 300, 200, 135.0, 135.5, 148.0, 101.0, writer.DSLR_DISTORTION)
LENSES = [PHONE, PINCUSHION, FISHEYE]


def opencv_map(lens: Lens, K_new: Any, size: tuple[int, int]) -> Any:
    """(H, W, 2) source pixel of each new pixel, by OpenCV."""
    make = cv2.fisheye.initUndistortRectifyMap if lens.kind == "fisheye" else cv2.initUndistortRectifyMap
    x, y = make(lens.K, np.array(lens.distortion), np.eye(3), K_new, size, cv2.CV_32FC1)
    return np.stack([x, y], -1)


@pytest.mark.parametrize("lens", LENSES)
def test_every_pixel_has_a_source_and_none_is_wasted(lens: Lens) -> None:
    camera = Undistorter(lens, "here").camera
    assert camera.size == (lens.width, lens.height)
    np.testing.assert_allclose([camera.cx, camera.cy], [lens.cx, lens.cy])
    assert camera.fx / camera.fy == pytest.approx(lens.fx / lens.fy)
    limit = [lens.width - 1, lens.height - 1]
    source = opencv_map(lens, camera.K, camera.size)
    assert (source >= -1e-3).all()
    assert (source <= np.array(limit) + 1e-3).all()
    wider = camera.K.copy()
    wider[[0, 1], [0, 1]] *= 0.995
    source = opencv_map(lens, wider, camera.size)
    assert not ((source >= 0) & (source <= limit)).all()


@pytest.mark.parametrize("lens", LENSES)
def test_colour_is_opencvs(lens: Lens) -> None:
    noise = np.random.default_rng(0).uniform(0, 255, (lens.height, lens.width, 3))
    smooth = np.asarray(cv2.GaussianBlur(noise, (9, 9), 3), np.float64)
    image = np.asarray((smooth - smooth.min()) * (255.0 / np.ptp(smooth)), np.uint8)
    undistorter = Undistorter(lens, "here")
    coefficients = np.array(lens.distortion)
    if lens.kind == "fisheye":
        expected = cv2.fisheye.undistortImage(image, lens.K, coefficients, Knew=undistorter.camera.K)
    else:
        expected = cv2.undistort(image, lens.K, coefficients, newCameraMatrix=undistorter.camera.K)
    gap = np.abs(undistorter.color(image).astype(int) - expected)[1:-1, 1:-1]
    assert gap.max() <= 2
    assert image.std() > 20


@pytest.mark.parametrize("lens", LENSES)
def test_points_appear_where_the_new_camera_projects_them(lens: Lens) -> None:
    undistorter = Undistorter(lens, "here")
    rng = np.random.default_rng(1)
    pixels = rng.integers([2, 2], [lens.width - 2, lens.height - 2], (200, 2))
    K = undistorter.camera.K
    points = np.concatenate([(pixels - K[:2, 2]) / K[[0, 1], [0, 1]], np.ones((200, 1))], 1) * rng.uniform(
        1, 4, (200, 1)
    )
    project = cv2.fisheye.projectPoints if lens.kind == "fisheye" else cv2.projectPoints
    seen = np.asarray(
        project(points.reshape(-1, 1, 3), np.zeros(3), np.zeros(3), lens.K, np.array(lens.distortion))[0]
    ).reshape(-1, 2)
    picture = undistorter.color(np.asarray(writer.ramp((lens.width, lens.height), 3), np.uint8))
    got = picture[pixels[:, 1], pixels[:, 0], :2]
    assert np.abs(got - 0.7 * seen).max() <= 1.0
    # Without the map the same pixels show something else, so the test can fail.
    assert np.abs(0.7 * pixels - 0.7 * seen).max() > 3


@pytest.mark.parametrize("lens", LENSES)
def test_coarse_maps_agree_with_the_fine_one(lens: Lens) -> None:
    undistorter = Undistorter(lens, "here")
    width, height = lens.width // 2, lens.height // 2
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    got = np.stack([undistorter.nearest(x), undistorter.nearest(y)], -1)
    camera, small = resize_camera(undistorter.camera, width, height), lens.resized(width, height)
    expected = opencv_map(small, camera.K, (width, height))
    assert np.abs(got - expected).max() <= 0.5 + 1e-3
    depth = np.arange(width * height, dtype=np.float32).reshape(height, width)
    assert np.isin(undistorter.nearest(depth), depth).all()


@pytest.mark.parametrize(
    ("focal", "cx", "k1", "k2"),
    [(100.0, 160.0, -0.9, 0.05), (300.0, 160.0, 0.0, -40.0), (300.0, 900.0, 0.1, 0.0), (100.0, 160.0, -0.1, 0.002)],
)
def test_lenses_that_cannot_be_flattened_are_refused(focal: float, cx: float, k1: float, k2: float) -> None:
    lens = Lens("opencv", 320, 240, focal, focal, cx, 120.0, (k1, k2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    with pytest.raises(SceneError, match="here: found opencv coefficients"):
        Undistorter(lens, "here")


def test_a_hidden_square_of_a_phone_stays_hidden_and_takes_little_memory() -> None:
    """Masks have the size of the picture: 2.8 million points, which took 2.1 GB where all went to OpenCV at once."""
    lens = PHONE.resized(1920, 1440)
    mask = np.full((1440, 1920), 255, np.uint8)
    mask[100:500, 1400:1800] = 0
    undistorter = Undistorter(lens, "here")
    tracemalloc.start()
    try:
        got = undistorter.nearest(mask)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    source = opencv_map(lens, undistorter.camera.K, camera_size := undistorter.camera.size)
    assert got.shape == camera_size[::-1]
    low, high = np.array([1400, 100]), np.array([1799, 499])
    gap = np.maximum(low - source, source - high).max(axis=-1)  # pixels outside of the square; negative within
    assert (got[gap < 0.4] == 0).all()
    assert (got[gap > 0.6] == 255).all()
    assert 100_000 < (got == 0).sum() < 250_000
