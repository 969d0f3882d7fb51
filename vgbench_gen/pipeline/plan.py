"""Which facts are asked, in which form, with which letters. Cheap, global, no pixels; facts are seen as cards.

Options come before words, letters before pictures; nothing here depends on the order of files or of workers.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.rng import canonical_json, rng_for, stable_hash
from vgbench_gen.core.types import LETTERS, Candidate, Fact, QuestionType
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.pipeline.pick import Hand, Levels, Pairing, Spread, deal
from vgbench_gen.pipeline.quotas import ITEMS, Scene, Stock, Targets, solve
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.base import Task

Forms = tuple[QuestionType, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """One question to write: a fact in one form. `options` only for multi-choice, truth at its letter.

    side, paired: as in `Chosen`; the fact and the options are those of that side.
    """

    fact: Fact
    group_id: str
    question_type: QuestionType
    difficulty: str
    options: OptionSet | None = None
    side: str = ""
    paired: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PackedOptions:
    """An option set without its fact. members: place in the fact's pool, or the candidate itself where computed."""

    members: tuple[int | Candidate, ...]
    truth: int
    strategy: str
    separations: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """What planning knows of a fact: a hundredth of its size.

    frame: the first that is shown. row: place in its scene's shard. forms: in which it can be asked as far as is known.
    refused: form -> why it cannot. options: drawn for the multi-choice form. side: what `Task.partner_kind` calls the
    other side. pairs: forms in which it can be asked from there as well, as far as is known; unpaired: form -> why not.
    ask: sub-kind of the task. value: the answer where it is one number, else NaN.
    """

    task: str
    source: str
    split: str
    scene_id: str
    group_id: str
    margin: float
    frame: str
    row: int
    forms: Forms
    refused: Mapping[QuestionType, str] = field(default_factory=dict)
    options: PackedOptions | None = None
    side: str = ""
    pairs: Forms = ()
    unpaired: Mapping[QuestionType, str] = field(default_factory=dict)
    ask: str = ""
    value: float = math.nan


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A card in one form. letter: of the right option, for multi-choice only.

    paired: asked from both sides. side: "" for the fact as it is, else what `Task.partner_kind` calls the other one.
    """

    card: Card
    question_type: QuestionType
    difficulty: str
    letter: int | None = None
    side: str = ""
    paired: bool = False


@dataclass(frozen=True, slots=True)
class Unchosen:
    """A fact that is not asked in one of its forms, and why."""

    task: str
    question_type: str
    source: str
    group_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be asked, sorted by task, form and group; what will not, with reasons; and what was wanted.

    unpaired: facts that turned out to have no other side to ask from in one of their forms.
    """

    chosen: list[Chosen]
    unchosen: list[Unchosen]
    targets: Targets
    unpaired: list[Unchosen] = field(default_factory=list)


def group_id(fact: Fact) -> str:
    """Hash of the fact: the same truth asked in another form, or with other decoys, has the same one."""
    truth = fact.truth_candidate
    keys = [candidate.key for candidate in fact.candidates]
    where = (fact.task, str(fact.task_version), fact.ask, fact.dataset, fact.scene_id, fact.key, truth.key)
    return group_hash(where, truth.value.ravel().tolist(), keys)


def group_hash(where: Sequence[str], value: Sequence[float], candidates: Sequence[str]) -> str:
    """`group_id` from its parts: names down to the truth's key, the true value flattened, the keys of the pool."""
    return stable_hash(*where, canonical_json(value), *candidates, size=12)


def targets_of(recipe: Recipe, formats: Mapping[str, Forms], scenes: Iterable[tuple[str, str]]) -> Targets:
    """A recipe's totals as the solver takes them.

    Args:
        formats: the forms of each task that is asked.
        scenes: (source, id) of all scenes with facts; a source's share per scene follows from their number.
    """
    cells: dict[tuple[str, QuestionType], int] = {}
    per_task: dict[str, int] = {}
    if recipe.items:
        cells = {(task, form): n for task, forms in recipe.items.items() for form, n in forms.items() if n}
    elif recipe.items_per_task:
        per_task = dict.fromkeys(formats, recipe.items_per_task)
    else:
        for task, forms in formats.items():
            cells |= {(task, form): recipe.items_per_cell for form in forms}
    totals = Counter(per_task)
    for (task, _), count in cells.items():
        totals[task] += count
    caps = {}
    for source, number in Counter(source for source, _ in set(scenes)).items():
        for task, total in totals.items():
            most = recipe.limits.scene_items(total, number)
            if most < total:
                caps[task, source] = most
    limits = recipe.limits.forms_per_fact
    return Targets(cells, per_task, dict(recipe.sources), dict(recipe.splits), caps, limits)


