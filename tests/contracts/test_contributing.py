"""CONTRIBUTING.md: its code is formatted and linted like ours, and what it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.outside import ROOT, blocks
from vgbench_gen.core.registry import Registry
from vgbench_gen.distractors.base import strategies
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.scenes.base import loaders
from vgbench_gen.tasks.base import tasks

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
KINDS: dict[str, Registry[Any]] = {
    "loader": loaders, "option strategy": strategies, "task": tasks, "benchmark": benchmarks,
}  # fmt: skip


def test_its_code_passes_the_linter_and_the_formatter(tmp_path: Path) -> None:
    for path, text in blocks().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    assert list(tmp_path.rglob("*.py"))
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--config", str(ROOT / "pyproject.toml"), "--no-cache", "."]
        done = subprocess.run(ruff, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_its_entry_points_are_those_that_are_looked_up() -> None:
    table = dict(re.findall(r"^\| ([a-z ]+) \| `[a-z_/]+/` \| `(vgbench_gen\.[a-z]+)` \|$", TEXT, re.MULTILINE))
    assert table == {kind: registry.group for kind, registry in KINDS.items()}
    folders = re.findall(r"^\| ([a-z ]+) \| `([a-z_/]+)/` \| `", TEXT, re.MULTILINE)
    assert dict(folders) == {kind: registry.package.replace(".", "/") for kind, registry in KINDS.items()}
    used = [tomllib.loads(text)["project"]["entry-points"] for path, text in blocks().items() if "pyproject" in path]
    assert {group for entries in used for group in entries} <= set(table.values())


def test_examples_that_it_quotes_are_the_files() -> None:
    quoted = {path: text for path, text in blocks().items() if path.startswith("examples/")}
    assert quoted
    for path, text in quoted.items():
        assert text == (ROOT / path).read_text("utf-8"), path


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:vgbench_gen|tests|docs|templates|examples)/[\w/.]+)`", TEXT)))
)
def test_files_that_it_names_are_there(path: str) -> None:
    assert (ROOT / path).exists()
