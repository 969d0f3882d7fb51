"""Optical flow: RAFT (Teed and Deng 2020) of torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.agent.models.loading import choose_device
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import ColorArray, FloatArray

KINDS = ("raft_large", "raft_small")
SIDE_MAX_PX = 1024  # long side at which flow is computed; memory grows with its fourth power
SIDE_MIN_PX = 128  # of both sides: four levels of correlation over an eighth of the size
_MULTIPLE = 8


class RaftFlow:
    """Tells how pixels move.

    Args:
        folder: with config.json, which names one of `KINDS` as `model_type`, and its weights in model.safetensors.
        device: see `loading.choose_device`.
        dtype: of the weights.

    Raises:
        ConfigError: the folder holds no such model, or torchvision is missing.
    """

    def __init__(self, folder: Path, device: str, dtype: str) -> None:
        import torch

        from vgbench_gen.agent.models.loading import read_settings

        kind = read_settings(folder, "config.json").get("model_type")
        if kind not in KINDS:
            raise ConfigError(f"{folder}: found a model of type {kind}; expected {' or '.join(KINDS)} in config.json.")
        try:
            from safetensors.torch import load_file
            from torchvision.models import optical_flow

            model = getattr(optical_flow, kind)(weights=None)
            model.load_state_dict(load_file(folder / "model.safetensors"))
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            text = " ".join(str(error).split())[:300]
            raise ConfigError(f"{folder}: cannot be loaded as {kind} of torchvision ({text}).") from error
        self._place = choose_device(device)
        self._dtype = getattr(torch, dtype)
        self._model = model.eval().to(self._place, self._dtype)

    def measure_flow(self, first: ColorArray, second: ColorArray) -> FloatArray:
        """(H, W, 2) by how many pixels each one of the first image moves right and down.

        Args:
            first: (H, W, 3) uint8 RGB.
            second: of the same size.
        """
        import torch

        size = first.shape[0], first.shape[1]
        one, two = (prepare_image(image, size)[None].to(self._place, self._dtype) for image in (first, second))
        with torch.inference_mode():
            flow = self._model(one, two)[-1][0].float().cpu()
        return restore_flow(flow, choose_size(size)[0], size)


def choose_size(size: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """((height, width) at which flow is computed, the same with what is padded at the right and lower side)."""
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
