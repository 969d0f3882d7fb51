"""Mirrored captures give the mirrored answers (`docs/validity.md#invariance`). Expectations come from numpy and OpenCV
on flipped raw frames."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tests.mirrored_scene import MirroredScene
from tests.quality.invariance_room import (
    MIRRORED,
    Room,
    as_asked,
    both_sides,
    depth_there,
    mirrored_view,
    options_of,
    pairs,
)
from tests.small_room import small_room
from vgbench_gen.core.rng import rng_for
from vgbench_gen.geometry import boxes
from vgbench_gen.store import pictures
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks._homographies.evidence import Components
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.homography_to_image import HomographyToImage

NAME = "0" * 32 + ".png"


@pytest.mark.parametrize("name", MIRRORED)
def test_a_mirrored_capture_is_measured_as_the_partner_says(name: str, room: Room) -> None:
    """Its cameras and poses are the mirrored frames' own, and the second route on their pixels gives its answer."""
    task = tasks[name]
    for fact, other in pairs(room, name):
        assert (other.truth, other.key) == (fact.truth, fact.key)
        assert [c.key for c in other.candidates] == [c.key for c in fact.candidates]
        assert other.pictures == fact.pictures
        stored = [other.evidence, *(c.evidence for c in other.candidates)]
        poses = {f: p for e in stored for f, p in e.get("world_from_camera", {}).items()}
        for frame_id, camera in other.cameras.items():
            frame = mirrored_view().frame(frame_id)
            np.testing.assert_allclose(camera["K"], frame.camera.K.ravel(), atol=1e-9)
            if frame_id in poses:
                np.testing.assert_allclose(poses[frame_id], frame.world_from_camera.ravel(), atol=1e-12)
        assert task.agreement(task.recheck(other, mirrored_view()), other) <= 1
        assert task.agreement(other.second_value, other) <= 1
        assert task.agreement(task.recompute(as_asked(other)), other) <= 1


@pytest.mark.parametrize("name", MIRRORED)
def test_the_partner_shows_the_flipped_images(name: str, room: Room) -> None:
    compared = 0
    for fact in room.facts[name]:
        entry, other = both_sides(fact)
        if other is None or entry.options is None or other.options is None:
            continue
        shown, flipped = (
            tasks[name].choice(side.fact, side.options, rng_for(0, "choice"))
            for side in (entry, other)
            if side.options is not None
        )
        for a, b in zip(shown.pictures, flipped.pictures, strict=True):
            plain = [Picture(p.base, tuple(op for op in p.ops if op["op"] not in ("point", "region"))) for p in (a, b)]
            before, after = (room.image(p).astype(np.float64) for p in plain)
            width = before.shape[1]
            # A matrix is rounded on either side, which moves a corner by up to 0.4 px; nothing else is off.
            allowed = 2.5 if any(op["op"] == "warp" for op in a.ops) else 0.2
            assert np.abs(np.fliplr(before) - after).mean() < allowed
            marks = [[op for op in p.ops if op["op"] == "region"] for p in (a, b)]
            # A partner may draw the same regions in another order, and then in other colours.
            here = sorted(marks[0], key=lambda op: (op["rect"][1], op["rect"][0]))
            there = sorted(marks[1], key=lambda op: (op["rect"][1], -op["rect"][2]))
            if name == "relative_depth":
                assert {op["color"] for op in here} == {op["color"] for op in there}
            for mark, mirrored in zip(here, there, strict=True):
                x1, y1, x2, y2 = mark["rect"]
                assert mirrored["rect"] == [width - 1 - x2, y1, width - 1 - x1, y2]
            compared += 1
    assert compared >= 2


def test_flipped_depth_has_the_depths_asked_about(room: Room) -> None:
    frames = {frame.id: frame for frame in small_room().frames}
    for fact, other in pairs(room, "metric_depth"):
        frame, rect = frames[fact.frame_ids[0]], other.truth_candidate.show["rect"]
        assert depth_there(frame, rect, flip=True).mean() == pytest.approx(other.truth_candidate.value[0], abs=0.006)
        assert np.array_equal(other.truth_candidate.value, fact.truth_candidate.value)
    for fact, other in pairs(room, "relative_depth"):
        frame = frames[fact.frame_ids[0]]
        options = options_of(other).options
        medians = [float(np.median(depth_there(frame, c.show["rect"], flip=True))) for c in options]
        extreme = np.argmax(medians) if fact.ask == "deepest" else np.argmin(medians)
        assert options[int(extreme)].key == fact.truth_candidate.key


