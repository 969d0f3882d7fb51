"""The contract of a task: what each one declares, and that no other room names one."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import vgbench_gen
from tests.syntax import walk
from vgbench_gen.core.registry import Registry
from vgbench_gen.evaluation.benchmarks.vgbench.tables import VGBENCH
from vgbench_gen.scenes.base import loaders
from vgbench_gen.tasks.base import Task, admit, tasks
from vgbench_gen.tasks.evidence import Evidence, FactEvidence
from vgbench_gen.tasks.solving import NoSolver, Solver
from vgbench_gen.text.render import load_phrasings

PACKAGE = Path(vgbench_gen.__file__).parent
EVERY = tasks.names()
# Modules of the room that other rooms may import.
OPEN = ("base", "evidence", "explaining", "presentation", "records", "revealed", "row_evidence", "solving")
_BY_KEY = r"""\bevidence(\["|\['|\.get\(|\.pop\()"""
# Others call some things of their own as we call our questions; these words are theirs.
THEIR_WORDS = {
    "agent/tools/depths.py": {"camera_parameters"},  # a field of the published tool
    "evaluation/benchmarks/spatialscore/tables.py": {"point_tracking", "relative_depth"},
    "importers/mmiu.py": {"point_tracking"},
}
# Keys of random draws on which recorded figures rest.
DRAWS = {"solving/camera_fit.py": {"camera_parameters"}}


@pytest.mark.parametrize("name", EVERY)
def test_a_task_declares_all_that_other_rooms_ask_of_it(name: str) -> None:
    task = tasks[name]
    admit(task)
    assert task.name == name
    assert all(callable(check) and inspect.getdoc(check) for check in task.checks)
    if isinstance(task.solvers, NoSolver):
        assert task.solvers.reason.endswith("."), "a reason is a sentence"
    else:
        assert all(isinstance(solver, Solver) for solver in task.solvers)
        assert len({solver.name for solver in task.solvers}) == len(task.solvers)
    for ask in task.asks:
        assert len({rule.name for rule in task.rules_for(ask)}) == len(task.rules_for(ask))
    assert set(task.category_origin) == set(task.formats)
    assert task.paper_column in {"", *(column.head for column in VGBENCH.columns)}
    for form in task.formats:
        for notation in ("matrix", task.notation):
            assert load_phrasings(name, form, notation), f"no wording of {name} as {form} in {notation}"


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("fact_evidence", "declares no fact_evidence"),
        ("candidate_evidence", "declares no candidate_evidence"),
        ("checks", "declares no checks"),
        ("solvers", "declares no solver"),
        ("all", "declares no fact_evidence"),
    ],
)
def test_a_task_that_leaves_one_out_is_refused_by_name(left_out: str, said: str) -> None:
    registry: Registry[Task] = Registry("task", "vgbench_gen.tasks", admit)
    declared = {
        "fact_evidence": FactEvidence,
        "candidate_evidence": Evidence,
        "checks": (lambda fact, gates: [],),
        "solvers": NoSolver("None is known."),
    }
    kept = {} if left_out == "all" else {name: value for name, value in declared.items() if name != left_out}
    members: dict[str, object] = dict.fromkeys(Task.__abstractmethods__, lambda self: None)
    members |= {"name": "half", "__module__": "elsewhere"}
    members |= {"category": "a", "subcategory": "b", "convention": {}, "formats": ("multi-choice",)}
    with pytest.raises(TypeError, match=f"'half'.*elsewhere.*{said}"):
        registry.register("half")(type("Half", (Task,), members | kept))
    registry.register("half")(type("Half", (Task,), members | declared))


def test_evidence_is_read_by_its_records_alone() -> None:
    found = []
    for room in ("pipeline", "publish", "quality", "report", "tasks"):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            if path.name == "row_evidence.py":
                continue
            lines = enumerate(path.read_text("utf-8").splitlines(), 1)
            found += [f"{path}:{n}: {line.strip()}" for n, line in lines if re.search(_BY_KEY, line)]
    assert not found, "a key of evidence is named outside its record:\n" + "\n".join(found)


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of every string that is no docstring."""
    tree = ast.parse(path.read_text("utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(n.body[0].value)
        for n in walk(tree)
        if isinstance(n, documented) and n.body and isinstance(n.body[0], ast.Expr)
    }
    for node in walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def names_in(source: Path, names: list[str], allowed: set[str]) -> list[str]:
    """Where a file says one of these names as a whole string."""
    return [f"{source}:{line}: {text!r}" for line, text in strings_of(source) if text in names and text not in allowed]


def test_no_other_room_names_a_task() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] != "tasks":
            found += names_in(path, EVERY, THEIR_WORDS.get(place.as_posix(), set()))
            imported = re.findall(r"vgbench_gen\.tasks\.(\w+)", path.read_text("utf-8"))
            found += [f"{path}: imports {name}" for name in imported if name not in OPEN]
    assert not found, "\n".join(found)


def test_no_task_names_a_dataset_or_another_task() -> None:
    found = []
    for path in sorted((PACKAGE / "tasks").rglob("*.py")):
        place = path.relative_to(PACKAGE / "tasks")
        own = {place.parts[0].removesuffix(".py")} | DRAWS.get(place.as_posix(), set())
        found += names_in(path, [*loaders.names(), *EVERY], own)
    assert not found, "\n".join(found)


def test_the_rule_about_names_sees(tmp_path: Path) -> None:
    path = tmp_path / "room.py"
    path.write_text('"""metric_depth"""\n\nx = {"metric_depth": 1}\ny = "like metric_depth"\n')
    assert names_in(path, EVERY, set()) == [f"{path}:3: 'metric_depth'"]
    assert not names_in(path, EVERY, {"metric_depth"})
