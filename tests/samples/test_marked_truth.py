"""Answers about framed objects and regions, about two views, and in drawings, against the renderer's own truth: exact
depth, poses, masks and boxes of the take. Nothing comes from what a loader read, nor from a task's code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise, permutations, product
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.spatial import cKDTree

from tests.samples.asked import Asked
from tests.samples.compare_answers import compare_answers
from tests.samples.exact_truth import ExactFrame
from vgbench_gen.core.types import FloatArray
from vgbench_gen.samples.base import SampleObject
from vgbench_gen.samples.make import list_default_specs

Masks = dict[str, np.ndarray]

INKS = {"orange": (220, 105, 0), "blue": (10, 50, 220), "yellow": (255, 255, 30), "green": (40, 215, 90)}
INKS["pink"] = (245, 135, 205)
DRAWING_PX = 400
FACTS_MIN = {"size_comparison": 12, "height_comparison": 10, "orthographic_view": 5}  # of each other kind 12
FACTS_MIN |= {"object_size": 5, "object_gap": 5}
COLOR = rf"\b({'|'.join(INKS)})\b"
TALLER, HIGHER_M = 1.2, 0.06  # by what the right object exceeds the other one at least
STEP_M, STEP_SHARE = 0.12, 0.09  # between two depths that follow one another: meters, or of the nearer one


# -- framed objects and regions ---------------------------------------------------------------------------------------


def list_framed(asked: Asked) -> dict[str, SampleObject]:
    """Color of a rectangle in the first picture -> the object that it frames; boxes of ScanNet are fitted ones."""
    ops = [op for op in asked.item.evidence["pictures"][0]["ops"] if op["op"] == "region"]
    at_least = 0.93 if asked.item.source == "ca1m" else 0.6
    return {op["color"]: asked.shown(0).framed(op["rect"], at_least)[0] for op in ops}


def check_larger(asked: Asked, sizes: dict[str, float], clear: Callable[[float, float], bool]) -> None:
    """The color that is said to have the larger of two sizes has it."""
    larger, smaller = sorted(sizes, key=lambda color: -sizes[color])
    assert clear(sizes[larger], sizes[smaller]), sizes
    if asked.item.question_type == "judgment":
        (said,) = re.findall(rf"the object in the {COLOR} rectangle", asked.item.question)
        assert (asked.item.answer == "Yes") == (said == larger), f"{asked.item.answer} to {said} of {sizes}"
    else:
        assert re.findall(COLOR, asked.item.options[asked.right]) == [larger], sizes


def size_comparison(asked: Asked) -> None:
    sizes = {color: float(one.box.size_m[2]) for color, one in list_framed(asked).items()}  # upright boxes
    check_larger(asked, sizes, lambda larger, smaller: larger > TALLER * smaller)


def height_comparison(asked: Asked) -> None:
    tops = {color: float(one.box.center_m[2] + one.box.size_m[2] / 2) for color, one in list_framed(asked).items()}
    check_larger(asked, tops, lambda higher, lower: higher > lower + HIGHER_M)


def read_meters(asked: Asked) -> float:
    return float((asked.item.options[asked.right] if asked.item.options else asked.item.answer).split()[0])


def object_size(asked: Asked) -> None:
    (one,) = list_framed(asked).values()
    assert read_meters(asked) == pytest.approx(float(np.max(one.box.size_m)), rel=0.05, abs=0.03)


def object_gap(asked: Asked) -> None:
    """By points all over both boxes."""
    steps = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 25)] * 3), axis=-1).reshape(-1, 3)
    boxes = [one.box for one in list_framed(asked).values()]
    a, b = (box.center_m + (steps * box.size_m) @ box.rotation.T for box in boxes)
    assert read_meters(asked) == pytest.approx(float(np.min(cKDTree(a).query(b)[0])), rel=0.05, abs=0.08)


def camera_from_camera(asked: Asked) -> None:
    first, second = (asked.shown(k).pose for k in range(2))
    moved = first[:3, :3].T @ (second[:3, 3] - first[:3, 3])
    ways = ["ahead", "ahead to the right", "straight to the right", "behind to the right", "behind"]
    ways += ["behind to the left", "straight to the left", "ahead to the left"]
    way = ways[round(float(np.degrees(np.arctan2(moved[0], moved[2]))) / 45) % 8]
    if asked.item.question_type == "judgment":
        assert (way in asked.item.question) == (asked.item.answer == "Yes"), way
    else:
        assert asked.item.options[asked.right] == way


def depth_order(asked: Asked) -> None:
    depth_m = {op["color"]: float(np.median(asked.shown(0).region_m(op["rect"]))) for op in asked.drawn}
    said = asked.item.options[asked.right].split(", ")
    assert said == sorted(depth_m, key=lambda color: depth_m[color]), depth_m
    for near, far in pairwise(said):
        assert depth_m[far] - depth_m[near] > max(STEP_M, STEP_SHARE * depth_m[near]), depth_m


def box_match(asked: Asked) -> None:
    first, second = asked.shown(0), asked.shown(1)
    (query,), framed = ([op for op in one["ops"] if op["op"] == "region"] for one in asked.item.evidence["pictures"])
    about, rects = find_masked(first, query["rect"]), {op["color"]: op["rect"] for op in framed}
    (right,) = re.findall(COLOR, asked.item.options[asked.right])
    shares = {color: measure_inside(second, about, rect) for color, rect in rects.items()}
    others = max(share for color, share in shares.items() if color != right)
    assert shares[right] > 0.95, f"of object {about}: {shares}"
    assert others < 0.7, f"of object {about}: {shares}"
    found = {color: find_masked(second, rect) for color, rect in rects.items()}
    assert found[right] == about, f"{found} for {about}"
    assert len({*found.values()}) == len(found), found


def find_masked(frame: ExactFrame, rect: Sequence[int]) -> int:
    """The instance whose box frames the rectangle and of which all that is seen lies in it."""
    item, _ = frame.framed(rect, 0.6)
    inside = measure_inside(frame, item.instance_id, rect)
    assert inside > 0.95, f"{inside:.3f} of {item.label} is in {rect}"
    return item.instance_id


def measure_inside(frame: ExactFrame, instance: int, rect: Sequence[int]) -> float:
    """Share of an instance's pixels that lie in a rectangle."""
    rows, columns = np.nonzero(frame.cast[1] == instance)
    x1, y1, x2, y2 = rect
    return float(((columns >= x1) & (columns <= x2) & (rows >= y1) & (rows <= y2)).mean())


