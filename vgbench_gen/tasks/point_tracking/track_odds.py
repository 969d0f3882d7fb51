"""How much likelier a place is to be where a tracked point went than to be where a wrong option stands.

Places that look like the query (`track_looks`) lie otherwise about it than points really move, and a reader of the
text would learn how. So what such a reader can learn is learnt first, from a build's own facts: a logistic regression
of right places against wrong ones on what the text tells of a place. Sets are then drawn in proportion to the product
of these odds over their wrong options: with density p of right places and q of wrong ones, wrong options drawn with
odds p / q lie as right ones do, and no member of a set is the likelier truth
(`docs/validity.md#exchangeable-by-construction`). As a pool is small and its largest odds cannot be drawn twice, the
regression is repeated on places weighted as they would be drawn, and what it still finds is added. Places of one pool
resemble each other more than the truth, so its rank by distance is drawn besides (`drawn_set`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import BoolArray, Fact, FloatArray, IntArray
from vgbench_gen.tasks.point_tracking.evidence import ImagesEvidence

FEWEST_FACTS = 50
_ROUNDS = 6
_RIDGE = 3e-3  # of the standardised coefficients, per fact
_NEWTON = 12
_MOST = 3.0  # of the logarithm of odds: one place must not stand in every set
_DIGITS = 6
_BALANCING = 200  # rounds
_RAREST = 1.2
_FEWEST_D = 0.5  # per cent of the diagonal; nothing right is nearer, and a logarithm needs an end


@dataclass(frozen=True, slots=True, eq=False)
class Odds:
    """How much likelier a place is to be the right option than a wrong one, by its features (d,)."""

    centre: FloatArray
    """(d,) means of the features of right places."""
    scale: FloatArray
    """(d,) standard deviations of the features of right places."""
    one: FloatArray
    """(d,) coefficients of the scaled features where one wrong option is drawn."""
    three: FloatArray
    """(d,) coefficients of the scaled features where three wrong options are drawn."""
    wish_two: FloatArray
    """(2,) weights of the truth's rank by distance from the query in sets of two, as `_wishes` gives them."""
    wish_four: FloatArray
    """(4,) weights of the truth's rank by distance from the query in sets of four, as `_wishes` gives them."""

    def logs(self, fact: Fact, beside: int) -> FloatArray:
        """(n,) logarithms of the odds of all candidates of a fact, for sets of the truth and `beside` others."""
        turned = (features(fact) - self.centre) / self.scale
        return np.clip(turned @ (self.one if beside == 1 else self.three), -_MOST, _MOST)


def learn(facts: Iterable[Fact], sets_of: Callable[[Fact, int], IntArray]) -> Odds | None:
    """Odds by the pools of these facts, in any order; None where there are fewer than `FEWEST_FACTS`.

    sets_of: the sets (n, k) of so many places of a fact's pool that may be asked, the truth among them.
    """
    ordered = sorted(facts, key=lambda fact: (fact.dataset, fact.scene_id, fact.key))
    if len(ordered) < FEWEST_FACTS:
        return None
    rows = [features(fact) for fact in ordered]
    x = np.concatenate(rows)
    group = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    right = np.concatenate([np.arange(len(row)) == fact.truth for row, fact in zip(rows, ordered, strict=True)])
    drawn = ~right & np.concatenate([~_same_pixel(fact) for fact in ordered])
    centre, scale = x[right].mean(axis=0), x[right].std(axis=0) + 1e-9
    turned = (x - centre) / scale
    one, three = (_fitted(turned, group, right, drawn, beside) for beside in (1, 3))
    can = (np.stack([_can(fact, sets_of(fact, k)) for fact in ordered]) for k in (2, 4))
    return Odds(centre, scale, one, three, *map(_wishes, can))


def features(fact: Fact) -> FloatArray:
    """(n, d) what the text tells of each candidate's place: how far from the query and in which direction, how far from
    the middle, and products of these. Lengths over the diagonal of image 2."""
    diagonal_px = ImagesEvidence.of(fact).diagonal_px
    camera = fact.cameras[fact.frame_ids[1]]
    size = np.array([camera["width"], camera["height"]], dtype=np.float64)
    query = np.array(fact.truth_candidate.show["query"], dtype=np.float64)
    place = _places(fact)
    move, inward = (place - query) / diagonal_px, ((size - 1) / 2 - query) / diagonal_px
    far = np.linalg.norm(move, axis=1)
    log_far = np.log(np.maximum(100 * far, _FEWEST_D))
    x, y = (move / np.maximum(far, _FEWEST_D / 100)[:, None]).T
    towards = (move @ inward) / np.maximum(far, _FEWEST_D / 100)
    from_middle = np.linalg.norm(place - (size - 1) / 2, axis=1) / diagonal_px
    aside, below = ((place - (size - 1) / 2) / size).T
    columns = (
        log_far, log_far**2, log_far**3, np.abs(x), x * x, y, np.abs(y) * log_far, y * log_far,
        towards, towards * log_far,
        from_middle, from_middle**2, aside**2, below, below**2, from_middle * log_far,
    )  # fmt: skip
    return np.stack(columns, axis=1)


