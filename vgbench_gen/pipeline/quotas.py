"""How many facts of which scene are asked in which form: whole numbers that meet every total of a recipe at once.

Facts of one task in one scene that can be asked in the same forms are interchangeable, so the unknowns are counts per
(task, scene, form), not facts. Let R(A) be the sum over the facts of a scene of min(forms per fact, forms in A that
the fact can take). Counts can be dealt out to facts exactly when every set A of forms takes at most R(A): each fact
is a uniform matroid over its forms, and bases of a sum of matroids are sums of bases (J. Edmonds, "Submodular
functions, matroids, and certain polyhedra", 1970). HiGHS solves two kinds of integer programmes: one for the cells
(task, form, source, split) against all totals, with every scene's limits in place, and one per block of scenes that
the totals do not tell apart, for an even spread. Nothing here knows what a fact says.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.types import FloatArray, QuestionType

if TYPE_CHECKING:
    from scipy.optimize._milp import _OptionsMILP

ITEMS: Mapping[QuestionType, int] = {"judgment": 2, "multi-choice": 1, "open-ended": 1}  # rows that one fact gives
_FAR_SHARE = 0.25  # being off by more than this share of what is due costs more, so that one cell never bears it all
_FAR_COST = 4.0
_FIT_ROUNDS = 200
_NODES = 1000  # how evenly things are spread is not worth more; a count, not a time, so that the result stays the same

Terms = list[tuple[int, float]]


class QuotaScene(NamedTuple):
    """One scene."""

    source: str
    split: str
    scene_id: str
    order: str = ""
    """Text that puts scenes in an order of their own; what is left open is settled by it."""


class QuotaCell(NamedTuple):
    """Facts of one task, asked in one form, in one scene."""

    task: str
    scene: QuotaScene
    form: QuestionType


@dataclass(frozen=True, slots=True)
class SceneSupply:
    """How many facts of one task a scene has."""

    task: str
    scene: QuotaScene
    counts: Mapping[frozenset[QuestionType], int]
    """The forms that a fact can be asked in -> how many such facts there are."""

    def rank(self, forms: Iterable[QuestionType], per_fact: int) -> int:
        """Most questions in these forms when no fact is asked in more than `per_fact` of them."""
        wanted = frozenset(forms)
        return sum(count * min(per_fact, len(wanted & can)) for can, count in self.counts.items())


@dataclass(frozen=True, slots=True)
class Targets:
    """Totals in items, of which twins count as two, and limits."""

    cells: Mapping[tuple[str, QuestionType], int] = field(default_factory=dict)
    """Items per (task, form)."""
    tasks: Mapping[str, int] = field(default_factory=dict)
    """Items per task over all its forms; a task stands in one of the two."""
    sources: Mapping[str, int] = field(default_factory=dict)
    """Items per source over all tasks, empty where not fixed."""
    splits: Mapping[str, int] = field(default_factory=dict)
    """Items per split over all tasks, empty where not fixed."""
    caps: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(task, source) -> most items in one scene."""
    forms_per_fact: int = 1
    """In how many forms one fact may be asked."""

    @property
    def total(self) -> int:
        """Items asked for."""
        return sum(self.cells.values()) + sum(self.tasks.values())

    def forms(self, task: str) -> list[QuestionType]:
        """Forms that items of a task may take."""
        return [form for form in ITEMS if task in self.tasks or self.cells.get((task, form))]

    def block(self, task: str, scene: QuotaScene) -> tuple[str, str, str]:
        """Scenes of one block can be exchanged for a task without touching any total."""
        return task, scene.source if self.sources else "", scene.split if self.splits else ""


def solve(supplies: Sequence[SceneSupply], targets: Targets) -> dict[QuotaCell, int]:
    """Facts to ask per cell: as many items as the totals allow, cells near proportional, scenes as even as can be.

    No total is ever exceeded. Where all of them can be met at once, they are; otherwise the number of items missing in
    all is the smallest possible. The order of `supplies` does not matter.

    Raises:
        VGBenchError: the solver found nothing where something exists.
    """
    supplies = sorted(supplies, key=lambda s: (s.task, s.scene.order, s.scene))
    amounts = _solve_cells(supplies, targets)
    blocks: dict[tuple[str, str, str], list[SceneSupply]] = defaultdict(list)
    for supply in supplies:
        blocks[targets.block(supply.task, supply.scene)].append(supply)
    result: dict[QuotaCell, int] = {}
    for block, members in blocks.items():
        wanted = {form: amounts[*block, form] for form in ITEMS if amounts.get((*block, form))}
        if wanted:
            result |= _spread(members, wanted, targets)
    return result


