"""Options that several verbs share."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.core.errors import ConfigError, DatasetError

if TYPE_CHECKING:
    from vgbench_gen.executors import Engine

BUILDS = Path("build")


def find_current_dataset() -> Path:
    """The dataset below `build/` that was built last; which one is said on standard error.

    A hard set is a choice of another set's questions and is named by whoever means it.

    Raises:
        ConfigError: there is none.
    """
    built = [path for path in BUILDS.glob("*/manifest.json") if any(path.parent.glob("items/*.parquet"))]
    if not built:
        raise ConfigError(
            f"DATASET: none named, and none below {BUILDS}/. Name one, or make one: `make demo`, or `vgbench samples "
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
        return False  # whoever opens it says what is wrong


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
        metavar="[DATASET]",
        default_factory=find_current_dataset,
        show_default=False,
        help="A folder that `vgbench build` made, or its parquet files; what was built last where none is named.",
    ),
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
MAX_SEED = (1 << 63) - 1
DEFAULT_MODEL = "deepseek:deepseek-flash"
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", min=0, max=MAX_SEED, help="Instead of the recipe's seed.")
]
RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A shipped recipe's name or a .toml file.")]
ModelNames = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME", help="Spec, model or file of replies; may be repeated; all by default."),
]
ModelSpec = Annotated[
    str,
    typer.Option(
        "--model", metavar="SPEC", help="Who is asked: deepseek:deepseek-flash, openai:gpt-4o, azure:DEPLOYMENT, …"
    ),
]
BenchmarkName = Annotated[str, typer.Option("--benchmark", metavar="NAME", help="What kind of data DATASET is.")]
ImagesFolder = Annotated[
    Path | None, typer.Option("--images", metavar="FOLDER", help="Images, where they lie apart from the questions.")
]


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
