"""`vgbench browse`: the dataset as a site to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli._options import DatasetFolder
from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import add_verb


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "browse", browse, "Look", "vgbench browse build/vgbench && xdg-open build/vgbench/gallery/index.html")


def browse(
    dataset: DatasetFolder,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Where to write; DATASET/gallery by default.")
    ] = None,
    standalone: Annotated[
        bool,
        typer.Option(
            "--standalone",
            help="Put all images into the gallery, so that it can be moved: about 0.2 MB an image, as hard links "
            "where the disk allows.",
        ),
    ] = False,
    max_items: Annotated[
        int, typer.Option("--max-items", metavar="N", min=0, help="At most N items, spread evenly; 0 for all.")
    ] = 0,
    scenes: Annotated[
        list[Path] | None,
        typer.Option(
            "--scenes",
            metavar="FOLDER",
            help="Raw scans, from which views in space get points; DATASET-scenes as well, where it is there.",
        ),
    ] = None,
    as_json: bool = False,
) -> None:
    """Write a static site with every item, its images, answer and overlay; scenes; plots.

    It opens from disk and from any web server and asks no other machine for anything. Pages and data take about 10 kB
    an item. Images are shown from DATASET/media where they are there; a dataset that has them only inside its parquet
    files gets a copy of each under gallery/images (about 0.2 MB an image). Rerunning changes only what changed.
    """
    from vgbench_gen.report.gallery import make_gallery
    from vgbench_gen.report.header import find_home

    beside = find_home(dataset).resolve()
    beside = beside.with_name(f"{beside.name}-scenes")
    roots = [*(scenes or ()), *([beside] if beside.is_dir() else ())]
    with progress_bar("gallery", "item") as progress:
        made = make_gallery(dataset, out, standalone=standalone, max_items=max_items, scenes=roots, progress=progress)
    if as_json:
        print_json(made.to_json())
        return
    print(f"{made.items} items, {made.scenes} scenes: {made.written} files written, {made.kept} unchanged,")
    print(f"{made.bytes / 1e6:.1f} MB of pages and data, {made.image_bytes / 1e6:.1f} MB of images of its own")
    if made.images_missing:
        print(f"{made.images_missing} images are neither under media/ nor in the parquet files: shown as missing")
    print(f"Open {made.index} in a browser.")
    if made.images_referenced:
        print("It shows images of DATASET/media: keep the two together, or make it with --standalone.")
