"""A choice among hard questions that no constant answer profits from.

Questions that models fail are a biased sample: a model that likes A fails where the truth is B, one that likes the
middle of four numbers where it is the largest. So letters, yes and no, and ranks by size are dealt out again, per task,
form and source, as evenly as the candidates allow; over the whole choice a constant letter or a constant yes or no
stays within `ABOVE_CHANCE` of chance, whatever the candidates are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.voting.rule import Balance

ABOVE_CHANCE = 0.03  # docs/validity.md#hard-questions-by-vote
Key = TypeVar("Key", bound=Hashable)
Kind = Literal["letter", "yes_no", "open"]
_LEAN = 1e-4  # small beside 1, which one question beyond rounding costs
_Bin = tuple[int, int]
_Place = tuple[int, int]  # (0, letter) or (1, rank)
# Category or task, then what the questions of a cell have in common: task, form, kind, options, whether the truth has a
# rank, source.
_PartKey = tuple[str, str, str, Kind, int, bool, str]
_Cells = dict[_PartKey, "_ChoiceCell"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What choosing needs to know of a question."""

    id: str
    category: str
    """The category that the choice may be balanced over."""
    task: str
    form: str
    kind: Kind
    """The kind of its answer; "open" where it is neither a letter nor a yes or no."""
    options: int = 0
    """The number of options: 2 for yes and no, 0 for open questions."""
    place: int = -1
    """The place of the truth among the options, where yes is 0; -1 for open questions."""
    rank: int = -1
    """The rank of the truth by size among options that are numbers, -1 where they are not."""
    twin: str = ""
    """A name shared with the question that makes the opposite claim, "" for none."""
    source: str = ""
    """The dataset of the scans."""
    pair: str = ""
    """A name shared with the other half of its pair, "" for none."""

    @property
    def chance(self) -> float:
        """Share that a constant answer gets right where the truth is even; 0 for open questions."""
        return 1 / self.options if self.options else 0.0


@dataclass(frozen=True, slots=True)
class ChoicePart:
    """How one category or task fared in a choice."""

    name: str
    """The name of the category or task."""
    wanted: int
    """The questions that the plan asks for."""
    candidates: int
    """The hard questions that may be taken."""
    even: int
    """The most of them that leave the places of the truth evenly filled."""
    chosen: int
    """The questions that were chosen."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen questions."""

    ids: tuple[str, ...]
    """Their ids, in the order of the candidates given."""
    over: Literal["category", "task"]
    parts: tuple[ChoicePart, ...]
    """How each category or task fared."""
    dropped: int = 0
    """The questions that were taken out again for the sake of the letters."""


def choose_balanced(
    candidates: Sequence[Subject],
    everything: Sequence[Subject],
    balance: Balance,
    seed: int,
    accepted: frozenset[str] = frozenset(),
) -> Choice:
    """Choose among candidates; the same for any order of them.

    Args:
        candidates: hard questions that may be taken.
        everything: all questions of the dataset, by which it is seen what can be balanced over.
        balance: what is aimed at.
        seed: of the draw.
        accepted: ids that people have accepted; they come first.
    """
    by_category = bool(balance.counts) and set(balance.counts) <= {one.category for one in everything}

    def name(one: Subject) -> str:
        return one.category if by_category else one.task

    cells = _make_cells(candidates, name, seed, accepted)
    most = _count_most_per_cell(cells, balance)
    names = sorted({*map(name, everything)})
    held = {part: sum(n for key, n in most.items() if key[0] == part) for part in names}
    evenly = dict.fromkeys(held, 1.0)
    wanted = dict(balance.counts) if by_category else split_total(balance.target, evenly, held)
    for part, number in wanted.items():
        _deal_part({key: cell for key, cell in cells.items() if key[0] == part}, number, cells, most, balance)
    dropped = _drop_excess(cells)
    chosen = {taken for cell in cells.values() for taken in cell.list_chosen()}
    sizes = Counter(name(one) for one in candidates)
    taken = Counter(name(one) for one in candidates if one.id in chosen)
    if not by_category:
        wanted = split_total(balance.target, evenly, dict.fromkeys(held, balance.target))
    parts = tuple(ChoicePart(part, wanted.get(part, 0), sizes[part], held[part], taken[part]) for part in held)
    ids = tuple(one.id for one in candidates if one.id in chosen)
    return Choice(ids, "category" if by_category else "task", parts, dropped)


