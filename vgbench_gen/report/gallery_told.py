"""Why an answer stands, in sentences with units, from what a row keeps."""

from __future__ import annotations

from collections.abc import Iterator

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.types import LETTERS, Item
from vgbench_gen.report.gallery_evidence import Measured, list_measured, read_row
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.numbers import format_value

# What reading a damaged or foreign row can raise; such a row is shown without what cannot be read.
UNREADABLE = (VGBenchError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_UNLIMITED = 100.0  # a margin from here on is one that cannot be missed


def tell_evidence(item: Item) -> list[str]:
    """Sentences about the truth, how it was checked, and how far it is from wrong; [] where the row tells nothing."""
    try:
        row = read_row(item)
        measured = list_measured(item)
        return [*_tell_truth(item, row, measured), *_tell_views(measured), *_tell_margins(item, row)]
    except UNREADABLE:
        return []


def _tell_truth(item: Item, row: RowEvidence, measured: Measured) -> Iterator[str]:
    unit = f" {item.unit}" if item.unit else ""
    if len(item.answer_value) == 1:
        yield f"Measured: {_format(item.answer_value[0])}{unit}."
    second = row.second_value.tolist()
    if row.second_value.size == 1:
        yield f"Measured again by another route: {_format(row.second_value.ravel()[0])}{unit}."
    elif row.second_value.size <= 4:
        yield f"Measured again by another route: {format_value(second)}{unit}."
    else:
        gap = abs(row.second_value.ravel() - row.truth.value.ravel()).max() if _same_size(row) else None
        if gap is not None:
            yield f"Measured again by another route: no entry differs by more than {_format(gap)}."
    visible = getattr(measured[0][1], "visible", None)  # only of boxes
    if isinstance(visible, float):
        yield f"{visible:.0%} of the object can be seen."


def _same_size(row: RowEvidence) -> bool:
    return row.second_value.size == row.truth.value.size


def _tell_views(measured: Measured) -> Iterator[str]:
    pair = next((pair for _, record in measured if (pair := record.two_views()) is not None), None)
    if pair is None:
        return
    yield (
        f"The cameras stand {_format(pair.baseline_m)} m apart and are turned by {_format(pair.rotation_deg)}° "
        f"against each other; at least {pair.overlap:.0%} of what one sees the other sees as well, about "
        f"{_format(pair.depth_m)} m away."
    )


def _tell_margins(item: Item, row: RowEvidence) -> Iterator[str]:
    if row.claim is not None:
        verdict = "holds" if row.claim.holds else "does not hold"
        away = "" if row.claim.holds else f": it is {_format(row.claim.separation)} times the required distance away"
        yield f"The claim {verdict}{away}."
    letters = [letter for letter, _ in zip(LETTERS, item.options, strict=False) if letter != item.answer]
    gaps = sorted((decoy.separation, letter) for letter, decoy in zip(letters, item.distractors, strict=False))
    if gaps:
        separation, letter = gaps[0]
        yield f"The nearest wrong option, {letter}, is {_format(separation)} times as far from the truth as required."
    names = [name for name, value in row.margins.items() if value == row.margin]
    if 0 < row.margin < _UNLIMITED:
        named = f" (the margin “{names[0].replace('_', ' ')}”)" if names else ""
        yield f"Of all that was required, the tightest is met {_format(row.margin)} times over{named}."
    if row.noise is not None:
        kept, draws = row.noise.kept, row.noise.draws
        yield f"Noise as the sensors have it left the answer as it is in {kept:.0%} of {draws} tries."


def _format(value: float) -> str:
    return f"{float(value):.3g}"
