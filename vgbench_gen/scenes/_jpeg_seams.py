"""Seams that a damaged JPEG leaves in its pixels, where its bytes decode without a complaint.

The brightness and colour of a block are kept as the difference to the block before. A decoder that falls in step again
behind a hole has lost that, so that all blocks from there on are off by one amount. Seen from above, the picture steps
at the upper border of one row's worth of blocks, which begins at some column of a row of blocks and ends before that
column in the next row of them. Nothing in a scene does that: edges of things run on beyond a row of blocks, or along
the whole of it.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

_LEAST_UNITS = 16  # of a row; the mean over fewer blocks is the texture's as often as not
_MARGIN = 1 / 16  # of a row: a step along all but so much of it may be an edge along all of it, as of a black bar
_MOST = 40.0  # of one step, so that no single edge makes a mean
_STEP = 25.0  # of 4,800 whole pictures, drawn on and warped ones among them, 16 is the most
_ROWS = np.array([-5, -2, 1, 4])  # about a border: its own step, and the steps of the picture above and below


def find_seam(pixels: npt.NDArray[np.uint8], unit_px: tuple[int, int]) -> tuple[int, int] | None:
    """Row and column (pixels) from which on the picture is off; None where there is no such place.

    Args:
        pixels: (H, W, C). unit_px: width and height of what the file codes at once (MCU), a block or four.
    """
    width, height = unit_px
    count = pixels.shape[1] // width
    borders = np.arange(height, pixels.shape[0] - int(_ROWS[-1]), height)
    if count < _LEAST_UNITS or len(borders) < 2:
        return None
    about = np.ascontiguousarray(pixels[(borders[:, None] + _ROWS).ravel(), : count * width])
    means = cv2.resize(about, (count, len(about)), interpolation=cv2.INTER_AREA)
    steps = np.diff(means.reshape(len(borders), len(_ROWS), count, -1).astype(np.float32), axis=1)
    step, beside = steps[:, 1], np.abs(steps[:, ::2]).max(axis=1)
    # What of a border's step no edge nearby explains.
    excess = np.sign(step) * np.clip(np.abs(step) - beside, 0, _MOST)
    sums = np.cumsum(excess, axis=1)
    least = max(int(count * _MARGIN), 2)
    at = np.arange(least, count - least)
    left = sums[:, at - 1] / at[:, None]
    right = (sums[:, -1:] - sums[:, at - 1]) / (count - at)[:, None]
    begin, end = right[:-1], left[1:]  # of a seam: the right of one border and the left of the next
    seam = np.where(begin * end > 0, np.minimum(np.abs(begin), np.abs(end)), 0)
    seam -= np.maximum(np.abs(left[:-1]), np.abs(right[1:]))
    row, column, _ = np.unravel_index(int(np.argmax(seam)), seam.shape)
    return (int(borders[row]), int(at[column]) * width) if seam[row, column, _] > _STEP else None
