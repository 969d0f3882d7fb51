"""Letters, yes and no, constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.quality.text_questions import question
from vgbench_gen.core.rng import rng_for
from vgbench_gen.quality.balance import audit_answers, find_constant_within
from vgbench_gen.quality.questions import Question


def lettered(counts: list[int]) -> list[Question]:
    letters = [letter for letter, count in enumerate(counts) for _ in range(count)]
    return [question(f"q{i}", ["1", "2", "3", "4"], t) for i, t in enumerate(letters)]


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ([50, 50, 50, 50], "passed"),
        ([54, 50, 46, 50], "passed"),
        ([56, 48, 48, 48], "failed"),  # 3 points
        ([560, 450, 480, 510], "failed"),
        ([5, 5, 4, 4], "passed"),
        ([6, 5, 5, 5], "passed"),
        ([7, 4, 5, 5], "failed"),
    ],
)
def test_letters(counts: list[int], verdict: str) -> None:
    line = audit_answers(lettered(counts))
    assert (line.verdict, line.n, line.chance) == (verdict, sum(counts), 25)
    assert line.value == pytest.approx(100 * max(counts) / sum(counts))
    assert len(line.items) == (min(counts[0], 200) if verdict == "failed" else 0)


def judged(truths: list[int], twins: bool = True) -> list[Question]:
    return [
        question(f"j{i}", ["Yes", "No"], t, form="judgment", twin=f"w{i // 2}" if twins else "")
        for i, t in enumerate(truths)
    ]


def test_yes_and_no_are_even_and_twins_differ() -> None:
    assert audit_answers(judged([0, 1, 1, 0])).verdict == "passed"
    alike = audit_answers(judged([0, 0, 1, 1]))
    assert (alike.verdict, set(alike.items)) == ("failed", {"j0", "j1", "j2", "j3"})
    more = audit_answers(judged([0, 1, 0], twins=False))
    assert (more.verdict, more.items) == ("failed", ("j0", "j2"))
    assert more.value == pytest.approx(200 / 3)
    assert audit_answers(judged([0, 1], twins=False)).verdict == "passed"


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


def test_constants_are_chosen_per_quantity() -> None:
    a = [question(f"a{i}", value=2.0, ask="x") for i in range(10)]
    b = [question(f"b{i}", value=20.0, ask="y") for i in range(10)]
    few, many = audit_answers(a + b), audit_answers([replace(q, id=f"{q.id}.{n}") for q in a + b for n in range(5)])
    assert (few.value, few.verdict) == (100, "not judged")  # its constant was chosen with all answers in hand
    assert (many.value, many.verdict, many.detail) == (100, "failed", "constant 2, 20")
    spread = [replace(q, id=f"{q.id}.{n}", value=1.3**n) for q in a for n in range(20)]
    assert audit_answers(spread).verdict == "passed"
    assert audit_answers([question("n", value=-1.0)]).verdict == "reported"
