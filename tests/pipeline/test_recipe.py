from __future__ import annotations

from pathlib import Path

import pytest

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.gates import Gates, RegionGates
from vgbench_gen.pipeline.recipe import Recipe, load_recipe


def test_the_shipped_default() -> None:
    recipe = load_recipe("default")
    assert recipe.strategy == "set_first"
    assert recipe.margins == "enforced"
    assert recipe.tasks == ()


def test_own_file_overrides_single_gates(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('seed = 7\ntasks = ["metric_depth"]\n[gates.region]\nvalid_min = 0.8\n')
    recipe = load_recipe(path)
    assert recipe == load_recipe(str(path))
    assert (recipe.seed, recipe.tasks) == (7, ("metric_depth",))
    assert recipe.gates.region == RegionGates(valid_min=0.8)
    assert recipe.gates.depth == Gates().depth


def test_an_unknown_name_lists_what_is_shipped() -> None:
    with pytest.raises(ConfigError, match=r"no recipe is called 'defualt'\. Did you mean default\? Shipped: .*default"):
        load_recipe("defualt")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sed = 7\n", "sed"),
        ("seed = -1\n", "seed"),
        ('seed = "7"\n', "seed"),
        ("items_per_cell = 0\n", "items_per_cell"),
        ('margins = "loose"\n', "margins"),
        ("[gates.region]\nvalid = 0.8\n", "valid"),
        ("seed = \n", "mine.toml"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=named) as caught:
        load_recipe(path)
    assert "mine.toml" in str(caught.value)


def test_digest_follows_what_facts_depend_on() -> None:
    base = Recipe()
    assert Recipe().digest == base.digest
    for same in (
        Recipe(distractor_seed=5),
        Recipe(strategy="sampled"),
        Recipe(items_per_cell=3),
        Recipe(margins="recorded"),
        Recipe(tasks=("metric_depth",)),
    ):
        assert same.digest == base.digest
    changed = [
        Recipe(seed=1),
        Recipe(facts_per_scene=3),
        Recipe(gates=Gates(region=RegionGates(valid_min=0.8))),
    ]
    assert len({recipe.digest for recipe in [base, *changed]}) == 4
