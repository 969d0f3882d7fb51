"""`vgbench build`, `measure` and `compose`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._options import (
    Address,
    EngineName,
    OutFolder,
    RecipeName,
    ScenesFolders,
    Seed,
    Workers,
    choose_engine,
)
from vgbench_gen.cli._screen import find_width, print_json, progress_bars
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.lines import format_command, make_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vgbench_gen.pipeline.build import BuildReport
    from vgbench_gen.pipeline.measure import SceneReport
    from vgbench_gen.pipeline.recipe import Recipe

_SCENES = [Path("raw_scenes")]
_OUT = Path("build/vgbench")
_LOG = "build.log"
_NOTES = 10  # on the screen
_WIDTH = 200  # of the log
ItemsPerTask = Annotated[
    int | None,
    typer.Option("--items", metavar="N", min=1, help="Items per task; in all, where the recipe has [items]."),
]
BankFile = Annotated[
    Path | None,
    typer.Option(
        "--bank", metavar="FILE", help="Wordings of `vgbench paraphrase` to draw from beside the shipped ones."
    ),
]
WordingUse = Annotated[
    str, typer.Option("--wording", metavar="STATUS", help="Of the bank's entries: reviewed, or proposed for all.")
]
AllowShort = Annotated[
    bool, typer.Option("--allow-short", help="Write what there is where the recipe's totals cannot be met.")
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    add_verb(app, "build", build, "Build", "vgbench build --scenes raw_scenes --out build/vgbench --workers 2")
    add_verb(app, "measure", measure, "Build", "vgbench measure --scenes raw_scenes --out build/vgbench")
    add_verb(app, "compose", compose, "Build", "vgbench compose --out build/vgbench --distractor-seed 7")


def build(
    recipe: RecipeName = "default",
    scenes: ScenesFolders = _SCENES,
    out: OutFolder = _OUT,
    workers: Workers = 0,
    engine: EngineName = "",
    address: Address = "",
    seed: Seed = None,
    items: ItemsPerTask = None,
    bank: BankFile = None,
    wording: WordingUse = "",
    allow_short: AllowShort = False,
    check: Annotated[
        bool, typer.Option("--check", help="Then verify every answer, audit, and say what was found and where to look.")
    ] = False,
    as_json: bool = False,
) -> None:
    """Turn raw scenes into a dataset: measure every scene, then compose the questions.

    What was measured before and still holds is reused, so an interrupted build goes on where it stopped. Prints totals
    per task; what each gave from each source, and why cells are empty, stands in build.log. Where the facts cannot fill
    the recipe's totals, says which, by how many and what would help, writes no question and exits 1; also if no
    question came out, a scene could not be read, a task failed at one, its workers died twice, or --check finds an
    answer that does not agree or a bar of the audit that fell.
    """
    from vgbench_gen.core.errors import ConfigError
    from vgbench_gen.pipeline import build as pipeline

    if check and as_json:
        raise ConfigError("--json with --check: found both; expected one. `vgbench verify` and `audit` have their own.")

    resolved = _set_bank(_load_recipe(recipe, seed, items), bank, wording)
    where = choose_engine(engine, workers, address)
    with _exit_where_short(), _open_bars(listed_later=not as_json) as (on_scene, on_question):
        report = pipeline.build_dataset(resolved, scenes, out, where, on_scene, on_question, allow_short)
    _print_report(report, resolved, out, as_json)
    holds = _check(report, out, scenes, workers, check, as_json)
    if not holds:
        raise typer.Exit(1)


def measure(
    recipe: RecipeName = "default",
    scenes: ScenesFolders = _SCENES,
    out: OutFolder = _OUT,
    workers: Workers = 0,
    engine: EngineName = "",
    address: Address = "",
    seed: Seed = None,
    as_json: bool = False,
) -> None:
    """Measure facts only; `vgbench compose` makes questions of them without opening a scene again.

    Exits 1 if no fact came out, a scene could not be read, or its workers died twice.
    """
    from vgbench_gen.pipeline import build as pipeline
    from vgbench_gen.store.provenance import BuildLock

    where = choose_engine(engine, workers, address)
    with _open_bars() as (on_scene, _), BuildLock(out):
        reports = pipeline.measure(_load_recipe(recipe, seed), scenes, out, where, on_scene)
    facts = sum(sum(report.facts.values()) for report in reports)
    if as_json:
        told = ("dataset", "scene_id", "facts", "rejects", "issues", "error")
        print_json([{name: getattr(report, name) for name in told} for report in reports])
    else:
        print(f"{facts} facts from {len(reports)} scenes in {out}/facts")
    if not facts or any(report.lost or report.raised for report in reports):
        raise typer.Exit(1)


def compose(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="Instead of the recipe that the folder was built with.")
    ] = "",
    out: OutFolder = _OUT,
    workers: Workers = 0,
    engine: EngineName = "",
    address: Address = "",
    seed: Seed = None,
    distractor_seed: Annotated[
        int | None,
        typer.Option("--distractor-seed", metavar="N", min=0, help="Draw other wrong options; answers stay."),
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="NAME", help="Distractor strategy instead of the recipe's.")
    ] = "",
    items: ItemsPerTask = None,
    bank: BankFile = None,
    wording: WordingUse = "",
    allow_short: AllowShort = False,
    as_json: bool = False,
) -> None:
    """Make the questions anew from measured facts: options, words, pictures. Opens no raw scene."""
    from vgbench_gen.pipeline import build as pipeline
    from vgbench_gen.pipeline.recipe import change_recipe, load_recipe

    changes: dict[str, Any] = {}
    if distractor_seed is not None:
        changes["distractor_seed"] = distractor_seed
    if strategy:
        changes["strategy"] = strategy
    base = change_recipe(load_recipe(recipe) if recipe else pipeline.read_built_recipe(out), seed, items)
    resolved = _set_bank(base.model_copy(update=changes), bank, wording)
    where = choose_engine(engine, workers, address)
    with _exit_where_short(), _open_bars(measures=False) as (_, on_question):
        report = pipeline.recompose(resolved, out, where, on_question, allow_short)
    _print_report(report, resolved, out, as_json)
    if not report.composed.total:
        raise typer.Exit(1)


def _check(report: BuildReport, out: Path, scenes: list[Path], workers: int, thoroughly: bool, as_json: bool) -> bool:
    """Whether questions came out and no scene was lost; and, where that is wanted, whether all of them hold."""
    lost = [f"{scene.dataset} {scene.scene_id}" for scene in report.scenes if scene.lost or scene.raised]
    holds = bool(report.composed.total) and not lost
    if thoroughly and report.composed.total:
        from vgbench_gen.cli._check import check_dataset, draw_example, list_places

        print(draw_example(out), flush=True)
        holds &= check_dataset(out, scenes, workers)
        if lost:
            some = f"{len(lost)} of {len(report.scenes)} scenes, wholly or one task of them"
            print(f"lost {some} ({', '.join(lost)}): run again to try them again.")
        print("\n".join(["", *list_places(out)]))
    elif report.composed.total and not as_json:
        print(f"next: {format_command('vgbench', 'browse', out)}")
    return holds


def _load_recipe(name: str, seed: int | None, items: int | None = None) -> Recipe:
    from vgbench_gen.pipeline.recipe import change_recipe, load_recipe

    return change_recipe(load_recipe(name), seed, items)


def _set_bank(recipe: Recipe, bank: Path | None, use: str) -> Recipe:
    from vgbench_gen.core.config import parse_config
    from vgbench_gen.core.errors import ConfigError
    from vgbench_gen.pipeline.recipe import WordSettings

    changes = ({"bank": str(bank)} if bank is not None else {}) | ({"use": use} if use else {})
    if not changes:
        return recipe
    words = parse_config(recipe.wording.model_dump() | changes, WordSettings, "--wording" if use else "--bank")
    if not words.bank:
        raise ConfigError(f"--wording {use}: found no bank in the recipe; expected --bank FILE.")
    return recipe.model_copy(update={"wording": words})


@contextmanager
def _exit_where_short() -> Iterator[None]:
    """Exit 1 with a line per total that the facts cannot fill."""
    from vgbench_gen.pipeline.shortfall import QuotasNotMet

    try:
        yield
    except QuotasNotMet as error:
        print("\n".join(f"vgbench: {line}" if line[0] != " " else line for line in error.lines), file=sys.stderr)
        raise typer.Exit(1) from None


@contextmanager
def _open_bars(
    listed_later: bool = False, measures: bool = True
) -> Iterator[tuple[Callable[[SceneReport, int, int], None], Callable[[int, int], None]]]:
    """Progress on standard error: one bar for scenes, one for questions.

    listed_later: whether standard output will list dropped scenes; in a terminal they are then not said here as well.
    measures: whether scenes are measured first.
    """
    with progress_bars() as progress:
        progress("measuring scenes" if measures else "choosing facts", 0, None)

        def on_scene(report: SceneReport, done: int, total: int) -> None:
            progress("measuring scenes", done, total)
            if report.error and not (listed_later and sys.stdout.isatty()):
                print(make_one_line(f"dropped {report.dataset} {report.scene_id}: {report.error}"), file=sys.stderr)
            if done == total:
                progress("choosing facts", 0, None)

        def on_question(done: int, total: int) -> None:
            progress("choosing facts", 1, 1)
            progress("writing questions", done, total)

        yield on_scene, on_question


def _print_report(report: BuildReport, recipe: Recipe, out: Path, as_json: bool) -> None:
    """Print totals and at most `_NOTES` notes; what each source gave and all notes go to `build.log`."""
    from vgbench_gen.pipeline.build import COUNTS
    from vgbench_gen.pipeline.summary import cell_lines, note_lines, total_lines
    from vgbench_gen.store.files import write_bytes

    notes = note_lines(report, recipe)
    log = [*cell_lines(report, recipe.task_names, _WIDTH), "", *notes]
    write_bytes(out / _LOG, "".join(f"{line}\n" for line in log).encode("utf-8", "backslashreplace"))
    if as_json:
        told = {name: getattr(report.composed, name) for name in ("fingerprint", "total", *COUNTS)}
        short = {short.what: {"wanted": short.wanted, "got": short.got} for short in report.composed.short}
        print_json({**told, "short": short})
        return
    print("\n".join([*total_lines(report, recipe.task_names, find_width()), *notes[:_NOTES]]))
    more = f"{len(notes) - _NOTES} more notes and " if len(notes) > _NOTES else ""
    print(f"{more}what each source gave: {out / _LOG}")
    print(f"{report.composed.total} questions in {out}/items, fingerprint {report.composed.fingerprint}")
