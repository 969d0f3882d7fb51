"""Options that several verbs share."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field

from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError, DatasetError

if TYPE_CHECKING:
    from vgbench_gen.executors import Engine

BUILDS = Path("build")
MAX_SEED = (1 << 63) - 1
DEFAULT_MODEL = "deepseek:deepseek-flash"


def find_current_dataset() -> Path:
    """The dataset below `build/` that was built last; its name is printed on standard error.

    A hard set is a choice of another set's questions and is taken only where it is named.

    Raises:
        ConfigError: there is none.
    """
    built = [path for path in BUILDS.glob("*/manifest.json") if any(path.parent.glob("items/*.parquet"))]
    if not built:
        raise ConfigError(
            f"DATASET: none named, and none under {BUILDS}/. Name one, or build one: `make demo`, or `vgbench samples "
            f"--small --out {BUILDS}/demo-scenes`, then `vgbench build vgbench-mini --scenes {BUILDS}/demo-scenes "
            f"--out {BUILDS}/demo`."
        )
    built.sort(key=lambda path: (path.stat().st_mtime_ns, path), reverse=True)
    newest = next((path for path in built if not _is_choice(path)), built[0]).parent
    print(f"dataset: {newest} (built last)", file=sys.stderr)
    return newest


def _is_choice(manifest: Path) -> bool:
    from vgbench_gen.pipeline.subset import is_choice
    from vgbench_gen.store.provenance import read_manifest

    try:
        return is_choice(read_manifest(manifest.parent))
    except DatasetError:
        return False  # the verb that opens it prints what is wrong


def choose_dataset(named: Path | None, benchmark: str = "vgbench") -> Path:
    """The dataset named, or the one built last where the questions are ours.

    Raises:
        ConfigError: none named, and none there.
    """
    if named is None and benchmark != "vgbench":
        raise ConfigError(f"DATASET: none named; expected the folder or file of {benchmark}'s questions.")
    return named or find_current_dataset()


DatasetFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET",
        default_factory=find_current_dataset,
        show_default=False,
        help="Folder of a build, or its parquet files; default: the most recent build.",
    ),
]
ScenesFolders = Annotated[list[Path], Flag("Folder with raw scenes; repeatable.", "FOLDER")]
Workers = Annotated[int, Flag("Number of processes; 0 = all cores.", "N"), Field(ge=0)]
EngineName = Annotated[str, Flag("Where the work runs: local or ray.", "NAME")]
Address = Annotated[str, Flag("Address of a running Ray cluster; auto = the one on this machine.", "ADDRESS")]
Seed = Annotated[int | None, Flag("Overrides the recipe's seed.", "N"), Field(ge=0, le=MAX_SEED)]
DrawSeed = Annotated[int, Flag("Seed of the random draws.", "N"), Field(ge=0, le=MAX_SEED)]
RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="Name of a shipped recipe, or a .toml file.")]
ModelNames = Annotated[list[str] | None, Flag("Spec, name or reply file of a model; repeatable; default: all.", "NAME")]
ModelSpec = Annotated[str, Flag("Model: deepseek:deepseek-flash, openai:gpt-4o, …", "SPEC", names="--model")]
BenchmarkName = Annotated[str, Flag("Benchmark that DATASET belongs to.", "NAME", "Questions")]
ImagesFolder = Annotated[Path | None, Flag("Folder of the images, if DATASET does not contain them.", "FOLDER")]


def count_workers(workers: int) -> int:
    """The number asked for, or the cores this process may use."""
    return workers or len(os.sched_getaffinity(0))


def choose_engine(name: str, workers: int, address: str) -> Engine:
    """The engine asked for; an address without --engine means Ray.

    Raises:
        UnknownNameError: no such engine.
        ConfigError: an address for local processes.
    """
    from vgbench_gen.executors import Engine, engines

    name = name or ("ray" if address else "local")
    engines[name]
    if address and name == "local":
        raise ConfigError(f"--address {address}: found it with --engine local; expected --engine ray.")
    return Engine(name, workers, address)
