from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.shared import make_once, recall_once

if TYPE_CHECKING:
    from vgbench_gen.pipeline.build import BuildReport


@pytest.fixture(scope="session")
def small_built(raw_room: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuildReport]:
    """The small build, made by one worker without a stop, and its report; copy it before changing it."""

    def make(folder: Path) -> tuple[Path, BuildReport]:
        from tests.pipeline.same_bytes import small_build

        return folder / "b", small_build(raw_room, folder / "b")

    return recall_once(tmp_path_factory, "small", make)


@pytest.fixture(scope="session")
def reference(small_built: tuple[Path, BuildReport]) -> tuple[Path, dict[str, str]]:
    """(folder, content) of the small build."""
    from tests.pipeline.same_bytes import content, leftovers

    out, report = small_built
    found = content(out)
    assert report.composed.total > 40
    assert len({cell.partition("/")[0] for cell in report.composed.pairs}) == 3  # tasks with two sides
    assert {name.split("/")[0] for name in found} == {"facts", "rejects", "items", "media"}
    assert not leftovers(out)
    return out, found


@pytest.fixture(scope="session")
def audited(raw_room: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of three tasks with facts enough for audits to look at; copy it before changing it."""

    def make(folder: Path) -> None:
        from vgbench_gen.pipeline.build import build
        from vgbench_gen.pipeline.recipe import Limits, load_recipe

        tasks = ("homography_to_matrix", "point_tracking", "relative_pose")
        changes = {"tasks": tasks, "facts_per_scene": 3, "pairs": 0.0, "seed": 5, "limits": Limits(forms_per_fact=3)}
        build(load_recipe("default").model_copy(update=changes), raw_room, folder)

    return make_once(tmp_path_factory, "audited", make)