def choose(cards: Iterable[Card], recipe: Recipe, formats: Mapping[str, Forms]) -> Plan:
    """Decide on every card and form; each ends in exactly one of the two lists.

    Totals that the cards cannot fill are filled as far as they can be; see `shortfall` for what is missing.
    """
    cards = sorted((c for c in cards if c.task in formats), key=lambda c: (c.task, c.source, c.scene_id, c.group_id))
    level = difficulties(cards, stress=recipe.margins == "recorded")
    by_scene: dict[tuple[str, Scene], list[Card]] = defaultdict(list)
    for card in cards:
        order = stable_hash(str(recipe.seed), "scene", card.task, card.source, card.scene_id)
        by_scene[card.task, Scene(card.source, card.split, card.scene_id, order)].append(card)
    targets = targets_of(recipe, formats, {(card.source, card.scene_id) for card in cards})
    stocks = [
        Stock(task, scene, Counter(frozenset(c.forms) for c in members if c.forms))
        for (task, scene), members in by_scene.items()
    ]
    wanted: dict[tuple[str, Scene], dict[QuestionType, int]] = defaultdict(dict)
    for cell, count in solve(stocks, targets).items():
        wanted[cell.task, cell.scene][cell.form] = count
    levels = Levels(recipe.difficulty.shares if recipe.difficulty else None)
    pairing, spread = Pairing(recipe.pairs), Spread()
    chosen: list[Chosen] = []
    gave_way: set[tuple[str, QuestionType]] = set()
    for (task, scene), members in sorted(by_scene.items(), key=lambda pair: (pair[0][0], pair[0][1].order)):
        if (task, scene) not in wanted:
            continue
        members.sort(key=lambda c: stable_hash(str(recipe.seed), "turn", c.group_id))
        dealt = deal(
            task,
            [Hand(c.forms, level[c.group_id], c.value, f"{task}/{c.ask}") for c in members],
            wanted[task, scene],
            recipe.limits.forms_per_fact,
            levels,
            spread,
        )
        for form in ITEMS:
            entries = [Chosen(members[k], form, level[members[k].group_id]) for k, f in dealt if f == form]
            able = [(form in entry.card.pairs, entry.difficulty) for entry in entries]
            for twice, none in pairing.exchanges(task, form, able, levels) if form != "judgment" else ():
                gave_way.add((entries[none].card.group_id, form))
                entries[none] = replace(entries[twice], side=entries[twice].card.side, paired=True)
                entries[twice] = replace(entries[twice], paired=True)
            chosen += entries
    chosen.sort(key=lambda c: (c.card.task, c.question_type, c.card.group_id, c.side))
    unchosen = _unchosen(cards, chosen, targets, formats, gave_way)
    unpaired = [
        Unchosen(c.task, form, c.source, c.group_id, reason) for c in cards for form, reason in c.unpaired.items()
    ]
    return Plan(with_letters(chosen, recipe.seed), unchosen, targets, unpaired)


def _unchosen(
    cards: Sequence[Card],
    chosen: Sequence[Chosen],
    targets: Targets,
    formats: Mapping[str, Forms],
    gave_way: set[tuple[str, QuestionType]],
) -> list[Unchosen]:
    asked = {(c.card.group_id, c.question_type) for c in chosen}
    times = Counter(c.card.group_id for c in chosen if not c.side)
    rest = []
    for card in cards:
        for form in formats[card.task]:
            if (card.group_id, form) in asked:
                continue
            reason = card.refused.get(form)
            if reason is None and (card.group_id, form) in gave_way:
                reason = "pair_took_place"
            if reason is None:
                reason = "asked_otherwise" if times[card.group_id] >= targets.forms_per_fact else "cell_full"
            rest.append(Unchosen(card.task, form, card.source, card.group_id, reason))
    return rest


