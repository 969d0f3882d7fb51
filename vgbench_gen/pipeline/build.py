"""MEASURE then COMPOSE, with a manifest that says what was made from what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.progress import show_progress
from vgbench_gen.distractors.base import DEFAULT, strategies
from vgbench_gen.executors import Engine, begin_work, engines, run
from vgbench_gen.pipeline.compose import ComposeReport, compose
from vgbench_gen.pipeline.facts import list_fact_shards
from vgbench_gen.pipeline.measure import (
    MeasureJob,
    SceneReport,
    list_tasks,
    measure_scene,
    read_reports,
    report_lost_scene,
)
from vgbench_gen.pipeline.recipe import Recipe, change_recipe, load_recipe
from vgbench_gen.pipeline.words import load_wordings
from vgbench_gen.scenes import describe_unplaced, discover
from vgbench_gen.scenes.base import SceneRef, loaders
from vgbench_gen.store.files import clean_temporary
from vgbench_gen.store.pictures import list_codec_versions
from vgbench_gen.store.provenance import (
    BuildLock,
    code_version,
    read_manifest,
    read_recipe,
    write_manifest,
    write_times,
)
from vgbench_gen.tasks.base import tasks

COUNTS = ("items", "unasked", "fallbacks", "letters", "pairs")
"""The counts of a `ComposeReport` that are printed and noted by cell."""


@dataclass(slots=True)
class BuildReport:
    """What a build gave."""

    scenes: list[SceneReport] = field(default_factory=list)
    """One report per scene, sorted."""
    composed: ComposeReport = field(default_factory=ComposeReport)

    def __repr__(self) -> str:
        made = self.composed
        return f"<Build of {len(self.scenes)} scenes: {made.total:,} questions, fingerprint {made.fingerprint}>"

    @property
    def facts(self) -> int:
        """All facts measured."""
        return sum(sum(scene.facts.values()) for scene in self.scenes)

    @property
    def rejects(self) -> int:
        """All drafts and frames that were not good enough."""
        return sum(sum(scene.rejects.values()) for scene in self.scenes)


def build(
    recipe: Recipe | str | Path | Mapping[str, Any] = "default",
    scenes: str | PathLike[str] | Sequence[str | PathLike[str]] = "raw_scenes",
    out: str | PathLike[str] = "build/vgbench",
    workers: int | Engine = 1,
    *,
    seed: int | None = None,
    items: int | Mapping[str, Mapping[str, int]] | None = None,
    tasks: Sequence[str] = (),
    allow_short: bool = False,
    progress: bool = True,
) -> BuildReport:
    """Build a dataset: measure every scene below `scenes` (or reuse what was measured), then compose.

    Args:
        recipe: a shipped name, the path of a file, its keys as a mapping, or a `pipeline.recipe.Recipe`.
        scenes: folder(s) with raw scans.
        out: the build folder; two builds never write into one at once.
        workers: processes, 0 for all cores; or an `Engine`, such as Ray. The result does not depend on it.
        seed: in place of the recipe's.
        items: of each task, such as 200; or by task and question type, as the recipe's table `items`.
        tasks: these alone.
        allow_short: write what there is where the totals cannot be met.
        progress: show bars in a terminal or notebook.

    Raises:
        QuotasNotMet: the facts cannot fill the recipe; facts are kept, items and manifest stay as they were.
        ConfigError: no scenes found, or the recipe is wrong.
        UnknownNameError: a task, strategy or engine is not registered.
        BuildLocked: another build writes there.
    """
    resolved = change_recipe(recipe if isinstance(recipe, Recipe) else load_recipe(recipe), seed, items, tasks)
    with show_progress(progress) as tell:
        return build_dataset(
            resolved,
            scenes,
            Path(out),
            _make_engine(workers),
            lambda report, done, total: tell("measuring scenes", done, total),
            lambda done, total: tell("writing questions", done, total),
            allow_short,
        )


def build_dataset(
    recipe: Recipe,
    scenes: str | PathLike[str] | Sequence[str | PathLike[str]],
    folder: Path,
    engine: Engine,
    on_scene: Callable[[SceneReport, int, int], None] = lambda report, done, total: None,
    on_question: Callable[[int, int], None] = lambda done, total: None,
    allow_short: bool = False,
) -> BuildReport:
    """As `build` for a recipe in full, with another way to tell of progress: `on_scene` is called with (its report,
    scenes done, scenes found), `on_question` with (questions written, questions planned)."""
    with BuildLock(folder):
        clean_temporary(folder)
        reports = measure(recipe, scenes, folder, engine, on_scene)
        recipe = recipe.with_noise(report.dataset for report in reports)
        with begin_work(engine):  # not those that measured, and hold what that needed
            # A lost scene may have shards of an older build there.
            measured = [report for report in reports if not report.lost]
            composed = compose(folder, recipe, measured, engine, on_question, allow_short)
        report = BuildReport(reports, composed)
        write_times(folder, _make_times(report))
        write_manifest(folder, make_manifest(recipe, report))
    return report


def read_built_recipe(out: Path) -> Recipe:
    """The recipe that a folder was built with; the default one where nothing was composed there yet.

    Raises:
        DatasetError, ConfigError: the manifest cannot be read.
    """
    if not (out / "manifest.json").is_file():
        return load_recipe("default")
    return parse_config(read_recipe(read_manifest(out), out), Recipe, str(out / "manifest.json"))


def check_names(recipe: Recipe) -> None:
    """Look up the names in a recipe before hours of measuring depend on them.

    Raises:
        UnknownNameError: a task, strategy or source is not registered.
        ConfigError: a task is not asked in a question type that the recipe wants; a bank of wordings cannot be read; or
            a headline recipe asks for words or options that have no place in one.
    """
    for task in list_tasks(recipe):
        for form, count in recipe.items.get(task.name, {}).items():
            if count and form not in task.formats:
                raise ConfigError(
                    f"items.{task.name}.{form}: found {count}; expected one of {', '.join(task.formats)}, the question "
                    "types of this task. Mend the recipe."
                )
        if (found := recipe.count_options(task.name)) > task.options_max:
            raise ConfigError(
                f"options: found {found} for {task.name}; expected at most {task.options_max} (docs/recipes.md#options "
                f"says why). Set options_of.{task.name} in the recipe."
            )
    for name in [*recipe.only_from, *recipe.facts_of, *recipe.options_of]:
        tasks[name]
    for source in [*recipe.sources, *(source for named in recipe.only_from.values() for source in named)]:
        loaders[source]
    if recipe.strategy != DEFAULT:
        strategies[recipe.strategy]
    if recipe.headline and recipe.strategy == "llm":
        raise ConfigError(
            'strategy: found "llm" in a headline recipe; expected another: options of a language model give the '
            "truth away. Set headline = false in a copy of the recipe."
        )
    load_wordings(recipe, list_tasks(recipe))


def recompose(
    recipe: Recipe,
    out: Path,
    workers: int | Engine = 1,
    on_question: Callable[[int, int], None] = lambda done, total: None,
    allow_short: bool = False,
) -> BuildReport:
    """Compose again from the facts of a build; its manifest keeps what was measured and gets the new counts.

    Raises:
        DatasetError: nothing was measured there.
        QuotasNotMet, UnknownNameError, BuildLocked: as `build`.
    """
    check_names(recipe)
    list_fact_shards(out)  # says so before a mistyped folder is made
    engine = _make_engine(workers)
    with BuildLock(out), begin_work(engine):
        clean_temporary(out)
        reports = read_reports(out)
        recipe = recipe.with_noise(report.dataset for report in reports)
        report = BuildReport(reports, compose(out, recipe, reports, engine, on_question, allow_short))
        write_manifest(out, make_manifest(recipe, report))
    return report


def measure(
    recipe: Recipe,
    scenes: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: Path,
    workers: int | Engine = 1,
    on_scene: Callable[[SceneReport, int, int], None] = lambda report, done, total: None,
) -> list[SceneReport]:
    """Measure every scene; reports sorted by dataset and scene. Raises what `check_names` and `find_scenes` raise."""
    check_names(recipe)
    for source in recipe.gates.noise.stated:
        loaders[source]
    engine = _make_engine(workers)
    engines[engine.name]
    refs = find_scenes(scenes)
    # Largest first, so that no worker starts a long scene when the others are done.
    refs.sort(key=lambda ref: (-ref.size_bytes, ref.dataset, ref.scene_id))
    jobs = [MeasureJob(ref, recipe, out) for ref in refs]
    reports = []
    folders = [out, *map(Path, _list_roots(scenes))]
    for _, report in run(measure_scene, jobs, engine, folders, report_lost_scene):
        reports.append(report)
        on_scene(report, len(reports), len(jobs))
    return sorted(reports, key=lambda report: (report.dataset, report.scene_id))


def find_scenes(scenes: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[SceneRef]:
    """All scenes below one or several folders.

    Raises:
        ConfigError: a folder is missing or holds no scene that a loader knows.
    """
    roots = _list_roots(scenes)
    for root in roots:
        if not Path(root).is_dir():
            raise ConfigError(f"{root}: found no such folder; expected raw scans. Give the folder with your scenes.")
    refs = list(discover(*[Path(root) for root in roots]))
    if not refs:
        raise ConfigError(describe_unplaced(*map(Path, roots)))
    return refs


def _make_engine(workers: int | Engine) -> Engine:
    return workers if isinstance(workers, Engine) else Engine(workers=workers)


def _list_roots(scenes: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[str | PathLike[str]]:
    return [scenes] if isinstance(scenes, str | PathLike) else list(scenes)


_OF_THE_RUN = ("reused", "seconds", "task_seconds")
"""Fields of a `SceneReport` that differ from run to run: the same inputs give the same manifest."""


def make_manifest(recipe: Recipe, report: BuildReport) -> dict[str, Any]:
    """What was made from what; the only file of a build that may tell times."""
    return {
        "recipe": recipe.model_dump(mode="json"),
        "code": code_version(),
        "pixels": list_codec_versions(),
        "counts": {
            "scenes": len(report.scenes),
            "scenes_dropped": sum(bool(scene.error) for scene in report.scenes),
            "facts": report.facts,
            "rejects": report.rejects,
            "items": report.composed.total,
        },
        **{name: getattr(report.composed, name) for name in (*COUNTS, "fingerprint", "difficulty")},
        **({"wording": report.composed.wording} if report.composed.wording else {}),
        "short": {short.what: {"wanted": short.wanted, "got": short.got} for short in report.composed.short},
        "scenes": [
            {name: value for name, value in asdict(scene).items() if name not in _OF_THE_RUN} for scene in report.scenes
        ],
    }


def _make_times(report: BuildReport) -> Mapping[str, Any]:
    return {
        f"{scene.dataset}/{scene.scene_id}": {
            "reused": scene.reused,
            "seconds": round(scene.seconds, 3),
            "task_seconds": {name: round(value, 3) for name, value in scene.task_seconds.items()},
        }
        for scene in report.scenes
    }
