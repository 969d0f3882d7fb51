"""Reviewers at work: which item comes next, and that nobody sees the answer before giving one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from vgbench_gen.core.rng import rng_for
from vgbench_gen.quality.review import planted
from vgbench_gen.quality.review.lines import (
    AGAINST_VALID,
    CONFIDENCES,
    FLAGS,
    MAX_NOTE,
    VERDICTS,
    Key,
    Kind,
    ReviewError,
    ReviewLine,
    Stage,
)
from vgbench_gen.quality.review.log import VerdictLog, read_logs
from vgbench_gen.quality.review.planted import ReviewedItem
from vgbench_gen.quality.review.queue import BATCH, ReviewItem, normalise_answer, place_token, split_batches
from vgbench_gen.quality.review.status import count_verdicts, needs_verdict
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.media import MediaStore
from vgbench_gen.text.render import fill_word

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Assignment:
    """One place in a reviewer's batch."""

    token: str
    """The name of the place in addresses of pages; it tells nothing about the item."""
    entry: ReviewItem
    defect: Kind | Literal[""] = ""
    """The kind of planted defect that is tried first, "" for real items."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a reviewer has come."""

    done: int
    """The places of this batch that are done."""
    total: int
    """All places of this batch."""
    judged: int
    """The real items that this reviewer has judged, those of the batch in hand only once all of it is done: a count
    that stood still after a planted item would betray it."""
    left: int
    """The real items that are still to be judged."""


