"""Averages of ROVER's scores with intervals, by dimension and reasoning type, and how far judges agree."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation import stats
from vgbench_gen.evaluation.benchmarks.rover.judge import EXTRAS, METRICS, name_score, scale_to_hundred
from vgbench_gen.quality.review.agreement import krippendorff_alpha

Results = Sequence[Mapping[str, Any]]


def average_scores(results: Results, metrics: Sequence[str]) -> dict[str, Any]:
    """Averages over results as `evaluate` gives them; missing scores are left out and counted.

    `avg_<metric>` is from 1 to 5, None where nobody was scored, `count_<metric>` how many it is over; beside them
    `avg_<metric>_100` and `interval_<metric>` (95 %, 1 to 5), `missing_<metric>`, and `average_100` over all scores
    together. `by_dimension` and `by_reasoning_type` hold {name: {metric: {mean, mean_100, low, high, n}}}.
    """
    found: dict[str, Any] = {}
    pooled: list[float] = []
    for metric in metrics:
        scores = _collect_scores(results, metric)
        pooled += scores
        told = _summarize_scores(scores)
        found[f"avg_{metric}"], found[f"count_{metric}"] = told["mean"], told["n"]
        found[f"avg_{metric}_100"] = told["mean_100"]
        found[f"interval_{metric}"] = [told["low"], told["high"]]
        found[f"missing_{metric}"] = len(results) - told["n"]
    found["average_100"] = scale_to_hundred(math.fsum(pooled) / len(pooled)) if pooled else None
    for name in ("dimension", "reasoning_type"):
        groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for result in results:
            groups[str(result.get(name) or "unknown")].append(result)
        found[f"by_{name}"] = {
            group: {metric: _summarize_scores(_collect_scores(members, metric)) for metric in metrics}
            for group, members in sorted(groups.items())
        }
    return found


def _collect_scores(results: Iterable[Mapping[str, Any]], metric: str) -> list[float]:
    values = (result.get(name_score(metric)) for result in results)
    return [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def _summarize_scores(scores: Sequence[float]) -> dict[str, Any]:
    if not scores:
        return {"mean": None, "mean_100": None, "low": None, "high": None, "n": 0}
    shares = (np.asarray(scores) - 1) / 4
    found = stats.estimate_mean(shares, [str(k) for k in range(len(scores))])
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
