"""A scene, a build and what every verb made of it, with a loader and a strategy that come from outside."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import vgbench_gen
from tests.contracts.outside import Told, install, started
from tests.contracts.tum_sequence import write_broken_sequences, write_sequence
from vgbench_gen.core.types import Item

RECIPE = """
seed = 5
facts_per_scene = 3
tasks = ["relative_depth", "metric_depth", "homography_to_matrix"]
"""


@dataclass(frozen=True, slots=True)
class Outside:
    """Folders that the packages of `examples/` were used in."""

    home: Path
    told: dict[str, Told]
    """What each verb told."""
    refused: dict[str, Told]
    """What `scenes` told of broken sequences, and `distractors` of a strategy that nobody has."""

    @property
    def site(self) -> Path:
        """The installed packages."""
        return self.home / "site"

    @property
    def built(self) -> list[Item]:
        """The questions with the options of the default strategy."""
        return list(vgbench_gen.load(self.home / "build"))

    @property
    def far(self) -> list[Item]:
        """The same with the options of the strategy from outside; all verbs after `distractors` got these."""
        return list(vgbench_gen.load(self.home / "far"))


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Outside:
    """Build from a sequence that only the loader from outside reads, and give the result to every verb."""
    home = tmp_path_factory.mktemp("outside")
    scenes, build, far, other = (home / name for name in ("scenes", "build", "far", "other"))
    for package in ("loader", "strategy"):
        install(package, home / "site")
    write_sequence(scenes)
    (home / "recipe.toml").write_text(RECIPE)
    (home / "far.toml").write_text(f'strategy = "far_apart"\n{RECIPE}')
    calls: list[list[str | Path]] = [
        ["scenes", scenes, "--json"],
        ["build", "--dry-run", "--scenes", scenes, "--out", home / "later"],
        ["build", home / "recipe.toml", "--scenes", scenes, "--out", build, "--workers", "1"],
    ]
    with started(home / "site") as vgbench:
        told = vgbench(*calls)
        assert told[-1].status == 0, told[-1].errors
        shutil.copytree(build, other)
        # An id that `distractors` leaves as it is.
        kept = next(item.id for item in vgbench_gen.load(build) if item.question_type == "open-ended")
        calls = [
            ["build", "--facts", other, home / "far.toml", "--workers", "1"],
            ["distractors", build, "--strategy", "far-apart", "--out", far, "--workers", "1"],
            ["verify", far, "--scenes", scenes, "--workers", "1"],
            ["audit", far, "--workers", "1"],
            ["browse", far],
            ["show", kept, far, "--out", home / "why.png"],
            ["publish", far, "--repo", "lab/far", "--dry-run"],
            ["export", far, "--to", "spatialscore-json", "--out", home / "export"],
            ["eval", far, "--model", "baseline:truth"],
            ["compare", far],
            ["scenes", write_broken_sequences(home / "broken"), "--json"],
            ["distractors", build, "--strategy", "far-appart", "--out", home / "none"],
        ]
        told += vgbench(*calls)
    *told, scenes_told, options_told = told
    refused = {"scenes": scenes_told, "distractors": options_told}
    # Three of them are `build`: the check before it, the build, and the questions made anew.
    names = [" ".join(one.arguments[: 1 + (one.arguments[1] in ("--dry-run", "--facts"))]) for one in told]
    return Outside(home, dict(zip(names, told, strict=True)), refused)
