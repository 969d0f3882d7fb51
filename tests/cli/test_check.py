"""`vgbench build --check`: the end of `make vgbench` and `make demo`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vgbench_gen import pipeline
from vgbench_gen.cli.main import main
from vgbench_gen.pipeline import audit as audits
from vgbench_gen.pipeline import build as builds
from vgbench_gen.pipeline.audit import AuditReport
from vgbench_gen.quality import verify
from vgbench_gen.quality.findings import Finding

Capture = pytest.CaptureFixture[str]
RECIPE = """\
seed = 5
facts_per_scene = 4
tasks = ["metric_depth"]
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "quick.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the first test; what was measured is reused by the others."""
    return tmp_path_factory.mktemp("checked") / "set"


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def check(recipe: Path, scenes: Path, out: Path, capsys: Capture) -> tuple[int, list[str]]:
    status = run("build", recipe, "--scenes", scenes, "--out", out, "--workers", 1, "--check")
    return status, capsys.readouterr().out.splitlines()


def test_a_build_that_holds_ends_with_status_0_and_says_where_to_look(
    recipe: Path, raw_room: Path, out: Path, capsys: Capture
) -> None:
    status, lines = check(recipe, raw_room, out, capsys)
    assert status == 0
    begin, look = lines.index("built and verified"), lines.index("Look at:")
    count = lines[begin + 1].split()[0]
    assert (
        lines[begin + 1]
        == f"{count} of {count} items verified (100%), from the stored evidence and from the raw scenes"
    )
    told = lines[begin + 3 : look - 1]
    assert 2 <= len(told) <= 15
    assert told[0].endswith("none failed")
    assert "Too few questions to judge the text of any cell" in told[1]
    assert told[-1] == f"all statistics: {out}/audit/index.html"
    named = [line.split()[0] for line in lines[look + 1 :] if line.startswith("  ")]
    assert len(named) == 4
    assert all(Path(name).exists() for name in named)


def with_a_statistic_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = audits.audit

    def audit(*args: Any, **settings: Any) -> AuditReport:
        report = judge(*args, **settings)
        report.findings.append(Finding("repeats", value=2.0, limit=0.0, unit="count", verdict="failed"))
        return report

    monkeypatch.setattr(audits, "audit", audit)


def with_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = verify.Problem("an id", "metric_depth", "answer", "reads 1, value 2")
    monkeypatch.setattr(verify, "verify_set", lambda items, chosen: [problem])


def with_a_lost_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    make = builds.build_dataset

    def build(*args: Any, **settings: Any) -> builds.BuildReport:
        report = make(*args, **settings)
        report.scenes = [replace(report.scenes[0], lost=True), *report.scenes[1:]]
        return report

    monkeypatch.setattr(pipeline.build, "build_dataset", build)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (with_a_statistic_that_failed, r"failed: all questions: 2 questions that repeat another, at most 0"),
        (with_a_wrong_answer, r"built, but not verified"),
        (with_a_lost_scene, r"1 of 2 scenes failed, in whole or for one task \(ca1m [^)]+\): run again"),
    ],
)
def test_whatever_is_wrong_everything_is_told_and_the_status_is_1(
    spoil: Callable[[pytest.MonkeyPatch], None],
    said: str,
    recipe: Path,
    raw_room: Path,
    out: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spoil(monkeypatch)
    status, lines = check(recipe, raw_room, out, capsys)
    assert status == 1
    printed = "\n".join(lines)
    assert re.search(said, printed)
    # Verify and audit ran to their ends, and the places are named all the same.
    assert " items verified" in printed
    assert "all statistics: " in printed
    assert "Look at:" in lines


def test_nothing_is_checked_where_no_question_was_written(
    raw_room: Path, tmp_path: Path, capsys: Capture, recipe: Path
) -> None:
    none = tmp_path / "none.toml"
    none.write_text(f"{RECIPE}items = {{ metric_depth = {{ judgment = 9000 }} }}\n")
    assert run("build", none, "--scenes", raw_room, "--out", tmp_path / "b", "--workers", 1, "--check") == 1
    captured = capsys.readouterr()
    assert "ALLOW_SHORT=1" in captured.err
    assert "Look at:" not in captured.out
    assert run("build", recipe, "--scenes", raw_room, "--out", tmp_path / "b", "--check", "--json") == 2
    assert "--check and --json: found both; expected at most one of them." in capsys.readouterr().err
