"""A mixture as a TOML file: sources and their shares, parts, limits and guards. Paths are relative to its folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from vgbench_gen.core.config import Config
from vgbench_gen.core.types import QuestionType
from vgbench_gen.scenes.base import Split

MIX = "mix.json"
"""What marks a folder as a mixture, which the next one may replace."""
BUILDS = "builds"
"""Folder of the datasets that are built for a mixture, beside its parts."""
_NAME = re.compile(r"\w[\w.-]*")
_Most = Annotated[int | None, Field(ge=1)]


class MixSource(Config):
    """Where rows come from."""

    name: str = ""
    """What it is called; by default as its dataset or recipe."""
    dataset: str = ""
    """A built dataset."""
    recipe: str = ""
    """Instead of `dataset`, a shipped recipe or a .toml file to build one by."""
    scenes: tuple[str, ...] = ()
    """Folders with the scans for `recipe`."""
    share: float = Field(default=1.0, gt=0)
    """Its rows in proportion to those of other sources."""
    tasks: tuple[str, ...] = ()
    """The tasks that are taken; all when empty."""
    types: tuple[QuestionType, ...] = ()
    """The question types that are taken; all when empty."""
    difficulty: tuple[str, ...] = ()
    """The values of column `difficulty` that are taken; all when empty."""
    max_images: _Most = None
    """The most images in a row."""

    @property
    def label(self) -> str:
        """What counts and messages call it."""
        return self.name or Path(self.dataset or self.recipe.removesuffix(".toml")).name

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if bool(self.dataset) == bool(self.recipe) or bool(self.recipe) != bool(self.scenes):
            raise ValueError("either dataset, or recipe and scenes")
        if not _NAME.fullmatch(self.label):
            raise ValueError(f"a name of letters, digits, _ . and -, not {self.label!r}")
        return self


class MixGuard(Config):
    """What is not trained on. A guarded room is left out whole, under every name it has."""

    rooms: tuple[str, ...] = ()
    """Files with one scene per line, such as published validation and test scenes."""
    datasets: tuple[str, ...] = ()
    """Datasets whose rooms and pictures must not occur."""
    allow_splits: tuple[Split, ...] = ("train", "unknown")
    """The official splits that are taken."""


class Mix(Config):
    """The settings of a mixture."""

    seed: int = Field(default=0, ge=0)
    """The seed of all draws."""
    rows: int = Field(ge=1)
    """The rows of all parts together."""
    max_per_room: _Most = None
    """The most rows from a physical room."""
    max_frames_per_room: _Most = None
    """The most frames that rows show of a physical room."""
    visits: str = ""
    """The `metadata.csv` of ARKitScenes, whose videos of one visit are one room, in CA-1M as well."""
    sources: tuple[MixSource, ...]
    """Where rows come from."""
    parts: dict[str, Annotated[float, Field(gt=0)]] = Field(default={"train": 1.0})
    """Part -> its share of the rows of every source. No two parts show one physical room."""
    guard: MixGuard = MixGuard()
    """What is not trained on."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if abs(sum(self.parts.values()) - 1) > 1e-6:
            raise ValueError(f"parts to sum to 1, not {sum(self.parts.values()):g}")
        if wrong := [name for name in self.parts if not _NAME.fullmatch(name) or name in (BUILDS, MIX)]:
            raise ValueError(f"parts named as folders, other than {BUILDS}, not {wrong[0]!r}")
        if not self.sources:
            raise ValueError("at least one [[sources]]")
        labels = [source.label for source in self.sources]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise ValueError(f"sources of different names, not two of {twice[0]!r}: set name in one of them")
        return self
