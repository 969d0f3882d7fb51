"""Two parts of the answer with two values each: the four options are their combinations.

Every value of a part stands in two options, so no option is the middle one, the odd one or the one that shares most
with the others, and the wrong letter says which part of the geometry failed
(`docs/validity.md#factorial-sets`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vgbench_gen.core.types import LETTERS, Candidate, Fact
from vgbench_gen.distractors.base import AnswerSpace, OptionSet, Strategy, leave_out, strategies

_WRONG, _AND = "wrong:", "+"


@strategies.register("factorial")
class Factorial(Strategy):
    """The combinations that the task proposes (`AnswerSpace.factor_pairs`); it names what each gets wrong."""

    name = "factorial"
    balanced = True

    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        """See `Strategy.propose`; nothing is proposed where a set has more options than the four combinations."""
        if count > len(LETTERS):
            return
        for pair in space.factor_pairs(fact, rng):
            first, second = pair.parts
            wrong = ((), (second,), (first,), (first, second))
            members = [
                replace(option, key=_WRONG + _AND.join(parts)) if parts else option
                for option, parts in zip((fact.truth_candidate, *pair.others), wrong, strict=True)
            ]
            yield leave_out(members, 0, count, rng)


def list_wrong_parts(options: OptionSet) -> tuple[str, ...]:
    """Per option the parts of the answer that it gets wrong, joined by "+" ("" for the right one), such as
    "depth+yaw"; empty for sets of another strategy."""
    if options.strategy != Factorial.name:
        return ()
    return tuple(
        "" if place == options.truth else option.key.removeprefix(_WRONG)
        for place, option in enumerate(options.options)
    )
