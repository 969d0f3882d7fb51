from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.facts_at_hand import ask_facts_at_hand, count_dealt, group_id
from vgbench_gen.core.config import parse_config
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Candidate, Fact, QuestionType
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.pipeline import question
from vgbench_gen.pipeline.ask import check_plan
from vgbench_gen.pipeline.plan import (
    Plan,
    choose,
    deal_letters,
    difficulty_counts,
    grade_difficulty,
    list_forms,
)
from vgbench_gen.pipeline.question import ask_as_planned, put_truth_at
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Difficulty, Limits, Recipe
from vgbench_gen.tasks.base import Task
from vgbench_gen.tasks.metric_depth import MetricDepth
from vgbench_gen.tasks.presentation import Claim, ClaimPair
from vgbench_gen.tasks.relative_depth import RelativeDepth
from vgbench_gen.tasks.row_evidence import NoiseRecord

# In four sets with the third, from which all the others are far enough for a false claim.
DEPTHS = [1.6, 1.7, 1.0, 2.1, 2.2, 2.7, 2.9]
CAMERA = {"K": [300.0, 0.0, 159.5, 0.0, 300.0, 119.5, 0.0, 0.0, 1.0], "width": 320, "height": 240}


def fact(number: int, scene: str = "a", dataset: str = "scannet", depths: Sequence[float] | None = None) -> Fact:
    """A metric_depth fact whose margin is its number; its depths are its own unless given."""
    if depths is None:
        scale = 1 + 0.008 * (4 * number + ord(scene[-1]) % 4)
        depths = [round(scale * depth, 2) for depth in DEPTHS]
    pool = tuple(
        Candidate(f"region:{n},0,40,40", np.array([d]), show={"rect": [n, 0, 40, 40]}) for n, d in enumerate(depths)
    )
    frame = str(number)
    return Fact(
        "metric_depth", 1, "", dataset, scene, "val", f"{number}", (frame,), pool, 2, pool[2].value,
        1.0 + number, {}, "cc0-1.0", {frame: f"{number:032x}.jpg"}, {frame: CAMERA},
    )  # fmt: skip


def facts(scenes: dict[tuple[str, str], int]) -> list[Fact]:
    return [fact(n, scene, dataset) for (dataset, scene), count in scenes.items() for n in range(count)]


ALL_FORMS = Limits(forms_per_fact=3)
MANY = facts({("scannet", "a"): 11, ("scannet", "b"): 6, ("ca1m", "c"): 9, ("wildrgbd", "box/d"): 3})


@dataclass(frozen=True)
class Asked:
    """A planned question with its fact and its options as they read from its side."""

    plan: QuestionPlan
    fact: Fact
    options: OptionSet | None

    @property
    def group_id(self) -> str:
        return self.plan.group_id

    @property
    def question_type(self) -> QuestionType:
        return self.plan.question_type


def plan(facts: list[Fact], recipe: Recipe) -> tuple[list[Asked], Plan]:
    # Pairs have tests of their own.
    task = MetricDepth()
    decided = plan_facts(facts, [task], recipe.model_copy(update={"pairs": 0.0}))
    return [Asked(entry, *ask_as_planned(facts[entry.row], entry, task, recipe)) for entry in decided.chosen], decided


def plan_facts(facts: list[Fact], tasks: list[Task], recipe: Recipe) -> Plan:
    return choose(ask_facts_at_hand(facts, tasks, recipe), recipe, list_forms(tasks))


def signature(planned: list[Asked]) -> list[tuple[str, str, str, list[str], int]]:
    return [
        (
            p.group_id,
            p.question_type,
            p.plan.difficulty,
            [c.key for c in p.options.options] if p.options else [],
            p.options.truth if p.options else -1,
        )
        for p in planned
    ]


def lead(deviations: float) -> tuple[NoiseRecord, ...]:
    """What the noise test gives where the answer leads by so many standard deviations."""
    return (NoiseRecord(kept=1.0, draws=200, lead=float(deviations)),)


def forms(number: int, scene: str = "a", source: str = "scannet") -> list[QuestionPlan]:
    """A fact of point_tracking in both of its forms."""
    name = f"{source}/{scene}/{number}"
    return [
        QuestionPlan("point_tracking", source, "val", scene, name, form, number, noise=lead(number), frame="0")
        for form in FORMATS["point_tracking"]
    ]


