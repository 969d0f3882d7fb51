"""Images larger than tools compute on: made smaller first, and still spoken of in their own pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.test_tool_axes import CHECKS
from vgbench_gen.agent.models.boxes import FoundBox
from vgbench_gen.agent.models.depth import DepthMap
from vgbench_gen.agent.models.masks import FoundMask
from vgbench_gen.agent.models.matches import LearnedMatches
from vgbench_gen.agent.models.orientations import Orientation
from vgbench_gen.agent.tool import ToolInput, tools
from vgbench_gen.agent.workers import MAX_PIXELS, open_images
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.tasks.solving import Image
from vgbench_gen.tasks.solving.transfer import correlate_patches

SEEN = sorted(name for name in CHECKS if "image" in tools[name].Arguments.model_fields)


@pytest.mark.parametrize("name", SEEN)
def test_axes_are_those_of_the_image_as_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every check of a tool's axes holds as well where it computes on four fifths of each side."""
    monkeypatch.setattr(Image, "_find_held_size", lambda self: tuple(int(side * 0.8) for side in self.size))
    CHECKS[name]()


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 5000))
def test_no_more_pixels_are_held_and_the_way_back_is_exact(width: int, height: int, most: int) -> None:
    image = Image(encode_jpeg(np.zeros((height, width, 3), np.uint8)), most_pixels=most)
    assert image.gray.shape == image.color.shape[:2]
    assert image.gray.size <= most
    assert image.read_whole().shape == (height, width, 3)
    outer = np.array([[-0.5, -0.5], [width - 0.5, height - 0.5]])  # corners of the image
    held = image.to_held(outer)
    assert held == pytest.approx(np.array([[-0.5, -0.5], np.array(image.gray.shape[::-1]) - 0.5]))
    assert image.to_delivered(held) == pytest.approx(outer)
    assert (image.delivered_from_held @ [*held[1], 1])[:2] == pytest.approx(outer[1])
    if width * height <= most:
        assert image.gray.shape == (height, width)
        points = np.random.default_rng(0).uniform(-9, 300, (50, 2))
        assert (image.to_delivered(points) == points).all()
        assert (image.to_held(points) == points).all()
        assert (image.delivered_from_held == np.eye(3)).all()


def test_patches_are_compared_at_the_places_that_are_meant() -> None:
    """Of two places the one with the right patch, where no other cue tells them apart."""
    noise = np.random.default_rng(1).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    shown = np.asarray(cv2.resize(noise, (480, 360), interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
    identity = np.eye(2, 3)
    for most in (np.inf, 480 * 360 / 2):
        image = Image(encode_jpeg(shown), most_pixels=most)
        here, there = np.array([300.0, 200.0]), np.array([330.0, 220.0])
        assert correlate_patches(image, Image(image.data), here, here, identity, 1.0) > 0.95
        assert correlate_patches(image, Image(image.data), here, there, identity, 1.0) < 0.5


def test_images_of_calls_are_bounded() -> None:
    side = int(1.5 * MAX_PIXELS**0.5)
    (image,) = open_images([encode_jpeg(np.zeros((side, side, 3), np.uint8))])
    assert 0.9 * MAX_PIXELS < image.gray.size <= MAX_PIXELS
    assert image.size == (side, side)


class Seeing:
    """In the place of every model: it finds the bright rectangle, and depth grows to the right."""

    def find_boxes(self, image: ColorArray, names: Sequence[str]) -> list[FoundBox]:
        return [FoundBox(self._bound(image), 0.9) for _ in names]

    def find_masks(self, image: ColorArray, boxes: Sequence[Any]) -> list[FoundMask]:
        assert boxes[0] == pytest.approx(self._bound(image))  # a box of another size would say another place
        return [FoundMask(image[..., 0] > 128, 0.8) for _ in boxes]

    def measure_depth(self, image: ColorArray) -> DepthMap:
        high, wide = image.shape[:2]
        return DepthMap(np.tile(1 + np.linspace(0, 400, wide), (high, 1)), 0.7 * wide)

    def match_pair(self, first: ColorArray, second: ColorArray) -> LearnedMatches:
        return LearnedMatches(self._find_middle(first)[None], self._find_middle(second)[None], np.ones(1))

    def measure_flow(self, first: ColorArray, later: ColorArray) -> FloatArray:
        return np.tile(self._find_middle(later) - self._find_middle(first), (*first.shape[:2], 1))

    def measure_orientation(self, image: ColorArray) -> Orientation:
        assert image.mean() > 250  # the object alone, whatever the size of the image
        return Orientation(100.0, 80.0, -20.0, 0.7)

    def _bound(self, image: ColorArray) -> tuple[float, float, float, float]:
        v, u = np.nonzero(image[..., 0] > 128)
        return u.min() - 0.5, v.min() - 0.5, u.max() + 0.5, v.max() + 0.5

    def _find_middle(self, image: ColorArray) -> FloatArray:
        left, top, right, bottom = self._bound(image)
        return np.array([left + right, top + bottom]) / 2


def list_numbers(value: Any) -> list[float]:
    if isinstance(value, dict | list | tuple):
        return [
            number for one in (value.values() if isinstance(value, dict) else value) for number in list_numbers(one)
        ]
    return [float(value)] if isinstance(value, int | float) else []


WHERE = {"image": "image-0", "indoor_or_outdoor": "indoor"}
LEARNED: list[tuple[str, dict[str, Any]]] = [
    ("LocalizeObjectsWeights", {"image": "image-0", "objects": ["lamp", "dog"]}),
    ("GetObjectMaskWeights", {"image": "image-0", "objects": ["lamp"]}),
    ("EstimateObjectDepthWeights", WHERE | {"objects": ["lamp"]}),
    ("EstimateObjectGeometryPropertiesWeights", WHERE | {"object_descs": ["lamp"]}),
    ("EstimateRegionDepthWeights", WHERE | {"bboxes": [[40, 20, 90, 150]], "mode": "center"}),
    ("MatchImagesWeights", {"image": ["image-0", "image-1"]}),
    ("GetObjectOrientationWeights", {"image": "image-0", "objects": ["lamp"]}),
    ("EstimateOpticalFlowRaft", {"image": ["image-0", "image-1"]}),
    ("EstimateOpticalFlowRaftOfficial", {"image": ["image-0", "image-1"]}),
]


@pytest.mark.parametrize(("key", "arguments"), LEARNED, ids=[key for key, _ in LEARNED])
def test_learned_tools_speak_of_the_image_as_given(
    key: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("objects", "depths", "matches", "flow"):
        monkeypatch.setattr(f"vgbench_gen.agent.tools.{module}.load_part", lambda options, slot: Seeing())
    shown = []
    for left, top in ((96, 60), (120, 40)):
        image = np.zeros((200, 300, 3), np.uint8)
        image[top : top + 80, left : left + 100] = 255
        shown.append(encode_jpeg(image))
    tool = tools[key]
    read = tool.Arguments.model_validate(arguments, strict=False)
    needed = {"Raft": "flow", "Orientation": "orientation"}
    options = tool.Options.model_validate({slot: "x" for word, slot in needed.items() if word in key})
    told = []
    for most in (np.inf, 200 * 300 / 4):
        made = tool.run(ToolInput(read, [Image(data, most_pixels=most) for data in shown], options))
        told.append(list_numbers(made.values))
    assert len(told[0]) > 1
    assert told[1] == pytest.approx(told[0], rel=0.02, abs=1.5)
