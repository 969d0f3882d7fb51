"""`vgbench mix`: training parts from several datasets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from vgbench_gen.cli._options import Workers, count_workers
from vgbench_gen.cli._screen import print_columns, print_json, progress_bars
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag


@verb("mix", "Vary", "vgbench mix mix.toml --out build/mix")
def mix(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Sources, shares, parts, limits and guards (.toml).")],
    out: Annotated[Path, Flag("Folder for the parts; an older mixture in it is replaced.", "FOLDER")],
    allow_short: Annotated[bool, Flag("Write the parts even if a share cannot be filled.")] = False,
    workers: Workers = 0,
    as_json: bool = False,
) -> None:
    """Draw training parts from datasets, by shares.

    Each part is a dataset in FOLDER. No two parts show one physical room: ids tell which scenes are one room, and so do
    copies of a picture. Rows of guarded rooms and, by default, of the official splits val and test are left out. What
    went where, and what was left out and why, is printed and written to FOLDER/mix.json. If a share cannot be filled,
    prints by how much and what would help, writes nothing and exits 1.
    """
    from vgbench_gen.training.mix import write_mix

    with progress_bars("row") as progress:
        record = write_mix(file, out, count_workers(workers), allow_short, progress)
    if as_json:
        print_json(record)
    else:
        shares = [
            (part, label, share["rows"], share["wanted"])
            for part, counts in record["parts"].items()
            for label, share in counts["sources"].items()
        ]
        print_columns(shares, heads=("part", "source", "rows", "wanted"), right=("rows", "wanted"), text=False)
        print("\n".join(_list_notes(record)))
    for line in record["short"]:
        print(f"vgbench: {line}", file=sys.stderr)
    if record["short"] and not allow_short:
        print("vgbench: nothing is written; --allow-short writes what there is", file=sys.stderr)
        raise typer.Exit(1)


def _list_notes(record: dict[str, Any]) -> Iterator[str]:
    for part, counts in record["parts"].items():
        yield f"{part}: {counts['rows']} rows; rooms: {counts['rooms']}"
    for label, source in record["sources"].items():
        left = ", ".join(f"{count} {reason}" for reason, count in source["left_out"].items())
        yield f"{label}: {source['taken']} of {source['rows']} rows taken; left out: {left or 'none'}"
    splits, rooms = ", ".join(record["guard"]["splits"]), len(record["guard"]["rooms"])
    yield f"official splits taken: {splits} (guard.allow_splits); {rooms} rooms guarded"
    for names in record["joined_rooms"]:
        yield f"one room by its pictures: {' = '.join(names)}"
