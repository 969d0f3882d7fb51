"""Cameras and poses as evidence keeps them and as texts print them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vgbench_gen.core.types import Camera
from vgbench_gen.text.render import fill_word


def make_camera_slots(camera: Mapping[str, Any], second: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Slots: width, height and the integer intrinsics of a stored camera, and in words those of a second one."""
    K = camera["K"]
    slots = {"width": str(camera["width"]), "height": str(camera["height"])}
    slots |= {name: f"{value:.0f}" for name, value in (("fx", K[0]), ("fy", K[4]), ("cx", K[2]), ("cy", K[5]))}
    if second is not None:
        other = make_camera_slots(second)
        same = fill_word("second_camera.same") if other == slots else fill_word("second_camera.other", **other)
        slots["second_camera"] = same
    return slots


def make_camera_record(camera: Camera) -> dict[str, Any]:
    """A camera as evidence: K row-major (9 numbers), width and height in pixels."""
    return {"K": camera.K.ravel().tolist(), "width": camera.width, "height": camera.height}


def read_camera_record(record: Mapping[str, Any]) -> Camera:
    """Inverse of `make_camera_record`."""
    return Camera(np.asarray(record["K"], dtype=np.float64).reshape(3, 3), int(record["width"]), int(record["height"]))
