"""`docs/constants.md`, generated: `python docs/_ext/constants.py > docs/constants.md`.

Names and sections are those of `constants.toml`, values those of the code. Names with commas share a row. The unit is
the end of the name, or stands before a bar in `constants.toml`; the reason is that of `constants.toml`, or else the
code's docstring or comment.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

HEAD = """# Gates and constants: values and reasons

Generated from the code and `docs/_ext/constants.toml`; do not edit by hand.
[Validity](validity.md) explains the checks.

`pair.overlap_min` is a gate: a recipe sets it as `overlap_min` in the table `[gates.pair]`. The
[reference](api/gates.md) says what each gate limits. `tasks.base.TRUE_CLAIM_MAX` is a constant of the package. Numbers
without a unit are shares, ratios or IoU. Values without a measurement or source are judgments that real data should
confirm.
"""
UNITS = {
    "px_at_640": "px at 640", "px": "px", "deg": "degrees", "m": "m", "d": "% of diagonal", "decimals": "digits",
    "billions": "billions", "bits": "bits", "per_m": "/m",
}  # fmt: skip
"""Last words of a name (without `min` and `max`) -> unit; "at 640" means at an image width of 640."""
CITATION = re.compile(r"(^| )\(?`?docs/[\w-]+\.md#[\w-]+`?\)?[:;]?")
NOISE = "noise.{}.{}"


def read_table() -> dict[str, dict[str, str]]:
    """Section of the page -> name -> unit and reason, of `constants.toml`."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def render_markdown(stated: dict[str, dict[str, str]]) -> str:
    """The page.

    Raises:
        LookupError: `stated` names what the code lacks, lacks a gate, or has no reason for a row; the message names it.
    """
    gates, parts = read_gates(), [HEAD]
    errors = {name: gates.pop(name)[0] for name in [*gates] if name.startswith("noise.") and name.count(".") == 2}
    names = set[str]()
    for title, table in stated.items():
        if title == "Noise of the sources":
            parts += [f"## {title}\n", table["about"] + "\n", render_noise(errors)]
            continue
        rows = ["| name | value | reason |", "|---|---|---|"]
        for key, entry in table.items():
            row = key.split(", ")
            found = [gates.get(name) or read_constant(name) for name in row]
            unit, _, reason = entry.rpartition("|")
            reason = reason.strip() or found[0][1].rpartition(";")[2].strip()
            if not reason or names.intersection(row):
                raise LookupError(f"{key}: needs one row with a reason, in constants.toml or at the value")
            names.update(row)
            units = [unit.strip() or find_unit(name) for name in row]
            values = [f"{value:g}" if isinstance(value, float) else str(value) for value, _ in found]
            if len(set(units)) > 1:
                values, units = [" ".join(pair).rstrip() for pair in zip(values, units, strict=True)], [""]
            printed = ", ".join(values[:1] if len(set(values)) == 1 else values)
            quoted = ", ".join(f"`{name}`" for name in row)
            rows.append(f"| {quoted} | {f'{printed} {units[0]}'.rstrip()} | {finish(reason)} |")
        parts += [f"## {title}\n", "\n".join(rows) + "\n"]
    if missing := sorted(set(gates) - names):
        raise LookupError(f"constants.toml has no row for the gates {missing}")
    return "\n".join(parts)


def render_noise(errors: dict[str, float]) -> str:
    """The errors of the sources, a source per line. errors: name of the gate -> standard deviation."""
    sources, kinds = (list(dict.fromkeys(name.split(".")[k] for name in errors)) for k in (1, 2))
    rows = ["| gate `noise` | " + " | ".join(f"`{kind}`" for kind in kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    for source in sources:
        values = (errors[NOISE.format(source, kind)] for kind in kinds)
        rows.append(f"| `{source}` | " + " | ".join(f"{value:g}" for value in values) + " |")
    return "\n".join(rows) + "\n"


def find_unit(name: str) -> str:
    """The unit in which the name of a quantity ends; "" without one."""
    words = name.rpartition(".")[2].lower()
    while words.endswith(("_min", "_max")):
        words = words[:-4]
    ends = [end for end in UNITS if words == end or words.endswith(f"_{end}")]
    return UNITS[max(ends, key=len)] if ends else ""


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
        if not hasattr(importlib.import_module(owner.__module__), owner.__name__):
            return ""  # made from the `margins` of a kind, of which constants.toml says all
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


def finish(text: str) -> str:
    """A sentence of a cell: with a capital, without a full stop, bars escaped."""
    return (text[0].upper() + text[1:].rstrip(".")).replace("|", "\\|")


if __name__ == "__main__":
    print(render_markdown(read_table()), end="")
