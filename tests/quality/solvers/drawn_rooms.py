"""Questions with known answers on two rendered rooms, worded by the real templates; no pipeline in between."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from tests.scene_factory import RoomScene, room_scene
from tests.scene_factory import render as ray_cast
from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray, QuestionType
from vgbench_gen.geometry import poses, projection
from vgbench_gen.quality.questions import Question
from vgbench_gen.store.drawing import COLORS, CROSSHAIR, SHAPES, draw
from vgbench_gen.store.pictures import Picture, apply, encode_jpeg, reads_inside
from vgbench_gen.tasks import _poses
from vgbench_gen.tasks.presentation import make_number_slots
from vgbench_gen.tasks.records import make_camera_record, make_camera_slots
from vgbench_gen.text import numbers
from vgbench_gen.text.marks import list_marks, name_mark
from vgbench_gen.text.render import fill_word, load_phrasings, render

FRAMES = (2, 4, 5, 7, 8)
_TURNS = {
    n: [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in 2 * np.pi * np.arange(n) / n]
    for n in (2, 4)
}
_BASE = "0" * 32 + ".png"
Asked = tuple[Question, list[bytes]]


@functools.cache
def shot(seed: int, k: int) -> tuple[ColorArray, DepthArray, Camera, FloatArray]:
    """(RGB, depth in meters, camera, world_from_camera) of one frame of a room."""
    scene = _room(seed)
    frame = scene.frames[k]
    depth_m, color = ray_cast(frame.camera, frame.world_from_camera, scene.solids)
    return color, depth_m.astype(np.float32), frame.camera, frame.world_from_camera


@functools.cache
def _room(seed: int) -> RoomScene:
    return room_scene(seed=seed, frames=12, width=320, height=240)


def motion(seed: int, i: int, j: int) -> FloatArray:
    """(3, 4) second_from_first as printed."""
    return _poses.round_as_printed(poses.relative_pose(shot(seed, i)[3], shot(seed, j)[3])[:3])


def asked(
    seed: int,
    task: str,
    form: QuestionType,
    slots: dict[str, str],
    options: Sequence[str],
    truth: int,
    n: int = 0,
    marks: Mapping[str, tuple[float, ...]] | None = None,
) -> Question:
    bank = load_phrasings(task, form)
    phrasing = bank[n % len(bank)]
    slots = make_number_slots(4) | slots
    question, context = render(phrasing, {k: v for k, v in slots.items() if k in phrasing.slots})
    name = f"{task}/{form}/{seed}/{n}"
    scene = f"room/{seed}"
    texts = tuple(options) or (fill_word("answer.yes"), fill_word("answer.no"))
    return Question(name, name, scene, "room", task, "", form, question, context, texts, truth, marks=marks or {})


def pose_choices(seed: int) -> list[Asked]:
    pairs = [(2, 5), (4, 7), (5, 8), (8, 4), (7, 2)]
    found = []
    for n, (i, j) in enumerate(pairs):
        a, b = pairs[(n + 1) % len(pairs)]
        stated = [motion(seed, j, i), motion(seed, a, b), motion(seed, b, a)]
        stated.insert(n % 4, motion(seed, i, j))
        texts = [fill_word("option.pose", **_poses.make_slots(value)) for value in stated]
        question = asked(seed, "relative_pose", "multi-choice", _two_cameras(seed, i, j), texts, n % 4, n)
        found.append((question, [encode_jpeg(shot(seed, k)[0]) for k in (i, j)]))
    return found


def pose_claims(seed: int) -> list[Asked]:
    found = []
    for n, (i, j, a, b) in enumerate([(2, 5, 2, 5), (2, 5, 5, 2), (8, 4, 8, 4), (8, 4, 2, 7)]):
        limits = {"tolerance_deg": "5", "tolerance_m": "0.10"}
        slots = _two_cameras(seed, i, j) | _poses.make_slots(motion(seed, a, b)) | limits
        question = asked(seed, "relative_pose", "judgment", slots, (), int((i, j) != (a, b)), n)
        found.append((question, [encode_jpeg(shot(seed, k)[0]) for k in (i, j)]))
    return found


def views(seed: int) -> list[Asked]:
    found = []
    for n, source in enumerate(FRAMES):
        others = [k for k in FRAMES if k != source]
        target = others[(3 * n) % 4]
        slots = _poses.make_slots(motion(seed, source, target)) | make_camera_slots(
            make_camera_record(shot(seed, source)[2])
        )
        options = [fill_word("option.image", n=str(k + 2)) for k in range(4)]
        question = asked(seed, "view_after_motion", "multi-choice", slots, options, others.index(target), n)
        found.append((question, [encode_jpeg(shot(seed, k)[0]) for k in (source, *others)]))
    return found


def warps(seed: int, count: int = 8, filled: bool = True) -> tuple[list[Asked], list[Asked]]:
    """(to image, to matrix) with the same warps of crops; the frame around the crop, or else black, fills them."""
    rng = np.random.default_rng(seed)
    to_image, to_matrix = [], []
    for n in range(count):
        frame = shot(seed, FRAMES[n % len(FRAMES)])[0]
        ops = [_random_warp(rng, frame.shape[1], frame.shape[0], filled) for _ in range(4)]
        x0, y0, width, height = ops[0]["rect"]
        crop = frame[y0 : y0 + height, x0 : x0 + width]
        Hs = [np.array(op["H"]).reshape(3, 3) for op in ops]
        warped = [
            apply(Picture(_BASE, (op,)), frame) if filled else cv2.warpPerspective(crop, H, (width, height))
            for op, H in zip(ops, Hs, strict=True)
        ]
        texts = [numbers.format_matrix(H, numbers.format_significant) for H in Hs]
        truth, size = n % 4, {"width": str(width), "height": str(height)}
        images = [fill_word("option.image", n=str(k + 2)) for k in range(4)]
        slots = size | {"matrix": texts[truth]}
        question = asked(seed, "homography_to_image", "multi-choice", slots, images, truth, n)
        to_image.append((question, [encode_jpeg(np.asarray(x, np.uint8)) for x in (crop, *warped)]))
        question = asked(seed, "homography_to_matrix", "multi-choice", size, texts, truth, n)
        to_matrix.append((question, [encode_jpeg(np.asarray(x, np.uint8)) for x in (crop, warped[truth])]))
    return to_image, to_matrix


def tracks(seed: int, form: QuestionType, count: int = 6) -> list[Asked]:
    rng = np.random.default_rng(seed)
    found = []
    for n in range(count):
        i, j = ((2, 5), (4, 7), (8, 5))[n % 3]
        query, targets = _seen_twice(seed, i, j, rng, 4 if form == "multi-choice" else 2)
        truth = n % len(targets)
        targets = targets[1 : truth + 1] + targets[:1] + targets[truth + 1 :]
        colors = rng.permutation([color for color in COLORS if color != "yellow"]).tolist()
        looks = zip(targets, colors, rng.permutation(SHAPES).tolist(), strict=False)
        marks = [{"op": "point", "uv": _pixel(uv), "color": color, "shape": shape} for uv, color, shape in looks]
        listed = sorted(marks, key=lambda mark: mark["color"])
        places = list_marks(listed, [numbers.format_point(mark["uv"]) for mark in listed])
        slots = {"color": "yellow", "point": numbers.format_point(query), "points": places}
        drawn = {name_mark(mark): tuple(map(float, mark["uv"])) for mark in marks}
        mark = {"op": "point", "uv": _pixel(query), "color": "yellow", "shape": CROSSHAIR}
        options = [name_mark(mark) for mark in marks]
        claim = (truth if n % 4 < 2 else 1 - truth) if form == "judgment" else 0
        right = truth if form == "multi-choice" else int(claim != truth)
        texts = options if form == "multi-choice" else ()
        question = asked(seed, "point_tracking", form, slots | {"mark": options[claim]}, texts, right, n, drawn)
        images = [draw(shot(seed, i)[0], [mark]), draw(shot(seed, j)[0], marks)]
        found.append((question, [encode_jpeg(image) for image in images]))
    return found


def rotated(question: Question, k: int) -> Question:
    """The same question with its options moved round by k places."""
    options = question.options[k:] + question.options[:k]
    return replace(question, options=options, truth=(question.truth - k) % len(options))


def _two_cameras(seed: int, i: int, j: int) -> dict[str, str]:
    first, second = (make_camera_record(shot(seed, k)[2]) for k in (i, j))
    return make_camera_slots(first, second)


def _pixel(uv: FloatArray) -> list[int]:
    return [int(x) for x in uv]


def _random_warp(rng: np.random.Generator, width: int, height: int, filled: bool) -> dict[str, Any]:
    """An operation that warps the middle of a frame, of which all is filled by the frame, or not by what it warps."""
    size = [round(0.57 * width), round(0.57 * height)]
    origin = [(width - size[0]) // 2, (height - size[1]) // 2]
    while True:
        angle, scale = rng.uniform(-0.4, 0.4), rng.uniform(0.85, 1.3) if filled else rng.uniform(0.55, 0.85)
        c, s = scale * np.cos(angle), scale * np.sin(angle)
        middle = np.array(size) / 2
        linear = np.array([[c, -s], [s, c]])
        shift = middle - linear @ middle + rng.uniform(-0.08, 0.08, 2) * size[0]
        H = np.eye(3)
        H[:2, :2], H[:2, 2], H[2, :2] = linear, shift, rng.uniform(-4e-4, 4e-4, 2)
        entries = [float(numbers.format_significant(x)) for x in H.ravel().tolist()]
        op = {"op": "warp", "H": entries, "rect": [*origin, *size], "size": size}
        if not filled or reads_inside(op, (width, height)):
            return op


def _seen_twice(seed: int, i: int, j: int, rng: np.random.Generator, count: int) -> tuple[FloatArray, list[FloatArray]]:
    """A pixel of frame i, where frame j shows it, and decoys as far from that pixel in other directions."""
    _, depth_1, camera, pose_1 = shot(seed, i)
    _, depth_2, _, pose_2 = shot(seed, j)
    while True:
        uv = np.array([float(rng.integers(30, camera.width - 30)), float(rng.integers(30, camera.height - 30))])
        z_m = np.array(float(depth_1[int(uv[1]), int(uv[0])]))
        world = poses.transform(pose_1, projection.back_project(camera, uv, z_m)[None])
        there, z_2 = projection.project(camera, poses.transform(poses.invert(pose_2), world))
        move = np.round(there[0]) - uv
        turned = [np.round(uv + turn @ move) for turn in _TURNS[count]]
        inside = all(((target > 20) & (target < np.array(camera.size) - 20)).all() for target in turned)
        if not inside or np.linalg.norm(move) < 25:
            continue
        u, v = _pixel(turned[0])
        if abs(float(depth_2[v, u]) - z_2[0]) <= 0.02:
            return uv, turned
