"""The evidence of the row that is being shown, read once for all parts of the gallery that look at it."""

from __future__ import annotations

from functools import lru_cache

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Fact, Item
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact


@lru_cache(maxsize=1)
def read_row(item: Item) -> RowEvidence:
    """As `RowEvidence.of`, remembered for the item asked about last; items are told apart as objects."""
    return RowEvidence.of(item)


@lru_cache(maxsize=1)
def read_fact(item: Item) -> Fact:
    """As `rebuild_fact`, remembered likewise."""
    return rebuild_fact(item)


def find_row(item: Item) -> RowEvidence | None:
    """As `read_row`; None for a row that was damaged or that another program wrote."""
    try:
        return read_row(item)
    except DatasetError:
        return None
