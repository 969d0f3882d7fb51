from __future__ import annotations

import numpy as np
import pytest

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Camera
from vgbench_gen.samples.sensors import (
    enlarge_depth,
    make_smooth_noise,
    simulate_laser,
    simulate_lidar,
    simulate_structured_light,
    smear_motion,
)

CAMERA = Camera(np.array([[577.0, 0, 319.5], [0, 578.0, 239.5], [0, 0, 1]]), 640, 480)


def flat(z_m: float, shape: tuple[int, int] = (480, 640)) -> tuple[np.ndarray, np.ndarray]:
    return np.full(shape, z_m, np.float32), np.ones(shape)


@pytest.mark.parametrize("z_m", [1.0, 2.0, 4.0])
def test_the_error_of_structured_light_grows_with_the_square_of_the_distance(z_m: float) -> None:
    read = simulate_structured_light(*flat(z_m), CAMERA, rng_for(0, "test"))
    assert np.std(read[read > 0] - z_m) == pytest.approx(1.6e-3 * z_m**2, rel=0.05)
    assert 0.95 < (read > 0).mean() < 1


def test_structured_light_sees_nothing_too_near_too_far_or_along_the_surface() -> None:
    for z_m in (0.3, 5.2):
        assert not simulate_structured_light(*flat(z_m), CAMERA, rng_for(0, "test")).any()
    depth, cosine = flat(2.0)
    cosine[:, :320] = 0.02
    read = simulate_structured_light(depth, cosine, CAMERA, rng_for(0, "test"))
    assert not read[:, :320].any()
    assert not simulate_structured_light(depth * 0, cosine, CAMERA, rng_for(0, "test")).any()


def test_the_shadow_of_structured_light_falls_on_one_side() -> None:
    depth, cosine = flat(3.0)
    depth[:, 250:400] = 1.0
    read = simulate_structured_light(depth, cosine, CAMERA, rng_for(0, "test"))
    # The projector stands 7.5 cm to the right: left of the thing f b (1 / 1 m - 1 / 3 m) = 29 px lie in its shadow.
    assert (read[:, 223:249] > 0).mean() < 0.01
    assert (read[:, 402:430] > 0).mean() > 0.95
    assert (read[:, 190:218] > 0).mean() > 0.95


@pytest.mark.parametrize(("distance_m", "error_m"), [(0.6, 0.0027), (2.0, 0.0055), (4.5, 0.0105)])
def test_the_error_of_lidar_grows_to_a_centimeter_across_a_room(distance_m: float, error_m: float) -> None:
    depth, cosine = flat(distance_m, (192, 256))
    read, _ = simulate_lidar(depth, cosine, rng_for(0, "test"))
    assert np.std(read - distance_m) == pytest.approx(error_m, rel=0.25)


def test_lidar_is_smooth_and_soft_at_edges() -> None:
    depth, cosine = flat(2.0, (192, 256))
    read, confidence = simulate_lidar(depth, cosine, rng_for(0, "test"))
    assert np.median(np.abs(np.diff(read, axis=1))) < 0.004  # little between neighbours
    assert (confidence == 1).mean() > 0.9
    depth[:, 128:] = 3.5
    read, confidence = simulate_lidar(depth, cosine, rng_for(0, "test"))
    assert ((read > 2.2) & (read < 3.3)).any(axis=1).all()
    assert (confidence[:, 127:129] < 1).all()
    assert not simulate_lidar(*flat(5.5, (192, 256)), rng_for(0, "test"))[0].any()
    large = enlarge_depth(read, (1024, 768))
    assert ((large > 2.2) & (large < 3.3)).sum(axis=1).min() >= 4


def test_enlarging_keeps_holes_out_of_depth() -> None:
    depth, _ = flat(2.0, (192, 256))
    depth[50:60, 70:80] = 0
    large = enlarge_depth(depth, (512, 384))
    assert set(np.unique(large).tolist()) == {0.0, 2.0}


def test_laser_is_clean_where_it_is_not_hidden() -> None:
    depth, _ = flat(2.0)
    hidden = np.zeros(depth.shape, bool)
    hidden[100:200] = True
    read = simulate_laser(depth, hidden, rng_for(0, "test"))
    assert not read[hidden].any()
    assert np.std(read[~hidden] - 2.0) < 2e-3


def test_smear_moves_edges_and_nothing_else() -> None:
    picture = np.full((480, 640, 3), 40, np.uint8)
    picture[:, ::32] = picture[::32] = 220
    blurred = smear_motion(picture, CAMERA, rng_for(0, "test"))
    assert blurred.mean() == pytest.approx(picture.mean(), rel=0.03)
    assert blurred.std() < 0.7 * picture.std()
    assert np.array_equal(
        smear_motion(np.full_like(picture, 90), CAMERA, rng_for(0, "test")), np.full_like(picture, 90)
    )
    assert make_smooth_noise(rng_for(0, "test"), (480, 640), 8.0).std() == pytest.approx(1.0, abs=0.1)
