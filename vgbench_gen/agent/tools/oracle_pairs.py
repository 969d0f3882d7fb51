"""Oracle tools of two images: relative pose, homography, a followed point."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Point, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._pairs import round_all
from vgbench_gen.agent.tools._revealed import NOTHING, OracleTool, find_pair, read_revealed
from vgbench_gen.agent.tools.estimate_homography_matrix import EstimateHomographyMatrix
from vgbench_gen.agent.tools.estimate_relative_pose import EstimateRelativePose
from vgbench_gen.core.config import Config
from vgbench_gen.geometry import poses
from vgbench_gen.geometry.homography import normalise_homography
from vgbench_gen.tasks.revealed import RevealedTrack

SAME_PIXEL_PX = 2.0  # within which a pixel is the one that the question names


@tools.register("OracleRelativePose")
class OracleRelativePose(OracleTool):
    """The fields of the classical tool, and the length of the translation."""

    name = EstimateRelativePose.name
    does = "Gives rotation and translation between two views of a rigid scene. Camera axes: x right, y down, z forward."
    Arguments = EstimateRelativePose.Arguments
    argument_aliases: ClassVar = EstimateRelativePose.argument_aliases
    returns: ClassVar = {
        "rotation": EstimateRelativePose.returns["rotation"],
        "rotation_deg": EstimateRelativePose.returns["rotation_deg"],
        "translation_direction": EstimateRelativePose.returns["translation_direction"],
        "camera_moved": EstimateRelativePose.returns["camera_moved"],
        "translation_m": "t of X2 = R X1 + t, meters, axes of the second camera",
        "scale": "meters",
        "cannot_tell": "why there is no pose",
    }
    example: ClassVar = {"image": ["image-0", "image-1"]}

    def run(self, given: ToolInput) -> ToolOutput:
        found = find_pair(read_revealed(given).motions, given.arguments.image)
        if found is None:
            return ToolOutput({"rotation": None, "translation_direction": None, "cannot_tell": NOTHING})
        motion = found[0].second_from_first if found[1] else poses.invert(found[0].second_from_first)
        R, t = motion[:3, :3], motion[:3, 3]
        length = float(np.linalg.norm(t))
        told: dict[str, Any] = {
            "rotation": round_all(R, 5),
            "rotation_deg": round(float(poses.rotation_angle_deg(R)), 2),
            "translation_direction": None,
            "camera_moved": None,
            "translation_m": round_all(t, 4),
            "scale": "meters",
        }
        if length > 0:
            told["translation_direction"] = round_all(t / length, 4)
            told["camera_moved"] = round_all(-(R.T @ t) / length, 4)
        return ToolOutput(told)


@tools.register("OracleHomographyMatrix")
class OracleHomographyMatrix(OracleTool):
    """The fields of the classical tool that a matrix has."""

    name = EstimateHomographyMatrix.name
    does = "Gives the 3x3 homography that takes pixels of the first image to the second."
    Arguments = EstimateHomographyMatrix.Arguments
    argument_aliases: ClassVar = EstimateHomographyMatrix.argument_aliases
    returns: ClassVar = {
        "homography_matrix": EstimateHomographyMatrix.returns["homography_matrix"],
        "status": EstimateHomographyMatrix.returns["status"],
    }
    example: ClassVar = EstimateHomographyMatrix.example

    def run(self, given: ToolInput) -> ToolOutput:
        found = find_pair(read_revealed(given).homographies, given.arguments.image)
        if found is None:
            return ToolOutput({"homography_matrix": None, "status": NOTHING})
        H = found[0].H if found[1] else normalise_homography(np.linalg.inv(found[0].H))
        matrix = [[float(f"{x:.7g}") for x in row] for row in H.tolist()]
        return ToolOutput({"homography_matrix": matrix, "status": "success"})


class _TrackArguments(Config):
    image: Annotated[
        tuple[ImageName, ...],
        Field(min_length=2, max_length=8, description="the image that has the point, then those to look in"),
    ]
    point: Point = Field(description="[u, v] in the first image, pixels")


@tools.register("OracleTrackPoint")
class OracleTrackPoint(OracleTool[_TrackArguments]):
    """The fields of a tracker that a place has."""

    name = "TrackPoint"
    does = "Says where a point of one image lies in other images of the same scene."
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "tracks": "for each further image {point: [u, v] in its pixels, or null; cannot_tell: why there is no point}"
    }
    example: ClassVar = {"image": ["image-0", "image-1"], "point": [320, 240]}

    def run(self, given: ToolInput[_TrackArguments]) -> ToolOutput:
        arguments = given.arguments
        first, *others = arguments.image
        known = read_revealed(given).tracks
        return ToolOutput({"tracks": [_follow(find_pair(known, (first, one)), arguments.point) for one in others]})


def _follow(found: tuple[RevealedTrack, bool] | None, point: Point) -> dict[str, Any]:
    if found is not None:
        track, forward = found
        start, end = (track.first_px, track.second_px) if forward else (track.second_px, track.first_px)
        if np.linalg.norm(np.array(point) - start) <= SAME_PIXEL_PX:
            return {"point": round_all(end, 1)}
    return {"point": None, "cannot_tell": NOTHING}
