"""Homographies against OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.geometry import homography

W, H = 640, 480
SEEDS = st.integers(0, 2**32 - 1)
Array = npt.NDArray[np.float64]


def corner_error_px(M: npt.ArrayLike, N: npt.ArrayLike, width: int = W, height: int = H) -> float:
    """Mean distance of an image's corners under two homographies; `inf` where one sends a corner beyond infinity."""
    corners = homography.image_corners(width, height)
    error = np.linalg.norm(homography.apply(M, corners) - homography.apply(N, corners), axis=-1).mean()
    return float(error) if np.isfinite(error) else np.inf


def random_homography(rng: np.random.Generator) -> Array:
    """A homography of the sampler's kind."""
    angle, scale, stretch, shear = rng.uniform([-40, 0.7, 0.7, -0.3], [40, 1.4, 1.4, 0.3])
    tx, ty, px, py = *rng.uniform(-80, 80, 2), *rng.uniform(-0.2, 0.2, 2)
    return homography.make_about_centre(W, H, angle, scale, tx, ty, stretch, shear, px, py)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_fitting_and_applying_agree_with_opencv(seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = random_homography(rng)
    uv = rng.uniform((0, 0), (W, H), (30, 2))
    mapped = cv2.perspectiveTransform(uv[None], M)[0]
    np.testing.assert_allclose(homography.apply(M, uv), mapped, atol=1e-6)
    np.testing.assert_allclose(homography.apply(-3.0 * M, uv.reshape(5, 6, 2)), mapped.reshape(5, 6, 2), atol=1e-6)
    np.testing.assert_allclose(homography.fit_to_points(uv, mapped), M, rtol=1e-6, atol=1e-8)
    corners = homography.image_corners(W, H)
    four = homography.apply(M, corners)
    exact = cv2.getPerspectiveTransform(corners.astype(np.float32), four.astype(np.float32))
    assert corner_error_px(homography.fit_to_points(corners, four), exact) < 1e-3
    noisy = mapped + rng.normal(0, 0.5, mapped.shape)
    fitted, _ = cv2.findHomography(uv, noisy, 0)
    assert corner_error_px(homography.fit_to_points(uv, noisy), fitted) < 1.0
    back = homography.apply(np.linalg.inv(M), mapped)
    np.testing.assert_allclose(back, uv, atol=1e-6)


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_kept_fraction_by_counting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = random_homography(rng)
    grid = np.stack(np.meshgrid(np.arange(W), np.arange(H)), axis=-1).astype(np.float64).reshape(1, -1, 2)
    mapped = cv2.perspectiveTransform(grid, M)[0]
    inside = ((mapped >= -0.5) & (mapped < (W - 0.5, H - 0.5))).all(axis=1).mean()
    assert homography.source_kept_fraction(M, W, H) == pytest.approx(inside, abs=0.01)


def test_kept_fraction_of_known_shifts() -> None:
    def shift(x: float, y: float) -> Array:
        return np.array([[1.0, 0, x], [0, 1, y], [0, 0, 1]])

    assert homography.source_kept_fraction(np.eye(3), W, H) == 1.0
    assert homography.source_kept_fraction(np.eye(3), 64, 64) == 1.0  # samples on the outermost pixel centres
    assert homography.source_kept_fraction(shift(W / 2, 0), W, H) == 0.5
    assert homography.source_kept_fraction(shift(0, -H / 4), W, H) == 0.75
    assert homography.source_kept_fraction(shift(W, 0), W, H) == 0.0


@given(st.floats(-180, 180), st.floats(0.3, 3), st.floats(-90, 90), st.floats(-90, 90))
@settings(max_examples=30, deadline=None)
def test_similarity_agrees_with_opencv(angle: float, scale: float, tx: float, ty: float) -> None:
    affine = cv2.getRotationMatrix2D(((W - 1) / 2, (H - 1) / 2), -angle, scale)  # OpenCV turns the other way
    affine[:, 2] += np.array([tx, ty])
    built = homography.make_about_centre(W, H, angle, scale, tx, ty)
    np.testing.assert_allclose(built, np.vstack([affine, [0, 0, 1]]), atol=1e-9)


def test_builder_at_rest_and_clockwise() -> None:
    np.testing.assert_array_equal(homography.make_about_centre(W, H), np.eye(3))
    turned = homography.apply(homography.make_about_centre(W, H, angle_deg=90), [(W - 1) / 2 + 10, (H - 1) / 2])
    np.testing.assert_allclose(turned, [(W - 1) / 2, (H - 1) / 2 + 10], atol=1e-9)


def test_stretch_and_shear_of_a_square() -> None:
    centre = np.array([(W - 1) / 2, (H - 1) / 2])
    square = centre + [[-10.0, -10], [10, -10], [10, 10], [-10, 10]]
    wide = homography.apply(homography.make_about_centre(W, H, stretch=4.0), square) - centre
    np.testing.assert_allclose(
        wide, [[-20, -5], [20, -5], [20, 5], [-20, 5]], atol=1e-9
    )  # as large, four times as wide
    slanted = homography.apply(homography.make_about_centre(W, H, shear=0.5), square) - centre
    np.testing.assert_allclose(slanted, [[-15, -10], [5, -10], [15, 10], [-5, 10]], atol=1e-9)
    # Rotation comes after: the slanted square turns as a whole.
    both = homography.apply(homography.make_about_centre(W, H, angle_deg=90, shear=0.5), square) - centre
    np.testing.assert_allclose(both, np.stack([-slanted[:, 1], slanted[:, 0]], axis=-1), atol=1e-9)


def test_many_at_once_are_one_by_one() -> None:
    rng = np.random.default_rng(3)
    low, high = [-40, 0.7, -80, -80, 0.7, -0.3, -0.2, -0.2], [40, 1.4, 80, 80, 1.4, 0.3, 0.2, 0.2]
    values = rng.uniform(low, high, (5, 4, 8))
    many = homography.make_about_centre(W, H, *np.moveaxis(values, -1, 0))
    single = [[homography.make_about_centre(W, H, *one) for one in row] for row in values]
    np.testing.assert_allclose(many, single, rtol=1e-12)
    assert homography.make_about_centre(W, H, values[:, :1, 0], values[:1, :, 1]).shape == (5, 4, 3, 3)
    with pytest.raises(GeometryError, match="scale and stretch above 0"):
        homography.make_about_centre(W, H, scale=[1.0, 0.0])
    with pytest.raises(GeometryError, match="infinity"):
        homography.make_about_centre(W, H, px=W / (W - 1))


def test_sources_of_the_corners_by_opencv() -> None:
    rng = np.random.default_rng(4)
    Hs = np.stack([random_homography(rng) for _ in range(20)])
    corners = homography.image_corners(W, H)
    for M, found in zip(Hs, homography.find_sources(Hs, W, H), strict=True):
        np.testing.assert_allclose(found, cv2.perspectiveTransform(corners[None], np.linalg.inv(M))[0], atol=1e-6)
    # The right border of the target shows what lies beyond the horizon.
    far = np.array([[1.0, 0, 0], [0, 1, 0], [1 / 600, 0, 1]])
    assert np.isnan(homography.find_sources(far, W, H)).any(axis=1).tolist() == [False, True, True, False]


def test_enlargement_is_that_of_the_longest_axis_of_a_small_circle() -> None:
    rng = np.random.default_rng(5)
    turns = np.linspace(0, 2 * np.pi, 720)
    for _ in range(20):
        M, uv = random_homography(rng), rng.uniform((0, 0), (W, H))
        circle = uv + 1e-3 * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
        radii = np.linalg.norm(homography.apply(M, circle) - homography.apply(M, uv), axis=1) / 1e-3
        assert homography.measure_enlargements(M, uv) == pytest.approx(radii.max(), rel=1e-3)
    assert homography.measure_enlargements(homography.make_about_centre(W, H, 30, 1.3), uv) == pytest.approx(1.3)


def test_perspective_keeps_the_centre_and_sets_the_denominator() -> None:
    M = homography.make_about_centre(W, H, px=0.2, py=-0.1)
    centre = np.array([(W - 1) / 2, (H - 1) / 2])
    np.testing.assert_allclose(homography.apply(M, centre), centre, atol=1e-9)
    w = homography.image_corners(W, H) @ M[2, :2] + 1
    at_centre = float(np.append(centre, 1) @ M[2])
    x, y = 0.2 * (W - 1) / W, -0.1 * (H - 1) / H
    np.testing.assert_allclose(w / at_centre, [1 - x - y, 1 + x - y, 1 + x + y, 1 - x + y])
    assert w[0] == 1.0


def test_pixels_beyond_the_horizon_go_nowhere() -> None:
    M = np.array([[1.0, 0, 0], [0, 1, 0], [-1 / 100, 0, 1]])  # infinite at u = 100
    mapped = homography.apply(M, [[0, 0], [50, 10], [100, 10], [150, 10]])
    np.testing.assert_allclose(mapped[:2], [[0, 0], [100, 20]])
    assert np.isnan(mapped[2:]).all()
    assert homography.corner_moves_px(M, W, H) == np.inf
    assert homography.source_kept_fraction(M, W, H) < 0.2


def test_normalised() -> None:
    M = random_homography(np.random.default_rng(0))
    np.testing.assert_allclose(homography.normalise_homography(-7 * M), M)
    cases = [
        (np.diag([1.0, 1, 0]), "^homography sends pixel .0, 0. to infinity, so it cannot be scaled to H33 = 1$"),
        (np.diag([1.0, 0, 1]), "^homography cannot be inverted$"),
        (np.full((3, 3), np.nan), r"^a homography is a finite 3x3 matrix, got \(3, 3\)$"),
        (np.eye(4), r"^a homography is a finite 3x3 matrix, got \(4, 4\)$"),
    ]
    for matrix, message in cases:
        with pytest.raises(GeometryError, match=message):
            homography.normalise_homography(matrix)


SQUARE: list[list[float]] = [[0.0, 0], [9, 0], [9, 9], [0, 9]]


@pytest.mark.parametrize(
    ("src", "message"),
    [
        (SQUARE[:3], r"^a homography needs two lists of at least 4 pixels, got \(3, 2\) and \(4, 2\)$"),
        ([[5.0, 5]] * 4, "^the pixels do not fix a homography: they all coincide$"),
        ([[0.0, 0], [1, 1], [2, 2], [9, 0]], "^the pixels do not fix a homography: too many of them lie on one line$"),
        ([[0.0, 0], [1, 1], [2, 2], [3, 3]], "^the pixels do not fix a homography: too many of them lie on one line$"),
    ],
)
def test_pixels_that_fix_no_homography(src: list[list[float]], message: str) -> None:
    with pytest.raises(GeometryError, match=message):
        homography.fit_to_points(src, src if len(src) == 4 and src[0] != src[1] else SQUARE)


def test_corner_moves_are_errors_against_the_identity() -> None:
    rng = np.random.default_rng(2)
    Hs = np.eye(3) + rng.normal(0, [[0.1], [0.1], [1e-3]], (40, 3, 3)) * [1, 1, 30]
    Hs /= Hs[:, 2:, 2:]
    Hs[0] = np.array([[1, 0, 0], [0, 1, 0], [-0.01, 0, 1]])  # sends the right corners beyond infinity
    expected = [corner_error_px(H, np.eye(3), 320, 200) for H in Hs]
    np.testing.assert_allclose(homography.corner_moves_px(Hs, 320, 200), expected, rtol=1e-12)
    assert np.isinf(expected[0])
    assert np.isfinite(expected[1:]).sum() > 20
