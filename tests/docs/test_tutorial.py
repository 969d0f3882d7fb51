"""The tutorial runs as it stands, on the rendered room of the tests, and is kept without outputs."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.docs.test_site import extension

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.ipynb"


def test_the_tutorial_is_kept_without_outputs() -> None:
    cells = json.loads(TUTORIAL.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 6
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert TUTORIAL.stat().st_size < 100_000


def test_the_site_shows_words_and_code_of_the_tutorial() -> None:
    page = extension("notebooks").make_markdown(TUTORIAL.read_text("utf-8"))
    assert page.startswith("# From scans to scores\n")
    assert page.count("```python\n") == page.count("```") / 2 == 9


def test_the_tutorial_runs(raw_room: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient", reason="in the group `dev`")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "demo-scenes").symlink_to(raw_room)
    notebook = nbformat.read(TUTORIAL, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute(
        env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    outputs: list[Any] = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    said = "".join(output.get("text", "") for output in outputs)
    pictures = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert "right: " in said
    assert "baseline:truth" in said
    (truth, *_) = (line.split()[1] for line in said.splitlines() if line.startswith("baseline:truth  "))
    assert truth.rstrip("*") == "100.0"
    assert not [output for output in outputs if output.get("name") == "stderr" and "Error" in output["text"]]
    assert len(pictures) == 3
    for picture in pictures:
        image = cv2.imdecode(np.frombuffer(base64.b64decode(picture), np.uint8), cv2.IMREAD_COLOR)
        assert image is not None
        assert image.std() > 20
