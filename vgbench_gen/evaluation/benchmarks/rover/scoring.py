"""Scoring rules of ROVER, which score no reply, because a judge grades the generated images (`rover.evaluator`)."""

from __future__ import annotations

from vgbench_gen.evaluation.scoring import ScoringRules


class RoverRules(ScoringRules):
    """The general rules; they apply to none of ROVER's tasks."""

    names = ("ROVER",)
