from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.pipeline.plan import (
    Planned,
    balanced_letters,
    difficulties,
    group_id,
    in_turns,
    letter_counts,
    plan,
    truth_at,
)
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.metric_depth import MetricDepth
from vgbench_gen.tasks.relative_depth import RelativeDepth

DEPTHS = [0.8, 1.1, 1.4, 1.8, 2.3, 1.2, 2.0]


def fact(number: int, scene: str = "a", dataset: str = "scannet", depths: list[float] = DEPTHS) -> Fact:
    """A metric_depth fact whose margin is its number."""
    pool = tuple(
        Candidate(f"region:{n},0,40,40", np.array([d]), show={"rect": [n, 0, 40, 40]}) for n, d in enumerate(depths)
    )
    return Fact(
        "metric_depth", 1, "", dataset, scene, "val", f"{number}", (str(number),), pool, 2, pool[2].value,
        1.0 + number, {}, "cc0-1.0",
    )  # fmt: skip


def facts(scenes: dict[tuple[str, str], int]) -> list[Fact]:
    return [fact(n, scene, dataset) for (dataset, scene), count in scenes.items() for n in range(count)]


MANY = facts({("scannet", "a"): 11, ("scannet", "b"): 6, ("ca1m", "c"): 9, ("wildrgbd", "box/d"): 3})


def signature(planned: list[Planned]) -> list[tuple[str, str, str, list[str], int]]:
    return [
        (
            p.group_id,
            p.question_type,
            p.difficulty,
            [c.key for c in p.options.options] if p.options else [],
            p.options.truth if p.options else -1,
        )
        for p in planned
    ]


def test_letters_are_balanced_to_one_per_task_and_source() -> None:
    planned, unchosen = plan(MANY, [MetricDepth()], Recipe())
    assert not unchosen
    counts = letter_counts(planned)
    assert set(counts) == {"metric_depth/scannet", "metric_depth/ca1m", "metric_depth/wildrgbd"}
    assert [sum(count) for count in counts.values()] == [9, 17, 3]
    for count in counts.values():
        assert max(count) - min(count) <= 1
    for entry in planned:
        if entry.options is not None:
            assert entry.options.options[entry.options.truth].key == entry.fact.truth_candidate.key
            assert entry.options.separations[entry.options.truth] == 0
            assert sum(s >= 1 for s in entry.options.separations) == 3


def test_blocks_are_permutations_of_their_own() -> None:
    """Over many cells every letter is the last block's first as often as any other: no fixed A, B, C, D."""
    options = OptionSet(MANY[0].candidates[:4], 0, "set_first", (0.0, 1.0, 2.0, 3.0))
    orders = Counter()  # type: Counter[tuple[int, ...]]
    for seed in range(60):
        cell = [Planned(MANY[n], group_id(MANY[n]), "multi-choice", "easy", options) for n in range(8)]
        letters = [p.options.truth for p in balanced_letters(cell, seed) if p.options]
        assert sorted(letters[:4]) == sorted(letters[4:]) == [0, 1, 2, 3]
        orders[tuple(letters[:4])] += 1
    assert len(orders) > 15


def test_plan_does_not_depend_on_the_order_of_facts() -> None:
    rng = np.random.default_rng(0)
    recipe = Recipe(items_per_cell=14)
    expected = signature(plan(MANY, [MetricDepth()], recipe)[0])
    for _ in range(3):
        shuffled = [MANY[i] for i in rng.permutation(len(MANY))]
        assert signature(plan(shuffled, [MetricDepth()], recipe)[0]) == expected
    assert len(expected) == 7 + 14 + 14


def test_another_distractor_seed_changes_options_and_nothing_else() -> None:
    first, _ = plan(MANY, [MetricDepth()], Recipe())
    second, _ = plan(MANY, [MetricDepth()], Recipe(distractor_seed=1))
    assert [(p.group_id, p.question_type, p.difficulty) for p in first] == [
        (p.group_id, p.question_type, p.difficulty) for p in second
    ]
    both = [(a.options, b.options) for a, b in zip(first, second, strict=True) if a.options and b.options]
    assert len(both) == len(MANY)
    changed = 0
    for a, b in both:
        assert a.truth == b.truth  # letters follow from the group
        changed += {c.key for c in a.options} != {c.key for c in b.options}
    assert changed > len(both) / 2


