"""The audit on the card: how many figures of each kind held, and every bar that fell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vgbench_gen.publish.words import format_table, load_word, name_of
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report.audit_table import ORDER, format_value, name_cell


def audit_section(report: Mapping[str, Any] | None) -> str:
    """The section's text.

    Args:
        report: what `vgbench audit` wrote as JSON, None where no audit was made.
    """
    if report is None:
        return load_word("audit.none")
    found = [_read_finding(record) for record in report["findings"]]
    groups: dict[tuple[str, str], list[Finding]] = {}
    for record, finding in zip(report["findings"], found, strict=True):
        groups.setdefault((str(record["where"]), finding.audit), []).append(finding)
    rows = [
        (name_of("audits", audit), where, len(members), *(_count_verdicts(members, verdict) for verdict in ORDER))
        for (where, audit), members in sorted(groups.items())
    ]
    red = [finding for finding in found if finding.fell]
    fell = load_word("audit.some_fell", count=str(len(red))) if red else load_word("audit.none_fell")
    judged = sum(finding.verdict in ("green", "red") for finding in found)
    heads = ("what was looked at", "on", "figures", "fell", "few", "passed", "no bar", "not possible")
    blocks = [
        load_word("audit.intro", figures=f"{len(found):,}", judged=f"{judged:,}", fell=fell),
        format_table(heads, rows, right=range(2, 8)),
        load_word("audit.legend"),
    ]
    if red:
        columns = ("what fell", "where", "figure", "bar", "questions")
        blocks += [load_word("audit.red"), format_table(columns, map(_format_red_row, red), right=[4])]
    return "\n\n".join(blocks)


def _count_verdicts(findings: Sequence[Finding], verdict: str) -> object:
    return sum(finding.verdict == verdict for finding in findings) or ""


def _format_red_row(found: Finding) -> tuple[object, ...]:
    what = f"{name_of('audits', found.audit)}: {found.name}"
    return what, name_cell(found), format_value(found), found.bar, found.n


def _read_finding(record: Mapping[str, Any]) -> Finding:
    plain = {name: value for name, value in record.items() if name not in ("where", "items")}
    for name in ("value", "low", "high", "chance", "p", "seen"):
        plain[name] = math.nan if plain.get(name) is None else float(plain[name])
    return Finding(**plain)
