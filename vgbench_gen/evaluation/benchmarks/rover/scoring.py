"""Single replies to ROVER's tasks have no score by rule: a judge grades what was made (`rover.evaluator`)."""

from __future__ import annotations

from vgbench_gen.evaluation.scoring import ScoringRules


class RoverRules(ScoringRules):
    """The general rules, which no task of ROVER meets."""

    names = ("ROVER",)
