"""The six quantities that may be asked of a camera, how they are printed, and how a crop gives and proves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Camera, Fact, FloatArray
from vgbench_gen.geometry import cameras
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.evidence import Evidence, FactEvidence, Size
from vgbench_gen.tasks.gates import CameraGates
from vgbench_gen.text.numbers import format_fixed

ASK_AXIS = {"fx": 0, "fy": 1, "cx": 0, "cy": 1, "hfov": 0, "vfov": 1}
CENTRES, ANGLES = ("cx", "cy"), ("hfov", "vfov")


class SizeEvidence(FactEvidence):
    """What is kept of a fact besides its crops."""

    size: Size
    """Of the image that is shown."""


class CropEvidence(Evidence):
    """What is kept of a crop that may be asked about. A computed option has `fx` alone, or no evidence at all."""

    fx: float
    """Focal length along x, pixels of the shown image."""
    fy: float | None = None
    """Focal length along y, pixels of the shown image; None for a computed option, like all that follow."""
    cx: float | None = None
    """Principal point along x, pixels of the shown image."""
    cy: float | None = None
    """Principal point along y, pixels of the shown image."""
    hfov: float | None = None
    """Field of view from left to right, degrees."""
    vfov: float | None = None
    """Field of view from top to bottom, degrees."""
    zoom: float | None = None
    """Width of the frame over that of the crop."""

    @property
    def parameters(self) -> dict[str, float]:
        """The six quantities by name, without those that are not known."""
        return {name: value for name in ASK_AXIS if (value := getattr(self, name)) is not None}


def compute_parameter(camera: Camera, ask: str) -> float:
    """One of the six, unrounded, pixels or degrees."""
    if ask in ANGLES:
        return cameras.fov_deg(camera)[ASK_AXIS[ask]]
    return {"fx": camera.fx, "fy": camera.fy, "cx": camera.cx, "cy": camera.cy}[ask]


def compute_parameter_by_rays(ask: str, K: FloatArray, rect: tuple[int, int, int, int], size: tuple[int, int]) -> float:
    """One of the six, unrounded, by the rays through the two edges of a crop.

    Args:
        ask: which one.
        K: (3, 3) of the frame that is cropped, pixels.
        rect: (x0, y0, width, height) of the crop in the frame, pixels.
        size: (width, height) that the crop is resized to.
    """
    axis = ASK_AXIS[ask]
    edges = np.zeros((2, 3))
    edges[:, axis] = rect[axis] - 0.5, rect[axis] + rect[2 + axis] - 0.5
    # In the plane of the optical axis: the other coordinate is that of the principal point.
    edges[:, 1 - axis] = K[1 - axis, 2]
    edges[:, 2] = 1
    rays = np.linalg.solve(K, edges.T).T
    if ask in ANGLES:
        cosine = rays[0] @ rays[1] / np.prod(np.linalg.norm(rays, axis=1))
        return float(np.degrees(np.arccos(cosine)))
    focal = size[axis] / (rays[1, axis] - rays[0, axis])
    return float(-focal * rays[0, axis] - 0.5 if ask in CENTRES else focal)


def measure_margins(a: float, b: float, ask: str, size: tuple[int, int], gates: CameraGates) -> float:
    """Difference of two values over the margin between options: of logarithms for focal lengths, in degrees for fields
    of view, in shares of the side of an image of `size` (width, height) for principal points."""
    if ask in CENTRES:
        return float(abs(a - b) / (gates.principal_gap_min * size[ASK_AXIS[ask]]))
    if ask in ANGLES:
        return abs(a - b) / gates.fov_gap_min_deg
    return float(abs(np.log(a / b)) / np.log(gates.ratio_min)) if min(a, b) > 0 else 0.0


def round_as_printed(value: float, ask: str) -> FloatArray:
    """(1,) as printed for that kind of question; a half stays a half, however it was reached."""
    return np.array([float(format_fixed(round(float(value), 6), get_decimals(ask)))])


def get_decimals(ask: str) -> int:
    """Printed decimals of that kind of question."""
    return 1 if ask in ANGLES else 0


def read_shown_crop(show: Mapping[str, Any]) -> tuple[tuple[int, int, int, int], tuple[int, int]]:
    """((x0, y0, width, height) of the crop in its frame, (width, height) as shown) of a candidate, pixels."""
    x0, y0, width, height = (int(x) for x in show["rect"])
    out_width, out_height = (int(x) for x in show["size"])
    return (x0, y0, width, height), (out_width, out_height)


STORED = 1e-3  # pixels or degrees between a stored parameter and the one by the crop's rays


def check_crops(fact: Fact, gates: Gates) -> Problems:
    """By the rays through its edges, each crop has all the parameters stored with it, and the printed one."""
    K = np.asarray(fact.cameras[fact.frame_ids[0]]["K"], dtype=np.float64).reshape(3, 3)
    found: Problems = []
    for option in fact.candidates:
        if "rect" not in option.show:
            continue  # a computed value, which no crop has
        rect, size = read_shown_crop(option.show)
        by_rays = {name: compute_parameter_by_rays(name, K, rect, size) for name in ASK_AXIS}
        stored = CropEvidence.of(option).parameters
        found += [
            ("crop", f"{option.key}: {name} {stored[name]:.3f} stored, {value:.3f} by the crop")
            for name, value in by_rays.items()
            if not abs(stored[name] - value) <= STORED
        ]
        printed, digit = float(option.value[0]), 10.0 ** -get_decimals(fact.ask)
        if not abs(printed - by_rays[fact.ask]) <= digit / 2 + STORED:
            found.append(("crop", f"{option.key}: prints {printed:g}, the crop gives {by_rays[fact.ask]:.3f}"))
    return found