def difficulties(cards: Sequence[Card], stress: bool) -> dict[str, str]:
    """Group id -> "easy", "medium" or "hard": tercile of the smallest margin over the required one within the task.

    "stress" for everything where margins were only recorded (`docs/validity.md#margins-between-all-pairs`).
    """
    if stress:
        return {card.group_id: "stress" for card in cards}
    by_task: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for card in cards:
        by_task[card.task].append((card.margin, card.group_id))
    names = ("hard", "medium", "easy")
    return {
        name: names[3 * rank // len(ranked)]
        for ranked in by_task.values()
        for rank, (_, name) in enumerate(sorted(ranked))
    }


def with_letters(chosen: Sequence[Chosen], seed: int) -> list[Chosen]:
    """The same entries with a letter for every multi-choice question.

    Ranked by hash within task and source, one permutation of the letters per block of four; the two of a pair are
    ranked apart.
    """
    by_cell: dict[tuple[str, str], list[int]] = defaultdict(list)
    for k, entry in enumerate(chosen):
        if entry.question_type == "multi-choice":
            by_cell[entry.card.task, entry.card.source].append(k)
    placed = list(chosen)
    for (task, source), places in sorted(by_cell.items()):
        places.sort(key=lambda k: stable_hash("letter", chosen[k].card.group_id, "multi-choice", *_named(chosen[k])))
        for block in range(0, len(places), len(LETTERS)):
            letters = rng_for(seed, "letters", task, source, "multi-choice", str(block)).permutation(len(LETTERS))
            for k, letter in zip(places[block : block + len(LETTERS)], letters, strict=False):
                placed[k] = replace(chosen[k], letter=int(letter))
    return placed


def _named(entry: Chosen) -> tuple[str, ...]:
    return (entry.side,) if entry.side else ()


def planned(entry: Chosen, fact: Fact, task: Task) -> Planned:
    """The question to write, now that its fact is at hand.

    Raises:
        VGBenchError: the plan asks from a side that the fact does not have.
    """
    options = None
    packed = entry.card.options
    if entry.letter is not None and packed is not None:
        members = tuple(fact.candidates[m] if isinstance(m, int) else m for m in packed.members)
        options = OptionSet(members, packed.truth, packed.strategy, packed.separations)
    question = Planned(fact, entry.card.group_id, entry.question_type, entry.difficulty, options, paired=entry.paired)
    if entry.side:
        other = partner_of(question, task)
        if other is None:
            raise VGBenchError(f"{entry.card.group_id}: {task.name} has no other side of this fact; please report it.")
        question = other if other.options is None else replace(other, options=_shuffled(other.options, entry))
    if entry.letter is not None and question.options is not None:
        question = replace(question, options=truth_at(question.options, entry.letter))
    return question


def _shuffled(options: OptionSet, entry: Chosen) -> OptionSet:
    # Who reads both halves of a pair must not see in what changed its place which option is right.
    rng = rng_for(0, "options", entry.card.group_id, entry.question_type, entry.side)
    order = [int(k) for k in rng.permutation(len(options.options))]
    members = tuple(options.options[k] for k in order)
    return OptionSet(
        members, order.index(options.truth), options.strategy, tuple(options.separations[k] for k in order)
    )


def _apart(candidate: Candidate, fact: Fact, task: Task) -> float:
    if not task.valid(candidate, fact):
        return float("nan")
    return float(task.separation(fact.truth_candidate, candidate, fact))


def partner_of(entry: Planned, task: Task) -> Planned | None:
    """The same question from the other side, with the same options in its terms; None where there is no such side."""
    options = entry.options
    asked = entry.fact if options is None else replace(entry.fact, candidates=options.options, truth=options.truth)
    fact = task.partner(asked)
    if fact is None:
        return None
    if options is not None:
        apart = tuple(
            0.0 if place == options.truth else _apart(candidate, fact, task)
            for place, candidate in enumerate(fact.candidates)
        )
        options = OptionSet(fact.candidates, options.truth, options.strategy, apart)
    return replace(entry, fact=fact, options=options, side=task.partner_kind)


def truth_at(options: OptionSet, letter: int) -> OptionSet:
    """The same set with the truth moved to that place by one exchange; the others keep their random order."""
    order = list(range(len(options.options)))
    order[options.truth], order[letter] = order[letter], order[options.truth]
    members: tuple[Candidate, ...] = tuple(options.options[i] for i in order)
    return OptionSet(members, letter, options.strategy, tuple(options.separations[i] for i in order))


def letter_counts(chosen: Iterable[Chosen]) -> dict[str, list[int]]:
    """Task and source -> how often each letter is the answer."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(LETTERS))
    for entry in chosen:
        if entry.letter is not None:
            counts[f"{entry.card.task}/{entry.card.source}"][entry.letter] += 1
    return dict(sorted(counts.items()))


def difficulty_counts(chosen: Iterable[Chosen]) -> dict[str, dict[str, int]]:
    """Task and form -> items per level."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in chosen:
        counts[f"{entry.card.task}/{entry.question_type}"][entry.difficulty] += ITEMS[entry.question_type]
    return {key: dict(sorted(levels.items())) for key, levels in sorted(counts.items())}


def pair_counts(chosen: Iterable[Chosen]) -> dict[str, int]:
    """Task and form -> pairs."""
    return dict(sorted(Counter(f"{c.card.task}/{c.question_type}" for c in chosen if c.side).items()))
