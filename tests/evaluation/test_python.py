"""What a notebook does with a dataset: load, filter, ask, score, compare, and tables of it all."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import vgbench_gen
from tests.backends.server import reply, serving
from tests.publish.published import TRAVELS, write_build
from vgbench_gen.core.errors import ConfigError, DatasetError, UnknownNameError
from vgbench_gen.core.progress import show_progress
from vgbench_gen.evaluation.loaded import COLUMNS


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_build(tmp_path_factory.mktemp("python") / "small", [TRAVELS])


def test_a_dataset_is_shown_filtered_and_looked_up(built: Path) -> None:
    dataset = vgbench_gen.load(built)
    assert repr(dataset) == f"<Dataset {built}: 8 questions (metric_depth 4, relative_depth 4)>"
    depths = dataset.filter(task="metric_depth")
    assert depths.ids() == [f"scene00{k}" for k in range(4)]
    assert depths.filter(answer=["A", "C"]).ids() == ["scene000", "scene002"]
    assert dataset[2:5].ids() == ["scene002", "scene003", "scene004"]
    assert repr(dataset.filter(task="metric_depth", id="scene001")[:0]) == f"<Dataset {built}: empty>"
    with pytest.raises(ConfigError, match=r"found no question with task 'chess'; expected some of 'metric_depth', "):
        dataset.filter(task="chess")
    with pytest.raises(ConfigError, match=r"found no question with id 'chess'; expected some of 'scene000'"):
        dataset.filter(id=["scene000", "chess"])
    assert depths[-1].id == dataset["scene003"].id == dataset[3].id == "scene003"
    with pytest.raises(DatasetError, match=r"no item .scene005."):  # of another task
        depths["scene005"]
    assert len(repr(depths[0])) < 200
    assert dataset.images("scene001")[1].size == (96, 64)
    frame = dataset.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(COLUMNS)
    assert frame["id"].tolist() == dataset.ids()


def test_what_a_dataset_has_not_is_said(built: Path) -> None:
    dataset = vgbench_gen.load(built)
    with pytest.raises(UnknownNameError, match=r"no column is called 'taks'\. Did you mean task\?"):
        dataset.filter(taks="x")
    with pytest.raises(DatasetError, match=r"8 ids that begin with .scene. \(scene000, .*scene004 and 3 more\)"):
        dataset["scene"]
    with pytest.raises(DatasetError, match=r"no item .elsewhere."):
        dataset["elsewhere"]
    with pytest.raises(DatasetError, match="vgbench pull lab/some-set"):
        vgbench_gen.load("lab/some-set")


def test_a_question_is_as_a_model_is_asked_it(built: Path, tmp_path: Path) -> None:
    question = vgbench_gen.load(built)["scene001"]
    with serving(lambda seen: reply("A")) as server:
        vgbench_gen.evaluate(vgbench_gen.load(built)[1:2], f"vllm:{server.url}#m", replies=tmp_path)
        (seen,) = server.seen
    assert question.messages == seen.json["messages"]
    assert question.messages[-1]["content"][-1] == {"type": "text", "text": question.prompt}


def test_models_are_asked_scored_and_compared(built: Path, tmp_path: Path) -> None:
    depths = vgbench_gen.load(built).filter(task="metric_depth")
    truth, letter = vgbench_gen.evaluate(depths, ["baseline:truth", "baseline:constant"], replies=tmp_path)
    assert (truth.total, truth.asked, truth.accuracy) == (4, 4, 1.0)
    assert letter.accuracy == 0.25
    assert truth.to_pandas()["id"].tolist() == depths.ids()
    assert set(truth.to_pandas()["task"]) == {"metric_depth"}
    again = vgbench_gen.evaluate(built, "baseline:truth", replies=tmp_path)
    assert (again.total, again.asked, again.accuracy) == (8, 4, 1.0)
    half = vgbench_gen.evaluate(depths, "baseline:constant", replies=tmp_path, limit=2)
    assert len(half.to_pandas()) == 2  # of the four that are kept, what was asked for now
    scores = vgbench_gen.score(built, replies=tmp_path)
    table = scores.to_pandas().set_index("model")
    assert table["scored"].to_dict() == {"baseline:constant": 4, "baseline:truth": 8}
    assert scores[0].figures["outcomes"]["right"] == 1
    (tmp_path / "rep.csv").write_text(f"id,response\n{depths[0].id},{depths[0].answer}\n")
    (table_scores,) = vgbench_gen.score(built, replies=tmp_path / "rep.csv")
    assert (table_scores.figures["spec"], table_scores.accuracy) == ("table:rep", 1.0)
    compared = vgbench_gen.compare(
        built, ["baseline:truth", "baseline:constant"], replies=tmp_path, out=tmp_path / "out"
    )
    assert compared.page == tmp_path / "out" / "index.html"
    assert compared.tables[0].key == "summary"
    assert "baseline:truth" in repr(compared)
    wide = compared.to_pandas("summary")
    assert wide.loc["baseline:truth"].iloc[0] == 1.0
    assert set(compared.to_pandas().columns) >= {"table", "name", "column", "value"}
    with pytest.raises(ConfigError, match="found table 'x'; expected one of summary"):
        compared.to_pandas("x")


def test_a_model_that_never_replied_has_no_accuracy(built: Path, tmp_path: Path) -> None:
    run = vgbench_gen.evaluate(vgbench_gen.load(built)[:0], "baseline:truth", replies=tmp_path)
    assert run.total == 0
    assert math.isnan(run.accuracy)


def test_bars_are_shown_in_terminals_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # another test may have run a notebook
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        for wanted in (False, True):
            with show_progress(wanted) as tell:
                tell("measuring", 1, 4)
            assert ("measuring" in capsys.readouterr().err) == (terminal and wanted)


def test_the_import_loads_nothing_heavy() -> None:
    heavy: Any = "{'numpy', 'pandas', 'cv2', 'pyarrow', 'jinja2'}"
    command = f"import sys, vgbench_gen; print(sorted({heavy} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
