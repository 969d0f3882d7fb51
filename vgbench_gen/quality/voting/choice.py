"""A choice among hard questions that no constant answer profits from.

Questions that models fail are a biased sample: a model that likes A fails where the truth is B, one that likes the
middle of four numbers where it is the largest. So letters, yes and no, and ranks by size are chosen anew, per task,
form and source, as evenly as the candidates allow; over the whole choice a constant letter or a constant yes or no
stays within `ABOVE_CHANCE` of chance, whatever the candidates are.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.quality.voting.rule import Balance

ABOVE_CHANCE = 0.03  # docs/validity.md#hard-questions-by-vote
Key = TypeVar("Key", bound=Hashable)
Kind = Literal["letter", "yes_no", "open"]
# The kinds and whether the truth has a rank, the most restricted first: what these cannot take evenly, later ones can.
_ORDER = (("yes_no", False), ("letter", True), ("letter", False), ("open", False))


@dataclass(frozen=True, slots=True)
class Subject:
    """What choosing needs to know of a question."""

    id: str
    category: str
    task: str
    form: str
    kind: Kind
    """The kind of its answer; "open" where it is neither a letter nor a yes or no."""
    options: int = 0
    """The number of options: 2 for yes and no, 0 for open questions."""
    place: int = -1
    """The index of the truth among the options, where yes is 0; -1 for open questions."""
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
    wanted: int
    """The questions that the plan asks for."""
    candidates: int
    """The hard questions that may be taken."""
    even: int
    """The most of them that leave the places of the truth evenly filled."""
    chosen: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen questions."""

    ids: tuple[str, ...]
    """Their ids, in the order of the candidates given."""
    over: Literal["category", "task"]
    parts: tuple[ChoicePart, ...]
    dropped: int = 0
    """The questions that were taken out again for the sake of the letters."""


class _Cell(NamedTuple):
    """What the questions of one row of the table have in common; they are chosen evenly among themselves."""

    order: int  # in `_ORDER`
    part: str  # category or task
    task: str
    form: str
    kind: Kind
    options: int
    source: str


_Bin = tuple[int, int]  # index of the truth among the options, its rank by size
_Counts = dict[_Bin, int]


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
    part_of = {one.id: one.category if by_category else one.task for one in everything}
    table = _make_table(candidates, part_of, seed, accepted)
    sizes = {cell: {place: len(ids) for place, ids in bins.items()} for cell, bins in table.items()}
    even = {cell: sum(_take_evenly(cell, bins, sum(bins.values()), balance).values()) for cell, bins in sizes.items()}
    most = {part: sum(n for cell, n in even.items() if cell.part == part) for part in sorted({*part_of.values()})}
    equal = dict.fromkeys(most, 1)
    wanted = balance.counts if by_category else share_out(balance.target, equal)
    taken: dict[_Cell, _Counts] = {}
    for part, left in (balance.counts if by_category else share_out(balance.target, equal, most)).items():
        rest = {cell: sum(bins.values()) for cell, bins in sizes.items() if cell.part == part}
        for cell in list(rest):
            share = share_out(left, rest, even)[cell]
            taken[cell] = _take_evenly(cell, sizes[cell], share, balance, taken)
            left -= sum(taken[cell].values())
            del rest[cell]
    dropped = _drop_excess(taken)
    ids = {one for cell, counts in taken.items() for place, n in counts.items() for one in table[cell][place][:n]}
    chosen = [one for one in candidates if one.id in ids]
    hard, kept = (Counter(part_of[one.id] for one in some) for some in (candidates, chosen))
    parts = tuple(ChoicePart(part, wanted.get(part, 0), hard[part], n, kept[part]) for part, n in most.items())
    return Choice(tuple(one.id for one in chosen), "category" if by_category else "task", parts, dropped)


def share_out(total: int, weights: Mapping[Key, float], most: Mapping[Key, int] | None = None) -> dict[Key, int]:
    """Whole numbers in proportion to weights (Webster's method), none above its most; their sum is at most `total`."""
    shares = dict.fromkeys(weights, 0)
    for _ in range(total):
        free = [key for key, weight in weights.items() if weight and (most is None or shares[key] < most[key])]
        if not free:
            break
        shares[min(free, key=lambda key: (shares[key] + 0.5) / weights[key])] += 1
    return shares


def scale_balance(balance: Balance, target: int) -> Balance:
    """The same for another number of questions; counts of categories in proportion."""
    return balance.model_copy(update={"target": target, "counts": share_out(target, balance.counts)})


