"""A benchmark from another package is asked, scored and tabulated; no room needs an edit for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.contracts.outside import Program, install, started
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import choose_rows
from vgbench_gen.evaluation.item_source import ItemSource, make_item

TOPICS = ("left-right", "front-behind", "above-below")
IMAGES, PAIRS = (0, 1, 2, 3, 0, 3), ("p", "", "", "q", "p", "q")
BENCHMARK = ["--benchmark", "yes_no_relations"]
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def vgbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The program where the package is installed."""
    site = tmp_path_factory.mktemp("site")
    install("benchmark", site)
    with started(site) as program:
        yield program


def write(folder: Path, **changed: Any) -> Path:
    rows = []
    for k in range(6):
        cv2.imwrite(str(folder / f"{k}.png"), np.full((48, 64, 3), 40 * k, np.uint8))
        rows.append({"image": f"{IMAGES[k]}.png", "question": f"Is it {k}?", "answer": "yes" if k < 4 else "no",
                     "topic": TOPICS[k % 3], "pair": PAIRS[k]} | changed)  # fmt: skip
    path = folder / "relations.json"
    path.write_text(json.dumps(rows))
    return path


def test_a_benchmark_from_outside_goes_from_questions_to_a_table(vgbench: Program, tmp_path: Path) -> None:
    data, home = write(tmp_path), tmp_path / "relations.vgbench"
    script = tmp_path / "replies.jsonl"
    script.write_text('{"match": "Is it", "reply": "Yes, it is."}\n')
    models = ["--model", "baseline:truth", "--model", f"scripted:{script}"]
    out = tmp_path / "export"
    listed, asked, compared, exported = vgbench(
        ["eval", *BENCHMARK, "--data", data, *models, "--estimate"],
        ["eval", *BENCHMARK, "--data", data, *models],
        ["compare", data, *BENCHMARK, "--json"],
        ["export", data, *BENCHMARK, "--to", "lmms-eval", "--out", out],
    )
    assert (listed.status, asked.status, compared.status) == (0, 0, 0), asked.errors + compared.errors
    assert exported.status == 0, exported.errors
    assert sorted(path.name for path in (home / "replies").iterdir())[0] == "baseline_truth.jsonl"
    counts = [[one["outcomes"][name] for name in ("right", "wrong", "unreadable")] for one in compared.json()["models"]]
    assert sorted(counts) == [[4, 2, 0], [6, 0, 0]]
    tables = {table["key"]: table for table in compared.json()["tables"]}
    lines = {line["name"]: line["cells"] for line in tables["yes-no-relations"]["lines"]}
    heads = ("Overall", "Left/right", "Front/behind", "Above/below")
    [said_yes] = (cells for name, cells in lines.items() if "replies.jsonl" in name)
    assert [round(said_yes[head]["value"], 4) for head in heads] == [0.6667, 1.0, 0.5, 0.5]
    assert [lines["baseline:truth"][head]["value"] for head in heads] == [1.0] * 4
    # Pairs go by `pair_id`, not by the order of the questions.
    assert [(cells["Pairs"]["value"], cells["Pairs"]["n"]) for cells in (said_yes, lines["baseline:truth"])] == [
        (0, 2),
        (1, 2),
    ]
    # No lengths are asked for, and the benchmark has published no script.
    assert not [head for head in tables["summary"]["lines"][0]["cells"] if "delta" in head]
    assert {line["name"]: line["cells"]["Score"]["value"] for line in tables["summary"]["lines"]}[
        "baseline:truth"
    ] == 1.0
    assert "SpatialScore's script" in tables["replies"]["lines"][0]["cells"]
    own = {line["name"]: line["cells"]["Whole images"] for line in tables["yes-no-images"]["lines"]}
    assert sorted((cell["value"], cell["n"]) for cell in own.values()) == [(0, 2), (1, 2)]
    # The export carries the rules, and nothing of the package or of ours that they do not need.
    carried = out / "vgbench_scorer"
    assert sorted(path.name for path in (carried / "vgbench_yes_no").iterdir()) == ["__init__.py", "rules.py"]
    assert not (carried / "store").exists()


