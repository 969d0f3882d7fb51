"""A benchmark from another package is asked, scored and tabulated; no room needs an edit for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.contracts.outside import install, vgbench

TOPICS = ("left-right", "front-behind", "above-below")
BENCHMARK = ["--benchmark", "yes_no_relations"]
pytestmark = pytest.mark.timeout(600)


def write(folder: Path, **changed: Any) -> Path:
    rows = []
    for k in range(6):
        cv2.imwrite(str(folder / f"{k}.png"), np.full((48, 64, 3), 40 * k, np.uint8))
        rows.append({"image": f"{k}.png", "question": f"Is it {k}?", "answer": "yes" if k < 4 else "no",
                     "topic": TOPICS[k % 3]} | changed)  # fmt: skip
    path = folder / "relations.json"
    path.write_text(json.dumps(rows))
    return path


def test_a_benchmark_from_outside_goes_from_questions_to_a_table(tmp_path: Path) -> None:
    install("vgbench-yes-no", tmp_path / "site")
    data, home = write(tmp_path), tmp_path / "relations.vgbench"
    script = tmp_path / "replies.jsonl"
    script.write_text('{"match": "Is it", "reply": "Yes, it is."}\n')
    models = ["--model", "baseline:truth", "--model", f"scripted:{script}"]
    listed, asked, scored, compared = vgbench(
        tmp_path / "site",
        ["eval", *BENCHMARK, "--data", data, *models, "--estimate"],
        ["eval", *BENCHMARK, "--data", data, *models],
        ["score", data, *BENCHMARK],
        ["compare", data, *BENCHMARK, "--json"],
    )
    assert (listed.status, asked.status, scored.status, compared.status) == (0, 0, 0, 0), asked.errors + scored.errors
    assert sorted(path.name for path in (home / "replies").iterdir())[0] == "baseline_truth.jsonl"
    assert "right 6, wrong 0, unreadable 0" in scored.out
    assert "right 4, wrong 2, unreadable 0" in scored.out
    tables = {table["key"]: table for table in compared.json()["tables"]}
    lines = {line["name"]: line["cells"] for line in tables["yes-no-relations"]["lines"]}
    heads = ("Overall", "Left/right", "Front/behind", "Above/below")
    [said_yes] = (cells for name, cells in lines.items() if "replies.jsonl" in name)
    assert [round(said_yes[head]["value"], 4) for head in heads] == [0.6667, 1.0, 0.5, 0.5]
    assert [lines["baseline:truth"][head]["value"] for head in heads] == [1.0] * 4


def test_a_bad_row_is_named(tmp_path: Path) -> None:
    install("vgbench-yes-no", tmp_path / "site")
    bad = {"answer": "maybe", "image": "../../secret.png"}
    files = []
    for name, value in bad.items():
        (tmp_path / name).mkdir()
        files.append(write(tmp_path / name, **{name: value}))
    calls: list[list[str | Path]] = [
        ["eval", *BENCHMARK, "--data", data, "--model", "baseline:truth"] for data in files
    ]
    maybe, away = vgbench(tmp_path / "site", *calls)
    assert (maybe.status, away.status) == (2, 2)
    assert "row 0: found no 'maybe'; expected image, question, topic, and answer that is yes or no" in maybe.errors
    assert "expected a place below" in away.errors
