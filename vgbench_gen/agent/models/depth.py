"""Metric depth of one image: Depth Anything V2 metric, ZoeDepth or Depth Pro."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.agent.models.loading import FolderModel, load_image_processor, read_settings, resize_and_normalise
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import ColorArray, FloatArray

_PRO_SETTINGS = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_NEAREST_M, _FARTHEST_M = 1e-4, 1e4  # the published range of Depth Pro


@dataclass(frozen=True, slots=True, eq=False)
class DepthMap:
    """Depth of an image."""

    depth_m: FloatArray
    """(H, W) meters along the viewing axis, without error bars."""
    focal_px: float | None
    """Focal length in pixels of the image, if the model estimates it."""


class DepthModel(FolderModel):
    """Estimates the metric depth of each pixel."""

    types: ClassVar = ("depth_anything", "zoedepth", "depth_pro")

    def _load(self, folder: Path) -> None:
        if self.type == "depth_anything" and self._config.get("depth_estimation_type") != "metric":
            raise ConfigError(
                f"{folder}: found a model of relative depth; expected a metric one, such as *-Metric-*-hf."
            )
        self._model = self._load_transformer("AutoModelForDepthEstimation", folder)
        # The processor for Depth Pro in transformers needs torchvision.
        self._images = None if self.type == "depth_pro" else load_image_processor(folder)
        self._settings = {**_PRO_SETTINGS, **read_settings(folder, "preprocessor_config.json")}

    def measure_depth(self, image: ColorArray) -> DepthMap:
        """Depth of each pixel of an image (H, W, 3), uint8 RGB."""
        import torch

        size = image.shape[0], image.shape[1]
        if self._images is None:
            side = self._settings.get("size", {"height": 1536, "width": 1536})
            pixels = resize_and_normalise(image, (side["height"], side["width"]), self._settings)
        else:
            pixels = self._images(images=[image], return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            out = self._model(pixel_values=pixels.to(self._device, self._dtype))
        raw = out.predicted_depth[0].float()
        if self._images is None:
            return invert_depth(raw, None if out.field_of_view is None else float(out.field_of_view[0]), size)
        # ZoeDepth's processor pads images with a mirrored rim.
        padded = self.type == "zoedepth" and self._images.do_pad
        rows, columns = (int(3 * np.sqrt(side / 2)) if padded else 0 for side in size)
        return DepthMap(restore_depth(raw, size, (rows, columns)), None)


def restore_depth(raw: Any, size: tuple[int, int], rim: tuple[int, int]) -> FloatArray:
    """(H, W) at the image's size, from a tensor (h, w) of the image and a rim of (rows, columns) on each side."""
    import torch

    (height, width), (rows, columns) = size, rim
    padded = (height + 2 * rows, width + 2 * columns)
    large = torch.nn.functional.interpolate(raw[None, None], size=padded, mode="bicubic", align_corners=False)[0, 0]
    return np.asarray(large[rows : rows + height, columns : columns + width].cpu().numpy().astype(np.float64))


def invert_depth(raw: Any, fov_deg: float | None, size: tuple[int, int]) -> DepthMap:
    """Depth from the output of Depth Pro: inverse depth for a camera whose focal length is the image's width.

    Args:
        raw: (h, w) tensor.
        fov_deg: horizontal field of view; None if the model does not estimate it. Then the focal length is the width.
        size: (height, width) of the image.
    """
    import torch

    width = size[1]
    focal = None if fov_deg is None else 0.5 * width / float(np.tan(np.radians(np.clip(fov_deg, 1, 179)) / 2))
    inverse = torch.nn.functional.interpolate(raw[None, None], size=size, mode="bilinear", align_corners=False)[0, 0]
    if focal is not None:
        inverse = inverse * (width / focal)
    depth = 1 / inverse.clamp(1 / _FARTHEST_M, 1 / _NEAREST_M)
    return DepthMap(depth.cpu().numpy().astype(np.float64), focal)