class _Model:
    """An integer programme that is put together piece by piece; no variable is negative."""

    def __init__(self) -> None:
        self.upper: list[float] = []
        self.cost: list[float] = []
        self.whole: list[int] = []
        self.rows: list[tuple[float, Terms, float]] = []

    def add_variable(self, upper: float = math.inf, cost: float = 0.0, whole: bool = True) -> int:
        self.upper.append(upper)
        self.cost.append(cost)
        self.whole.append(int(whole))
        return len(self.upper) - 1

    def add_row(self, low: float, terms: Terms, high: float) -> None:
        self.rows.append((low, terms, high))

    def add_near(self, terms: Terms, due: float, cost: float) -> None:
        """Costs for being away from `due`; free between the whole numbers around it, so that optima stay whole."""
        reach = max(1.0, _FAR_SHARE * due)
        over, far_over = self.add_variable(reach, cost, False), self.add_variable(math.inf, _FAR_COST * cost, False)
        under, far_under = self.add_variable(reach, cost, False), self.add_variable(math.inf, _FAR_COST * cost, False)
        self.add_row(-math.inf, [*terms, (over, -1), (far_over, -1)], math.ceil(due - 1e-9))
        self.add_row(math.floor(due + 1e-9), [*terms, (under, 1), (far_under, 1)], math.inf)

    def solve(self, nodes: int | None = _NODES) -> FloatArray | None:
        """The values, or None where no values satisfy all rows; the best found within so many nodes (None: the best).

        Raises:
            VGBenchError: the solver ended with neither.
        """
        sizes = [len(terms) for _, terms, _ in self.rows]
        columns = np.array([k for _, terms, _ in self.rows for k, _ in terms], dtype=np.int32)
        values = np.array([v for _, terms, _ in self.rows for _, v in terms], dtype=np.float64)
        table = csr_array((values, columns, np.cumsum([0, *sizes])), shape=(len(self.rows), len(self.upper)))
        table.sum_duplicates()
        options: _OptionsMILP = {"mip_rel_gap": 0.0}
        if nodes is not None:
            options["node_limit"] = nodes
        found = milp(
            np.array(self.cost),
            integrality=np.array(self.whole),
            bounds=Bounds(0, np.array(self.upper)),
            constraints=LinearConstraint(table, [low for low, _, _ in self.rows], [high for _, _, high in self.rows]),
            options=options,
        )
        if found.status == 2:
            return None
        if found.x is None and nodes is not None:
            return self.solve(None)
        if found.x is None:
            raise VGBenchError(f"planning items: HiGHS ended with {found.message!r}; please report the recipe.")
        return np.asarray(found.x, dtype=np.float64)


