"""Wrong options chosen anew for a dataset that is there: other letters, another seed or strategy, the same questions.

No raw scene is opened: facts hold every candidate, and what has to be drawn is drawn from stored images. A row that
cannot be asked by the new strategy keeps its options, and its `strategy` column says whose they are. Leaving it out
would spoil comparisons, which need the same truths on both sides, and would not even be fair: with P(t, S) the share
of truth t and option set S among the rows, P(t, S) ~ w(S) for every t in S as set first has it, keeping what fails
leaves w(S), whereas dropping it leaves w(S) times the share of t that passes, which differs from truth to truth.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.registry import make_unknown_error
from vgbench_gen.core.types import ALPHABET
from vgbench_gen.distractors.base import DEFAULT, strategies
from vgbench_gen.executors import Engine, begin_work
from vgbench_gen.pipeline.ask import choose_draws
from vgbench_gen.pipeline.derived import check_target, fill_beside, find_build, link_build
from vgbench_gen.pipeline.facts import FEW
from vgbench_gen.pipeline.measure import list_tasks
from vgbench_gen.pipeline.plan import count_letters
from vgbench_gen.pipeline.question import QuestionSettings
from vgbench_gen.pipeline.question_plan import read_questions
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.redraw_rows import CHOICE, Redraw, preload_tasks
from vgbench_gen.pipeline.redraw_sets import (
    REPLIES,
    Progress,
    Propose,
    ProposedOptions,
    Redrawer,
    RedrawSettings,
    deal_row_letters,
    list_redraws,
    make_row_plan,
    run_redraws,
)
from vgbench_gen.pipeline.words import load_wordings
from vgbench_gen.store.dataset import load
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import (
    MANIFEST,
    code_version,
    dataset_fingerprint,
    read_manifest,
    read_recipe,
    rows_fingerprint,
    write_manifest,
)
from vgbench_gen.store.rewrite import read_stored_rows, rewrite_items
from vgbench_gen.store.schema import Row, make_item_row
from vgbench_gen.store.shards import read_columns, write_item_rows
from vgbench_gen.tasks.base import tasks

_SETTINGS = ("strategy", "seed", "mix", "tasks", "margins", "refused")


@dataclass(slots=True)
class RedrawReport:
    """What came of it, in rows."""

    out: Path | None = None
    """Folder of the new dataset; None where no question got new options, and nothing was written."""
    replaced: dict[str, Any] = field(default_factory=dict)
    """Settings of the dataset that was there before, as far as they were others."""
    fingerprint: str = ""
    """Digest of its rows."""
    total: int = 0
    passed: int = 0
    """Rows that were left alone: not multi-choice, or of other tasks."""
    new: dict[str, int] = field(default_factory=dict)
    """Rows with new options, per "task/strategy"."""
    kept: dict[str, int] = field(default_factory=dict)
    """Rows with the options they had, or left out, per "task/strategy/reason"."""
    letters: dict[str, list[int]] = field(default_factory=dict)
    """How often each letter is the answer, per "task/source"."""
    items: dict[str, int] = field(default_factory=dict)
    """Rows per "task/form/source"."""
    headline: bool = True
    """Whether no row is a stress question or has options that a model named."""
    words: dict[str, Any] = field(default_factory=dict)
    """What a model was asked and how its answers fared, where one was asked."""


def redraw(
    dataset: str | PathLike[str],
    settings: RedrawSettings,
    out: str | PathLike[str] | None = None,
    *,
    build: str | PathLike[str] | None = None,
    workers: int | Engine = 1,
    progress: Progress = lambda stage, done, total: None,
    propose: Propose | None = None,
) -> RedrawReport:
    """Write the dataset with other wrong options as a new one; the old one stays as it is.

    A run that was killed is taken up again by the next one of the same `out`: pictures drawn before are not drawn
    again. Nothing is under the name `out` until all is there.

    Args:
        dataset: a folder that `vgbench build` made, or one derived from it.
        settings: what to choose anew.
        out: folder of the new dataset; `<dataset>-<strategy>-<seed>` beside the old one where None.
        build: where facts and images are, if not in the folder of the dataset.
        workers: processes, 0 for all cores; or an `Engine`. The result does not depend on it.
        progress: called with (stage, done, in all).
        propose: gives the values that strategy `llm` chooses from; needed for that strategy only.

    Raises:
        ConfigError: shares, tasks or `out` make no sense, or a model is needed and none is given.
        UnknownNameError: no such strategy or task.
        DatasetError: dataset, facts or images cannot be read.
        BuildLocked: another process writes the same dataset.
    """
    folder = find_build(Path(dataset))
    origin, manifest = Path(build) if build is not None else folder, read_manifest(folder)
    recipe = parse_config(read_recipe(manifest, folder), Recipe, str(folder / MANIFEST))
    recipe = recipe.model_copy(update={"margins": settings.margins or recipe.margins})
    if recipe.wording.bank:
        recipe, _ = load_wordings(recipe, list_tasks(recipe))
    _check_settings(settings, origin, propose)
    parent = str(manifest.get("fingerprint") or dataset_fingerprint(load(dataset)))
    target = Path(out) if out is not None else folder.resolve().with_name(f"{folder.resolve().name}-{settings.label}")
    check_target(target, "redrawn", parent)
    engine = workers if isinstance(workers, Engine) else Engine(workers=workers)
    with fill_beside(target) as work, _start_workers(load(dataset).paths, settings, engine):
        _link_origin(origin, target, work)
        report = _write(Path(dataset), work, settings, recipe, engine, progress, propose)
        derived = _derive_manifest(manifest, report, settings, recipe, parent)
        if report.new:
            write_manifest(work, derived)
            older = read_manifest(target)["redrawn"] if (target / MANIFEST).is_file() else {}
            report.replaced = {
                name: older[name] for name in _SETTINGS if older and older[name] != derived["redrawn"][name]
            }
            report.out = target
    if not report.new and "llm" not in settings.shares:  # what a model replied is kept for the next run
        shutil.rmtree(work)
    return report


@contextmanager
def _start_workers(paths: Sequence[Path], settings: RedrawSettings, engine: Engine) -> Iterator[None]:
    """Start workers while this process reads rows and learns from facts, where there will be work for them."""
    number = 0
    for path in paths:
        kinds = read_columns(path, ("task", "question_type"))
        number += sum(form == CHOICE and (not settings.tasks or task in settings.tasks) for task, form in kinds)
    with begin_work(engine, preload_tasks) if number > FEW else nullcontext():
        yield


def _check_settings(settings: RedrawSettings, origin: Path, propose: Propose | None) -> None:
    for name in settings.shares:
        if name not in (known := (DEFAULT, *strategies)):
            raise make_unknown_error("strategy", name, known)
    for name in settings.tasks:
        tasks[name]
    total = sum(settings.shares.values())
    if min(settings.shares.values(), default=0) <= 0 or abs(total - 1) > 1e-6:
        raise ConfigError(f"--mix: found shares {dict(settings.shares)}; expected shares above 0 that sum to 1.")
    if "llm" in settings.shares and propose is None:
        raise ConfigError("strategy llm: found no model; expected --model, such as --model deepseek:deepseek-flash.")
    if not (origin / "facts").is_dir() or not (origin / "media").is_dir():
        raise dataset_error(
            origin, "no facts/ and media/", "those of the build, which hold all candidates",
            "Name the build that it was made from with --build.",
        )  # fmt: skip


def _link_origin(origin: Path, target: Path, work: Path) -> None:
    """Show the files of the build in the new folder, with what an earlier run of the same target left."""
    for name in ("facts", "rejects"):  # of an earlier run, whose build may have had other scenes
        shutil.rmtree(work / name, ignore_errors=True)
    link_build(origin, work)
    replies = target / REPLIES
    if replies.is_file() and not (work / REPLIES).exists():
        shutil.copyfile(replies, work / REPLIES)  # what an earlier run was answered is not asked again
    cache = origin / "pictures.sqlite"
    if cache.is_file() and not (work / cache.name).exists():
        shutil.copyfile(cache, work / cache.name)  # a database changes in place


def _write(
    dataset: Path,
    work: Path,
    settings: RedrawSettings,
    recipe: Recipe,
    engine: Engine,
    progress: Progress,
    propose: Propose | None,
) -> RedrawReport:
    paths = load(dataset).paths
    stored = read_stored_rows(paths)
    before = stored if stored is not None else [make_item_row(item) for item in load(dataset)]
    asked = list_redraws(before, work, recipe, settings)
    by_model = [question for question in asked if question.strategy == "llm"]
    proposals = propose(by_model, recipe, work, progress) if propose is not None and by_model else ProposedOptions()
    asked = _choose_draws(asked, recipe, settings.seed, work, engine)
    redrawer = Redrawer(before, recipe, settings, proposals, work, engine, progress)
    new_rows, reasons = redrawer.draw_distinct_sets(asked)
    gone = {place for question in asked if question.plan.group_id in reasons for place in question.places}
    left_out = gone if settings.refused == "drop" else set()
    rows = [new_rows.get(k, row) for k, row in enumerate(before) if k not in left_out]
    rows = _balance_letters(rows, recipe, {question.plan.task for question in asked}, work, engine)
    progress("files", 0, len(rows))
    media = MediaStore(work / "media")
    if stored is not None and not left_out:
        rewrite_items(
            work / "items", paths, before, rows, media, engine.cores, lambda done, total: progress("files", done, total)
        )
    else:
        rows = [{**row, "index": place} for place, row in enumerate(rows)] if left_out else rows
        write_item_rows(work / "items", rows, media)
    progress("digest", 0, len(rows))
    report = _report_on(asked, reasons, new_rows, rows, proposals)
    report.passed = len(before) - sum(report.new.values()) - sum(report.kept.values())
    progress("digest", len(rows), len(rows))
    return report


def _choose_draws(asked: Sequence[Redraw], recipe: Recipe, seed: int, work: Path, engine: Engine) -> list[Redraw]:
    """The same questions, each with the draw that keeps the balance among them; with that of the build where its seed
    and strategy are wanted again."""
    draws: dict[str, int] = {}
    for strategy in sorted({question.strategy for question in asked}):
        settings = replace(QuestionSettings.of(recipe), strategy=strategy, distractor_seed=seed)
        known = read_questions(work, settings.choosing)
        plans = [q.plan for q in asked if q.strategy == strategy and q.plan.row >= 0]
        chosen = choose_draws(plans, work, recipe, settings, engine) if known is None else [plan for plan, _ in known]
        draws |= {plan.group_id: plan.draw for plan in chosen if plan.question_type == CHOICE}
    return [replace(q, plan=replace(q.plan, draw=draws.get(q.plan.group_id, 0))) for q in asked]


def _report_on(
    asked: Sequence[Redraw],
    reasons: Mapping[str, str],
    new_rows: Mapping[int, Row],
    rows: Sequence[Row],
    proposals: ProposedOptions,
) -> RedrawReport:
    """Count what came of the questions that were asked anew, and what the rows are now."""
    report = RedrawReport(total=len(rows), fingerprint=rows_fingerprint(rows), words=dict(proposals.report))
    new: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for question in asked:
        reason = reasons.get(question.plan.group_id)
        name = f"{question.plan.task}/{question.strategy if reason else new_rows[question.places[0]]['strategy']}"
        (kept if reason else new)[f"{name}/{reason}" if reason else name] += len(question.places)
    report.new, report.kept = dict(sorted(new.items())), dict(sorted(kept.items()))
    if report.words:
        report.words |= _count_survivors([question for question in asked if question.strategy == "llm"], reasons)
    choices = (row for row in rows if row["question_type"] == CHOICE)
    report.letters = count_letters(
        (f"{row['task']}/{row['source']}", len(row["options"]), ALPHABET.index(row["answer"])) for row in choices
    )
    report.headline = not any(row["strategy"] == "llm" or row["difficulty"] == "stress" for row in rows)
    report.items = dict(sorted(Counter(f"{r['task']}/{r['question_type']}/{r['source']}" for r in rows).items()))
    return report


def _count_survivors(named: Sequence[Redraw], reasons: Mapping[str, str]) -> dict[str, Any]:
    """How the questions fared whose options a model was to name."""
    refused = Counter(reasons[question.plan.group_id] for question in named if question.plan.group_id in reasons)
    per_task = {
        task: {
            "questions": len(members := [question for question in named if question.plan.task == task]),
            "survived": sum(question.plan.group_id not in reasons for question in members),
        }
        for task in sorted({question.plan.task for question in named})
    }
    survived = len(named) - refused.total()
    return {
        "questions": len(named),
        "survived": survived,
        "refused": dict(sorted(refused.items())),
        "per_task": per_task,
    }


def _derive_manifest(
    parent: Mapping[str, Any], report: RedrawReport, settings: RedrawSettings, recipe: Recipe, fingerprint: str
) -> dict[str, Any]:
    """The parent's manifest with what is now another."""
    manifest = dict(parent)
    # Whoever asks more of the same facts, as audits do, asks by this strategy; only a model can ask by llm.
    if len(settings.shares) == 1 and "llm" not in settings.shares:
        changed = {"strategy": next(iter(settings.shares)), "distractor_seed": settings.seed, "margins": recipe.margins}
        manifest["recipe"] = {**manifest["recipe"], **changed}
    manifest["recipe"] = {**manifest["recipe"], "headline": report.headline and recipe.headline}
    manifest["redrawn"] = {
        "from": fingerprint,
        "strategy": settings.name,
        "seed": settings.seed,
        "mix": dict(settings.shares),
        "tasks": list(settings.tasks),
        "margins": recipe.margins,
        "refused": settings.refused,
        "new": report.new,
        "kept": report.kept,
        "passed": report.passed,
        "headline": report.headline,
        "code": code_version(),
        "words": report.words,
    }
    manifest["fingerprint"] = report.fingerprint
    manifest["counts"] = {**manifest.get("counts", {}), "items": report.total}
    manifest["items"], manifest["letters"] = report.items, report.letters
    if settings.refused == "drop" or recipe.margins == "recorded":
        for outdated in ("difficulty", "pairs"):
            manifest.pop(outdated, None)
    return manifest


def _balance_letters(
    stored: Sequence[Row], recipe: Recipe, tasks_touched: set[str], out: Path, engine: Engine
) -> list[Row]:
    """The rows with letters in even blocks, where leaving some out, or an earlier command, has upset them."""
    letters = deal_row_letters(stored, recipe.seed, tasks_touched)
    places = [k for k, n in letters.items() if stored[k]["answer"] != ALPHABET[n]]
    redraws = [Redraw(make_row_plan(stored[k]), "", rows=(stored[k],), letters=(letters[k],)) for k in places]
    rows = list(stored)
    found = run_redraws(redraws, out, recipe, 0, engine, lambda stage, done, total: None)
    for k, outcome in zip(places, found, strict=True):
        rows[k] = outcome.rows[0]
    return rows
