"""Orientation of an object: Orient-Anything (Wang et al. 2024), a DINOv2 encoder that classifies angles by degree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.agent.models.loading import FolderModel, explain_failure, load_image_processor
from vgbench_gen.core.types import ColorArray

# Outputs of the head: 360 azimuths, 180 polar angles, then rotations, then two values for the confidence.
_AZIMUTHS, _POLARS = 360, 180
_FILLED = 0.85  # share of the square's side that the object takes up, as in the published code


@dataclass(frozen=True, slots=True)
class Orientation:
    """The orientation of an object relative to the camera."""

    azimuth_deg: float
    """0 to 360: rotation from facing the camera, clockwise as seen from above."""
    polar_deg: float
    """0 to 180: elevation from which the camera sees it; 0 from below, 90 level, 180 from above."""
    rotation_deg: float
    """About the view direction, 0 for an upright camera; plus or minus half the number of the weights' rotations."""
    confidence: float
    """0 to 1: that the object has a front."""


class OrientationModel(FolderModel):
    """Estimates the orientation of the object that fills an image.

    Its folder holds config.json and preprocessor_config.json of the DINOv2, and the published weights as safetensors.
    """

    types: ClassVar = ("dinov2",)

    def _load(self, folder: Path) -> None:
        import torch

        with explain_failure(folder, "Orient-Anything with safetensors"):
            from safetensors.torch import load_file
            from transformers import Dinov2Config, Dinov2Model

            encoder, head = _split(load_file(folder / "model.safetensors"))
            # This renames the published tensors.
            self._encoder, info = Dinov2Model.from_pretrained(
                None,
                config=Dinov2Config.from_pretrained(folder, local_files_only=True),
                state_dict=encoder,
                output_loading_info=True,
            )
            if wrong := sorted({*info["missing_keys"], *info["unexpected_keys"]}):
                raise ValueError(f"{len(wrong)} tensors too few or too many: {wrong[0]}")
            count, width = len(head["net2.0.weight"]), self._encoder.config.hidden_size
            if count <= _AZIMUTHS + _POLARS + 2:
                raise ValueError(f"{count} classes")
            with torch.device("meta"):
                first = torch.nn.Sequential(torch.nn.Linear(width, count), torch.nn.BatchNorm1d(count), torch.nn.ReLU())
                second = torch.nn.Sequential(torch.nn.Linear(count, count), torch.nn.BatchNorm1d(count))
                self._head = torch.nn.ModuleDict({"net1": first, "net2": second})
            self._head.load_state_dict(head, assign=True)
        self._images = load_image_processor(folder)
        for part in (self._encoder, self._head):
            part.eval().to(self._device, self._dtype)

    def measure_orientation(self, image: ColorArray) -> Orientation:
        """The orientation of the object that fills an image (H, W, 3), uint8 RGB."""
        import torch

        pixels = self._images(images=[center_on_square(image)], return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            features = self._encoder(pixel_values=pixels.to(self._device, self._dtype)).last_hidden_state[:, 0]
            scores = self._head["net2"](self._head["net1"](features))[0].float().cpu()
        azimuth, polar, rotation, confidence = scores.split(
            [_AZIMUTHS, _POLARS, len(scores) - _AZIMUTHS - _POLARS - 2, 2]
        )
        return Orientation(
            float(azimuth.argmax()),
            float(polar.argmax()),
            float(rotation.argmax()) - len(rotation) / 2,
            float(confidence.softmax(0)[0]),
        )


def _split(weights: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(tensors of the encoder, tensors of the head), by name."""
    parts = {"dinov2": dict[str, Any](), "down_sampler": dict[str, Any]()}
    for name, tensor in weights.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    return parts["dinov2"], parts["down_sampler"]


def center_on_square(image: ColorArray) -> ColorArray:
    """(S, S, 3) black square with the whole image in its middle."""
    height, width = image.shape[:2]
    side = max(1, round(max(height, width) / _FILLED))
    square = np.zeros((side, side, 3), np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    square[top : top + height, left : left + width] = image
    return square
