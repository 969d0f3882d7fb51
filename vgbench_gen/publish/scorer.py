"""A copy of our scoring that runs without the rest of this package.

Other harnesses pin other versions of our requirements, so an exported task contains only the modules that score, which
need nothing but numpy. The copy also freezes the rules: an export keeps scoring as on the day it was made.
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
_ENTRIES = (f"{_PACKAGE}.evaluation.portable", f"{_PACKAGE}.rewards.adapters")
_RULES = Path("evaluation", "benchmarks", "__init__.py")
_ALLOWED = frozenset({*sys.stdlib_module_names, "numpy"})  # packages that the copied modules may import
_INIT = f'''"""Scoring of VGBench replies, copied out of vgbench-gen (Apache-2.0)."""

from {NAME}.evaluation.portable import FAILED, grade, mean, share, version

__all__ = ["FAILED", "grade", "mean", "share", "version"]
'''


def copy_scorer(folder: Path, benchmarks: Iterable[str] = ()) -> None:
    """Write the package `vgbench_scorer` into a folder.

    It contains `evaluation.portable`, `rewards.adapters`, the scoring rules of the benchmarks, the modules of this
    package that these import, and their TOML files. It needs only Python 3.11 and numpy.

    Args:
        folder: the export's folder.
        benchmarks: `Item.benchmark` of the exported questions.

    Raises:
        ConfigError: the module of some rules imports another package.
    """
    rules = sorted({(type(rule).__module__, type(rule).__name__) for rule in map(find_rules, benchmarks)})
    texts = {Path("__init__.py"): _INIT, _RULES: _format_rules(rules)}
    for entry in dict.fromkeys([*_ENTRIES, *(module for module, _ in rules)]):
        for module, path in _collect_modules(entry).items():
            place, text = _find_place(module), path.read_text("utf-8")
            texts[place] = text.replace(_PACKAGE, NAME)
            data = [file for file in path.parent.glob("*.toml") if file.name in text]
            texts |= {place.with_name(file.name): file.read_text("utf-8") for file in data}
    for parent in {parent for place in texts for parent in place.parents}:
        texts.setdefault(parent / "__init__.py", "")
    for place, text in texts.items():
        (folder / NAME / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / NAME / place).write_text(text, encoding="utf-8")


def _find_place(module: str) -> Path:
    """Path of a module in the copy; a module of another package gets a folder with that package's name."""
    return Path(*module.removeprefix(f"{_PACKAGE}.").split(".")).with_suffix(".py")


def _format_rules(rules: Iterable[tuple[str, str]]) -> str:
    """Text of the module that replaces `evaluation.benchmarks` in the copy."""
    lines = ['"""The scoring rules of the questions that were exported."""', ""]
    places = [(".".join((NAME, *_find_place(module).with_suffix("").parts)), name) for module, name in rules]
    lines += [f"from {place} import {name}" for place, name in places]
    named = "".join(f"{name}(), " for _, name in rules)
    return "\n".join([*lines, "", "", "def list_scoring_rules():", f"    return ({named.rstrip()})", ""])


def _collect_modules(entry: str) -> dict[str, Path]:
    """Name -> file of a module and the modules of this package that it imports, without packages' `__init__`.

    Raises:
        ConfigError: one of them imports a package other than numpy when it is loaded.
    """
    found: dict[str, Path] = {}
    waiting = [entry]
    while waiting:
        module = waiting.pop()
        spec = importlib.util.find_spec(module)
        if module in found or spec is None or spec.origin is None or _is_package(module):
            continue
        found[module] = Path(spec.origin)
        for name, loading in _list_imports(ast.parse(found[module].read_text("utf-8"))):
            if name.startswith(f"{_PACKAGE}.") and importlib.util.find_spec(name) is not None:
                waiting.append(name)
            elif loading and name.partition(".")[0] not in _ALLOWED:
                by = f"{module}, which {entry} imports" if module != entry else module
                raise ConfigError(
                    f"export: found {name} imported by {by}; expected rules that need numpy and "
                    f"{_PACKAGE}.evaluation.scoring alone, because the export carries them. Put the class of the "
                    "scoring rules into a module of its own (docs/howto/add-a-benchmark.md)."
                )
    return found


def _list_imports(node: ast.AST, loading: bool = True) -> Iterator[tuple[str, bool]]:
    """(module, whether it is imported at load time) of all imports; imports for type checking are not at load time."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, loading) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = "." * child.level + (child.module or "")
            inside = module.partition(".")[0] == _PACKAGE and _is_package(module)
            yield from ((f"{module}.{alias.name}" if inside else module, loading) for alias in child.names)
        else:
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            for_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            yield from _list_imports(child, loading and not later and not for_types)


def _is_package(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None
