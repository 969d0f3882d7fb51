"""Whether a set repeats questions or leans on one scene (`docs/validity.md#repetition`)."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import FloatArray, Item
from vgbench_gen.geometry.poses import rotation_angle_deg
from vgbench_gen.quality.findings import MAX_ITEMS, Finding
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.store import pictures
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact

HASH_BITS_APART = 6  # pictures whose hashes differ by no more look alike


@dataclass(frozen=True, slots=True, eq=False)
class ItemAppearance:
    """What two items are compared by."""

    question: Question
    frames: tuple[str, ...]
    """The ids of the frames that are asked about, sorted."""
    poses: Mapping[str, FloatArray]
    """For each frame id its world_from_camera, (4, 4), where it is stored."""
    hashes: Mapping[str, int]
    """For each frame id the perceptual hash of the first picture that shows it."""
    target: str
    answer: tuple[float, ...]
    pair_is_target: bool
    """Whether the answer is about the frames themselves, as a relative pose is."""


def hash_picture(encoded: bytes) -> int | None:
    """`pictures.hash_look` of encoded bytes; None where they are no picture."""
    import cv2

    # A tenth of the time of decoding in full; the hash looks at 32 x 32 pixels.
    grey = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_REDUCED_GRAYSCALE_4)
    return None if grey is None else pictures.hash_look(np.asarray(grey, dtype=np.uint8))


def describe_appearance(item: Item, images: Sequence[bytes]) -> ItemAppearance:
    """How an item looks to `find_near_duplicates`.

    Raises:
        DatasetError, KeyError: its evidence is damaged.
    """
    row = RowEvidence.of(item)
    frames = tuple(sorted({*row.frame_ids, *row.truth.frame_ids}))
    hashes: dict[str, int] = {}
    for picture, data in zip(row.shown(), images, strict=False):
        frame_id = row.frame_of(picture.base)
        if frame_id in frames and frame_id not in hashes:
            found = hash_picture(data)
            if found is not None:
                hashes[frame_id] = found
    poses = tasks[item.task].stored_poses(rebuild_fact(item))
    pair_is_target = bool(row.truth.frame_ids)
    return ItemAppearance(read_question(item), frames, poses, hashes, row.truth.key, item.answer_value, pair_is_target)


def find_near_duplicates(sights: Iterable[ItemAppearance], gates: Gates) -> dict[str, list[str]]:
    """Ids of the questions that ask nearly what another one of their task and scene asks: by pose, by look, and by
    target on one frame."""
    buckets: dict[tuple[str, str], dict[str, ItemAppearance]] = defaultdict(dict)
    for sight in sights:
        # One of each group: twins and other forms of one truth are no duplicates of it.
        buckets[sight.question.task, sight.question.scene][sight.question.group] = sight
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for _, members in sorted(buckets.items()):
        near = _find_near_frames(members.values(), gates)
        for a, b in itertools.combinations(members.values(), 2):
            if name := _name_likeness(a, b, near):
                found[f"near by {name}"][b.question.id] = None
    return {name: list(ids) for name, ids in found.items()}


def _name_likeness(a: ItemAppearance, b: ItemAppearance, near: Container[tuple[str, str]]) -> str:
    """By what two questions on one scene ask nearly the same, or ""."""
    same_ask = a.question.ask == b.question.ask
    if a.frames == b.frames:
        return "target" if a.pair_is_target or (a.target == b.target and same_ask) else ""
    if len(a.frames) != len(b.frames):
        return ""
    if _match_frames(a, b, lambda x, y: x == y or (x, y) in near):
        return "pose"
    return "look" if same_ask and a.answer == b.answer and _match_frames(a, b, partial(_look_alike, a, b)) else ""


def _match_frames(a: ItemAppearance, b: ItemAppearance, alike: Callable[[str, str], bool]) -> bool:
    """Whether every frame of one is like another frame of the other; at most two frames are asked about."""
    orders = itertools.permutations(b.frames) if len(a.frames) <= 2 else ()
    return any(all(map(alike, a.frames, order)) for order in orders)


def _look_alike(a: ItemAppearance, b: ItemAppearance, x: str, y: str) -> bool:
    return x in a.hashes and y in b.hashes and (a.hashes[x] ^ b.hashes[y]).bit_count() <= HASH_BITS_APART


def _find_near_frames(groups: Iterable[ItemAppearance], gates: Gates) -> set[tuple[str, str]]:
    """Ordered pairs of frames of one scene within both limits of `gates.pair.distinct_*`."""
    poses = {frame: pose for sight in groups for frame, pose in sight.poses.items()}
    names = list(poses)
    if len(names) < 2:
        return set()
    stack = np.stack([poses[name] for name in names])
    shift = np.linalg.norm(stack[:, None, :3, 3] - stack[None, :, :3, 3], axis=-1)
    turn = rotation_angle_deg(np.swapaxes(stack[:, None, :3, :3], -1, -2) @ stack[None, :, :3, :3])
    close = (turn <= gates.pair.distinct_turn_deg) & (shift <= gates.pair.distinct_shift_m)
    return {(names[i], names[j]) for i, j in np.argwhere(close).tolist() if i != j}


def audit_scene_shares(
    questions: Sequence[Question], scenes: Mapping[str, int], most_of: Callable[[int, int], int], required: bool
) -> list[Finding]:
    """The fullest scene of each task, as per cent of the task's questions, against what it may hold.

    Args:
        scenes: source -> how many of its scenes could have been asked about.
        most_of: (questions of a task, scenes of the source) -> most questions of a scene (`Limits.scene_items`).
        required: whether the recipe set the limit; else the figure is only reported.
    """
    lines = []
    for task in sorted({question.task for question in questions}):
        members = [question for question in questions if question.task == task]
        over: list[tuple[float, int, int, str]] = []
        for (source, scene), count in Counter((question.source, question.scene) for question in members).items():
            most = min(most_of(len(members), scenes.get(source, 1)), len(members))
            over.append((count / most, count, most, scene))
        worst, held, most, fullest = max(over)
        ids = tuple(question.id for question in members if question.scene == fullest)[:MAX_ITEMS]
        line = Finding("scene share", fullest, task, n=len(members), value=100 * held / len(members), items=ids)
        lines.append(replace(line, limit=100 * most / len(members)).judge(worst <= 1) if required else line)
    return lines
