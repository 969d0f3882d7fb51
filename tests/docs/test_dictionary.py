"""`docs/data-dictionary.md` is what its generator makes of the columns."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from vgbench_gen.core.noise import NoiseGates
from vgbench_gen.scenes.base import loaders
from vgbench_gen.store.columns import FACT_COLUMNS, IMAGE_FILES, ITEM_COLUMNS, QUESTION_COLUMNS, REJECT_COLUMNS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_committed_page_is_current() -> None:
    made = runpy.run_path(str(DOCS / "_ext" / "dictionary.py"))["render_markdown"]()
    assert (DOCS / "data-dictionary.md").read_text("utf-8") == made, (
        "run: python docs/_ext/dictionary.py > docs/data-dictionary.md"
    )


def test_every_column_and_field_has_a_line() -> None:
    page = (DOCS / "data-dictionary.md").read_text("utf-8")
    _, items, published, questions, facts, rejects = page.split("\n## ")
    parts = {items: ITEM_COLUMNS, published: (IMAGE_FILES,), questions: QUESTION_COLUMNS, facts: FACT_COLUMNS}
    for text, columns in {**parts, rejects: REJECT_COLUMNS}.items():
        names = [column.name for column in columns]
        names += [f"{column.name}[].{field.name}" for column in columns for field in column.fields]
        shared = re.findall(r"`(\w+)`", "".join(re.findall(r"As in items: ([^.]*)", text)))
        assert [name for name in names if f"- `{name}` " not in text] == shared


def test_scans_are_those_of_our_loaders() -> None:
    ours = [name for name in loaders.names() if type(loaders[name]).__module__.startswith("vgbench_gen.")]
    # Of anybody's own recordings nobody knows the errors: the largest of each kind are taken.
    assert sorted([*NoiseGates().stated, "posed"]) == ours
    assert all(f"`{name}`" in column.meaning for name in ours for column in ITEM_COLUMNS if column.name == "source")
