"""The item-response model on simulated replies, of which difficulties and abilities are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from vgbench_gen.core.types import FloatArray
from vgbench_gen.training.irt import fit_rasch


@dataclass(frozen=True)
class Simulated:
    abilities: FloatArray
    difficulties: FloatArray
    """Where 0 is the mean ability."""
    chance: FloatArray
    right: FloatArray


def simulate(questions: int, models: int, seed: int = 0, missing: float = 0.1, guess: bool = True) -> Simulated:
    rng = np.random.default_rng(seed)
    abilities, difficulties = rng.normal(0.5, 1.0, models), rng.normal(0.9, 1.5, questions)
    chance = rng.choice([0.0, 0.25, 0.5] if guess else [0.0], questions)
    p = chance[:, None] + (1 - chance[:, None]) * expit(abilities - difficulties[:, None])
    right = np.where(rng.random(p.shape) < missing, np.nan, rng.random(p.shape) < p)
    return Simulated(abilities - abilities.mean(), difficulties - abilities.mean(), chance, right)


def test_difficulties_are_recovered_and_errors_are_as_large_as_said() -> None:
    made = simulate(4000, 30, missing=0)
    found = fit_rasch(made.right, made.chance)
    assert np.corrcoef(found.difficulties, made.difficulties)[0, 1] > 0.9
    made = simulate(4000, 30)
    found = fit_rasch(made.right, made.chance)
    off = (found.difficulties - made.difficulties) / found.difficulty_errors
    for chance in np.unique(made.chance):
        own = off[made.chance == chance]
        assert abs(own.mean()) < 0.1
        assert own.std() == pytest.approx(1, abs=0.06)
        assert (abs(own) < 1.96).mean() == pytest.approx(0.95, abs=0.015)
    assert found.spread == pytest.approx(1.5, abs=0.06)


def test_errors_of_abilities_are_as_large_as_said() -> None:
    off = []
    for seed in range(40):
        made = simulate(400, 8, seed)
        found = fit_rasch(made.right, made.chance)
        assert found.abilities.sum() == pytest.approx(0, abs=1e-9)
        off.append((found.abilities - made.abilities) / found.ability_errors)
    assert np.std(off) == pytest.approx(1, abs=0.1)


def test_without_guessing_it_is_the_logistic_regression_of_replies_on_questions_and_models() -> None:
    """A joint fit, of another package, exaggerates abilities by M / (M - 1) and does not shrink difficulties."""
    made = simulate(300, 160, missing=0.2, guess=False)
    mean = np.nanmean(made.right, axis=1)
    kept = made.right[(mean > 0.05) & (mean < 0.95)]
    question, model = np.nonzero(~np.isnan(kept))
    coded = np.hstack([-np.eye(len(kept))[question], np.eye(160)[model]])
    joint = LogisticRegression(C=1e6, fit_intercept=False, tol=1e-8, max_iter=2000).fit(coded, kept[question, model])
    difficulties, abilities = joint.coef_[0, : len(kept)], joint.coef_[0, len(kept) :]
    found = fit_rasch(kept, np.zeros(len(kept)))
    np.testing.assert_allclose(found.abilities, (abilities - abilities.mean()) * 159 / 160, atol=0.05)
    drawn = 1 - (found.difficulty_errors / found.spread) ** 2  # towards the middle, by the prior
    alone, expected = found.middle + (found.difficulties - found.middle) / drawn, difficulties - abilities.mean()
    inside = np.abs(expected) < 2
    assert inside.sum() > 200
    np.testing.assert_allclose(alone[inside], expected[inside] * 159 / 160, atol=0.04)


def test_the_posterior_and_its_maximum_are_those_of_adaptive_integration() -> None:
    made = simulate(40, 5)
    found = fit_rasch(made.right, made.chance)
    middle = found.middle

    def integrate(k: int, abilities: FloatArray, spread: float, power: int = 0) -> float:
        right, asked = made.right[k], ~np.isnan(made.right[k])

        def density(b: float) -> float:
            p = made.chance[k] + (1 - made.chance[k]) * expit(abilities - b)
            seen = np.where(right[asked] == 1, p[asked], 1 - p[asked]).prod()
            return float(seen * np.exp(-(((b - middle) / spread) ** 2) / 2) / spread * b**power)

        return quad(density, middle - 12 * spread, middle + 12 * spread, limit=200)[0]

    whole = np.array([[integrate(k, found.abilities, found.spread, power) for power in range(3)] for k in range(40)])
    mean, square = whole[:, 1] / whole[:, 0], whole[:, 2] / whole[:, 0]
    np.testing.assert_allclose(found.difficulties, mean, atol=1e-4)
    np.testing.assert_allclose(found.difficulty_errors, np.sqrt(square - mean**2), atol=1e-4)

    def lose(abilities: FloatArray, spread: float) -> float:
        likelihood = sum(np.log(integrate(k, abilities, spread)) for k in range(40))
        return float(((abilities - middle) ** 2).sum() / 32 + np.log(spread) ** 2 / 2 - likelihood)

    least = lose(found.abilities, found.spread)
    for move in 0.05 * np.eye(5):
        assert min(lose(found.abilities + move, found.spread), lose(found.abilities - move, found.spread)) > least
    assert min(lose(found.abilities, found.spread * factor) for factor in (0.95, 1.05)) > least


def test_the_order_of_questions_and_models_does_not_matter_nor_do_repeated_questions() -> None:
    made = simulate(300, 6)
    found, rng = fit_rasch(made.right, made.chance), np.random.default_rng(1)
    rows, columns = rng.permutation(300), rng.permutation(6)
    mixed = fit_rasch(made.right[rows][:, columns], made.chance[rows])
    np.testing.assert_allclose(mixed.difficulties, found.difficulties[rows], atol=1e-4)
    np.testing.assert_allclose(mixed.difficulty_errors, found.difficulty_errors[rows], atol=1e-4)
    np.testing.assert_allclose(mixed.abilities, found.abilities[columns], atol=1e-4)
    np.testing.assert_allclose(mixed.ability_errors, found.ability_errors[columns], atol=1e-4)
    twice = fit_rasch(np.tile(made.right, (2, 1)), np.tile(made.chance, 2))
    np.testing.assert_allclose(twice.abilities, found.abilities, atol=0.02)  # priors weigh less
    np.testing.assert_allclose(twice.ability_errors, found.ability_errors / np.sqrt(2), rtol=0.02)
    again = fit_rasch(made.right, made.chance)
    assert np.array_equal(again.difficulties, found.difficulties)


def test_all_right_and_all_wrong_are_finite_and_nobody_asked_is_nan() -> None:
    right = simulate(60, 4, missing=0).right
    right[:, 0], right[0, 1:], right[1, 1:], right[2] = 1, 1, 0, np.nan
    found = fit_rasch(right, np.full(60, 0.25))
    assert np.isfinite(np.delete(found.difficulties, 2)).all()
    assert np.isnan([found.difficulties[2], found.difficulty_errors[2]]).all()
    assert found.difficulties[0] == np.nanmin(found.difficulties)
    assert found.difficulties[1] == np.nanmax(found.difficulties)
    assert found.abilities.argmax() == 0
    assert found.ability_errors.max() < 5
    for same in (np.ones((50, 2)), np.zeros((50, 2)), np.repeat([[0.0], [1.0]], 3, axis=1)):
        alike = fit_rasch(same, np.full(len(same), 0.25))
        assert np.abs(alike.abilities).max() < 1e-6
        assert np.isfinite([*alike.difficulties, *alike.ability_errors]).all()
        assert (alike.difficulty_errors > 0.3).all()  # it does not say that it knows


def test_what_may_be_guessed_is_harder_where_the_replies_are_the_same() -> None:
    right = np.tile(simulate(200, 6, missing=0).right, (2, 1))
    found = fit_rasch(right, np.repeat([0.0, 0.5], 200))
    some = right[:200].any(axis=1)
    assert 0 < some.sum() < 200
    assert (found.difficulties[200:] > found.difficulties[:200])[some].all()
    # All models wrong say the same of both: whoever knows no answer misses as many of either.
    np.testing.assert_allclose(found.difficulties[200:][~some], found.difficulties[:200][~some])
    half = fit_rasch(np.where(right == 1, 0.75, 0.25), np.zeros(400))  # shares, of several replies
    assert half.spread < fit_rasch(right, np.zeros(400)).spread
