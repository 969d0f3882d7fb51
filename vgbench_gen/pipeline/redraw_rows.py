"""Wrong options anew for the questions of one scene: drawn from its facts, then written into the rows as they were.

Redrawing is composing with the fact, the letter and the seed fixed. Only what depends on the options is touched: a row
whose words and pictures do not name them keeps both to the byte, whoever reworded it, and a picture that is shown again
keeps its file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Candidate, Fact, Item, QuestionType
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.pipeline.facts import read_facts
from vgbench_gen.pipeline.measure import name_tasks, shard_path
from vgbench_gen.pipeline.question import (
    AnswerableText,
    FillWords,
    QuestionRejectedError,
    QuestionSettings,
    ask_as_planned,
    digest_options,
    make_question,
    presentation_rng,
    put_truth_at,
)
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.rows import row_with_options
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.pictures import Picture
from vgbench_gen.store.schema import Row, make_item_row, read_item
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact
from vgbench_gen.text.bank import ITEM_MARK, find_origin, load_shipped
from vgbench_gen.text.paraphrase.rules import SLOT
from vgbench_gen.text.render import load_phrasings, render

CHOICE: QuestionType = "multi-choice"
ATTEMPTS = 6  # draws for one fact; what fails so often hardly has another set
REWORDED = "words_name_options"
"""Why a row may keep its options: nobody can say where its own wording names them."""


@dataclass(frozen=True, slots=True, eq=False)
class Redraw:
    """One truth that a dataset asks as a multi-choice question, from one side or from both, and its new options.

    A worker gets it with the rows as they are and gives it back with those that have new options.
    """

    plan: QuestionPlan
    """The fact, with the draw of its options; its `row` is -1 where the build does not have it."""
    strategy: str
    """The strategy that chooses the new options, or `DEFAULT` for the task's own; empty where the options stay and only
    the truth moves to another letter."""
    places: tuple[int, ...] = ()
    """Places of its rows in the dataset."""
    rows: tuple[Row, ...] = ()
    """The rows as they are stored. Making their texts in the workers spares the one process that writes files."""
    letters: tuple[int, ...] = ()
    """Place of the truth, per row."""
    proposed: tuple[Candidate, ...] = ()
    """Values to choose from in place of the fact's own pool."""
    rejection_reason: str = ""
    """Why there are no new options, or ""."""
    option_digests: tuple[str, ...] = ()
    """Digests of the new options as printed, of every side; see `QuestionPlan.option_digests`."""


@dataclass(frozen=True, slots=True, eq=False)
class RedrawJob:
    """Questions about one scene to redraw; crosses process borders."""

    out: Path
    """The new dataset, with `media/`."""
    recipe: Recipe
    redraws: tuple[Redraw, ...]
    remember: bool
    """Whether the names of drawn pictures are kept in a file, which only the processes of one machine may share."""
    seed: int = 0
    """The seed of the new options."""


def preload_tasks() -> None:
    """Load what the first job of a process would have to wait for: all tasks, and the words of their options."""
    for name in tasks:
        load_phrasings(name, CHOICE)


def redraw_options(job: RedrawJob) -> list[Redraw]:
    """Draw the options of some questions and write them into their rows.

    Returns:
        The questions in order, with new rows or with the reason why there are none.

    Raises:
        DatasetError: the shard or an image cannot be read, or a row's template is not known here.
    """
    media = MediaStore(job.out / "media")
    cache = PictureCache(job.out / "pictures.sqlite" if job.remember else None, media)
    asked = [tuple(map(read_item, entry.rows)) for entry in job.redraws]
    first = job.redraws[0].plan
    rows = {entry.plan.row for entry in job.redraws if entry.strategy and entry.plan.row >= 0}
    facts = read_facts(shard_path(job.out, "facts", first.source, first.scene_id), rows) if rows else {}
    by_name, found = name_tasks(job.recipe), []
    with media.batch():
        for entry, items in zip(job.redraws, asked, strict=True):
            fact = facts.get(entry.plan.row) if entry.strategy else rebuild_fact(items[0])
            found.append(_redraw(fact, entry, items, by_name[entry.plan.task], cache, job))
    cache.close()
    return found


def _redraw(
    fact: Fact | None, entry: Redraw, items: Sequence[Item], task: Task, cache: PictureCache, job: RedrawJob
) -> Redraw:
    """The question with new options, with those of its rows where no strategy chooses others, or with the reason why it
    has none: that of the last draw."""
    if fact is None:
        return replace(entry, rejection_reason="no_fact")
    if entry.proposed:
        fact = replace(fact, candidates=(fact.truth_candidate, *entry.proposed), truth=0)
    reason = ""
    # What a model named is drawn from once: another draw would prefer the rank that passes.
    others = range(ATTEMPTS if entry.strategy not in ("", "llm") else 0)
    for number in dict.fromkeys((entry.plan.draw, *others)):
        try:
            return _redraw_rows(fact, number, entry, items, task, cache, job)
        except QuestionRejectedError as error:
            reason = error.reason
            if reason == REWORDED:
                break
    return replace(entry, rejection_reason=reason)


