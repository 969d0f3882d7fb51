"""Masks of objects in boxes: SAM 2 (Ravi et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.agent.models.loading import FolderModel, read_settings, resize_and_normalise
from vgbench_gen.core.types import BoolArray, ColorArray

Box = tuple[float, float, float, float]
_DEFAULTS = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


@dataclass(frozen=True, slots=True, eq=False)
class FoundMask:
    """The mask of one box."""

    mask: BoolArray
    """(H, W) of the image."""
    score: float
    """The model's estimate of the intersection over union with the true mask, 0 to 1."""


class BoxSegmenter(FolderModel):
    """Outlines the object in a box."""

    types: ClassVar = ("sam2", "sam2_video")

    def _load(self, folder: Path) -> None:
        self._model = self._load_transformer("Sam2Model", folder)
        self._settings = _DEFAULTS | read_settings(folder, "preprocessor_config.json")
        self._side_px = int(self._model.config.prompt_encoder_config.image_size)

    def find_masks(self, image: ColorArray, boxes: Sequence[Box]) -> list[FoundMask]:
        """The mask of each of one or more boxes [left, top, right, bottom], pixels, in a uint8 RGB image (H, W, 3)."""
        import torch

        side, size = self._side_px, (image.shape[0], image.shape[1])
        pixels = resize_and_normalise(image, (side, side), self._settings)
        scaled = [[scale_box(box, size, side) for box in boxes]]
        with torch.inference_mode():
            out = self._model(
                pixel_values=pixels.to(self._device, self._dtype),
                input_boxes=torch.tensor(scaled, device=self._device, dtype=self._dtype),
                multimask_output=False,
            )
        return [
            FoundMask(enlarge_mask(logits[0], size), float(score[0].float().clip(0, 1)))
            for logits, score in zip(out.pred_masks[0], out.iou_scores[0], strict=True)
        ]


def scale_box(box: Sequence[float], size: tuple[int, int], side_px: int) -> list[float]:
    """A box after an image of (height, width) is stretched to a square; (0, 0) is the centre of the first pixel."""
    factors = [side_px / size[1], side_px / size[0]] * 2
    return [(edge + 0.5) * factor - 0.5 for edge, factor in zip(box, factors, strict=True)]


def enlarge_mask(logits: Any, size: tuple[int, int]) -> BoolArray:
    """(H, W) mask at the image's size, where the enlarged logits (h, w) of the stretched image are positive."""
    import torch

    large = torch.nn.functional.interpolate(logits[None, None].float(), size=size, mode="bilinear", align_corners=False)
    return np.asarray(large[0, 0].cpu().numpy() > 0)


def bound_mask(mask: BoolArray) -> Box | None:
    """[left, top, right, bottom] edges of a mask, pixels; None if it is empty."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return columns[0] - 0.5, rows[0] - 0.5, columns[-1] + 0.5, rows[-1] + 0.5
