"""Every answer about written sample scenes against the renderer's own truth.

Scenes are written to disk with the errors of their sensors, read by the loaders, measured and asked about as any scan
is. What is then checked is what a reader of an item gets: words, pictures, options, answer. The truth comes from the
take the scene was written from (`exact_truth`), never from a loader's depth, pose or box, nor from a task's own code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.lenient import without_lines
from tests.samples.asked import CLEAR, K_OFF_PX, Asked, decoded, looks_alike, numbers, only_marked
from tests.samples.exact_truth import (
    ExactScene,
    around_its_faces,
    box_iou,
    box_off_m,
    corners_off_m,
    cropped,
    turn_deg,
    warp_off,
)
from tests.samples.read_words import read_box, read_motion, read_warp
from vgbench_gen import build, load
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.pipeline.recipe import Limits, load_recipe
from vgbench_gen.samples.base import Capture, SampleObject, SampleSpec
from vgbench_gen.samples.captures import make_capture
from vgbench_gen.samples.make import list_default_specs, make_samples

# What printing alone moves: half of the last digit.
PRINTED_M = 0.005
PRINTED_PX = 0.5
PRINTED_CORNER_PX = 0.075
PRINTED_DEG = 0.05  # fields of view
PRINTED_TURN_DEG = 0.1  # three turns, each off by up to 0.05 degrees
PRINTED_POINT_M = PRINTED_M * 3**0.5 + 1e-6
TOLD_BOX_M = PRINTED_POINT_M * 1.5 + 0.003  # half a centimeter of the centre and of each side, and the turn
CLAIMED_PERCENT = {"object_distance": 20}  # ten elsewhere: where the centre of a box lies is seen less well
ORDER_GAP_M = 0.25  # between the farthest and the next of four regions
POINTS_APART = 0.06  # of the diagonal, at least
# A step in depth that a sensor cannot be trusted to see: 3 cm, or a hundredth (laser) or a fiftieth of the distance.
HIDDEN_M = 0.03
HIDDEN = {"ca1m": 0.01, "scannet": 0.02, "scannetpp": 0.02, "wildrgbd": 0.02}
MISSING = 0.1  # of a region's pixels may be without depth, those at the far end or the near one
FITTED_BOX_M = 0.02  # of a box fitted to points some centimeters apart, beside what it leaves out


def mean_error_m(dataset: str, z_m: float) -> float:
    """Of the mean depth of a region, as the sensor models of the samples state it, three sigma: a laser's half
    millimeter averages out, but not the rounding to whole ones; structured light errs at random by 1.6 mm z^2, of
    which averaging over a hundred pixels leaves a third; what a phone's LiDAR errs by is alike over a whole region."""
    if dataset == "ca1m":
        return 0.001
    return 0.5 * 1.6e-3 * z_m**2 if dataset == "scannet" else 3 * (1.5e-3 + 2e-3 * z_m)


def point_error_m(dataset: str, z_m: float) -> float:
    """Of one depth pixel, three sigma and the rounding to millimeters."""
    if dataset == "ca1m":
        return 3 * 5e-4 + 5e-4
    return 5e-4 + 3 * (1.6e-3 * z_m**2 if dataset == "scannet" else 1.5e-3 + 2.1e-3 * z_m)


# -- the ten tasks ----------------------------------------------------------------------------------------------------


def metric_depth(asked: Asked) -> float:
    truth, at_most = region(asked, asked.rects[0], np.mean)
    return scalar(asked, truth, at_most)


def region(asked: Asked, rect: Sequence[int], statistic: Callable[[FloatArray], Any]) -> tuple[float, float]:
    """(exact mean or median of a region's depth, what a sensor may be off by that misses `MISSING` of the pixels)."""
    depths = np.sort(asked.shown(0).region_m(rect))
    few = int(MISSING * len(depths))
    truth, low, high = (float(statistic(part)) for part in (depths, depths[: len(depths) - few], depths[few:]))
    return truth, PRINTED_M + mean_error_m(asked.item.source, truth) + max(truth - low, high - truth)


