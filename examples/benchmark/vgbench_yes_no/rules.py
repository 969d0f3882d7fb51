"""How replies are scored. Exports carry this module, so it imports nothing but scoring."""

from __future__ import annotations

from vgbench_gen.evaluation.scoring import ScoringRules

NAME = "YesNoRelations"


class YesNoRules(ScoringRules):
    """The general rules: a reply is read for a yes or a no, and one that says neither is unreadable."""

    names = (NAME,)
