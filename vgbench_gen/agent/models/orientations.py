"""How an object faces: Orient-Anything (Wang et al. 2024), a DINOv2 encoder with a head of angles in whole degrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.agent.models.loading import choose_device, load_image_processor, read_settings
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import ColorArray

_AZIMUTHS, _POLARS = 360, 180  # classes of the head, then those of rotations, then two of confidence
_FILLED = 0.85  # of the square's side that the object takes up, as in the published code


@dataclass(frozen=True, slots=True)
class Orientation:
    """How an object faces, as the model tells it."""

    azimuth_deg: float
    """0 to 360: by how much it is turned clockwise, seen from above, from facing the camera."""
    polar_deg: float
    """0 to 180: from which height the camera sees it; 0 from below, 90 level, 180 from above."""
    rotation_deg: float
    """About the view direction, 0 for an upright camera; from minus to plus half the range that the weights know."""
    confidence: float
    """0 to 1: that it has a front at all."""


class OrientationModel:
    """Tells how the object that fills an image faces.

    Args:
        folder: with config.json and preprocessor_config.json of its DINOv2 and the published weights as safetensors.
        device: see `loading.choose_device`.
        dtype: of the weights.

    Raises:
        ConfigError: the folder holds no such model.
    """

    def __init__(self, folder: Path, device: str, dtype: str) -> None:
        import torch

        kind = read_settings(folder, "config.json").get("model_type")
        if kind != "dinov2":
            raise ConfigError(
                f"{folder}: found a model of type {kind}; expected dinov2, the encoder of Orient-Anything."
            )
        place = choose_device(device)
        try:
            from safetensors.torch import load_file
            from transformers import Dinov2Config, Dinov2Model

            encoder, head = _split(load_file(folder / "model.safetensors"))
            # Renames what the published file calls otherwise.
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
        except (ImportError, OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
            text = " ".join(str(error).split())[:300]
            raise ConfigError(f"{folder}: cannot be loaded as Orient-Anything with safetensors ({text}).") from error
        self._images = load_image_processor(folder)
        self._place, self._dtype = place, getattr(torch, dtype)
        for part in (self._encoder, self._head):
            part.eval().to(place, self._dtype)

    def measure_orientation(self, image: ColorArray) -> Orientation:
        """How an object faces.

        Args:
            image: (H, W, 3) uint8 RGB that it fills.
        """
        import torch

        pixels = self._images(images=[center_on_square(image)], return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            seen = self._encoder(pixel_values=pixels.to(self._place, self._dtype)).last_hidden_state[:, 0]
            scores = self._head["net2"](self._head["net1"](seen))[0].float().cpu()
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
    """(tensors of the encoder, of the head), by their names there."""
    parts = {"dinov2": dict[str, Any](), "down_sampler": dict[str, Any]()}
    for name, tensor in weights.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    return parts["dinov2"], parts["down_sampler"]


def center_on_square(image: ColorArray) -> ColorArray:
    """(S, S, 3) black with the image in its middle, so that no end of it is cut off."""
    height, width = image.shape[:2]
    side = max(1, round(max(height, width) / _FILLED))
    made = np.zeros((side, side, 3), np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    made[top : top + height, left : left + width] = image
    return made
