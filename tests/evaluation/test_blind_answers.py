"""The blind baseline finds what the text gives away, and nothing where it gives nothing away."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quality.text_questions import choices, kept_apart, question, times_noise
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import LETTERS
from vgbench_gen.evaluation.blind_answers import guess_blind_answers
from vgbench_gen.quality.questions import Question


def right(questions: list[Question]) -> float:
    answers = guess_blind_answers(questions, seed=0)
    assert set(answers) == {q.id for q in questions}
    return float(np.mean([answers[q.id] == LETTERS[q.truth] for q in questions]))


def test_letters() -> None:
    assert right(choices(times_noise(0.05, 0.15), 300, 0)) > 0.8
    assert right(choices(kept_apart(1, True, 0.2), 300)) < 0.35


def test_yes_and_no() -> None:
    asked = [
        question(
            f"j{k}", ["Yes", "No"], k % 2, form="judgment", scene=f"s/{k % 20}",
            question=f"Is it {1 + k % 7}.{'5' if k % 2 else '00'} metres?",
        )
        for k in range(200)
    ]  # fmt: skip
    answers = guess_blind_answers(asked, seed=0)
    assert np.mean([answers[q.id] == q.options[q.truth] for q in asked]) > 0.95


def test_numbers() -> None:
    rng = rng_for(0, "numbers")
    asked = []
    for k in range(200):
        top = int(rng.integers(10, 700))
        text = f"What is the depth in the region [{top}, 20, {top + 50}, 90]?"
        asked.append(question(f"n{k}", question=text, scene=f"s/{k % 20}", value=1 + top / 100))
    answers = guess_blind_answers(asked, seed=0)
    assert np.mean([abs(float(answers[q.id]) / q.value - 1) < 0.25 for q in asked]) > 0.8


@pytest.mark.parametrize("few", [{"count": 12}, {"count": 60, "scenes": 1}])
def test_too_little_to_learn_from(few: dict[str, int]) -> None:
    assert guess_blind_answers(choices(times_noise(0.05, 0.15), decimals=0, **few), seed=0) == {}
