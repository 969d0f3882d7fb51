from __future__ import annotations

from pathlib import Path

from vgbench_gen.core.noise import NoiseGates
from vgbench_gen.scenes.base import loaders
from vgbench_gen.store.columns import ITEM_COLUMNS
from vgbench_gen.store.dictionary import render_markdown


def test_the_committed_dictionary_is_current() -> None:
    path = Path(__file__).parents[2] / "docs" / "data-dictionary.md"
    assert path.read_text("utf-8") == render_markdown(), (
        "run: python -m vgbench_gen.store.dictionary > docs/data-dictionary.md"
    )


def test_scans_are_those_of_our_loaders() -> None:
    ours = [name for name in loaders.names() if type(loaders[name]).__module__.startswith("vgbench_gen.")]
    assert sorted(NoiseGates().stated) == ours
    assert all(f"`{name}`" in column.meaning for name in ours for column in ITEM_COLUMNS if column.name == "source")


def test_every_column_has_a_line() -> None:
    text = render_markdown()
    for column in ITEM_COLUMNS:
        assert f"| `{column.name}` |" in text
    assert "| `candidates[].value_shape` |" in text
