"""How many facts of which scene are asked in which form: whole numbers that meet every total of a recipe at once.

Facts of one task in one scene that can be asked in the same forms are interchangeable, so the unknowns are counts per
(task, scene, form), not facts. Let R(A) be the sum over the facts of a scene of min(forms per fact, forms in A that
the fact can take). Counts can be dealt out to facts exactly when every set A of forms takes at most R(A): each fact
is a uniform matroid over its forms, and bases of a sum of matroids are sums of bases (J. Edmonds, "Submodular
functions, matroids, and certain polyhedra", 1970). HiGHS solves two kinds of integer programmes: one over everything,
which says how many each cell (block, form) gets, and one per block, which spreads that evenly over its scenes. A block
is the scenes of a task that no total tells apart. Nothing here knows what a fact says.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections import Counter, defaultdict
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
_FIT_ROUNDS = 200
_NODES = 1000  # how evenly facts are spread is not worth more; a count, not a time, so that the result stays the same

Total = tuple[str, str, str]
"""("task", name, form), ("task", name, "") over its forms, ("source", name, "") or ("split", name, "")."""
Terms = list[tuple[int, float]]


class TaskScene(NamedTuple):
    """One task in one scene. Ties are settled by `order`, which is the caller's."""

    task: str
    order: str
    source: str
    split: str
    scene_id: str