def object_distance(asked: Asked) -> float:
    a, b = (framed(asked, rect) for rect in asked.rects)
    assert a.item is not b.item
    truth = float(np.linalg.norm(a.item.box.center_m - b.item.box.center_m))
    # Points left out at one end alone move the centre by half of it.
    return scalar(asked, truth, PRINTED_M + 1e-6 + (a.fitted_m + b.fitted_m) / 2)


@dataclass(eq=False)
class Framed:
    """corners_m: of the exact box in the camera. fitted_m: what a box fitted to the mesh may lack at one end."""

    item: SampleObject
    corners_m: FloatArray
    fitted_m: float


def framed(asked: Asked, rect: Sequence[int]) -> Framed:
    if asked.item.source == "ca1m":  # the boxes are given
        return Framed(*asked.shown(0).framed(rect), 0.0)
    item, corners = asked.shown(0).framed(rect, at_least=0.6)
    return Framed(item, corners, asked.scene.cut_off_m(item) + FITTED_BOX_M)


def scalar(asked: Asked, truth: float, at_most: float) -> float:
    """A positive number; claims hold to the share that they state. Returns the answer's error over what is allowed."""
    off = abs(asked.item.answer_value[0] - truth)
    assert off <= at_most, f"says {asked.item.answer_value[0]}, is {truth:.4f}; allowed {at_most:.4f}"
    if asked.item.question_type == "multi-choice":
        asked.nearest_is_right([abs(option[0] - truth) for option in asked.options()], at_most)
    elif asked.item.question_type == "judgment":
        # Read either way, as a share of the truth or of the claim.
        yes, claim = asked.item.answer == "Yes", float(asked.claimed[0])
        percent, unit = asked.stated_tolerance
        assert (percent, unit) == (CLAIMED_PERCENT.get(asked.item.task, 10), "percent")
        asked.holds(abs(claim - truth) / (min if yes else max)(claim, truth), percent / 100)
    else:
        assert numbers(asked.item.answer).tolist() == [asked.item.answer_value[0]]
    return off / at_most


def camera_parameters(asked: Asked) -> float:
    (op,) = asked.item.evidence["pictures"][0]["ops"]
    frame, ask = asked.shown(0), asked.item.ask
    camera = cropped(frame.camera, op["rect"], op["size"])
    assert asked.picture(0).shape[:2] == (camera.height, camera.width)
    looks_alike(asked.picture(0), camera, frame)
    axis = 0 if ask in ("fx", "cx", "hfov") else 1
    focal, centre, side = camera.K[axis, axis], camera.K[axis, 2], camera.size[axis]
    edges = np.degrees(np.arctan((np.array([-0.5, side - 0.5]) - centre) / focal))
    truth = float({"f": focal, "c": centre}.get(ask[0], edges[1] - edges[0]))
    at_most = (PRINTED_DEG if ask.endswith("fov") else PRINTED_PX) + 2 * K_OFF_PX
    if asked.item.question_type == "judgment" and ask[0] == "c":
        pixels, unit = asked.stated_tolerance
        assert unit == "pixels"
        assert abs(pixels - 0.04 * side) <= 0.5
        asked.holds(abs(asked.claimed[0] - truth), pixels)
        return abs(asked.item.answer_value[0] - truth) / at_most
    return scalar(asked, truth, at_most)


