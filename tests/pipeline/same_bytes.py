"""A small build of all tasks, and what of a build must be the same bytes however it came about."""

from __future__ import annotations

from pathlib import Path

from tests.lenient import without_lines
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.executors import Engine
from vgbench_gen.pipeline.build import BuildReport, build
from vgbench_gen.pipeline.recipe import Limits, Recipe, load_recipe

ALL_FORMS = Limits(forms_per_fact=3)


def small_recipe(**changes: object) -> Recipe:
    recipe = load_recipe("default")
    few = {"facts_per_scene": 2, "facts_of": dict.fromkeys([*recipe.facts_of, "camera_parameters"], 4)}
    shared = {"seed": 5, "pairs": 0.5, "gates": without_lines(recipe.gates), "limits": ALL_FORMS, **few}
    return recipe.model_copy(update=shared | changes)


def small_build(raw: Path | list[Path], out: Path, workers: int | Engine = 1) -> BuildReport:
    return build(small_recipe(), raw, out, workers)


def quick_build(raw: Path, out: Path) -> BuildReport:
    """Of few tasks: for what has to be done many times and does not depend on them."""
    tasks = ("relative_depth", "metric_depth", "object_distance")
    return build(small_recipe(tasks=tasks), raw, out)


def content(out: Path) -> dict[str, str]:
    """Digest by name of every file that is data. The picture cache is only a memory."""
    names = ("facts", "rejects", "items", "media")
    files = [path for name in names for path in sorted((out / name).rglob("*")) if path.is_file()]
    return {str(path.relative_to(out)): digest_bytes(path.read_bytes()) for path in files}


def leftovers(out: Path) -> list[Path]:
    """Temporary names and locks, which a finished build leaves none of."""
    return [path for path in out.rglob(".*") if path.name != ".gitignore"]
