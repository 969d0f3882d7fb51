"""Fixed rules reach what `docs/validity.md#rules-that-leak-by-construction` says they reach, and no more where options
are exchangeable."""

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
    times_noise,
    times_uniform,
)
from vgbench_gen.core.rng import rng_for
from vgbench_gen.quality.family import judge_family
from vgbench_gen.quality.findings import Finding
from vgbench_gen.quality.questions import Question
from vgbench_gen.quality.rules import audit_rules, share_credit

N = 1000


def by_name(questions: list[Question]) -> dict[str, Finding]:
    return {finding.name: finding for finding in judge_family(audit_rules(questions, 0))}


@pytest.mark.parametrize(
    ("maker", "rule", "published", "decimals"),
    [
        (times_noise(0.05, 0.15), "noise band 5% to 15%", 93.7, 0),
        (around_truth(1), "medoid", 37.9, 2),
        (around_truth(2), "medoid", 54.3, 2),
        (around_truth(3), "medoid", 64.1, 2),
        (around_truth(6), "medoid", 83.1, 2),
        (around_truth(8), "medoid", 88.8, 2),
        (around_truth(24), "medoid", 99.7, 2),
    ],
)
def test_published_rules_leak_as_published(maker: Maker, rule: str, published: float, decimals: int) -> None:
    found = by_name(choices(maker, N, decimals))[rule]
    # Two draws of n questions, theirs and ours: within three standard errors of the difference.
    share = published / 100
    assert found.value == pytest.approx(published, abs=300 * np.sqrt(2 * share * (1 - share) / N) + 0.5)
    assert found.fell
    assert found.low < found.value < found.high or found.value > 99
    assert found.items


def test_distance_noise_and_one_sided_gaps_are_seen() -> None:
    assert by_name(choices(times_uniform(0.5), N, 1))["noise band 0% to 50%"].fell
    lonely = by_name(choices(kept_apart(1, False, 0.2), N, 4))["most isolated"]
    assert lonely.fell
    assert lonely.value > 45


@pytest.mark.parametrize("maker", [around_hidden(1), around_hidden(6), kept_apart(2, True, 0.2), ladder])
def test_exchangeable_options_stay_at_chance(maker: Maker) -> None:
    found = judge_family(audit_rules(choices(maker, N, 3, seed=5), 0))
    assert not [f.name for f in found if f.fell]
    assert {f.verdict for f in found} <= {"green", "few"}
    assert max(f.value for f in found) < 31
    assert all(f.chance == 25 and f.n == N for f in found)


def test_small_cells_are_neither_green_nor_red() -> None:
    assert {f.verdict for f in audit_rules(choices(around_truth(6), 100), 0)} == {"few"}


def test_ties_share_the_credit() -> None:
    score = np.array([[1.0, 1, 0, 0], [0, 2, 1, 0], [3, 3, 3, 3]])
    credit = share_credit(score, np.array([0, 0, 2]))
    assert credit[:2].tolist() == [0.5, 0]
    assert np.isnan(credit[2])


def test_a_rule_that_is_silent_counts_as_guessed() -> None:
    loud = [question(f"l{i}", ["1.00 m", "10.00 m"], 1, scene=f"s/{i}") for i in range(10)]
    silent = [question(f"s{i}", ["1.00 m", "2.00 m"], i % 2, scene=f"t/{i}") for i in range(30)]
    found = by_name(loud + silent)["longest"]
    assert found.value == pytest.approx(100 * (10 + 15) / 40)
    assert "says something on 10," in found.detail


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
    ("right", "rule"), [("same", "same pixel"), ("near", "nearest that moved"), ("top", "top-most")]
)
def test_rules_of_place(right: str, rule: str) -> None:
    found = by_name(_marked(right, 900))
    assert found[rule].value > 99
    assert found[rule].fell


def test_numbers_of_other_scenes_are_a_prior() -> None:
    rng = rng_for(0, "prior")
    asked = []
    for number in range(900):
        focal = float(rng.choice([850.5, 512.4])) if number % 2 else 512.4
        values = [focal, *(focal * rng.choice([0.5, 0.7, 1.4, 2.0], 3, replace=False))]
        order = rng.permutation(4)
        options = [f"{values[i]:.1f}" for i in order]
        asked.append(question(f"f{number}", options, int(np.flatnonzero(order == 0)[0]), scene=f"s/{number % 40}"))
    found = by_name(asked)
    assert found["repeated value"].value > 95
    assert found["repeated value"].fell
    assert found["prior of other scenes"].fell
    # What only this scene knows is no prior: with one scene for all, nothing can be learnt elsewhere.
    alone = [question(q.id, q.options, q.truth, scene="s/1") for q in asked]
    assert "repeated value" not in by_name(alone)


def _boxes(count: int, known_sizes: bool) -> list[Question]:
    """Ray-scaled copies; things of three makes, or of any size at all."""
    rng = rng_for(0, "boxes", str(known_sizes))
    signs = np.array([[x, y, z] for z in (-1, 1) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
    asked = []
    for number in range(count):
        make = [(0.5, 0.8, 0.6), (1.2, 0.7, 0.9), (0.3, 0.3, 1.8)][int(rng.integers(3))]
        scale = 1.0 if known_sizes else np.exp(rng.uniform(0, 9))
        corners = scale * (signs * np.array(make) / 2 + rng.uniform((-1, -1, 2.5), (1, 1, 4)))
        step = int(rng.integers(4))
        options = [corners * 1.3**i for i in range(-step, 4 - step)]
        order = rng.permutation(4)
        texts = [", ".join(f"({x:.2f}, {y:.2f}, {z:.2f})" for x, y, z in options[i]) for i in order]
        truth = int(np.flatnonzero(order == step)[0])
        asked.append(question(f"b{number}", texts, truth, scene=f"s/{number % 40}"))
    return asked


def test_sizes_of_things_return_in_other_scenes() -> None:
    assert by_name(_boxes(850, True))["known elsewhere"].value > 90
    assert not by_name(_boxes(850, False))["known elsewhere"].fell


def test_claims_that_are_too_large_or_odd_are_seen() -> None:
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
    found = by_name(asked)
    assert found["yes if value is small"].fell
    assert found["yes if value is small"].value > 65
    assert found["most frequent answer"].value == pytest.approx(50)
    assert not found["yes if value is large"].fell
    assert found["yes if value is large"].chance == 50


def test_open_ended_questions_have_no_rules() -> None:
    assert audit_rules([question("a", value=1.0)], 0) == []


def test_same_questions_same_lines() -> None:
    asked = choices(around_truth(2), 120)
    assert audit_rules(asked, 3) == audit_rules(asked, 3)
