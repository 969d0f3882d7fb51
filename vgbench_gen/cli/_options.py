"""Options that several verbs share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

DatasetFolder = Annotated[
    Path, typer.Argument(metavar="DATASET", help="A folder that `vgbench build` made, or its parquet files.")
]
ScenesFolders = Annotated[
    list[Path], typer.Option("--scenes", metavar="FOLDER", help="Folder with raw scenes; may be repeated.")
]
OutFolder = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Build folder; rerunning resumes.")]
Workers = Annotated[int, typer.Option("--workers", metavar="N", min=0, help="Processes; 0 for all cores.")]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="Instead of the recipe's seed.")]
RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A shipped recipe's name or a .toml file.")]


def worker_count(workers: int) -> int:
    """The number asked for, or the cores this process may use."""
    return workers or len(os.sched_getaffinity(0))
