"""Letters, yes and no, constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.quality.text_questions import question
from vgbench_gen.core.rng import rng_for
from vgbench_gen.quality.balance import audit_balance, find_constant_relative, find_constant_within
from vgbench_gen.quality.questions import Question


def lettered(counts: list[int], source: str = "s") -> list[Question]:
    letters = [letter for letter, count in enumerate(counts) for _ in range(count)]
    return [question(f"{source}{i}", ["1", "2", "3", "4"], t, source=source) for i, t in enumerate(letters)]


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ([50, 50, 50, 50], "green"),
        ([54, 50, 46, 50], "green"),
        ([56, 48, 48, 48], "red"),  # 3 points, though chi-square sees nothing
        ([560, 450, 480, 510], "red"),  # 3 points of 2,000 by chi-square
        ([530, 470, 460, 540], "red"),  # 2 points, by chi-square
        ([5, 5, 4, 4], "green"),
        ([6, 5, 4, 5], "red"),
    ],
)
def test_letters(counts: list[int], verdict: str) -> None:
    (line,) = audit_balance(lettered(counts), 0)
    assert line.verdict == verdict
    assert line.n == sum(counts)
    assert bool(line.items) == (verdict == "red")


def test_letters_are_judged_per_source() -> None:
    found = audit_balance(lettered([25, 25, 25, 25], "a") + lettered([9, 2, 2, 2], "b"), 0)
    assert [(line.source, line.verdict) for line in found] == [("a", "green"), ("b", "red")]
    assert set(found[1].items) == {f"b{i}" for i in range(9)}


def judged(truths: list[int], twins: bool = True) -> list[Question]:
    return [
        question(f"j{i}", ["Yes", "No"], t, form="judgment", twin=f"w{i // 2}" if twins else "")
        for i, t in enumerate(truths)
    ]


def test_yes_and_no_are_even_and_twins_differ() -> None:
    assert [line.verdict for line in audit_balance(judged([0, 1, 1, 0]), 0)] == ["green", "green"]
    even, twins = audit_balance(judged([0, 0, 1, 1]), 0)
    assert (even.verdict, twins.verdict) == ("green", "red")
    assert set(twins.items) == {"j0", "j1", "j2", "j3"}
    more, alone = audit_balance(judged([0, 1, 0]), 0)
    assert more.fell
    assert more.value == pytest.approx(200 / 3)
    assert more.items == ("j0", "j2")
    assert alone.value == 1
    assert audit_balance(judged([0, 1], twins=False), 0)[1].verdict == "skipped"


def test_best_constant_within_a_factor_is_exact() -> None:
    values = np.exp(rng_for(0, "constant").uniform(-1, 1, 60))
    grid = np.exp(np.linspace(-1.2, 1.2, 20_001))
    most = max(int((np.maximum(values / c, c / values) <= 1.25).sum()) for c in grid)
    constant, right = find_constant_within(values, 1.25)
    assert right == most
    assert (np.maximum(values / constant, constant / values) <= 1.25 + 1e-9).sum() == most
    # Log-uniform over 0.4 to 5 m: 2 ln(1.25) / ln(12.5) = 18 % (`docs/validity.md#open-ended-answers`).
    uniform = np.exp(np.linspace(np.log(0.4), np.log(5), 4000))
    assert find_constant_within(uniform, 1.25)[1] / 4000 == pytest.approx(0.177, abs=0.002)
    assert find_constant_within(uniform, 2.0)[1] / 4000 == pytest.approx(0.549, abs=0.002)


def test_mean_relative_accuracy_is_vsi_benchs() -> None:
    # All alike: exact. Two answers, 2 and 1: at 2, errors 0 and 1; at 1, 0.5 (never below 0.5) and 0.
    assert find_constant_relative(np.array([2.0, 2.0]))[1] == pytest.approx(1)
    constant, score = find_constant_relative(np.array([1.0, 1.3]))
    by_hand = np.mean(
        [np.mean(np.abs(constant - np.array([1.0, 1.3])) / [1.0, 1.3] < 0.5 - 0.05 * i) for i in range(10)]
    )
    assert score == pytest.approx(by_hand)


def test_constants_are_chosen_per_quantity() -> None:
    a = [question(f"a{i}", value=2.0, ask="x", unit="m") for i in range(10)]
    b = [question(f"b{i}", value=20.0, ask="y", unit="m") for i in range(10)]
    near, far, mra = audit_balance(a + b, 0)
    assert near.value == far.value == mra.value == 100
    assert near.verdict == mra.verdict == "few"
    assert far.verdict == "reported"
    many = [replace(q, id=f"{q.id}.{n}") for q in a + b for n in range(50)]
    assert [line.verdict for line in audit_balance(many, 0)] == ["red", "reported", "red"]
    assert audit_balance([question("n", value=-1.0)], 0)[0].verdict == "skipped"