def _make_table(
    candidates: Sequence[Subject], part_of: Mapping[str, str], seed: int, accepted: frozenset[str]
) -> dict[_Cell, dict[_Bin, list[str]]]:
    """Ids of the candidates by cell and bin, in order of preference: accepted ones and whole pairs come first."""
    both = {twin for twin, n in Counter(one.twin for one in candidates if one.twin).items() if n > 1}
    table: dict[_Cell, dict[_Bin, list[tuple[bool, bool, str, str]]]] = {}
    for one in candidates:
        order = _ORDER.index((one.kind, one.rank >= 0))
        cell = _Cell(order, part_of[one.id], one.task, one.form, one.kind, one.options, one.source)
        place = (one.id not in accepted, one.twin not in both, hash_stably("hard", str(seed), one.twin or one.id))
        table.setdefault(cell, {}).setdefault((one.place, one.rank), []).append((*place, one.id))
    return {
        cell: {place: [name for *_, name in sorted(found)] for place, found in sorted(table[cell].items())}
        for cell in sorted(table)
    }


def _take_evenly(
    cell: _Cell, sizes: _Counts, most: int, balance: Balance, taken: Mapping[_Cell, _Counts] = {}
) -> _Counts:
    """Number to take of each bin: the most that leave letters even but for rounding, and ranks as in `balance`.

    The letters that are rounded up are those that cells in `taken` have fewest of.
    """
    if cell.kind == "open":
        return {place: min(most, size) for place, size in sizes.items()}
    letters = {place: sum(n for found, n in sizes.items() if found[0] == place) for place in range(cell.options)}
    least = min(letters.values())
    if cell.kind == "yes_no":  # exactly as many yes as no
        half = min(most // 2, least)
        return dict.fromkeys(sizes, half)
    before = [_count_letters(taken, group) for group in (cell[2:6], ())]
    equal = dict.fromkeys(sorted(letters, key=lambda place: [counts[place] for counts in before]), 1)
    low, high = 0, min(most, sum(min(n, least + 1) for n in letters.values()))
    best, total = dict.fromkeys(sizes, 0), high  # all of them, more often than not
    while low < high:
        found = _spread_ranks(sizes, share_out(total, equal, letters))
        ranks = Counter(rank for (_, rank), n in found.items() for _ in range(n))
        allowed = total * balance.rank_points / 100 + (cell.options - 1) / cell.options + 1e-9
        if all(abs(ranks[rank] - total / cell.options) <= allowed for rank in range(cell.options)) or -1 in ranks:
            low, best = total, found
        else:
            high = total - 1
        total = (low + high + 1) // 2
    return best


def _spread_ranks(sizes: _Counts, letters: Mapping[int, int]) -> _Counts:
    """Number to take of each bin, in all those of `letters`: greedily the rarest rank, then one pass of exchanges."""
    found, ranks = dict.fromkeys(sizes, 0), Counter[int]()
    bins = {letter: [place for place in sizes if place[0] == letter] for letter in letters}
    for letter, mine in sorted(bins.items(), key=lambda entry: len(entry[1])):
        for _ in range(letters[letter]):
            place = min((place for place in mine if found[place] < sizes[place]), key=lambda place: ranks[place[1]])
            found[place] += 1
            ranks[place[1]] += 1
    for place, other in itertools.permutations(sizes, 2):
        room = min(found[place], sizes[other] - found[other], (ranks[place[1]] - ranks[other[1]]) // 2)
        if place[0] == other[0] and room > 0:
            for one, step in ((place, -room), (other, room)):
                found[one] += step
                ranks[one[1]] += step
    return found


def _count_letters(taken: Mapping[_Cell, _Counts], group: tuple[object, ...]) -> Counter[int]:
    """How often each letter was taken in cells of a task, form, kind and number of options, in all where empty."""
    counts = Counter[int]()
    for cell, bins in taken.items():
        if cell.kind == "letter" and cell[2:6] == (group or cell[2:6]):
            for (letter, _), n in bins.items():
                counts[letter] += n
    return counts


def _drop_excess(taken: Mapping[_Cell, _Counts]) -> int:
    """Take out questions until no constant letter stands above its bar over all of them; how many went.

    Rounding in many small cells can favour one letter; of the cell where that letter is most ahead, one goes.
    """
    cells = {cell: bins for cell, bins in taken.items() if cell.kind == "letter"}
    dropped = 0
    while True:
        allowed = sum(sum(bins.values()) * (1 / cell.options + ABOVE_CHANCE) for cell, bins in cells.items())
        letter, n = max(_count_letters(cells, ()).items(), key=lambda entry: entry[1], default=(0, 0))
        if n <= allowed + 1e-9:
            return dropped
        mine = {
            cell: {place: n for place, n in bins.items() if n and place[0] == letter} for cell, bins in cells.items()
        }
        ahead = {
            cell: sum(mine[cell].values()) - sum(cells[cell].values()) / cell.options for cell in cells if mine[cell]
        }
        worst = max(ahead, key=lambda cell: ahead[cell])
        cells[worst][max(mine[worst], key=lambda place: cells[worst][place])] -= 1
        dropped += 1
