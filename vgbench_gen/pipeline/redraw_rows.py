"""Wrong options anew for the questions of one scene: drawn from its facts, then written into the rows as they were.

Only what depends on the options is touched. A row whose words and pictures do not name them keeps both to the byte,
whoever reworded it, and a picture that is shown again keeps its file.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.rng import stable_hash
from vgbench_gen.core.types import LETTERS, Candidate, Fact, Item, QuestionType
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.pipeline.known import KnownFacts, knowing_tasks
from vgbench_gen.pipeline.plan import Card, Chosen, PackedOptions, Planned, group_id, partner_of, planned, truth_at
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.redraw_words import has_own_words, words_again
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
from vgbench_gen.store.schema import Row, item_row, read_item
from vgbench_gen.store.shards import read_columns
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.text import lint
from vgbench_gen.text.render import phrasings

CHOICE: QuestionType = "multi-choice"
_KEPT_ROWS = 4  # of a shard at most, whose facts are kept: what could not be drawn is drawn anew a few times


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One fact to draw options for, with the rows that ask it from every side.

    draw_seed: of this draw; seed: as the rows tell it. rows: as they are stored, whose texts are read where the draw is
    made. letters: of the truth, per row. proposed: values to choose from in place of the fact's own pool.
    """

    group_id: str
    strategy: str
    seed: int
    draw_seed: int
    rows: tuple[Row, ...]
    letters: tuple[int, ...]
    proposed: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Redrawn:
    """What a draw gave. reason: why there are no rows, or "". contents: see `survey.content_of`, of every side.

    rows: as they are stored; making their texts here spares the one process that writes files.
    """

    reason: str
    rows: tuple[Row, ...] = ()
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


def get_ready() -> None:
    """Load what the first job of a process would have to wait for: all tasks, and the words of their options."""
    for name in tasks:
        phrasings(name, CHOICE)


def redrawn(job: DrawJob) -> list[Redrawn]:
    """What came of the draws, in order.

    Raises:
        DatasetError: the shard or an image cannot be read, or a row's template is not known here.
    """
    media = MediaStore(job.out / "media")
    cache = PictureCache(job.out / "pictures.sqlite" if job.remember else None, media)
    asked = [tuple(map(read_item, entry.rows)) for entry in job.draws]
    keys = [(items[0].task, key_of(items[0])) for items in asked]
    facts = facts_of(job.shard, frozenset(keys))
    by_name = tasks_again(job.recipe, job.known)
    with media.batch():
        found = [
            Redrawn("no_fact") if key not in facts else _redrawn(facts[key], entry, items, by_name, cache, job.recipe)
            for key, entry, items in zip(keys, job.draws, asked, strict=True)
        ]
    cache.close()
    return found


def key_of(item: Item) -> str:
    """Key of the fact behind a row."""
    return str(item.evidence.get("key"))


def facts_of(shard: Path, keys: frozenset[tuple[str, str]]) -> Mapping[tuple[str, str], Fact]:
    """Facts of a shard by (task, key), as far as it has them; none where there is no such file.

    Raises:
        DatasetError: the shard cannot be read.
    """
    if not shard.is_file():
        return {}
    if len(keys) <= _KEPT_ROWS:
        return _few_facts(shard, keys, shard.stat().st_mtime_ns)
    return _facts(shard, keys)


def _facts(shard: Path, keys: Container[tuple[str, str]]) -> dict[tuple[str, str], Fact]:
    places = {
        row: (task, key) for row, (task, key) in enumerate(read_columns(shard, ("task", "key"))) if (task, key) in keys
    }
    return {places[row]: fact for row, fact in facts_at(shard, set(places)).items()}


@lru_cache(maxsize=64)
def _few_facts(shard: Path, keys: frozenset[tuple[str, str]], written: int) -> Mapping[tuple[str, str], Fact]:
    """Facts of a shard of this age."""
    return _facts(shard, keys)


def _redrawn(
    fact: Fact,
    entry: Draw,
    items: Sequence[Item],
    by_name: Mapping[str, Task],
    cache: PictureCache,
    recipe: Recipe,
) -> Redrawn:
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
    for item, letter in zip(items, entry.letters, strict=True):
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
    return Redrawn("", tuple(map(item_row, rows)), tuple(contents))


def lettered(job: DrawJob) -> list[Redrawn]:
    """The rows with their own options and other letters; no fact is read."""
    media = MediaStore(job.out / "media")
    cache = PictureCache(job.out / "pictures.sqlite" if job.remember else None, media)
    by_name, found = tasks_again(job.recipe, job.known), []
    with media.batch():
        for entry in job.draws:
            rows = []
            for record, letter in zip(entry.rows, entry.letters, strict=True):
                item = read_item(record)
                old = as_asked(item)
                new = replace(old, options=None if old.options is None else truth_at(old.options, letter))
                row = _row(item, new, by_name[item.task], cache, job.recipe, item.strategy, item.distractor_seed)
                rows.append(record if isinstance(row, str) else item_row(row))
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
    if keys != list(names) and (before := _slots(item, task, recipe)) != shown.slots:
        words = words_again(item, before, shown, recipe)
        if isinstance(words, str):
            return words
        question, context, paraphrase = words
    same = (question, context) == (item.question, item.context)
    problems = lint.lint_options(shown.options) if same else lint.lint(question, context, shown.options)
    if problems:
        return f"lint: {problems[0]}"
    frames = frames_shown(fact, shown.pictures)
    worded_by = item.template_id
    if has_own_words(item):  # two rewordings of a row are two questions
        worded_by = stable_hash("reworded", worded_by, question, context)
    return replace(
        item,
        id=item_id(identity_of(new, worded_by, strategy, seed, shown.options)),
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


def _slots(item: Item, task: Task, recipe: Recipe) -> Mapping[str, str] | None:
    """What the row's words are filled with, as far as it tells."""
    old = as_asked(item)
    if old.options is None:
        return None
    return task.choice(old.fact, old.options, presentation_rng(recipe.seed, item.group_id, CHOICE)).slots
