"""Wrong options anew for the questions of one scene: drawn from its facts, then written into the rows as they were.

Only what depends on the options is touched. A row whose words and pictures do not name them keeps both to the byte,
whoever reworded it, and a picture that is shown again keeps its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from vgbench_gen.core.errors import DatasetError, TooFewOptionsError
from vgbench_gen.core.types import LETTERS, Candidate, Fact, Item, QuestionType
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.pipeline.known import KnownFacts, knowing_tasks
from vgbench_gen.pipeline.plan import Card, Chosen, PackedOptions, Planned, group_id, partner_of, planned, truth_at
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.survey import content_of, drawn_options, facts_at, side_problem
from vgbench_gen.pipeline.write import (
    candidate_record,
    distractors_of,
    frames_shown,
    identity_of,
    item_id,
    presentation_rng,
)
from vgbench_gen.quality.noise import kept_share
from vgbench_gen.quality.verify import fact_of
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.pictures import Picture
from vgbench_gen.store.schema import Row, item_row
from vgbench_gen.tasks.base import Presentation, Task
from vgbench_gen.text import lint
from vgbench_gen.text.render import phrasings, render

CHOICE: QuestionType = "multi-choice"
_KEPT_ROWS = 4  # of a shard at most, whose facts are kept: what could not be drawn is drawn anew a few times


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One fact to draw options for, with the rows that ask it from every side.

    row: of its scene's shard, -1 where its options stay. draw_seed: of this draw; seed: as the rows tell it. letters:
    of the truth, per row. proposed: values to choose from in place of the fact's own pool.
    """

    row: int
    group_id: str
    strategy: str
    seed: int
    draw_seed: int
    items: tuple[Item, ...]
    letters: tuple[int, ...]
    proposed: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Redrawn:
    """What a draw gave. reason: why there are no rows, or "". contents: see `survey.content_of`, of every side.

    records: the rows as they are stored; making them here spares the one process that writes files.
    """

    reason: str
    rows: tuple[Item, ...] = ()
    records: tuple[Row, ...] = ()
    contents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class DrawJob:
    """Draws on one scene's facts; crosses process borders.

    out: of the new dataset, with `media/`. known: see `pipeline.known`. remember: keep the names of drawn pictures in
    a file, which only the processes of one machine may share.
    """

    out: Path
    shard: Path
    recipe: Recipe
    known: KnownFacts
    draws: tuple[Draw, ...]
    remember: bool


def tasks_again(recipe: Recipe, known: KnownFacts) -> dict[str, Task]:
    """The recipe's tasks by name, for facts that are in the dataset already (see `Task.again`)."""
    return {name: task.asking_again() for name, task in knowing_tasks(recipe, known).items()}


def redrawn(job: DrawJob) -> list[Redrawn]:
    """What came of the draws, in order.

    Raises:
        DatasetError: the shard or an image cannot be read, or a row's template is not known here.
    """
    media = MediaStore(job.out / "media")
    cache = PictureCache(job.out / "pictures.sqlite" if job.remember else None, media)
    rows = frozenset(entry.row for entry in job.draws)
    few = len(rows) <= _KEPT_ROWS
    facts = _facts(job.shard, rows, job.shard.stat().st_mtime_ns) if few else facts_at(job.shard, set(rows))
    by_name = tasks_again(job.recipe, job.known)
    with media.batch():
        found = [_redrawn(facts[entry.row], entry, by_name, cache, job.recipe) for entry in job.draws]
    cache.close()
    return found


@lru_cache(maxsize=64)
def _facts(shard: Path, rows: frozenset[int], written: int) -> dict[int, Fact]:
    """Facts of a shard of this age."""
    return facts_at(shard, set(rows))


def _redrawn(fact: Fact, entry: Draw, by_name: Mapping[str, Task], cache: PictureCache, recipe: Recipe) -> Redrawn:
    if group_id(fact) != entry.group_id:
        return Redrawn("fact_changed")
    task = by_name[fact.task]
    if entry.proposed:
        fact = replace(fact, candidates=(fact.truth_candidate, *entry.proposed), truth=0)
    settings = {"strategy": entry.strategy, "distractor_seed": entry.draw_seed}
    try:
        options = drawn_options(fact, entry.group_id, task, recipe.model_copy(update=settings))
    except TooFewOptionsError as error:
        return Redrawn(error.reason)
    packed = PackedOptions(options.options, options.truth, options.strategy, options.separations)
    rows, contents = [], []
    for item, letter in zip(entry.items, entry.letters, strict=True):
        chosen = _chosen(item, packed, letter)
        if chosen.side:
            base = Planned(fact, item.group_id, CHOICE, item.difficulty, options, paired=chosen.paired)
            problem = side_problem(partner_of(base, task), task, recipe)
            if problem:
                return Redrawn(problem)
        question = planned(chosen, fact, task)
        row = _row(item, question, task, cache, recipe, entry.strategy, entry.seed)
        if isinstance(row, str):
            return Redrawn(row)
        rows.append(row)
        contents.append(content_of([o.value for o in question.options.options] if question.options else [], task))
    return Redrawn("", tuple(rows), tuple(map(item_row, rows)), tuple(contents))


