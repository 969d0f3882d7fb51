"""Pictures worked on in bands of rows, and tables by column: numpy is quick on long runs of near memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import Camera

BAND_PX = 49_152
"""Pixels that are worked on at a time, so that what is needed for them stays in the processor's cache."""


def list_bands(camera: Camera) -> Iterator[slice]:
    """The rows of a camera's picture in bands of about `BAND_PX` pixels."""
    step = max(1, BAND_PX // camera.width)
    for low in range(0, camera.height, step):
        yield slice(low, min(low + step, camera.height))


def take_columns(table: npt.NDArray[np.float32], rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """(C, ...) the rows (...,) of a table (M, C) by column; places outside of it give its first or last row."""
    taken = np.take(table, rows.ravel(), axis=0, mode="clip")
    return np.asarray(cv2.transpose(taken), np.float32).reshape(-1, *rows.shape)
