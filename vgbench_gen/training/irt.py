"""Difficulties of questions and abilities of models from who answered what right: a one-parameter item-response model.

P(right) = c + (1 - c) / (1 + exp(difficulty - ability)). The chance c, what a uniform guess scores, is a known number
of each question, so there is one free parameter for each question and one for each model. Difficulties are normal over
questions. Abilities and the spread of difficulties maximize the marginal likelihood, which integrates over every
difficulty: with few models and many questions, a joint fit would exaggerate both. A difficulty is the mean of its
posterior and its standard error the posterior's standard deviation, finite also where all models are right or wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import expit, log_expit, logsumexp

from vgbench_gen.core.types import FloatArray

_NODES = np.linspace(-5, 5, 101)  # of the trapezoid rule, in spreads of the difficulties; 200 models need steps of 0.1
_LOG_WEIGHTS = -(_NODES**2) / 2 - logsumexp(-(_NODES**2) / 2)
_ABILITY_SPREAD = 4.0  # of a weak prior, without which a model that is always right would have no finite ability
_MAX_SPREAD = 5.0  # of difficulties, which would be infinite where models always agree; about 1 where nothing tells


@dataclass(frozen=True, slots=True, eq=False)
class RaschFit:
    """Of N questions and M models, in logits, with a mean ability of 0."""

    abilities: FloatArray
    """(M,) of the models."""
    ability_errors: FloatArray
    """(M,) standard errors, as if no two questions were related."""
    difficulties: FloatArray
    """(N,) of the questions; NaN where no model was asked."""
    difficulty_errors: FloatArray
    """(N,) standard errors."""
    middle: float
    """Mean of the normal distribution of difficulties."""
    spread: float
    """Its standard deviation."""


def fit_rasch(right: FloatArray, chance: FloatArray) -> RaschFit:
    """Fit the model to one reply at least.

    Args:
        right: (N, M) share of a model's replies to a question that are right, 0 to 1, which counts as one reply; NaN
            where it was not asked.
        chance: (N,) what a guess scores, from 0 to below 1.
    """
    count, asked = right.shape[1], ~np.isnan(right)
    parts = [(chance == value) & asked.any(axis=1) for value in np.unique(chance)]
    groups = [(chance[own][:1], np.nan_to_num(right[own]), np.nan_to_num(1 - right[own])) for own in parts if own.any()]
    prior = np.append(np.full(count, _ABILITY_SPREAD**-2), 1.0)
    # A scale near that of one question, by which the tolerances of the optimizer are right for any number of them.
    total = asked.any(axis=1).sum()

    def lose(parameters: FloatArray) -> tuple[float, FloatArray]:
        lost, slopes = float(prior * parameters @ parameters) / 2, prior * parameters
        for group in groups:
            likelihoods, by_question, _ = _integrate(*group, parameters)
            lost, slopes = lost - float(likelihoods.sum()), slopes - by_question.sum(axis=0)
        return lost / total, slopes / total

    bounds = Bounds(ub=np.append(np.full(count, np.inf), np.log(_MAX_SPREAD)))
    best: FloatArray = minimize(
        lose, np.zeros(count + 1), jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-7}
    ).x
    spread, middle = float(np.exp(best[-1])), -float(best[:-1].mean())
    difficulties, errors = np.full((2, len(right)), np.nan)
    information = np.diag(prior)
    for own, group in zip(filter(np.any, parts), groups, strict=True):
        _, slopes, weights = _integrate(*group, best)
        mean = weights @ _NODES
        difficulties[own] = middle + spread * mean
        errors[own] = spread * np.sqrt(weights @ _NODES**2 - mean**2)
        information += slopes.T @ slopes
    centre = np.eye(count) - 1 / count
    covariance = centre @ np.linalg.inv(information)[:-1, :-1] @ centre
    return RaschFit(best[:-1] + middle, np.sqrt(np.diag(covariance)), difficulties, errors, middle, spread)


def _integrate(
    chance: FloatArray, right: FloatArray, wrong: FloatArray, parameters: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Integrate over the difficulties of questions with one chance.

    Args:
        chance: (1,).
        right, wrong: (n, M) shares of replies, 0 where not asked.
        parameters: abilities (M,), and the logarithm of the spread.

    Returns:
        (n,) logarithm of the likelihood of each question, up to a constant, (n, M + 1) its slopes by the parameters,
        and (n, nodes) the posterior of its difficulty.
    """
    steps = np.exp(parameters[-1]) * _NODES
    above = parameters[:-1, None] - steps  # (M, nodes)
    p = chance + (1 - chance) * expit(above)
    logs = right @ np.log(p) + wrong @ log_expit(-above) + _LOG_WEIGHTS
    likelihoods = logsumexp(logs, axis=1)
    weights = np.exp(logs - likelihoods[:, None])
    gains, losses = (1 - chance) * expit(above) * expit(-above) / p, -expit(above)  # slopes of the logarithms
    of_abilities = right * (weights @ gains.T) + wrong * (weights @ losses.T)
    of_spread = (weights * (right @ gains + wrong @ losses)) @ -steps
    return likelihoods, np.column_stack([of_abilities, of_spread]), weights
