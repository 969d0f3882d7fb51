from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray

K = np.array([[500.0, 0.0, 319.5], [0.0, 510.0, 239.5], [0.0, 0.0, 1.0]])


def with_entry(row: int, column: int, value: float) -> FloatArray:
    changed = K.copy()
    changed[row, column] = value
    return changed


def test_a_camera_names_its_numbers() -> None:
    camera = Camera(K, 640, 480)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (500.0, 510.0, 319.5, 239.5)
    assert camera.size == (640, 480)
    assert camera.diagonal_px == 800.0


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (K[:2], "K must be a finite 3x3 matrix, got shape (2, 3)"),
        (with_entry(0, 2, np.nan), "K must be a finite 3x3 matrix"),
        (with_entry(0, 0, np.inf), "K must be a finite 3x3 matrix"),
        (with_entry(0, 0, -500.0), "with fx, fy > 0"),
        (with_entry(1, 1, 0.0), "with fx, fy > 0"),
        (with_entry(0, 1, 0.5), "K must be [[fx,0,cx],[0,fy,cy],[0,0,1]]"),
        (with_entry(1, 0, 0.5), "K must be [[fx,0,cx],[0,fy,cy],[0,0,1]]"),
        (with_entry(2, 2, 2.0), "K must be [[fx,0,cx],[0,fy,cy],[0,0,1]]"),
        (K.T, "K must be [[fx,0,cx],[0,fy,cy],[0,0,1]]"),  # read column by column
    ],
)
def test_a_matrix_that_is_no_pinhole_is_refused(matrix: FloatArray, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Camera(matrix, 640, 480)


@pytest.mark.parametrize("size", [(0, 480), (640, 0), (-1, 480)])
def test_an_image_has_a_size(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=f"image size must be positive, got {size[0]}x{size[1]}"):
        Camera(K, *size)


def test_a_camera_cannot_be_changed() -> None:
    camera = Camera(K, 640, 480)
    with pytest.raises(dataclasses.FrozenInstanceError):
        camera.width = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        camera.K[0, 0] = 1.0


def test_integer_matrices_become_float64() -> None:
    assert Camera(K.astype(np.int64), 640, 480).K.dtype == np.float64


def test_a_camera_is_its_own_copy_of_the_callers_matrix() -> None:
    mine = K.copy()
    camera = Camera(mine, 640, 480)
    mine[0, 0] = 7.0
    assert camera.fx == 500.0


def test_frames_of_a_fact_come_once_in_order_of_first_use() -> None:
    value = np.zeros(1)
    candidates = (Candidate("a", value, ("3", "1")), Candidate("b", value, ("2",)), Candidate("c", value, ("3",)))
    fact = Fact(
        task="t",
        task_version=1,
        ask="",
        dataset="scannet",
        scene_id="s",
        split="val",
        key="k",
        frame_ids=("1",),
        candidates=candidates,
        truth=1,
        second_value=value,
        margin=1.0,
        evidence={},
        licence="x",
    )
    assert fact.shown_frame_ids == ("1", "3", "2")
    assert fact.truth_candidate is candidates[1]