def _add_scene(
    model: _Model, supply: SceneSupply, forms: Sequence[QuestionType], targets: Targets
) -> dict[QuestionType, int]:
    """Unknowns of one task in one scene under its limits: form -> variable."""
    ranks = {form: supply.rank([form], targets.forms_per_fact) for form in forms}
    cap = targets.caps.get((supply.task, supply.scene.source), math.inf)
    upper = {form: min(ranks[form], cap // ITEMS[form]) for form in forms}
    place = {form: model.add_variable(upper[form]) for form in forms if upper[form] > 0}
    for size in range(2, len(place) + 1):
        for chosen in itertools.combinations(place, size):
            rank = supply.rank(chosen, targets.forms_per_fact)
            if rank < sum(upper[form] for form in chosen):
                model.add_row(0, [(place[form], 1) for form in chosen], rank)
    if sum(ITEMS[form] * upper[form] for form in place) > cap:
        model.add_row(0, [(k, ITEMS[form]) for form, k in place.items()], cap)
    return place


def _solve_cells(supplies: Sequence[SceneSupply], targets: Targets) -> dict[tuple[str, str, str, QuestionType], int]:
    """Facts per (task, source, split, form); source and split are "" where the totals do not tell them apart."""
    model = _Model()
    cells: dict[QuotaCell, int] = {}
    for supply in supplies:
        for form, k in _add_scene(model, supply, targets.forms(supply.task), targets).items():
            cells[QuotaCell(supply.task, supply.scene, form)] = k
    if not cells:
        return {}
    for limit, members in _list_totals(cells, targets):
        model.add_row(0, members, limit)
    blocks: dict[tuple[str, str, str, QuestionType], Terms] = defaultdict(list)
    for cell, k in cells.items():
        blocks[*targets.block(cell.task, cell.scene), cell.form].append((k, 1))
    plain = len(model.cost)
    for key, due in _share_out(list(blocks), targets).items():
        model.add_near(blocks[key], due, 1 / math.sqrt(1 + due))
    everything: Terms = [(k, ITEMS[cell.form]) for cell, k in cells.items()]
    model.add_row(targets.total, everything, targets.total)
    values = model.solve()
    if values is None:
        most = _find_most(model, plain, everything)
        model.rows[-1] = (most, everything, most)
        values = model.solve()
        if values is None:
            raise VGBenchError("planning items: HiGHS lost a solution that it had found; please report the recipe.")
    return {key: sum(round(values[k]) for k, _ in terms) for key, terms in blocks.items()}


def _find_most(model: _Model, plain: int, everything: Terms) -> int:
    """Most items under the totals as upper limits; looks at the first `plain` variables only."""
    bare = _Model()
    bare.upper, bare.whole = model.upper[:plain], model.whole[:plain]
    bare.cost = [0.0] * plain
    for k, items in everything:
        bare.cost[k] = -items
    bare.rows = [row for row in model.rows[:-1] if all(k < plain for k, _ in row[1])]
    values = bare.solve(None)
    if values is None:
        raise VGBenchError("planning items: HiGHS refused even the empty plan; please report the recipe.")
    return sum(round(items) * round(values[k]) for k, items in everything)


def _list_totals(cells: Mapping[QuotaCell, int], targets: Targets) -> list[tuple[int, Terms]]:
    """(limit, items that count against it) for every total."""
    counted: dict[tuple[str, ...], Terms] = defaultdict(list)
    for cell, k in cells.items():
        term = (k, float(ITEMS[cell.form]))
        if cell.task in targets.tasks:
            counted["task", cell.task].append(term)
        else:
            counted["cell", cell.task, cell.form].append(term)
        if targets.sources:
            counted["source", cell.scene.source].append(term)
        if targets.splits:
            counted["split", cell.scene.split].append(term)
    limits: dict[tuple[str, ...], int] = {("task", task): n for task, n in targets.tasks.items()}
    limits |= {("cell", task, form): n for (task, form), n in targets.cells.items()}
    limits |= {("source", source): n for source, n in targets.sources.items()}
    limits |= {("split", split): n for split, n in targets.splits.items()}
    return [(limits.get(key, 0), terms) for key, terms in counted.items()]


def _share_out(
    keys: Sequence[tuple[str, str, str, QuestionType]], targets: Targets
) -> dict[tuple[str, str, str, QuestionType], float]:
    """Facts due to each cell when every total is shared out in proportion over the cells that exist.

    Iterative proportional fitting (W. E. Deming, F. F. Stephan, 1940).
    """
    weight = np.ones(len(keys))
    for k, (task, _, _, form) in enumerate(keys):
        if task in targets.tasks:  # forms of a task alike, as far as nothing else is said
            weight[k] = 1 / sum(key[0] == task and key[3] == form for key in keys)
    groups = _group_cells(keys, targets)
    for _ in range(_FIT_ROUNDS):
        for wanted, members in groups:
            have = weight[members].sum()
            if have > 0:
                weight[members] *= wanted / have
    return {key: float(weight[k]) / ITEMS[key[3]] for k, key in enumerate(keys)}


def _group_cells(keys: Sequence[tuple[str, str, str, QuestionType]], targets: Targets) -> list[tuple[int, list[int]]]:
    """(a total, places of the cells that it is over) for every total that has any."""
    groups = [(n, [k for k, key in enumerate(keys) if key[0] == task]) for task, n in targets.tasks.items()]
    groups += [(n, [k for k, key in enumerate(keys) if (key[0], key[3]) == cell]) for cell, n in targets.cells.items()]
    groups += [(n, [k for k, key in enumerate(keys) if key[1] == source]) for source, n in targets.sources.items()]
    groups += [(n, [k for k, key in enumerate(keys) if key[2] == split]) for split, n in targets.splits.items()]
    return [(total, members) for total, members in groups if members]


def _spread(
    members: Sequence[SceneSupply], wanted: Mapping[QuestionType, int], targets: Targets
) -> dict[QuotaCell, int]:
    """Facts per cell within a block of one task: exactly `wanted` per form, scenes even in all and per form."""
    model = _Model()
    places = [(supply, _add_scene(model, supply, list(wanted), targets)) for supply in members]
    for form, count in wanted.items():
        model.add_row(count, [(place[form], 1) for _, place in places if form in place], count)
        _add_level_cost(
            model, [([(place[form], 1)], model.upper[place[form]]) for _, place in places if form in place], count, 1
        )
    loads: list[tuple[Terms, float]] = []
    for supply, place in places:
        if place:
            rank = supply.rank(place, targets.forms_per_fact)
            cap = targets.caps.get((supply.task, supply.scene.source), math.inf)
            loads.append(([(k, 1) for k in place.values()], min(rank, cap)))
    _add_level_cost(model, loads, sum(wanted.values()), 10)
    values = model.solve()
    if values is None:
        raise VGBenchError(
            "planning items: HiGHS found no spread of cells that it had filled; please report the recipe."
        )
    return {
        QuotaCell(supply.task, supply.scene, form): round(values[k])
        for supply, place in places
        for form, k in place.items()
        if round(values[k])
    }


def _add_level_cost(model: _Model, loads: Sequence[tuple[Terms, float]], total: int, cost: float) -> None:
    """Costs for loads away from the water level: all alike, as far as each can hold it."""
    level = find_water_level([room for _, room in loads], total)
    for terms, room in loads:
        over, under = model.add_variable(cost=cost, whole=False), model.add_variable(cost=cost, whole=False)
        model.add_row(-math.inf, [*terms, (over, -1)], level)
        model.add_row(min(room, level - 1), [*terms, (under, 1)], math.inf)


def find_water_level(rooms: Sequence[float], total: int) -> int:
    """Smallest whole level to which vessels of these sizes must be filled to hold `total`; 0 for nothing."""
    low, high = 0, max(total, 0)
    while low < high:
        middle = (low + high) // 2
        if sum(min(room, middle) for room in rooms) >= total:
            high = middle
        else:
            low = middle + 1
    return low