def test_what_was_mistaken_is_said(vgbench: Program, tmp_path: Path) -> None:
    data, script = write(tmp_path), tmp_path / "replies.jsonl"
    script.write_text('{"match": "Is it", "reply": "Yes, it is."}\n')
    voter = ["--model", f"scripted:{script}"]
    other, missing, asked, voted = vgbench(
        ["compare", data],
        ["eval", *BENCHMARK, "--data", data, "--model", f"scripted:{tmp_path}/none.jsonl"],
        ["eval", *BENCHMARK, "--data", data, *voter],
        ["vote", data, *BENCHMARK, *voter, "--wrong", "1", "--large", "0"],
    )
    assert (other.status, missing.status, asked.status, voted.status) == (2, 2, 0, 0), voted.errors
    assert "found a .json file" in other.errors
    assert "name that with --benchmark: " in other.errors
    assert "yes_no_relations" in other.errors
    assert 'such as {"match": "left of", "reply": "Yes"}' in missing.errors
    # Nothing is told of what the dataset does not have.
    assert "letter" not in voted.out
    assert "agreement of models: none to tell" in voted.out
    assert "than the dataset has (6); --target N" in voted.out


def test_rules_that_an_export_cannot_carry_are_refused(tmp_path: Path) -> None:
    install("benchmark", tmp_path / "site")
    rules = tmp_path / "site" / "vgbench_yes_no" / "rules.py"
    rules.write_text(rules.read_text().replace("import ScoringRules", "import ScoringRules\nimport pydantic"))
    call: list[str | Path] = ["export", write(tmp_path), *BENCHMARK, "--to", "lmms-eval", "--out", tmp_path / "export"]
    with started(tmp_path / "site") as vgbench:
        [told] = vgbench(call)
    assert told.status == 2
    assert "found pydantic imported by vgbench_yes_no.rules" in told.errors
    assert "into a module of its own" in told.errors
    assert told.errors.count("\n") == 1
    assert not (tmp_path / "export").exists()


def test_a_bad_row_is_named(vgbench: Program, tmp_path: Path) -> None:
    bad = {"answer": "maybe", "image": "../../secret.png"}
    files = []
    for name, value in bad.items():
        (tmp_path / name).mkdir()
        files.append(write(tmp_path / name, **{name: value}))
    calls: list[list[str | Path]] = [
        ["eval", *BENCHMARK, "--data", data, "--model", "baseline:truth"] for data in files
    ]
    maybe, away = vgbench(*calls)
    assert (maybe.status, away.status) == (2, 2)
    assert "row 0: found no 'maybe'; expected image, question, topic, and answer that is yes or no" in maybe.errors
    assert "expected a place below" in away.errors


def test_rows_that_cannot_be_asked_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    item = make_item("a", benchmark="B", task="t", question_type="judgment", question="Is it?", answer="Yes",
                     images=["a.png"], source="B", scene_id="s")  # fmt: skip
    for items, told in (
        ((item, item), r"question 1 \(a\): found the id of question 0 again; .*leave out the copy"),
        ((replace(item, question=" "),), "found no words"),
        ((replace(item, images=("b.png",)),), "no file for image 'b.png'"),
    ):
        with pytest.raises(DatasetError, match=told):
            ItemSource("B", tmp_path, items, {"a.png": path})


def test_questions_of_a_pair_stay_together_under_a_limit(tmp_path: Path) -> None:
    def make(name: str, **more: Any) -> Item:
        return make_item(name, benchmark="B", task="t", question_type="judgment", question=f"Is it {name}?",
                         answer="Yes", images=[], source="B", scene_id="s", **more)  # fmt: skip

    items = [make(f"{half}{k}", pair_id=f"p{k}") for half in "ab" for k in range(10)]
    source = ItemSource("B", tmp_path, items)
    for limit in (2, 4, 10):
        chosen = [source.item(row.row).pair_id for row in choose_rows(source.rows(), (), (), limit)]
        assert len(set(chosen)) == limit // 2
    assert (make("a").group_id, make("a", twin_id="t").group_id) == ("a", "t")
    assert make("a", pair_id="p", group_id="g").group_id == "g"
