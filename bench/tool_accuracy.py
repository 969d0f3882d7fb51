"""`python -m bench.tool_accuracy DATASET [--questions N]`: how exact the classical tools are on a built dataset.

Each tool is called as an agent would call it, on the delivered images and what the question states, and compared with
the truth of the question's fact. A set of the shipped samples has exact truth; one of real captures has that of their
facts, which is off by their own noise.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vgbench_gen import load
from vgbench_gen.agent.tool import ToolInput, tools
from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.geometry.homography import apply, image_corners
from vgbench_gen.geometry.poses import angle_between_deg, rotation_angle_deg
from vgbench_gen.tasks.row_evidence import rebuild_fact
from vgbench_gen.tasks.solving import Image

BASELINES_M = (0.0, 0.2, 0.4, 0.8, np.inf)
Images = list[Image]


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of one call."""

    name: str
    """Of the line of the table."""
    error: float
    """NaN where the tool cannot tell."""
    within: float
    """What counts as right."""
    unit: str
    """Of both."""


def call(name: str, images: Images, **arguments: Any) -> dict[str, Any]:
    """What a tool tells of images, with arguments as a model writes them."""
    tool = tools[name]
    single = tool.Arguments.model_fields["image"].annotation is str
    arguments["image"] = "image-0" if single else [f"image-{k}" for k in range(len(images))]
    given = tool.Arguments.model_validate_json(json.dumps(arguments))
    return dict(tool.run(ToolInput(given, images)).values)


def describe_camera(K: FloatArray) -> dict[str, float]:
    """(3, 3) as tools take it."""
    return {"fx": K[0, 0], "fy": K[1, 1], "cx": K[0, 2], "cy": K[1, 2]}


def measure_pose(fact: Fact, images: Images) -> list[Measured]:
    """Rotation, and direction by baseline."""
    motion = fact.truth_candidate.value.reshape(3, 4)
    names = fact.truth_candidate.frame_ids
    cameras = [describe_camera(np.array(fact.cameras[name]["K"]).reshape(3, 3)) for name in names]
    told = call("EstimateRelativePose", images, cameras=cameras)
    turn = told["rotation"]
    off = np.nan if turn is None else float(rotation_angle_deg(np.array(turn) @ motion[:, :3].T))
    found = [Measured("relative pose: rotation", off, 2.0, "degrees")]
    baseline = float(np.linalg.norm(motion[:, 3]))
    place = int(np.searchsorted(BASELINES_M, baseline, side="right"))
    low, high = BASELINES_M[place - 1], BASELINES_M[place]
    band = f"{low:g} to {high:g} m" if np.isfinite(high) else f"beyond {low:g} m"
    way = told.get("translation_direction")
    off = np.nan if way is None else float(angle_between_deg(np.array(way), motion[:, 3]))
    for name in ("relative pose: direction", f"relative pose: direction, baseline {band}"):
        found.append(Measured(name, off, 10.0, "degrees"))
    R, t = motion[:, :3], motion[:, 3]
    aside = np.array([[np.cos(0.2), 0, np.sin(0.2)], [0, 1, 0], [-np.sin(0.2), 0, np.cos(0.2)]])
    stated = ((R, t), (R.T, -R.T @ t), (R, -t), (aside @ R, t), (R, aside @ aside @ aside @ t))
    motions = [{"rotation": turn.tolist(), "translation": shift.tolist()} for turn, shift in stated]
    best = call("CheckMotion", images, motions=motions, cameras=cameras)["best"]
    off = np.nan if best is None else float(best != 0)
    return [*found, Measured("check motion: the right one of five", off, 0.5, "")]


def measure_homography(fact: Fact, images: Images) -> list[Measured]:
    """Mean distance of the corners, over the diagonal."""
    if len(images) != 2:
        return []
    told = call("EstimateHomographyMatrix", images)["homography_matrix"]
    corners = image_corners(*images[0].size)
    off = np.nan
    if told is not None:
        gap = np.linalg.norm(apply(np.array(told), corners) - apply(fact.truth_candidate.value, corners), axis=1)
        off = 100 * float(gap.mean()) / images[0].diagonal_px
    return [Measured("homography: corners", off, 1.0, "% of the diagonal")]