def test_a_flipped_crop_has_the_camera_asked_about(room: Room) -> None:
    """Points seen by the flipped base camera fall, once cropped and resized, where the answer's camera puts them."""
    points = np.random.default_rng(0).uniform([-1, -1, 2], [1, 1, 5], (40, 3))
    for fact, other in pairs(room, "camera_parameters"):
        base = mirrored_view().frame(fact.frame_ids[0]).camera
        for before, after in zip(fact.candidates, other.candidates, strict=True):
            (x0, y0, w, h), (width, height) = after.show["rect"], after.show["size"]
            uv = cv2.projectPoints(points, np.zeros(3), np.zeros(3), base.K, None)[0][:, 0]
            seen = (uv - [x0, y0] + 0.5) * [width / w, height / h] - 0.5
            fx, fy, cx, cy = (after.evidence[k] for k in ("fx", "fy", "cx", "cy"))
            K = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
            told = cv2.projectPoints(points, np.zeros(3), np.zeros(3), K, None)[0][:, 0]
            np.testing.assert_allclose(told, seen, atol=1e-9)
            if fact.ask == "cx":
                assert after.value[0] == round(width - 1 - before.evidence["cx"])
            else:
                assert np.array_equal(after.value, before.value)


def test_the_mirrored_matrix_warps_the_flipped_image(room: Room) -> None:
    task = HomographyToImage()
    for fact, other in pairs(room, "homography_to_image"):
        image = pictures.decode(room.media.get(fact.pictures[fact.frame_ids[0]]))
        x0, y0, width, height = other.evidence["crop"]
        assert fact.evidence["crop"] == [image.shape[1] - x0 - width, y0, width, height]
        corners = np.array([[[0, 0]], [[width - 1, 0]], [[width - 1, height - 1]], [[0, height - 1]]], np.float64)
        for before, after in zip(fact.candidates, other.candidates, strict=True):
            there = cv2.perspectiveTransform(corners, before.value) * [-1, 1] + [width - 1, 0]
            told = cv2.perspectiveTransform(corners * [-1, 1] + [width - 1, 0], after.value)
            assert np.linalg.norm(there - told, axis=-1).mean() < 0.5
            assert after.value[2, 2] == 1
            np.testing.assert_allclose(after.show["H"], after.value.ravel())
            # The same frame flipped, cut where the other crop is and warped by the other matrix.
            warped, turned = (
                pictures.apply(Picture(NAME, task.make_warp(side, member.show["H"]).ops[-1:]), np.ascontiguousarray(of))
                for side, member, of in ((fact, before, image), (other, after, image[:, ::-1]))
            )
            assert np.abs(cv2.flip(warped, 1).astype(float) - turned).mean() < 2.5
        # The sampler's own parameters say the same: turn, shift and tilt the other way.
        exact = tasks["homography_to_image"].rounded(
            Components(**other.truth_candidate.evidence["components"]).make_matrix(width, height)
        )
        off = cv2.perspectiveTransform(corners, exact) - cv2.perspectiveTransform(corners, other.truth_candidate.value)
        assert np.linalg.norm(off, axis=-1).mean() < 1.0


def test_the_mirrored_motion_leads_between_mirrored_cameras(room: Room) -> None:
    world_from = {f.id: f.world_from_camera for f in MirroredScene(small_room()).frames}
    for fact, other in pairs(room, "view_after_motion"):
        source = world_from[other.frame_ids[0]]
        for member in other.candidates:
            there = np.linalg.inv(world_from[member.frame_ids[0]]) @ source
            np.testing.assert_allclose(member.value[:, :3], there[:3, :3], atol=0.5e-3 + 1e-9)
            np.testing.assert_allclose(member.value[:, 3], there[:3, 3], atol=0.5e-2 + 1e-9)
        np.testing.assert_array_equal(np.abs(other.truth_candidate.value), np.abs(fact.truth_candidate.value))
        points, before = (np.array(f.evidence["points_m"]) for f in (other, fact))
        np.testing.assert_array_equal(points, before * [-1, 1, 1])


def test_a_mirrored_box_encloses_the_mirrored_thing(room: Room) -> None:
    scene = MirroredScene(small_room())
    things, world_from = {o.instance_id: o for o in scene.objects}, {f.id: f.world_from_camera for f in scene.frames}
    for fact, other in pairs(room, "object_location"):
        truth = other.truth_candidate
        world = boxes.corners(things[truth.evidence["instance_id"]].box)
        camera_from_world = np.linalg.inv(world_from[other.frame_ids[0]])
        corners = world @ camera_from_world[:3, :3].T + camera_from_world[:3, 3]
        apart = np.linalg.norm(corners[:, None] - truth.value, axis=-1)
        assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 0.01
        # One face round, then the opposite one in the same order, of a box and not of its mirror image.
        x, y, z = (truth.value[k] - truth.value[0] for k in (1, 3, 4))
        assert np.dot(np.cross(x, y), z) > 0
        assert boxes.cuboid_residual_m(truth.value) < 0.012
        uv = cv2.projectPoints(
            corners, np.zeros(3), np.zeros(3), np.reshape(other.cameras[fact.frame_ids[0]]["K"], (3, 3)), None
        )[0][:, 0]
        x1, y1, x2, y2 = truth.show["rect"]
        low, high = np.maximum(uv.min(axis=0), 0), np.minimum(uv.max(axis=0), [319, 239])
        assert boxes.rect_iou((x1, y1, x2, y2), (low[0], low[1], high[0], high[1])) > 0.9
