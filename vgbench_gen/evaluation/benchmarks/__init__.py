"""Benchmarks, one folder each; this folder is scanned for them. `evaluation.base` has their base class."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vgbench_gen.evaluation.scoring import ScoringRules


def list_scoring_rules() -> tuple[ScoringRules, ...]:
    """The scoring rules of all registered benchmarks, sorted by name."""
    from vgbench_gen.evaluation.base import benchmarks

    return tuple(benchmark.scoring for benchmark in benchmarks.values())