# -- two views --------------------------------------------------------------------------------------------------------


def camera_motion_words(asked: Asked) -> None:
    """Where the second camera and a point ahead of it are in the first camera: x to the right, y down, z ahead."""
    first, second = (asked.shown(k).pose for k in range(2))
    moved = first[:3, :3].T @ (second[:3, 3] - first[:3, 3])
    ahead = first[:3, :3].T @ second[:3, 2]
    right_deg = float(np.degrees(np.arctan2(ahead[0], ahead[2])))
    up_deg = float(90 - np.degrees(np.arccos(-ahead[1])))
    parts = {"turned right": right_deg, "turned left": -right_deg, "tilted up": up_deg, "tilted down": -up_deg}
    ways = {"right": moved[0], "left": -moved[0], "down": moved[1], "up": -moved[1]}
    ways |= {"forward": moved[2], "backward": -moved[2]}
    parts |= {f"moved {way}": float(m) for way, m in ways.items()}

    def judge(text: str) -> list[bool]:
        said = re.findall(
            r"turned (?:left|right)|tilted (?:up|down)|moved (?:left|right|up|down|forward|backward)", text
        )
        assert len(said) == 2, text
        for words in said:  # what is said either way is clear
            clear = 9.5 if "moved" not in words else 0.55 * max(0.3, float(np.abs(moved).max()))
            assert abs(parts[words]) > clear, f"{words}: {parts[words]:.3f}"
        return [parts[words] > 0 for words in said]

    if asked.item.question_type == "judgment":
        assert all(judge(asked.item.question)) == (asked.item.answer == "Yes"), parts
    else:
        assert [all(judge(option)) for option in asked.item.options] == [k == asked.right for k in range(4)], parts


def camera_turn_angle(asked: Asked) -> None:
    """By how far the axes of both cameras are apart: |R1 - R2|² = 8 sin²(angle / 2)."""
    apart = np.linalg.norm(asked.shown(0).pose[:3, :3] - asked.shown(1).pose[:3, :3])
    angle_deg = 2 * np.degrees(np.arcsin(apart / 8**0.5))
    (tolerance_deg,) = (float(found) for found in re.findall(r"(\d+) degrees", asked.item.question))
    said = {"ten": 10, "twenty": 20, "thirty": 30, "forty": 40}

    def judge(text: str) -> bool:
        (word,) = re.findall("|".join(said), text)
        off_deg = abs(angle_deg - said[word])
        assert off_deg <= tolerance_deg or off_deg > 1.5 * tolerance_deg, f"{angle_deg:.2f} for {word}"
        return bool(off_deg <= tolerance_deg)

    if asked.item.question_type == "judgment":
        assert judge(asked.item.question) == (asked.item.answer == "Yes"), angle_deg
    else:
        assert [judge(option) for option in asked.item.options] == [k == asked.right for k in range(4)], angle_deg


# -- drawings ---------------------------------------------------------------------------------------------------------


def find_inks(asked: Asked, k: int) -> Masks:
    """Color that the question names -> (H, W) where the drawing that is picture k has it, up to its dark outline."""
    colors = [color for color in INKS if re.search(rf"\b{color}\b", asked.item.question)]
    off = np.stack([np.abs(asked.picture(k).astype(int) - ink).max(axis=2) for ink in INKS.values()])
    found: Masks = {}
    for color in colors:
        place = list(INKS).index(color)
        filled = ((off[place] < 60) & (off.argmin(axis=0) == place)).astype(np.uint8)
        _, parts, stats, _ = cv2.connectedComponentsWithStats(filled)  # around others, the coding leaves specks of it
        found[color] = parts == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
    return found


