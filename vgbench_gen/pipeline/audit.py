"""What an audit found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.quality.findings import Finding


@dataclass(slots=True)
class AuditReport:
    """What an audit found."""

    dataset: str = ""
    items: int = 0
    findings: list[Finding] = field(default_factory=list)
    cells: dict[str, dict[str, int]] = field(default_factory=dict)
    """"task/form" -> "questions" in the dataset, "judged": those on which the text is judged, with questions that could
    be asked as well, "scenes"."""
    bias: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    inside: set[str] = field(default_factory=set)
    tallies: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    @property
    def fell(self) -> list[Finding]:
        """The figures whose limit is passed."""
        return [found for found in self.findings if found.fell]


def audit(*args: Any, **settings: Any) -> AuditReport:
    """Stands on the branch of the audit itself."""
    raise NotImplementedError