def relative_depth(asked: Asked) -> float:
    regions = asked.marks
    medians, allowed = {}, {}
    for n, rect in regions.items():
        medians[n], allowed[n] = region(asked, rect, np.median)
    assert len(medians) == 4
    sign = {"deepest": 1, "nearest": -1}[asked.item.ask]
    assert ("farthest" in asked.item.question) is (sign > 0)
    order = sorted(medians, key=lambda n: -sign * medians[n])
    assert asked.item.options[asked.right] == order[0], f"is {order[0]} of {medians}"
    first, second = order[:2]
    gap = abs(medians[first] - medians[second])
    assert gap > ORDER_GAP_M - allowed[first] - allowed[second], f"{gap:.3f} m apart"
    off = abs(asked.item.answer_value[0] - medians[first])
    assert off <= allowed[first], f"says {asked.item.answer_value[0]:.3f}, is {medians[first]:.3f}"
    return off / allowed[first]


def object_location(asked: Asked) -> float:
    found = framed(asked, asked.rects[0])
    at_most = PRINTED_POINT_M + found.fitted_m
    off = box_off(np.array(asked.item.answer_value), found)
    assert off <= at_most, f"{found.item.label}: {off:.4f} m off, allowed {at_most:.4f}"
    if asked.item.question_type == "multi-choice" and found.fitted_m:
        # Options may differ in heading or in which side is which alone, so corners are compared, except of what is
        # about as long as wide: its heading is nobody's to know, and it is asked by depth and thickness.
        width, depth = sorted(found.item.box.size_m[:2])
        measure = box_off if depth < 1.2 * width else corner_off
        asked_off = [measure(read_box(option, asked.up), found) for option in asked.item.options]
        right = asked_off.pop(asked.right)
        assert 1.5 * right < min(asked_off), f"the right option is {right:.3f} off, a wrong one {min(asked_off):.3f}"
    elif asked.item.question_type == "multi-choice":
        told_off = [box_off(read_box(option, asked.up), found) for option in asked.item.options]
        asked.nearest_is_right(told_off, TOLD_BOX_M)
    elif found.fitted_m:
        # True claims are moved and stretched by 3 % of the sides; false ones stand a fifth nearer or farther.
        said = box_off(read_box(asked.item.question, asked.up), found)
        allowed = TOLD_BOX_M + found.fitted_m + 0.03 * float(np.linalg.norm(found.item.box.size_m))
        yes = asked.item.answer == "Yes"
        assert said <= allowed if yes else said > 1.5 * allowed, f"{asked.item.answer} at {said:.3f} m"
    else:
        # "Up to small measurement error": three quarters in common, or as little as detectors count for a miss.
        iou = box_iou(found.item, read_box(asked.item.question, asked.up), asked.shown(0))
        assert iou >= 0.73 if asked.item.answer == "Yes" else iou <= 0.17, f"{asked.item.answer} at {iou:.2f}"
    return off / at_most


def corner_off(corners: FloatArray, found: Framed) -> float:
    return corners_off_m(corners.reshape(8, 3), found.corners_m)


def box_off(corners: FloatArray, found: Framed) -> float:
    corners_m = corners.reshape(8, 3)
    assert around_its_faces(corners_m), f"corners in another order: {corners_m.tolist()}"
    if found.fitted_m:
        return box_off_m(corners_m, found.item, found.corners_m)
    return corners_off_m(corners_m, found.corners_m)


def relative_pose(asked: Asked) -> float:
    exact = asked.shown(0).motion_to(asked.shown(1))
    off = pose_off(np.array(asked.item.answer_value).reshape(3, 4), exact)
    assert off <= 1, f"off by {off:.2f} of what printing leaves"
    if asked.item.question_type == "multi-choice":
        asked.nearest_is_right([pose_off(read_motion(option), exact) for option in asked.item.options], 1)
        return off
    said = numbers(asked.item.question)
    assert {5.0, 0.1} <= set(said.tolist())
    claim = read_motion(asked.item.question)
    assert np.allclose(claim, asked.item.evidence["claim"]["value"], atol=1e-6)
    asked.holds(max(turn_deg(claim, exact) / 5.0, float(np.linalg.norm(place(claim) - place(exact))) / 0.1), 1)
    return off