def _make_cells(
    candidates: Sequence[Subject], name: Callable[[Subject], str], seed: int, accepted: frozenset[str]
) -> _Cells:
    """The candidates by part and cell, in the order of their keys; accepted ones and whole pairs come first in each."""
    both = {twin for twin, n in Counter(one.twin for one in candidates if one.twin).items() if n > 1}
    cells: _Cells = {}
    for one in candidates:
        key = (name(one), one.task, one.form, one.kind, one.options, one.rank >= 0, one.source)
        order = (one.id not in accepted, one.twin not in both, hash_stably("hard", str(seed), one.twin or one.id))
        cells.setdefault(key, _ChoiceCell(one.kind, one.options)).add(one, order)
    return {key: cells[key] for key in sorted(cells)}


def _count_most_per_cell(cells: _Cells, balance: Balance) -> dict[_PartKey, int]:
    """How many of each cell could be taken evenly; nothing is taken."""
    most = {key: cell.deal(cell.size, balance) for key, cell in cells.items()}
    for cell in cells.values():
        cell.take = {}
    return most


def _deal_part(mine: _Cells, wanted: int, cells: _Cells, most: Mapping[_PartKey, int], balance: Balance) -> None:
    """Take `wanted` questions of the cells of one part, in proportion to their sizes, as far as they are there."""
    held = sum(most[key] for key in mine)
    weights = {key: float(cell.size) for key, cell in mine.items()}
    left = wanted
    for key, share in split_total(min(wanted, held), weights, {key: most[key] for key in mine}).items():
        left -= cells[key].deal(share, balance, _count_excess(cells, key))
    for key in mine:  # what the evenness of one cell left over, another may take
        before = cells[key].taken
        if left > 0:
            left -= cells[key].deal(before + left, balance, _count_excess(cells, key)) - before


def split_total(total: int, weights: Mapping[Key, float], most: Mapping[Key, int]) -> dict[Key, int]:
    """Whole numbers in proportion to weights, none above its most, with the sum `total` or all there is.

    What one cannot take goes to the others in proportion; remainders by size, then in the order given.
    """
    free = {key: weight for key, weight in weights.items() if weight > 0 and most[key] > 0}
    left = wanted = min(total, sum(most[key] for key in free))
    found: dict[Key, float] = dict.fromkeys(weights, 0.0)
    while free:
        level = left / sum(free.values())
        full = [key for key, weight in free.items() if weight * level >= most[key]]
        found.update({key: weight * level for key, weight in free.items()})
        if not full:
            break
        for key in full:
            found[key] = float(most[key])
            left -= most[key]
            del free[key]
    whole = {key: math.floor(value + 1e-9) for key, value in found.items()}
    order = sorted((key for key in whole if whole[key] < most[key]), key=lambda key: whole[key] - found[key])
    for key in order[: wanted - sum(whole.values())]:
        whole[key] += 1
    return whole


def scale_balance(balance: Balance, target: int) -> Balance:
    """The same for another number of questions; counts of categories in proportion."""
    most = dict.fromkeys(balance.counts, target)
    counts = split_total(target, {name: float(n) for name, n in balance.counts.items()}, most)
    return balance.model_copy(update={"target": target, "counts": counts})


