"""An option strategy from another package is chosen by name, under the gates that no strategy can avoid."""

from __future__ import annotations

from pathlib import Path

import pytest

import vgbench_gen
from tests.contracts.conftest import Outside

pytestmark = pytest.mark.timeout(600)  # whole builds, on machines that may be busy


def test_a_strategy_from_outside_draws_options_that_are_verified(outside: Outside, tmp_path: Path) -> None:
    far, shares = tmp_path / "far", tmp_path / "shares"
    drawn, mixed, verified, audited, published, unknown = outside.run(
        ["distractors", outside.build, "--strategy", "far-apart", "--out", far, "--workers", "1"],
        ["distractors", outside.build, "--mix", "far-apart=0.5,set-first=0.5", "--out", shares, "--workers", "1"],
        ["verify", far, "--workers", "1"],
        ["audit", far, "--workers", "1"],
        ["publish", far, "--repo", "lab/far", "--dry-run"],
        ["distractors", outside.build, "--strategy", "far-appart", "--out", tmp_path / "none"],
    )
    assert (drawn.status, mixed.status, verified.status) == (0, 0, 0), drawn.errors + mixed.errors + verified.out
    before = {item.group_id: item for item in vgbench_gen.load(outside.build) if item.options}
    items = [item for item in vgbench_gen.load(far) if item.options]
    ours = [item for item in items if item.strategy == "far_apart"]
    assert len(ours) == len(items) > 2
    assert all(d.strategy == "far_apart" and d.separation >= 1 for item in ours for d in item.distractors)
    assert all(item.answer_value == before[item.group_id].answer_value for item in ours)
    assert {item.strategy for item in vgbench_gen.load(shares) if item.options} <= {"far_apart", "set_first"}
    assert (audited.status, published.status) == (0, 0), audited.errors + published.errors
    assert unknown.status == 2
    assert "Did you mean far_apart?" in unknown.errors


def test_a_recipe_names_a_strategy_from_outside(outside: Outside, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('seed = 5\nfacts_per_scene = 2\ntasks = ["relative_depth"]\nstrategy = "far_apart"\n')
    out = tmp_path / "out"
    [built] = outside.run(["build", recipe, "--scenes", outside.scenes, "--out", out, "--workers", "1"])
    assert built.status == 0, built.errors
    assert {item.strategy for item in vgbench_gen.load(out)} == {"far_apart"}
