"""Pages for those who change or add something: the files, folders and groups that they name are those of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.outside import EXAMPLES, ROOT
from vgbench_gen.agent.tool import tools
from vgbench_gen.backends.spec import providers
from vgbench_gen.core.registry import Registry
from vgbench_gen.distractors.base import strategies
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.publish.export import exports
from vgbench_gen.scenes.base import loaders
from vgbench_gen.tasks.base import tasks

PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "docs/howto/plug-ins.md", *sorted((ROOT / "docs/howto").glob("add-a-*.md"))]
TEXT = "".join(page.read_text("utf-8") for page in PAGES)
KINDS: dict[str, Registry[Any]] = {
    "loader": loaders, "task": tasks, "backend": providers, "benchmark": benchmarks, "option strategy": strategies,
    "tool": tools, "export format": exports,
}  # fmt: skip


def test_entry_points_are_those_that_are_looked_up() -> None:
    rows = re.findall(r"^\| ([a-z ]+) \| `([a-z_/]+)/` \| `(vgbench_gen\.[a-z]+)` \|", TEXT, re.MULTILINE)
    stated = {kind: (folder, group) for kind, folder, group in rows}
    assert stated == {kind: (one.package.replace(".", "/"), one.group) for kind, one in KINDS.items()}
    used = [tomllib.loads(path.read_text("utf-8"))["project"] for path in EXAMPLES.glob("*/pyproject.toml")]
    groups = {group for project in used for group in project["entry-points"]}
    assert groups == {one.group for one in KINDS.values()} - {exports.group}  # the shipped formats are examples enough


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:vgbench_gen|tests|docs|templates|examples|tools)/[\w/.-]+)`", TEXT)))
)
def test_files_that_they_name_are_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("add-a-kind.md", "kinds/wider_object.py"),
        ("add-a-kind.md", "kinds/wider_object.toml"),
        ("add-a-backend.md", "backend/vgbench_program.py"),
    ],
)
def test_what_a_guide_shows_stands_in_the_example(page: str, file: str) -> None:
    """Every line that is not cut short, without its comment."""
    language, whole = {".py": "python", ".toml": "toml"}[Path(file).suffix], (EXAMPLES / file).read_text("utf-8")
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs/howto" / page).read_text("utf-8"), re.DOTALL)
    lines = [line.split("  #")[0].rstrip() for block in blocks for line in block.splitlines()]
    shown = [line for line in lines if line and not re.search(r"…|\.\.\.|^ +said = |Reply\(said", line)]
    assert len(shown) >= 2
    assert not [line for line in shown if f"{line}\n" not in whole]


@pytest.mark.parametrize("page", PAGES[2:], ids=lambda page: page.stem)
def test_a_guide_is_read_in_minutes(page: Any) -> None:
    words = [word for word in page.read_text("utf-8").split() if re.search(r"\w", word)]
    assert len(words) <= 400
