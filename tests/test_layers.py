"""The house rules that a program can check: who may import whom, where randomness and axis words may stand."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.syntax import walk

PACKAGE = "vgbench_gen"
ROOT = Path(__file__).resolve().parents[1] / PACKAGE

# From the bottom up; rooms on one line are neighbours and may not import each other.
LAYERS = [
    ["core"],
    ["geometry", "store"],
    ["executors"],
    ["backends"],
    ["text"],
    ["distractors"],
    ["scenes"],
    ["samples"],
    ["tasks"],
    ["quality"],
    ["pipeline"],
    ["importers"],
    ["agent"],
    ["evaluation"],
    ["rewards"],
    ["training"],
    ["report"],
    ["publish"],
    ["cli"],
]
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
GEOMETRY_MAY_IMPORT = {"numpy", "scipy", *sys.stdlib_module_names}
AXIS_WORDS = re.compile(r"extrinsic|c2w|w2c", re.IGNORECASE)
DOTTED_NAME = re.compile(rf"{PACKAGE}(\.\w+)+")
# The package's version and place are open to all; its public names would go round the layers.
OPEN_AT_TOP = {"__version__", "__file__", "__path__"}


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything imported, by statement or by a string that names one of our modules."""
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = module.split(".") if is_package else module.split(".")[:-1]
            base = ".".join(parent[: len(parent) + 1 - node.level]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            # `from vgbench_gen import tasks` imports a room, `from vgbench_gen.tasks import base` the same room.
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == PACKAGE:
            yield node.lineno, f"{PACKAGE}.{node.attr}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED_NAME.fullmatch(node.value):
            yield node.lineno, node.value


def layer_violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """What a module (dotted name) imports against the rules; one line each."""
    room = module.split(".")[1]
    found = []
    for line, name in imports(ast.parse(source), module, is_package):
        parts = name.split(".")
        if parts[0] != PACKAGE:
            if room == "geometry" and parts[0] not in GEOMETRY_MAY_IMPORT:
                found.append(f"{module}:{line}: geometry may import only numpy, scipy and core, not {parts[0]}")
        elif len(parts) == 1 or parts[1] in OPEN_AT_TOP:
            continue  # of a bare `import vgbench_gen`, the attributes are looked at where they are used
        elif parts[1] not in RANK:
            found.append(f"{module}:{line}: {name} is in no room; name the room")
        elif parts[1] != room and RANK[parts[1]] >= RANK[room]:
            found.append(f"{module}:{line}: {room} must not import {parts[1]}")
    return found


def randomness_violations(source: str, module: str) -> list[str]:
    """Uses of random generators other than the type `np.random.Generator`."""
    found: list[str] = []
    if "random" not in source and "default_rng" not in source:
        return found
    for node in walk(ast.parse(source)):
        used = ""
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            if re.fullmatch(r"(np|numpy)\.random\.\w+", text) and not text.endswith(".Generator"):
                used = text
        elif isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random"):
            used = ", ".join(alias.name for alias in node.names if alias.name != "Generator")
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy":
            used = "numpy.random" if any(alias.name == "random" for alias in node.names) else ""
        elif isinstance(node, ast.Import):
            used = ", ".join(a.name for a in node.names if a.name in ("random", "numpy.random"))
        elif isinstance(node, ast.Name) and node.id == "default_rng":
            used = node.id
        if used:
            found.append(f"{module}:{getattr(node, 'lineno', 0)}: {used}; randomness comes from core.rng.rng_for")
    return found


def axis_word_violations(source: str, module: str) -> list[str]:
    """Words for poses that leave the direction open, outside the rooms that read and write foreign formats."""
    parts = module.split(".")
    if parts[1] == "scenes" or (parts[1] == "samples" and parts[-1].startswith("write_")):
        return []
    if module.endswith(".agent.tools.depths"):
        return []  # the published name of a result is one of these words
    if module == f"{PACKAGE}.geometry":  # its docstring explains the words of other systems
        tree = ast.parse(source)
        docstring = ast.get_docstring(tree, clean=False) or ""
        source = source.replace(docstring, "\n" * docstring.count("\n"), 1)
    return [
        f"{module}:{number}: {match.group()}; write dst_from_src"
        for number, line in enumerate(source.splitlines(), start=1)
        if (match := AXIS_WORDS.search(line))
    ]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def files() -> list[Path]:
    return [path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT]


def test_every_module_stands_in_a_room() -> None:
    assert {path.name for path in ROOT.glob("*.py")} <= {"__init__.py", "__main__.py"}
    assert {path.relative_to(ROOT).parts[0] for path in files()} <= set(RANK)
    assert {"core", "scenes", "cli"} <= {path.relative_to(ROOT).parts[0] for path in files()}


def test_imports_run_downwards_only() -> None:
    found = [
        line
        for path in files()
        for line in layer_violations(path.read_text("utf-8"), module_name(path), path.name == "__init__.py")
    ]
    assert not found, "\n".join(found)


def test_randomness_comes_from_one_module() -> None:
    found = [
        line
        for path in files()
        if module_name(path) != f"{PACKAGE}.core.rng"
        for line in randomness_violations(path.read_text("utf-8"), module_name(path))
    ]
    assert not found, "\n".join(found)


def test_transforms_say_their_direction() -> None:
    found = [line for path in files() for line in axis_word_violations(path.read_text("utf-8"), module_name(path))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source", "bad"),
    [
        ("vgbench_gen.tasks.depth", "from vgbench_gen.scenes.base import Scene", False),
        ("vgbench_gen.tasks.depth", "from vgbench_gen.tasks.base import tasks", False),
        ("vgbench_gen.samples.room", "from vgbench_gen.scenes import open_scenes", False),
        ("vgbench_gen.cli.build", "def f():\n    from vgbench_gen.pipeline.build import build", False),
        ("vgbench_gen.pipeline.measure", "from vgbench_gen import __version__", False),
        ("vgbench_gen.geometry.poses", "import numpy as np\nimport scipy.spatial\nimport math", False),
        ("vgbench_gen.tasks.depth", "from vgbench_gen.pipeline import measure", True),
        ("vgbench_gen.tasks.depth", "def f():\n    import vgbench_gen.cli.main", True),
        ("vgbench_gen.tasks.depth", "from vgbench_gen import pipeline", True),
        ("vgbench_gen.tasks.depth", "from vgbench_gen import build", True),
        ("vgbench_gen.tasks.depth", "import vgbench_gen\nvgbench_gen.build()", True),
        ("vgbench_gen.tasks.depth", "import vgbench_gen\nvgbench_gen.__version__", False),
        ("vgbench_gen.tasks.depth", "from ..pipeline import measure", True),
        ("vgbench_gen.tasks.depth", "importlib.import_module('vgbench_gen.pipeline.measure')", True),
        ("vgbench_gen.geometry.poses", "from vgbench_gen.store import schema", True),
        ("vgbench_gen.store.schema", "from vgbench_gen.geometry import poses", True),
        ("vgbench_gen.distractors.base", "from vgbench_gen.scenes.base import Scene", True),
        ("vgbench_gen.scenes.base", "from vgbench_gen.samples import room", True),
        ("vgbench_gen.importers.base", "from vgbench_gen.evaluation import base", True),
        ("vgbench_gen.geometry.poses", "import cv2", True),
        ("vgbench_gen.geometry.poses", "def f():\n    from open3d import core", True),
    ],
)
def test_the_layer_rule_sees(module: str, source: str, bad: bool) -> None:
    assert bool(layer_violations(source, module)) is bad


def test_relative_imports_of_a_package_start_at_itself() -> None:
    assert not layer_violations("from .base import tasks", "vgbench_gen.tasks", is_package=True)
    assert layer_violations("from ..cli import main", "vgbench_gen.tasks", is_package=True) == [
        "vgbench_gen.tasks:1: tasks must not import cli"
    ]


@pytest.mark.parametrize(
    ("source", "bad"),
    [
        ("def f(rng: np.random.Generator) -> None: ...", False),
        ("from numpy.random import Generator", False),
        ("rng = np.random.default_rng(3)", True),
        ("np.random.seed(0)", True),
        ("x = numpy.random.rand(3)", True),
        ("from numpy.random import default_rng", True),
        ("from numpy import random", True),
        ("import random", True),
        ("from random import choice", True),
    ],
)
def test_the_randomness_rule_sees(source: str, bad: bool) -> None:
    assert bool(randomness_violations(source, "vgbench_gen.tasks.depth")) is bad


def test_the_axis_word_rule_sees() -> None:
    assert axis_word_violations("T_c2w = 1", "vgbench_gen.tasks.depth")
    assert axis_word_violations("x = Extrinsics()", "vgbench_gen.geometry.poses")
    assert not axis_word_violations("extrinsic = 1", "vgbench_gen.scenes.scannet")
    assert not axis_word_violations("extrinsic = 1", "vgbench_gen.samples.write_scannet")
    assert axis_word_violations("extrinsic = 1", "vgbench_gen.samples.room")
    assert not axis_word_violations('"""Others say\nextrinsic."""', "vgbench_gen.geometry")
    assert axis_word_violations('"""Others say\nextrinsic."""\nw2c = 1', "vgbench_gen.geometry") == [
        "vgbench_gen.geometry:3: w2c; write dst_from_src"
    ]