def measure_track(fact: Fact, images: Images) -> list[Measured]:
    """Distance from the right pixel, over the diagonal, and that of the epipolar line."""
    query = [float(x) for x in fact.truth_candidate.show["query"]]
    truth = fact.truth_candidate.value
    told = call("TrackPoint", images, point=query)["tracks"][0]["point"]
    off = np.nan if told is None else float(np.linalg.norm(np.array(told) - truth))
    line = call("EpipolarLine", images, point=query, candidates=[truth.tolist()])
    beside = line["distances_px"][0] if line["line"] is not None else np.nan
    share = 100 / images[1].diagonal_px
    return [
        Measured("track", share * off, 1.0, "% of the diagonal"),
        Measured("epipolar line", share * beside, 1.0, "% of the diagonal"),
    ]


def measure_camera(fact: Fact, images: Images) -> list[Measured]:
    """The asked parameter: relative for focal lengths, over the long side for the centre, degrees for angles."""
    ask, truth = fact.ask, float(fact.truth_candidate.value[0])
    side = max(images[0].size)
    if ask in ("cx", "cy"):
        known = fact.truth_candidate.evidence
        other = {"cx": "cy", "cy": "cx"}[ask]
        focal = float(np.sqrt(known["fx"] * known["fy"]))
        told = call(
            "EstimateCameraFromVanishingPoints",
            images,
            focal_px=focal,
            centre_is_middle=False,
            **{other: float(known[other])},
        )
        point = told["principal_point"]
        off = np.nan if point is None else 100 * abs(point["xy".index(ask[1])] - truth) / side
        return [Measured("camera: principal point", off, 5.0, "% of the long side")]
    told = call("EstimateCameraFromVanishingPoints", images)
    value = told["focal_px"] if ask in ("fx", "fy") else told.get(f"{ask}_deg")
    if ask in ("fx", "fy"):
        off = np.nan if value is None else 100 * abs(value / truth - 1)
        return [Measured("camera: focal length", off, 10.0, "%")]
    return [Measured("camera: field of view", np.nan if value is None else abs(value - truth), 5.0, "degrees")]


MEASURES: dict[str, Callable[[Fact, Images], list[Measured]]] = {
    "relative_pose": measure_pose,
    "homography_to_matrix": measure_homography,
    "point_tracking": measure_track,
    "camera_parameters": measure_camera,
}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="bench.tool_accuracy", description=__doc__)
    parser.add_argument("dataset", help="folder of a built dataset")
    parser.add_argument("--questions", type=int, default=200, help="of each task")
    parser.add_argument("--skip", type=int, default=0, help="facts of each task that are passed over first")
    arguments = parser.parse_args()
    data = load(arguments.dataset)
    asked: Counter[str] = Counter()
    seen: set[str] = set()
    measured: defaultdict[str, list[Measured]] = defaultdict(list)
    for row, item in enumerate(data):
        measure = MEASURES.get(item.task)
        if measure is None or item.group_id in seen or asked[item.task] >= arguments.skip + arguments.questions:
            continue
        seen.add(item.group_id)
        asked[item.task] += 1
        if asked[item.task] <= arguments.skip:
            continue
        images = [Image(data.image_bytes(row, place)) for place in range(len(item.images))]
        for one in measure(rebuild_fact(item), images):
            measured[one.name].append(one)
    print("| what | calls | cannot tell | median error | 95 % of errors | right among told | right means within |")
    print("|---|---|---|---|---|---|---|")
    for name in sorted(measured):
        all_of = measured[name]
        errors = np.array([one.error for one in all_of])
        told = errors[np.isfinite(errors)]
        if len(told) == 0:
            print(f"| {name} | {len(errors)} | 100 % | | | | |")
            continue
        one = all_of[0]
        print(
            f"| {name} | {len(errors)} | {1 - len(told) / len(errors):.0%} | {np.median(told):.2g} {one.unit} "
            f"| {np.quantile(told, 0.95):.2g} | {(told <= one.within).mean():.1%} | {one.within:g} {one.unit} |"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
