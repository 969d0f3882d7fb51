"""What a distractor strategy is, and the gates that no strategy can avoid.

A strategy sees a fact, its candidates and the task's own answer space; never a scene. The base class, not the
strategy, enforces margins between *all* pairs, ceilings, the validity of every option and that no two options print
alike (`benchmark-validity` 3.3).
"""

from __future__ import annotations

import abc
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.registry import Registry
from vgbench_gen.core.types import BoolArray, Candidate, Fact, FloatArray, IntArray

Margins = Literal["enforced", "recorded"]
MAX_PROPOSALS = 64  # a strategy that fails this often has no set to offer; more tries only cost time


class AnswerSpace(Protocol):
    """What a task tells strategies about its answers. Values are the task's own arrays, always as printed."""

    def rounded(self, value: FloatArray) -> FloatArray:
        """The value that a reader of the printed option gets back."""

    def separation(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Distance over the required margin: two options may stand together when this is >= 1."""

    def spread(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Distance over the ceiling: two options may stand together when this is <= 1."""

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """Whether the value is a member of the family (a rotation, a cuboid, a positive depth, inside the image)."""

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """`count` values around the truth and the truth's place among them; None where options come from the pool."""

    def perturbed(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """One wrong value by the paper's noise rule, or None where the paper has none for this task."""

    def sampled(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """One wrong value by the paper's rule of random values of the same kind, or None to draw from the pool."""


@dataclass(frozen=True, slots=True, eq=False)
class OptionSet:
    """Options in random order with the place of the truth.

    separations: per option, distance from the truth over the margin (0 for the truth itself).
    """

    options: tuple[Candidate, ...]
    truth: int
    strategy: str
    separations: tuple[float, ...]


class Strategy(abc.ABC):
    """One way of choosing wrong options."""

    name: str

    @abc.abstractmethod
    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        """Option sets with the truth's place, best first; the base takes the first that passes every gate."""

    def options(
        self,
        fact: Fact,
        space: AnswerSpace,
        rng: np.random.Generator,
        count: int = 4,
        margins: Margins = "enforced",
    ) -> OptionSet:
        """The first proposed set that passes all gates, shuffled.

        margins="recorded" keeps validity and distinct print but only records separations; such items belong to a
        labelled stress set (`benchmark-validity` 3.4), never to a headline.

        Raises:
            TooFewOptionsError: no proposal passed; the detail counts why.
        """
        refused: Counter[str] = Counter()
        for members, truth in itertools.islice(self.propose(fact, space, rng, count), MAX_PROPOSALS):
            problem = set_problem(members, count, fact, space, margins)
            if problem:
                refused[problem] += 1
                continue
            order = rng.permutation(len(members))
            shuffled = tuple(members[i] for i in order)
            place = int(np.flatnonzero(order == truth)[0])
            separations = tuple(
                0.0 if i == place else float(space.separation(shuffled[place], option, fact))
                for i, option in enumerate(shuffled)
            )
            return OptionSet(shuffled, place, self.name, separations)
        tried = ", ".join(f"{reason} x{n}" for reason, n in sorted(refused.items())) or "nothing to propose"
        raise TooFewOptionsError("too_few_options", f"{self.name} on {fact.task} {fact.key}: {tried}")


def set_problem(
    members: Sequence[Candidate], count: int, fact: Fact, space: AnswerSpace, margins: Margins = "enforced"
) -> str:
    """Why a set may not be asked, as a machine-readable reason, or "" when it may."""
    if len(members) != count:
        return "wrong_count"
    if not all(space.valid(member, fact) for member in members):
        return "invalid_member"
    problems = (pair_problem(a, b, fact, space, margins) for a, b in itertools.combinations(members, 2))
    return next((problem for problem in problems if problem), "")


def pair_problem(a: Candidate, b: Candidate, fact: Fact, space: AnswerSpace, margins: Margins = "enforced") -> str:
    """Why two valid options may not stand together, or "" when they may."""
    if a.value.shape == b.value.shape and a.value.size and np.array_equal(a.value, b.value):
        return "printed_alike"
    if margins == "recorded":
        return ""
    # Both ways round: a metric may measure in pixels of the first one's image.
    if space.separation(a, b, fact) < 1 or space.separation(b, a, fact) < 1:
        return "margin"
    if space.spread(a, b, fact) > 1 or space.spread(b, a, fact) > 1:
        return "ceiling"
    return ""


def compatibility(candidates: Sequence[Candidate], fact: Fact, space: AnswerSpace) -> BoolArray:
    """(n, n) True where two candidates may stand in one option set; the diagonal tells whether each is valid."""
    n = len(candidates)
    table = np.zeros((n, n), dtype=bool)
    usable = [space.valid(candidate, fact) for candidate in candidates]
    table[np.arange(n), np.arange(n)] = usable
    for i, j in itertools.combinations(range(n), 2):
        if usable[i] and usable[j]:
            table[i, j] = table[j, i] = not pair_problem(candidates[i], candidates[j], fact, space)
    return table


def valid_sets(table: BoolArray, count: int) -> IntArray:
    """All sets of `count` mutually compatible members, (sets, count), members ascending."""
    combos = _combinations(table.shape[0], count)
    keep = np.ones(len(combos), dtype=bool)
    for i, j in itertools.combinations_with_replacement(range(count), 2):
        keep &= table[combos[:, i], combos[:, j]]
    return combos[keep]


def draw_truth(table: BoolArray, count: int, rng: np.random.Generator, eligible: BoolArray | None = None) -> int | None:
    """Draw which candidate is asked about, in proportion to the valid sets it belongs to.

    A set drawn uniformly among those containing the truth then leaves all its members equally likely:
    P(t, S) = (N(t) / sum N) * (1 / N(t)) is the same for every t in S. Returns None where no set exists.
    """
    sets = valid_sets(table, count)
    weights = np.bincount(sets.ravel(), minlength=table.shape[0]).astype(np.float64)
    if eligible is not None:
        weights[~eligible] = 0
    if weights.sum() == 0:
        return None
    return int(rng.choice(len(weights), p=weights / weights.sum()))


@lru_cache(maxsize=64)
def _combinations(n: int, count: int) -> IntArray:
    combos = np.array(list(itertools.combinations(range(n), count)), dtype=np.int64).reshape(-1, count)
    combos.flags.writeable = False
    return combos


strategies: Registry[Strategy] = Registry("strategy", "vgbench_gen.distractors")
