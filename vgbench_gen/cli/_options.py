"""Options that several verbs share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    from vgbench_gen.pipeline.executors import Engine

DatasetFolder = Annotated[
    Path, typer.Argument(metavar="DATASET", help="A folder that `vgbench build` made, or its parquet files.")
]
ScenesFolders = Annotated[
    list[Path], typer.Option("--scenes", metavar="FOLDER", help="Folder with raw scenes; may be repeated.")
]
OutFolder = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Build folder; rerunning resumes.")]
Workers = Annotated[int, typer.Option("--workers", metavar="N", min=0, help="Processes; 0 for all cores.")]
EngineName = Annotated[str, typer.Option("--engine", metavar="NAME", help="Where work runs: local or ray.")]
Address = Annotated[
    str,
    typer.Option("--address", metavar="ADDRESS", help="Of a running Ray cluster; auto finds the one of this machine."),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="Instead of the recipe's seed.")]
RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A shipped recipe's name or a .toml file.")]


def worker_count(workers: int) -> int:
    """The number asked for, or the cores this process may use."""
    return workers or len(os.sched_getaffinity(0))


def chosen_engine(name: str, workers: int, address: str) -> Engine:
    """The engine asked for; an address without --engine means Ray.

    Raises:
        UnknownNameError: no such engine.
        ConfigError: an address for local processes.
    """
    from vgbench_gen.pipeline.executors import Engine, engines

    name = name or ("ray" if address else "local")
    engines[name]
    if address and name == "local":
        raise ConfigError(f"--address {address}: found it with --engine local; expected --engine ray.")
    return Engine(name, workers, address)
