"""Writes WildRGB-D scenes as the format description says, from synthetic frames. Uses no loader code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.samples import encode

SIZE = (40, 30)
png = encode.encode_png

K = np.array([[38.0, 0.0, 20.25], [0.0, 39.0, 13.75], [0.0, 0.0, 1.0]])


def rgb(number: int, size: tuple[int, int] = SIZE) -> npt.NDArray[np.uint8]:
    """Known pixel: [5, 7] = (200, 100, number)."""
    pixels = np.random.default_rng(number).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    pixels[5, 7] = (200, 100, number)
    return pixels


def depth(number: int, size: tuple[int, int] = SIZE) -> npt.NDArray[np.uint16]:
    """Known pixels: [4, 6] = 1234 + number, [0, 0] unknown, [1, 1] beyond and [1, 2] at 5 m."""
    values = np.random.default_rng(number).integers(400, 3000, (size[1], size[0])).astype(np.uint16)
    values[4, 6], values[0, 0], values[1, 1], values[1, 2] = 1234 + number, 0, 5001, 5000
    return values


def mask(size: tuple[int, int] = SIZE) -> npt.NDArray[np.uint8]:
    """255 in a rectangle, 128 (not above the threshold) and 129 (above) at two pixels."""
    values = np.zeros((size[1], size[0]), np.uint8)
    values[10:20, 12:30] = 255
    values[0, 0], values[0, 1] = 128, 129
    return values


def pose(number: int) -> npt.NDArray[np.float64]:
    """Camera-to-world: a turn about an odd axis, and a shift."""
    T = np.eye(4)
    T[:3, :3] = cv2.Rodrigues(np.array([0.1, 0.3, -0.05]) * number)[0]
    T[:3, 3] = 0.1 * number, -0.05, 0.02 * number
    return T


def pose_line(number: int | str, T: npt.NDArray[np.float64]) -> str:
    return " ".join([str(number), *(f"{value:.9f}" for value in T.ravel())])


def write_scene(
    root: Path,
    category: str = "box",
    name: str = "scenes_000",
    count: int = 4,
    metadata: dict[str, Any] | None = None,
    size: tuple[int, int] = SIZE,
) -> Path:
    """One scene of `count` frames; returns its folder."""
    scene = root / category / "scenes" / name
    for kind in ("rgb", "depth", "masks"):
        (scene / kind).mkdir(parents=True)
    for number in range(count):
        (scene / "rgb" / f"{number:05d}.png").write_bytes(png(rgb(number, size)))
        (scene / "depth" / f"{number:05d}.png").write_bytes(png(depth(number, size)))
        (scene / "masks" / f"{number:05d}.png").write_bytes(png(mask(size)))
    stored = {"w": SIZE[0], "h": SIZE[1], "K": K.T.ravel().tolist(), "fps": 30} | (metadata or {})
    (scene / "metadata").write_text(json.dumps(stored))
    (scene / "cam_poses.txt").write_text("\n".join(pose_line(n, pose(n)) for n in range(count)) + "\n")
    return scene
