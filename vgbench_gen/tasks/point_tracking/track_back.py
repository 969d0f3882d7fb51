"""A tracked point asked the other way: from its place in image 2, as printed, back to image 1.

The tracked point changes its two pixels. Each wrong option has a place of its own in each image, so that both ways are
asked with options of one law (`track_decoys`). The decoy at the query's own pixel is one again: it lies at the pixel
of the new query, where image 1 shows something else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray
from vgbench_gen.geometry import projection
from vgbench_gen.tasks import _poses
from vgbench_gen.tasks._mirror import make_invalid
from vgbench_gen.tasks.records import read_camera_record

SECOND = "second_back_px"  # in a fact's evidence: where the second route, in its own direction, puts the way back


def exchange_images(fact: Fact) -> Fact | None:
    """The fact with its images exchanged, or None where the second route did not lead back."""
    if SECOND not in fact.evidence:
        return None
    stored = fact.evidence
    camera_1, camera_2 = (read_camera_record(stored[name]) for name in ("camera_1", "camera_2"))
    motion = _poses.compute_from_stored(*(stored["world_from_camera"][frame_id] for frame_id in fact.frame_ids[::-1]))
    members = tuple(
        _move_decoy(member, fact.truth_candidate)
        if member.show["query"] is None
        else make_turned_candidate(member, camera_2, camera_1, motion)
        for member in fact.candidates
    )
    evidence = {
        **stored,
        "camera_1": stored["camera_2"],
        "camera_2": stored["camera_1"],
        "diagonal_px": camera_1.diagonal_px,
        SECOND: np.asarray(fact.second_value).tolist(),
    }
    second = np.array(stored[SECOND], dtype=np.float64)
    return replace(fact, frame_ids=fact.frame_ids[::-1], candidates=members, second_value=second, evidence=evidence)


def make_turned_candidate(member: Candidate, first: Camera, second: Camera, motion: FloatArray) -> Candidate:
    """A point of the pool, asked about at its printed pixel.

    Args:
        member: as it was.
        first, second: the cameras as they are called from now on.
        motion: (3, 4) second_from_first.
    """
    query, z_m = member.value, float(member.evidence["point_2_m"][2])
    place_m = _poses.move_points(motion, projection.back_project(first, query, np.array(z_m)))
    uv_px = projection.project(second, place_m)[0]
    evidence = {
        **member.evidence,
        "z_1_m": z_m,
        "uv_2_px": uv_px.tolist(),
        "point_2_m": np.round(place_m, 4).tolist(),
        "motion_d": round(100 * float(np.linalg.norm(uv_px - query)) / second.diagonal_px, 3),
    }
    value = np.floor(uv_px + 0.5) + 0.0
    return replace(member, value=value, show={"query": [int(x) for x in query]}, evidence=evidence)


def locate_pixel(camera: Camera, uv_px: FloatArray, z_m: float) -> list[float]:
    """A pixel's point in the camera's frame, metres, as it is stored."""
    point: list[float] = np.round(projection.back_project(camera, uv_px, np.array(z_m)), 4).tolist()
    return point


def _move_decoy(member: Candidate, truth: Candidate) -> Candidate:
    """A wrong option in image 1; none where it has no place there, or image 1 knows no depth at the query's pixel."""
    evidence = dict(member.evidence)
    if "point_1_m" not in evidence:
        return make_invalid(member)
    evidence["point_1_m"], evidence["point_2_m"] = evidence["point_2_m"], evidence["point_1_m"]
    if "same_pixel_of" in member.show:
        return replace(member, value=truth.value, evidence=evidence)
    value = np.array(evidence["uv_1_px"], dtype=np.float64)
    evidence["uv_1_px"] = [int(x) for x in member.value]
    return replace(member, value=value, evidence=evidence)
