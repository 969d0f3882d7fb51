"""Whole numbers for every cell: exact where possible, as near as possible where not, even over scenes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vgbench_gen.core.types import QUESTION_TYPES, QuestionType
from vgbench_gen.pipeline.pick import Picker, Spread
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.quotas import ITEMS, Cell, Targets, TaskScene, Total, count_room, find_water_level, solve

Forms = frozenset[QuestionType]
Facts = dict[TaskScene, list[Forms]]
Supplies = dict[TaskScene, Counter[Forms]]

SCENES = [
    TaskScene("", "", source, split, name)
    for source, split, name in [
        ("ca1m", "val", "a"), ("ca1m", "test", "b"), ("scannet", "val", "c"), ("scannet", "val", "d"),
        ("wildrgbd", "test", "e"),
    ]
]  # fmt: skip
MASKS = [frozenset(chosen) for size in (1, 2, 3) for chosen in itertools.combinations(QUESTION_TYPES, size)]
fact_lists = st.lists(st.sampled_from(MASKS), max_size=5)


def supplies(facts: Facts) -> Supplies:
    return {place: Counter(members) for place, members in facts.items() if members}


def solve_cells(supply: Supplies, targets: Targets) -> dict[Cell, int]:
    return {(place, form): n for place, forms in solve(supply, targets).items() for form, n in forms.items()}


def make_targets(
    cells: Mapping[tuple[str, QuestionType], int],
    caps: Mapping[tuple[str, str], int],
    per_fact: int,
    **others: Mapping[str, int],
) -> Targets:
    """others: "task", "source" and "split" -> name -> total."""
    totals: dict[Total, int] = {("task", task, form): n for (task, form), n in cells.items()}
    totals |= {(kind, name, ""): n for kind, names in others.items() for name, n in names.items()}
    return Targets(totals, caps, per_fact)


def forms_of(row: int, forms: Collection[QuestionType], value: float = float("nan")) -> list[QuestionPlan]:
    """A fact in each of its forms."""
    return [QuestionPlan("t", "ca1m", "val", "a", str(row), form, row, value=value) for form in sorted(forms)]


def picked_rows(
    facts: Sequence[Sequence[QuestionPlan]], wanted: dict[QuestionType, int], picker: Picker | None = None
) -> list[tuple[int, QuestionType]]:
    picked = (picker or Picker({}, None, 0.0, 1)).pick(facts, wanted)
    return [(plan.row, plan.question_type) for plan in picked]


def test_judgments_are_about_facts_of_all_kinds() -> None:
    """Facts that no set of options suits are judged as often as others, not instead of them."""
    both: list[QuestionType] = ["judgment", "multi-choice"]
    facts = [forms_of(row, both if row % 5 else both[:1]) for row in range(100)]
    wanted: dict[QuestionType, int] = {"judgment": 20, "multi-choice": 60}
    judged = [row for row, form in picked_rows(facts, wanted) if form == "judgment"]
    assert 1 <= sum(row % 5 == 0 for row in judged) <= 8


def items_of(found: Mapping[Cell, int]) -> Counter[Total]:
    """Items per total that they count against."""
    counts: Counter[Total] = Counter()
    for (place, form), number in found.items():
        keys = [("task", place.task, form), ("task", place.task, ""), ("source", place.source, "")]
        for key in [*keys, ("split", place.split, ""), ("scene", place.task, place.scene_id), ("all", "", "")]:
            counts[key] += ITEMS[form] * number
    return counts


def check_limits(found: Mapping[Cell, int], facts: Facts, targets: Targets) -> None:
    """No total and no limit is exceeded, and facts can be picked so."""
    counts = items_of(found)
    for total, number in targets.totals.items():
        assert counts[total] <= number
    for place, members in facts.items():
        cap = targets.caps.get((place.task, place.source))
        assert cap is None or counts["scene", place.task, place.scene_id] <= cap
        wanted = {form: n for (where, form), n in found.items() if where == place}
        askable = [forms_of(row, forms) for row, forms in enumerate(members) if forms]
        picked = picked_rows(askable, wanted, Picker({}, None, 0.0, targets.forms_per_fact))
        assert Counter(form for _, form in picked) == wanted
        assert len(set(picked)) == len(picked)
        assert all(form in members[k] for k, form in picked)
        assert max(Counter(k for k, _ in picked).values(), default=0) <= targets.forms_per_fact


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_totals_that_can_be_met_are_met(data: st.DataObject) -> None:
    """Ask some facts, count what that gives, and forget how: the solver must find as much again."""
    per_fact = data.draw(st.integers(1, 3))
    facts: Facts = {}
    asked: Counter[Cell] = Counter()
    for place in [scene._replace(task=task) for task in ("t", "u") for scene in SCENES]:
        facts[place] = data.draw(fact_lists)
        for mask in facts[place]:
            forms = data.draw(st.lists(st.sampled_from(sorted(mask)), max_size=per_fact, unique=True))
            asked.update((place, form) for form in forms)
    counts = items_of(asked)
    caps: dict[tuple[str, str], int] = {}
    for place in facts:
        most = counts["scene", place.task, place.scene_id]
        caps[place.task, place.source] = max(caps.get((place.task, place.source), 0), most)
    kinds = {"source", "split"} if data.draw(st.booleans()) else {"source"}
    totals = {
        key: n for key, n in counts.items() if key[0] in kinds or (key[0] == "task" and (key[1] == "t") == bool(key[2]))
    }
    targets = Targets(totals, caps, per_fact)
    found = solve_cells(supplies(facts), targets)
    check_limits(found, facts, targets)
    have = items_of(found)
    assert {key: have[key] for key in totals} == totals
    assert have["all", "", ""] == counts["all", "", ""]
    shuffled = data.draw(st.permutations(list(supplies(facts).items())))
    assert solve_cells(dict(shuffled), targets) == found


def most_items(facts: Facts, targets: Targets) -> int:
    """By trying everything."""
    choices: list[list[list[Cell]]] = []
    for place, members in facts.items():
        for mask in members:
            sizes = range(targets.forms_per_fact + 1)
            sets = [s for size in sizes for s in itertools.combinations(sorted(mask), size)]
            choices.append([[(place, form) for form in s] for s in sets])
    best = 0
    caps = {("scene", place.task, place.scene_id): targets.caps[place.task, place.source] for place in facts}
    limits: dict[Any, int] = {**targets.totals, **caps}
    for combination in itertools.product(*choices):
        counts = items_of(Counter(itertools.chain.from_iterable(combination)))
        if all(
            n <= limits.get(key, n if key[0] in ("all", "split") or key[2:] == ("",) else 0)
            for key, n in counts.items()
        ):
            best = max(best, counts["all", "", ""])
    return best


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_missing_is_the_least_possible(data: st.DataObject) -> None:
    scenes = [SCENES[0], SCENES[1], SCENES[2]]
    facts: Facts = {}
    room = 6  # facts in all: everything is tried
    for task, scene in itertools.product(("t", "u"), scenes):
        members = data.draw(st.lists(st.sampled_from(MASKS), max_size=min(2, room)))
        room -= len(members)
        facts[scene._replace(task=task)] = members
    even = st.integers(0, 2).map(lambda n: 2 * n)
    cells: dict[tuple[str, QuestionType], int] = {
        (task, form): data.draw(even if form == "judgment" else st.integers(0, 3))
        for task in ("t", "u")
        for form in QUESTION_TYPES
    }
    targets = make_targets(
        cells,
        {(t, s): data.draw(st.integers(1, 5)) for t in ("t", "u") for s in ("ca1m", "scannet")},
        data.draw(st.integers(1, 2)),
        source={source: data.draw(st.integers(0, 6)) for source in ("ca1m", "scannet")},
    )
    found = solve_cells(supplies(facts), targets)
    check_limits(found, facts, targets)
    assert items_of(found)["all", "", ""] == most_items(facts, targets)


def published(scenes: int, facts: int, rng: np.random.Generator) -> tuple[Supplies, Targets]:
    """The published totals against simulated scenes in the proportions of the samples."""
    forms: dict[str, dict[QuestionType, int]] = {
        "homography_to_matrix": {"multi-choice": 500}, "homography_to_image": {"multi-choice": 500},
        "relative_pose": {"judgment": 150, "multi-choice": 400}, "view_after_motion": {"multi-choice": 550},
        "camera_parameters": {"judgment": 126, "multi-choice": 374}, "relative_depth": {"multi-choice": 550},
        "object_distance": {"judgment": 100, "multi-choice": 100, "open-ended": 400},
        "metric_depth": {"judgment": 56, "multi-choice": 58, "open-ended": 436},
        "point_tracking": {"judgment": 400, "multi-choice": 700},
        "object_location": {"judgment": 300, "multi-choice": 300},
    }  # fmt: skip
    places = [
        TaskScene("", "", source, "val", f"{source}{k}")
        for source, share in (("ca1m", 36), ("scannet", 14), ("scannetpp", 10), ("wildrgbd", 8))
        for k in range(round(scenes * share / 68))
    ]
    number = Counter(scene.source for scene in places)
    found: Supplies = {}
    for task, wanted in forms.items():
        for scene in places:
            if task.startswith("object") and scene.source != "ca1m":
                continue
            masks = [frozenset(f for f in wanted if rng.random() < 0.9) for _ in range(min(facts, rng.poisson(facts)))]
            found[scene._replace(task=task)] = Counter(mask for mask in masks if mask)
    cells = {(task, form): n for task, wanted in forms.items() for form, n in wanted.items()}
    caps = {
        (task, source): int(max(0.03, 1.5 / number[source]) * sum(wanted.values()))
        for task, wanted in forms.items()
        for source in number
    }
    sources = {"scannet": 1214, "scannetpp": 873, "ca1m": 3289, "wildrgbd": 624}
    return found, make_targets(cells, caps, 1, source=sources)


def test_the_published_totals_over_68_scenes() -> None:
    supply, targets = published(68, 24, np.random.default_rng(0))
    found = solve_cells(supply, targets)
    counts = items_of(found)
    assert {total: counts[total] for total in targets.totals} == targets.totals
    for place, _ in found:
        assert counts["scene", place.task, place.scene_id] <= targets.caps[place.task, place.source]
    # What nobody fixed is shared in proportion, and scenes of one source bear alike.
    free = sorted({place.task for place in supply if not place.task.startswith("object")})
    for source, total in (("scannet", 1214), ("scannetpp", 873), ("wildrgbd", 624)):
        for task in free:
            got = sum(ITEMS[form] * n for (p, form), n in found.items() if (p.task, p.source) == (task, source))
            assert got == pytest.approx(counts["task", task, ""] * total / 4800, abs=4)
    for block in itertools.product(free, ("scannet", "scannetpp", "ca1m", "wildrgbd")):
        loads = Counter({place: 0 for place in supply if (place.task, place.source) == block})
        for (place, _), n in found.items():
            if place in loads:
                loads[place] += n
        room = {place: count_room(supply[place], QUESTION_TYPES, 1) for place in loads}
        level = find_water_level([room[place] for place in loads], loads.total())
        assert all(min(room[place], level - 1) - 1 <= load <= level + 1 for place, load in loads.items())


def test_scenes_bear_alike_over_all_forms() -> None:
    """Two of four scenes alone can give judgments: the other two give the choices, wherever they stand."""
    both: Forms = frozenset({"judgment", "multi-choice"})
    one: Forms = frozenset({"multi-choice"})
    scenes = [scene._replace(source="ca1m", task="t") for scene in SCENES[:4]]
    for rich in itertools.combinations(scenes, 2):
        supply = {scene: Counter({both if scene in rich else one: 3}) for scene in scenes}
        found = solve(supply, make_targets({("t", "judgment"): 4, ("t", "multi-choice"): 2}, {}, 2))
        assert found == {scene: {"judgment" if scene in rich else "multi-choice": 1} for scene in scenes}


def test_few_facts_give_as_many_items_as_there_are() -> None:
    supply, targets = published(68, 3, np.random.default_rng(1))
    assert 0 < items_of(solve_cells(supply, targets))["all", "", ""] < targets.total


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(0, 40))
def test_water_level(rooms: Sequence[int], total: int) -> None:
    level = find_water_level(rooms, total)
    if total <= sum(rooms):
        assert sum(min(room, level) for room in rooms) >= total
    if level:
        assert sum(min(room, level - 1) for room in rooms) < total


def test_what_cannot_be_picked_is_said() -> None:
    facts = [forms_of(0, ["judgment", "open-ended"]), forms_of(1, ["open-ended"])]
    with pytest.raises(ValueError, match="cannot be picked of 2 facts"):
        picked_rows(facts, {"judgment": 1, "open-ended": 2})
    dealt = picked_rows(facts, {"judgment": 1, "open-ended": 1})
    assert sorted(dealt) == [(0, "judgment"), (1, "open-ended")]


def test_open_ended_answers_are_spread_over_their_range_and_choices_are_not() -> None:
    crowded = [2.0 + 0.001 * k for k in range(40)] + [0.5 * 1.3**k for k in range(8)]
    facts = [forms_of(row, ["multi-choice", "open-ended"], value) for row, value in enumerate(crowded)]

    def values(form: QuestionType) -> list[float]:
        return [crowded[row] for row, _ in picked_rows(facts, {form: 10})]

    assert values("multi-choice") == crowded[:10]
    taken = np.array(values("open-ended"))
    best = max((np.maximum(taken / guess, guess / taken) <= 1.25).mean() for guess in np.linspace(0.4, 4, 200))
    assert best <= 0.5
    assert {value for value in crowded[40:] if not 1.6 < value < 2.5} <= set(taken.tolist())


def test_open_ended_questions_get_the_answers_that_lie_apart_before_other_types_take_them() -> None:
    apart = [0.5 * 1.6**k for k in range(8)]
    values = [*apart, *(2.0 + 0.001 * k for k in range(8))]  # earlier facts are preferred by types that take any
    facts = [forms_of(row, ["judgment", "open-ended"], value) for row, value in enumerate(values)]
    dealt = picked_rows(facts, {"judgment": 8, "open-ended": 8})
    assert len({row for row, _ in dealt}) == 16
    assert len([row for row, form in dealt if form == "open-ended" and row < 8]) >= 7


def test_answers_stand_in_no_clumps_that_one_guess_would_join() -> None:
    rng, picker, taken = np.random.default_rng(0), Picker({}, None, 0.0, 1), []
    for _ in range(60):  # scenes, whose answers lie mostly in the middle
        values = rng.triangular(0.4, 2.5, 4.5, 24).tolist()
        facts = [forms_of(row, ["open-ended"], value) for row, value in enumerate(values)]
        taken += [values[row] for row, _ in picked_rows(facts, {"open-ended": 6}, picker)]
    answers = np.array(taken)
    best = max((np.maximum(answers / guess, guess / answers) <= 1.25).mean() for guess in np.geomspace(0.4, 4.5, 300))
    assert best <= 0.26  # 0.18 is possible; 0.30 where an answer crowds others by its distance alone


def test_answers_of_another_kind_or_without_a_number_crowd_nobody() -> None:
    spread = Spread()
    for value in (1.0, 1.2, 3.0):
        spread.take("camera/fx", value)
    spread.take("camera/fx", float("nan"))
    for value, guessed in ((1.0, 2), (1.1, 2), (1.7, 1), (2.5, 1), (0.6, 0), (1.9, 0), (5.0, 0)):
        assert int(spread.measure_crowding("camera/fx", value)) == guessed, value
    assert spread.measure_crowding("camera/fx", 1.0) > spread.measure_crowding("camera/fx", 0.9)  # as many, and closer
    assert spread.measure_crowding("camera/hfov", 1.1) == 0
    assert spread.measure_crowding("camera/fx", float("nan")) == 0