def test_group_follows_from_the_fact() -> None:
    base = fact(0)
    names = {
        group_id(base),
        group_id(fact(1)),
        group_id(fact(0, "b")),
        group_id(fact(0, dataset="ca1m")),
        group_id(replace(base, truth=3)),
        group_id(replace(base, task_version=2)),
        group_id(replace(base, ask="x")),
        group_id(replace(base, candidates=base.candidates[:6])),
    }
    assert len(names) == 8
    assert group_id(replace(base, margin=9.0, evidence={"a": 1}, second_value=np.array([5.0]))) == group_id(base)


def test_scenes_take_turns() -> None:
    order = in_turns([(group_id(f), f) for f in MANY], seed=0)
    scenes = [f.scene_id for _, f in order]
    assert set(scenes[:4]) == set(scenes[4:8]) == set(scenes[8:12]) == {"a", "b", "c", "box/d"}
    assert sorted(scenes[12:15]) == sorted(scenes[15:18]) == ["a", "b", "c"]
    assert scenes[-2:] == ["a", "a"]
    assert len({name for name, _ in order}) == len(MANY)
    assert [f.key for _, f in order] != [f.key for _, f in in_turns([(group_id(f), f) for f in MANY], seed=1)]


def test_a_limit_cuts_scenes_alike_and_is_reported() -> None:
    planned, unchosen = plan(MANY, [MetricDepth()], Recipe(items_per_cell=8))
    for form, count in (("judgment", 4), ("multi-choice", 8), ("open-ended", 8)):
        chosen = [p for p in planned if p.question_type == form]
        assert Counter(p.fact.scene_id for p in chosen) == dict.fromkeys(("a", "b", "c", "box/d"), count // 4)
        dropped = [u for u in unchosen if u.question_type == form]
        assert {u.reason for u in dropped} == {"cell_full"}
        assert len(chosen) + len(dropped) == len(MANY)
        assert {p.group_id for p in chosen}.isdisjoint(u.group_id for u in dropped)


def test_a_fact_without_options_is_reported_and_still_asked_in_other_forms() -> None:
    poor = fact(0, "poor", depths=[1.0, 1.05, 1.1, 1.12])
    planned, unchosen = plan([poor, *MANY], [MetricDepth()], Recipe())
    forms = {p.question_type for p in planned if p.group_id == group_id(poor)}
    assert forms == {"judgment", "open-ended"}
    assert [(u.question_type, u.reason, u.group_id) for u in unchosen] == [
        ("multi-choice", "too_few_options", group_id(poor))
    ]
    for count in letter_counts(planned).values():
        assert max(count) - min(count) <= 1


def test_difficulty_is_the_tercile_of_the_margin() -> None:
    grouped = [(group_id(f), f) for f in (fact(n) for n in (4, 0, 8, 1, 7, 2, 5, 3, 6))]
    level = difficulties(grouped, stress=False)
    assert [level[group_id(fact(n))] for n in range(9)] == ["hard"] * 3 + ["medium"] * 3 + ["easy"] * 3
    assert set(difficulties(grouped, stress=True).values()) == {"stress"}
    assert difficulties([], stress=False) == {}
    planned, _ = plan(MANY, [MetricDepth()], Recipe(margins="recorded", strategy="sampled"))
    assert {p.difficulty for p in planned} == {"stress"}


def test_truth_moves_by_one_exchange() -> None:
    members = MANY[0].candidates[:4]
    options = OptionSet(members, 1, "sampled", (1.0, 0.0, 2.0, 3.0))
    for letter in range(4):
        moved = truth_at(options, letter)
        assert moved.options[letter] is members[1]
        assert moved.separations[letter] == 0
        assert {c.key: s for c, s in zip(moved.options, moved.separations, strict=True)} == {
            c.key: s for c, s in zip(members, options.separations, strict=True)
        }
        assert moved.strategy == "sampled"


def test_facts_of_tasks_that_are_not_asked_stay_out() -> None:
    planned, unchosen = plan(MANY, [RelativeDepth()], Recipe())
    assert (planned, unchosen) == ([], [])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_planned_questions_are_sorted(count: int) -> None:
    planned, _ = plan(MANY[:count], [MetricDepth()], Recipe())
    keys = [(p.fact.task, p.question_type, p.group_id) for p in planned]
    assert keys == sorted(keys)
    assert len(keys) == 3 * count
