"""What a reviewer is shown with the right answer: the numbers behind it, tightest margin first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vgbench_gen.core.types import Item
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.numbers import format_value

_DEPTH = 2  # of nested evidence that is spelled out
_LONG = 24  # numbers of an array that are spelled out


def list_evidence(item: Item) -> list[tuple[str, str]]:
    """(name, value) in words and numbers; values may hold line breaks."""
    row = RowEvidence.found(item)
    unit = f" {item.unit}" if item.unit else ""
    rows: list[tuple[str, str]] = []
    if row is not None:  # rows of other programs have none
        rows.append(("First route", format_value(row.truth.value.tolist()) + unit))
        rows.append(("Second route", format_value(row.second_value.tolist()) + unit))
        if row.claim is not None:
            told = f"{row.claim.separation:.2f} margins from the truth"
            rows.append(("Claim", f"{format_value(row.claim.value.tolist())}{unit}, {told}"))
    if item.tolerance:
        rows.append(("Tolerance", f"{item.tolerance:g}"))
    for n, distractor in enumerate(item.distractors, 1):
        how = distractor.key or distractor.strategy
        rows.append((f"Wrong option {n}", f"{how}: {distractor.separation:.2f} margins from the truth"))
    tightest = sorted((row.margins if row is not None else {}).items(), key=lambda pair: (pair[1], pair[0]))
    if tightest:
        rows.append(("Margins over required", "\n".join(f"{name} {value:.2f}" for name, value in tightest)))
    if row is not None and row.noise is not None:
        rows.append(("Noise test", row.noise.described))
    rows.append(("Source", f"{item.source} {item.scene_id}, frames {', '.join(item.frame_ids) or '-'}"))
    rows.append(("Difficulty", item.difficulty or "-"))
    rows.append(("Item", item.id))
    return rows


def _format_plain(value: Any, depth: int = 0) -> str:
    if isinstance(value, Mapping):
        if depth >= _DEPTH:
            return f"{len(value)} values"
        return ("\n" if depth == 0 else ", ").join(
            f"{k} {_format_plain(v, depth + 1)}" for k, v in sorted(value.items())
        )
    if isinstance(value, list | tuple):
        return format_value(value) if len(value) <= _LONG else f"{len(value)} values"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
