"""Matched points of two images: SuperPoint (DeTone et al. 2018) with LightGlue (Lindenberger et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vgbench_gen.agent.models.loading import load_image_processor, load_model, read_settings
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import ColorArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LearnedMatches:
    """Points that two images share, best first."""

    uv1: FloatArray
    """(N, 2) pixels of the first image."""
    uv2: FloatArray
    """(N, 2) of the second."""
    scores: FloatArray
    """(N,) 0 to 1, the model's own."""


class PairMatcher:
    """Matches pairs of images.

    Args:
        folder: of a model of type lightglue, with its keypoint detector.
        device: see `loading.choose_device`.
        dtype: of the weights.

    Raises:
        ConfigError: the folder holds no such model.
    """

    def __init__(self, folder: Path, device: str, dtype: str) -> None:
        kind = read_settings(folder, "config.json").get("model_type")
        if kind != "lightglue":
            raise ConfigError(f"{folder}: found a model of type {kind}; expected lightglue.")
        self._model = load_model("AutoModelForKeypointMatching", folder, device, dtype)
        self._images = load_image_processor(folder)

    def match_pair(self, first: ColorArray, second: ColorArray) -> LearnedMatches:
        """The matches of two (H, W, 3) uint8 RGB images."""
        import torch

        pixels = self._images(images=[[first, second]], return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            out = self._model(pixel_values=pixels.to(self._model.device, self._model.dtype))
        # With and without early stopping the model gives one shape or the other.
        chosen, scores = (one.reshape(2, -1)[0].float().cpu().numpy() for one in (out.matches, out.matching_scores))
        points = out.keypoints[0].float().cpu().numpy().astype(np.float64)
        seen = (out.mask[0, 0].cpu().numpy() > 0) & (chosen >= 0)
        order = np.flatnonzero(seen)[np.argsort(-scores[seen], kind="stable")]
        stretched = (int(pixels.shape[-2]), int(pixels.shape[-1]))
        return LearnedMatches(
            to_image_pixels(points[0][order], stretched, first.shape[:2]),
            to_image_pixels(points[1][chosen[order].astype(np.int64)], stretched, second.shape[:2]),
            scores[order].astype(np.float64),
        )


def to_image_pixels(points: FloatArray, stretched: tuple[int, int], size: tuple[int, int]) -> FloatArray:
    """(N, 2) pixels of an image, with fractions, of keypoints that a model gives as shares of its stretched copy.

    A share times the copy's width is the index of a pixel there, counted from the centre of the first one.

    Args:
        points: (N, 2) x before y.
        stretched: (height, width) of the copy.
        size: (height, width) of the image.
    """
    copy, own = np.array(stretched[::-1], dtype=np.float64), np.array(size[::-1], dtype=np.float64)
    return np.asarray((points * copy + 0.5) * own / copy - 0.5)
