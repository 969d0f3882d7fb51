"""Names of models that other two-stage evaluations know, such as `azure_trapi_visual_cot`, and whom they mean here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError


class Alias(Config):
    """One name of `visual_cot_models.toml` and the models that it stands for."""

    answers: str = ""
    """Model that answers, as on the command line, such as `trapi:gpt-4o_2024-11-20`; "" for a name with `needs`."""
    variable: str = ""
    """Environment variable that, where it is set, gives another model or deployment in the place of the one in
    `answers`; "" for none."""
    draws: str = ""
    """Model that draws, as on the command line; "" where the model that answers draws too."""
    needs: str = ""
    """What the user has to do first, for a name that stands for nothing that can be reached by a name alone; "" where
    nothing is needed."""


class AliasTable(Config):
    """The file `visual_cot_models.toml`."""

    names: Mapping[str, Alias]
    """Name that a user types -> the models that it stands for."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Specs in the place of names."""

    models: list[str]
    """Who answers."""
    image_model: str
    """Who draws; "" for the model that answers."""
    visual_cot: bool
    """Whether a name asked for two stages."""


@cache
def read_aliases() -> Mapping[str, Alias]:
    """All names that there are."""
    return load_toml(Path(__file__).with_name("visual_cot_models.toml"), AliasTable).names


def expand_models(models: Sequence[str], image_model: str = "") -> Chosen:
    """Specs in the place of names; specs stay as they are.

    Raises:
        ConfigError: a name that needs something first, or one beside other models while it brings its own image model.
    """
    specs, draws, found = [], image_model, False
    for name in models:
        alias = read_aliases().get(name)
        if alias is None:
            specs.append(name)
            continue
        if alias.needs:
            raise ConfigError(f"--model {name}: {alias.needs}.")
        if alias.draws and not image_model and len(models) > 1:
            raise ConfigError(f"--model {name}: found {len(models)} models; expected it alone, or an --image-model.")
        found, draws = True, image_model or alias.draws
        other = os.environ.get(alias.variable) if alias.variable else ""
        specs.append(f"{alias.answers.partition(':')[0]}:{other}" if other else alias.answers)
    return Chosen(specs, draws, found)
