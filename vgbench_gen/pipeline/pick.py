"""Which facts of a scene are asked in which form, once it is known how many."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from vgbench_gen.core.types import QUESTION_TYPES, QuestionType


class Levels:
    """Keeps the levels of difficulty near their shares, per task and form.

    shares: level -> share that is wanted; None where any will do.
    """

    def __init__(self, shares: Mapping[str, float] | None) -> None:
        self._shares = shares
        self._taken: dict[tuple[str, QuestionType], Counter[str]] = defaultdict(Counter)

    def behind(self, task: str, form: QuestionType, level: str) -> float:
        """How many facts of this level are missing; the level that misses most is taken first."""
        if self._shares is None:
            return 0.0
        taken = self._taken[task, form]
        return self._shares.get(level, 0.0) * (taken.total() + 1) - taken[level]

    def take(self, task: str, form: QuestionType, level: str) -> None:
        """Count one."""
        self._taken[task, form][level] += 1


def deal(
    task: str,
    facts: Sequence[tuple[Sequence[QuestionType], str]],
    wanted: Mapping[QuestionType, int],
    per_fact: int,
    levels: Levels,
) -> list[tuple[int, QuestionType]]:
    """(fact, form) so that every form gets what is wanted and no fact more than `per_fact` forms.

    Args:
        facts: forms that each can be asked in, and its level of difficulty; earlier ones are preferred.
        wanted: how many questions per form; must be possible, see `quotas`.
        levels: of the task so far.

    Raises:
        ValueError: it is not possible.
    """
    can = [set(forms) for forms, _ in facts]
    names = {level for _, level in facts}
    rest = [min(per_fact, len(forms)) for forms in can]
    left = {form: wanted[form] for form in QUESTION_TYPES if wanted.get(form)}
    stock = Counter((frozenset(forms), count) for forms, count in zip(can, rest, strict=True))
    dealt: list[tuple[int, QuestionType]] = []
    for form in list(left):
        for _ in range(wanted[form]):
            able = [k for k, forms in enumerate(can) if form in forms and rest[k]]
            behind = {name: levels.behind(task, form, name) for name in names}
            able.sort(key=lambda k: behind[facts[k][1]], reverse=True)
            left[form] -= 1
            for k in able:
                before, after = (frozenset(can[k]), rest[k]), (frozenset(can[k] - {form}), rest[k] - 1)
                stock[before] -= 1
                stock[after] += 1
                if _possible(stock, left):
                    can[k].discard(form)
                    rest[k] -= 1
                    dealt.append((k, form))
                    levels.take(task, form, facts[k][1])
                    break
                stock[before] += 1
                stock[after] -= 1
            else:
                raise ValueError(f"{dict(wanted)} cannot be dealt out to {len(facts)} facts, {per_fact} forms each")
    return dealt


def _possible(stock: Mapping[tuple[frozenset[QuestionType], int], int], left: Mapping[QuestionType, int]) -> bool:
    """Whether facts that can still take some forms, some times each, hold what is left (R(A) of `quotas`)."""
    for size in range(1, len(left) + 1):
        for chosen in itertools.combinations(left, size):
            wanted = sum(left[form] for form in chosen)
            if wanted > sum(n * min(k, len(can.intersection(chosen))) for (can, k), n in stock.items()):
                return False
    return True
