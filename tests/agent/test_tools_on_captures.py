"""Axes of the tools of two images on real captures: exchange, mirror and scale a pair that somebody filmed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.agent.plane_world import call
from vgbench_gen import open_scenes
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.geometry import poses
from vgbench_gen.geometry.homography import apply, image_corners
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.tasks.solving import Image

DATASETS = ("scannet", "scannetpp", "ca1m", "wildrgbd")
LONG_SIDE_PX = 640
TURNS_DEG = (4.0, 25.0)
FLIP = np.diag([-1.0, 1, 1])


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two frames of one capture: pictures (H, W, 3), intrinsics of both, and the motion of the capture's own poses."""

    images: tuple[ColorArray, ColorArray]
    K: FloatArray
    second_from_first: FloatArray

    def call(self, name: str, back: bool = False, mirrored: bool = False, scale: float = 1.0, **more: Any) -> Any:
        """What a tool says of the pair, exchanged, mirrored or enlarged."""
        made = [np.ascontiguousarray(image[:, ::-1] if mirrored else image) for image in self.images]
        if scale != 1:
            made = [np.asarray(cv2.resize(image, None, fx=scale, fy=scale), np.uint8) for image in made]
        width = made[0].shape[1]
        K = self.K * np.array([[scale], [scale], [1]])
        K[:2, 2] += (scale - 1) / 2  # pixel centres
        centre = width - 1 - K[0, 2] if mirrored else K[0, 2]
        if "cameras" in more:
            more["cameras"] = [{"fx": K[0, 0], "fy": K[1, 1], "cx": centre, "cy": K[1, 2]}]
        opened = [Image(encode_jpeg(image), "image") for image in made]
        return call(name, opened[::-1] if back else opened, **more).values


@pytest.fixture(scope="module", params=DATASETS)
def pair(request: pytest.FixtureRequest, captures: Path) -> Pair:
    """The first pair of a dataset that turns a little, and of which the pose tool tells a rotation."""
    for scene in open_scenes(captures / request.param):
        frames = scene.frames[::2]
        for k, first in enumerate(frames):
            for second in frames[k + 1 : k + 8]:
                motion = poses.invert(second.world_from_camera) @ first.world_from_camera
                turn = float(poses.rotation_angle_deg(motion[:3, :3]))
                if not TURNS_DEG[0] <= turn <= TURNS_DEG[1]:
                    continue
                scale = LONG_SIDE_PX / max(first.camera.size)
                images = tuple(
                    cv2.resize(frame.color(), None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
                    for frame in (first, second)
                )
                K = first.camera.K * np.array([[scale], [scale], [1]])
                found = Pair(images, K, motion)  # type: ignore[arg-type]
                if found.call("EstimateRelativePose", cameras=True)["rotation"] is not None:
                    return found
    pytest.skip(f"no pair of {request.param} whose rotation can be told")


def turned_deg(a: Any, b: Any) -> float:
    return float(poses.rotation_angle_deg(np.array(a) @ np.array(b).T))


def test_rotation_of_a_pair_follows_its_axes(pair: Pair) -> None:
    told = pair.call("EstimateRelativePose", cameras=True)["rotation"]
    assert turned_deg(told, pair.second_from_first[:3, :3]) < 3  # the capture's own pose errs as well
    back = pair.call("EstimateRelativePose", back=True, cameras=True)["rotation"]
    assert turned_deg(np.array(back).T, told) < 1.5
    mirrored = pair.call("EstimateRelativePose", mirrored=True, cameras=True)["rotation"]
    assert turned_deg(FLIP @ np.array(mirrored) @ FLIP, told) < 1.5
    larger = pair.call("EstimateRelativePose", scale=1.5, cameras=True)["rotation"]
    assert turned_deg(larger, told) < 1.5


def test_flow_of_a_moved_window_follows_its_axes(pair: Pair) -> None:
    # The window goes 6 pixels to the left and 4 down, so what it shows goes to the right and up.
    image = pair.images[0]
    windows = image[20:-20, 20:-20], image[24:-16, 14:-26]
    moved = Pair(windows, pair.K, np.eye(4))
    assert moved.call("EstimateOpticalFlow")["median_flow"] == pytest.approx([6, -4], abs=0.3)
    assert moved.call("EstimateOpticalFlow", back=True)["median_flow"] == pytest.approx([-6, 4], abs=0.3)
    assert moved.call("EstimateOpticalFlow", mirrored=True)["median_flow"] == pytest.approx([-6, -4], abs=0.3)
    official = moved.call("EstimateOpticalFlowOfficial")  # positive: to the left, upwards
    assert [official["mean_flow_x"], official["mean_flow_y"]] == pytest.approx([-6, 4], abs=1)


def test_homography_of_a_warped_capture_follows_its_axes(pair: Pair) -> None:
    image = pair.images[0]
    height, width = image.shape[:2]
    H = np.array([[0.95, 0.06, 14.0], [-0.05, 1.02, -9.0], [1e-4, -5e-5, 1]])
    warped = Pair((image, cv2.warpPerspective(image, H, (width, height))), pair.K, np.eye(4))  # type: ignore[arg-type]
    corners = image_corners(width, height)
    there = np.array(warped.call("EstimateHomographyMatrix")["homography_matrix"])
    assert np.abs(apply(there, corners) - apply(H, corners)).max() < 3
    back = np.array(warped.call("EstimateHomographyMatrix", back=True)["homography_matrix"])
    assert np.abs(apply(back, apply(H, corners)) - corners).max() < 3
    flip = np.array([[-1.0, 0, width - 1], [0, 1, 0], [0, 0, 1]])
    mirrored = np.array(warped.call("EstimateHomographyMatrix", mirrored=True)["homography_matrix"])
    assert np.abs(apply(flip @ mirrored @ flip, corners) - apply(H, corners)).max() < 3
