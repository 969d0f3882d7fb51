"""Motions, warps and boxes in words, read and put together by formulas of their own."""

from __future__ import annotations

import re

import cv2
import numpy as np

from vgbench_gen.core.types import FloatArray

_SIGNED = re.compile(
    r"(\d+\.\d+) (m|px|degrees) (right|left|down|up|forward|back|clockwise|counterclockwise|wide|deep|high)"
)
_OPPOSITE = {
    ("m", "left"), ("m", "up"), ("m", "back"), ("px", "left"), ("px", "up"),
    ("degrees", "left"), ("degrees", "down"), ("degrees", "counterclockwise"),
}  # fmt: skip


def read_signed(text: str) -> list[float]:
    """All numbers of a text that have a direction; those to the left, up in space, back, ... are negative."""
    return [-float(x) if (unit, way) in _OPPOSITE else float(x) for x, unit, way in _SIGNED.findall(text)]


def read_motion(text: str) -> FloatArray:
    """(3, 4) [R|t], X2 = R X1 + t, of the one motion in a text."""
    x, y, z, right, up, clockwise = read_signed(text)
    # Seen from the first camera (x right, y down, z forward): axis by axis, each about the axis as turned so far.
    turned = np.eye(3)
    for axis, degrees in (((0, 1, 0), right), ((1, 0, 0), up), ((0, 0, 1), clockwise)):
        turned = turned @ cv2.Rodrigues(np.radians(degrees) * np.array(axis, np.float64))[0]
    return np.column_stack([turned.T, -turned.T @ [x, y, z]])


def read_warp(text: str, width: int, height: int) -> FloatArray:
    """(3, 3) H, x2 ~ H x1, of the one warp in a text, of an image of that size."""
    corners = np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], np.float32)
    moves = np.array(read_signed(text), np.float32).reshape(4, 2)
    return np.asarray(cv2.getPerspectiveTransform(corners, corners + moves), np.float64)


def read_box(text: str, up: FloatArray) -> FloatArray:
    """(8, 3) corners in the camera of the one box in a text, in the order of the questions.

    up: (3,) against gravity, in the camera.
    """
    right, down, forward, wide, deep, high, turn = read_signed(text)
    ahead = np.cross(np.cross(up, [0, 0, 1]), up)
    ahead /= np.linalg.norm(ahead)
    beside = np.cross(ahead, up)  # to the right of who looks ahead
    centre = right * beside - down * up + forward * ahead
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    across, along = c * beside - s * ahead, s * beside + c * ahead
    around = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    return np.array([
        centre + a * across * wide / 2 + b * along * deep / 2 + u * up * high / 2 for u in (-1, 1) for a, b in around
    ])  # fmt: skip
