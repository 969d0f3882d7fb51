"""`vgbench show`: the questions of a dataset as a list, or one of them drawn."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field

from vgbench_gen.cli._options import choose_dataset
from vgbench_gen.cli._screen import print_columns, print_json
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    from vgbench_gen.core.types import Item
    from vgbench_gen.store.dataset import Dataset


@verb("show", "Look", "vgbench show 4f0c2d    (without ID: the list)")
def show(
    item_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a question, or its first characters.")] = "",
    dataset: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATASET", help="Folder of a build, or its parquet files; default: the most recent build."
        ),
    ] = None,
    out: Annotated[Path | None, Flag("PNG file to write; default: DATASET/shown/ID.png.", "FILE")] = None,
    task: Annotated[str, Flag("List only these tasks.", "A,B")] = "",
    question_type: Annotated[str, Flag("List only judgment, multi-choice or open-ended.", "A,B", names="--type")] = "",
    source: Annotated[str, Flag("List only questions from these scan datasets.", "A,B")] = "",
    limit: Annotated[int, Flag("List the first N; 0 = all.", "N"), Field(ge=0)] = 0,
    ids: Annotated[bool, Flag("List only the ids, one per line.")] = False,
    as_json: bool = False,
) -> None:
    """Draw one question with its evidence; without an id, list them all.

    The drawing has the images, points, boxes, reprojections, the numbers of both routes to the answer, and the
    margins. Without --out, it opens in an image viewer if a display is available. The list has id, task, type, source,
    scene and answer. If no question matches, the command lists the available tasks, types and sources and exits 1.
    """
    if dataset is None and item_id and Path(item_id).exists():
        item_id, dataset = "", Path(item_id)
    wanted = {"task": task, "question_type": question_type, "source": source}
    if item_id and (ids or limit or any(wanted.values())):
        raise ConfigError(f"{item_id}: found it with options of the list; expected either an id, or options.")
    if out is not None and not item_id:
        raise ConfigError(f"--out {out}: found no ID; expected the question to draw.")
    dataset = choose_dataset(dataset)
    from vgbench_gen.store.dataset import load

    items = load(dataset)
    if not item_id:
        _list_items(items, wanted, limit, ids, as_json)
        return
    item = items.by_id(item_id)
    path = out or (dataset if dataset.is_dir() else dataset.parent) / "shown" / f"{item.id}.png"
    draw_item(items, item, path)
    if as_json:
        record = {"id": item.id, "task": item.task, "question_type": item.question_type, "answer": item.answer}
        print_json({"path": str(path)} | record)
    else:
        print(f"{path}: {item.task}, {item.question_type}, answer {item.answer}")
    if out is None and sys.stdout.isatty() and (sys.platform == "darwin" or os.environ.get("DISPLAY")):
        typer.launch(str(path))


def draw_item(items: Dataset, item: Item, path: Path) -> None:
    """Draw a question of a dataset into a PNG file."""
    from vgbench_gen.quality.explain import draw_row, encode_png
    from vgbench_gen.store.files import write_bytes

    write_bytes(path, encode_png(draw_row(item, [items.image_bytes(item, k) for k in range(len(item.images))])))


def _list_items(items: Dataset, wanted: dict[str, str], limit: int, ids: bool, as_json: bool) -> None:
    """Print the questions that have the wanted values, empty for any; exit 1 where there is none."""
    known: dict[str, set[str]] = {name: set() for name in wanted}
    rows = list[dict[str, str]]()
    for item in items.without_evidence():
        values = {"task": item.task, "question_type": item.question_type, "source": item.source}
        for name, value in values.items():
            known[name].add(value)
        if any(asked and values[name] not in asked.split(",") for name, asked in wanted.items()):
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
