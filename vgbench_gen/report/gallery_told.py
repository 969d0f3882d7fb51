"""Why an answer stands, in sentences with units, from what a row keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.evidence import Evidence
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, rebuild_fact
from vgbench_gen.text.numbers import format_value

Measured = Sequence[tuple[tuple[str, ...], Evidence]]
"""Frames and record of what was measured."""
_UNLIMITED = 100.0  # a margin from here on is one that cannot be missed


def tell_evidence(item: Item) -> list[str]:
    """Sentences about the truth, how it was checked, and how far it is from wrong; [] where the row tells nothing."""
    try:
        row = RowEvidence.of(item)
        measured = list_measured(item)
        return [*_tell_truth(item, row, measured), *_tell_views(measured), *_tell_margins(item, row)]
    except UNREADABLE:
        return []


def list_measured(item: Item) -> Measured:
    """Frames and record of the truth, the fact and the wrong options of a row, as far as they were measured.

    Raises:
        DatasetError: the row is damaged, or another program wrote it.
    """
    fact, task = rebuild_fact(item), tasks[item.task]
    options = [fact.truth_candidate, *(one for k, one in enumerate(fact.candidates) if k != fact.truth)]
    found = [(one.frame_ids, task.candidate_evidence.given(one)) for one in options]
    found.insert(1, (fact.frame_ids, task.fact_evidence.of(fact)))
    return [(frames, record) for frames, record in found if record is not None]


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
    letters = [letter for letter, _ in zip(ALPHABET, item.options, strict=False) if letter != item.answer]
    gaps = sorted((decoy.separation, letter) for letter, decoy in zip(letters, item.distractors, strict=False))
    if gaps:
        separation, letter = gaps[0]
        yield f"The nearest wrong option, {letter}, is {_format(separation)} times as far from the truth as required."
    names = [name for name, value in row.margins.items() if value == row.margin]
    if 0 < row.margin < _UNLIMITED:
        named = f"{_name_check(names[0])}, " if names else ""
        yield f"Tightest check: {named}{_format(row.margin)}x the required margin."
    if row.noise is not None:
        yield f"The answer was {row.noise.described}."


def _name_check(margin: str) -> str:
    """A margin's name in words: "a_rect" is the rectangle of object A."""
    object_name, _, rest = margin.partition("_")
    of_object = f" of object {object_name.upper()}" if object_name in ("a", "b") else ""
    words = (rest if of_object else margin).replace("_", " ")
    return words.replace("rect", "rectangle") + of_object


def _format(value: float) -> str:
    return f"{float(value):.3g}"
