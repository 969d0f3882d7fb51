"""Averages of ROVER's scores with intervals, by dimension and reasoning type, and how far judges agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation import stats
from vgbench_gen.evaluation.benchmarks.rover.judge import EXTRAS, METRICS, name_score, scale_to_hundred
from vgbench_gen.evaluation.metrics import average_micro
from vgbench_gen.quality.review.agreement import krippendorff_alpha

if TYPE_CHECKING:
    import pandas as pd  # it loads when used: 40 MB

Results = Sequence[Mapping[str, Any]]


def average_scores(results: Results, metrics: Sequence[str]) -> dict[str, Any]:
    """Averages over results as `evaluate` gives them; missing scores are left out and counted.

    `avg_<metric>` is from 1 to 5, None where nobody was scored, `count_<metric>` how many it is over; beside them
    `avg_<metric>_100` and `interval_<metric>` (95 %, 1 to 5), `missing_<metric>`, and `average_100` over all scores
    together. `by_dimension` and `by_reasoning_type` hold {name: {metric: {mean, mean_100, low, high, n}}}.
    """
    import pandas as pd

    scores = pd.DataFrame({metric: [_number(one.get(name_score(metric))) for one in results] for metric in metrics})
    found: dict[str, Any] = {}
    for metric in metrics:
        told = _summarize_scores(scores[metric])
        found[f"avg_{metric}"], found[f"count_{metric}"] = told["mean"], told["n"]
        found[f"avg_{metric}_100"] = told["mean_100"]
        found[f"interval_{metric}"] = [told["low"], told["high"]]
        found[f"missing_{metric}"] = len(results) - told["n"]
    pooled = average_micro(value for metric in metrics for value in scores[metric].dropna())
    found["average_100"] = None if math.isnan(pooled) else scale_to_hundred(pooled)
    for name in ("dimension", "reasoning_type"):
        groups = scores.groupby(np.array([str(one.get(name) or "unknown") for one in results], dtype=object))
        found[f"by_{name}"] = {
            group: {metric: _summarize_scores(members[metric]) for metric in metrics} for group, members in groups
        }
    return found


def _summarize_scores(column: pd.Series[float]) -> dict[str, Any]:
    scores = column.dropna().to_numpy()
    if not len(scores):
        return {"mean": None, "mean_100": None, "low": None, "high": None, "n": 0}
    found = stats.estimate_mean((scores - 1) / 4, [str(k) for k in range(len(scores))])
    mean, low, high = (1 + 4 * value for value in (found.value, found.low, found.high))
    return {"mean": mean, "mean_100": scale_to_hundred(mean), "low": low, "high": high, "n": len(scores)}


def measure_agreement(runs: Mapping[str, Results]) -> dict[str, dict[str, Any]]:
    """How far several judges, or one judge several times, agree, by metric, on the samples that all of them scored.

    n: how many these are. exact, within_one: shares over all pairs of runs. kappa: Cohen's with quadratic weights, mean
    over pairs (scikit-learn). alpha: Krippendorff's for ordinal scores, over all samples that two scored; None where
    everybody always said the same.

    Raises:
        ConfigError: fewer than two runs.
    """
    if len(runs) < 2:
        raise ConfigError(f"agreement: found {len(runs)} runs of a judge; expected at least two.")
    found = {}
    for metric in (*METRICS, *EXTRAS):
        columns = [{str(r["sample_id"]): r.get(name_score(metric)) for r in results} for results in runs.values()]
        ids = sorted(set().union(*columns))
        table = np.array([[_number(column.get(one)) for one in ids] for column in columns], dtype=np.float64)
        if np.isnan(table).all():
            continue
        whole = table[:, ~np.isnan(table).any(axis=0)]
        found[metric] = {"n": whole.shape[1], **_compare_pairwise(whole), "alpha": _compute_alpha(table)}
    return found


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _compare_pairwise(table: Any) -> dict[str, float | None]:
    from sklearn.metrics import cohen_kappa_score

    if not table.shape[1]:
        return {"exact": None, "within_one": None, "kappa": None}
    pairs = [(a, b) for k, a in enumerate(table) for b in table[k + 1 :]]
    kappas = [
        cohen_kappa_score(a.astype(int), b.astype(int), labels=[1, 2, 3, 4, 5], weights="quadratic")
        for a, b in pairs
        if len({*a, *b}) > 1
    ]
    return {
        "exact": float(np.mean([(a == b).mean() for a, b in pairs])),
        "within_one": float(np.mean([(abs(a - b) <= 1).mean() for a, b in pairs])),
        "kappa": float(np.mean(kappas)) if kappas else None,
    }


def _compute_alpha(table: Any) -> float | None:
    alpha = krippendorff_alpha([column[~np.isnan(column)].tolist() for column in table.T], "ordinal")
    return None if math.isnan(alpha) else alpha