def _redraw_rows(
    fact: Fact, draw: int, entry: Redraw, items: Sequence[Item], task: Task, cache: PictureCache, job: RedrawJob
) -> Redraw:
    """The question with the options of this draw.

    Raises:
        QuestionRejectedError: they may not be asked.
    """
    recipe, rows, digests = job.recipe, [], []
    settings = replace(QuestionSettings.of(recipe), strategy=entry.strategy, distractor_seed=job.seed)
    for item, letter in zip(items, entry.letters, strict=True):
        side, paired = RowEvidence.of(item).side, bool(item.pair_id)
        plan = replace(entry.plan, draw=draw, letter=letter, side=side, paired=paired, difficulty=item.difficulty)
        if entry.strategy:
            there, options = ask_as_planned(fact, plan, task, settings)
        else:
            there, options = fact, put_truth_at(recorded_options(item, fact), letter)
        made = make_question(there, options, plan, task, settings, fill_words=_keep_words(item, task, recipe))
        strategy = options.strategy if options is not None else ""
        seed = job.seed if entry.strategy else item.distractor_seed
        difficulty = "stress" if recipe.margins == "recorded" else item.difficulty
        row = row_with_options(item, made, strategy, seed, difficulty, _KeptPictures(item, cache))
        rows.append(make_item_row(row))
        digests += [] if task.options_recur else [digest_options(options, task)]
    return replace(entry, rows=tuple(rows), option_digests=tuple(digests))


def recorded_options(item: Item, fact: Fact) -> OptionSet:
    """The options of a multi-choice row, as its evidence tells them.

    Args:
        item: the row.
        fact: as `rebuild_fact` reads it back.
    """
    return OptionSet(fact.candidates, fact.truth, item.strategy)


class _KeptPictures:
    """Names pictures: those that a row shows already keep their files, the others are drawn."""

    def __init__(self, item: Item, cache: PictureCache) -> None:
        self._names, self._cache = _picture_names(item), cache

    def name(self, picture: Picture) -> str:
        return self._names.get(picture.key()) or self._cache.name(picture)


def _picture_names(item: Item) -> dict[str, str]:
    """The pictures that a row shows, by what they show, with the names of their files."""
    return {picture.key(): name for picture, name in zip(RowEvidence.of(item).shown(), item.images, strict=True)}


def _keep_words(item: Item, task: Task, recipe: Recipe) -> FillWords:
    """Gives the row's own words, filled again where they name the options."""

    def fill(slots: Mapping[str, str], pictures: Sequence[Picture]) -> AnswerableText:
        words = AnswerableText(item.question, item.context, item.template_id, item.paraphrase, kept=True)
        # Words that name options go with marks that show them; where all pictures stay, so do the words.
        if [picture.key() for picture in pictures] == list(_picture_names(item)):
            return words
        before = _recorded_slots(item, task, recipe)
        if before == slots:
            return words
        question, context, paraphrase = refill_template(item, before, slots, recipe)
        same = (question, context) == (item.question, item.context)
        return AnswerableText(question, context, item.template_id, paraphrase, kept=same)

    return fill


def _recorded_slots(item: Item, task: Task, recipe: Recipe) -> Mapping[str, str]:
    """What the words of a row are filled with, as its evidence tells."""
    fact = rebuild_fact(item)
    rng = presentation_rng(recipe.seed, item.group_id, CHOICE)
    return task.choice(fact, recorded_options(item, fact), rng).slots


def refill_template(
    item: Item, before: Mapping[str, str], after: Mapping[str, str], recipe: Recipe
) -> tuple[str, str, str]:
    """(question, context, model that worded them) of a row whose options changed.

    A row that was reworded by itself has no template that gives its words. It keeps its wording, in which the new
    values take the place of the old ones.

    Args:
        item: the row as it was.
        before: slots of its old options.
        after: slots of the new ones.
        recipe: whose bank holds the wordings that are not shipped.

    Raises:
        QuestionRejectedError: the row has its own wording, and nobody can say where that names the options.
        DatasetError: the row's template is not known here.
    """
    if ITEM_MARK in item.template_id:
        return *_exchange_values(item, before, after), item.paraphrase
    bank = [*recipe.wording.phrasings, *load_phrasings(item.task, item.question_type)]
    phrasing = next((p for p in bank if p.id == item.template_id), None)
    if phrasing is None:
        raise DatasetError(
            f"item {item.id}: found template {item.template_id!r}, which is not in the phrasings of {item.task}; its "
            "words name the options and must be filled again. Use the version and the bank it was built with."
        )
    return *render(phrasing, after), phrasing.paraphrase


def _exchange_values(item: Item, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, str]:
    """Question and context with other values.

    Raises:
        QuestionRejectedError: they do not hold each old value to the letter and once.
    """
    phrasing = load_shipped().get(find_origin(item.template_id)[0])
    if phrasing is None or before.keys() != after.keys():
        raise QuestionRejectedError(REWORDED)
    named = {match[1] for text in (phrasing.question, phrasing.context) for match in SLOT.finditer(text)}
    texts = [item.question, item.context]
    places = []
    for name in sorted(name for name in named & before.keys() if before[name] != after[name]):
        found = [(k, text.find(before[name])) for k, text in enumerate(texts) if before[name] in text]
        if len(found) != 1 or texts[found[0][0]].count(before[name]) != 1:
            raise QuestionRejectedError(REWORDED)
        places.append((*found[0], before[name], after[name]))
    places.sort(reverse=True)  # from the end, so that the places in front stay where they are
    for (k, start, old, _), (other, behind, *_) in zip(places[1:], places, strict=False):
        if k == other and start + len(old) > behind:
            raise QuestionRejectedError(REWORDED)
    for k, start, old, new in places:
        texts[k] = texts[k][:start] + new + texts[k][start + len(old) :]
    return texts[0], texts[1]
