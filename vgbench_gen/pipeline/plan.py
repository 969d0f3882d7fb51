"""Which facts are asked, in which form, with which letters. Planning is cheap and global, and it opens no picture.

Options come before words, and letters before pictures. Nothing here depends on the order of files or of workers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import QuestionType
from vgbench_gen.pipeline.pick import Picker
from vgbench_gen.pipeline.question_plan import Key, QuestionPlan
from vgbench_gen.pipeline.quotas import ITEMS, Targets, TaskScene, Total, count_room, solve
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


def read_targets(
    recipe: Recipe,
    formats: Mapping[str, Forms],
    scenes: Iterable[tuple[str, str]],
    supply: Mapping[str, Mapping[frozenset[QuestionType], int]],
) -> Targets:
    """A recipe's totals as the solver takes them.

    Args:
        formats: the forms of each task that is asked.
        scenes: (source, id) of all scenes with facts; a source's share per scene follows from their number.
        supply: task -> forms that a fact can be asked in -> how many such facts there are. A recipe without totals
            shares them out evenly among the forms.
    """
    totals: dict[Total, int]
    if recipe.items:
        totals = {("task", task, form): n for task, forms in recipe.items.items() for form, n in forms.items() if n}
    elif recipe.items_per_task:
        totals = {("task", task, ""): recipe.items_per_task for task in formats}
    else:
        totals = {
            ("task", task, form): min(recipe.items_per_cell, ITEMS[form] * count)
            for task, forms in formats.items()
            for form, count in _share_facts(supply.get(task, {}), forms, recipe.limits.forms_per_fact).items()
        }
    per_task: Counter[str] = Counter()
    for (_, task, _), count in totals.items():
        per_task[task] += count
    caps = {}
    for source, number in Counter(source for source, _ in set(scenes)).items():
        for task, total in per_task.items():
            most = recipe.limits.scene_items(total, number)
            if most < total:
                caps[task, source] = most
    totals |= {("source", name, ""): n for name, n in recipe.sources.items()}
    totals |= {("split", name, ""): n for name, n in recipe.splits.items()}
    return Targets(totals, caps, recipe.limits.forms_per_fact)


def _share_facts(counts: Mapping[frozenset[QuestionType], int], forms: Forms, per_fact: int) -> dict[QuestionType, int]:
    """Facts for each form: alike, as far as there are facts that can be asked so."""
    room = {form: count_room(counts, [form], per_fact) for form in forms}
    left, shares = count_room(counts, forms, per_fact), {}
    for done, form in enumerate(sorted(forms, key=lambda form: room[form])):
        shares[form] = min(room[form], -(-left // (len(forms) - done)))
        left -= shares[form]
    return shares


def choose(plans: Iterable[QuestionPlan], recipe: Recipe, formats: Mapping[str, Forms]) -> Plan:
    """Decide on every fact and form; each ends in exactly one of the two lists of the plan.

    Totals that the facts cannot fill are filled as far as they can be; see `shortfall` for what is missing.
    """
    plans = sorted((p for p in plans if p.task in formats), key=lambda p: (p.task, p.source, p.scene_id, p.group_id))
    facts: dict[str, list[QuestionPlan]] = defaultdict(list)
    for plan in plans:
        facts[plan.group_id].append(plan)
    seed = str(recipe.seed)
    level = grade_difficulty(plans, stress=recipe.margins == "recorded")
    places: dict[TaskScene, list[list[QuestionPlan]]] = defaultdict(list)
    for group in sorted(facts, key=lambda group: hash_stably(seed, "turn", group)):
        if forms := [plan for plan in facts[group] if not plan.rejection_reason]:
            p = forms[0]
            order = hash_stably(seed, "scene", p.task, p.source, p.scene_id)
            places[TaskScene(p.task, order, p.source, p.split, p.scene_id)].append(forms)
    supply = {
        place: Counter(frozenset(plan.question_type for plan in forms) for forms in members)
        for place, members in places.items()
    }
    by_task: dict[str, Counter[frozenset[QuestionType]]] = defaultdict(Counter)
    for place, counts in supply.items():
        by_task[place.task] += counts
    targets = read_targets(recipe, formats, {(plan.source, plan.scene_id) for plan in plans}, by_task)
    picker = Picker(
        level, recipe.difficulty.shares if recipe.difficulty else None, recipe.pairs, targets.forms_per_fact
    )
    chosen: list[QuestionPlan] = []
    for place, wanted in sorted(solve(supply, targets).items()):
        chosen += picker.pick(places[place], wanted)
    chosen.sort(key=lambda p: (p.task, p.question_type, p.group_id, p.side))
    asked = {plan.key for plan in chosen}
    times = Counter(name for name, _ in asked)
    unchosen = [
        (
            plan,
            plan.rejection_reason
            or ("asked_otherwise" if times[plan.group_id] >= targets.forms_per_fact else "cell_full"),
        )
        for plan in plans
        if plan.key not in asked
    ]
    return Plan(deal_letters(chosen, recipe.seed), unchosen, targets)


def grade_difficulty(plans: Iterable[QuestionPlan], stress: bool) -> dict[Key, str]:
    """Group id and form -> "easy", "medium" or "hard": tercile of the lead under noise within task, sub-kind and form.

    "stress" for everything where margins were only recorded (`docs/validity.md#margins-between-all-pairs`).

    Args:
        plans: of any facts and forms; those that are not asked have no level.
        stress: whether the recipe only records margins.
    """
    by_cell: dict[tuple[str, str, str], list[QuestionPlan]] = defaultdict(list)
    for plan in plans:
        if not plan.rejection_reason:
            by_cell[plan.task, plan.ask, plan.question_type].append(plan)
    names = ("hard", "medium", "easy")
    return {
        plan.key: "stress" if stress else names[3 * rank // len(members)]
        for members in by_cell.values()
        for rank, plan in enumerate(sorted(members, key=lambda plan: (plan.lead, plan.group_id)))
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
    placed, form = list(chosen), "multi-choice"
    for (task, source, size), members in sorted(by_cell.items()):
        members.sort(key=lambda k: hash_stably(*filter(None, ("letter", chosen[k].group_id, form, chosen[k].side))))
        for block in range(0, len(members), size):
            letters = rng_for(seed, "letters", task, source, form, str(block)).permutation(size)
            for k, letter in zip(members[block : block + size], letters, strict=False):
                placed[k] = replace(chosen[k], letter=int(letter))
    return placed


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
