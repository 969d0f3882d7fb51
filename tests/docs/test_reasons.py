"""Every reason that a build, a redraw or `vgbench scenes` prints stands in the page of reasons."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.syntax import walk
from vgbench_gen.core.config import read_toml
from vgbench_gen.core.gates import Gates
from vgbench_gen.pipeline.shortfall import find_hint
from vgbench_gen.tasks.base import tasks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "howto" / "reasons.md"
REASONS = ROOT / "vgbench_gen" / "pipeline" / "reasons.toml"
ROOMS = ("scenes", "tasks", "distractors", "pipeline")
# Calls that take a reason, and which of their arguments it is.
TAKES = {
    "Issue": 1, "_note": 1, "reject": 3, "_reject": 1, "rejected": 0, "Rejected": 4, "QuestionRejectedError": 0,
    "TooFewOptionsError": 0, "keep": 1,
}  # fmt: skip
NAMED = ("reason", "rejection_reason", "missing", "problem", "draft")
DECIDES = re.compile(r"problem|reason|choose_camera")
WORD = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(_…)?")


def texts(node: ast.AST | None) -> Iterator[str]:
    """The texts that an expression may give; a part that is filled in is an ellipsis."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)
    elif isinstance(node, ast.Tuple | ast.List):
        yield from texts(node.elts[0] if node.elts else None)


def find_reasons(source: str, room: str) -> set[str]:
    """Reasons that the code of a module names."""
    found: list[ast.AST | None] = []
    for node in walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = TAKES.get(name)
            found += node.args[place : place + 1] if place is not None else []
            if name == "replace":
                found += [word.value for word in node.keywords if word.arg in NAMED]
        elif isinstance(node, ast.FunctionDef) and DECIDES.search(node.name):
            for inner in walk(node):
                if isinstance(inner, ast.Return):
                    found.append(inner.value)
                    last = inner.value.elts[-1] if isinstance(inner.value, ast.Tuple) else None
                    found.append(last if node.name == "choose_camera" else None)
                elif isinstance(inner, ast.Dict) and room == "tasks":
                    found += inner.keys
        elif isinstance(node, ast.Return) and room == "tasks" and isinstance(node.value, ast.Tuple):
            several = len(node.value.elts) == 3 and not [*texts(node.value.elts[1])]
            found.append(node.value if several else None)  # a gate: reason, number, limit
        elif isinstance(node, ast.Tuple) and room == "tasks" and len(node.elts) == 4:
            first, reason, *numbers = node.elts  # the same behind the name of what missed it
            words = [word for one in (first, *numbers) for word in texts(one) if word]
            found.append(None if words else reason)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {getattr(target, "id", getattr(target, "attr", "")) for target in targets}
            if (names & set(NAMED) and room != "scenes") or names & {"LOST", "REWORDED", "UNNAMED", "UNBALANCED"}:
                found.append(node.value)
            if "dropped" in names and isinstance(node.value, ast.Dict):
                found += node.value.keys
        elif isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "dropped":
            found.append(node.slice)
    return {text for node in found for text in texts(node) if WORD.fullmatch(text)}


def read_page() -> set[str]:
    return set(re.findall(r"`([^`]+)`", PAGE.read_text("utf-8")))


def test_hints_are_about_reasons_of_the_page_and_gates_that_exist() -> None:
    tasks.names()  # imports each task, and with it its gates
    gates = Gates().model_dump(mode="json")
    page, families = read_page(), {"views", "points", "regions", "warps"}
    for key, hint in read_toml(REASONS).items():
        task, _, reason = key.rpartition("/")
        family, _, end = reason.partition("_")
        assert reason in page or (family in families and end in page), key
        assert not task or task in tasks.names()
        section, _, name = hint["gate"].partition(".")
        assert name in gates[section], key
        assert find_hint(task or "any", reason) == hint


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_has_every_reason_of_the_code(room: str) -> None:
    named = {
        name for path in (ROOT / "vgbench_gen" / room).rglob("*.py") for name in find_reasons(path.read_text(), room)
    }
    assert len(named) >= 5
    assert not sorted(named - read_page())


def test_the_page_has_no_reason_that_the_code_lost() -> None:
    source = "".join(path.read_text() for room in ROOMS for path in (ROOT / "vgbench_gen" / room).rglob("*.py"))
    named = {word for word in read_page() if re.fullmatch(r"[a-z]+(_[a-z]+)+", word)}
    assert len(named) > 100
    assert not sorted(word for word in named if f'"{word}"' not in source)


def test_what_counts_as_a_reason() -> None:
    source = """
def _find_problem(pair):
    if pair.bad:
        return "too_bad", 1.0, 2.0
    return None

def go(view, name, ok):
    yield reject(self, view, key, f"regions_{name}", 0, 1)
    raise TooFewOptionsError("no_luck" if ok else "less_luck", detail)
"""
    assert find_reasons(source, "tasks") == {"too_bad", "regions_…", "no_luck", "less_luck"}
