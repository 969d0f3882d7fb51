"""Cameras and poses as evidence keeps them and as texts print them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vgbench_gen.core.types import Camera


def make_camera_slots(camera: Mapping[str, Any], suffix: str = "", intrinsics: bool = True) -> dict[str, str]:
    """Slots width, height and, where asked, the integer intrinsics of a stored camera."""
    slots = {f"width{suffix}": str(camera["width"]), f"height{suffix}": str(camera["height"])}
    if intrinsics:
        K = camera["K"]
        for name, value in (("fx", K[0]), ("fy", K[4]), ("cx", K[2]), ("cy", K[5])):
            slots[f"{name}{suffix}"] = f"{value:.0f}"
    return slots


def make_camera_record(camera: Camera) -> dict[str, Any]:
    """A camera as evidence: K row-major (9 numbers), width and height in pixels."""
    return {"K": camera.K.ravel().tolist(), "width": camera.width, "height": camera.height}


def read_camera_record(record: Mapping[str, Any]) -> Camera:
    """Inverse of `make_camera_record`."""
    return Camera(np.asarray(record["K"], dtype=np.float64).reshape(3, 3), int(record["width"]), int(record["height"]))
