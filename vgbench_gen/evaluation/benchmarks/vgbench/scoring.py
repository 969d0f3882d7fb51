"""Scoring rules of our own questions: those of their question types; the official score is SpatialScore's script."""

from __future__ import annotations

from vgbench_gen.evaluation.scoring import ScoringRules


class VGBenchRules(ScoringRules):
    """The general rules."""

    names = ("VGBench",)
    script = "Official script"
