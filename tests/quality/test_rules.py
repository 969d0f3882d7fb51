"""The best fixed rule finds what `docs/validity.md#rules-that-leak-by-construction` says leaks, and nothing where
options are exchangeable."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quality.text_questions import (
    Maker,
    around_hidden,
    around_truth,
    choices,
    kept_apart,
    ladder,
    question,
)
from vgbench_gen.core.rng import rng_for
from vgbench_gen.quality.findings import Finding
from vgbench_gen.quality.questions import Question
from vgbench_gen.quality.rules import audit_rules, judge_best, share_credit

N = 1000


@pytest.mark.parametrize(
    ("maker", "rule", "published", "decimals"),
    [
        (around_truth(1), "smallest gap to all", 37.9, 2),
        (around_truth(2), "smallest gap to all", 54.3, 2),
        (around_truth(6), "smallest gap to all", 83.1, 2),
        (around_truth(24), "smallest gap to all", 99.7, 2),
        (kept_apart(1, False, 0.2), "largest gap to all", 49.0, 4),
    ],
)
def test_published_rules_leak_as_published(maker: Maker, rule: str, published: float, decimals: int) -> None:
    found = audit_rules(choices(maker, N, decimals), 0)
    # Two draws of n questions, theirs and ours: within three standard errors of the difference.
    share = published / 100
    assert found.value == pytest.approx(published, abs=300 * np.sqrt(2 * share * (1 - share) / N) + 0.5)
    assert (found.name, found.failed) == (rule, True) or (published < 40 and found.name == "middle number 1")
    assert found.low < found.value < found.high or found.value > 99
    assert found.items


@pytest.mark.parametrize("maker", [around_hidden(1), around_hidden(6), kept_apart(2, True, 0.2), ladder])
def test_exchangeable_options_stay_at_chance(maker: Maker) -> None:
    found = audit_rules(choices(maker, N, 3, seed=5), 0)
    assert (found.verdict, found.chance, found.n) == ("passed", 25, N)
    assert found.value < 31
    assert found.p > 0.01


def test_a_small_cell_is_not_judged_unless_it_plainly_leaks() -> None:
    assert audit_rules(choices(around_hidden(1), 100), 0).verdict == "not judged"
    assert audit_rules(choices(around_truth(6), 100), 0).verdict == "failed"


def _guessed(count: int) -> list[Question]:
    return [question(str(k), list("abcd"), 0) for k in range(count)]


def test_the_best_of_many_rules_pays_for_their_number() -> None:
    """Of 60 rules that guess, the best one has a small p by itself in most draws; together they fall in one of 20."""
    rng = rng_for(0, "many")
    alone, together, asked, scenes = [], [], _guessed(240), [k % 24 for k in range(240)]
    for _ in range(60):
        credits = {f"rule {k}": np.asarray(rng.random(240) < 0.25, dtype=np.float64) for k in range(60)}
        line = judge_best(Finding("rule"), credits, asked, scenes, 3, 0)
        together.append(line.p)
        first = {"rule 0": credits["rule 0"]}
        line = judge_best(Finding("rule"), first, asked, scenes, 3, 0)
        alone.append(line.p)
    assert np.mean(np.array(together) < 0.05) < 0.15
    assert np.mean(np.array(alone) < 0.5) == pytest.approx(0.5, abs=0.2)
    assert max(together) > 0.5


def test_what_repeats_within_a_scene_is_one_observation() -> None:
    """Three scenes whose questions are all right are no leak, sixty scenes are."""
    asked, scenes = _guessed(600), [k % 60 for k in range(600)]
    lucky = np.array([float(k % 60 < 3) or 0.2 for k in range(600)])
    line = judge_best(Finding("rule"), {"x": lucky}, asked, scenes, 0, 0)
    assert (line.failed, line.p > 0.01) == (False, True)
    even = np.array([1.0 if k // 60 < 4 else 0.0 for k in range(600)])
    assert judge_best(Finding("rule"), {"x": even}, asked, scenes, 0, 0).failed


def test_ties_share_the_credit() -> None:
    score = np.array([[1.0, 1, 0, 0], [0, 2, 1, 0], [3, 3, 3, 3]])
    credit = share_credit(score, np.array([0, 0, 2]))
    assert credit[:2].tolist() == [0.5, 0]
    assert np.isnan(credit[2])


def test_a_rule_that_is_silent_counts_as_guessed() -> None:
    loud = [question(f"l{i}", ["1.00 m", "10.00 m"], 1, scene=f"s/{i}") for i in range(10)]
    silent = [question(f"s{i}", ["1.00 m", "2.00 m"], i % 2, scene=f"t/{i}") for i in range(30)]
    found = audit_rules(loud + silent, 0)
    assert found.name in ("largest length", "largest number 1", "smallest unusual", "largest significant")
    assert found.value == pytest.approx(100 * (10 + 15) / 40, abs=10)


def _marked(right: str, count: int) -> list[Question]:
    """Four points; the right one is always drawn by one rule."""
    rng = rng_for(0, "marked", right)
    found = []
    for number in range(count):
        points = rng.integers(50, 950, (4, 2))
        query = rng.integers(50, 950, 2)
        points[0] = query
        distance = np.linalg.norm(points - query, axis=1)
        truth = int({"same": 0, "near": np.argsort(distance)[1], "top": points[:, 1].argmin()}[right])
        context = ", ".join(f"point {i + 1} ({x}, {y})" for i, (x, y) in enumerate(points)) + "; 1000 x 1000 pixels"
        asked = f"Which is ({query[0]}, {query[1]})?"
        order = rng.permutation(4)
        options = [f"point {i + 1}" for i in order]
        place = int(np.flatnonzero(order == truth)[0])
        found.append(question(f"m{number}", options, place, scene=f"s/{number % 50}", question=asked, context=context))
    return found


@pytest.mark.parametrize(
    ("right", "rule"),
    [
        ("same", "smallest from what is asked"),
        ("near", "second smallest from what is asked"),
        ("top", "smallest number 2"),
    ],
)
def test_rules_of_place(right: str, rule: str) -> None:
    found = audit_rules(_marked(right, 300), 0)
    assert found.failed
    assert found.name in (rule, "most frequent text")  # the point on the query is always point 1
    assert found.value > 99


def test_numbers_of_other_scenes_are_a_prior() -> None:
    rng = rng_for(0, "prior")
    asked = []
    for number in range(900):
        focal = float(rng.choice([850.5, 512.4])) if number % 2 else 512.4
        values = [focal, *(focal * rng.choice([0.5, 0.7, 1.4, 2.0], 3, replace=False))]
        order = rng.permutation(4)
        options = [f"{values[i]:.1f}" for i in order]
        asked.append(question(f"f{number}", options, int(np.flatnonzero(order == 0)[0]), scene=f"s/{number % 40}"))
    found = audit_rules(asked, 0)
    assert found.failed
    assert found.value > 95
    # What only this scene knows is no prior: with one scene for all, nothing can be learnt elsewhere.
    alone = [question(q.id, q.options, q.truth, scene="s/1") for q in asked]
    assert audit_rules(alone, 0).name in ("smallest gap to all", "middle number 1")


def test_claims_that_are_too_large_are_seen() -> None:
    rng = rng_for(0, "claims")
    asked = []
    for number in range(500):
        true = rng.uniform(1, 3)
        for half, claimed in ((0, true), (1, true * 1.7)):
            text = f"Is the depth within 10 percent of {claimed:.2f} metres?"
            asked.append(
                question(
                    f"j{number}{half}",
                    ["Yes", "No"],
                    half,
                    form="judgment",
                    scene=f"s/{number % 50}",
                    twin=f"w{number}",
                    question=text,
                )
            )
    found = audit_rules(asked, 0)
    assert (found.name, found.failed, found.chance) == ("yes if number 1 is small", True, 50)
    assert found.value > 65


def test_same_questions_same_figure() -> None:
    asked = choices(around_truth(2), 120)
    assert audit_rules(asked, 3) == audit_rules(asked, 3)
