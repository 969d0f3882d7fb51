"""`vgbench show`: one row, drawn. `vgbench list` tells the ids."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli._options import DatasetFolder
from vgbench_gen.cli._screen import print_json
from vgbench_gen.cli._verbs import add_verb

_ID = typer.Argument(metavar="ID", help="The row's id, or a beginning of it that fits one row.")
_OUT = typer.Option("--out", metavar="FILE", help="PNG file to write.")


def register(app: typer.Typer) -> None:
    """Add the verb, and `explain`, its older name with the arguments the other way round."""
    add_verb(app, "show", show, "Look", "vgbench show 4f0c2d")
    add_verb(app, "explain", explain, "Look", "vgbench explain build/vgbench 4f0c2d --out why.png", hidden=True)


def show(
    item_id: Annotated[str, _ID],
    dataset: DatasetFolder,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="PNG file to write; DATASET/shown/ID.png by default.")
    ] = None,
    as_json: bool = False,
) -> None:
    """Draw one row: its images, points, boxes and reprojections, the numbers of both routes, the margins.

    Opens the picture where there is a screen and no --out.
    """
    path = draw_item(dataset, item_id, out, as_json)
    if out is None and sys.stdout.isatty() and (sys.platform == "darwin" or os.environ.get("DISPLAY")):
        typer.launch(str(path))


def explain(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="A folder that `vgbench build` made.")],
    item_id: Annotated[str, _ID],
    out: Annotated[Path, _OUT] = Path("explain.png"),
    as_json: bool = False,
) -> None:
    """Draw one row, as `vgbench show` does."""
    draw_item(dataset, item_id, out, as_json)


def draw_item(dataset: Path, item_id: str, out: Path | None, as_json: bool = False) -> Path:
    """Draw a row into a file, say which one it is, and return the path of the file.

    Raises:
        DatasetError: no such row, or a beginning that fits several.
    """
    from vgbench_gen.quality.explain import draw_row, encode_png
    from vgbench_gen.store.dataset import load
    from vgbench_gen.store.files import write_bytes

    items = load(dataset)
    item = items.by_id(item_id)
    path = out or (dataset if dataset.is_dir() else dataset.parent) / "shown" / f"{item.id}.png"
    write_bytes(path, encode_png(draw_row(item, [items.image_bytes(item, k) for k in range(len(item.images))])))
    if as_json:
        told = {"id": item.id, "task": item.task, "question_type": item.question_type, "answer": item.answer}
        print_json({"path": str(path)} | told)
    else:
        print(f"{path}: {item.task}, {item.question_type}, answer {item.answer}")
    return path
