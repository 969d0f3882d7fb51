"""Names in the package: one class name has one meaning, and a name in backticks of a docstring is one that exists."""

from __future__ import annotations

import ast
import builtins
import pydoc
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.shared import recall_once
from tests.syntax import walk

PACKAGE = Path(__file__).resolve().parents[1] / "vgbench_gen"
QUOTED = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
FILE = re.compile(r".*\.(?!py$)(bin|csv|h|jpg|js|json|md|parquet|ply|toml|tsv|txt)")

# Names of other programs and of foreign files, and symbols of formulas.
FOREIGN = {
    "JSON.parse", "Model.generate", "POINTS2D", "ValidationError.errors", "__cause__", "__proto__", "_box_img",
    "azure_trapi_visual_cot", "base_metric.py", "bbox", "boxes.py", "by_dimension", "by_reasoning_type", "cap_applied",
    "delta_1.25", "image_id", "image_with_box", "images.list.element.path", "max_completion_tokens", "metrics.py",
    "msr_", "nan", "nohup",
    "num_distractors", "object_category", "phi", "raw_alignment", "rho",
    "save_pretrained", "scene0000_00", "tarfile", "transform_matrix", "transformers", "vgbench",
    "wildrgbd_generate_point_cloud.py",
}  # fmt: skip
# Other packages, which are asked themselves.
ALIASES = {"Path": "pathlib.Path", "cv2": "cv2", "imagehash": "imagehash", "io": "io", "np": "numpy", "numpy": "numpy",
           "pa": "pyarrow", "pandas": "pandas", "pyarrow": "pyarrow", "pydantic": "pydantic", "sys": "sys"}  # fmt: skip
# Files that we write, and words for names that somebody fills in.
WRITTEN = {"cannot_tell", "image_files", "run_vgbench.py", "vgbench_dataset.py", "vgbench_scorer", "vgbench_task.py"}
PATTERNS = {
    "aligned_from_scan",
    "homography.crop_share",
    "run.accuracy",
    "run.scores",
    "run.to_pandas",
    "dst_from_src",
    "src_from_dst",
    "file_from_world",
    "frame_from_box",
    "world_from_turned",
}


def list_trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def list_docs(tree: ast.AST) -> Iterator[ast.Constant]:
    """Docstrings, and those below fields and constants."""
    for node in walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def list_names(tree: ast.AST) -> Iterator[str]:
    """Identifiers of the code, and words of its texts but docstrings."""
    nodes = list(walk(tree))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name():
                yield node.id
            case ast.Attribute():
                yield node.attr
            case ast.arg() | ast.keyword():
                yield node.arg or ""
            case ast.alias():
                yield from (*node.name.split("."), node.asname or "")
            case ast.Constant(value=str() as text) if id(node) not in docs:
                yield from re.findall(r"\w+", text)


class Names:
    """Names that modules and classes define."""

    def __init__(self, trees: dict[Path, ast.Module]) -> None:
        self.of_file = {path: set(list_names(tree)) for path, tree in trees.items()}
        self.defined: set[str] = set(dir(builtins))  # functions, classes, fields and constants of any module
        self.modules: dict[str, set[str]] = defaultdict(set)
        self._members: dict[str, set[str]] = defaultdict(set)
        self._bases: dict[str, set[str]] = defaultdict(set)
        for path, tree in trees.items():
            place = path.parent if path.stem == "__init__" else path.with_suffix("")
            self.modules[place.name] |= self.of_file[path]
            self.modules[place.parent.name] |= {place.name}
            for node in walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    self.defined.add(node.name)
                elif isinstance(node, ast.Assign | ast.AnnAssign):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    self.defined |= {target.id for target in targets if isinstance(target, ast.Name)}
                if isinstance(node, ast.ClassDef):
                    self._members[node.name] |= set(list_names(node))
                    for base in node.bases:
                        name = base.value if isinstance(base, ast.Subscript) else base
                        self._bases[node.name].add(getattr(name, "attr", getattr(name, "id", "")))

    def has(self, owner: str, name: str) -> bool:
        """Whether a module or class has a name; what is no module or class of ours has every name."""
        if owner in self._members:
            inherited = (base for base in self._bases[owner] if base not in {owner})
            return name in self._members[owner] or any(self.has(base, name) for base in inherited)
        return name in self.modules[owner] if owner in self.modules else owner in self.defined

    def resolves(self, quoted: str, path: Path) -> bool:
        """Whether a quoted name stands for a name that is seen in the file or defined in the package."""
        first, *others = quoted.removeprefix("vgbench_gen.").split(".")
        if first in ALIASES:
            return pydoc.locate(".".join([ALIASES[first], *others])) is not None
        seen = first in self.of_file[path] | self.defined or first in self.modules
        return seen and all(self.has(owner, name) for owner, name in zip([first, *others], others, strict=False))


class Source(NamedTuple):
    """What the tests look at in the package."""

    classes: list[tuple[str, str]]
    """(name, place) of every public class."""
    quoted: list[tuple[str, Path, str]]
    """(name, file, place) of every name in backticks of a docstring."""
    names: Names


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    def read(_: Path) -> Source:
        trees = list_trees()
        classes = [
            (node.name, f"{path.relative_to(PACKAGE)}:{node.lineno}")
            for path, tree in trees.items()
            for node in tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        ]
        quoted = [
            (match[1], path, f"{path.relative_to(PACKAGE)}:{text.lineno}")
            for path, tree in trees.items()
            for text in list_docs(tree)
            for match in QUOTED.finditer(str(text.value))
        ]
        return Source(classes, quoted, Names(trees))

    return recall_once(tmp_path_factory, "names", read)


def test_no_two_public_classes_share_a_name(source: Source) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, place in source.classes:
        places[name].append(place)
    assert len(places) > 300  # the folder is the right one
    repeated = {name: found for name, found in places.items() if len(found) > 1}
    assert not repeated, "\n".join(f"{name}: {', '.join(found)}" for name, found in repeated.items())


def test_names_in_backticks_exist(source: Source) -> None:
    known, used = FOREIGN | WRITTEN | PATTERNS, {name for name, _, _ in source.quoted}
    lost = [
        f"{place}: `{name}`"
        for name, path, place in source.quoted
        if name not in known and not FILE.fullmatch(name) and not source.names.resolves(name, path)
    ]
    assert not lost, "\n".join(lost)
    assert known <= used  # else it can go


@pytest.mark.parametrize(
    ("quoted", "exists"),
    [("parse_json", True), ("json_text.parse_json", True), ("json_text.parse_yaml", False), ("parse_yaml", False),
     ("Task.recheck", True), ("ScalarTask.recheck", True), ("Task.recheque", False), ("vgbench_gen.core", True)],
)  # fmt: skip
def test_what_a_quoted_name_stands_for(quoted: str, exists: bool, source: Source) -> None:
    assert source.names.resolves(quoted, PACKAGE / "core" / "json_text.py") == exists
