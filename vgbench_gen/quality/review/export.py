"""Which items people have accepted, for release and for the hard subset, and which are in dispute and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vgbench_gen.quality.review.queue import ReviewItem
from vgbench_gen.quality.review.status import ItemVerdict, ReviewRecord, find_status
from vgbench_gen.store.files import write_bytes

Purpose = Literal["release", "hard"]

_HARMLESS = frozenset({"needs_instrument"})


@dataclass(frozen=True, slots=True)
class ReviewExport:
    """What a review lets through."""

    accepted: tuple[str, ...]
    """The ids in the order of the dataset."""
    refused: tuple[tuple[str, str], ...]
    """The (id, reason) of judged items that are not accepted."""


def sort_judged(entries: Sequence[ReviewItem], record: ReviewRecord, purpose: Purpose = "release") -> ReviewExport:
    """Sort the judged items.

    For release: two agreeing verdicts "valid" (two of three where the first two differed) and no privacy flag. For the
    hard subset, whose items models fail, a failure must be the model's: besides that, nobody objected, no flag was set
    other than "needs instrument", and at least one reviewer found the right answer blind.
    """
    accepted: list[str] = []
    refused: list[tuple[str, str]] = []
    for e in entries:
        given = record.verdicts.get(e.id, [])
        where = find_status(given)
        reason = where.reason
        if where.state == "accepted" and purpose == "hard":
            reason = _explain_not_hard(e, given)
        if where.state == "accepted" and not reason:
            accepted.append(e.id)
        elif where.state != "open":
            refused.append((e.id, f"{where.state}: {reason}" if where.state != "accepted" else reason))
    return ReviewExport(tuple(accepted), tuple(refused))


def write_export(found: ReviewExport, path: Path) -> Path:
    """Write the accepted ids, one per line, to `path`, and beside it `<stem>.refused.tsv` with id and reason.

    Returns:
        The path of the second file.
    """
    beside = path.with_name(f"{path.stem}.refused.tsv")
    write_bytes(path, "".join(f"{item}\n" for item in found.accepted).encode())
    rows = (f"{item}\t{' '.join(reason.split())}\n" for item, reason in found.refused)
    write_bytes(beside, ("id\treason\n" + "".join(rows)).encode())
    return beside


def _explain_not_hard(entry: ReviewItem, given: Sequence[ItemVerdict]) -> str:
    against = [j.reviewer for j in given if j.verdict != "valid"]
    if against:
        return f"not for hard: {', '.join(against)} did not call it valid"
    flags = sorted({flag for j in given for flag in j.flags} - _HARMLESS)
    if flags:
        return f"not for hard: flagged {', '.join(flags)}"
    if not any(entry.is_right(j.answer) for j in given):
        return "not for hard: nobody found the answer blind"
    return ""
