"""Benchmarks, one folder each, found by scanning this folder; `evaluation.base` says what each has to provide."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vgbench_gen.evaluation.scoring import ScoringRules


def list_scoring_rules() -> tuple[ScoringRules, ...]:
    """Return the scoring rules of every registered benchmark, in the order of their names."""
    from vgbench_gen.evaluation.base import benchmarks

    return tuple(benchmark.scoring for benchmark in benchmarks.values())
