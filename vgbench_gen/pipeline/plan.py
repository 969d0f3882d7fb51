"""Which facts are asked, in which form, with which options and letters. Cheap, global, no pixels.

Options come before words, letters before pictures; nothing here depends on the order of files or of workers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.rng import canonical_json, rng_for, stable_hash
from vgbench_gen.core.types import LETTERS, Candidate, Fact, QuestionType
from vgbench_gen.distractors.base import OptionSet, strategies
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.base import Task


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """One question to write: a fact in one form. `options` only for multi-choice, truth at its letter."""

    fact: Fact
    group_id: str
    question_type: QuestionType
    difficulty: str
    options: OptionSet | None = None


@dataclass(frozen=True, slots=True)
class Unchosen:
    """A fact that is not asked in one of its forms, and why."""

    task: str
    question_type: str
    source: str
    group_id: str
    reason: str


def group_id(fact: Fact) -> str:
    """Hash of the fact: the same truth asked in another form, or with other decoys, has the same one."""
    truth = fact.truth_candidate
    return stable_hash(
        fact.task,
        str(fact.task_version),
        fact.ask,
        fact.dataset,
        fact.scene_id,
        fact.key,
        truth.key,
        canonical_json(truth.value.ravel().tolist()),
        *[candidate.key for candidate in fact.candidates],
        size=12,
    )


def plan(facts: Sequence[Fact], tasks: Sequence[Task], recipe: Recipe) -> tuple[list[Planned], list[Unchosen]]:
    """Everything that will be asked, sorted by task, form and group; and what will not, with reasons.

    A cell (task, form) takes facts from all scenes in turn until `items_per_cell` is reached.
    """
    by_task: dict[str, list[tuple[str, Fact]]] = defaultdict(list)
    for fact in facts:
        by_task[fact.task].append((group_id(fact), fact))
    chosen: list[Planned] = []
    unchosen: list[Unchosen] = []
    for task in sorted(tasks, key=lambda t: t.name):
        grouped = by_task[task.name]
        difficulty = difficulties(grouped, stress=recipe.margins == "recorded")
        order = in_turns(grouped, recipe.seed)
        for form in task.formats:
            cell: list[Planned] = []
            limit = recipe.items_per_cell // 2 if form == "judgment" else recipe.items_per_cell
            for name, fact in order:
                entry = Planned(fact, name, form, difficulty[name])
                if len(cell) >= limit:
                    unchosen.append(Unchosen(task.name, form, fact.dataset, name, "cell_full"))
                    continue
                try:
                    cell.append(_with_options(entry, task, recipe))
                except TooFewOptionsError as error:
                    unchosen.append(Unchosen(task.name, form, fact.dataset, name, error.reason))
            chosen += balanced_letters(cell, recipe.seed) if form == "multi-choice" else cell
    chosen.sort(key=lambda p: (p.fact.task, p.question_type, p.group_id))
    return chosen, unchosen


def in_turns(grouped: Iterable[tuple[str, Fact]], seed: int) -> list[tuple[str, Fact]]:
    """Facts in an order in which all scenes take turns, so that a limit cuts every scene alike."""
    by_scene: dict[tuple[str, str], list[tuple[str, Fact]]] = defaultdict(list)
    for name, fact in grouped:
        by_scene[fact.dataset, fact.scene_id].append((name, fact))
    keyed = []
    for scene, members in by_scene.items():
        members.sort(key=lambda pair: stable_hash(str(seed), "turn", pair[0]))
        for turn, pair in enumerate(members):
            keyed.append((turn, stable_hash(str(seed), "scene", *scene), pair))
    keyed.sort(key=lambda entry: entry[:2])
    return [pair for _, _, pair in keyed]


def difficulties(grouped: Sequence[tuple[str, Fact]], stress: bool) -> dict[str, str]:
    """Group id -> "easy", "medium" or "hard": tercile of the smallest margin over the required one within the task.

    "stress" for everything where margins were only recorded (`benchmark-validity` 3.4, last line).
    """
    if stress:
        return {name: "stress" for name, _ in grouped}
    ranked = sorted((fact.margin, name) for name, fact in grouped)
    names = ("hard", "medium", "easy")
    return {name: names[3 * rank // max(len(ranked), 1)] for rank, (_, name) in enumerate(ranked)}


def balanced_letters(cell: Sequence[Planned], seed: int) -> list[Planned]:
    """Put every truth at a letter: ranked by hash within task, source and form, one permutation per block of four."""
    by_source: dict[str, list[Planned]] = defaultdict(list)
    for entry in cell:
        by_source[entry.fact.dataset].append(entry)
    placed = []
    for source, members in sorted(by_source.items()):
        members.sort(key=lambda p: stable_hash("letter", p.group_id, p.question_type))
        where = (members[0].fact.task, source, members[0].question_type)
        for block in range(0, len(members), len(LETTERS)):
            letters = rng_for(seed, "letters", *where, str(block)).permutation(len(LETTERS))
            for entry, letter in zip(members[block : block + len(LETTERS)], letters, strict=False):
                if entry.options is None:
                    raise ValueError(f"{entry.group_id}: a multi-choice question without options")
                placed.append(replace(entry, options=truth_at(entry.options, int(letter))))
    return placed


def truth_at(options: OptionSet, letter: int) -> OptionSet:
    """The same set with the truth moved to that place by one exchange; the others keep their random order."""
    order = list(range(len(options.options)))
    order[options.truth], order[letter] = order[letter], order[options.truth]
    members: tuple[Candidate, ...] = tuple(options.options[i] for i in order)
    return OptionSet(members, letter, options.strategy, tuple(options.separations[i] for i in order))


def _with_options(entry: Planned, task: Task, recipe: Recipe) -> Planned:
    if entry.question_type != "multi-choice":
        return entry
    rng = rng_for(recipe.seed, "options", entry.group_id, recipe.strategy, str(recipe.distractor_seed))
    options = strategies[recipe.strategy].options(entry.fact, task, rng, len(LETTERS), recipe.margins)
    return replace(entry, options=options)


def letter_counts(chosen: Iterable[Planned]) -> dict[str, list[int]]:
    """Task and source -> how often each letter is the answer."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(LETTERS))
    for entry in chosen:
        if entry.options is not None:
            counts[f"{entry.fact.task}/{entry.fact.dataset}"][entry.options.truth] += 1
    return dict(sorted(counts.items()))
