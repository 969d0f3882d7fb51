"""`vgbench explain`: one row, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli._options import DatasetFolder
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.errors import DatasetError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "explain", explain, "Look", "vgbench explain build/vgbench 4f0c2d --out why.png")


def explain(
    dataset: DatasetFolder,
    item_id: Annotated[str, typer.Argument(metavar="ID", help="The row's id, or a beginning of it that fits one row.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="PNG file to write.")] = Path("explain.png"),
) -> None:
    """Draw one row: its images, points, boxes and reprojections, the numbers of both routes, the margins."""
    from vgbench_gen.quality.explain import draw_row, encode_png
    from vgbench_gen.store.dataset import load
    from vgbench_gen.store.files import write_bytes

    items = load(dataset)
    fitting = [known for known in items.ids() if known.startswith(item_id)]
    if len(fitting) > 1 and item_id not in fitting:
        raise DatasetError(f"{dataset}: {len(fitting)} ids begin with {item_id!r}; expected one. Give more characters.")
    item = items.by_id(fitting[0] if len(fitting) == 1 else item_id)
    write_bytes(out, encode_png(draw_row(item, [items.image_bytes(item, k) for k in range(len(item.images))])))
    print(f"{out}: {item.task}, {item.question_type}, answer {item.answer}")