def lettered(job: DrawJob) -> list[Redrawn]:
    """The rows with their own options and other letters; no fact is read."""
    media = MediaStore(job.out / "media")
    cache = PictureCache(job.out / "pictures.sqlite" if job.remember else None, media)
    by_name, found = tasks_again(job.recipe, job.known), []
    with media.batch():
        for entry in job.draws:
            rows = []
            for item, letter in zip(entry.items, entry.letters, strict=True):
                old = as_asked(item)
                new = replace(old, options=None if old.options is None else truth_at(old.options, letter))
                row = _row(item, new, by_name[item.task], cache, job.recipe, item.strategy, item.distractor_seed)
                rows.append(item if isinstance(row, str) else row)
            found.append(Redrawn("", tuple(rows)))
    cache.close()
    return found


def _chosen(item: Item, options: PackedOptions, letter: int) -> Chosen:
    card = Card(
        item.task, item.source, item.split, item.scene_id, item.group_id, 0.0, "", 0, (CHOICE,), options=options
    )  # fmt: skip
    return Chosen(card, CHOICE, item.difficulty, letter, str(item.evidence["side"]), bool(item.pair_id))


def as_asked(item: Item) -> Planned:
    """The question behind a multi-choice row, with its options, as far as the row tells."""
    fact = fact_of(item)
    off = iter(distractor.separation for distractor in item.distractors)
    separations = tuple(0.0 if k == fact.truth else next(off) for k in range(len(fact.candidates)))
    options = OptionSet(fact.candidates, fact.truth, item.strategy, separations)
    side = str(item.evidence["side"])
    return Planned(fact, item.group_id, CHOICE, item.difficulty, options, side, bool(item.pair_id))


def _row(
    item: Item, new: Planned, task: Task, cache: PictureCache, recipe: Recipe, strategy: str, seed: int
) -> Item | str:
    """The row with its new options and everything else as it was, or why it may not be asked."""
    fact, options = new.fact, new.options
    if options is None:
        raise ValueError(f"{item.id}: a multi-choice question without options")
    kept = kept_share(fact, item.group_id, CHOICE, task, options.options, options.truth)
    if recipe.margins == "enforced" and kept < task.gates.noise.kept_min:
        return "noise"
    rng = presentation_rng(recipe.seed, item.group_id, CHOICE)
    shown = task.choice(fact, options, rng)
    names = {
        Picture.from_json(record).key(): name
        for record, name in zip(item.evidence["pictures"], item.images, strict=True)
    }
    keys = [picture.key() for picture in shown.pictures]
    question, context, paraphrase = item.question, item.context, item.paraphrase
    # Words that name options go with marks that show them; where all pictures stay, so do the words.
    if keys != list(names) and _words_differ(item, shown, task, recipe):
        question, context, paraphrase = _words(item, shown, recipe)
    same = (question, context) == (item.question, item.context)
    problems = lint.lint_options(shown.options) if same else lint.lint(question, context, shown.options)
    if problems:
        return f"lint: {problems[0]}"
    frames = frames_shown(fact, shown.pictures)
    return replace(
        item,
        id=item_id(identity_of(new, item.template_id, strategy, seed, shown.options)),
        question=question,
        context=context,
        paraphrase=paraphrase,
        options=shown.options,
        answer=LETTERS[options.truth],
        images=tuple(names.get(key) or cache.name(p) for key, p in zip(keys, shown.pictures, strict=True)),
        frame_ids=frames,
        distractors=distractors_of(options),
        evidence={
            **item.evidence,
            "options": [candidate_record(option) for option in options.options],
            "pictures": [picture.to_json() for picture in shown.pictures],
            "cameras": {frame_id: fact.cameras[frame_id] for frame_id in frames},
            "bases": {frame_id: fact.pictures[frame_id] for frame_id in frames},
            "noise": {"kept": kept, "draws": task.gates.noise.draws},
        },
        strategy=strategy,
        distractor_seed=seed,
        difficulty="stress" if recipe.margins == "recorded" else item.difficulty,
    )


def _words_differ(item: Item, shown: Presentation, task: Task, recipe: Recipe) -> bool:
    """Whether the words of the row name its options, as far as its slots tell."""
    old = as_asked(item)
    if old.options is None:
        return True
    before = task.choice(old.fact, old.options, presentation_rng(recipe.seed, item.group_id, CHOICE))
    return before.slots != shown.slots


def _words(item: Item, shown: Presentation, recipe: Recipe) -> tuple[str, str, str]:
    """(question, context, model that worded them) by the row's own template."""
    bank = [*recipe.wording.phrasings, *phrasings(item.task, CHOICE)]
    phrasing = next((p for p in bank if p.id == item.template_id), None)
    if phrasing is None:
        raise DatasetError(
            f"item {item.id}: found template {item.template_id!r}, which is not in the phrasings of {item.task}; its "
            "words name the options and must be filled again. Use the version and the bank it was built with."
        )
    return *render(phrasing, shown.slots), phrasing.paraphrase
