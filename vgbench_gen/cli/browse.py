"""`vgbench browse`: the dataset as a website."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from vgbench_gen.cli._options import DatasetFolder
from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag


@verb("browse", "Look", "vgbench browse build/vgbench && xdg-open build/vgbench/gallery/index.html")
def browse(
    dataset: DatasetFolder,
    out: Annotated[Path | None, Flag("Folder to write to; default: DATASET/gallery.", "FOLDER")] = None,
    standalone: Annotated[bool, Flag("Copy all images into the site, so that it can be moved (0.2 MB each).")] = False,
    max_items: Annotated[int, Flag("Maximum number of questions, evenly spread; 0 = all.", "N"), Field(ge=0)] = 0,
    scenes: Annotated[
        list[Path] | None, Flag("Raw scans for points in 3D views; also read: DATASET-scenes, if it exists.", "FOLDER")
    ] = None,
    as_json: bool = False,
) -> None:
    """Write a static website of all questions, scenes and plots.

    It opens from disk and from any web server, and loads nothing from other machines. Pages and data take about 10 kB
    per question. Images are shown from DATASET/media; if they are only inside the parquet files, each is copied to
    gallery/images (about 0.2 MB). A second run rewrites only pages whose content changed.
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
        print("It shows images of DATASET/media: keep the two together, or use --standalone.")
