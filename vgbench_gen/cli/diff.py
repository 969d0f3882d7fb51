"""`vgbench diff`: two datasets row by row."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.cli._screen import find_width, print_json
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.columns import format_columns

if TYPE_CHECKING:
    from vgbench_gen.store.diff import DatasetDifference

_LISTED = 40  # changes printed in full; all of them are counted, and all stand in --json
_COUNTS = ("same", "changed", "only_a", "only_b")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "diff", diff, "Build", "vgbench diff build/before build/after --json")


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="A folder that `vgbench build` made, or its parquet files.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other one.")],
    as_json: bool = False,
) -> None:
    """Compare two datasets row by row: by id, then by fact and question type.

    Says how many rows are the same, changed (reworded, other options, other answer, and which columns differ), and in
    one of the two only. Exits 0 if they are equal and 1 if they differ.
    """
    from vgbench_gen.store.dataset import load
    from vgbench_gen.store.diff import diff as compare

    found = compare(load(a), load(b))
    if as_json:
        told = asdict(found) | {"equal": found.equal, "columns": found.columns}
        print_json(told)
    else:
        for line in _list_differences(found, a, b):
            print(line)
    if not found.equal:
        raise typer.Exit(1)


def _list_differences(found: DatasetDifference, a: Path, b: Path) -> list[str]:
    lines = [f"A {a}: {found.rows[0]} rows", f"B {b}: {found.rows[1]} rows"]
    if found.equal:
        return [*lines, "equal: the same rows in the same order"]
    heads = [name.replace("_", " ") for name in _COUNTS]
    rows = [(task, *(counts[name] for name in _COUNTS)) for task, counts in found.tasks.items()]
    lines += format_columns(rows, heads=("task", *heads), right=heads, text=False, width=find_width())
    listed = [
        f"{c.kind}: {c.task} {c.question_type} {_join_ids(c.id_a, c.id_b)}: {', '.join(c.columns)}"
        for c in found.changed
    ]
    listed += [f"only in A: {name}" for name in found.only_a] + [f"only in B: {name}" for name in found.only_b]
    lines += listed[:_LISTED]
    if len(listed) > _LISTED:
        lines.append(f"… and {len(listed) - _LISTED} more (all of them with --json)")
    if found.columns:
        lines.append("columns that differ: " + ", ".join(f"{name} {n}" for name, n in found.columns.items()))
    if found.moved:
        lines.append("rows that both hold come in another order")
    return lines


def _join_ids(a: str, b: str) -> str:
    return a if a == b else f"{a} -> {b}"
