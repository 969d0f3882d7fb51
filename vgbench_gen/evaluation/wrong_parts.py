"""Which part of the geometry a wrong letter gets wrong, for questions whose options combine two parts of the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vgbench_gen.core.types import ALPHABET
from vgbench_gen.evaluation.board import Entry
from vgbench_gen.evaluation.cells import Cell, Statistic, mean

if TYPE_CHECKING:
    import pandas as pd


def list_wrong_parts(questions: Sequence[Entry]) -> list[tuple[str, str]]:
    """The task and the parts ("depth", "depth+yaw") of every way to be wrong, single parts first."""
    kinds = {(entry.task, part) for entry in questions for part in entry.error_parts if part}
    return sorted(kinds, key=lambda kind: (kind[0], kind[1].count("+"), kind[1]))


def share_missing(part: str) -> Statistic:
    """Of the wrong letters that tell their parts, the share that gets exactly these wrong; no number where a run
    answered and none was wrong."""

    def average_wrong(rows: pd.DataFrame, value: str, seed: int) -> Cell:
        missed = [_find_missed(entry, said) for entry, said in zip(rows["question"], rows["extracted"], strict=True)]
        marked = rows.assign(mark=[float(one == part) if one else math.nan for one in missed])
        return mean(marked[marked["mark"].notna()] if rows["answered"].any() else marked, "mark", seed)

    return average_wrong


def _find_missed(entry: Entry, said: str | float | None) -> str:
    """What the answer gets wrong; "" where it is right, no letter was read, or options are no combinations."""
    return dict(zip(ALPHABET, entry.error_parts, strict=False)).get(str(said), "")