def drawn_set(
    fact: Fact, sets: IntArray, odds: Odds | None, rng: np.random.Generator, again: bool = False
) -> int | None:
    """A row of `sets` (n, k), places in the pool of which the truth is one; None where the fact may not be asked now.

    The truth's rank by its distance from the query is drawn first, such that each comes out as often; for that some
    facts are not asked, as right places are nearer or farther than all others of their pool too often. Among the sets
    left the truth takes a rank by its distance from the others, as far as there are such sets; the rest is drawn in
    proportion to the odds of the wrong options.

    again: the fact was asked before, so only ranks that it can have are drawn.
    """
    moved, place, held = _moved(fact)[sets], _places(fact)[sets], sets == fact.truth
    wanted = _drawn_rank(_can(fact, sets), odds, rng, again)
    if wanted is None:
        return None
    left = np.flatnonzero(_rank(moved, held) == wanted)
    apart = np.linalg.norm(place[left][:, :, None] - place[left][:, None], axis=3).sum(axis=2)
    off = np.abs(_rank(apart, held[left]) - rng.integers(sets.shape[1]))
    left = left[off == off.min()]
    logs = np.zeros(len(fact.candidates)) if odds is None else odds.logs(fact, sets.shape[1] - 1)
    return int(left[_one(np.where(sets[left] == fact.truth, 0.0, logs[sets[left]]).sum(axis=1), rng)])


def _can(fact: Fact, sets: IntArray) -> BoolArray:
    """(k,) which ranks by distance from the query the truth has in some of these sets (n, k)."""
    rank = _rank(_moved(fact)[sets], sets == fact.truth)
    return np.asarray(np.bincount(rank, minlength=sets.shape[1]) > 0)


def _drawn_rank(can: BoolArray, odds: Odds | None, rng: np.random.Generator, again: bool) -> int | None:
    """A rank, such that those asked have each equally often. can: (k,) ranks that some set gives the truth.

    Where nothing was learnt there are too few facts to turn any down.
    """
    wish = can * (np.ones(len(can)) if odds is None else odds.wish_two if len(can) == 2 else odds.wish_four)
    if not wish.any():
        return None
    ends = np.cumsum(wish / max(1.0, float(wish.sum())))
    while True:
        wanted = int(np.searchsorted(ends, rng.random(), side="right"))
        if wanted < len(can):
            return wanted
        # Drawn until one holds, and not at once among those that do: the seed that asked it gives the same set again.
        if odds is not None and not again:
            return None


def _rank(values: FloatArray, held: BoolArray) -> IntArray:
    """(n,) how many of each row of values (n, k) are smaller than the one that is held."""
    return np.asarray((values < values[held][:, None]).sum(axis=1), dtype=np.int64)


def _wishes(can: BoolArray) -> FloatArray:
    """(k,) weights such that facts that draw by them among the ranks they can have come out with each as often.

    can: (facts, k). The rarest rank has the weight `_RAREST`; a fact whose weights sum to less than 1 is not asked that
    often.
    """
    wish = can.any(axis=0).astype(np.float64)
    for _ in range(_BALANCING):
        each = can * wish
        count = (each / np.maximum(each.sum(axis=1, keepdims=True), 1.0)).sum(axis=0)
        wish *= np.sqrt(count.sum() / np.count_nonzero(wish) / np.maximum(count, 1e-9))
        wish *= _RAREST / wish.max()
    return np.asarray(wish)


def _places(fact: Fact) -> FloatArray:
    return np.stack([candidate.value for candidate in fact.candidates])


def _moved(fact: Fact) -> FloatArray:
    """(n,) distance of each candidate from the query, pixels."""
    return np.asarray(np.linalg.norm(_places(fact) - fact.truth_candidate.show["query"], axis=1))


def _one(logs: FloatArray, rng: np.random.Generator) -> int:
    weights = np.exp(logs - logs.max())
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def _same_pixel(fact: Fact) -> BoolArray:
    return np.array(["same_pixel_of" in candidate.show for candidate in fact.candidates])


def _fitted(x: FloatArray, group: IntArray, right: BoolArray, drawn: BoolArray, beside: int) -> FloatArray:
    """Coefficients (d,) such that places drawn by them look like right ones."""
    found = np.zeros(x.shape[1])
    for _ in range(_ROUNDS):
        weight = np.where(drawn, np.exp(np.clip(x @ found, -_MOST, _MOST)), 0.0)
        total = np.bincount(group, weight)[group]
        share = np.minimum(1.0, beside * weight / np.maximum(total, 1e-12)) * drawn
        found = found + _logistic(x, right, np.where(right, float(beside), share))
    # Sums come out otherwise in their last digits with other numbers of threads.
    return np.asarray(np.round(found, _DIGITS))


def _logistic(x: FloatArray, right: BoolArray, weight: FloatArray) -> FloatArray:
    """Coefficients (d,) without intercept's, of a logistic regression of `right` on x (n, d) with weights (n,)."""
    design = np.column_stack([x, np.ones(len(x))])
    ridge = np.full(design.shape[1], _RIDGE * float(weight.sum()))
    ridge[-1] = 0.0
    at = np.zeros(design.shape[1])
    for _ in range(_NEWTON):
        p = 1 / (1 + np.exp(-np.clip(design @ at, -30, 30)))
        slope = design.T @ (weight * (right - p)) - ridge * at
        curve = (design * (weight * p * (1 - p))[:, None]).T @ design + np.diag(ridge + 1e-9)
        at = at + np.linalg.solve(curve, slope)
    return np.asarray(at[:-1])
