"""`EstimateCameraFromVanishingPoints`: focal length, field of view or principal point from the lines of one image."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._pairs import Coordinate, Positive, round_all
from vgbench_gen.agent.tools._vanishing import fit_line_camera
from vgbench_gen.core.config import Config

_FOCAL_SIGMA_MAX, _CENTRE_SIGMA_MAX = 0.12, 0.08  # of the focal length, of the long side


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    focal_px: Positive | None = Field(default=None, description="focal length in pixels where it is known")
    cx: Coordinate | None = Field(default=None, description="u of the principal point in pixels where it is known")
    cy: Coordinate | None = Field(default=None, description="v of the principal point in pixels where it is known")
    centre_is_middle: bool = Field(
        default=True, description="whether an unknown principal point is the middle of the image; else it is estimated"
    )


@tools.register("EstimateCameraFromVanishingPoints")
class EstimateCameraFromVanishingPoints(Tool[_Arguments]):
    name = "EstimateCameraFromVanishingPoints"
    aliases = ("EstimateCameraParameters",)
    tier: ClassVar[Tier] = "classical"
    does = "Estimates focal length, fields of view and principal point from line segments at right angles in space."
    returns: ClassVar = {
        "focal_px": "focal length along u and v, pixels; null where it cannot be told",
        "focal_sigma_px": "its standard deviation; 0 where it was given",
        "hfov_deg": "field of view from the left to the right edge, degrees, for a principal point in the middle",
        "vfov_deg": "the same from top to bottom",
        "principal_point": "[cx, cy] in pixels, (0, 0) the centre of the top-left pixel; null where it cannot be told",
        "principal_point_sigma_px": "standard deviations of both; 0 where given or taken for the middle",
        "lines_count": "line segments",
        "cannot_tell": "why something is null",
    }
    example: ClassVar = {"image": "image-0"}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        image = given.images[0]
        width, height = image.size
        middle = ((width - 1) / 2, (height - 1) / 2)
        centre = [
            value if value is not None else (at if arguments.centre_is_middle else np.nan)
            for value, at in zip((arguments.cx, arguments.cy), middle, strict=True)
        ]
        stated = np.array([np.nan if arguments.focal_px is None else arguments.focal_px, *centre])
        found = fit_line_camera(image, stated)
        if isinstance(found, str):
            return ToolOutput({"focal_px": None, "principal_point": None, "cannot_tell": found})
        told: dict[str, Any] = {"lines_count": found.segments, "focal_px": None, "principal_point": None}
        told |= {"focal_sigma_px": None, "principal_point_sigma_px": None}
        reasons = []
        if np.isfinite(found.focal_sigma_px) and found.focal_sigma_px <= _FOCAL_SIGMA_MAX * found.focal_px:
            told |= {
                "focal_px": round(found.focal_px, 1),
                "focal_sigma_px": round(found.focal_sigma_px, 1),
                "hfov_deg": round(2 * float(np.degrees(np.arctan(width / 2 / found.focal_px))), 2),
                "vfov_deg": round(2 * float(np.degrees(np.arctan(height / 2 / found.focal_px))), 2),
            }
        else:
            reasons.append("the lines leave the focal length open")
        off = found.centre_sigma_px
        if np.isfinite(off).all() and off.max() <= _CENTRE_SIGMA_MAX * max(image.size):
            told |= {"principal_point": round_all(found.centre, 1), "principal_point_sigma_px": round_all(off, 1)}
        else:
            reasons.append("the lines leave the principal point open")
        return ToolOutput(told | ({"cannot_tell": "; ".join(reasons)} if reasons else {}))
