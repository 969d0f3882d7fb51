"""Masks of what lies in boxes: SAM 2 (Ravi et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.agent.models.loading import load_model, read_settings, resize_and_normalise
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import BoolArray, ColorArray

Box = tuple[float, float, float, float]
_SETTINGS = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}  # where the folder has none


@dataclass(frozen=True, slots=True, eq=False)
class FoundMask:
    """The mask of one box."""

    mask: BoolArray
    """(H, W) of the image."""
    score: float
    """What the model expects its overlap with the truth to be (intersection over union), 0 to 1."""


class BoxSegmenter:
    """Outlines what a box holds.

    Args:
        folder: of the model.
        device: see `loading.choose_device`.
        dtype: of the weights.

    Raises:
        ConfigError: the folder holds no such model.
    """

    def __init__(self, folder: Path, device: str, dtype: str) -> None:
        kind = read_settings(folder, "config.json").get("model_type")
        if kind not in ("sam2", "sam2_video"):
            raise ConfigError(f"{folder}: found a model of type {kind}; expected sam2.")
        self._model = load_model("Sam2Model", folder, device, dtype)
        own = read_settings(folder, "preprocessor_config.json")
        self._settings = {key: own.get(key, value) for key, value in _SETTINGS.items()}
        self._side_px = int(self._model.config.prompt_encoder_config.image_size)

    def find_masks(self, image: ColorArray, boxes: Sequence[Box]) -> list[FoundMask]:
        """The mask of each box.

        Args:
            image: (H, W, 3) uint8 RGB.
            boxes: [left, top, right, bottom] in pixels; at least one.
        """
        import torch

        side, size = self._side_px, (image.shape[0], image.shape[1])
        pixels = resize_and_normalise(image, (side, side), self._settings)
        asked = [[scale_box(box, size, side) for box in boxes]]
        with torch.inference_mode():
            out = self._model(
                pixel_values=pixels.to(self._model.device, self._model.dtype),
                input_boxes=torch.tensor(asked, device=self._model.device, dtype=self._model.dtype),
                multimask_output=False,
            )
        return [
            FoundMask(enlarge_mask(logits[0], size), float(score[0].float().clip(0, 1)))
            for logits, score in zip(out.pred_masks[0], out.iou_scores[0], strict=True)
        ]


def scale_box(box: Sequence[float], size: tuple[int, int], side_px: int) -> list[float]:
    """A box in an image of (height, width) stretched to a square: pixels with (0, 0) the centre of the first one."""
    factors = [side_px / size[1], side_px / size[0]] * 2
    return [(edge + 0.5) * factor - 0.5 for edge, factor in zip(box, factors, strict=True)]


def enlarge_mask(logits: Any, size: tuple[int, int]) -> BoolArray:
    """(H, W) where the logits of a small mask of the stretched image are positive at the image's own size."""
    import torch

    large = torch.nn.functional.interpolate(logits[None, None].float(), size=size, mode="bilinear", align_corners=False)
    return np.asarray(large[0, 0].cpu().numpy() > 0)


def bound_mask(mask: BoolArray) -> Box | None:
    """[left, top, right, bottom] of a mask's edges, pixels; None where it is empty."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return columns[0] - 0.5, rows[0] - 0.5, columns[-1] + 0.5, rows[-1] + 0.5
