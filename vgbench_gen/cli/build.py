"""`vgbench build`, `measure` and `compose`."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._options import OutFolder, RecipeName, ScenesFolders, Seed, Workers, worker_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vgbench_gen.pipeline.build import BuildReport
    from vgbench_gen.pipeline.measure import SceneReport
    from vgbench_gen.pipeline.recipe import Recipe

_SCENES = [Path("raw_scenes")]
_OUT = Path("build/vgbench")
AsJson = Annotated[bool, typer.Option("--json", help="Print the manifest's counts as JSON.")]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("build", epilog="Example: vgbench build --scenes raw_scenes --out build/vgbench --workers 2")(build)
    app.command("measure", epilog="Example: vgbench measure --scenes raw_scenes --out build/vgbench")(measure)
    app.command("compose", epilog="Example: vgbench compose --out build/vgbench --distractor-seed 7")(compose)


def build(
    recipe: RecipeName = "default",
    scenes: ScenesFolders = _SCENES,
    out: OutFolder = _OUT,
    workers: Workers = 0,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Turn raw scenes into a dataset: measure every scene, then compose the questions.

    What was measured before and still holds is reused, so an interrupted build goes on where it stopped. Prints what
    each task got from each source and why cells are empty. Exits 1 if no question came out.
    """
    from vgbench_gen.pipeline import build as pipeline

    resolved = _recipe(recipe, seed)
    with _bars() as (on_scene, on_question):
        report = pipeline.build(resolved, scenes, out, worker_count(workers), on_scene, on_question)
    _tell(report, resolved, out, as_json)
    if not report.composed.total:
        raise typer.Exit(1)


def measure(
    recipe: RecipeName = "default",
    scenes: ScenesFolders = _SCENES,
    out: OutFolder = _OUT,
    workers: Workers = 0,
    seed: Seed = None,
) -> None:
    """Measure facts only; `vgbench compose` makes questions of them without opening a scene again.

    Exits 1 if no fact came out.
    """
    from vgbench_gen.pipeline import build as pipeline
    from vgbench_gen.store.provenance import BuildLock

    with _bars() as (on_scene, _), BuildLock(out):
        reports = pipeline.measure(_recipe(recipe, seed), scenes, out, worker_count(workers), on_scene)
    facts = sum(sum(report.facts.values()) for report in reports)
    print(f"{facts} facts from {len(reports)} scenes in {out}/facts")
    if not facts:
        raise typer.Exit(1)


def compose(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="Instead of the recipe that the folder was built with.")
    ] = "",
    out: OutFolder = _OUT,
    workers: Workers = 0,
    seed: Seed = None,
    distractor_seed: Annotated[
        int | None,
        typer.Option("--distractor-seed", metavar="N", min=0, help="Draw other wrong options; answers stay."),
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="NAME", help="Distractor strategy instead of the recipe's.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Make the questions anew from measured facts: options, words, pictures. Opens no raw scene."""
    from vgbench_gen.pipeline import build as pipeline

    changes: dict[str, Any] = {}
    if distractor_seed is not None:
        changes["distractor_seed"] = distractor_seed
    if strategy:
        changes["strategy"] = strategy
    if seed is not None:
        changes["seed"] = seed
    resolved = (_recipe(recipe, None) if recipe else pipeline.built_recipe(out)).model_copy(update=changes)
    with _bars() as (_, on_question):
        report = pipeline.recompose(resolved, out, worker_count(workers), on_question)
    _tell(report, resolved, out, as_json)
    if not report.composed.total:
        raise typer.Exit(1)


def _recipe(name: str, seed: int | None) -> Recipe:
    from vgbench_gen.pipeline.recipe import load_recipe

    recipe = load_recipe(name)
    return recipe if seed is None else recipe.model_copy(update={"seed": seed})


@contextmanager
def _bars() -> Iterator[tuple[Callable[[SceneReport, int, int], None], Callable[[int, int], None]]]:
    """Progress on standard error: one bar for scenes, one for questions."""
    from tqdm import tqdm

    scenes = tqdm(desc="measuring", unit="scene", disable=None)
    questions = tqdm(desc="writing", unit="question", disable=None)

    def on_scene(report: SceneReport, done: int, total: int) -> None:
        scenes.total = total
        scenes.update(done - scenes.n)
        if report.error:
            tqdm.write(f"dropped {report.dataset} {report.scene_id}: {report.error}", file=sys.stderr)

    def on_question(done: int, total: int) -> None:
        questions.total = total
        questions.update(done - questions.n)

    try:
        yield on_scene, on_question
    finally:
        questions.close()
        scenes.close()


def _tell(report: BuildReport, recipe: Recipe, out: Path, as_json: bool) -> None:
    from vgbench_gen.pipeline.summary import cell_lines, scene_lines

    if as_json:
        counts = {
            "items": report.composed.items,
            "unasked": report.composed.unasked,
            "letters": report.composed.letters,
        }
        print(
            json.dumps({"fingerprint": report.composed.fingerprint, "total": report.composed.total, **counts}, indent=2)
        )
        return
    for line in [*scene_lines(report), *cell_lines(report, recipe.tasks)]:
        print(line)
    print(f"{report.composed.total} questions in {out}/items, fingerprint {report.composed.fingerprint}")