FORMATS: dict[str, tuple[QuestionType, ...]] = {"point_tracking": ("judgment", "multi-choice")}


def test_letters_are_balanced_to_one_per_task_and_source() -> None:
    planned, decided = plan(MANY, Recipe(limits=ALL_FORMS))
    assert not decided.unchosen
    counts = count_dealt(decided.chosen)
    assert set(counts) == {"metric_depth/scannet", "metric_depth/ca1m", "metric_depth/wildrgbd"}
    assert [sum(count) for count in counts.values()] == [9, 17, 3]
    for count in counts.values():
        assert max(count) - min(count) <= 1
    for entry in planned:
        assert (entry.options is not None) == (entry.question_type == "multi-choice")
        if entry.options is not None:
            assert entry.options.options[entry.options.truth].key == entry.fact.truth_candidate.key
            apart = MetricDepth().pair_margins(entry.options.options, entry.fact)[0][entry.options.truth]
            assert sum(apart >= 1) == 3
    assert count_dealt(decided.chosen) == count_dealt(decided.chosen)
    written = Counter((p.fact.dataset, p.options.truth) for p in planned if p.options)
    assert {(s, k): n for (s, k), n in written.items()} == {
        (key.partition("/")[2], k): n for key, count in counts.items() for k, n in enumerate(count) if n
    }


def test_blocks_are_permutations_of_their_own() -> None:
    """Over many cells every letter is the last block's first as often as any other: no fixed A, B, C, D."""
    orders = Counter()  # type: Counter[tuple[int | None, ...]]
    for seed in range(60):
        cell = [forms(n)[1] for n in range(8)]
        letters = [entry.letter for entry in deal_letters(cell, seed)]
        counts = Counter(letters)
        assert counts == {0: 2, 1: 2, 2: 2, 3: 2}
        orders[tuple(letters[:4])] += 1
    assert len(orders) > 15


def test_plan_does_not_depend_on_the_order_of_facts() -> None:
    rng = np.random.default_rng(0)
    recipe = Recipe(items_per_cell=14, limits=ALL_FORMS)
    expected = signature(plan(MANY, recipe)[0])
    for _ in range(3):
        shuffled = [MANY[i] for i in rng.permutation(len(MANY))]
        assert signature(plan(shuffled, recipe)[0]) == expected
    assert len(expected) == 7 + 14 + 14


def test_another_distractor_seed_changes_options_and_nothing_else() -> None:
    first, _ = plan(MANY, Recipe(limits=ALL_FORMS))
    second, _ = plan(MANY, Recipe(distractor_seed=1, limits=ALL_FORMS))
    assert [(p.group_id, p.question_type) for p in first] == [(p.group_id, p.question_type) for p in second]
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


def test_another_seed_asks_other_facts() -> None:
    asked = [
        {p.group_id for p in plan(MANY, Recipe(seed=seed, items_per_cell=8, limits=ALL_FORMS))[0]} for seed in (1, 2, 1)
    ]
    assert asked[0] == asked[2] != asked[1]


