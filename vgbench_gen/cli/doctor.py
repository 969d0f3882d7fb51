"""`vgbench doctor`: what could stop a long build, before it begins."""

from __future__ import annotations

from pathlib import Path

import typer

from vgbench_gen.cli._options import (
    Address,
    EngineName,
    OutFolder,
    RecipeName,
    ScenesFolders,
    Workers,
    choose_engine,
)
from vgbench_gen.cli._screen import print_columns, print_json
from vgbench_gen.cli._verbs import add_verb

_SCENES = [Path("raw_scenes")]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "doctor", doctor, "Build", "vgbench doctor --scenes raw_scenes --out build/vgbench --workers 8")


def doctor(
    recipe: RecipeName = "default",
    scenes: ScenesFolders = _SCENES,
    out: OutFolder = Path("build/vgbench"),
    workers: Workers = 0,
    engine: EngineName = "",
    address: Address = "",
    as_json: bool = False,
) -> None:
    """Check packages, storage, scenes, disk, memory and the cluster against an estimate of the build.

    One line each, with what to do where something is missing. Exits 1 if something would stop the build.
    """
    from vgbench_gen.pipeline.doctor import Check, examine

    checks: list[Check] = []
    for check in examine(recipe, scenes, out, choose_engine(engine, workers, address)):
        checks.append(check)
        if not as_json:
            told = (check.verdict, check.name, " ".join(f"{check.found}  {check.remedy}".rstrip().split("\n")))
            print_columns([told], heads=("verdict", "what", "found"), show_heads=False, least=(4, 15))
    if as_json:
        print_json([check._asdict() for check in checks])
    if any(check.verdict == "FAIL" for check in checks):
        raise typer.Exit(1)
