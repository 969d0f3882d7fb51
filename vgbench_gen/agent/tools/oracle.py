"""Oracle tools: they read the results of a perfect tool from the row's evidence, not from pixels.

Their results have the fields of the tools of the same names, as far as the evidence contains them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Point, ToolError, Values, tool
from vgbench_gen.agent.tools._arguments import Cameras, round_all
from vgbench_gen.agent.tools.matches import Keypoints, Ratio, Threshold
from vgbench_gen.geometry import poses
from vgbench_gen.geometry.cameras import fov_deg
from vgbench_gen.geometry.homography import normalise_homography
from vgbench_gen.tasks.revealed import (
    Revealed,
    RevealedHomography,
    RevealedMotion,
    RevealedObject,
    RevealedRegion,
    RevealedTrack,
    is_same_rect,
)

NOTHING = "the row tells nothing of it"
SAME_PIXEL_PX = 2.0  # the largest distance between a pixel of a call and one that the question names
Box = tuple[float, float, float, float]
Evidence = Mapping[str, Any]
_PIXELS = "[left, top, right, bottom] in pixels, ends included"
OneName = Annotated[ImageName, "name of the image"]
TwoNames = Annotated[tuple[ImageName, ImageName], "two image names, in order"]
PairT = TypeVar("PairT", RevealedHomography, RevealedMotion, RevealedTrack)
PlacedT = TypeVar("PlacedT", RevealedObject, RevealedRegion)
oracle_tool = partial(tool, tier="oracle", runs="here")


def read_revealed(evidence: Evidence) -> Revealed:
    """The evidence as typed records; empty if there is no row."""
    return Revealed.read(dict(evidence), "the question")


def find_place(name: str) -> int:
    """The number of an image in the run, from 0."""
    return int(name.removeprefix("image-"))


def plan_calls(revealed: Revealed) -> list[tuple[str, Values]]:
    """(key of an oracle tool, arguments) of the calls that measure what a question is about.

    Their order, and that of rectangles, from left to right, tells nothing of the answer.
    """

    def place(listed: Sequence[PlacedT]) -> list[Values]:
        drawn = sorted({one.image for one in listed})
        rects = {k: sorted(list(one.rect_px) for one in listed if one.image == k) for k in drawn}
        return [{"image": f"image-{k}", "bboxes": rects[k]} for k in drawn]

    def pair(one: RevealedHomography | RevealedMotion | RevealedTrack) -> Values:
        return {"image": [f"image-{one.first}", f"image-{one.second}"]}

    # A region alone is asked for its mean depth; several are compared by their medians.
    mode = {"mode": "median" if len(revealed.regions) > 1 else "mean"}
    answering = [one for one in revealed.cameras if one.allowed_ratio is not None]
    motions, warps = (
        sorted(map(pair, listed), key=lambda asked: asked["image"])
        for listed in (revealed.motions, revealed.homographies)
    )
    return [
        *(("OracleCameraParameters", {"image": f"image-{one.image}"}) for one in answering),
        *(("OracleRegionDepth", asked | mode) for asked in place(revealed.regions)),
        *(("OracleObjectGeometry", asked) for asked in place(revealed.objects)),
        *(("OracleRelativePose", asked) for asked in motions),
        *(("OracleHomographyMatrix", asked) for asked in warps),
        *(("OracleTrackPoint", pair(one) | {"point": one.first_px.tolist()}) for one in revealed.tracks),
    ]


def find_pair(listed: Sequence[PairT], names: tuple[str, str]) -> tuple[PairT, bool] | None:
    """(the record of two images, whether it goes from the first to the second); None if there is none."""
    first, second = map(find_place, names)
    for record in listed:
        if (record.first, record.second) in ((first, second), (second, first)):
            return record, record.first == first
    return None


def find_rect(listed: Sequence[PlacedT], image: str, rect: Sequence[float]) -> PlacedT:
    """The record of a rectangle [x1, y1, x2, y2] of an image, pixels.

    Raises:
        ToolError: there is none.
    """
    place = find_place(image)
    for record in listed:
        if record.image == place and is_same_rect(record.rect_px, rect):
            return record
    raise ToolError(
        f"{NOTHING}: {image}, {[round(x, 1) for x in rect]}; it tells of rectangles that the question draws"
    )


@oracle_tool(
    "EstimateCameraParameters",
    key="OracleCameraParameters",
    aliases=("GetCameraParametersVGGT",),
    returns={
        "intrinsic": "3x3 in pixels of the image; (0, 0) is the centre of the top-left pixel",
        "hfov_deg": "field of view from the left edge to the right one, degrees",
        "vfov_deg": "field of view from the upper edge to the lower one, degrees",
    },
    example={"image": "image-0"},
)
def tell_camera(image: OneName, evidence: Evidence) -> Values:
    """Gives the pinhole camera of an image."""
    for record in read_revealed(evidence).cameras:
        if record.image == find_place(image):
            h_deg, v_deg = fov_deg(record.camera)
            K = round_all(record.camera.K, 3)
            return {"intrinsic": K, "hfov_deg": round(h_deg, 3), "vfov_deg": round(v_deg, 3)}
    raise ToolError(f"{NOTHING}: the camera of {image}")


@oracle_tool(
    "EstimateRegionDepth",
    key="OracleRegionDepth",
    returns={"depths": "of each rectangle, in their order", "unit": "meters"},
    example={"image": "image-0", "bboxes": [[100, 120, 180, 200]]},
)
def tell_region_depths(
    image: OneName,
    bboxes: Annotated[tuple[Box, ...], Field(min_length=1, max_length=100), f"[{_PIXELS}, ...]"],
    evidence: Evidence,
    indoor_or_outdoor: Annotated[str, Field(max_length=20), "taken and not needed"] = "indoor",
    mode: Annotated[Literal["mean", "center", "median"], "mean, or the median depth"] = "mean",
) -> Values:
    """Gives the depth of rectangles of an image, along the view (z), in meters."""
    regions = read_revealed(evidence).regions
    asked = [find_rect(regions, image, rect) for rect in bboxes]
    depths = [round(region.mean_m if mode == "mean" else region.median_m, 3) for region in asked]
    return {"depths": depths, "unit": "meters"}


_Objects = Annotated[tuple[str, ...], Field(max_length=50), "what they are, such as a chair"]
_Outlines = Annotated[
    tuple[Box, ...], Field(max_length=50), f"their outlines {_PIXELS}, where words fit several objects"
]


def _find_objects(
    image: str, objects: tuple[str, ...], bboxes: tuple[Box, ...], evidence: Evidence
) -> list[tuple[str, RevealedObject | str]]:
    """(name, the object or why it is not found), first of the names, then of the boxes."""
    known = [record for record in read_revealed(evidence).objects if record.image == find_place(image)]
    if not objects and not bboxes:
        raise ToolError("found neither objects nor bboxes; expected some")
    found: list[tuple[str, RevealedObject | str]] = []
    for name in objects:
        fitting = [record for record in known if _is_called(record, name)]
        problem = f"{len(fitting)} objects fit; give bboxes in place of words" if fitting else NOTHING
        found.append((name, fitting[0] if len(fitting) == 1 else problem))
    in_boxes = [find_rect(known, image, rect) for rect in bboxes]
    return found + [(record.name, record) for record in in_boxes]


def _is_called(record: RevealedObject, words: str) -> bool:
    wanted, name = words.casefold().strip(), record.name.casefold()
    return bool(wanted) and (wanted in name.split() or wanted in (name, name.removeprefix("the ")))


@oracle_tool(
    "EstimateObjectDepth",
    key="OracleObjectDepth",
    returns={"results": "for each: object, depth (meters), or error"},
    example={"image": "image-0", "objects": ["chair"]},
)
def tell_object_depths(image: OneName, evidence: Evidence, objects: _Objects = (), bboxes: _Outlines = ()) -> Values:
    """Gives the depth of objects: of the centre of the box around each, along the view (z), in meters."""
    return {
        "results": [
            {"object": name, "error": record}
            if isinstance(record, str)
            else {"object": name, "depth": round(float(record.corners_m[:, 2].mean()), 3)}
            for name, record in _find_objects(image, objects, bboxes, evidence)
        ]
    }


@oracle_tool(
    "EstimateObjectGeometryProperties",
    key="OracleObjectGeometry",
    argument_aliases={"object_descs": "objects"},
    returns={
        "results": f"for each: object, bbox ({_PIXELS}), depth of the centre along the view (meters), center_m and "
        "corners_m (centre and eight corners of its box, meters, camera axes x right, y down, z forward), or error"
    },
    example={"image": "image-0", "objects": ["chair"]},
)
def tell_object_geometry(image: OneName, evidence: Evidence, objects: _Objects = (), bboxes: _Outlines = ()) -> Values:
    """Gives outline, depth and box in space of objects."""
    results: list[dict[str, Any]] = []
    for name, record in _find_objects(image, objects, bboxes, evidence):
        if isinstance(record, str):
            results.append({"object": name, "error": record})
            continue
        centre = np.asarray(record.corners_m.mean(axis=0))
        values = {"object": name, "bbox": list(record.rect_px), "depth": round(float(centre[2]), 3)}
        results.append(values | {"center_m": round_all(centre, 3), "corners_m": round_all(record.corners_m, 3)})
    return {"results": results}


@oracle_tool(
    "EstimateRelativePose",
    key="OracleRelativePose",
    returns={
        "rotation": "3x3 R of X2 = R X1 + t: takes directions of the first camera to the second; null where it cannot "
        "be told",
        "rotation_deg": "its angle, degrees",
        "translation_direction": "unit vector along t of X2 = R X1 + t, axes of the second camera; null where it "
        "cannot be told",
        "camera_moved": "unit vector from the first camera to the second, axes of the first camera; null likewise",
        "translation_m": "t of X2 = R X1 + t, meters, axes of the second camera",
        "scale": "meters",
        "cannot_tell": "why there is no pose",
    },
    example={"image": ["image-0", "image-1"]},
)
def tell_relative_pose(image: TwoNames, evidence: Evidence, cameras: Cameras = ()) -> Values:
    """Gives rotation and translation between two views of a rigid scene. Camera axes: x right, y down, z forward."""
    found = find_pair(read_revealed(evidence).motions, image)
    if found is None:
        return {"rotation": None, "translation_direction": None, "cannot_tell": NOTHING}
    motion = found[0].second_from_first if found[1] else poses.invert(found[0].second_from_first)
    R, t = motion[:3, :3], motion[:3, 3]
    length = float(np.linalg.norm(t))
    return {
        "rotation": round_all(R, 5),
        "rotation_deg": round(float(poses.rotation_angle_deg(R)), 2),
        "translation_direction": round_all(t / length, 4) if length > 0 else None,
        "camera_moved": round_all(-(R.T @ t) / length, 4) if length > 0 else None,
        "translation_m": round_all(t, 4),
        "scale": "meters",
    }


@oracle_tool(
    "EstimateHomographyMatrix",
    key="OracleHomographyMatrix",
    returns={
        "homography_matrix": "3x3, takes (u, v, 1) of the first image to the second, lower right number 1; "
        "(0, 0) is the centre of the top-left pixel",
        "status": "success, or why there is no matrix",
    },
    example={"image": ["image-0", "image-1"]},
)
def tell_homography(
    image: TwoNames,
    evidence: Evidence,
    num_keypoints: Keypoints = 1200,
    ratio_th: Ratio = 0.75,
    ransac_reproj_threshold: Threshold = 5.0,
) -> Values:
    """Gives the 3x3 homography that takes pixels of the first image to the second."""
    found = find_pair(read_revealed(evidence).homographies, image)
    if found is None:
        return {"homography_matrix": None, "status": NOTHING}
    H = found[0].H if found[1] else normalise_homography(np.linalg.inv(found[0].H))
    return {"homography_matrix": [[float(f"{x:.7g}") for x in row] for row in H.tolist()], "status": "success"}


@oracle_tool(
    "TrackPoint",
    key="OracleTrackPoint",
    returns={
        "tracks": "for each further image {point: [u, v] in its pixels, or null; cannot_tell: why there is no point}"
    },
    example={"image": ["image-0", "image-1"], "point": [320, 240]},
)
def tell_track(
    image: Annotated[
        tuple[ImageName, ...], Field(min_length=2, max_length=8), "the image that has the point, then those to look in"
    ],
    point: Annotated[Point, "[u, v] in the first image, pixels"],
    evidence: Evidence,
) -> Values:
    """Says where a point of one image lies in other images of the same scene."""
    known = read_revealed(evidence).tracks
    return {"tracks": [_follow(find_pair(known, (image[0], other)), point) for other in image[1:]]}


def _follow(found: tuple[RevealedTrack, bool] | None, point: Point) -> dict[str, Any]:
    if found is not None:
        track, forward = found
        start, end = (track.first_px, track.second_px) if forward else (track.second_px, track.first_px)
        if np.linalg.norm(np.array(point) - start) <= SAME_PIXEL_PX:
            return {"point": round_all(end, 1)}
    return {"point": None, "cannot_tell": NOTHING}
