"""The task of CONTRIBUTING.md: what it measures is right, and its gates and words are taken up everywhere."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.contracts.conftest import Outside
from tests.contracts.tum_sequence import CAMERA

pytestmark = pytest.mark.timeout(600)  # whole builds, on machines that may be busy


def test_distances_are_those_of_the_points_that_the_text_names(outside: Outside) -> None:
    items = [item for item in outside.far if item.task == "point_distance"]
    assert {item.question_type for item in items} == {"judgment", "multi-choice", "open-ended"}
    for item in items:
        evidence = item.evidence["truth"]["evidence"]
        rays = np.column_stack([np.array(evidence["points_px"]), [1, 1]]) @ np.linalg.inv(CAMERA.K).T
        first, second = rays * np.array(evidence["depths_m"])[:, None]
        assert item.answer_value[0] == pytest.approx(np.linalg.norm(first - second), abs=0.006)
        if item.question_type == "judgment":
            claimed = item.evidence["claim"]["value"][0]
            assert f"{claimed:.2f} meters" in item.question
            assert "10 percent" in item.question
            assert item.answer == ("Yes" if abs(claimed / item.answer_value[0] - 1) < 0.1 else "No")
        elif item.question_type == "open-ended":
            assert item.answer == f"{item.answer_value[0]:.2f} meters"
        else:
            assert item.options["ABCD".index(item.answer)] == f"{item.answer_value[0]:.2f} m"
        assert all(f"({u}, {v})" in item.question for u, v in evidence["points_px"])
        assert item.answer_value[0] >= 0.5
    recipe = json.loads((outside.home / "build" / "manifest.json").read_text("utf-8"))["recipe"]
    assert recipe["gates"]["point_distance"] == {
        "min_m": 0.5, "max_m": 4.0, "spread_max": 0.03, "ratio_min": 1.3, "ratio_max": 6.0,
    }  # fmt: skip


def test_scores_exports_and_the_gallery_know_it(outside: Outside) -> None:
    count = len(outside.far)
    assert f"right {count}, wrong 0" in outside.told["score"].out
    exported = "".join(path.read_text("utf-8") for path in (outside.home / "export").rglob("*.json"))
    assert "point_distance" in exported
    card = (outside.home / "far" / "publish" / "README.md").read_text("utf-8")
    assert "| `point_distance` | distance in space between two marked points, meters |" in card
    gallery = (outside.home / "far" / "gallery").rglob("*.js*")
    assert any("point_distance" in path.read_text("utf-8") for path in gallery)
