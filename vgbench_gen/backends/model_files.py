"""Finds a model by folder or by its name on the Hub, and computes a digest of its files."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import digest_bytes, hash_stably

HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
REVISION = re.compile(r"[\w.-]+", re.ASCII)
HUB_FILES = ("*.json", "*.jinja", "*.txt", "*.model", "*.safetensors")
_SAMPLES, _SAMPLE_BYTES = 256, 1 << 16  # the digest of a file of weights reads this many samples of this size
_SMALL_BYTES = 1 << 20


def check_packages(where: str, packages: Sequence[str], extra: str) -> None:
    """Check that packages are installed, without importing them.

    Raises:
        ConfigError: one is not; the message names the extra that installs it.
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise ConfigError(
            f"{where}: needs {' and '.join(missing)}, not installed here. "
            f"Install the extra: pip install 'vgbench-gen[{extra}]'"
        )


def locate_model(model: str, where: str, files: Sequence[str] = HUB_FILES) -> tuple[Path, str]:
    """(folder, name with a digest or revision of its content) of a model.

    Args:
        model: a folder as `save_pretrained` writes it, or ORGANISATION/NAME[@REVISION] of the Hub, which is fetched if
            it is not in the local cache, unless HF_HUB_OFFLINE is set.
        where: for messages.
        files: patterns of the files to fetch.

    Raises:
        ConfigError: there is no such folder and no such model on the Hub.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ConfigError(f"{where}: found no config.json there; expected a folder that save_pretrained wrote.")
        return folder, f"{folder.resolve().name}@{compute_folder_digest(folder)}"
    name, at, revision = model.partition("@")
    if not HUB_NAME.fullmatch(name) or (at and not REVISION.fullmatch(revision)):
        raise ConfigError(f"{where}: no such folder. Name the model's folder, or ORGANISATION/NAME of the Hub.")
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, revision=revision or None, allow_patterns=list(files)))
    except Exception as exc:
        # The Hub's client has a dozen exceptions; the first line of each message says what is wrong.
        first = str(exc).strip().split("\n")[0][:200]
        raise ConfigError(f"{where}: no such folder, and the Hub does not give it ({first}).") from exc
    return folder, f"{name}@{folder.name[:12]}"


def compute_folder_digest(folder: Path) -> str:
    """A digest of twelve characters of a model's folder, without reading all weights.

    Small files (configuration, tokenizer, chat template) are read whole; of files of weights the size and 256 samples,
    which differ after a training step that changes every layer.
    """
    parts: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in {".json", ".jinja", ".txt", ".model", ".safetensors", ".py"}:
            parts += [path.name, *_digest_file(path)]
    return hash_stably(*parts, size=6)


def _digest_file(path: Path) -> list[str]:
    size = path.stat().st_size
    parts = [str(size)]
    with path.open("rb") as file:
        if size <= _SMALL_BYTES or path.suffix != ".safetensors":
            return [*parts, digest_bytes(file.read())]
        for place in np.linspace(0, size - _SAMPLE_BYTES, _SAMPLES, dtype=np.int64).tolist():
            file.seek(place)
            parts.append(digest_bytes(file.read(_SAMPLE_BYTES)))
    return parts
