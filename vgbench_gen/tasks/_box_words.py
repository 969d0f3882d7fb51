"""An upright box in words: its centre as seen from the camera held level, its sides, and how it is turned.

The vertical is the measured one: that of printed corners is off by a degree, which at three meters is five centimeters.
"""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import FloatArray, OrientedBox
from vgbench_gen.geometry import boxes
from vgbench_gen.tasks.presentation import say_signed
from vgbench_gen.text.numbers import format_fixed
from vgbench_gen.text.render import fill_word

DECIMALS = 3  # by centimeters, the words of two objects in five of real scans overlap with their boxes by less than 0.9
TURN_DECIMALS = 1  # degrees: at a meter from the centre, two millimeters
_AHEAD_MIN = 0.2  # least sine between the optical axis and the vertical; steeper, nobody sees which way is forward
_CENTRE = (("shift.right", "shift.left"), ("shift.down", "shift.up"), ("shift.forward", "shift.back"))


def print_box(corners_m: FloatArray, up: FloatArray) -> str:
    """Corners (8, 3) in the camera frame, meters, of a box whose third axis is the vertical, as an option text.

    up: (3,) the vertical in the camera frame.

    Raises:
        GeometryError: the corners are no box, or the camera looks along the vertical.
    """
    numbers = split_box(corners_m, up)
    x, y, z = (say_signed(c, DECIMALS, keys) for c, keys in zip(numbers[:3], _CENTRE, strict=True))
    sides = dict(zip(("wide", "deep", "high"), (format_fixed(c, DECIMALS) for c in numbers[3:6]), strict=True))
    turn = say_signed(numbers[6], TURN_DECIMALS, ("turn.right", "turn.left"))
    return fill_word("option.upright_box", x=x, y=y, z=z, turn=turn, **sides)


def read_back(corners_m: FloatArray, up: FloatArray) -> OrientedBox:
    """The box in the camera frame that `print_box` tells to whoever knows the vertical. Raises as `print_box` does."""
    numbers, camera_from_level = split_box(corners_m, up), hold_level(up)
    numbers[:6], numbers[6] = np.round(numbers[:6], DECIMALS), np.round(numbers[6], TURN_DECIMALS)
    (wide, deep, high), turn = numbers[3:6], np.radians(numbers[6])
    # Columns in the level frame (right, down, forward): what ran across the view, along it, and up.
    axes = np.array([[np.cos(turn), np.sin(turn), 0], [0, 0, -1], [-np.sin(turn), np.cos(turn), 0]])
    return OrientedBox(
        camera_from_level @ numbers[:3], np.array([wide, deep, high]), camera_from_level @ axes, "camera"
    )


def split_box(corners_m: FloatArray, up: FloatArray) -> FloatArray:
    """(7,) centre to the right, down and forward, sides across the view, along it and upright, meters, and the turn to
    the right, degrees, for the camera held level. Raises as `hold_level` does, and where the corners are no box."""
    box, level = boxes.fit_to_corners(corners_m, "camera"), hold_level(up)
    across, _, away = level.T @ box.rotation[:, :2]
    # Either ground axis may run across the view, to either side: the one that is turned least does.
    turns_deg = (np.degrees(np.arctan2(-away, across)) + 90) % 180 - 90
    k = int(np.argmin(np.abs(turns_deg)))
    return np.concatenate([level.T @ box.center_m, box.size_m[[k, 1 - k, 2]], turns_deg[k : k + 1]])


def split_box_again(corners_m: FloatArray, up: FloatArray) -> FloatArray:
    """As `split_box`, by complex numbers on the floor."""
    box, right = boxes.fit_to_corners(corners_m, "camera"), np.cross([0.0, 0.0, 1.0], up)
    ways = np.stack([right, np.cross(up, right)]) / np.linalg.norm(right)
    turns_deg = [np.degrees(np.angle(x - 1j * z)) % 180 for x, z in (ways @ box.rotation[:, :2]).T]
    turns_deg = [turn - 180 if turn >= 90 else turn for turn in turns_deg]
    k = int(abs(turns_deg[1]) < abs(turns_deg[0]))
    x_m, z_m = ways @ box.center_m
    return np.array([x_m, -up @ box.center_m, z_m, *box.size_m[[k, 1 - k, 2]], turns_deg[k]])


def hold_level(up: FloatArray) -> FloatArray:
    """(3, 3) camera_from_level: the axes right, down and forward of the camera if it were held level.

    up: (3,) the vertical in the camera frame.

    Raises:
        GeometryError: the camera looks along the vertical.
    """
    forward = np.array([0.0, 0.0, 1.0]) - up[2] * up
    length = float(np.linalg.norm(forward))
    if length < _AHEAD_MIN:
        raise GeometryError(f"the camera looks along the vertical: {length:.2f} of its axis is level")
    forward /= length
    return np.stack([np.cross(-up, forward), -up, forward], axis=1)
