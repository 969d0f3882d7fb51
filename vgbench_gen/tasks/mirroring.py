"""Facts about images mirrored left to right: `Task.counterpart` of the kind "mirror".

All of a mirrored fact refers to its bases mirrored: cameras, poses, pixels and boxes. Only the names of the bases stay,
so `FactEvidence.mirrored` tells, and `make_picture` flips them before anything else is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.geometry import mirror
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.records import make_camera_record, read_camera_record


def mirror_fact(task: Task, fact: Fact, candidate: Callable[[Candidate], Candidate], second: FloatArray) -> Fact | None:
    """The fact about the mirrored images, or None where they would show mirrored print, its truth is no valid answer or
    the two routes part.

    Args:
        task: of the fact; only it can judge the answer.
        fact: of a scene, or mirrored already.
        candidate: what becomes of each candidate; one for which it raises `GeometryError` becomes invalid.
        second: the mirrored second value.
    """
    if task.shows_print(fact):
        return None
    mirrored = replace(
        fact,
        candidates=tuple(_mirror_or_invalidate(candidate, member) for member in fact.candidates),
        second_value=second,
        evidence=task.fact_evidence.of(fact).turned().write(),
        cameras={frame_id: mirror_camera(record) for frame_id, record in fact.cameras.items()},
    )
    return check_counterpart(task, mirrored)


def check_counterpart(task: Task, partner_: Fact) -> Fact | None:
    """The partner, or None where its truth is no valid answer or the two routes part."""
    if not task.valid(partner_.truth_candidate, partner_):
        return None
    return partner_ if task.agreement(np.asarray(partner_.second_value), partner_) <= 1 else None


def make_invalid(candidate: Candidate) -> Candidate:
    """A candidate that has no counterpart: its value is no number, which no task takes for valid."""
    return replace(candidate, value=np.full(candidate.value.shape, np.nan))


def make_picture(fact: Fact, frame_id: str, *ops: Mapping[str, Any]) -> Picture:
    """A frame of the fact with operations on it, flipped first where the fact is about mirrored images."""
    mirrored = tasks[fact.task].fact_evidence.of(fact).mirrored
    flip: tuple[Mapping[str, Any], ...] = ({"op": "mirror"},) if mirrored else ()
    return Picture(fact.pictures[frame_id], (*flip, *ops))


def mirror_camera(record: Mapping[str, Any]) -> dict[str, Any]:
    """A stored camera, mirrored."""
    return make_camera_record(mirror.mirror_camera(read_camera_record(record)))


def mirror_rect(show: Mapping[str, Any], width: int) -> dict[str, Any]:
    """What a candidate is shown by, its rectangle [x1, y1, x2, y2] (ends included) mirrored, where it has one."""
    if "rect" not in show:
        return dict(show)
    x1, y1, x2, y2 = show["rect"]
    return {**show, "rect": [width - 1 - x2, y1, width - 1 - x1, y2]}


def _mirror_or_invalidate(candidate: Callable[[Candidate], Candidate], member: Candidate) -> Candidate:
    try:
        return candidate(member)
    except GeometryError:
        return make_invalid(member)
