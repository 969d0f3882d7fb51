"""`TriangulatePoints`: points in space from their pixels in two images."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import AXES, POSE, Pixel, Pose
from vgbench_gen.agent.tools._pairs import Cameras, find_cameras, match_pair, round_all
from vgbench_gen.agent.two_view import compute_rays, estimate_two_view
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray

POINTS = 60
PARALLAX_MIN_DEG = 0.5
OFF_MAX_PX = 8.0


class _Arguments(Config):
    image: Annotated[
        tuple[ImageName, ...],
        Field(max_length=2, description="two image names; may be left out with a pose and cameras"),
    ] = ()
    pixels_first: tuple[Pixel, ...] = Field(min_length=1, max_length=POINTS, description="[[u, v], ...], first image")
    pixels_second: tuple[Pixel, ...] = Field(
        min_length=1, max_length=POINTS, description="the same points in the second image, in the same order"
    )
    cameras: Cameras = ()
    pose: Pose | None = Field(default=None, description=f"{POSE}; estimated from the images where it is left out")


@tools.register("TriangulatePoints")
class TriangulatePoints(Tool[_Arguments]):
    name = "TriangulatePoints"
    tier: ClassVar[Tier] = "classical"
    does = "Finds points in space from their pixels in two images: in the unit of the pose, or up to scale without one."
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "points": f"[x, y, z] of each in the first camera, {AXES}; null where it cannot be told",
        "unit": "that of the given translation, or lengths of the unknown baseline",
        "off_px": "how far the two rays miss each other in the second image, pixels",
        "parallax_deg": "angle between both rays; small ones make the depth unsure",
        "depth_sigma": "standard deviation of each depth, same unit, for pixels known to 1 pixel",
        "cannot_tell": "why points are null",
    }
    example: ClassVar = {
        "image": ["image-0", "image-1"],
        "pixels_first": [[320, 240]],
        "pixels_second": [[290, 238]],
        "cameras": [{"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5}],
    }

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        uv1, uv2 = (np.array(pixels) for pixels in (arguments.pixels_first, arguments.pixels_second))
        if len(uv1) != len(uv2):
            raise ToolError(f"pixels_second: found {len(uv2)}; expected one for each of {len(uv1)} pixels")
        K1, K2 = self._find_cameras(given, arguments)
        unit = "that of the given translation"
        if arguments.pose is not None:
            pose = arguments.pose.read()
            R, t = pose[:3, :3], pose[:3, 3]
            if np.linalg.norm(t) < 1e-9:
                return ToolOutput({"points": None, "cannot_tell": "the cameras stand in one place"})
        else:
            if len(given.images) != 2:
                raise ToolError("image: expected two images where no pose is given")
            found = estimate_two_view(*match_pair(given), K1, K2)
            if found is None or found.unclear:
                reason = "too few matches agree on any motion" if found is None else found.unclear
                return ToolOutput({"points": None, "cannot_tell": reason})
            R, t, unit = found.rotation, found.direction, "baseline lengths; the baseline is unknown"
        return ToolOutput(_triangulate(uv1, uv2, (K1, K2), R, t) | {"unit": unit})

    @staticmethod
    def _find_cameras(given: ToolInput, arguments: _Arguments) -> tuple[FloatArray, FloatArray]:
        if len(given.images) == 2:
            (K1, K2), _ = find_cameras(given, arguments.cameras)
        elif arguments.cameras:
            K1, K2 = arguments.cameras[0].K, arguments.cameras[-1].K
        else:
            raise ToolError("cameras: found none; expected some where no two images are named")
        return K1, K2


def _triangulate(
    uv1: FloatArray, uv2: FloatArray, K: tuple[FloatArray, FloatArray], R: FloatArray, t: FloatArray
) -> dict[str, Any]:
    rays1, rays2 = compute_rays(uv1, K[0]), compute_rays(uv2, K[1])
    points: list[Any] = []
    offs: list[Any] = []
    sigmas: list[Any] = []
    angles, why = [], set()
    for one, two in zip(rays1, rays2, strict=True):
        turned = R @ one
        angle = float(np.degrees(np.arctan2(np.linalg.norm(np.cross(two, turned)), two @ turned)))
        angles.append(round(angle, 3))
        (z1, z2), *_ = np.linalg.lstsq(np.column_stack([turned, -two]), -t, rcond=None)
        seen = K[1] @ (z1 * turned + t)
        off = float(np.linalg.norm(seen[:2] / seen[2] - (K[1] @ two)[:2])) if seen[2] > 1e-9 else np.inf
        offs.append(round(off, 2) if off < 1e6 else None)
        sigmas.append(None)
        if angle < PARALLAX_MIN_DEG:
            why.add("the rays are nearly parallel: the point is far, or the baseline small")
        elif z1 <= 0 or z2 <= 0:
            why.add("the rays meet behind a camera")
        elif off > OFF_MAX_PX:
            why.add("the rays miss each other: the pixels do not belong together, or the pose is wrong")
        else:
            points.append(round_all(z1 * one, 6))
            sigmas[-1] = round(float(z1 * np.sqrt(2) / K[1][0, 0] / np.sin(np.radians(angle))), 6)
            continue
        points.append(None)
    told: dict[str, Any] = {"points": points, "off_px": offs, "parallax_deg": angles, "depth_sigma": sigmas}
    return told | ({"cannot_tell": "; ".join(sorted(why))} if why else {})
