"""`vgbench list`: which questions a dataset holds."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vgbench_gen.cli._options import DatasetFolder
from vgbench_gen.cli._screen import print_columns, print_json
from vgbench_gen.cli._verbs import add_verb


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "list", list_items, "Look", "vgbench list --task relative_pose --type multi-choice --limit 10")


def list_items(
    dataset: DatasetFolder,
    task: Annotated[str, typer.Option("--task", metavar="NAME", help="Of this task alone.")] = "",
    question_type: Annotated[
        str, typer.Option("--type", metavar="NAME", help="judgment, multi-choice or open-ended alone.")
    ] = "",
    source: Annotated[str, typer.Option("--source", metavar="NAME", help="From scans of this dataset alone.")] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="The first N; 0 for all.")] = 0,
    ids: Annotated[bool, typer.Option("--ids", help="Ids alone, one a line, for other programs.")] = False,
    as_json: bool = False,
) -> None:
    """List the questions of a dataset: id, task, type, source, scene, answer.

    Exits 1 where none fits, and says which tasks, types and sources there are.
    """
    from vgbench_gen.store.dataset import load

    wanted = {"task": task, "question_type": question_type, "source": source}
    known: dict[str, set[str]] = {name: set() for name in wanted}
    rows = list[dict[str, str]]()
    for item in load(dataset).without_evidence():
        values = {"task": item.task, "question_type": item.question_type, "source": item.source}
        for name, value in values.items():
            known[name].add(value)
        if any(asked not in ("", values[name]) for name, asked in wanted.items()):
            continue
        if limit and len(rows) == limit:
            break
        rows.append({"id": item.id, **values, "scene": item.scene_id, "answer": item.answer})
    if as_json:
        print_json(rows)
    elif ids:
        print(*(row["id"] for row in rows), sep="\n", end="\n" if rows else "")
    elif rows:
        heads = ("id", "task", "type", "source", "scene", "answer")
        print_columns([tuple(row.values()) for row in rows], heads=heads, drop=("source", "scene"))
    if not rows:
        names = {"task": "Tasks", "question_type": "Types", "source": "Sources"}
        there = (f"{names[name]} in this dataset: {', '.join(sorted(values))}." for name, values in known.items())
        print(" ".join(["No question matches.", *there]), file=sys.stderr if as_json else sys.stdout)
        raise typer.Exit(1)