class ReviewQueue:
    """A dataset laid out for review.

    Args:
        dataset: items and images. entries: all of them. selected: those to review. folder: of the verdicts.
        media: base images of the build, or None. batch: real items of a batch. clock: UTC now.
    """

    def __init__(
        self,
        dataset: Dataset,
        entries: Sequence[ReviewItem],
        selected: Sequence[ReviewItem],
        folder: Path,
        media: MediaStore | None = None,
        batch: int = BATCH,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self.dataset, self.entries, self.selected = dataset, entries, selected
        self.folder, self.media, self.clock = folder, media, clock
        self.batches = split_batches(selected, batch)
        self._sessions: dict[str, ReviewSession] = {}

    def open_session(self, reviewer: str) -> ReviewSession:
        """The reviewer's place, opened at the first call.

        Raises:
            ReviewError: the name is not allowed or in use by another process.
        """
        if reviewer not in self._sessions:
            self._sessions[reviewer] = ReviewSession(self, VerdictLog(self.folder, reviewer))
        return self._sessions[reviewer]

    def close(self) -> None:
        """Close all files."""
        for session in self._sessions.values():
            session.log.close()
        self._sessions.clear()

    def show(self, assignment: Assignment) -> ReviewedItem:
        """The item of an assignment with its planted defect, if it has one."""
        item = self.dataset.by_id(assignment.entry.id)
        if not assignment.defect:
            return ReviewedItem(item)
        others = [e for e in self.entries if e.task == item.task and e.scene != assignment.entry.scene]
        drawn = rng_for(0, "donor", assignment.token).permutation(len(others))[:1]
        donors = [self.dataset.by_id(others[k].id) for k in drawn.tolist()]
        return planted.make_planted(
            item, assignment.defect, donors, self.dataset.image_bytes, self.media, assignment.token
        )


class ReviewSession:
    """One reviewer: the batch in hand, what is saved, what may be seen."""

    def __init__(self, queue: ReviewQueue, log: VerdictLog) -> None:
        self.queue, self.log, self.name = queue, log, log.reviewer
        self.batch, self.assignments = "", list[Assignment]()
        self._last: tuple[Assignment, ReviewedItem] | None = None
        self._held: dict[Key, ReviewLine] = {line.key: line for line in log.lines}
        self._choose_batch()

    # --- what to do next -------------------------------------------------------------------------------------------

    def find_next(self) -> Assignment | None:
        """The first place without a verdict; None where nothing is left. Opens the next batch when one is done."""
        if all(self.find_line(assignment, "verdict") for assignment in self.assignments):
            self._choose_batch()
        return next(
            (assignment for assignment in self.assignments if self.find_line(assignment, "verdict") is None), None
        )

    def find_assignment(self, token: str) -> Assignment:
        """The place of this name.

        Raises:
            ReviewError: it is not in the batch in hand.
        """
        for assignment in self.assignments:
            if assignment.token == token:
                return assignment
        raise ReviewError("This item is not in your present batch. Go back to the start page.")

    def find_previous(self, assignment: Assignment) -> Assignment | None:
        """The place before this one that has its verdict, for a second thought."""
        ahead = self.assignments[: self.assignments.index(assignment)]
        return next((s for s in reversed(ahead) if self.find_line(s, "verdict")), None)

    @property
    def done(self) -> int:
        """Places of the batch in hand that have their verdict."""
        return sum(self.find_line(assignment, "verdict") is not None for assignment in self.assignments)

    def count_progress(self) -> Progress:
        """How far this reviewer is."""
        record = count_verdicts(self._read_logs(), self.queue.entries)
        mine = {
            e.id for e in self.queue.selected if any(j.reviewer == self.name for j in record.verdicts.get(e.id, ()))
        }
        if self.done < len(self.assignments):
            mine -= {assignment.entry.id for assignment in self.assignments}
        left = sum(needs_verdict(record.verdicts.get(e.id, ()), self.name) for e in self.queue.selected)
        return Progress(self.done, len(self.assignments), len(mine), left)

    # --- one item --------------------------------------------------------------------------------------------------

    def show(self, assignment: Assignment) -> ReviewedItem:
        """The item as this reviewer sees it."""
        if self._last is None or self._last[0] != assignment:
            self._last = assignment, self.queue.show(assignment)
        return self._last[1]

    def read_image(self, assignment: Assignment, k: int) -> bytes:
        """Encoded bytes of the k-th image of a place.

        Raises:
            ReviewError: it has fewer images.
        """
        shown = self.show(assignment)
        if not 0 <= k < len(shown.item.images):
            raise ReviewError(f"image {k + 1} of {len(shown.item.images)}: there is none.")
        return shown.images[k] if k in shown.images else self.queue.dataset.image_bytes(shown.item.id, k)

    def find_line(self, assignment: Assignment, stage: Stage) -> ReviewLine | None:
        """What was saved last for a place."""
        return self._held.get((self.batch, assignment.entry.id, bool(assignment.defect), stage))

    def answer(self, assignment: Assignment, text: str, confidence: str) -> None:
        """Save the blind answer; a second one changes nothing, because the right one has been seen.

        Raises:
            ReviewError: an answer or confidence that cannot be given.
        """
        if self.find_line(assignment, "answer") is not None:
            return
        options = len(self.show(assignment).item.options)
        kept = normalise_answer(assignment.entry, options, (fill_word("answer.yes"), fill_word("answer.no")), text)
        if kept is None:
            wanted = "a number" if assignment.entry.form == "open-ended" else "one of the options"
            raise ReviewError(f"Please answer with {wanted}, or say that you cannot tell.")
        if confidence not in CONFIDENCES:
            raise ReviewError("Please say how sure you are.")
        self._save(assignment, "answer", answer=kept, confidence=confidence)

    def require_answer(self, assignment: Assignment) -> ReviewLine:
        """The saved blind answer.

        Raises:
            ReviewError: there is none yet; the right answer must not be shown.
        """
        line = self.find_line(assignment, "answer")
        if line is None:
            raise ReviewError("Answer first: the right answer is shown after yours is saved.")
        return line

    def judge(self, assignment: Assignment, verdict: str, flags: Iterable[str], note: str) -> None:
        """Save the verdict; a later one on the same place takes its place.

        Raises:
            ReviewError: no blind answer yet, or a verdict that says nothing or contradicts its flags.
        """
        self.require_answer(assignment)
        chosen = set(flags)
        note = note.replace("\r\n", "\n").strip()
        if verdict not in VERDICTS or not chosen <= set(FLAGS):
            raise ReviewError("Please choose valid, invalid or unsure.")
        if verdict == "valid" and chosen & AGAINST_VALID:
            raise ReviewError("A valid item has no wrong answer, no second true answer and no privacy problem.")
        if verdict == "invalid" and not chosen and not note:
            raise ReviewError("Please say what is wrong: a flag or a note.")
        if len(note) > MAX_NOTE:
            raise ReviewError(f"The note has {len(note)} characters; at most {MAX_NOTE} are kept.")
        self._save(assignment, "verdict", verdict=verdict, flags=tuple(f for f in FLAGS if f in chosen), note=note)

    def _save(self, assignment: Assignment, stage: Stage, **said: object) -> None:
        record = {
            "stage": stage,
            "reviewer": self.name,
            "item": assignment.entry.id,
            "digest": assignment.entry.digest,
            "planted": self.show(assignment).kind,
            "batch": self.batch,
            "time": self.queue.clock().isoformat(timespec="milliseconds"),
        }
        line = ReviewLine.model_validate({**record, **said})
        self.log.append(line)
        self._held[line.key] = line

    # --- batches ---------------------------------------------------------------------------------------------------

    def _choose_batch(self) -> None:
        record = count_verdicts(self._read_logs(), self.queue.entries)
        for name, members in self.queue.batches:
            self.batch = name
            mine = {line.item for line in self._held.values() if line.batch == name and not line.planted}
            self.assignments = self._lay(
                [e for e in members if e.id in mine or needs_verdict(record.verdicts.get(e.id, ()), self.name)]
            )
            if any(self.find_line(assignment, "verdict") is None for assignment in self.assignments):
                return
        self.assignments = []

    def _lay(self, wanted: Sequence[ReviewItem]) -> list[Assignment]:
        """Places of real items and the planted ones among them, in this reviewer's order."""
        number = planted.count_planted(len(wanted))
        plants = planted.choose_planted(self.queue.entries, wanted, number, self.name, self.batch)
        laid = [Assignment(place_token(self.name, self.batch, e.id, False), e) for e in wanted]
        laid += [Assignment(place_token(self.name, self.batch, e.id, True), e, kind) for e, kind in plants]
        return sorted(laid, key=lambda assignment: assignment.token)

    def _read_logs(self) -> dict[str, list[ReviewLine]]:
        return {**read_logs(self.queue.folder), self.name: self.log.lines}
