"""Optical flow: RAFT (Teed and Deng 2020) of torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.agent.models.loading import FolderModel, explain_failure
from vgbench_gen.core.types import ColorArray, FloatArray

SIDE_MAX_PX = 1024  # the long side at which flow is computed; memory grows with its fourth power
SIDE_MIN_PX = 128  # the smallest width and height, for four levels of correlation at an eighth of the size
_MULTIPLE = 8


class RaftFlow(FolderModel):
    """Estimates optical flow, with weights of torchvision in model.safetensors."""

    types: ClassVar = ("raft_large", "raft_small")

    def _load(self, folder: Path) -> None:
        with explain_failure(folder, f"{self.type} of torchvision"):
            from safetensors.torch import load_file
            from torchvision.models import optical_flow

            model = getattr(optical_flow, str(self.type))(weights=None)
            model.load_state_dict(load_file(folder / "model.safetensors"))
        self._model = model.eval().to(self._device, self._dtype)

    def measure_flow(self, first: ColorArray, second: ColorArray) -> FloatArray:
        """(H, W, 2) motion of each pixel to the right and down, pixels, between two images (H, W, 3), uint8 RGB."""
        import torch

        size = first.shape[0], first.shape[1]
        pixels = [prepare_image(image, size)[None].to(self._device, self._dtype) for image in (first, second)]
        with torch.inference_mode():
            flow = self._model(*pixels)[-1][0].float().cpu()
        return restore_flow(flow, choose_size(size)[0], size)


def choose_size(size: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """((height, width) at which flow is computed, the same after padding at the right and lower side)."""
    scale = min(1.0, SIDE_MAX_PX / max(size))
    height, width = (max(1, round(side * scale)) for side in size)
    padded = tuple(max(SIDE_MIN_PX, -(-side // _MULTIPLE) * _MULTIPLE) for side in (height, width))
    return (height, width), (padded[0], padded[1])


def prepare_image(image: ColorArray, size: tuple[int, int]) -> Any:
    """(3, h, w) from -1 to 1 at the working size, its last row and column repeated as padding."""
    import torch

    (height, width), padded = choose_size(size)
    pixels = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None].float()
    if (height, width) != tuple(size):
        pixels = torch.nn.functional.interpolate(pixels, size=(height, width), mode="bilinear", antialias=True)
    fill = (0, padded[1] - width, 0, padded[0] - height)
    return torch.nn.functional.pad(pixels, fill, mode="replicate")[0] / 127.5 - 1


def restore_flow(flow: Any, working: tuple[int, int], size: tuple[int, int]) -> FloatArray:
    """(H, W, 2) at the image's size, in its pixels, of a flow (2, h, w) at the padded working size."""
    import torch

    cut = flow[None, :, : working[0], : working[1]]
    if working != tuple(size):
        cut = torch.nn.functional.interpolate(cut, size=size, mode="bilinear", align_corners=False)
    factors = np.array([size[1] / working[1], size[0] / working[0]])
    return np.asarray(cut[0].permute(1, 2, 0).numpy().astype(np.float64) * factors)
