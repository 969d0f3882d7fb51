"""Which facts are asked, in which form, with which letters. Planning is cheap and global, and it opens no picture.

Options come before words, and letters before pictures. Nothing here depends on the order of files or of workers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import QuestionType
from vgbench_gen.pipeline.pick import Levels, Pairing, Spread, deal
from vgbench_gen.pipeline.question_plan import Key, QuestionPlan
from vgbench_gen.pipeline.quotas import ITEMS, QuotaScene, SceneSupply, Targets, solve
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.base import Task

Forms = tuple[QuestionType, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be asked and what was wanted. Every fact and form is either chosen or has a reason why it is not."""

    chosen: list[QuestionPlan]
    """The questions to write, sorted by task, form, group and side."""
    unchosen: list[tuple[QuestionPlan, str]]
    """The others, each with the reason."""
    targets: Targets


def list_forms(tasks: Sequence[Task]) -> dict[str, Forms]:
    """Task -> the forms it has."""
    return {task.name: task.formats for task in tasks}


def read_targets(recipe: Recipe, formats: Mapping[str, Forms], scenes: Iterable[tuple[str, str]]) -> Targets:
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


def choose(plans: Iterable[QuestionPlan], recipe: Recipe, formats: Mapping[str, Forms]) -> Plan:
    """Decide on every fact and form; each ends in exactly one of the two lists of the plan.

    Totals that the facts cannot fill are filled as far as they can be; see `shortfall` for what is missing.
    """
    plans = sorted((p for p in plans if p.task in formats), key=lambda p: (p.task, p.source, p.scene_id, p.group_id))
    facts: dict[str, list[QuestionPlan]] = defaultdict(list)
    for plan in plans:
        facts[plan.group_id].append(plan)
    level = grade_difficulty((forms[0] for forms in facts.values()), stress=recipe.margins == "recorded")
    by_scene: dict[tuple[str, QuotaScene], list[list[QuestionPlan]]] = defaultdict(list)
    for forms in facts.values():
        first = forms[0]
        order = hash_stably(str(recipe.seed), "scene", first.task, first.source, first.scene_id)
        scene = QuotaScene(first.source, first.split, first.scene_id, order)
        # A fact that no form takes still counts as one of its scene and of its level.
        by_scene[first.task, scene].append([plan for plan in forms if not plan.rejection_reason])
    targets = read_targets(recipe, formats, {(plan.source, plan.scene_id) for plan in plans})
    supplies = [
        SceneSupply(task, scene, Counter(frozenset(p.question_type for p in forms) for forms in members if forms))
        for (task, scene), members in by_scene.items()
    ]
    wanted: dict[tuple[str, QuotaScene], dict[QuestionType, int]] = defaultdict(dict)
    for cell, count in solve(supplies, targets).items():
        wanted[cell.task, cell.scene][cell.form] = count
    chosen, gave_way = _deal_scenes(by_scene, wanted, level, recipe)
    chosen.sort(key=lambda p: (p.task, p.question_type, p.group_id, p.side))
    unchosen = _list_unchosen(plans, chosen, targets, gave_way)
    return Plan(deal_letters(chosen, recipe.seed), unchosen, targets)


def _deal_scenes(
    by_scene: Mapping[tuple[str, QuotaScene], list[list[QuestionPlan]]],
    wanted: Mapping[tuple[str, QuotaScene], Mapping[QuestionType, int]],
    level: Mapping[str, str],
    recipe: Recipe,
) -> tuple[list[QuestionPlan], set[Key]]:
    """(the questions that are asked, those that gave up their place for the other half of a pair)."""
    levels = Levels(recipe.difficulty.shares if recipe.difficulty else None)
    pairing, spread = Pairing(recipe.pairs), Spread()
    chosen: list[QuestionPlan] = []
    gave_way: set[Key] = set()
    for (task, scene), members in sorted(by_scene.items(), key=lambda pair: (pair[0][0], pair[0][1].order)):
        if (task, scene) not in wanted:
            continue
        facts = [forms for forms in members if forms]
        facts.sort(key=lambda forms: hash_stably(str(recipe.seed), "turn", forms[0].group_id))
        limit = recipe.limits.forms_per_fact
        dealt = deal(task, facts, level, wanted[task, scene], limit, levels, spread)
        for form in ITEMS:
            entries = [replace(p, difficulty=level[p.group_id]) for p in dealt if p.question_type == form]
            able = [(bool(entry.counterpart_kind), entry.difficulty) for entry in entries]
            for twice, none in pairing.find_exchanges(task, form, able, levels) if form != "judgment" else ():
                gave_way.add(entries[none].key)
                entries[none] = replace(entries[twice], side=entries[twice].counterpart_kind, paired=True)
                entries[twice] = replace(entries[twice], paired=True)
            chosen += entries
    return chosen, gave_way


