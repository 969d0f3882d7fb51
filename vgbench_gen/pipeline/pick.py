"""Which facts of a scene are asked in which form, once it is known how many."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vgbench_gen.core.types import QuestionType
from vgbench_gen.pipeline.question_plan import QuestionPlan

# Open-ended ones take their facts first: they need answers that lie apart. Judgments take theirs before choices: facts
# that no set of options suits, as their truths stand out, would else be half of what is left for judgments.
_TURNS: tuple[QuestionType, ...] = ("open-ended", "judgment", "multi-choice")


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
