"""Wrong options chosen anew for a dataset that is there: other letters, another seed or strategy, the same questions.

Redrawing is asking with the fact, the form and the words fixed, and then writing. No raw scene is opened: facts hold
every candidate, and what has to be drawn is drawn from stored images. A row that cannot be asked by the new strategy
stays as it is, and its `strategy` column says whose options it has. Leaving it out would spoil comparisons, which need
the same truths on both sides, and would not even be fair: with P(t, S) the share of truth t and option set S among the
rows, P(t, S) ~ w(S) for every t in S as set first has it, keeping what fails leaves w(S), whereas dropping it leaves
w(S) times the share of t that passes, which differs from truth to truth.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from pydantic_core import from_json

from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.registry import make_unknown_error
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Fact, Item, QuestionType
from vgbench_gen.distractors.base import DEFAULT, Margins, OptionSet, strategies
from vgbench_gen.executors import Engine, begin_work
from vgbench_gen.pipeline.ask import check_plan, choose_draws, refuse_shared_sets
from vgbench_gen.pipeline.compose import write_job
from vgbench_gen.pipeline.derived import check_target, fill_beside, find_build, link_build
from vgbench_gen.pipeline.facts import FEW, FactsJob, map_plans, read_plans
from vgbench_gen.pipeline.measure import list_tasks, shard_path
from vgbench_gen.pipeline.plan import deal_letters
from vgbench_gen.pipeline.question import (
    QuestionRejectedError,
    ask_as_planned,
    digest_values,
    presentation_rng,
)
from vgbench_gen.pipeline.question_plan import QuestionPlan, read_questions
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.redraw_ask import REPLIES, OpenModels, Progress, name_values
from vgbench_gen.pipeline.rows import count_rows, row_with_words
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
    write_manifest,
)
from vgbench_gen.store.schema import ITEMS, Row, make_item_row, read_item
from vgbench_gen.store.shards import iterate_rows, list_light_columns, write_item_rows
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.row_evidence import RowEvidence, read_side, rebuild_fact
from vgbench_gen.text.bank import ITEM_MARK, find_origin, load_shipped
from vgbench_gen.text.paraphrase.rules import SLOT

CHOICE: QuestionType = "multi-choice"
ATTEMPTS = 6  # draws for one fact; what fails so often hardly has another set
REWORDED = "words_name_options"
"""Why a row may keep its options: nobody can say where its own wording names them."""
_SETTINGS = ("strategy", "seed", "mix", "tasks", "margins", "refused")


@dataclass(frozen=True, slots=True)
class RedrawSettings:
    """What to choose anew, and how."""

    shares: Mapping[str, float]
    """Strategy, or `DEFAULT` for each task's own -> share of the questions of each task and source."""
    seed: int = 0
    tasks: tuple[str, ...] = ()
    """The tasks; all when empty."""
    margins: Margins | Literal[""] = ""
    """Those of the dataset's recipe when empty; with "recorded" every new set is labelled a stress set."""
    refused: Literal["keep", "drop"] = "keep"
    """Whether a row that the strategy cannot ask keeps its options or is left out."""

    @property
    def name(self) -> str:
        """The strategy as it is typed, or "mix" for several."""
        return next(iter(self.shares)).replace("_", "-") if len(self.shares) == 1 else "mix"


@dataclass(slots=True)
class RedrawReport:
    """What came of it, in rows."""

    out: Path | None = None
    """Folder of the new dataset; None where no question got new options, and nothing was written."""
    replaced: dict[str, Any] = field(default_factory=dict)
    """Settings of the dataset that was there before, as far as they were others."""
    total: int = 0
    passed: int = 0
    """Rows that were left alone: not multi-choice, or of other tasks."""
    new: dict[str, int] = field(default_factory=dict)
    """Rows with new options, per "task/strategy"."""
    kept: dict[str, int] = field(default_factory=dict)
    """Rows with the options they had, or left out, per "task/strategy/reason"."""
    counts: dict[str, Any] = field(default_factory=dict)
    """As `count_rows` gives them."""
    headline: bool = True
    """Whether no row is a stress question or has options that a model named."""
    words: dict[str, Any] = field(default_factory=dict)
    """What a model was asked and how its answers fared, where one was asked."""

    @property
    def fingerprint(self) -> str:
        """Digest of its rows."""
        return str(self.counts["fingerprint"])