Cell = tuple[TaskScene, QuestionType]
Supply = Mapping[TaskScene, Mapping[frozenset[QuestionType], int]]
"""The forms that a fact can be asked in -> how many such facts a place has."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Totals in items, of which twins count as two, and limits."""

    totals: Mapping[Total, int]
    """Each task that is asked has one for all its forms or one per form. Sources, or splits, that are not among the
    totals give nothing where others are."""
    caps: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(task, source) -> most items in one scene."""
    forms_per_fact: int = 1
    """In how many forms one fact may be asked."""

    @property
    def total(self) -> int:
        """Items asked for."""
        return sum(count for (kind, _, _), count in self.totals.items() if kind == "task")

    def list_totals(self, place: TaskScene, form: QuestionType) -> list[Total]:
        """The totals that a question counts against; empty where the totals have no room for it."""
        keys = [("task", place.task, form), ("task", place.task, ""), ("source", place.source, "")]
        found = [key for key in (*keys, ("split", place.split, "")) if key in self.totals]
        return found if {kind for kind, _, _ in found} == self._kinds else []

    def find_block(self, place: TaskScene) -> TaskScene:
        """The place without what no total tells apart."""
        kinds = self._kinds
        return TaskScene(place.task, "", place.source * ("source" in kinds), place.split * ("split" in kinds), "")

    @property
    def _kinds(self) -> set[str]:
        return {kind for kind, _, _ in self.totals}


def solve(supply: Supply, targets: Targets) -> dict[TaskScene, dict[QuestionType, int]]:
    """Facts to ask per place and form: as many items as the totals allow, cells near proportional, scenes even.

    No total is ever exceeded. Where all of them can be met at once, they are; otherwise the number of items missing in
    all is the smallest possible. The order of `supply` does not matter.

    Raises:
        VGBenchError: the solver failed.
    """
    blocks: dict[TaskScene, list[TaskScene]] = defaultdict(list)
    for place in sorted(supply):
        blocks[targets.find_block(place)].append(place)
    amounts = _solve_cells(blocks, supply, targets)
    found: dict[TaskScene, dict[QuestionType, int]] = {}
    for block, places in blocks.items():
        if wanted := {form: amounts[block, form] for form in ITEMS if amounts.get((block, form))}:
            found |= _spread(places, wanted, supply, targets)
    return found


class _Model:
    """An integer programme that is put together piece by piece; no variable is negative."""

    def __init__(self) -> None:
        self.upper: list[float] = []
        self.cost: list[float] = []
        self.whole: list[bool] = []
        self.rows: list[tuple[float, Terms, float]] = []

    def add_variable(self, upper: float = math.inf, cost: float = 0.0, whole: bool = True) -> int:
        self.upper.append(upper)
        self.cost.append(cost)
        self.whole.append(whole)
        return len(self.upper) - 1

    def add_near(self, low: float, terms: Terms, high: float, cost: float) -> None:
        """Costs for each whole step outside of the two limits."""
        self.rows.append((-math.inf, [*terms, (self.add_variable(cost=cost, whole=False), -1)], high))
        self.rows.append((low, [*terms, (self.add_variable(cost=cost, whole=False), 1)], math.inf))

    def add_facts(
        self, counts: Mapping[frozenset[QuestionType], int], forms: Iterable[QuestionType], cap: float, per_fact: int
    ) -> dict[QuestionType, int]:
        """How many questions a place gives per form, within R(A) and the cap in items: form -> variable."""
        upper = {form: min(count_room(counts, [form], per_fact), cap // ITEMS[form]) for form in forms}
        place = {form: self.add_variable(most) for form, most in upper.items() if most > 0}
        for size in range(2, len(place) + 1):
            for chosen in itertools.combinations(place, size):
                room = count_room(counts, chosen, per_fact)
                if room < sum(upper[form] for form in chosen):
                    self.rows.append((0, [(place[form], 1) for form in chosen], room))
        if sum(ITEMS[form] * upper[form] for form in place) > cap:
            self.rows.append((0, [(k, ITEMS[form]) for form, k in place.items()], cap))
        return place

    def solve(self, nodes: int | None = _NODES) -> FloatArray:
        """The values: the best within so many nodes, or where there are none yet, and for None, the best of all.

        Raises:
            VGBenchError: the solver found none.
        """
        lows, terms, highs = zip(*self.rows, strict=True)
        columns, values = zip(*itertools.chain.from_iterable(terms), strict=True)
        starts = np.cumsum([0, *map(len, terms)])
        table = csr_array((values, np.array(columns, dtype=np.int32), starts), shape=(len(terms), len(self.upper)))
        options: _OptionsMILP = {"mip_rel_gap": 0.0}
        if nodes is not None:
            options["node_limit"] = nodes
        found = milp(
            np.array(self.cost),
            integrality=np.array(self.whole, dtype=int),
            bounds=Bounds(0, np.array(self.upper)),
            constraints=LinearConstraint(table, lows, highs),
            options=options,
        )
        if found.x is None and nodes is not None:
            return self.solve(None)
        if found.x is None:
            raise VGBenchError(f"planning items: HiGHS ended with {found.message!r}; please report the recipe.")
        return np.asarray(found.x, dtype=np.float64)


def count_room(counts: Mapping[frozenset[QuestionType], int], forms: Iterable[QuestionType], per_fact: int) -> int:
    """R(A): most questions in these forms when no fact is asked in more than `per_fact` of them."""
    return sum(count * min(per_fact, len(can.intersection(forms))) for can, count in counts.items())


def _solve_cells(blocks: Mapping[TaskScene, Sequence[TaskScene]], supply: Supply, targets: Targets) -> dict[Cell, int]:
    model = _Model()
    cells: dict[Cell, Terms] = defaultdict(list)
    for block, places in blocks.items():
        forms = [form for form in ITEMS if targets.list_totals(block, form)]
        for place in places:
            cap = targets.caps.get((place.task, place.source), math.inf)
            for form, k in model.add_facts(supply[place], forms, cap, targets.forms_per_fact).items():
                cells[block, form].append((k, ITEMS[form]))
    members: dict[Total, list[Cell]] = defaultdict(list)
    for cell in cells:
        for total in targets.list_totals(*cell):
            members[total].append(cell)
    for total, counted in members.items():
        model.rows.append((0, [term for cell in counted for term in cells[cell]], targets.totals[total]))
    missing = model.add_variable(targets.total, cost=1)
    everything = [term for terms in cells.values() for term in terms]
    model.rows.append((targets.total, [*everything, (missing, 1)], targets.total))
    model.upper[missing] = round(model.solve(None)[missing])
    for (block, form), due in _share_out(list(cells), members, targets).items():
        terms: Terms = [(k, 1) for k, _ in cells[block, form]]
        # Free between the whole numbers around what is due, so that optima stay whole.
        model.add_near(math.floor(due + 1e-9), terms, math.ceil(due - 1e-9), 1 / math.sqrt(1 + due))
    values = model.solve()
    return {cell: sum(round(values[k]) for k, _ in terms) for cell, terms in cells.items()}


def _share_out(cells: Sequence[Cell], members: Mapping[Total, Sequence[Cell]], targets: Targets) -> dict[Cell, float]:
    """Facts due to each cell when every total is shared out in proportion over its cells.

    Iterative proportional fitting (W. E. Deming, F. F. Stephan, 1940).
    """
    number = {cell: k for k, cell in enumerate(cells)}
    alike = Counter((block.task, form) for block, form in cells)  # forms of a task share its total alike
    weight = np.array([1 / alike[block.task, form] for block, form in cells])
    groups = [([number[cell] for cell in counted], targets.totals[total]) for total, counted in members.items()]
    for _ in range(_FIT_ROUNDS):
        for group, wanted in groups:
            weight[group] *= wanted / max(weight[group].sum(), 1e-300)
    return {cell: float(weight[k]) / ITEMS[cell[1]] for cell, k in number.items()}


def _spread(
    places: Sequence[TaskScene], wanted: Mapping[QuestionType, int], supply: Supply, targets: Targets
) -> dict[TaskScene, dict[QuestionType, int]]:
    """Facts per place of a block and form: exactly `wanted` per form, scenes even in all and per form."""
    model = _Model()
    asked: dict[TaskScene, dict[QuestionType, int]] = {}
    loads: list[tuple[Terms, float]] = []
    for place in places:
        cap = targets.caps.get((place.task, place.source), math.inf)
        asked[place] = model.add_facts(supply[place], wanted, cap, targets.forms_per_fact)
        if asked[place]:
            room = min(count_room(supply[place], asked[place], targets.forms_per_fact), cap)
            loads.append(([(k, 1) for k in asked[place].values()], room))
    _add_level_costs(model, loads, sum(wanted.values()), 10)
    for form, count in wanted.items():
        of_form = [place[form] for place in asked.values() if form in place]
        model.rows.append((count, [(k, 1) for k in of_form], count))
        _add_level_costs(model, [([(k, 1)], model.upper[k]) for k in of_form], count, 1)
    values = model.solve()
    return {
        place: {form: round(values[k]) for form, k in forms.items() if round(values[k])}
        for place, forms in asked.items()
        if any(round(values[k]) for k in forms.values())
    }


def _add_level_costs(model: _Model, loads: Sequence[tuple[Terms, float]], total: int, cost: float) -> None:
    """Costs for loads away from the water level: all alike, as far as each has room."""
    level = find_water_level([room for _, room in loads], total)
    for terms, room in loads:
        model.add_near(min(room, level - 1), terms, level, cost)


def find_water_level(rooms: Sequence[float], total: int) -> int:
    """Smallest whole level to which vessels of these sizes must be filled to hold `total`; 0 for nothing."""
    return bisect_left(range(max(total, 0)), total, key=lambda level: sum(int(min(room, level)) for room in rooms))
