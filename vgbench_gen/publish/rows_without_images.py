"""Rows that are published without their images, by how whoever pulls them gets these: from scans, or imported again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.core.types import Item
from vgbench_gen.publish.licences import OWN, Gate
from vgbench_gen.tasks.row_evidence import ShownEvidence

_ALL = "SpatialScore"  # family of `Item.benchmark`; imported whole


@dataclass(frozen=True, slots=True)
class RowsWithoutImages:
    """How many rows are published without their images."""

    scans: int = 0
    """Rows whose images `vgbench hydrate` makes."""
    imports: Mapping[str, int] = field(default_factory=dict)
    """Rows by the NAME of `vgbench import NAME` that brings their images, "" where no import does."""

    @property
    def total(self) -> int:
        """All rows without images."""
        return self.scans + sum(self.imports.values())


def count_rows_without_images(items: Iterable[Item], gate: Gate) -> RowsWithoutImages:
    """Questions that the licence gate keeps without their images."""
    held = [item for item in items if not gate.travels(item)]
    told = Counter(import_name(item.benchmark) for item in held if not is_from_scans(item.benchmark, item.evidence))
    return RowsWithoutImages(len(held) - told.total(), dict(sorted(told.items())))


def is_from_scans(benchmark: str, evidence: Mapping[str, Any]) -> bool:
    """Whether the images of a row are made from scans: it is ours, or says from which frames."""
    ours = benchmark.rpartition("/")[2] == OWN
    return ours or ShownEvidence.is_in(evidence)


def import_name(benchmark: str) -> str:
    """NAME of `vgbench import NAME` for rows of a benchmark (`Item.benchmark`); "" where no import gives them."""
    # Knows all importers, which a set of our own questions does without.
    from vgbench_gen.importers.base import importers

    if benchmark.startswith(f"{_ALL}/"):
        return _ALL.casefold()
    for name in importers.names():
        if benchmark and benchmark in (importers[name].own, importers[name].benchmark):
            return str(name)
    # Some sources hold parts under names of their own, such as QSpatialBench-ScanNet.
    return next((str(n) for n in importers.names() if benchmark.startswith(f"{importers[n].title}-")), "")