def redraw(
    dataset: str | PathLike[str],
    settings: RedrawSettings,
    out: str | PathLike[str] | None = None,
    *,
    build: str | PathLike[str] | None = None,
    workers: int | Engine = 1,
    progress: Progress = lambda stage, done, total: None,
    open_models: OpenModels | None = None,
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
        open_models: opens the models that name the values for strategy `llm`; needed for that strategy only.

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
    _check_settings(settings, origin, open_models)
    parent = str(manifest.get("fingerprint") or dataset_fingerprint(load(dataset)))
    beside = folder.resolve()
    target = Path(out) if out is not None else beside.with_name(f"{beside.name}-{settings.name}-{settings.seed}")
    check_target(target, "redrawn", parent)
    engine = workers if isinstance(workers, Engine) else Engine(workers=workers)
    with fill_beside(target) as work, begin_work(engine):
        link_build(origin, work)
        for name, place in ((REPLIES, target), ("pictures.sqlite", origin)):
            if (place / name).is_file() and not (work / name).exists():
                shutil.copyfile(place / name, work / name)  # not linked: a database changes in place
        report = _write(Path(dataset), work, settings, recipe, engine, progress, open_models)
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


def _check_settings(settings: RedrawSettings, origin: Path, open_models: OpenModels | None) -> None:
    for name in settings.shares:
        if name not in (known := (DEFAULT, *strategies)):
            raise make_unknown_error("strategy", name, known)
    for name in settings.tasks:
        tasks[name]
    total = sum(settings.shares.values())
    if min(settings.shares.values(), default=0) <= 0 or abs(total - 1) > 1e-6:
        raise ConfigError(f"--mix: found shares {dict(settings.shares)}; expected shares above 0 that sum to 1.")
    if "llm" in settings.shares and open_models is None:
        raise ConfigError("strategy llm: found no model; expected --model, such as --model deepseek:deepseek-flash.")
    if not (origin / "facts").is_dir() or not (origin / "media").is_dir():
        raise dataset_error(
            origin, "no facts/ and media/", "those of the build, which hold all candidates",
            "Name the build that it was made from with --build.",
        )  # fmt: skip


def _write(
    dataset: Path,
    work: Path,
    settings: RedrawSettings,
    recipe: Recipe,
    engine: Engine,
    progress: Progress,
    open_models: OpenModels | None,
) -> RedrawReport:
    rows = list(iterate_rows(load(dataset).paths, partial(list_light_columns, names=ITEMS.schema.names), 512))
    places = _list_groups(rows, settings)
    strategy = _assign_strategies([rows[members[0]] for members in places.values()], settings)
    plans = _list_plans(rows, places, work, recipe)
    words: dict[str, Any] = {}
    by_model = [plan for plan in plans if strategy[plan.group_id] == "llm"]
    if open_models is not None and by_model:
        by_model, words = name_values(by_model, work, recipe, open_models, settings.seed, progress)
        plans = [*by_model, *(plan for plan in plans if strategy[plan.group_id] != "llm")]
    ways = {
        name: recipe.model_copy(update={"strategy": name, "distractor_seed": settings.seed})
        for name in sorted(set(strategy.values()))
    }
    asked: list[QuestionPlan] = []
    for name, way in ways.items():
        asked += _ask([plan for plan in plans if strategy[plan.group_id] == name], work, way, engine, progress)
    asked = _refuse_shared_sets(asked, rows, places, settings)
    reasons = {plan.group_id: plan.rejection_reason for plan in asked if plan.rejection_reason}
    gone = {k for name in reasons for k in places[name]} if settings.refused == "drop" else set()
    touched = {plan.task for plan in asked}
    letters = deal_row_letters(
        {k: row for k, row in enumerate(rows) if row["task"] in touched and k not in gone}, recipe.seed
    )
    new: dict[int, Row] = {}
    for name, way in ways.items():
        members = [
            (k, _plan_row(plan, rows[k], letters[k], recipe))
            for plan in asked
            if strategy[plan.group_id] == name and not plan.rejection_reason
            for k in places[plan.group_id]
        ]
        told = partial(progress, "pictures")
        written = map_plans(write_job, [plan for _, plan in members], work, way, engine, told, few=FEW)
        for (k, plan), (row,) in zip(members, written, strict=True):
            new[k] = _keep_words(row, plan.reworded.get(k, rows[k]))
    after = [new.get(k, row) for k, row in enumerate(rows) if k not in gone]
    if gone:
        after = [{**row, "index": place} for place, row in enumerate(after)]
    write_item_rows(work / "items", _count(after, progress), MediaStore(work / "media"))
    report = _report_on(plans, strategy, places, reasons, new, after)
    report.passed = len(rows) - sum(map(len, places.values()))
    if words:
        named = Counter(plan.task for plan in by_model)
        survived = Counter(plan.task for plan in by_model if plan.group_id not in reasons)
        refused = Counter(reasons[plan.group_id] for plan in by_model if plan.group_id in reasons)
        report.words = words | {
            "questions": named.total(),
            "survived": survived.total(),
            "refused": dict(sorted(refused.items())),
            "per_task": {task: {"questions": n, "survived": survived[task]} for task, n in sorted(named.items())},
        }
    return report


def _count(rows: Sequence[Row], progress: Progress) -> Iterator[Row]:
    for done, row in enumerate(rows, 1):
        yield row
        progress("files", done, len(rows))


def _list_groups(rows: Sequence[Row], settings: RedrawSettings) -> dict[str, list[int]]:
    """Group -> the places of its rows, of the truths whose options are to be chosen anew, in the order of the rows."""
    places: dict[str, list[int]] = defaultdict(list)
    for k, row in enumerate(rows):
        # All labels are options of a question about labels, whatever is drawn.
        wanted = row["task"] in (settings.tasks or (row["task"],)) and not tasks[row["task"]].options_recur
        if row["question_type"] == CHOICE and wanted:
            places[row["group_id"]].append(k)
    return places


def _assign_strategies(firsts: Sequence[Row], settings: RedrawSettings) -> dict[str, str]:
    """Group -> strategy, by hash and by the shares as exactly as whole questions allow, per task and source."""
    cells: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in firsts:
        cells[row["task"], row["source"]].append(row["group_id"])
    assigned = {}
    for (task, source), names in cells.items():
        names.sort(key=lambda name: hash_stably("mix", str(settings.seed), task, source, name))
        start, share = 0, 0.0
        for strategy, part in sorted(settings.shares.items()):
            share += part
            stop = round(share * len(names))
            assigned.update(dict.fromkeys(names[start:stop], strategy))
            start = stop
    return assigned


def _list_plans(
    rows: Sequence[Row], places: Mapping[str, Sequence[int]], work: Path, recipe: Recipe
) -> list[QuestionPlan]:
    """The question of each group, with its rows whose words a model gave; rejected where the facts do not have it."""
    firsts = [rows[members[0]] for members in places.values()]
    paths = {shard_path(work, "facts", row["source"], row["scene_id"]) for row in firsts}
    wanted = {row["task"] for row in firsts}
    asked = [task for task in list_tasks(recipe) if task.name in wanted]
    known = {
        plan.group_id: plan
        for path in sorted(paths)
        if path.is_file()
        for plan in read_plans(path, asked, recipe)
        if plan.question_type == CHOICE and plan.group_id in places
    }
    plans = []
    for name, members in places.items():
        plan = known.get(name)
        if plan is None:
            plans.append(replace(_plan_stored(rows[members[0]]), rejection_reason="no_fact"))
            continue
        kind = plan.counterpart_kind if any(_plan_stored(rows[k]).side for k in members) else ""
        reworded = {k: rows[k] for k in members if ITEM_MARK in rows[k]["template_id"]}
        plans.append(replace(plan, rejection_reason="", counterpart_kind=kind, reworded=reworded))
    return plans


def _plan_stored(row: Row) -> QuestionPlan:
    """The plan of a row without its fact."""
    where = (row["task"], row["source"], row["split"], row["scene_id"], row["group_id"])
    side = str(from_json(row["evidence"]).get("side", ""))
    return QuestionPlan(*where, CHOICE, places=len(row["options"]), side=side)


def deal_row_letters(rows: Mapping[int, Row], seed: int) -> dict[int, int]:
    """Place of a multi-choice row -> its letter, balanced in blocks as composing does.

    rows: any rows by their places.
    """
    choices = {k: row for k, row in rows.items() if row["question_type"] == CHOICE}
    plans = deal_letters(list(map(_plan_stored, choices.values())), seed)
    return {k: plan.letter for k, plan in zip(choices, plans, strict=True) if plan.letter is not None}


def _plan_row(plan: QuestionPlan, row: Row, letter: int, recipe: Recipe) -> QuestionPlan:
    """The question as this row asks it."""
    difficulty = "stress" if recipe.margins == "recorded" else row["difficulty"]
    side, paired = _plan_stored(row).side, bool(row["pair_id"])
    return replace(plan, letter=letter, side=side, paired=paired, difficulty=difficulty)


# --- asking ---------------------------------------------------------------------------------------------------------


def _ask(
    plans: Sequence[QuestionPlan], work: Path, recipe: Recipe, engine: Engine, progress: Progress
) -> list[QuestionPlan]:
    """The questions, each with the draw of its options, or with the reason why it has none. Draws keep the balance
    among them; those of the build are taken where its seed and strategy are wanted again."""
    able = [plan for plan in plans if not plan.rejection_reason]
    known = read_questions(work, recipe.choosing)
    if known is None:
        drawn = choose_draws(able, work, recipe, engine)
    else:
        draws = {plan.group_id: plan.draw for plan, _ in known if plan.question_type == CHOICE}
        drawn = [replace(plan, draw=draws.get(plan.group_id, 0)) for plan in able]
    drawn = [replace(plan, rejection_reason="") for plan in drawn]  # what upsets the balance is better than what stands
    told = partial(progress, "options")
    asked = map_plans(_ask_job, drawn, work, recipe, engine, told, few=FEW)
    return [*asked, *(plan for plan in plans if plan.rejection_reason)]


def _ask_job(job: FactsJob) -> list[QuestionPlan]:
    return [ask_anew(*question) for question in job.list_questions()]


def ask_anew(fact: Fact, plan: QuestionPlan, task: Task, recipe: Recipe) -> QuestionPlan:
    """The question with the first draw that may be asked from all sides that its rows ask from, or with the reason why
    the last one may not."""
    found = plan
    # What a model named is drawn from once: another draw would prefer the rank that passes.
    others = range(ATTEMPTS if recipe.strategy != "llm" else 0)
    for number in dict.fromkeys((plan.draw, *others)):
        found = check_plan(fact, replace(plan, draw=number), task, recipe)
        if plan.counterpart_kind and not found.counterpart_kind:
            found = replace(found, rejection_reason="no_partner")
        if not found.rejection_reason:
            try:
                words = {k: _fill_own_words(row, fact, found, task, recipe) for k, row in plan.reworded.items()}
                return replace(found, reworded=words)
            except QuestionRejectedError as error:
                return replace(found, rejection_reason=error.reason)
    return found


def _fill_own_words(row: Row, fact: Fact, plan: QuestionPlan, task: Task, recipe: Recipe) -> Row:
    """The row with the wording that a model gave it, in which the values of the new options stand."""
    item = read_item(row)
    there, options = ask_as_planned(fact, replace(plan, side=read_side(item)), task, recipe)
    before = rebuild_fact(item)
    old, new = (
        task.choice(asked, shown, presentation_rng(recipe.seed, plan.group_id, CHOICE)).slots
        for asked, shown in ((before, OptionSet(before.candidates, before.truth, item.strategy)), (there, options))
        if shown is not None
    )
    question, context = exchange_values(item, old, new)
    return {**row, "question": question, "context": context}


def exchange_values(item: Item, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, str]:
    """Question and context of a row with its own wording, with the slots of other options in place of those before.

    Raises:
        QuestionRejectedError: the texts do not hold each old value to the letter and once.
    """
    if before == after:
        return item.question, item.context
    phrasing = load_shipped().get(find_origin(item.template_id)[0])
    if phrasing is None or before.keys() != after.keys():
        raise QuestionRejectedError(REWORDED)
    named = {match[1] for text in (phrasing.question, phrasing.context) for match in SLOT.finditer(text)}
    changed = [name for name in named & before.keys() if before[name] != after[name]]
    new = {before[name]: after[name] for name in changed}
    text = f"{item.question}\0{item.context}"
    if len(new) < len(changed) or any(text.count(old) != 1 for old in new):
        raise QuestionRejectedError(REWORDED)
    if new:
        text, count = re.subn("|".join(map(re.escape, new)), lambda match: new[match[0]], text)
        if count < len(new):  # one value stands inside another
            raise QuestionRejectedError(REWORDED)
    question, _, context = text.partition("\0")
    return question, context


def _keep_words(row: Row, old: Row) -> Row:
    """A new row at the place of the old one, in its own wording where it has one."""
    if ITEM_MARK in old["template_id"]:
        language = old["template_id"].partition(ITEM_MARK)[2]
        row = make_item_row(
            row_with_words(read_item(row), old["question"], old["context"], old["paraphrase"], language)
        )
    elif row["template_id"] != old["template_id"]:
        raise DatasetError(
            f"item {old['id']}: found words of template {old['template_id']!r}; expected {row['template_id']!r}, by "
            "which it is asked here. Use the version and the bank of wordings that it was built with."
        )
    return {**row, "index": old["index"], "index_origin": old["index_origin"]}


def _refuse_shared_sets(
    plans: Sequence[QuestionPlan], rows: Sequence[Row], places: Mapping[str, Sequence[int]], settings: RedrawSettings
) -> list[QuestionPlan]:
    """The questions, of which those lose whose options stand under another truth as well. Rows that keep their options
    keep them for themselves, so a new set of the same content goes, until all differ."""
    plans, refused = refuse_shared_sets(plans), -1
    while settings.refused == "keep" and refused < (refused := sum(bool(plan.rejection_reason) for plan in plans)):
        kept = (rows[k] for plan in plans if plan.rejection_reason for k in places[plan.group_id])
        theirs = {
            digest_values([option.value for option in RowEvidence.of_row(row).options], tasks[row["task"]])
            for row in kept
        }
        plans = [
            plan
            if plan.rejection_reason or theirs.isdisjoint(plan.option_digests)
            else replace(plan, rejection_reason="option_set_taken")
            for plan in plans
        ]
    return plans


# --- what came of it ------------------------------------------------------------------------------------------------


def _report_on(
    plans: Sequence[QuestionPlan],
    strategy: Mapping[str, str],
    places: Mapping[str, Sequence[int]],
    reasons: Mapping[str, str],
    new_rows: Mapping[int, Row],
    rows: Sequence[Row],
) -> RedrawReport:
    """Count what came of the questions that were asked anew, and what the rows are now."""
    report = RedrawReport(total=len(rows), counts=count_rows(rows))
    new: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for plan in plans:
        members = places[plan.group_id]
        if reason := reasons.get(plan.group_id):
            kept[f"{plan.task}/{strategy[plan.group_id]}/{reason}"] += len(members)
        else:
            new[f"{plan.task}/{new_rows[members[0]]['strategy']}"] += len(members)
    report.new, report.kept = dict(sorted(new.items())), dict(sorted(kept.items()))
    report.headline = not any(row["strategy"] == "llm" or row["difficulty"] == "stress" for row in rows)
    return report


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
        "code": code_version(),
        **{name: getattr(report, name) for name in ("new", "kept", "passed", "headline", "words")},
    }
    manifest |= report.counts | {"counts": {**manifest.get("counts", {}), "items": report.total}}
    if settings.refused == "drop" or recipe.margins == "recorded":
        for outdated in ("difficulty", "pairs"):
            manifest.pop(outdated, None)
    return manifest
