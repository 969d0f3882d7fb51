"""The walks of docs/architecture.md: every function is there, its caller calls it, and no step goes up a room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_layers import RANK

ROOT = Path(__file__).resolve().parents[2]
FRAME, REPLY = "A frame to a parquet row", "A reply to a table cell"
STEP = re.compile(r"^( *)(?:-|\d+\.) `(vgbench_gen/[\w/]+\.py):([\w.]+)`")
MENTION = re.compile(r"`(vgbench_gen/[\w/]+\.py):([\w.]+)`")


class Step(NamedTuple):
    depth: int
    path: str
    name: str

    @property
    def room(self) -> str:
        return self.path.split("/")[1]


def section(text: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def steps_of(text: str) -> list[Step]:
    found = (STEP.match(line) for line in text.splitlines())
    return [Step(len(match[1]), match[2], match[3]) for match in found if match]


def calls_of(steps: list[Step]) -> Iterator[tuple[Step, Step]]:
    """(caller, callee), as far as a line stands under another."""
    above: list[Step] = []
    for step in steps:
        while above and above[-1].depth >= step.depth:
            above.pop()
        if above:
            yield above[-1], step
        above.append(step)


@cache
def module(path: str) -> tuple[str, ast.Module]:
    source = (ROOT / path).read_text("utf-8") if (ROOT / path).is_file() else ""
    return source, ast.parse(source)


def source_of(path: str, name: str) -> str | None:
    """The text of a function, a class or a method; None where there is none of this name."""
    source, node = module(path)
    found: ast.AST = node
    for part in name.split("."):
        body = getattr(found, "body", [])
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        match = next((n for n in body if isinstance(n, kinds) and n.name == part), None)
        if match is None:
            return None
        found = match
    return ast.get_source_segment(source, found)


def missing(text: str) -> list[str]:
    return [f"{path}:{name}" for path, name in MENTION.findall(text) if source_of(path, name) is None]


def uncalled(text: str) -> list[str]:
    """Lines whose function the line above them does not mention."""
    return [
        f"{caller.name} does not call {step.name}"
        for caller, step in calls_of(steps_of(text))
        if not re.search(rf"\b{step.name.rsplit('.')[-1]}\b", source_of(caller.path, caller.name) or "")
    ]


def upward(text: str) -> list[str]:
    """Lines that lie in a room above that of their caller."""
    return [
        f"{caller.path}:{caller.name} -> {step.path}:{step.name}"
        for caller, step in calls_of(steps_of(text))
        if RANK[step.room] > RANK[caller.room]
    ]


@pytest.mark.parametrize("heading", [FRAME, REPLY])
def test_a_walk_names_what_is_there_and_goes_down(heading: str) -> None:
    text = section((ROOT / "docs" / "architecture.md").read_text("utf-8"), heading)
    assert 10 <= len(steps_of(text)) <= 12  # short enough to be read, long enough to lead through
    assert missing(text) == []
    assert upward(text) == []


@pytest.mark.parametrize("heading", [FRAME, REPLY])
def test_every_step_of_a_walk_is_called_by_the_one_above(heading: str) -> None:
    text = section((ROOT / "docs" / "architecture.md").read_text("utf-8"), heading)
    assert uncalled(text) == []


def test_a_walk_that_errs_is_found() -> None:
    build, compose = "vgbench_gen/pipeline/build.py", "vgbench_gen/pipeline/compose.py"
    wrong = f"""1. `{build}:build`
   1. `{compose}:compose`
      1. `{build}:nothing_of_that_name`
      2. `vgbench_gen/cli/build.py:build`
2. `{compose}:compose`
   - `vgbench_gen/store/files.py:replace_file`
"""
    assert missing(wrong) == [f"{build}:nothing_of_that_name"]
    assert upward(wrong) == [f"{compose}:compose -> vgbench_gen/cli/build.py:build"]
    assert uncalled(wrong)[0] == "compose does not call nothing_of_that_name"
    assert uncalled(wrong)[-1] == "compose does not call replace_file"


WORDS = ("run", "entry", "stage", "rotation", "epoch", "delta", "headline", "strict", "floor")


def test_words_of_our_own_are_defined_before_they_are_used() -> None:
    text = section((ROOT / "docs" / "architecture.md").read_text("utf-8"), REPLY)
    assert tuple(re.findall(r"^\| ([a-z]+) \| .{15,} \|$", text, re.MULTILINE)) == WORDS
