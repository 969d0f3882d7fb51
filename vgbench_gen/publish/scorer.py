"""A copy of our scoring that runs without the rest of this package.

Other harnesses pin other versions of what we need (numpy aside), so an exported task carries the modules that score and
nothing else. It also freezes them: an export scores as it did on the day it was made.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.scoring import find_rules

NAME = "vgbench_scorer"
_PACKAGE = "vgbench_gen"
_ENTRY = f"{_PACKAGE}.evaluation.portable"
_RULES = ("evaluation", "benchmarks", "__init__.py")
_CARRIED = frozenset({*sys.stdlib_module_names, "numpy"})  # what an export may import besides ours
_INIT = '''"""{text}"""

from {name}.evaluation.portable import FAILED, grade, mean, share, version

__all__ = ["FAILED", "grade", "mean", "share", "version"]
'''


def copy_scorer(folder: Path, benchmarks: Iterable[str] = ()) -> list[Path]:
    """Write the package `vgbench_scorer` into a folder; returns its files, sorted.

    It holds `evaluation.portable`, the scoring rules of the benchmarks, what these import of ours, and data files in
    the folders of those modules. Python 3.11 and numpy are all that it needs.

    Args:
        folder: to fill.
        benchmarks: names in `Item.benchmark` of the questions that are exported.

    Raises:
        ConfigError: the module of some rules imports what an export cannot carry.
    """
    written: list[Path] = []
    root = folder / NAME
    rules = sorted({(type(one).__module__, type(one).__name__) for one in map(find_rules, benchmarks)})
    written.append(_write(root.joinpath(*_RULES), _rules_listed(rules)))
    modules = _collect_modules(_ENTRY)
    for module, _ in rules:
        modules |= _check_portable(module, _collect_modules(module))
    for module, path in sorted(modules.items()):
        inside = Path(*_inside(module))
        target = root / (inside / "__init__.py" if path.name == "__init__.py" else inside.with_suffix(".py"))
        written.append(_write(target, path.read_text("utf-8").replace(_PACKAGE, NAME)))
        for data in sorted(path.parent.glob("*.toml")) if path.name != "__init__.py" else ():
            if data.name in path.read_text("utf-8"):
                written.append(_write(target.with_name(data.name), data.read_text("utf-8")))
    for parent in sorted({one for path in written for one in path.parents if root in one.parents}):
        if not (parent / "__init__.py").exists():
            written.append(_write(parent / "__init__.py", ""))
    text = "Scoring of VGBench replies, copied out of vgbench-gen (Apache-2.0)."
    written.append(_write(root / "__init__.py", _INIT.format(text=text, name=NAME)))
    return sorted(set(written))


def _inside(module: str) -> tuple[str, ...]:
    """Return where a module goes; one of another package lies in the folder of that package's name."""
    package, *parts = module.split(".")
    return tuple(parts) if package == _PACKAGE else (package, *parts)


def _rules_listed(rules: Iterable[tuple[str, str]]) -> str:
    """Return the module that takes the place of the registered benchmarks."""
    lines = ['"""The scoring rules of the questions that were exported."""', ""]
    lines += [f"from {'.'.join((NAME, *_inside(module)))} import {name}" for module, name in rules]
    named = "".join(f"{name}(), " for _, name in rules)
    return "\n".join([*lines, "", "", "def list_scoring_rules():", f"    return ({named.rstrip()})", ""])


def _collect_modules(entry: str) -> dict[str, Path]:
    """Our modules that a module needs, itself among them, by name. Packages count only for what they hold."""
    found: dict[str, Path] = {}
    waiting = [entry]
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        found[module] = _find_file(module)
        waiting += _list_imports(found[module])
    return {name: path for name, path in found.items() if path.name != "__init__.py"}


def _check_portable(rules: str, modules: dict[str, Path]) -> dict[str, Path]:
    """Refuse rules that would not run where nothing but Python and numpy is installed."""
    for module, path in modules.items():
        for name in _list_foreign_imports(path):
            by = f"{module}, which {rules} imports" if module != rules else module
            raise ConfigError(
                f"export: found {name} imported by {by}; expected rules that need numpy and "
                f"{_PACKAGE}.evaluation.scoring alone, because the export carries them. Put the class of the scoring "
                "rules into a module of its own (docs/howto/add-a-benchmark.md)."
            )
    return modules


def _list_foreign_imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports on loading and that an export does not carry."""
    waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while waiting:
        node = waiting.pop()
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        for name in names:
            whole = isinstance(node, ast.Import) and name.partition(".")[0] == _PACKAGE
            if whole or not (name.startswith(f"{_PACKAGE}.") or name.partition(".")[0] in _CARRIED):
                yield name
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not _is_for_types(node):
            waiting += ast.iter_child_nodes(node)


def _is_for_types(node: ast.AST) -> bool:
    """Return whether a node is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _list_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{_PACKAGE}."):
            if _is_package(node.module):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


def _is_package(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None


def _find_file(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{module}: found no file of it; expected an installation with its sources.")
    return Path(spec.origin)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
