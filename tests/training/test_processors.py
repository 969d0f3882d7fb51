"""The families' resizing against the processors in transformers, and a drawn mark found again on what a model sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.store.examples import textured
from tests.training.test_families import marked, read_points
from vgbench_gen.training.families import Family, find_family, rewrite_points

pytest.importorskip("transformers")
pytestmark = pytest.mark.servers

SIZES = [
    (1024, 768),
    (768, 1024),
    (1296, 968),
    (640, 480),
    (1752, 1168),
    (1024, 765),
    (57, 2000),
    (28, 29),
    (3000, 3000),
]
SENTENCE = "Pixel coordinates (x, y): x to the right, y down, from the top-left corner."


def make_processor(family: Family) -> Any:
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    if family.tiles:
        return GotOcr2ImageProcessorPil(size={"height": 448, "width": 448}, crop_to_patches=True)
    size = {"shortest_edge": family.min_pixels, "longest_edge": family.max_pixels}
    return Qwen2VLImageProcessorPil(patch_size=family.step_px // 2, merge_size=2, size=size)


def see(image: Image.Image, family: Family) -> np.ndarray[Any, Any]:
    """(H, W) brightness of the picture as the family's processor hands it to the model."""
    found = make_processor(family)(image, return_tensors="np")
    if family.tiles:
        wide, high = family.resize(image.size)
        tiles = np.asarray(found["pixel_values"]).mean(axis=1)[: wide // 448 * (high // 448)]
        return np.asarray(tiles.reshape(high // 448, wide // 448, 448, 448).transpose(0, 2, 1, 3).reshape(high, wide))
    _, rows, columns = np.asarray(found["image_grid_thw"])[0]
    patch = family.step_px // 2
    patches = np.asarray(found["pixel_values"]).reshape(rows // 2, columns // 2, 2, 2, 3, 2, patch, patch)
    picture = patches.transpose(4, 5, 0, 2, 6, 1, 3, 7).reshape(3, 2, rows * patch, columns * patch)
    return np.asarray(picture.mean(axis=(0, 1)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["qwen2.5-vl", "qwen3-vl", "internvl"])
def test_images_are_resized_and_counted_as_the_processor_does(name: str, size: tuple[int, int]) -> None:
    family = find_family(name)
    image = Image.fromarray(textured(*size))
    wide, high = family.resize(size)
    assert see(image, family).shape == (high, wide)
    found = make_processor(family)(image, return_tensors="np")
    if family.tiles:
        assert family.count_tokens(size) == 256 * len(found["pixel_values"])
    else:
        assert family.count_tokens(size) == int(np.prod(found["image_grid_thw"][0])) // 4


@pytest.mark.parametrize("limit", [300_000, 1_003_520])
def test_a_limit_of_the_trainer_is_the_processors_limit(limit: int) -> None:
    for name in ("qwen2.5-vl", "qwen3-vl"):
        family = find_family(name, limit)
        for size in SIZES[:6]:
            wide, high = family.resize(size)
            assert see(Image.fromarray(textured(*size)), family).shape == (high, wide)


@pytest.mark.parametrize("size", SIZES[:5])
@pytest.mark.parametrize("name", ["qwen2.5-vl", "qwen3-vl", "internvl"])
def test_a_drawn_mark_lies_where_the_rewritten_row_says(name: str, size: tuple[int, int]) -> None:
    family = find_family(name)
    rng = np.random.default_rng(7)
    for _ in range(4):
        u, v = (int(rng.integers(8, side - 8)) for side in size)
        plain = np.full((size[1], size[0], 3), 90, np.uint8)
        drawn = plain.copy()
        drawn[v - 3 : v + 4, u - 3 : u + 4] = 255
        light = see(Image.fromarray(drawn), family) - see(Image.fromarray(plain), family)
        light[light < 0.1 * light.max()] = 0
        rows, columns = np.indices(light.shape)
        at = np.array([(columns * light).sum(), (rows * light).sum()]) / light.sum()
        item = rewrite_points(marked((u, v), [(5, 5)], SENTENCE), [size, size], family)
        (point,) = read_points(item.question)
        told = np.array(point)
        if family.unit == "thousandths":
            told = told / 1000 * light.shape[::-1] - 0.5
        assert np.abs(told - at).max() <= 1.0, (told, at)
