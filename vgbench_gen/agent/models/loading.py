"""What all models share: how a folder is loaded, and on which device. No code of a model's own ever runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.paths import open_file
from vgbench_gen.core.stand_ins import HEAD_BYTES, describe_stand_in


def choose_device(device: str) -> Any:
    """torch's device of a name; auto is the first GPU where there is one.

    Raises:
        ConfigError: this machine has no such device.
    """
    import torch

    gpus = torch.cuda.device_count()
    if device == "auto":
        device = "cuda:0" if gpus else "cpu"
    place = torch.device(device)
    if place.type == "cuda" and (place.index or 0) >= gpus:
        raise ConfigError(
            f"device {device}: found {gpus} GPUs that torch can use; expected that one. Set device = 'cpu'."
        )
    if place.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("device mps: torch cannot use it here. Set device = 'cpu'.")
    return place


def check_files(folder: Path) -> None:
    """See that a model's folder holds files that end, and weights.

    Raises:
        ConfigError: one is a pipe, or something else lies in the place of weights.
    """
    for path in sorted(path for path in folder.iterdir() if not path.is_dir()):
        try:
            with open_file(path) as file:
                found = describe_stand_in(file.read(HEAD_BYTES)) if path.suffix == ".safetensors" else None
        except OSError as error:
            found = f"no readable file ({error.strerror})", "Copy it again."
        if found is not None:
            raise ConfigError(f"{path}: found {found[0]}; expected a file of a model. {found[1]}")


def load_model(class_name: str, folder: Path, device: str, dtype: str) -> Any:
    """A model of transformers, ready to be asked.

    Args:
        class_name: of transformers, such as AutoModelForDepthEstimation.
        folder: with config.json and weights as safetensors.
        device: see `choose_device`.
        dtype: float32, bfloat16 or float16.

    Raises:
        ConfigError: the folder holds no such model, or only weights that are pickled.
    """
    import torch
    import transformers

    place = choose_device(device)
    if not sys.stderr.isatty():
        transformers.utils.logging.disable_progress_bar()
    try:
        model = getattr(transformers, class_name).from_pretrained(
            folder, dtype=getattr(torch, dtype), local_files_only=True, trust_remote_code=False, use_safetensors=True
        )
        return model.eval().to(place)
    except (OSError, ValueError, ImportError, KeyError, RuntimeError, AssertionError, TypeError) as error:
        text = " ".join(str(error).split())[:300]
        raise ConfigError(f"{folder}: cannot be loaded as {class_name} with safetensors ({text}).") from error


def load_processor(class_name: str, folder: Path, **options: Any) -> Any:
    """An image processor or tokenizer of transformers.

    Raises:
        ConfigError: the folder holds none.
    """
    import transformers

    try:
        return getattr(transformers, class_name).from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, **options
        )
    except (OSError, ValueError, ImportError, KeyError, TypeError, RuntimeError) as error:
        text = " ".join(str(error).split())[:300]
        raise ConfigError(f"{folder}: no {class_name} can be loaded ({text}).") from error


def load_image_processor(folder: Path) -> Any:
    """The one that works with PIL, so that results do not hang on whether torchvision is installed."""
    return load_processor("AutoImageProcessor", folder, backend="pil")


def read_settings(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of a model's folder.

    Raises:
        ConfigError: it is not there or no JSON object.
    """
    try:
        told = read_json(folder / name, "none")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder / name}: cannot be read ({error}).") from None
    if not isinstance(told, dict):
        raise ConfigError(f"{folder / name}: found no JSON object.")
    return told


def resize_and_normalise(image: Any, size_px: tuple[int, int], settings: dict[str, Any]) -> Any:
    """(1, 3, height, width) float32 of an RGB image stretched to a size, by the means of a preprocessor's settings.

    Args:
        image: (H, W, 3) uint8.
        size_px: (height, width).
        settings: with image_mean and image_std.
    """
    import numpy as np
    import torch

    mean, std = (torch.tensor(settings[key], dtype=torch.float32)[:, None, None] for key in ("image_mean", "image_std"))
    pixels = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None].float() / 255
    return (torch.nn.functional.interpolate(pixels, size=size_px, mode="bilinear", antialias=True) - mean) / std
