"""Weights by folder or by name of the Hub: where their files lie, and a digest that changes with what they hold."""

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
_SAMPLES, _SAMPLE_BYTES = 256, 1 << 16  # of every file of weights, for its digest
_SMALL_BYTES = 1 << 20


def check_packages(where: str, packages: Sequence[str], extra: str) -> None:
    """See that packages can be imported, without importing them.

    Raises:
        ConfigError: one is not installed; names the extra that brings it.
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise ConfigError(
            f"{where}: needs {' and '.join(missing)}, not installed here. "
            f"Install the extra: pip install 'vgbench-gen[{extra}]'"
        )


def locate_model(model: str, where: str, files: Sequence[str] = HUB_FILES) -> tuple[Path, str]:
    """(folder, name with what tells this content from another) of a folder or a name of the Hub.

    Args:
        model: a folder as `save_pretrained` writes it, or ORGANISATION/NAME, or ORGANISATION/NAME@REVISION, which is
            fetched unless it is here or HF_HUB_OFFLINE is set.
        where: for messages.
        files: patterns of what is fetched.

    Raises:
        ConfigError: neither is there.
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
        # The Hub's client has a dozen kinds of errors; each says what is wrong in its first line.
        first = str(exc).strip().split("\n")[0][:200]
        raise ConfigError(f"{where}: no such folder, and the Hub does not give it ({first}).") from exc
    return folder, f"{name}@{folder.name[:12]}"


def compute_folder_digest(folder: Path) -> str:
    """Twelve characters that change with the content of a model's folder, without reading all of its weights.

    Small files (configuration, tokenizer, chat template) count whole; of weights their size and 256 places, which a
    training step that changes every layer cannot all miss.
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
