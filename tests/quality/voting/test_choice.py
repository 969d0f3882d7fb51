"""What is chosen leaves no constant answer an edge, keeps to its plan, and does not depend on order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vgbench_gen.quality.voting.choice import Subject, choose_balanced, scale_balance, share_out
from vgbench_gen.quality.voting.figures import count_truth_positions
from vgbench_gen.quality.voting.rule import Balance, load_rule

PAPER = load_rule("paper").balance


def letters(n: int, task: str, weights: list[float], category: str = "c", seed: int = 0) -> list[Subject]:
    """Questions whose truth is at each letter as often as the weights say, with ranks skewed the other way."""
    rng = np.random.default_rng(seed)
    places = rng.choice(len(weights), n, p=np.array(weights) / sum(weights)).tolist()
    ranks = rng.choice(len(weights), n, p=np.array(weights[::-1]) / sum(weights)).tolist()
    return [
        Subject(f"{task}/{k}", category, task, "multi-choice", "letter", len(weights), place, rank)
        for k, (place, rank) in enumerate(zip(places, ranks, strict=True))
    ]


def claims(pairs: int, task: str, yes_alone: int = 0, category: str = "c") -> list[Subject]:
    """Twins, and claims that are true whose twins are not there."""
    both = [
        Subject(f"{task}/{k}/{place}", category, task, "judgment", "yes_no", 2, place, twin=f"{task}/{k}")
        for k in range(pairs)
        for place in (0, 1)
    ]
    alone = [
        Subject(f"{task}/alone{k}", category, task, "judgment", "yes_no", 2, 0, twin=f"{task}/alone{k}")
        for k in range(yes_alone)
    ]
    return both + alone


def test_the_published_counts_come_out_even() -> None:
    candidates: list[Subject] = []
    for k, category in enumerate(PAPER.counts):
        candidates += letters(400, f"task{k}", [1, 2, 3, 2], category, seed=k)
        candidates += claims(20, f"claim{k}", yes_alone=60, category=category)
        candidates += [Subject(f"open{k}/{j}", category, "open", "open-ended", "open") for j in range(40)]
    found = choose_balanced(candidates, candidates, PAPER, seed=3)
    assert found.over == "category"
    assert {part.name: part.chosen for part in found.parts} == dict(PAPER.counts)
    chosen = [one for one in candidates if one.id in set(found.ids)]
    assert Counter(one.category for one in chosen) == Counter(dict(PAPER.counts))
    for task in {one.task for one in chosen if one.kind == "letter"}:
        mine = [one for one in chosen if one.task == task]
        for axis, points in (([one.place for one in mine], 1), ([one.rank for one in mine], 3)):
            counts = np.bincount(axis, minlength=4)
            # Rounding, and the points that a letter or rank may stand off.
            assert np.abs(counts - len(mine) / 4).max() <= 0.75 + points / 100 * len(mine)
    assert {one.kind for one in chosen} == {"letter", "yes_no", "open"}
    assert (
        count_truth_positions(chosen)["constant"]["letter"]["best"]
        < 0.27
        < count_truth_positions(candidates)["constant"]["letter"]["best"]
    )
    assert count_truth_positions(chosen)["yes_no"][0] == count_truth_positions(chosen)["yes_no"][1] > 50


def test_tasks_share_where_categories_are_missing_and_what_one_lacks_others_give() -> None:
    candidates = letters(400, "a", [1, 1, 1, 1]) + letters(300, "b", [1, 1, 1, 1]) + letters(30, "c", [1, 1, 1, 1])
    found = choose_balanced(candidates, [*candidates, Subject("d/0", "c", "d", "open-ended", "open")], PAPER, seed=0)
    assert found.over == "task"
    few = choose_balanced(candidates, candidates, Balance(target=300), seed=0)
    parts = {part.name: part.chosen for part in few.parts}
    assert sum(parts.values()) == 300
    assert parts["c"] <= 30
    assert abs(parts["a"] - parts["b"]) <= 1
    assert {part.name: part.wanted for part in few.parts} == {"a": 100, "b": 100, "c": 100}


def test_seed_order_twins_and_people() -> None:
    candidates = letters(200, "a", [1, 2, 2, 1]) + claims(40, "b", yes_alone=40)
    plan = Balance(target=80)
    found = choose_balanced(candidates, candidates, plan, seed=1)
    assert set(choose_balanced(candidates[::-1], candidates, plan, seed=1).ids) == set(found.ids)
    assert choose_balanced(candidates, candidates, plan, seed=2).ids != found.ids
    twins = Counter(one.twin for one in candidates if one.id in set(found.ids) and one.twin)
    assert set(twins.values()) == {2}
    # More were accepted by people than are chosen of each place, so nothing else is.
    plain = [replace(one, rank=-1) for one in candidates if one.kind == "letter"]
    liked = frozenset(one.id for k, one in enumerate(plain) if k % 2)
    mine = choose_balanced(plain, plain, Balance(target=40), seed=1, accepted=liked).ids
    assert len(mine) == 40
    assert set(mine) < liked


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_constant_letter_or_yes_stands_out(data: st.DataObject) -> None:
    candidates: list[Subject] = []
    for task in range(data.draw(st.integers(1, 4))):
        weights = data.draw(st.lists(st.sampled_from([0.01, 1.0, 2.0, 5.0]), min_size=2, max_size=5))
        candidates += letters(data.draw(st.integers(1, 40)), f"t{task}", weights, seed=task)
        candidates += claims(data.draw(st.integers(0, 5)), f"c{task}", yes_alone=data.draw(st.integers(0, 5)))
    plan = Balance(target=data.draw(st.integers(1, 150)))
    found = choose_balanced(candidates, candidates, plan, seed=0)
    chosen = [one for one in candidates if one.id in set(found.ids)]
    assert len(found.ids) == len(set(found.ids)) == len(chosen) <= plan.target
    assert sum(part.chosen for part in found.parts) == len(chosen)
    for figure in count_truth_positions(chosen)["constant"].values():
        assert figure["best"] <= figure["chance"] + 0.03 + 1e-9
        assert figure["holds"]


@given(
    st.integers(0, 200),
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0, 7.5]), st.integers(0, 60)), min_size=1, max_size=8),
)
def test_shares_add_up_in_proportion(total: int, given_: list[tuple[float, int]]) -> None:
    weights = {k: weight for k, (weight, _) in enumerate(given_)}
    most = {k: top for k, (_, top) in enumerate(given_)}
    found = share_out(total, weights, most)
    assert sum(found.values()) == min(total, sum(top for k, top in most.items() if weights[k]))
    assert all(0 <= found[k] <= most[k] for k in most)
    free = [k for k in found if weights[k] and found[k] < most[k]]
    for a in free:
        for b in found:
            if weights[b]:  # who could take more has not less than its share
                assert found[a] + 1 >= weights[a] / weights[b] * (found[b] - 1) - 1e-9


def test_another_target_keeps_the_proportions() -> None:
    half = scale_balance(PAPER, 700)
    assert sum(half.counts.values()) == half.target == 700
    assert all(abs(half.counts[name] - n / 2) < 1 for name, n in PAPER.counts.items())
    assert scale_balance(Balance(target=10), 20).counts == {}


def test_truths_tell_where_right_answers_stand() -> None:
    some = [*letters(3, "a", [1, 1]), *claims(1, "b", yes_alone=1)]
    some = [replace(one, place=k % 2, rank=-1) if one.kind == "letter" else one for k, one in enumerate(some)]
    found = count_truth_positions(some)
    assert found["letters"] == {"2": [2, 1]}
    assert found["ranks"] == {}
    assert found["yes_no"] == [2, 1]
    assert found["constant"]["yes_no"] == {"n": 3, "best": 2 / 3, "chance": 0.5, "holds": False}
