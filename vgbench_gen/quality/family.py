"""The figures of an audit judged together (`docs/validity.md#family-wise-error`).

An audit judges about a thousand figures, and at any fixed level some of them miss their bars by luck. Holm's correction
(1979) over all of them holds the chance of even one false alarm at `LEVEL`, whatever their dependence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import scipy

from vgbench_gen.quality.findings import CONCLUSIVE, ChanceTest, Finding, Verdict
from vgbench_gen.quality.intervals import adjust_by_holm

LEVEL = 0.05


def is_tested(finding: Finding) -> bool:
    """Whether a figure can fall by chance, and so counts in the family.

    One that is "few" by the number of its questions cannot fall, whatever its p.
    """
    return finding.test is not None and finding.verdict in ("green", "red")


def judge_family(findings: Sequence[Finding]) -> list[Finding]:
    """The same figures, in their order; a missed bar falls only where p, corrected over all of them, is below `LEVEL`.

    A bar that is missed without that is "few": so many questions cannot tell it from luck. Each tested figure gets its
    corrected p, and the smallest excess at which it would have fallen had it been the first of its family. Figures that
    count (duplicates, twins, letters that are dealt) have no test and stay as they are.
    """
    tested = [finding for finding in findings if is_tested(finding)]
    adjusted = iter(adjust_by_holm([finding.test.p for finding in tested if finding.test is not None]))
    judged = []
    for finding in findings:
        if finding.test is None:
            judged.append(finding)
            continue
        counts = is_tested(finding)
        p = next(adjusted) if counts else math.nan
        seen = find_smallest_excess(finding.test, len(tested) + (not counts))
        if seen > 100 - finding.chance:
            seen = math.inf  # not even the right answer every time
        judged.append(_conclude(finding, p, seen))
    return judged


def find_smallest_excess(test: ChanceTest, figures: int) -> float:
    """Points over chance from which a figure falls, were it the most surprising one of so many figures; NaN where an
    excess has no meaning."""
    if math.isnan(test.error):
        return math.nan
    level = LEVEL / max(figures, 1)
    quantile = scipy.stats.t.isf(level, test.clusters - 1) if test.clusters > 1 else scipy.stats.norm.isf(level)
    reach = float(quantile) * test.error
    return test.allowed + reach if test.beyond else max(test.allowed, reach)


def _conclude(finding: Finding, p: float, seen: float) -> Finding:
    verdict: Verdict = finding.verdict
    told = [finding.detail] if finding.detail else []
    if finding.unit == "KS" and not math.isnan(p):
        # A small p proves unlike options at any size; that they are alike takes many questions.
        fell = verdict == "red" and p < LEVEL
        verdict = "red" if fell else "green" if finding.n >= CONCLUSIVE else "few"
        return replace(finding, p=p, verdict=verdict, detail="; ".join([*told, f"p = {p:.2g} (Holm)"]))
    if not math.isnan(p):
        told.append(f"p = {p:.2g} (Holm)")
        if verdict == "red" and p >= LEVEL:
            verdict = "few"
            told.append("misses its bar by no more than luck would among so many figures")
    if not math.isnan(seen):
        told.append(f"{'no excess' if math.isinf(seen) else f'an excess of {seen:.1f} points'} would have been seen")
    return replace(finding, p=p, seen=seen, verdict=verdict, detail="; ".join(told))