def _list_unchosen(
    plans: Sequence[QuestionPlan], chosen: Sequence[QuestionPlan], targets: Targets, gave_way: set[Key]
) -> list[tuple[QuestionPlan, str]]:
    asked = {plan.key for plan in chosen}
    times = Counter(plan.group_id for plan in chosen if not plan.side)
    rest = []
    for plan in plans:
        if plan.key in asked:
            continue
        reason = plan.rejection_reason
        if not reason and plan.key in gave_way:
            reason = "pair_took_place"
        if not reason:
            reason = "asked_otherwise" if times[plan.group_id] >= targets.forms_per_fact else "cell_full"
        rest.append((plan, reason))
    return rest


def grade_difficulty(facts: Iterable[QuestionPlan], stress: bool) -> dict[str, str]:
    """Group id -> "easy", "medium" or "hard": tercile of the smallest margin over the required one within the task.

    "stress" for everything where margins were only recorded (`docs/validity.md#margins-between-all-pairs`).

    Args:
        facts: one plan of each fact, in whatever form.
        stress: whether the recipe only records margins.
    """
    if stress:
        return {fact.group_id: "stress" for fact in facts}
    by_task: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for fact in facts:
        by_task[fact.task].append((fact.margin, fact.group_id))
    names = ("hard", "medium", "easy")
    return {
        name: names[3 * rank // len(ranked)]
        for ranked in by_task.values()
        for rank, (_, name) in enumerate(sorted(ranked))
    }


def deal_letters(chosen: Sequence[QuestionPlan], seed: int) -> list[QuestionPlan]:
    """The same questions with a letter for every multi-choice one.

    They are ranked by hash within task, source and number of options, and each block of as many questions as there are
    options gets one permutation of the letters. The two of a pair are ranked apart.
    """
    by_cell: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for k, plan in enumerate(chosen):
        if plan.question_type == "multi-choice":
            by_cell[plan.task, plan.source, plan.places].append(k)
    placed = list(chosen)
    for (task, source, size), members in sorted(by_cell.items()):
        members.sort(key=lambda k: _letter_rank(chosen[k]))
        for block in range(0, len(members), size):
            letters = rng_for(seed, "letters", task, source, "multi-choice", str(block)).permutation(size)
            for k, letter in zip(members[block : block + size], letters, strict=False):
                placed[k] = replace(chosen[k], letter=int(letter))
    return placed


def _letter_rank(plan: QuestionPlan) -> str:
    side = (plan.side,) if plan.side else ()
    return hash_stably("letter", plan.group_id, "multi-choice", *side)


def letter_counts(chosen: Iterable[QuestionPlan]) -> dict[str, list[int]]:
    """Task and source -> how often each letter is the answer."""
    return count_letters((f"{p.task}/{p.source}", p.places, p.letter) for p in chosen if p.letter is not None)


def count_letters(asked: Iterable[tuple[str, int, int]]) -> dict[str, list[int]]:
    """Cell -> how often each letter is the answer.

    asked: (cell, number of options, place of the right one) of each question.
    """
    counts: dict[str, list[int]] = {}
    for cell, options, place in asked:
        found = counts.setdefault(cell, [])
        found += [0] * (max(options, place + 1) - len(found))
        found[place] += 1
    return dict(sorted(counts.items()))


def difficulty_counts(chosen: Iterable[QuestionPlan]) -> dict[str, dict[str, int]]:
    """Task and form -> items per level."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for plan in chosen:
        counts[f"{plan.task}/{plan.question_type}"][plan.difficulty] += ITEMS[plan.question_type]
    return {key: dict(sorted(levels.items())) for key, levels in sorted(counts.items())}


def pair_counts(chosen: Iterable[QuestionPlan]) -> dict[str, int]:
    """Task and form -> pairs."""
    return dict(sorted(Counter(f"{plan.task}/{plan.question_type}" for plan in chosen if plan.side).items()))
