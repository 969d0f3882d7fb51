"""`docs/constants.md`, generated: `python docs/_ext/constants.py > docs/constants.md`.

Names, origins and sections are those of `constants.toml`. The value of a row and its text (the docstring or comment of
the constant) are those of the code; where the text lacks the reason, `constants.toml` adds it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

HEAD = """# Gates and constants

Generated from the code and `docs/_ext/constants.toml` by `python docs/_ext/constants.py > docs/constants.md`; do not
edit by hand. [When a question is valid](validity.md) explains the checks.

`pair.overlap_min` is a gate: a recipe sets it as `overlap_min` in the table `[gates.pair]`. `tasks.base.TRUE_CLAIM_MAX`
is a constant of the package. The last column is the origin of the value: **L** literature or public code, **D**
measured on published questions, on our builds or by simulation, **J** a judgment that real data should confirm, **O**
the official code of a dataset. `D%` is per cent of the image diagonal, "at 640" means pixels at an image width of 640.
"""
CITATION = re.compile(r"(^| )\(?`?docs/[\w-]+\.md#[\w-]+`?\)?[:;]?")


def read_table() -> dict[str, dict[str, str]]:
    """Section of the page -> name -> letter of the origin and reason, of `constants.toml`."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def render_markdown(stated: dict[str, dict[str, str]]) -> str:
    """The page.

    Raises:
        LookupError: `stated` names what the code lacks, lacks a gate, or has no reason for a row; the message names it.
    """
    gates, parts, names = read_gates(), [HEAD], set[str]()
    for title, table in stated.items():
        rows = ["| name | value | meaning and reason | from |", "|---|---|---|---|"]
        for name, entry in table.items():
            if name == "about":
                continue
            value, code = gates.get(name) or read_constant(name)
            origin, _, reason = entry.partition(" ")
            text = "; ".join(filter(None, (code.rstrip("."), reason)))
            if not text or name in names:
                raise LookupError(f"{name}: needs one row with a reason, in constants.toml or at the value")
            names.add(name)
            printed = f"{value:g}" if isinstance(value, float) else str(value)
            rows.append(f"| `{name}` | {printed} | {finish(text.replace('|', chr(92) + '|'))} | {origin} |")
        about = [table["about"] + "\n"] if "about" in table else []
        parts += [f"## {title}\n", *about, "\n".join(rows) + "\n"]
    if missing := sorted(set(gates) - names):
        raise LookupError(f"constants.toml has no row for the gates {missing}")
    return "\n".join(parts)


def read_gates() -> dict[str, tuple[Any, str]]:
    """Name of each gate -> its default and its docstring; the errors of the sources have none each."""
    from vgbench_gen.core.gates import Gates
    from vgbench_gen.tasks.base import tasks

    tasks.names()  # imports each task, and with it its gates
    shipped = Gates()
    sections = {name: getattr(shipped, name) for name in Gates.model_fields}
    sections |= {name: kind() for name, kind in Gates.sections().items()}
    found = {}
    for section, model in sections.items():
        for name in type(model).model_fields:
            value = getattr(model, name)
            if isinstance(value, BaseModel):
                found |= {f"{section}.{name}.{key}": (getattr(value, key), "") for key in type(value).model_fields}
            else:
                found[f"{section}.{name}"] = (value, describe(type(model), name))
    return found


def read_constant(dotted: str) -> tuple[Any, str]:
    """Value and docstring or comment of a constant of a module, an entry of one, or the default of a model's field."""
    parts = dotted.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            owner: Any = importlib.import_module(".".join(["vgbench_gen", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        try:
            for name in parts[cut:-1]:
                owner = getattr(owner, name)
            if isinstance(owner, dict):
                return owner[parts[-1]], ""
            fields = owner.model_fields if isinstance(owner, type) and issubclass(owner, BaseModel) else {}
            value = fields[parts[-1]].default if parts[-1] in fields else getattr(owner, parts[-1])
        except (AttributeError, KeyError):
            break
        return value, describe(owner, parts[-1]) if inspect.ismodule(owner) or inspect.isclass(owner) else ""
    raise LookupError(f"{dotted}: constants.toml names it, and the code has no such constant")


def describe(owner: Any, name: str) -> str:
    """The docstring, or else the comment, that the code gives a constant of a module or a field of a class."""
    if inspect.isclass(owner):
        if not hasattr(sys.modules[owner.__module__], owner.__name__):
            return ""  # made of a task's `margins`
        owner = next(base for base in owner.__mro__ if name in inspect.get_annotations(base))
    return CITATION.sub("", read_texts(owner).get(name, "")).strip()


@cache
def read_texts(owner: Any) -> dict[str, str]:
    """Name that a module or class assigns -> docstring below it, or comment after or above it; empty without."""
    source = textwrap.dedent(inspect.getsource(owner))
    lines, body = source.splitlines(), ast.parse(source).body
    if inspect.isclass(owner):
        body = body[0].body  # type: ignore[attr-defined]
    found = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = " ".join(str(after.value.value).split())
        elif comment := re.search(r"  # (.+)$", lines[(node.end_lineno or 0) - 1]):
            text = comment[1]
        else:
            above = lines[: node.lineno - 1]
            first = next((i for i in range(len(above), 0, -1) if not above[i - 1].lstrip().startswith("#")), 0)
            text = " ".join(line.lstrip(" #") for line in above[first:])
        if isinstance(node, ast.Assign | ast.AnnAssign):
            found |= {part.id: text for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


def list_bare(names: set[str]) -> list[str]:
    """The numbers of the modules that `names` are of, which have neither a row nor a comment."""
    found = list[str]()
    for module in sorted({name.rpartition(".")[0] for name in names}):
        try:
            owner = importlib.import_module(f"vgbench_gen.{module}")
        except ModuleNotFoundError:
            continue
        found += [
            f"{module}.{name}"
            for name, text in read_texts(owner).items()
            if name.isupper() and not text and f"{module}.{name}" not in names and is_number(getattr(owner, name))
        ]
    return found


def is_number(value: Any) -> bool:
    """Whether a constant is a number or a tuple of numbers."""
    return all(type(part) in (int, float) for part in (value if isinstance(value, tuple) and value else (value,)))


def finish(text: str) -> str:
    """A sentence: with a capital and a full stop."""
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


if __name__ == "__main__":
    table = read_table()
    print(render_markdown(table), end="")
    named = {name for section in table.values() for name in section}
    print("Numbers without a row and without a comment:", *list_bare(named), sep="\n  ", file=sys.stderr)