def view_after_motion(asked: Asked) -> float:
    stated = np.array(asked.item.answer_value).reshape(3, 4)
    assert np.allclose(read_motion(asked.item.question), stated, atol=1e-6)
    pictures = [int(option[0]) - 1 for option in asked.options()]
    assert sorted(pictures) == [1, 2, 3, 4]
    off = [pose_off(stated, asked.shown(0).motion_to(asked.shown(k))) for k in pictures]
    asked.nearest_is_right(off, 1)
    return off[asked.right]


def place(motion: FloatArray) -> FloatArray:
    """(3,) where the second camera of [R|t] stands, in the first one."""
    return np.asarray(-motion[:, :3].T @ motion[:, 3])


def pose_off(value: FloatArray, exact: FloatArray) -> float:
    """Difference of two [R|t] over what printing moves."""
    shift_m = float(np.linalg.norm(place(value) - place(exact)))
    return max(turn_deg(value, exact) / PRINTED_TURN_DEG, shift_m / PRINTED_POINT_M)


def point_tracking(asked: Asked) -> float:
    first, second = asked.shown(0), asked.shown(1)
    u, v = (int(x) for x in re.findall(r"\((\d+), (\d+)\)", asked.item.question)[0])
    z = float(first.cast[0][v, u])
    # Depth is measured on a coarser grid: any depth within half of its pixels may have been taken, and some error.
    reach = {"ca1m": 1, "scannet": 1, "scannetpp": 2, "wildrgbd": 2}[asked.item.source]
    near = first.cast[0][max(v - reach, 0) : v + reach + 1, max(u - reach, 0) : u + reach + 1]
    error = point_error_m(asked.item.source, z)
    depths = np.array([z, near[near > 0].min() - error, near.max() + error])
    motion = first.motion_to(second)
    moved = (first.rays(np.array([[u, v]], np.float64)) * depths[:, None]) @ motion[:, :3].T + motion[:, 3]
    truth, low, high = second.pixels(moved)
    allowed = float(max(np.linalg.norm(truth - low), np.linalg.norm(truth - high))) + 2**0.5 * PRINTED_PX + 0.05
    # A fifth of the least distance between two of the marked points, however steep the surface is.
    allowed = min(allowed, 0.2 * POINTS_APART * float(np.hypot(*second.camera.size)))
    # The second picture shows that very point, not something before it.
    row, column = (int(x) for x in np.rint(truth[::-1]))
    around = second.cast[0][max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
    behind, unseen = float(np.abs(around - moved[0, 2]).min()), HIDDEN[asked.item.source] * float(moved[0, 2])
    assert behind < max(HIDDEN_M, unseen) + error, f"hidden: {moved[0, 2]:.3f} m deep, seen {around.min():.3f} m"
    points = {n: float(np.linalg.norm(np.subtract(uv, truth))) for n, uv in asked.marks.items()}
    if asked.item.question_type == "multi-choice":
        asked.nearest_is_right([points[name] for name in asked.item.options], allowed)
        return points[asked.item.options[asked.right]] / allowed
    assert len(points) == 2
    (named,) = (name for name in points if name in asked.item.question)
    (other,) = (off for name, off in points.items() if name != named)
    yes, no = (points[named], other) if asked.item.answer == "Yes" else (other, points[named])
    assert yes <= allowed, f"{asked.item.answer}: {yes:.2f} px off, allowed {allowed:.2f}"
    assert no > CLEAR * allowed, f"{asked.item.answer}: the other point is {no:.2f} px off"
    return yes / allowed


# Both pictures have one sharpness, so a source that is warped here is softer or sharper than the warped one.
SOFT_CLEAR = 3.0


def homography_to_matrix(asked: Asked) -> float:
    back = asked.side == "inverse"  # then the second picture is the source of the first one
    source, warped = (asked.picture(k) for k in ((1, 0) if back else (0, 1)))
    size = asked.picture(0).shape[1::-1]
    matrices = [read_warp(option, *size) for option in asked.item.options]
    off = [warp_off(source, np.asarray(np.linalg.inv(H)) if back else H, warped) for H in matrices]
    H = np.array(asked.item.answer_value).reshape(3, 3)
    assert corner_gap_px(matrices[asked.right], H, size) <= PRINTED_CORNER_PX
    asked.nearest_is_right(off, 4, SOFT_CLEAR)
    return off[asked.right] / 4


def corner_gap_px(a: FloatArray, b: FloatArray, size: Sequence[int]) -> float:
    """Largest distance between where two warps send a corner of an image."""
    right, bottom = size[0] - 1, size[1] - 1
    corners = np.array([[[0, 0], [right, 0], [right, bottom], [0, bottom]]], np.float64)
    return float(
        np.linalg.norm(cv2.perspectiveTransform(corners, a) - cv2.perspectiveTransform(corners, b), axis=2).max()
    )


def homography_to_image(asked: Asked) -> float:
    H = np.array(asked.item.answer_value).reshape(3, 3)
    source = asked.picture(0)
    told = read_warp(asked.item.question, *source.shape[1::-1])
    assert corner_gap_px(told, H, source.shape[1::-1]) <= PRINTED_CORNER_PX
    off = [warp_off(source, H, asked.picture(int(option[0]) - 1)) for option in asked.options()]
    asked.nearest_is_right(off, 4, SOFT_CLEAR)
    return off[asked.right] / 4


TASKS: dict[str, Callable[[Asked], float]] = {
    check.__name__: check
    for check in (
        metric_depth,
        relative_depth,
        object_distance,
        object_location,
        camera_parameters,
        relative_pose,
        view_after_motion,
        point_tracking,
        homography_to_matrix,
        homography_to_image,
    )
}
FORMS = {
    ("judgment", "multi-choice", "open-ended"): ("metric_depth", "object_distance", "camera_parameters"),
    ("judgment", "multi-choice"): ("object_location", "relative_pose", "point_tracking"),
    ("multi-choice",): ("relative_depth", "view_after_motion", "homography_to_matrix", "homography_to_image"),
}
# From where else a task asks its truth again.
SIDES = {
    "inverse": ("relative_pose", "homography_to_matrix"),
    "swap": ("object_distance",),
}


# -- worlds -----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class World:
    """Written scenes and the items made from them."""

    raw: Path
    out: Path
    takes: dict[tuple[str, str], Capture] = field(default_factory=dict)

    def made(self, specs: Sequence[SampleSpec], scale: float, facts: int) -> World:
        """scale: of the cameras, over those of the samples. facts: of one task and scene."""
        for spec in specs:
            capture = make_capture(spec)
            size = [round(side * scale) for side in capture.camera.size]
            camera = cropped(capture.camera, (0, 0, *capture.camera.size), size)
            self.takes[spec.dataset, spec.scene_id] = replace(capture, camera=camera)
        make_samples(specs, self.raw, film=lambda spec: self.takes[spec.dataset, spec.scene_id])
        # Half of the choices and open-ended items in pairs, so that every task is asked from its other side too.
        recipe = load_recipe("default")
        # Cameras are asked about whatever the lines of these few frames say: answers are true or false all the same.
        changed = {
            "facts_per_scene": facts,
            "pairs": 0.5,
            "gates": without_lines(recipe.gates),
            "limits": Limits(forms_per_fact=3),
        }
        build(recipe.model_copy(update=changed), self.raw, self.out)
        return self

    def check(self) -> tuple[Counter[str], list[str], dict[str, list[float]]]:
        """(items per "task/form/source", "task/ask/" and "task/side/", problems, errors over what is allowed per
        "task/source")."""
        data = load(self.out)
        scenes = {key: ExactScene(capture, key[0], self._photographs(key[1])) for key, capture in self.takes.items()}
        base = lru_cache(24)(self._base)
        true_bases: set[str] = set()
        counts: Counter[str] = Counter()
        problems: list[str] = []
        errors: dict[str, list[float]] = {}
        for item in data:
            asked = Asked(item, scenes[item.source, item.scene_id], partial(data.image_bytes, item))
            counts[f"{item.task}/{item.question_type}/{item.source}"] += 1
            counts[f"{item.task}/{item.ask or item.question_type}/"] += 1
            counts[f"{item.task}/{item.evidence['side'] or 'first'}/"] += 1
            try:
                for frame_id, name in item.evidence["bases"].items():
                    frame = asked.frames[frame_id]
                    if name not in true_bases:
                        looks_alike(base(name), frame.camera, frame)
                        true_bases.add(name)
                for k, shown in enumerate(item.evidence["pictures"]):
                    if not any("size" in op for op in shown["ops"]):
                        only_marked(asked.picture(k), base(shown["base"]))
                errors.setdefault(f"{item.task}/{item.source}", []).append(TASKS[item.task](asked))
            except AssertionError as error:
                problems.append(f"{item.task} {item.question_type} {item.source} {item.evidence['key']}: {error}")
        return counts, problems, errors

    def _photographs(self, scene_id: str) -> list[str]:
        return sorted(p.stem for p in (self.raw / "samples-scannetpp" / "data" / scene_id / "resized_images").glob("*"))

    def _base(self, name: str) -> ColorArray:
        return decoded((self.out / "media" / name[:2] / name).read_bytes())


def missing(counts: Counter[str], datasets: Collection[str]) -> list[str]:
    """Tasks that no item of a dataset has, forms and kinds that none has at all: what nothing reaches is not tested."""
    wanted = {f"{task}/{form}" for forms, names in FORMS.items() for task in names for form in forms}
    wanted |= {f"camera_parameters/{ask}" for ask in ("fx", "fy", "cx", "cy", "hfov", "vfov")}
    wanted |= {"relative_depth/deepest", "relative_depth/nearest"}
    sides = {side: {f"{task}/{side}" for task in names} for side, names in SIDES.items()}
    reached = {key.rpartition("/")[0] for key in counts}
    wanted = wanted.union(*sides.values()) - reached
    have = {(key.partition("/")[0], key.rpartition("/")[2]) for key in counts}
    tasks = {(task, dataset) for task in TASKS for dataset in datasets}
    tasks -= {(task, dataset) for task, dataset in tasks if task.startswith("object") and dataset != "ca1m"}
    return sorted(wanted) + [f"{task} of {dataset}" for task, dataset in sorted(tasks - have)]


def report(problems: Sequence[str], counts: Counter[str]) -> str:
    tally = Counter(problem.split(" ", 1)[0] for problem in problems)
    return f"{len(problems)} of {counts.total() // 3} items: {dict(tally)}\n" + "\n".join(problems[:20])


def test_answers_are_true(tmp_path: Path) -> None:
    # So short that depth is asked in all forms.
    specs = list_default_specs({"ca1m": 1, "wildrgbd": 1}, seed=11, frames=11)
    counts, problems, _ = World(tmp_path / "raw", tmp_path / "out").made(specs, 0.5, 9).check()
    assert not problems, report(problems, counts)
    assert not missing(counts, ("ca1m", "wildrgbd"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_answers_are_true_in_every_layout(tmp_path: Path) -> None:
    chosen = {"ca1m": (0, 1), "scannet": (0,), "scannetpp": (0, 1), "wildrgbd": (0,)}  # ScanNet++: a phone and a camera
    everything = list_default_specs({name: max(numbers) + 1 for name, numbers in chosen.items()}, seed=4, frames=20)
    specs = [spec for spec in everything if spec.number in chosen[spec.dataset]]
    counts, problems, _ = World(tmp_path / "raw", tmp_path / "out").made(specs, 1.0, 24).check()
    assert not problems, report(problems, counts)
    assert not missing(counts, chosen)
