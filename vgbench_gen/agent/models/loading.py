"""Loads models from folders onto a device. Code that comes with a model is never run."""

from __future__ import annotations

import abc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.paths import open_file
from vgbench_gen.core.stand_ins import HEAD_BYTES, describe_stand_in


def choose_device(device: str) -> Any:
    """The torch device of a name; auto is the first GPU, or else the CPU.

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
    """Check that the files of a model's folder are regular and that its weights are not pointers or web pages.

    Raises:
        ConfigError: one of them is.
    """
    for path in sorted(path for path in folder.iterdir() if not path.is_dir()):
        try:
            with open_file(path) as file:
                problem = describe_stand_in(file.read(HEAD_BYTES)) if path.suffix == ".safetensors" else None
        except OSError as error:
            problem = f"no readable file ({error.strerror})", "Copy it again."
        if problem is not None:
            raise ConfigError(f"{path}: found {problem[0]}; expected a file of a model. {problem[1]}")


@contextmanager
def explain_failure(folder: Path, what: str) -> Iterator[None]:
    """Turn errors of torch and transformers into a `ConfigError` in one line."""
    try:
        yield
    except (OSError, ValueError, ImportError, KeyError, RuntimeError, AssertionError, TypeError) as error:
        text = " ".join(str(error).split())[:300]
        raise ConfigError(f"{folder}: cannot be loaded as {what} ({text}).") from error


class FolderModel(abc.ABC):
    """A model that is loaded from a folder.

    Args:
        folder: as `save_pretrained` writes it.
        device: see `choose_device`.
        dtype: float32, bfloat16 or float16.

    Raises:
        ConfigError: the folder holds no model of these types, or it cannot be loaded.
    """

    types: ClassVar[tuple[str, ...]]
    """Values of `model_type` in config.json that the class can load."""

    def __init__(self, folder: Path, device: str, dtype: str) -> None:
        import torch

        self._config = read_settings(folder, "config.json")
        self.type = self._config.get("model_type")
        if self.type not in self.types:
            raise ConfigError(f"{folder}: found a model of type {self.type}; expected {' or '.join(self.types)}.")
        self._device, self._dtype = choose_device(device), getattr(torch, dtype)
        self._load(folder)

    @abc.abstractmethod
    def _load(self, folder: Path) -> None:
        """Load weights and processors."""

    def _load_transformer(self, class_name: str, folder: Path) -> Any:
        """A model of transformers, such as AutoModelForDepthEstimation, from weights as safetensors."""
        import transformers

        if not sys.stderr.isatty():
            transformers.utils.logging.disable_progress_bar()
        with explain_failure(folder, f"{class_name} with safetensors"):
            model = (
                getattr(transformers, class_name)
                .from_pretrained(
                    folder, dtype=self._dtype, local_files_only=True, trust_remote_code=False, use_safetensors=True
                )
                .to(self._device)
            )
        return model.eval()


def load_processor(class_name: str, folder: Path, **options: Any) -> Any:
    """An image processor or tokenizer of transformers.

    Raises:
        ConfigError: the folder holds none.
    """
    import transformers

    with explain_failure(folder, class_name):
        return getattr(transformers, class_name).from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, **options
        )


def load_image_processor(folder: Path) -> Any:
    """The image processor that uses PIL, so that results do not depend on whether torchvision is installed."""
    return load_processor("AutoImageProcessor", folder, backend="pil")


def read_settings(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of a model's folder.

    Raises:
        ConfigError: the file is missing or no JSON object.
    """
    try:
        settings = read_json(folder / name, "none")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder / name}: cannot be read ({error}).") from None
    if not isinstance(settings, dict):
        raise ConfigError(f"{folder / name}: found no JSON object.")
    return settings


def resize_and_normalise(image: Any, size_px: tuple[int, int], settings: dict[str, Any]) -> Any:
    """(1, 3, height, width) float32: an RGB image stretched to a size and normalised as a preprocessor's settings say.

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
