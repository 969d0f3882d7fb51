"""Whether what a tool gave is near enough to what the row reveals to lead to its answer.

A result is known by its fields, whichever tier it came from: rotation and translation_direction, homography_matrix,
depths, results with a depth each, tracks, intrinsic or focal_px. How near is near enough is the task's own
(`tasks.revealed`): half of the margin between two options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from vgbench_gen.core.types import FloatArray, Item
from vgbench_gen.evaluation.background import reveal_item
from vgbench_gen.geometry import homography, poses
from vgbench_gen.tasks.revealed import Revealed, is_same_rect

_SAME_PIXEL_PX = 3.0


def reveal_traced(item: Item, trace: Mapping[str, Any]) -> Revealed | None:
    """What the row of a question reveals of the images of a trace, in their numbers there; images are known by their
    digests, so that their order, and images of other questions among them, do not matter. None where nothing is."""
    revealed = reveal_item(item)
    if revealed is None:
        return None
    place = {PurePath(name).stem: k for k, name in enumerate(item.images)}
    images = trace.get("images")
    listed = images if isinstance(images, Sequence) and not isinstance(images, str) else ()
    digests = [image.get("digest") if isinstance(image, Mapping) else None for image in listed]
    return revealed.renumber([place.get(digest) if isinstance(digest, str) else None for digest in digests])


def judge_step(step: Mapping[str, Any], revealed: Revealed) -> bool | None:
    """Whether the result of a call is right; None where the row does not tell, or the tool said that it cannot.

    Args:
        step: a step of a trace; anything may stand in it.
        revealed: with the numbers of the trace's images, see `reveal_traced`.
    """
    arguments, values = step.get("arguments"), step.get("values")
    if step.get("step") != "tool" or not isinstance(arguments, Mapping) or not isinstance(values, Mapping):
        return None
    found: list[bool] = []
    for field, judge in _JUDGES.items():
        if values.get(field) is not None:
            try:
                found += judge(arguments, values, revealed)
            except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, np.linalg.LinAlgError):
                continue  # not in the form of our tools
    return all(found) if found else None


def _judge_motion(arguments: Mapping[str, Any], values: Mapping[str, Any], revealed: Revealed) -> list[bool]:
    pair, R = _read_images(arguments)[:2], _read_numbers(values["rotation"], (3, 3))
    found = []
    for one in revealed.motions:
        if pair not in ([one.first, one.second], [one.second, one.first]):
            continue
        motion = one.second_from_first
        motion = motion if pair[0] == one.first else poses.invert(motion)
        found.append(float(poses.rotation_angle_deg(R @ motion[:3, :3].T)) <= one.allowed_rotation_deg)
        if values.get("translation_direction") is not None and np.linalg.norm(motion[:3, 3]) > 0:
            t = _read_numbers(values["translation_direction"], (3,))
            found.append(float(poses.angle_between_deg(t, motion[:3, 3])) <= one.allowed_direction_deg)
    return found


def _judge_homography(arguments: Mapping[str, Any], values: Mapping[str, Any], revealed: Revealed) -> list[bool]:
    pair, H = _read_images(arguments)[:2], _read_numbers(values["homography_matrix"], (3, 3))
    found = []
    for one in revealed.homographies:
        if pair not in ([one.first, one.second], [one.second, one.first]):
            continue
        truth = one.H if pair[0] == one.first else np.linalg.inv(one.H)
        corners = homography.image_corners(*one.size)
        off_px = np.linalg.norm(homography.apply(H, corners) - homography.apply(truth, corners), axis=1).mean()
        found.append(bool(off_px <= one.allowed_px))
    return found


def _judge_depths(arguments: Mapping[str, Any], values: Mapping[str, Any], revealed: Revealed) -> list[bool]:
    (place,), rects = _read_images(arguments), _read_rects(arguments)
    found = []
    for rect, depth_m in zip(rects, values["depths"], strict=True):
        for one in revealed.regions:
            if one.image == place and is_same_rect(one.rect_px, rect):
                found.append(_is_within(depth_m, one.mean_m, one.allowed_ratio))
    return found


def _judge_objects(arguments: Mapping[str, Any], values: Mapping[str, Any], revealed: Revealed) -> list[bool]:
    (place,), found = _read_images(arguments), []
    seen = [one for one in revealed.objects if one.image == place]
    for result in values["results"]:
        if result.get("depth") is None:
            continue
        rect = result.get("bbox")
        fitting = [one for one in seen if rect is not None and is_same_rect(one.rect_px, rect)]
        if rect is None:
            words = str(result.get("object", "")).casefold()
            fitting = [one for one in seen if words and words in one.name.casefold()]
        if len(fitting) == 1:
            depth_m = float(fitting[0].corners_m[:, 2].mean())
            found.append(_is_within(result["depth"], depth_m, fitting[0].allowed_ratio))
    return found


def _judge_tracks(arguments: Mapping[str, Any], values: Mapping[str, Any], revealed: Revealed) -> list[bool]:
    first, *others = _read_images(arguments)
    point, found = _read_numbers(arguments["point"], (2,)), []
    for second, told in zip(others, values["tracks"], strict=True):
        for one in revealed.tracks:
            ends = {(one.first, one.second): (one.first_px, one.second_px)}
            ends[one.second, one.first] = (one.second_px, one.first_px)
            start, end = ends.get((first, second), (None, None))
            if start is None or end is None or told.get("point") is None:
                continue
            if np.linalg.norm(point - start) <= _SAME_PIXEL_PX:
                found.append(bool(np.linalg.norm(_read_numbers(told["point"], (2,)) - end) <= one.allowed_px))
    return found


def _judge_camera(arguments: Mapping[str, Any], values: Mapping[str, Any], revealed: Revealed) -> list[bool]:
    (place,) = _read_images(arguments)
    if values.get("intrinsic") is not None:
        K = _read_numbers(values["intrinsic"], (3, 3))
        focal_px = math.sqrt(K[0, 0] * K[1, 1])
    else:
        focal_px = float(np.mean(np.asarray(values["focal_px"], dtype=np.float64)))
    return [
        _is_within(focal_px, math.sqrt(one.camera.fx * one.camera.fy), one.allowed_ratio)
        for one in revealed.cameras
        if one.image == place and one.allowed_ratio is not None
    ]


_JUDGES: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any], Revealed], list[bool]]] = {
    "rotation": _judge_motion,
    "homography_matrix": _judge_homography,
    "depths": _judge_depths,
    "results": _judge_objects,
    "tracks": _judge_tracks,
    "intrinsic": _judge_camera,
    "focal_px": _judge_camera,
}


def _read_images(arguments: Mapping[str, Any]) -> list[int]:
    given = arguments["image"]
    names = [given] if isinstance(given, str) else given
    return [int(str(name).removeprefix("image-")) for name in names]


def _read_rects(arguments: Mapping[str, Any]) -> list[Sequence[float]]:
    given = arguments["bboxes"]
    return [given] if given and isinstance(given[0], int | float) else list(given)


def _read_numbers(value: Any, shape: tuple[int, ...]) -> FloatArray:
    found = np.asarray(value, dtype=np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"found numbers of shape {found.shape}; expected {shape}")
    return found


def _is_within(value: Any, truth: float, allowed_ratio: float) -> bool:
    return float(value) > 0 and abs(math.log(float(value) / truth)) <= math.log(allowed_ratio)
