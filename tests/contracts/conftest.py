"""One scene and one build of packages from outside, which all contract tests look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contracts.outside import Told, install, vgbench
from tests.contracts.tum_sequence import write_sequence

RECIPE = """
seed = 5
facts_per_scene = 2
tasks = ["relative_depth", "metric_depth", "homography_to_matrix", "point_distance"]

[gates.point_distance]
min_m = 0.5
"""


@dataclass(frozen=True, slots=True)
class Outside:
    """A folder of packages, scenes that one of them reads, and a build of these."""

    site: Path
    scenes: Path
    build: Path
    built: Told

    def run(self, *calls: list[str | Path]) -> list[Told]:
        """As `vgbench`, with the packages at hand."""
        return vgbench(self.site, *calls)


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Outside:
    """The packages of CONTRIBUTING.md, installed, and a build of a sequence that only they can read."""
    home = tmp_path_factory.mktemp("outside")
    site, scenes, build = home / "site", home / "scenes", home / "build"
    for package in ("vgbench-tum", "vgbench-far-apart", "vgbench-point-distance"):
        install(package, site)
    write_sequence(scenes)
    recipe = home / "recipe.toml"
    recipe.write_text(RECIPE)
    [built] = vgbench(site, ["build", recipe, "--scenes", scenes, "--out", build, "--workers", "1"])
    return Outside(site, scenes, build, built)
