"""What a distractor strategy is, and the gates that no strategy can avoid.

A strategy sees a fact, its candidates and the task's own answer space; never a scene. The base class, not the
strategy, enforces margins between *all* pairs, ceilings, the validity of every option and that no two options print
alike (`docs/validity.md#options`).
"""

from __future__ import annotations

import abc
import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, Protocol

import numpy as np

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.registry import Registry
from vgbench_gen.core.types import BoolArray, Candidate, Fact, FloatArray, IntArray

Margins = Literal["enforced", "recorded"]
_PROBLEMS = ("", "printed_alike", "margin", "ceiling", "invalid_member")
_ALIKE, _INVALID = _PROBLEMS.index("printed_alike"), _PROBLEMS.index("invalid_member")
_ROUNDING = 1e-9  # a pair in a larger table may round otherwise than in one of its own, as verification makes it
DEFAULT = "default"  # in place of a strategy's name: each task's own, and set first where that has no set
MAX_PROPOSALS = 64  # a strategy that fails this often has no set to offer; more tries only cost time


class AnswerSpace(Hashable, Protocol):
    """What a task tells strategies about its answers.

    Values are arrays of the task's own shape and unit, rounded as they are printed. Every `Task` is an answer space.
    """

    def rounded(self, value: FloatArray) -> FloatArray:
        """The value that a reader of the printed option gets back."""

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """(distances over the required margin, distances over the ceiling) of all ordered pairs, (n, n) each. Two
        options may stand together where the first is >= 1 and the second <= 1, both ways round."""

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """Whether the value is a member of the family (a rotation, a cuboid, a positive depth, inside the image)."""

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """`count` values around the truth and the truth's place among them; None where options come from the pool.

        Raises:
            TooFewOptionsError: the truth would stand out in every such set.
        """

    def factor_pairs(self, fact: Fact, rng: np.random.Generator) -> Iterator[FactorPair]:
        """Two parts of the answer with another value of each, drawn such that the set were as likely had any other of
        its values been the true ones; nothing where the answer has no such parts.

        Raises:
            TooFewOptionsError: the answer has parts, but this draw gives no set.
        """

    def perturbed(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """One wrong value by the paper's noise rule, or None where the paper has none for this task."""

    def sampled(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """One wrong value by the paper's rule of random values of the same kind, or None to draw from the pool."""

    def published(self, fact: Fact, count: int, rng: np.random.Generator) -> list[Candidate] | None:
        """`count` wrong values by the rule of SpatialScore v2, or None where it takes others of the pool.

        Raises:
            TooFewOptionsError: the rule gives no values that can be asked here.
        """

    def proposal(self, fact: Fact) -> Proposal | None:
        """What to ask a language model for; None where options are images or marks, which it cannot name."""

    def proposed(self, fact: Fact, numbers: Sequence[float], rng: np.random.Generator) -> Candidate | None:
        """The value that a model means by these numbers, `Proposal.numbers` of them; None where it means none."""

    def rank_by(self, value: FloatArray, fact: Fact) -> float:
        """What orders options: the value itself where it is one number, else one that says how large it is."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a language model is asked to name for a fact; nothing of it tells the answer."""

    kind: str
    """The key of its words below `values` in `templates/distractors/llm.toml`."""
    slots: Mapping[str, str]
    """The slots of these words, as finished strings."""
    numbers: int = 1
    """How many numbers one value has."""
    shape: str = "one"
    """The key below `shapes` in the same file, which says in which form the numbers are to be given."""
    ends: tuple[float, float] = (-np.inf, np.inf)
    """The smallest and the largest `AnswerSpace.rank_by` that the words allow; infinite where they name no range."""


@dataclass(frozen=True, slots=True, eq=False)
class FactorPair:
    """Two parts of an answer with two values each, of which one is the true one."""

    parts: tuple[str, str]
    """Names of both parts, such as "depth" and "yaw"."""
    others: tuple[Candidate, Candidate, Candidate]
    """The truth with the other value of the second part, of the first part, and of both."""


@dataclass(frozen=True, slots=True, eq=False)
class OptionSet:
    """Options in random order with the place of the truth."""

    options: tuple[Candidate, ...]
    """The options, in the order in which they were shuffled."""
    truth: int
    """The place of the right option."""
    strategy: str
    """The name of the strategy that chose them."""
    fallback: str = ""
    """Why the task's own strategy has no set and this one was taken instead; "" where it is the one that was wanted."""


class Strategy(abc.ABC):
    """One way of choosing wrong options. A strategy proposes; `options` takes the first set that passes every gate."""

    name: str
    """The name under which the strategy is registered; rows note it."""
    balanced: ClassVar[bool] = False
    """Whether one of several draws is chosen for each fact, so that nothing but the image tells the truth
    (`distractors.balanced`)."""

    @abc.abstractmethod
    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        """Propose sets of options, best first.

        At most `MAX_PROPOSALS` are looked at. Proposing none is allowed; the fact is then not asked by this strategy.

        Args:
            fact: what is asked, with its candidates.
            space: the task's answers: distances over margins, validity, values around the truth.
            rng: the only source of chance.
            count: the number of options in a set.

        Yields:
            The members of a set in any order, and the place of the truth among them.
        """

    def options(
        self,
        fact: Fact,
        space: AnswerSpace,
        rng: np.random.Generator,
        count: int = 4,
        margins: Margins = "enforced",
    ) -> OptionSet:
        """The first proposed set that passes all gates, shuffled.

        margins="recorded" keeps validity and distinct print but only records distances; such items belong to a
        labelled stress set (`docs/validity.md#margins-between-all-pairs`), never to a headline.

        Raises:
            TooFewOptionsError: no proposal passed; the detail counts why.
        """
        members, truth = self.find_set(fact, space, rng, count, margins)
        order = rng.permutation(len(members))
        shuffled = tuple(members[i] for i in order)
        return OptionSet(shuffled, int(np.flatnonzero(order == truth)[0]), self.name)

    def find_set(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int, margins: Margins
    ) -> tuple[list[Candidate], int]:
        """The members of the set that `options` gives, in any order, and the place of the truth among them.

        Raises:
            TooFewOptionsError: no proposal passed; the detail counts why.
        """
        refused: Counter[str] = Counter()
        for members, truth in itertools.islice(self.propose(fact, space, rng, count), MAX_PROPOSALS):
            problem = set_problem(members, count, fact, space, margins)
            if not problem:
                return members, truth
            refused[problem] += 1
        tried = ", ".join(f"{reason} x{n}" for reason, n in sorted(refused.items())) or "nothing to propose"
        raise TooFewOptionsError("too_few_options", f"{self.name} on {fact.task} {fact.key}: {tried}")


def leave_out(
    members: Sequence[Candidate], truth: int, count: int, rng: np.random.Generator
) -> tuple[list[Candidate], int]:
    """`count` of the members with the truth among them, in their order, and its place; all where there are no more.

    Wrong ones are left out by chance, so where each member was as likely to be the true one, so is each that stays.
    """
    wrong = rng.permutation([k for k in range(len(members)) if k != truth]).tolist() if count < len(members) else []
    kept = sorted([truth, *wrong[: count - 1]]) if wrong else range(len(members))
    return [members[k] for k in kept], kept.index(truth) if wrong else truth


def set_problem(
    members: Sequence[Candidate], count: int, fact: Fact, space: AnswerSpace, margins: Margins = "enforced"
) -> str:
    """Why a set may not be asked, as a machine-readable reason, or "" when it may."""
    if len(members) != count:
        return "wrong_count"
    codes = pair_problems(members, fact, space).ravel().tolist()
    if _INVALID in codes:
        return "invalid_member"
    return _PROBLEMS[next((code for code in codes if code and (margins == "enforced" or code == _ALIKE)), 0)]


def pair_problems(candidates: Sequence[Candidate], fact: Fact, space: AnswerSpace) -> IntArray:
    """(n, n) why two candidates may not stand together, as places in `_PROBLEMS`; the diagonal tells of each alone."""
    if not set(candidates) <= set(fact.candidates):
        return _find_problems(candidates, fact, space)
    places, codes = _compare_pool(fact, space)
    chosen = [places[candidate] for candidate in candidates]
    return codes[np.ix_(chosen, chosen)]


def compatibility(candidates: Sequence[Candidate], fact: Fact, space: AnswerSpace) -> BoolArray:
    """(n, n) True where two candidates may stand in one option set; the diagonal tells whether each is valid."""
    return np.asarray(pair_problems(candidates, fact, space) == 0)


@lru_cache(maxsize=1)  # many sets are drawn from one pool
def _compare_pool(fact: Fact, space: AnswerSpace) -> tuple[dict[Candidate, int], IntArray]:
    return {candidate: k for k, candidate in enumerate(fact.candidates)}, _find_problems(fact.candidates, fact, space)


def _find_problems(candidates: Sequence[Candidate], fact: Fact, space: AnswerSpace) -> IntArray:
    whole = np.full((len(candidates), len(candidates)), _INVALID)
    usable = [k for k, candidate in enumerate(candidates) if space.valid(candidate, fact)]
    if usable:
        valid = [candidates[k] for k in usable]
        # Both ways round: a metric may measure in pixels of the first one's image.
        apart, wide = space.pair_margins(valid, fact)
        codes = np.zeros(apart.shape, dtype=np.int64)
        codes[np.fmax(wide, wide.T) > 1 + _ROUNDING] = _PROBLEMS.index("ceiling")
        codes[np.fmin(apart, apart.T) < 1 - _ROUNDING] = _PROBLEMS.index("margin")
        codes[_find_equal_values(valid)] = _ALIKE
        np.fill_diagonal(codes, 0)
        whole[np.ix_(usable, usable)] = codes
    return whole


def _find_equal_values(candidates: Sequence[Candidate]) -> BoolArray:
    """(n, n) True where two candidates have the same value, hence the same print."""
    seen: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
    values = [(c.value.shape, tuple(c.value.ravel().tolist())) for c in candidates]
    names = np.array([seen.setdefault(value, len(seen)) for value in values], dtype=np.int64)
    filled = np.array([bool(value[1]) for value in values], dtype=bool)
    return np.asarray((names[:, None] == names) & filled[:, None])


def valid_sets(table: BoolArray, count: int) -> IntArray:
    """All sets of `count` mutually compatible members, (sets, count), members ascending."""
    combos = _list_combinations(table.shape[0], count)
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


def draw_other(table: BoolArray, truth: int, rng: np.random.Generator, counts: Sequence[int]) -> int | None:
    """Draw another member of a set that holds the truth, uniform over the sets of the first of `counts` that has any.

    Either of both is then as likely to be the truth (`draw_truth`); a uniform other candidate that is compatible would
    be the one that few truths suit. Returns None where no set exists.
    """
    for count in counts:
        sets = valid_sets(table, count)
        sets = sets[(sets == truth).any(axis=1)]
        if len(sets):
            drawn = sets[rng.integers(len(sets))]
            return int(rng.choice(drawn[drawn != truth]))
    return None


@lru_cache(maxsize=64)
def _list_combinations(n: int, count: int) -> IntArray:
    combos = np.array(list(itertools.combinations(range(n), count)), dtype=np.int64).reshape(-1, count)
    combos.flags.writeable = False
    return combos


strategies: Registry[Strategy] = Registry("strategy", "vgbench_gen.distractors")
