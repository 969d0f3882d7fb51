"""Matched points of two images: SuperPoint (DeTone et al. 2018) with LightGlue (Lindenberger et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from vgbench_gen.agent.models.loading import FolderModel, load_image_processor
from vgbench_gen.core.types import ColorArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LearnedMatches:
    """Matched points of two images, best first."""

    uv1: FloatArray
    """(N, 2) pixels of the first image."""
    uv2: FloatArray
    """(N, 2) pixels of the second image."""
    scores: FloatArray
    """(N,) scores of the model, 0 to 1."""


class PairMatcher(FolderModel):
    """Matches the points of two images."""

    types: ClassVar = ("lightglue",)

    def _load(self, folder: Path) -> None:
        self._model = self._load_transformer("AutoModelForKeypointMatching", folder)
        self._images = load_image_processor(folder)

    def match_pair(self, first: ColorArray, second: ColorArray) -> LearnedMatches:
        """The matches of two (H, W, 3) uint8 RGB images."""
        import torch

        pixels = self._images(images=[[first, second]], return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            out = self._model(pixel_values=pixels.to(self._device, self._dtype))
        # The shape depends on whether the model stopped early.
        chosen, scores = (each.reshape(2, -1)[0].float().cpu().numpy() for each in (out.matches, out.matching_scores))
        points = out.keypoints[0].float().cpu().numpy().astype(np.float64)
        matched = (out.mask[0, 0].cpu().numpy() > 0) & (chosen >= 0)
        order = np.flatnonzero(matched)[np.argsort(-scores[matched], kind="stable")]
        stretched = (int(pixels.shape[-2]), int(pixels.shape[-1]))
        return LearnedMatches(
            to_image_pixels(points[0][order], stretched, first.shape[:2]),
            to_image_pixels(points[1][chosen[order].astype(np.int64)], stretched, second.shape[:2]),
            scores[order].astype(np.float64),
        )


def to_image_pixels(points: FloatArray, stretched: tuple[int, int], size: tuple[int, int]) -> FloatArray:
    """(N, 2) fractional pixels of an image, from keypoints as shares of a stretched copy.

    A share times the copy's width is a pixel coordinate there, counted from the centre of the first pixel.

    Args:
        points: (N, 2) x before y.
        stretched: (height, width) of the copy.
        size: (height, width) of the image.
    """
    copy, own = np.array(stretched[::-1], dtype=np.float64), np.array(size[::-1], dtype=np.float64)
    return np.asarray((points * copy + 0.5) * own / copy - 0.5)
