"""Which facts are asked, in which form, with which letters. Planning is cheap and global, and it opens no picture.

Options come before words, and letters before pictures. Nothing here depends on the order of files or of workers.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import QuestionType
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.quotas import ITEMS, Targets, TaskScene, Total, count_room, solve
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.base import Task

Forms = tuple[QuestionType, ...]
# Open-ended ones take their facts first: they need answers that lie apart. Judgments take theirs before choices: facts
# that no set of options suits, as their truths stand out, would else be half of what is left for judgments.
_TURNS: tuple[QuestionType, ...] = ("open-ended", "judgment", "multi-choice")


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
    level = grade_difficulty((forms[0] for forms in facts.values()), stress=recipe.margins == "recorded")
    places: dict[TaskScene, list[list[QuestionPlan]]] = defaultdict(list)
    for group in sorted(facts, key=lambda group: hash_stably(seed, "turn", group)):
        # A fact that no form takes counts as one of its level, and nowhere else.
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


# --- which facts of a scene, once it is known how many --------------------------------------------------------------


class Spread:
    """Keeps open-ended answers apart, so that no constant is right often (`docs/validity.md#audit`).

    Answers are compared by ratio: a guess is right for those within `ratio` of it (delta = 1.25).
    """

    ratio = 1.25
    _bins = 16  # that one guess is right for; a bin is one of 2.8 %

    def __init__(self) -> None:
        self._taken: dict[str, Counter[int]] = defaultdict(Counter)

    def measure_crowding(self, kind: str, value: float) -> float:
        """How many answers of this kind, taken so far, one guess is right for that is right for a value as well; plus a
        fraction that grows with their number on average over such guesses. 0 for values that are not positive."""
        if not value > 0:
            return 0.0
        taken, place, reach = self._taken[kind], self._find_bin(value), self._bins
        counts = [0, *itertools.accumulate(taken[k] for k in range(place - reach + 1, place + reach))]
        right = [counts[k + reach] - counts[k] for k in range(reach)]
        mean = sum(right) / reach
        return max(right) + mean / (1 + mean)

    def take(self, kind: str, value: float) -> None:
        """Count one; values that are not positive are left out."""
        if value > 0:
            self._taken[kind][self._find_bin(value)] += 1

    def _find_bin(self, value: float) -> int:
        return math.floor(math.log(value) * self._bins / (2 * math.log(self.ratio)))


class Picker:
    """Picks the facts of one scene after the other, and keeps what holds over all of them: shares of the levels of
    difficulty, open-ended answers apart, and the share of pairs.

    Args:
        level: group id -> level of difficulty.
        shares: of the levels, per task and form; None where any will do.
        pairs: share of the items of a task and form, judgments aside, that should stand in pairs.
        per_fact: most forms of one fact.
    """

    def __init__(
        self, level: Mapping[str, str], shares: Mapping[str, float] | None, pairs: float, per_fact: int
    ) -> None:
        self._level, self._shares, self._pairs, self._per_fact = level, shares, pairs, per_fact
        self._taken: dict[tuple[str, QuestionType], Counter[str]] = defaultdict(Counter)
        # What a scene is due and cannot give, or gives by rounding up, is carried over to the next one.
        self._due: dict[tuple[str, QuestionType], float] = defaultdict(lambda: 0.5)
        self._spread = Spread()

    def pick(self, facts: Sequence[Sequence[QuestionPlan]], wanted: Mapping[QuestionType, int]) -> list[QuestionPlan]:
        """As many questions per form as wanted; no fact is asked in more than `per_fact` forms.

        A fact that is asked from both sides gives two questions. While pairs are due, facts with another side come
        first; then, if open-ended, those with the least crowded answer; then those of the level that misses most.

        Args:
            facts: of one task in one scene, each in all forms in which it can be asked; earlier ones are preferred.
            wanted: how many questions per form.

        Raises:
            ValueError: it is not possible, see `quotas`.
        """
        can = [{plan.question_type: plan for plan in forms} for forms in facts]
        rest = [min(self._per_fact, len(forms)) for forms in can]
        left = {form: wanted[form] for form in _TURNS if wanted.get(form)}
        room = Counter((frozenset(forms), count) for forms, count in zip(can, rest, strict=True))
        picked: list[QuestionPlan] = []
        for form in list(left):
            key = facts[0][0].task, form
            if form != "judgment":
                self._due[key] += self._pairs * left[form] / 2
            while left[form]:
                pairs_due = left[form] >= 2 and self._due[key] >= 1
                able = [k for k, forms in enumerate(can) if form in forms and rest[k]]
                left[form] -= 1
                for k in self._rank(able, [can[k][form] for k in able], pairs_due):
                    before, after = (frozenset(can[k]), rest[k]), (frozenset(can[k].keys() - {form}), rest[k] - 1)
                    room[before] -= 1
                    room[after] += 1
                    if _is_possible(room, left):
                        break
                    room[before] += 1
                    room[after] -= 1
                else:
                    raise ValueError(
                        f"{dict(wanted)} cannot be picked of {len(facts)} facts, {self._per_fact} forms each"
                    )
                plan = can[k].pop(form)
                rest[k] -= 1
                plan = replace(plan, difficulty=self._level.get(plan.group_id, ""))
                if pairs_due and plan.counterpart_kind:
                    self._due[key] -= 1
                    left[form] -= 1
                    plan = replace(plan, paired=True)
                    picked.append(self._take(replace(plan, side=plan.counterpart_kind)))
                picked.append(self._take(plan))
        return picked

    def _rank(self, places: Sequence[int], plans: Sequence[QuestionPlan], pairs_due: bool) -> list[int]:
        taken = self._taken[plans[0].task, plans[0].question_type] if plans else Counter()
        ranked = []
        for k, plan in zip(places, plans, strict=True):
            level = self._level.get(plan.group_id, "")
            lacking = self._shares.get(level, 0.0) * (taken.total() + 1) - taken[level] if self._shares else 0.0
            crowd = self._spread.measure_crowding(_name_kind(plan), plan.value) if _is_open(plan) else 0.0
            ranked.append((pairs_due and not plan.counterpart_kind, crowd, -lacking, k))
        return [k for *_, k in sorted(ranked)]

    def _take(self, plan: QuestionPlan) -> QuestionPlan:
        self._taken[plan.task, plan.question_type][plan.difficulty] += 1
        if _is_open(plan):
            self._spread.take(_name_kind(plan), plan.value)
        return plan


def _is_open(plan: QuestionPlan) -> bool:
    return plan.question_type == "open-ended"


def _name_kind(plan: QuestionPlan) -> str:
    return f"{plan.task}/{plan.ask}"


def _is_possible(supply: Mapping[tuple[frozenset[QuestionType], int], int], left: Mapping[QuestionType, int]) -> bool:
    """Whether facts that can still take some forms, some times each, have room for what is left (R(A) of `quotas`)."""
    for size in range(1, len(left) + 1):
        for chosen in itertools.combinations(left, size):
            wanted = sum(left[form] for form in chosen)
            if wanted > sum(n * min(k, len(can.intersection(chosen))) for (can, k), n in supply.items()):
                return False
    return True


# --- letters, levels and counts -------------------------------------------------------------------------------------


def grade_difficulty(facts: Iterable[QuestionPlan], stress: bool) -> dict[str, str]:
    """Group id -> "easy", "medium" or "hard": tercile of the smallest margin over the required one within the task;
    "stress" for everything where margins were only recorded (`docs/validity.md#margins-between-all-pairs`).

    facts: one plan of each fact, in whatever form.
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
