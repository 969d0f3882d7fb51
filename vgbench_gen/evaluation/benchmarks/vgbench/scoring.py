"""How replies to our own questions are scored: by their question types, with SpatialScore's script beside."""

from __future__ import annotations

from vgbench_gen.evaluation.scoring import ScoringRules


class VGBenchRules(ScoringRules):
    """The general rules."""

    names = ("VGBench",)
    script = "Official script"
