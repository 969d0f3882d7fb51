"""Answers about labelled objects against the renderer's own truth: what each frame shows by its instances, and where
the objects of the take and its cameras are. Nothing comes from what a loader read, nor from a task's code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from tests.samples.asked import Asked
from tests.samples.compare_answers import compare_answers
from tests.samples.exact_truth import ExactFrame
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.samples.base import SampleObject
from vgbench_gen.samples.make import list_default_specs

SEEN_PX, UNSEEN_PX = 0.0015, 0.002  # of the pixels of a picture: at least of what is shown, at most of what is not
EDGE_DEG = 4.0  # from the edge of a quarter, at least
SPOTS = {"blue": (10, 50, 220), "yellow": (255, 255, 30), "green": (40, 215, 90), "pink": (245, 135, 205)}
CAMERA = (220, 105, 0)  # orange
NUMBERS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight"]


def find_share(frame: ExactFrame, label: str) -> dict[int, float]:
    """Instance -> share of the picture, of the objects of a label."""
    ids = [one.instance_id for one in frame.capture.world.objects if one.label == label]
    return {k: float((frame.cast[1] == k).mean()) for k in ids}


def list_frames(asked: Asked) -> list[ExactFrame]:
    return [asked.shown(k) for k in range(len(asked.item.images))]


def find_only(asked: Asked, label: str) -> SampleObject:
    """The only object of a label that the pictures show."""
    best: Counter[int] = Counter()
    for frame in list_frames(asked):
        for k, share in find_share(frame, label).items():
            best[k] = max(best[k], share)  # type: ignore[assignment]
    seen = [k for k, share in best.items() if share >= SEEN_PX]
    assert len(seen) == 1, f"{label}: {best}"
    assert all(share <= UNSEEN_PX for k, share in best.items() if k not in seen)
    return next(one for one in asked.scene.capture.world.objects if one.instance_id == seen[0])


def object_existence(asked: Asked) -> None:
    def is_seen(label: str) -> bool:
        shares = [max(find_share(frame, label).values()) for frame in list_frames(asked)]
        assert max(shares) >= SEEN_PX or max(shares) <= UNSEEN_PX, (label, shares)
        return max(shares) >= SEEN_PX

    if asked.item.question_type == "judgment":
        label = next(one for one in asked.item.evidence["truth"]["evidence"]["labels"] if one in asked.item.question)
        assert is_seen(label) == (asked.item.answer == "Yes")
    else:
        assert [is_seen(label) for label in asked.item.options] == [k == asked.right for k in range(4)]


def object_count(asked: Asked) -> None:
    label = asked.item.evidence["truth"]["evidence"]["about"]
    assert label in asked.item.question
    best: Counter[int] = Counter()
    for frame in list_frames(asked):
        for k, share in find_share(frame, label).items():
            best[k] = max(best[k], share)  # type: ignore[assignment]
    said = NUMBERS.index(asked.item.options[asked.right].removesuffix(" in all"))
    assert sum(share >= SEEN_PX for share in best.values()) == said
    assert all(share >= SEEN_PX or share <= UNSEEN_PX for share in best.values()), best


def appearance_order(asked: Asked) -> None:
    def find_first(label: str) -> int:
        shares = [max(find_share(frame, label).values()) for frame in list_frames(asked)]
        first = next(k for k, share in enumerate(shares) if share >= SEEN_PX)
        assert max(shares[:first], default=0) <= UNSEEN_PX
        return first

    labels = asked.item.options[asked.right].split(", ")
    assert labels == sorted(labels, key=find_first)


def check_quarter(asked: Asked, ahead: FloatArray, to: FloatArray, said: str) -> None:
    """Directions (3,) in the world, whose z goes up."""
    angle = np.degrees(np.arctan2(ahead[0] * to[1] - ahead[1] * to[0], ahead[:2] @ to[:2]))  # to the left
    assert EDGE_DEG < abs(angle) % 90 < 90 - EDGE_DEG
    far = "ahead" in said or "farther" in said
    assert far == (abs(angle) < 90)
    assert ("left" in said) == (angle > 0)


def find_named(asked: Asked) -> list[SampleObject]:
    stored = asked.item.evidence["truth"]["evidence"]
    labels = [stored[name]["label"] for name in "abcd" if stored.get(name)]
    assert all(label in asked.item.question for label in labels)
    return [find_only(asked, label) for label in labels]


def relative_direction(asked: Asked) -> None:
    stand, face, about = (one.box.center_m for one in find_named(asked))
    check_quarter(asked, face - stand, about - stand, asked.item.options[asked.right])


def object_from_camera(asked: Asked) -> None:
    (about,), last = find_named(asked), list_frames(asked)[-1]
    assert find_share(last, about.label)[about.instance_id] <= UNSEEN_PX
    check_quarter(asked, last.pose[:3, 2], about.box.center_m - last.pose[:3, 3], asked.item.options[asked.right])


def relation_across_views(asked: Asked) -> None:
    a, b = find_named(asked)
    for frame in list_frames(asked):
        assert min(find_share(frame, one.label)[one.instance_id] for one in (a, b)) <= UNSEEN_PX
    ahead = list_frames(asked)[0].pose[:3, 2]
    check_quarter(asked, ahead, b.box.center_m - a.box.center_m, asked.item.options[asked.right])


def relation_from_camera(asked: Asked) -> None:
    a, b = find_named(asked)
    to = b.box.center_m - a.box.center_m
    if asked.item.question_type == "multi-choice":
        check_quarter(asked, asked.shown(0).pose[:3, 2], to, asked.item.options[asked.right])
        return
    said = next(
        words for words in re.findall(r"(?:nearer|farther away) and to the (?:left|right)", asked.item.question)
    )
    try:
        check_quarter(asked, asked.shown(0).pose[:3, 2], to, said)
    except AssertionError:
        assert asked.item.answer == "No"
    else:
        assert asked.item.answer == "Yes"


def imagined_move(asked: Asked) -> None:
    (about,), first = find_named(asked), list_frames(asked)[0]
    (walk_m,) = (float(found) for found in re.findall(r"(\d\.\d) meters", asked.item.question))
    turned = re.findall(r"turn (\d+) degrees to the (left|right)", asked.item.question)
    turn = np.radians(float(turned[0][0]) * (1 if turned[0][1] == "left" else -1)) if turned else np.pi
    ahead = first.pose[:2, 2] / np.linalg.norm(first.pose[:2, 2])
    here = first.pose[:2, 3] + walk_m * ahead
    c, s = np.cos(turn), np.sin(turn)
    facing = np.array([[c, -s], [s, c]]) @ ahead
    to = np.append(about.box.center_m[:2] - here, 0.0)
    check_quarter(asked, np.append(facing, 0.0), to, asked.item.options[asked.right])


def nearest_object(asked: Asked) -> None:
    about = asked.item.evidence["truth"]["evidence"]["about"]
    assert about in asked.item.question
    centre, others = find_only(asked, about), [find_only(asked, label) for label in asked.item.options]
    gaps = [measure_gap_m(centre, other) for other in others]
    assert int(np.argmin(gaps)) == asked.right
    assert np.sort(gaps)[1] - min(gaps) > 0.1


def map_relation(asked: Asked) -> None:
    """The plan is laid on the room by the triangle and by how far all spots are from it."""
    (about,), stored, first = find_named(asked), asked.item.evidence["truth"]["evidence"], asked.shown(0).pose
    assert all(f"the {name}" in asked.item.context for name in stored["names"])
    four = np.stack([find_only(asked, name).box.center_m[:2] for name in stored["names"]])
    plan, colors = asked.picture(len(asked.item.images) - 1), asked.item.options
    spots = np.stack([find_spot(plan, SPOTS[color]).mean(axis=0) for color in colors])
    triangle = find_spot(plan, CAMERA)
    here = triangle.mean(axis=0)
    tip = triangle[np.argmax(np.linalg.norm(triangle - here, axis=1))] - here
    px_per_m = np.linalg.norm(spots - here, axis=1).sum() / np.linalg.norm(four - first[:2, 3], axis=1).sum()
    # Complex numbers, y up: a turn from where the camera looks is one of the plan from where the tip points.
    to, ahead, up = about.box.center_m[:2] - first[:2, 3], first[:2, 2], np.array([1, -1])
    place = (
        complex(*to) / complex(*ahead) * abs(complex(*ahead)) * complex(*(tip * up)) / np.linalg.norm(tip) * px_per_m
    )
    off = np.linalg.norm(spots - here - np.array([place.real, -place.imag]), axis=1)
    assert np.argmin(off) == asked.right, f"{colors} are {off.round()} px off"
    assert np.sort(off)[1] > 2 * np.min(off), f"{colors} are {off.round()} px off"


def find_spot(plan: ColorArray, ink: Sequence[int]) -> FloatArray:
    """(N, 2) pixels of the largest patch of a color, x right and y down."""
    _, parts, stats, _ = cv2.connectedComponentsWithStats(
        (np.abs(plan.astype(int) - ink).max(axis=2) < 60).astype("u1")
    )
    return np.argwhere(parts == 1 + np.argmax(stats[1:, cv2.CC_STAT_AREA]))[:, ::-1].astype(np.float64)


def route_turns(asked: Asked) -> None:
    stops = [one.box.center_m[:2] for one in find_named(asked)]
    ways = [complex(*(second - first)) for first, second in pairwise(stops)]
    turns_deg = [float(np.degrees(np.angle(on / there))) for there, on in pairwise(ways)]  # to the left
    assert all(55 < abs(turn) < 125 for turn in turns_deg), turns_deg
    said = ", then ".join("left" if turn > 0 else "right" for turn in turns_deg)
    assert asked.item.options[asked.right] == said, turns_deg


def measure_gap_m(a: SampleObject, b: SampleObject) -> float:
    """By a bounded least-squares problem over both boxes."""
    P, Q = (one.box.rotation * one.box.size_m for one in (a, b))
    found = lsq_linear(np.hstack([P, -Q]), b.box.center_m - a.box.center_m, bounds=(-0.5, 0.5), tol=1e-12)
    return float(np.sqrt(2 * found.cost))


def room_area(asked: Asked) -> None:
    (floor,) = (one for one in asked.scene.capture.world.objects if one.label == "floor")
    answer = asked.item.options[asked.right] if asked.item.options else asked.item.answer
    assert float(answer.split()[0]) == pytest.approx(floor.box.size_m[0] * floor.box.size_m[1], rel=0.05)


CHECKS: dict[str, Callable[[Asked], None]] = {
    check.__name__: check
    for check in (
        object_existence,
        object_count,
        appearance_order,
        relative_direction,
        object_from_camera,
        relation_across_views,
        relation_from_camera,
        imagined_move,
        nearest_object,
        map_relation,
        route_turns,
        room_area,
    )
}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_answers_about_labelled_objects_are_true(tmp_path: Path) -> None:
    counts = compare_answers(list_default_specs({"tour": 3}, seed=2, frames=26), CHECKS, tmp_path)
    assert set(counts) == set(CHECKS), counts
    assert min(counts.values()) >= 2, counts  # closed rooms and free ways are rare
    assert sum(counts.values()) >= 200, counts
