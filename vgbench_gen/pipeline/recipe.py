"""What to build: seed, limits, strategy, gates. Read from TOML; the resolved recipe stands in the manifest."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import Literal

from pydantic import Field

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.gates import Gates

_FOLDER = Path(__file__).resolve().parent.parent / "recipes"


class Recipe(Config):
    """A build's settings.

    seed: of everything random. facts_per_scene: most facts of one task from one scene. items_per_cell: most items of
    one task and question type. tasks: names, all when empty. strategy: distractor strategy. distractor_seed: redraws
    options and nothing else. margins: see `distractors.base`.
    """

    seed: int = Field(default=20260, ge=0)
    facts_per_scene: int = Field(default=24, ge=1)
    items_per_cell: int = Field(default=400, ge=1)
    tasks: tuple[str, ...] = ()
    strategy: str = "set_first"
    distractor_seed: int = Field(default=0, ge=0)
    margins: Literal["enforced", "recorded"] = "enforced"
    gates: Gates = Gates()

    @property
    def digest(self) -> str:
        """Of the settings that facts depend on."""
        text = self.model_dump_json(include={"seed", "facts_per_scene", "gates"})
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load_recipe(name_or_path: str | Path) -> Recipe:
    """A shipped recipe by name, or one's own by path.

    Raises:
        ConfigError: no such recipe, or it does not fit; names file and key.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = _FOLDER / f"{name_or_path}.toml"
        if not path.is_file():
            shipped = sorted(p.stem for p in _FOLDER.glob("*.toml"))
            near = difflib.get_close_matches(str(name_or_path), shipped, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(
                f"no recipe is called {str(name_or_path)!r}.{hint} Shipped: {', '.join(shipped)}. Or give a .toml file."
            )
    return load_toml(path, Recipe)
