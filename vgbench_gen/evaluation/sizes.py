"""How many parameters a model has, by its name: for rows of tables in groups, and for votes that need large models."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from functools import cache
from pathlib import Path

from pydantic import Field

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError

REGISTRY = Path(__file__).with_name("sizes.toml")
UNKNOWN = "size not known"
_WORD = re.compile(r"[^a-z0-9.]+")
_EXPERTS = re.compile(r"\b\d+[x\u00d7*][\s_-]*\d+(?:\.\d+)?b")
_STATED = re.compile(r"(\d+(?:\.\d+)?)(b|m)")


class Sizes(Config):
    """A registry of the sizes of models."""

    models: dict[str, float]
    """Billions of parameters by name."""
    groups: tuple[float, ...] = Field(default=(0.0,), min_length=1)
    """The lower ends of the groups of models in tables, in billions of parameters."""

    def billions(self, model_id: str) -> float | None:
        """Billions of parameters of a model; None where neither the registry nor the id itself says.

        Args:
            model_id: "Qwen/Qwen2.5-VL-7B-Instruct", "openai:gpt-4o", "vllm:http://host:8000/v1#name", ...; "8x7B" says
                what experts have and not what all of them hold, so where the registry does not know it nobody does.
        """
        # Of an address only the model's name counts: a host may be called anything.
        said = split_words(model_id.rpartition("#")[2])
        fitting = [
            (len(parts), size) for name, size in self.models.items() if _has_words(said, parts := split_words(name))
        ]
        if fitting:
            return float(max(fitting)[1])
        if _EXPERTS.search(model_id.rpartition("#")[2].casefold()):
            return None
        for word in said:
            match = _STATED.fullmatch(word)
            if match:
                return float(match[1]) / (1 if match[2] == "b" else 1000)
        return None

    def group(self, model_id: str) -> tuple[int, str]:
        """(place, name) of the group of tables that a model is in; models of unknown size come last."""
        size = self.billions(model_id)
        ends = sorted(self.groups)
        if size is None or size < ends[0]:
            return len(ends), UNKNOWN
        k = bisect_right(ends, size) - 1
        if k + 1 == len(ends):
            return k, f"{ends[k]:g}B and more"
        return k, f"below {ends[k + 1]:g}B" if k == 0 and not ends[0] else f"{ends[k]:g}B to below {ends[k + 1]:g}B"


@cache
def read_sizes(path: Path = REGISTRY) -> Sizes:
    """The registry of a file; the shipped one by default.

    Raises:
        ConfigError: the file is missing or not as it must be.
    """
    found = load_toml(path, Sizes)
    for name, size in found.models.items():
        if not split_words(name) or not (math.isfinite(size) and size > 0):
            raise ConfigError(f"{path}: models.{name}: found {size!r}; expected a name and billions above 0. Mend it.")
    return found


def find_size_billions(model_id: str) -> float | None:
    """Billions of parameters of a model by the shipped registry; None where it is not known."""
    return read_sizes().billions(model_id)


def split_words(name: str) -> tuple[str, ...]:
    """The words of a name, lower case: "Kimi-VL_A3B" has "kimi", "vl", "a3b"."""
    return tuple(word for word in _WORD.split(name.casefold()) if word)


def _has_words(said: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether `parts` stand in `said`, one after the other."""
    n = len(parts)
    return any(said[k : k + n] == parts for k in range(len(said) - n + 1))
