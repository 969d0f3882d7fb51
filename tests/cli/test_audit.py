"""`vgbench audit` and `vgbench distractors --prune` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline import planted
from vgbench_gen.cli.main import main
from vgbench_gen.pipeline.audit import KINDS
from vgbench_gen.quality.questions import Question

Capture = pytest.CaptureFixture[str]
QUICK = ("--only", "answers,repeats,wording", "--workers", "1")


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def published(questions: list[Question], path: Path) -> Path:
    """The questions as SpatialScore writes them."""
    rows = [
        {
            "index": k,
            "question_type": q.form,
            "question": f"{q.question}\n{q.context}"
            + "".join(f"\n{x}: {t}" for x, t in zip("ABCD", q.options, strict=True)),
            "answer": "ABCD"[q.truth],
            "img_paths": list(q.images),
            "source": "VGBench",
            "category_origin": "metric_depth_vqa",
        }
        for k, q in enumerate(questions)
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


@pytest.fixture
def fair(tmp_path: Path) -> Path:
    return published(planted.choices(400), tmp_path / "fair.json")


def test_a_fair_file_holds_and_leaves_a_report_beside_it(fair: Path, capsys: Capture) -> None:
    assert run("audit", fair, *QUICK) == 0
    printed = capsys.readouterr().out
    assert "none failed" in printed
    assert "Only the text is judged" in printed
    folder = fair.with_name("fair-audit")
    assert {path.name for path in folder.iterdir()} == {"audit.json", "audit.csv", "bias.csv", "index.html"}
    assert "VGBench, metric depth vqa" in (folder / "index.html").read_text("utf-8")


def test_a_leaking_file_exits_1_and_says_what_fell(tmp_path: Path, capsys: Capture) -> None:
    path = published(planted.letter_bias(planted.choices(400)), tmp_path / "biased.json")
    assert run("audit", path, *QUICK, "--out", tmp_path / "out") == 1
    printed = capsys.readouterr().out
    assert " 1 failed" in " ".join(printed.split())
    (failed,) = [line for line in printed.splitlines() if line.startswith("failed: ")]
    assert "right answers (most frequent letter)" in failed
    assert (tmp_path / "out/audit.json").is_file()


def test_json_and_the_rows_that_could_not_be_read(fair: Path, capsys: Capture) -> None:
    rows: list[Any] = json.loads(fair.read_text())
    fair.write_text(json.dumps([*rows, {"question": "no answer"}, 7]))
    assert run("audit", fair, *QUICK, "--json") == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["items"] == 400
    assert any("2 of 402 rows could not be read" in note for note in found["notes"])
    assert {line["kind"] for line in found["findings"]} == {"answers", "repeats", "wording"}
    assert "row 400, question_type" in captured.err


def test_a_question_of_another_set_is_found(fair: Path, tmp_path: Path, capsys: Capture) -> None:
    other = published(planted.choices(8)[3:5], tmp_path / "other.json")
    arguments = ("audit", fair, "--only", "repeats", "--workers", "1", "--all")
    assert run(*arguments, "--against", other) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("failed: ") and "repeat" in line]
    assert run(*arguments) == 0


def test_what_a_user_can_mend(fair: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run("audit", fair, "--only", "textt") == 2
    assert "Did you mean text?" in capsys.readouterr().err
    assert run("audit", tmp_path / "missing.json") == 2
    assert "found no file" in capsys.readouterr().err
    assert run("distractors", fair.parent, "--prune", "0.1") == 2
    assert "--out" in capsys.readouterr().err


def test_the_help_names_every_statistic(capsys: Capture) -> None:
    assert run("audit", "--help") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert [kind for kind in KINDS if kind not in told] == []


def test_the_help_of_pruning_warns(capsys: Capture) -> None:
    assert run("distractors", "--help") == 0
    assert "Pruning hides a faulty sampler" in " ".join(capsys.readouterr().out.split())