@dataclass(slots=True)
class _ChoiceCell:
    """Candidates of one task, form, number of options and source."""

    kind: Kind
    options: int
    bins: dict[_Bin, list[tuple[tuple[bool, bool, str], str]]] = field(default_factory=dict)
    """The candidates by the place and the rank of the truth."""
    take: dict[_Bin, int] = field(default_factory=dict)

    def add(self, one: Subject, order: tuple[bool, bool, str]) -> None:
        self.bins.setdefault((one.place, one.rank), []).append((order, one.id))

    @property
    def size(self) -> int:
        return sum(map(len, self.bins.values()))

    @property
    def taken(self) -> int:
        return sum(self.take.values())

    def list_chosen(self) -> list[str]:
        return [name for place, n in self.take.items() for _, name in sorted(self.bins[place])[:n]]

    def find_last_bin(self, place: int) -> _Bin | None:
        """The fullest bin of a truth that something is taken from."""
        filled = sorted((-n, found) for found, n in self.take.items() if n and found[0] == place)
        return filled[0][1] if filled else None

    def deal(self, most: int, balance: Balance, ahead: Mapping[_Place, float] = {}) -> int:
        """Take as many as can be dealt evenly, at most so many; returns how many. `ahead`: see `_solve_flow`."""
        if self.kind == "open":
            self.take = {place: min(most, self.size) for place in self.bins}
        elif self.kind == "yes_no":
            # Exactly as many yes as no.
            half = min(most // 2, *(sum(len(b) for p, b in self.bins.items() if p[0] == truth) for truth in (0, 1)))
            self.take = dict.fromkeys(self.bins, half)
        else:
            self.take = _deal_evenly(self.bins, self.options, most, balance, ahead)
        return self.taken


def _deal_evenly(
    bins: Mapping[_Bin, Sequence[object]], options: int, most: int, balance: Balance, ahead: Mapping[_Place, float]
) -> dict[_Bin, int]:
    """How many to take of each bin: as many as can be dealt evenly, and then as evenly as possible."""
    sizes = {place: len(found) for place, found in sorted(bins.items())}
    low, high = 0, min(most, sum(sizes.values()))
    best, total = dict.fromkeys(sizes, 0), high  # all of them, more often than not
    while low < high:
        found = _solve_flow(sizes, options, total, balance, ahead)
        if found is None:
            high = total - 1
        else:
            low, best = total, found
        total = (low + high + 1) // 2
    return best


def _solve_flow(
    sizes: Mapping[_Bin, int], options: int, total: int, balance: Balance, ahead: Mapping[_Place, float]
) -> dict[_Bin, int] | None:
    """`total` questions of these bins with letters and ranks within their bounds, or None where there are none such.

    A flow from letters to ranks, so that the linear programme has whole numbers at its corners. What goes beyond
    rounding costs one a piece; `ahead`, how many more than even other sources have of a letter or rank, decides what is
    rounded up.
    """
    from scipy.optimize import linprog

    keys = list(sizes)
    n = len(keys)
    axes = [(0, balance.letter_points)] + [(1, balance.rank_points)] * (keys[0][1] >= 0)
    down, up = total // options, -(-total // options)
    beyond = 2 * options * len(axes)
    rows: list[FloatArray] = []
    tops: list[float] = []
    most = [float(sizes[key]) for key in keys]
    for k, (axis, points) in enumerate(axes):
        allowed = total * points / 100 + (options - 1) / options + 1e-9
        for place in range(options):
            mine = np.zeros(n + beyond)
            mine[:n] = [key[axis] == place for key in keys]
            over = n + 2 * (k * options + place)
            mine[over : over + 2] = -1.0, 1.0
            rows += [mine, -mine]
            tops += [float(up), -float(down)]
            most += [max(0.0, math.floor(total / options + allowed) - up)]
            most += [max(0.0, down - math.ceil(total / options - allowed))]
    found = linprog(
        np.array([_LEAN * sum(ahead.get((axis, key[axis]), 0.0) for axis, _ in axes) for key in keys] + [1.0] * beyond),
        A_ub=np.array(rows),
        b_ub=np.array(tops),
        A_eq=np.array([[1.0] * n + [0.0] * beyond]),
        b_eq=[float(total)],
        bounds=[(0.0, top) for top in most],
        method="highs-ds",
    )
    if found.x is None:
        return None
    return {key: round(x) for key, x in zip(keys, found.x[:n].tolist(), strict=True)}


def _count_excess(cells: _Cells, key: _PartKey) -> dict[_Place, float]:
    """How many more than even the other sources of a task and form take of each letter and rank."""
    counts: Counter[_Place] = Counter()
    for other, cell in cells.items():
        if other != key and other[1:5] == key[1:5]:
            for place, n in cell.take.items():
                counts[0, place[0]] += n
                counts[1, place[1]] += n * (place[1] >= 0)
    options = max(1, cells[key].options)
    sums = [sum(n for place, n in counts.items() if place[0] == axis) for axis in (0, 1)]
    return {place: n - sums[place[0]] / options for place, n in counts.items()}


def _drop_excess(cells: _Cells) -> int:
    """Take out questions until no constant letter stands above its bar over all of them; how many went.

    Rounding in many small cells can favour one letter; of the cell where that letter is most ahead, one goes.
    """
    letters = {key: cell for key, cell in cells.items() if cell.kind == "letter"}
    dropped = 0
    while True:
        counts: Counter[int] = Counter()
        for cell in letters.values():
            for (place, _), n in cell.take.items():
                counts[place] += n
        allowed = sum(cell.taken * (1 / cell.options + ABOVE_CHANCE) for cell in letters.values())
        over = [place for place, n in sorted(counts.items(), key=lambda e: -e[1]) if n > allowed + 1e-9]
        if not over:
            return dropped
        place = over[0]
        ahead = {
            key: sum(n for found, n in cell.take.items() if found[0] == place) - cell.taken / cell.options
            for key, cell in letters.items()
            if cell.find_last_bin(place) is not None
        }
        worst = letters[max(sorted(ahead), key=lambda key: ahead[key])]
        found = worst.find_last_bin(place)
        assert found is not None
        worst.take[found] -= 1
        dropped += 1
