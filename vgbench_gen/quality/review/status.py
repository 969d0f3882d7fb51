"""What the reviewers' lines say about each item, after everything that must not count has been left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from vgbench_gen.quality.review import planted
from vgbench_gen.quality.review.lines import ReviewLine, Verdict, keep_last
from vgbench_gen.quality.review.queue import ReviewItem

State = Literal["open", "accepted", "rejected", "disputed"]


@dataclass(frozen=True, slots=True)
class ItemVerdict:
    """One reviewer's counted verdict on one item."""

    reviewer: str
    verdict: Verdict
    flags: tuple[str, ...]
    note: str
    answer: str
    """The blind answer, "" where it is missing."""
    time: str
    """When the verdict was given, UTC in ISO 8601."""


@dataclass(frozen=True, slots=True)
class Checks:
    """How one reviewer did on planted items."""

    shown: int = 0
    """The planted items that were judged."""
    missed: int = 0
    """Those among them that were called valid."""
    counted: bool = True
    """Whether the reviewer's verdicts count: too many missed planted items and none do."""


@dataclass(frozen=True, slots=True)
class ReviewStatus:
    """Where an item stands."""

    state: State
    reason: str = ""
    """The reason in words, "" where the item is accepted or open."""


@dataclass(slots=True)
class ReviewRecord:
    """Everything that counts in a review."""

    verdicts: dict[str, list[ItemVerdict]] = field(default_factory=dict)
    """For each item id, the verdicts in the order in which they were given."""
    checks: dict[str, Checks] = field(default_factory=dict)
    """For each reviewer, how the planted items were judged."""
    stale: int = 0
    """The verdicts on items that the dataset no longer has, or has with other words or images."""


def count_verdicts(logs: Mapping[str, Sequence[ReviewLine]], entries: Sequence[ReviewItem]) -> ReviewRecord:
    """Count the lines.

    Left out: planted items, reviewers who missed too many of them, items whose digest is no longer the dataset's.
    """
    digests = {e.id: e.digest for e in entries}
    record = ReviewRecord()
    found: dict[str, list[ItemVerdict]] = defaultdict(list)
    for reviewer in sorted(logs):
        lines = keep_last(logs[reviewer])
        checks = record.checks[reviewer] = _count_checks(lines)
        answers: dict[str, ReviewLine] = {}
        verdicts: dict[str, ReviewLine] = {}
        for line in lines:
            if line.planted:
                continue
            if digests.get(line.item) != line.digest:
                record.stale += line.stage == "verdict"
            elif line.stage == "answer":
                answers.setdefault(line.item, line)
            elif checks.counted:
                verdicts[line.item] = line
        for item, line in verdicts.items():
            answer = answers.get(item)
            found[item].append(
                ItemVerdict(
                    reviewer,
                    line.verdict or "unsure",
                    line.flags,
                    line.note,
                    answer.answer if answer else "",
                    line.time,
                )
            )
    # The pair that agreement is measured on must not depend on reviewers' names.
    record.verdicts = {item: sorted(given, key=lambda j: (j.time, j.reviewer)) for item, given in found.items()}
    return record


def _count_checks(lines: Sequence[ReviewLine]) -> Checks:
    judged = [line for line in lines if line.planted and line.stage == "verdict"]
    missed = sum(not planted.is_caught(line.verdict, line.flags) for line in judged)
    return Checks(len(judged), missed, not planted.is_failed(missed, len(judged)))


def find_status(given: Sequence[ItemVerdict]) -> ReviewStatus:
    """Where these verdicts leave an item: two agreeing ones settle it, a third decides between two that differ.

    A privacy flag keeps the item out whatever the verdicts: somebody has to look at it.
    """
    private = [j.reviewer for j in given if "privacy" in j.flags]
    if private:
        return ReviewStatus("disputed", f"privacy flag by {', '.join(private)}")
    if len(given) < 2:
        return ReviewStatus("open")
    votes = Counter(j.verdict for j in given)
    (first, most), *rest = votes.most_common()
    said = ", ".join(f"{j.reviewer}: {' '.join([j.verdict, *j.flags])}" for j in given)
    if most < 2 or (rest and rest[0][1] == most):
        return ReviewStatus(
            "disputed", f"{'a third reviewer is needed' if len(given) == 2 else 'no majority'} ({said})"
        )
    return ReviewStatus("accepted") if first == "valid" else ReviewStatus("rejected", f"{first} by {most} ({said})")


def needs_verdict(given: Sequence[ItemVerdict], reviewer: str) -> bool:
    """Whether this reviewer's verdict is still needed: two independent ones, and a third where those two differ."""
    others = [j.verdict for j in given if j.reviewer != reviewer]
    if len(others) != len(given):
        return False
    return len(others) < 2 or (len(others) == 2 and others[0] != others[1])
