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
from vgbench_gen.tasks.point_tracking.evidence import ImagesEvidence, PlaceEvidence, TrackedEvidence


def exchange_images(fact: Fact) -> Fact | None:
    """The fact with its images exchanged, or None where the second route did not lead back."""
    images = ImagesEvidence.of(fact)
    if images.second_back_px is None:
        return None
    motion = _poses.compute_by_quaternions(*images.list_poses(fact.frame_ids[::-1]))
    members = tuple(
        _move_decoy(member, fact.truth_candidate)
        if member.show["query"] is None
        else make_turned_candidate(member, images.camera_2, images.camera_1, motion)
        for member in fact.candidates
    )
    exchanged = images.with_fields(
        camera_1=images.camera_2,
        camera_2=images.camera_1,
        diagonal_px=images.camera_1.diagonal_px,
        second_back_px=fact.second_value,
    )
    return replace(
        fact,
        frame_ids=fact.frame_ids[::-1],
        candidates=members,
        second_value=images.second_back_px,
        evidence=exchanged.write(),
    )


def make_turned_candidate(member: Candidate, first: Camera, second: Camera, motion: FloatArray) -> Candidate:
    """A point of the pool, asked about at its printed pixel.

    Args:
        member: as it was.
        first, second: the cameras as they are called from now on.
        motion: (3, 4) second_from_first.
    """
    query, track = member.value, TrackedEvidence.of(member)
    z_m = float(track.point_2_m[2])
    place_m = _poses.move_points(motion, projection.back_project(first, query, np.array(z_m)))
    uv_px = projection.project(second, place_m)[0]
    turned = track.with_fields(
        z_1_m=z_m,
        look=None,
        uv_2_px=uv_px,
        point_2_m=np.round(place_m, 4),
        motion_d=round(100 * float(np.linalg.norm(uv_px - query)) / second.diagonal_px, 3),
    )
    value = np.floor(uv_px + 0.5) + 0.0
    return replace(member, value=value, show={"query": [int(x) for x in query]}, evidence=turned.write())


def _move_decoy(member: Candidate, truth: Candidate) -> Candidate:
    """A wrong option in image 1; none where it has no place there, or image 1 knows no depth at the query's pixel."""
    place = PlaceEvidence.of(member)
    if place.point_1_m is None:
        return replace(member, value=np.full(member.value.shape, np.nan))  # which `valid` refuses
    moved = place.with_fields(point_1_m=place.point_2_m, point_2_m=place.point_1_m, look=None)
    if place.uv_1_px is None:  # the decoy at the query's own pixel
        return replace(member, value=truth.value, evidence=moved.write())
    u, v = member.value
    moved = moved.with_fields(uv_1_px=(int(u), int(v)))
    return replace(member, value=np.array(place.uv_1_px, dtype=np.float64), evidence=moved.write())
