"""The task of CONTRIBUTING.md: what it measures is right, and its gates, checks and words are taken up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import vgbench_gen
from tests.contracts.conftest import Outside
from tests.contracts.tum_sequence import CAMERA
from vgbench_gen.core.types import Item

pytestmark = pytest.mark.timeout(600)  # whole builds, on machines that may be busy


def asked(build: Path) -> list[Item]:
    return [item for item in vgbench_gen.load(build) if item.task == "point_distance"]


def test_distances_are_those_of_the_points_that_the_text_names(outside: Outside) -> None:
    items = asked(outside.build)
    assert items
    for item in items:
        evidence = item.evidence["truth"]["evidence"]
        rays = np.column_stack([np.array(evidence["points_px"]), [1, 1]]) @ np.linalg.inv(CAMERA.K).T
        first, second = rays * np.array(evidence["depths_m"])[:, None]
        assert item.answer_value[0] == pytest.approx(np.linalg.norm(first - second), abs=0.006)
        assert item.options["ABCD".index(item.answer)] == f"{item.answer_value[0]:.2f} m"
        assert all(f"({u}, {v})" in item.question for u, v in evidence["points_px"])
        assert item.answer_value[0] >= 0.5
    recipe = json.loads((outside.build / "manifest.json").read_text("utf-8"))["recipe"]
    assert recipe["gates"]["point_distance"] == {
        "min_m": 0.5, "max_m": 4.0, "spread_max": 0.03, "ratio_min": 1.3, "ratio_max": 6.0,
    }  # fmt: skip


def test_scores_exports_and_the_gallery_know_it(outside: Outside, tmp_path: Path) -> None:
    count = len(list(vgbench_gen.load(outside.build)))
    replies = tmp_path / "replies"
    _, scored, exported, browsed = outside.run(
        ["eval", outside.build, "--model", "baseline:truth", "--replies", replies],
        ["score", outside.build, "--replies", replies],
        ["export", outside.build, "--to", "spatialscore-json", "--out", tmp_path / "export"],
        ["browse", outside.build, "--out", tmp_path / "gallery"],
    )
    assert f"right {count}, wrong 0" in scored.out, scored.errors
    assert (exported.status, browsed.status) == (0, 0), exported.errors
    assert any("point_distance" in path.read_text("utf-8") for path in (tmp_path / "gallery").rglob("*.js*"))