def measure_shared(one: np.ndarray, other: np.ndarray) -> float:
    return float((one & other).sum() / (one | other).sum())


def find_centers(masks: Masks, colors: Sequence[str]) -> FloatArray:
    """(n, 2) middles, x right and y down."""
    return np.array([np.argwhere(masks[color])[:, ::-1].mean(axis=0) for color in colors])


def read_options(asked: Asked) -> list[Masks]:
    return [find_inks(asked, int(option.removeprefix("image ")) - 1) for option in asked.item.options]


def draw_footprint(item: SampleObject, ahead: FloatArray) -> FloatArray:
    """(4, 2) the corners of a box from above, meters, for who looks along `ahead` (2,): x right, y back."""
    ahead = ahead / np.linalg.norm(ahead)
    corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * item.box.size_m / 2
    floor = (item.box.center_m + corners @ item.box.rotation.T)[:, :2]
    return np.column_stack([floor @ [ahead[1], -ahead[0]], -floor @ ahead])


def lay_on(plan: FloatArray, centers: FloatArray) -> tuple[FloatArray, float]:
    """(a plan (n, 4, 2) moved and scaled, but not turned, onto middles (n, 2); how far off its middles are, root mean
    square over theirs from their middle)."""
    own, aim = plan.mean(axis=1), centers.mean(axis=0)
    scale = np.linalg.norm(centers - aim) / np.linalg.norm(own - own.mean(axis=0))
    moved = (plan - own.mean(axis=0)) * scale + aim
    return moved, float(np.linalg.norm(moved.mean(axis=1) - centers) / np.linalg.norm(centers - aim))


def fill_footprint(corners_px: FloatArray) -> np.ndarray:
    """(H, W) the inside of an outline in a drawing, without its dark line."""
    filled = cv2.fillConvexPoly(np.zeros((DRAWING_PX, DRAWING_PX), np.uint8), np.rint(corners_px).astype(int), 1)
    return cv2.erode(filled, np.ones((3, 3), np.uint8)) > 0


def orthographic_view(asked: Asked) -> None:
    framed, off, shared = list_framed(asked), [], []
    plan = np.stack([draw_footprint(one, asked.shown(0).pose[:2, 2]) for one in framed.values()])
    for masks in read_options(asked):
        assert set(masks) == set(framed)
        moved, apart = lay_on(plan, find_centers(masks, list(framed)))
        filled = [fill_footprint(one) for one in moved]
        shared.append(min(measure_shared(one, masks[color]) for one, color in zip(filled, framed, strict=True)))
        off.append(apart)
    assert shared[asked.right] > 0.5, shared
    asked.nearest_is_right(off, 0.1)


def rotated_arrangement(asked: Asked) -> None:
    first = find_inks(asked, 0)
    check_layout(asked, first)
    alike = [
        [min(measure_shared(np.rot90(first[c], -turn), masks[c]) for c in first) for turn in range(4)]
        for masks in read_options(asked)
    ]
    for k, by_turn in enumerate(alike):
        assert max(by_turn[1:]) > 0.6 if k == asked.right else max(by_turn) < 0.4, alike
    assert alike[asked.right][0] < 0.4, alike


def check_layout(asked: Asked, masks: Masks) -> None:
    """The first drawing has boxes of the room from above, maybe mirrored, with two in each other's places."""
    if asked.item.source != "scannet":  # its objects are numbered
        return
    known = {f"{one.instance_id - 1}": one for one in asked.scene.capture.world.objects}
    shown = [known[name] for name in asked.item.evidence["key"].rpartition("objects:")[2].split("+")]
    (frame,), centers = asked.frames.values(), find_centers(masks, list(masks))
    plan = np.stack([draw_footprint(one, frame.pose[:2, 2]) for one in shown])
    off = [
        lay_on(plan[list(order)] * [side, 1], centers)[1]
        for order, side in product(permutations(range(len(shown))), (1, -1))
    ]
    assert min(off) < 0.1, f"no plan of {[one.label for one in shown]}: {min(off):.3f}"


CHECKS: dict[str, Callable[[Asked], None]] = {
    check.__name__: check
    for check in (
        size_comparison,
        height_comparison,
        object_size,
        object_gap,
        camera_from_camera,
        depth_order,
        box_match,
        camera_motion_words,
        camera_turn_angle,
        orthographic_view,
        rotated_arrangement,
    )
}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_answers_about_framed_objects_and_views_are_true(tmp_path: Path) -> None:
    rooms = [spec for spec in list_default_specs({"ca1m": 17}, frames=20) if spec.number in (5, 16)]
    counts = compare_answers([*rooms, *list_default_specs({"tour": 1}, frames=20)], CHECKS, tmp_path)
    assert not {kind: counts.get(kind) for kind in CHECKS if counts.get(kind, 0) < FACTS_MIN.get(kind, 12)}
