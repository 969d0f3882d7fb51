"""`vgbench build`: facts from scenes, questions from facts, and a check of everything."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import Field

from vgbench_gen.cli._options import Address, EngineName, RecipeName, ScenesFolders, Seed, Workers, choose_engine
from vgbench_gen.cli._screen import find_width, print_columns, print_json, progress_bars
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.lines import format_command, make_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vgbench_gen.executors import Engine
    from vgbench_gen.pipeline.build import BuildReport
    from vgbench_gen.pipeline.measure import SceneReport
    from vgbench_gen.pipeline.recipe import Recipe

_SCENES = [Path("raw_scenes")]
_OUT = Path("build/vgbench")
_LOG = "build.log"
_NOTES = 10  # on the screen
_WIDTH = 200  # of the log
_EXAMPLE = "example.png"


@verb("build", "Build", "vgbench build --scenes raw_scenes --out build/vgbench --workers 2")
def build(
    recipe: RecipeName = "",
    scenes: ScenesFolders = _SCENES,
    out: Annotated[Path | None, Flag("Build folder; default: build/vgbench. A second run resumes.", "FOLDER")] = None,
    workers: Workers = 0,
    engine: EngineName = "",
    address: Address = "",
    seed: Seed = None,
    items: Annotated[int | None, Flag("Questions per task; in total with [items].", "N"), Field(ge=1)] = None,
    strategy: Annotated[str, Flag("Strategy for wrong options; overrides the recipe's.", "NAME")] = "",
    distractor_seed: Annotated[int | None, Flag("Seed for wrong options; answers are kept.", "N"), Field(ge=0)] = None,
    bank: Annotated[Path | None, Flag("Also draw wordings from this file (`vgbench paraphrase`).", "FILE")] = None,
    wording: Annotated[str, Flag("Wordings of the bank: reviewed (default), or proposed (both).", "STATUS")] = "",
    allow_short: Annotated[bool, Flag("Write the dataset even if the recipe's totals cannot be met.")] = False,
    facts: Annotated[
        Path | None, Flag("Replace the questions of this build folder, from its facts; needs no scenes.", "FOLDER")
    ] = None,
    stop_after: Annotated[Literal["", "facts"], Flag("Stop after this step: facts (no questions then).", "STEP")] = "",
    dry_run: Annotated[bool, Flag("Only check packages, disk, memory, scenes, cluster; estimate the cost.")] = False,
    check: Annotated[bool, Flag("After the build, verify every answer and audit the dataset.")] = False,
    as_json: bool = False,
) -> None:
    """Build a dataset of questions from raw scenes.

    Measures every scene, then composes the questions. Measurements that are still valid are reused, so an interrupted
    build resumes where it stopped. The recipe is `default`; with --facts, the one that the folder was built with.

    Prints totals per task; build.log has the yield of each source and the reasons for empty cells. If the facts cannot
    fill the recipe's totals, prints which totals are not met and what would help, writes no questions and exits 1. Also
    exits 1 if there are no questions, a scene could not be read, a task failed on a scene, a worker died twice, --check
    finds a wrong answer or a failed audit statistic, or --dry-run finds a problem that would stop the build.
    """
    _refuse(("--check", check), ("--json", as_json))
    _refuse(("--stop-after", stop_after), ("--facts", facts), ("--check", check))
    _refuse(("--dry-run", dry_run), ("--facts", facts), ("--check", check), ("--stop-after", stop_after))
    _refuse(("--facts", facts), ("--out", out))
    where = choose_engine(engine, workers, address)

    def resolve() -> Recipe:
        base = _load_recipe(recipe, facts, seed, items)
        changes = {} if distractor_seed is None else {"distractor_seed": distractor_seed}
        return _set_bank(base.model_copy(update=changes | ({"strategy": strategy} if strategy else {})), bank, wording)

    folder = facts or out or _OUT
    if dry_run:
        _print_checks(resolve, scenes, folder, where, as_json)
        return
    resolved = resolve()
    if stop_after:
        _measure(resolved, scenes, folder, where, as_json)
        return
    from vgbench_gen.pipeline import build as pipeline

    with _exit_where_short(), _open_bars(not as_json, measures=facts is None) as (on_scene, on_question):
        if facts is not None:
            report = pipeline.recompose(resolved, folder, where, on_question, allow_short)
        else:
            report = pipeline.build_dataset(resolved, scenes, folder, where, on_scene, on_question, allow_short)
    _print_report(report, resolved, folder, as_json)
    lost = [] if facts else [f"{one.dataset} {one.scene_id}" for one in report.scenes if one.lost or one.raised]
    holds = bool(report.composed.total) and not lost
    if check and report.composed.total:
        holds &= _check_dataset(folder, [] if facts else scenes, workers)
        if lost:
            some = f"{len(lost)} of {len(report.scenes)} scenes"
            print(f"{some} failed, in whole or for one task ({', '.join(lost)}): run again to retry them.")
        print("\n".join(["", *_list_places(folder)]))
    elif report.composed.total and not as_json:
        print(f"next: {format_command('vgbench', 'browse', folder)}")
    if not holds:
        raise typer.Exit(1)


def _refuse(first: tuple[str, object], *others: tuple[str, object]) -> None:
    """Refuse an option together with any of the others.

    Raises:
        ConfigError: both are given.
    """
    for name, value in others:
        if first[1] and value:
            raise ConfigError(f"{first[0]} and {name}: found both; expected at most one of them.")


def _load_recipe(name: str, facts: Path | None, seed: int | None, items: int | None) -> Recipe:
    from vgbench_gen.pipeline.build import read_built_recipe
    from vgbench_gen.pipeline.recipe import change_recipe, load_recipe

    built = facts is not None and not name
    return change_recipe(read_built_recipe(facts) if facts and built else load_recipe(name or "default"), seed, items)


def _set_bank(recipe: Recipe, bank: Path | None, use: str) -> Recipe:
    from vgbench_gen.core.config import parse_config
    from vgbench_gen.pipeline.recipe import WordSettings

    changes = ({"bank": str(bank)} if bank is not None else {}) | ({"use": use} if use else {})
    if not changes:
        return recipe
    words = parse_config(recipe.wording.model_dump() | changes, WordSettings, "--wording" if use else "--bank")
    if not words.bank:
        raise ConfigError(f"--wording {use}: found no bank in the recipe; expected --bank FILE.")
    return recipe.model_copy(update={"wording": words})


def _print_checks(resolve: Callable[[], Recipe], scenes: list[Path], out: Path, engine: Engine, as_json: bool) -> None:
    """Print a line for each check before a build, with what to do where one fails; exit 1 then."""
    from vgbench_gen.pipeline.preflight import Check, examine

    checks: list[Check] = []
    for check in examine(resolve, scenes, out, engine):
        checks.append(check)
        if not as_json:
            row = (check.verdict, check.name, " ".join(f"{check.found}  {check.remedy}".rstrip().split("\n")))
            print_columns([row], heads=("verdict", "what", "found"), show_heads=False, least=(4, 15))
    if as_json:
        print_json([check._asdict() for check in checks])
    if any(check.verdict == "FAIL" for check in checks):
        raise typer.Exit(1)


def _measure(recipe: Recipe, scenes: list[Path], out: Path, engine: Engine, as_json: bool) -> None:
    """Measure facts alone; exit 1 where none came out, or a scene was lost."""
    from vgbench_gen.pipeline.build import measure
    from vgbench_gen.store.provenance import BuildLock

    with _open_bars() as (on_scene, _), BuildLock(out):
        reports = measure(recipe, scenes, out, engine, on_scene)
    facts = sum(sum(report.facts.values()) for report in reports)
    if as_json:
        names = ("dataset", "scene_id", "facts", "rejects", "issues", "error")
        print_json([{name: getattr(report, name) for name in names} for report in reports])
    else:
        print(f"{facts} facts from {len(reports)} scenes in {out}/facts")
        print(f"next: {format_command('vgbench', 'build', '--facts', out)}")
    if not facts or any(report.lost or report.raised for report in reports):
        raise typer.Exit(1)


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

    listed_later: whether standard output will list dropped scenes; a terminal then does not show them here as well.
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
    """Print totals and at most `_NOTES` notes; the yield of each source and all notes go to `build.log`."""
    from vgbench_gen.pipeline.build import COUNTS
    from vgbench_gen.pipeline.summary import cell_lines, note_lines, total_lines
    from vgbench_gen.store.files import write_bytes

    notes = note_lines(report, recipe)
    log = [*cell_lines(report, recipe.task_names, _WIDTH), "", *notes]
    write_bytes(out / _LOG, "".join(f"{line}\n" for line in log).encode("utf-8", "backslashreplace"))
    if as_json:
        record = {name: getattr(report.composed, name) for name in ("fingerprint", "total", *COUNTS)}
        short = {short.what: {"wanted": short.wanted, "got": short.got} for short in report.composed.short}
        print_json({**record, "short": short})
        return
    print("\n".join([*total_lines(report, recipe.task_names, find_width()), *notes[:_NOTES]]))
    more = f"{len(notes) - _NOTES} more notes and " if len(notes) > _NOTES else ""
    print(f"{more}the yield of each source: {out / _LOG}")
    print(f"{report.composed.total} questions in {out}/items, fingerprint {report.composed.fingerprint}")


def _check_dataset(dataset: Path, scenes: list[Path], workers: int) -> bool:
    """Verify a dataset that was just built and audit it; whether every answer agrees and no statistic failed.

    Prints the result, and first the path of a drawing of one question.
    """
    from vgbench_gen.cli.audit import audit_into
    from vgbench_gen.cli.show import draw_item
    from vgbench_gen.cli.verify import verify_dataset
    from vgbench_gen.report.audit_table import format_lines
    from vgbench_gen.report.gallery_openers import choose_example
    from vgbench_gen.store.dataset import load

    items = load(dataset)
    draw_item(items, choose_example(items), dataset / _EXAMPLE)
    print(f"one question, drawn: {dataset / _EXAMPLE}", flush=True)
    verified = verify_dataset(dataset, scenes, workers)
    holds = not verified.problems
    print("\n".join(["", "built and verified" if holds else "built, but not verified", *verified.format_lines(), ""]))
    report = audit_into(dataset / "audit", dataset, verified=verified.problems, workers=workers)
    print("\n".join(format_lines(report, f"{dataset}/audit/index.html", find_width())))
    return holds and not report.failed


def _list_places(dataset: Path) -> list[str]:
    """What to look at in a checked dataset, a line each."""
    places = {
        _EXAMPLE: "one question, drawn with the numbers behind its answer",
        "items/": 'the questions with their images: datasets.load_dataset("parquet", …)',
        "audit/index.html": "the results of the audit, by task and question type",
        "manifest.json": "the recipe, code, scenes and counts of this build",
    }
    width = max(map(len, places)) + len(f"{dataset}/")
    return [
        "Look at:",
        *(f"  {f'{dataset}/{place}'.ljust(width)}  {what}" for place, what in places.items()),
        f"All questions as a site: {format_command('vgbench', 'browse', dataset)}. "
        f"One, drawn: {format_command('vgbench', 'show', 'ID', dataset)}.",
    ]
