"""Right and wrong options come from one distribution, or the test says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.quality.text_questions import around_hidden, choices, question, times_noise
from vgbench_gen.core.rng import rng_for
from vgbench_gen.quality.exchangeability import audit_exchangeability, measure_exchangeability_p
from vgbench_gen.quality.family import judge_family


def test_distance_is_kolmogorovs() -> None:
    from scipy import stats

    rng = rng_for(0, "ks")
    values = np.round(rng.normal(size=(80, 4)), 1)  # with ties
    truth = rng.integers(0, 4, 80)
    right = np.zeros_like(values, dtype=bool)
    right[np.arange(80), truth] = True
    _, distance = measure_exchangeability_p(values, truth, np.arange(80), rng)
    assert distance == pytest.approx(stats.ks_2samp(values[right], values[~right]).statistic)


def test_level_holds_although_options_of_a_question_are_alike() -> None:
    """Options share most of their value with their question: a textbook test would reject far too seldom."""
    rng = rng_for(0, "level")
    p = []
    for _ in range(200):
        values = rng.normal(size=(40, 1)) * 5 + rng.normal(size=(40, 4))
        p.append(measure_exchangeability_p(values, rng.integers(0, 4, 40), np.arange(40), rng, 199)[0])
    assert 0.05 < np.mean(np.array(p) < 0.1) < 0.16
    assert np.mean(p) == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("count", [5, 20])
def test_level_holds_although_a_scene_repeats_itself(count: int) -> None:
    """An object that comes in eight questions is the largest of its options in all of them, or in none."""
    rng = rng_for(0, "scenes")
    scenes, p = np.repeat(np.arange(count), 8), []
    for _ in range(200):
        values = np.sort(rng.normal(size=(count, 4)), axis=1)[scenes]
        truth = rng.integers(0, 4, count)[scenes]
        p.append(measure_exchangeability_p(values, truth, scenes, rng, 199)[0])
    assert np.mean(np.array(p) < 0.1) < 0.16


def test_the_smallest_shift_between_questions_is_found_within_them() -> None:
    rng = rng_for(0, "power")
    values = rng.normal(size=(300, 1)) * 2000 + rng.normal(size=(300, 4))
    values[:, 0] += 1
    truth = np.zeros(300, dtype=np.int64)
    assert measure_exchangeability_p(values, truth, np.arange(300), rng)[0] > 0.01
    within = values - values.mean(axis=1, keepdims=True)
    assert measure_exchangeability_p(within, truth, np.arange(300), rng)[0] < 0.001


def test_published_rule_is_red_and_exchangeable_options_are_not() -> None:
    found = judge_family(audit_exchangeability(choices(times_noise(0.05, 0.15), 200, 0), 0))
    assert found[0].fell  # at any size
    assert found[0].name == "value, beside the others"
    assert found[0].items
    fair = judge_family(audit_exchangeability(choices(around_hidden(6), 200, 3), 0))
    assert fair
    assert {line.verdict for line in fair} == {"few"}
    assert all(line.value >= 0.01 for line in fair)


def test_rounder_truths_are_seen() -> None:
    asked = choices(around_hidden(1), 100, 3)
    told = [
        replace(q, options=tuple(f"{float(o):.1f}00" if i == q.truth else o for i, o in enumerate(q.options)))
        for q in asked
    ]
    assert any(
        line.fell and line.name.startswith(("significant", "trailing"))
        for line in judge_family(audit_exchangeability(told, 0))
    )


def test_twins_are_compared_and_kinds_of_question_kept_apart() -> None:
    rng = rng_for(0, "twins")
    asked = []
    for number in range(60):
        true = float(rng.uniform(1, 3))
        for half, claim in ((0, true), (1, true * 1.4)):
            text = f"Is it within 10 percent of {claim:.2f} metres?"
            asked.append(
                question(f"j{number}{half}", ["Yes", "No"], half, form="judgment", twin=f"w{number}", question=text)
            )
    found = judge_family(audit_exchangeability(asked, 0))
    assert found[0].fell
    assert found[0].n == 60
    two = [replace(q, ask="far" if int(q.id[1:-1]) % 2 else "near") for q in asked]
    assert {line.name.partition(":")[0] for line in audit_exchangeability(two, 0)} == {"far", "near"}
    assert audit_exchangeability([question("o", value=2.0)], 0) == []
