"""The evidence of the row that is being shown, read once for all parts of the gallery that look at it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Fact, Item
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.evidence import Evidence
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact

Measured = Sequence[tuple[tuple[str, ...], Evidence]]
"""Frames and record of what was measured."""


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


def list_measured(item: Item) -> Measured:
    """Frames and record of the truth, the fact and the wrong options of a row, as far as they were measured.

    Raises:
        DatasetError: the row is damaged, or another program wrote it.
    """
    fact, task = read_fact(item), tasks[item.task]
    options = [fact.truth_candidate, *(one for k, one in enumerate(fact.candidates) if k != fact.truth)]
    found = [(one.frame_ids, task.candidate_evidence.given(one)) for one in options]
    found.insert(1, (fact.frame_ids, task.fact_evidence.of(fact)))
    return [(frames, record) for frames, record in found if record is not None]
