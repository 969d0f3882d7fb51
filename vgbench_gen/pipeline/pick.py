"""Which facts of a scene are asked in which form, once it is known how many."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from vgbench_gen.core.types import QuestionType
from vgbench_gen.pipeline.question_plan import QuestionPlan

# Open-ended ones take their facts first: they need answers that lie apart. Judgments take theirs before choices: facts
# that no set of options suits, as their truths stand out, would else be half of what is left for judgments.
_TURNS: tuple[QuestionType, ...] = ("open-ended", "judgment", "multi-choice")


class Levels:
    """Keeps the levels of difficulty near their shares, per task and form.

    shares: level -> share that is wanted; None where any will do.
    """

    def __init__(self, shares: Mapping[str, float] | None) -> None:
        self._shares = shares
        self._taken: dict[tuple[str, QuestionType], Counter[str]] = defaultdict(Counter)

    def count_missing(self, task: str, form: QuestionType, level: str) -> float:
        """How many facts of this level are missing; the level that misses most is taken first."""
        if self._shares is None:
            return 0.0
        taken = self._taken[task, form]
        return self._shares.get(level, 0.0) * (taken.total() + 1) - taken[level]

    def take(self, task: str, form: QuestionType, level: str, count: int = 1) -> None:
        """Count one, or take it back with -1."""
        self._taken[task, form][level] += count


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


class Pairing:
    """Which dealt facts are asked from both of their sides, and which give up their place for it.

    share: of the items of a task and form that should stand in pairs. What one scene is due and cannot give, or gives
    by rounding up, is carried over to the next one, so that the share holds over all of them. A scene with a single
    such fact has no room for a pair.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._due: dict[tuple[str, QuestionType], float] = defaultdict(lambda: 0.5)

    def find_exchanges(
        self, task: str, form: QuestionType, facts: Sequence[tuple[bool, str]], levels: Levels
    ) -> list[tuple[int, int]]:
        """(fact that is asked twice, fact that is not asked), as many as are due; the number of items stays.

        Args:
            facts: dealt facts of a scene, whether each has another side, and its level of difficulty; earlier ones
                are preferred. Where it can be, the one that is not asked has the level of the one asked twice.
            levels: of the task so far; told where it cannot.
        """
        self._due[task, form] += self._share * len(facts) / 2
        free = list(range(len(facts)))
        found: list[tuple[int, int]] = []
        for alike in (True, False):
            for twice in [k for k in free if facts[k][0]]:
                rest = [k for k in free if k != twice and (not alike or facts[k][1] == facts[twice][1])]
                if self._due[task, form] < 1 or not rest or twice not in free:
                    continue
                found.append((twice, rest[-1]))
                self._due[task, form] -= 1
                for k, count in ((twice, 1), (rest[-1], -1)):
                    free.remove(k)
                    levels.take(task, form, facts[k][1], count)
        return found


def deal(
    task: str,
    facts: Sequence[Sequence[QuestionPlan]],
    level: Mapping[str, str],
    wanted: Mapping[QuestionType, int],
    per_fact: int,
    levels: Levels,
    spread: Spread,
) -> list[QuestionPlan]:
    """Choose facts and forms so that every form gets what is wanted and no fact is asked in more than `per_fact`.

    Args:
        task: whose facts these are.
        facts: each in all forms in which it can be asked, at least one; earlier facts are preferred.
        level: group id -> level of difficulty.
        wanted: how many questions per form; must be possible, see `quotas`.
        per_fact: most forms of one fact.
        levels, spread: of what was dealt so far; open-ended answers are dealt first and prefer the value that is least
            crowded, then the level that is missing.

    Raises:
        ValueError: it is not possible.
    """
    can = [{plan.question_type: plan for plan in forms} for forms in facts]
    level_of = [level.get(forms[0].group_id, "") for forms in facts]
    names = set(level_of)
    rest = [min(per_fact, len(forms)) for forms in can]
    left = {form: wanted[form] for form in _TURNS if wanted.get(form)}
    supply = Counter((frozenset(forms), count) for forms, count in zip(can, rest, strict=True))
    dealt: list[QuestionPlan] = []
    for form in list(left):
        for _ in range(wanted[form]):
            able = [k for k, forms in enumerate(can) if form in forms and rest[k]]
            behind = {name: levels.count_missing(task, form, name) for name in names}
            crowd = dict.fromkeys(able, 0.0)
            if form == "open-ended":
                crowd = {k: spread.measure_crowding(f"{task}/{can[k][form].ask}", can[k][form].value) for k in able}
            able.sort(key=lambda k: (crowd[k], -behind[level_of[k]]))
            left[form] -= 1
            for k in able:
                before, after = (frozenset(can[k]), rest[k]), (frozenset(can[k].keys() - {form}), rest[k] - 1)
                supply[before] -= 1
                supply[after] += 1
                if _is_possible(supply, left):
                    plan = can[k].pop(form)
                    rest[k] -= 1
                    dealt.append(plan)
                    levels.take(task, form, level_of[k])
                    if form == "open-ended":
                        spread.take(f"{task}/{plan.ask}", plan.value)
                    break
                supply[before] += 1
                supply[after] -= 1
            else:
                raise ValueError(f"{dict(wanted)} cannot be dealt out to {len(facts)} facts, {per_fact} forms each")
    return dealt


def _is_possible(supply: Mapping[tuple[frozenset[QuestionType], int], int], left: Mapping[QuestionType, int]) -> bool:
    """Whether facts that can still take some forms, some times each, hold what is left (R(A) of `quotas`)."""
    for size in range(1, len(left) + 1):
        for chosen in itertools.combinations(left, size):
            wanted = sum(left[form] for form in chosen)
            if wanted > sum(n * min(k, len(can.intersection(chosen))) for (can, k), n in supply.items()):
                return False
    return True