def test_a_limit_cuts_scenes_alike_and_is_reported() -> None:
    planned, decided = plan(MANY, Recipe(items_per_cell=8, limits=ALL_FORMS))
    for form, count in (("judgment", 4), ("multi-choice", 8), ("open-ended", 8)):
        chosen = [p for p in planned if p.question_type == form]
        assert Counter(p.fact.scene_id for p in chosen) == dict.fromkeys(("a", "b", "c", "box/d"), count // 4)
        dropped = [(u, reason) for u, reason in decided.unchosen if u.question_type == form]
        assert {reason for _, reason in dropped} == {"cell_full"}
        assert len(chosen) + len(dropped) == len(MANY)
        assert {p.group_id for p in chosen}.isdisjoint(u.group_id for u, _ in dropped)


def test_one_option_set_is_asked_about_one_truth_only() -> None:
    # Two facts with one possible set, the same values in another order and about another truth.
    values = [1.0, 1.6, 2.2, 2.9]
    alike = [fact(0, "a", depths=values), fact(1, "b", depths=values[::-1]), *facts({("scannet", "c"): 3})]
    planned, decided = plan(alike, Recipe(limits=ALL_FORMS))
    asked = [p for p in planned if p.question_type == "multi-choice" and p.fact.scene_id in "ab"]
    refused = [(u, reason) for u, reason in decided.unchosen if u.question_type == "multi-choice"]
    assert len(asked) == 1
    assert [reason for _, reason in refused] == ["option_set_taken"]
    assert refused[0][0].group_id not in {p.group_id for p in asked}
    assert signature(plan(alike[::-1], Recipe(limits=ALL_FORMS))[0]) == signature(planned)


def test_a_fact_without_options_is_reported_and_still_asked_in_other_forms() -> None:
    poor = fact(0, "poor", depths=[1.0, 1.05, 1.1, 1.12])
    planned, decided = plan([poor, *MANY], Recipe(limits=ALL_FORMS))
    forms = {p.question_type for p in planned if p.group_id == group_id(poor)}
    assert forms == {"open-ended"}
    assert {(u.question_type, reason, u.group_id) for u, reason in decided.unchosen} == {
        ("judgment", "no_false_claim", group_id(poor)), ("multi-choice", "too_few_options", group_id(poor))
    }  # fmt: skip
    for count in count_dealt(decided.chosen).values():
        assert max(count) - min(count) <= 1


def test_a_claim_that_verify_would_refuse_is_not_asked() -> None:
    class Bold(MetricDepth):
        """True claims are up to as far off as false ones may be."""

        off = 0.0

        def claim_pair(self, fact: Fact, rng: np.random.Generator) -> ClaimPair | None:
            twins = super().claim_pair(fact, rng)
            if twins is None:
                return None
            value = fact.truth_candidate.value * self.limits.ratio_min**self.off
            slots = {"claim": f"{value[0]:.4f}"}
            return replace(twins, true=Claim(slots, value, self.off))

    for off, refused in ((0.0, 0), (0.2, 0), (0.3, 29)):
        task = Bold(parse_config({"noise": {"kept_min": 0.0}}, Gates, "test"))
        task.off = off
        decided = plan_facts(MANY, [task], Recipe(pairs=0.0, limits=ALL_FORMS))
        assert Counter(reason for _, reason in decided.unchosen)["unclear_claim"] == refused, off


def test_difficulty_is_the_tercile_of_the_lead_under_noise() -> None:
    level = grade_difficulty([forms(n)[0] for n in (4, 0, 8, 1, 7, 2, 5, 3, 6)], stress=False)
    assert [level[forms(n)[0].key] for n in range(9)] == ["hard"] * 3 + ["medium"] * 3 + ["easy"] * 3
    twice = [forms(1)[0], replace(forms(2)[0], question_type="multi-choice")]  # no form is compared with another
    assert set(grade_difficulty(twice, stress=False).values()) == {"hard"}
    kinds = [replace(forms(1)[0], ask="nearest"), replace(forms(2)[0], ask="deepest")]  # nor a sub-kind
    assert set(grade_difficulty(kinds, stress=False).values()) == {"hard"}
    assert not grade_difficulty([replace(forms(1)[0], rejection_reason="noise")], stress=False)
    assert set(grade_difficulty([forms(n)[0] for n in range(9)], stress=True).values()) == {"stress"}
    assert grade_difficulty([], stress=False) == {}
    planned, _ = plan(MANY, Recipe(margins="recorded", strategy="sampled", limits=ALL_FORMS))
    assert {p.plan.difficulty for p in planned} == {"stress"}


def test_truth_moves_by_one_exchange() -> None:
    members = MANY[0].candidates[:4]
    options = OptionSet(members, 1, "sampled")
    for letter in range(4):
        moved = put_truth_at(options, letter)
        assert moved.options[letter] is members[1]
        assert moved.truth == letter
        assert set(moved.options) == set(members)
        assert moved.strategy == "sampled"


def test_options_that_a_check_drew_are_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, task = Recipe(), MetricDepth()
    (asked,) = [p for p in ask_facts_at_hand([fact(1)], [task], recipe) if p.question_type == "multi-choice"]
    asked = replace(asked, letter=2)
    checked = check_plan(fact(1), asked, task, recipe)
    drawn = ask_as_planned(fact(1), asked, task, recipe)[1]
    monkeypatch.setattr(question, "draw_options", None)
    kept = ask_as_planned(fact(1), checked, task, recipe)[1]
    assert drawn is not None
    assert kept is not None
    assert (kept.truth, [c.key for c in kept.options]) == (2, [c.key for c in drawn.options])


def test_facts_of_tasks_that_are_not_asked_stay_out() -> None:
    decided = plan_facts(MANY, [RelativeDepth()], Recipe(limits=ALL_FORMS))
    assert (decided.chosen, decided.unchosen) == ([], [])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_planned_questions_are_sorted(count: int) -> None:
    planned, _ = plan(MANY[:count], Recipe(limits=ALL_FORMS))
    keys = [(p.fact.task, p.question_type, p.group_id) for p in planned]
    assert keys == sorted(keys)
    assert len(keys) == 3 * count


# --- recipes with totals ----------------------------------------------------------------------------------------


def test_totals_per_form_and_source_are_met_and_no_fact_is_asked_twice() -> None:
    recipe = Recipe(
        items={"metric_depth": {"judgment": 6, "multi-choice": 7, "open-ended": 4}},
        sources={"scannet": 8, "ca1m": 7, "wildrgbd": 2},
        limits=Limits(forms_per_fact=1),
    )
    planned, decided = plan(MANY, recipe)
    assert Counter(p.question_type for p in planned) == {"judgment": 3, "multi-choice": 7, "open-ended": 4}
    items: Counter[str] = Counter()
    for p in planned:
        items[p.fact.dataset] += 2 if p.question_type == "judgment" else 1
    assert items == recipe.sources
    assert len({p.group_id for p in planned}) == len(planned)
    # Every fact and form is asked or has a reason.
    assert len(planned) + len(decided.unchosen) == 3 * len(MANY)
    assert {reason for _, reason in decided.unchosen} == {"cell_full", "asked_otherwise"}
    again = {u.key for u, reason in decided.unchosen if reason == "asked_otherwise"}
    assert {name for name, _ in again} == {p.group_id for p in planned}


def test_sources_splits_and_forms_that_are_not_wanted_are_left_out() -> None:
    train = [replace(f, split="train") for f in MANY if f.scene_id == "b"]
    kept = [f for f in MANY if f.scene_id != "b"] + train
    recipe = Recipe(
        items={"metric_depth": {"open-ended": 5}},
        only_from={"metric_depth": ("scannet", "wildrgbd")},
        only_splits=("val",),
    )
    planned, decided = plan(kept, recipe)
    assert {p.fact.scene_id for p in planned} <= {"a", "box/d"}
    assert len(planned) == 5
    reasons = Counter(reason for _, reason in decided.unchosen)
    assert reasons == {
        "not_in_recipe": 2 * len(kept), "source_not_in_recipe": 9, "split_not_in_recipe": 6, "cell_full": 14 - 5,
    }  # fmt: skip


def test_items_per_task_are_shared_by_the_forms() -> None:
    planned, _ = plan(MANY, Recipe(items_per_task=30, limits=ALL_FORMS))
    items = Counter(p.question_type for p in planned)
    assert items == {"judgment": 5, "multi-choice": 10, "open-ended": 10}


def test_difficulty_follows_its_shares_as_far_as_facts_allow() -> None:
    pool = [entry for scene in "abc" for n in range(20) for entry in forms(n, scene)]
    wanted = Difficulty(easy=0.5, medium=0.5, hard=0.0)
    recipe = Recipe(items={"point_tracking": {"judgment": 12, "multi-choice": 20}}, difficulty=wanted)
    counts = difficulty_counts(choose(pool, recipe, FORMATS).chosen)
    assert counts == {
        "point_tracking/judgment": {"easy": 6, "medium": 6}, "point_tracking/multi-choice": {"easy": 10, "medium": 10},
    }  # fmt: skip
    plain = choose(pool, recipe.model_copy(update={"difficulty": None}), FORMATS)
    assert difficulty_counts(plain.chosen)["point_tracking/multi-choice"]["hard"] > 0


def test_a_recipe_without_totals_shares_its_facts_out_among_the_forms() -> None:
    planned, _ = plan(MANY, Recipe())
    facts = Counter(p.question_type for p in planned)
    assert len({p.group_id for p in planned}) == len(planned) == len(MANY) == 29
    assert sorted(facts.values()) == [9, 10, 10]
