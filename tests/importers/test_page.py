"""`docs/howto/import.md` is what its generator makes of the importers."""

from __future__ import annotations

import runpy
from pathlib import Path

from vgbench_gen.importers.base import importers

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_of_sources_is_that_of_the_importers() -> None:
    made = runpy.run_path(str(DOCS / "_ext" / "importers.py"))["render_markdown"]()
    page = (DOCS / "howto" / "import.md").read_text("utf-8")
    assert page == made, "run: python docs/_ext/importers.py > docs/howto/import.md"
    assert sum(line.startswith("| `") for line in made.splitlines()) == len(importers.names()) == 12
    assert "| `cvbench`: CV-Bench | 2,638 | [nyu-visionx/CV-Bench]" in made
