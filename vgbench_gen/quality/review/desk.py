"""Reviewers at work: which item comes next, and that nobody sees the answer before giving one."""

from __future__ import annotations

from collections import defaultdict
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
from vgbench_gen.quality.review.queue import BATCH, ReviewItem, allowed_answer, batches, place
from vgbench_gen.quality.review.status import gather, wants
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.media import MediaStore
from vgbench_gen.text.render import word

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Slot:
    """One place in a reviewer's batch."""

    token: str
    """The name of the place in addresses of pages; it tells nothing about the item."""
    entry: ReviewItem
    """The item that is shown there."""
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
    """The real items that this reviewer has judged in all batches."""
    left: int
    """The real items that are still to be judged."""


class Desk:
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
        self.batches = batches(selected, batch)
        self._seats: dict[str, Seat] = {}

    def seat(self, reviewer: str) -> Seat:
        """The reviewer's place, opened at the first call.

        Raises:
            ReviewError: the name is not allowed or in use by another process.
        """
        if reviewer not in self._seats:
            self._seats[reviewer] = Seat(self, VerdictLog(self.folder, reviewer))
        return self._seats[reviewer]

    def close(self) -> None:
        """Close all files."""
        for seat in self._seats.values():
            seat.log.close()
        self._seats.clear()

    def shown(self, slot: Slot) -> ReviewedItem:
        """The item of a slot with its planted defect, if it has one."""
        item = self.dataset.by_id(slot.entry.id)
        if not slot.defect:
            return ReviewedItem(item)
        others = [e for e in self.entries if e.task == item.task and e.scene != slot.entry.scene]
        drawn = rng_for(0, "donor", slot.token).permutation(len(others))[:1]
        donors = [self.dataset.by_id(others[k].id) for k in drawn.tolist()]
        return planted.make(item, slot.defect, donors, self.dataset.image_bytes, self.media, slot.token)


class Seat:
    """One reviewer: the batch in hand, what is saved, what may be seen."""

    def __init__(self, desk: Desk, log: VerdictLog) -> None:
        self.desk, self.log, self.name = desk, log, log.reviewer
        self.batch, self.round, self.slots = "", 0, list[Slot]()
        self.sent_back: list[str] = []  # kinds of the planted items missed in the round that has just been sent back
        self._opened: dict[tuple[str, str], datetime] = {}
        self._last: tuple[Slot, ReviewedItem] | None = None
        self._held: dict[Key, ReviewLine] = {line.key: line for line in log.lines}
        self._choose_batch()

    # --- what to do next -------------------------------------------------------------------------------------------

    def next(self) -> Slot | None:
        """The first place without a verdict; None where nothing is left. Opens the next batch when one is done."""
        if all(self.line(slot, "verdict") for slot in self.slots):
            self._choose_batch()
        return next((slot for slot in self.slots if self.line(slot, "verdict") is None), None)

    def slot(self, token: str) -> Slot:
        """The place of this name.

        Raises:
            ReviewError: it is not in the batch in hand.
        """
        for slot in self.slots:
            if slot.token == token:
                return slot
        raise ReviewError("This item is not in your present batch. Go back to the start page.")

    def before(self, slot: Slot) -> Slot | None:
        """The place before this one that has its verdict, for a second thought."""
        ahead = self.slots[: self.slots.index(slot)]
        return next((s for s in reversed(ahead) if self.line(s, "verdict")), None)

    @property
    def done(self) -> int:
        """Places of the batch in hand that have their verdict."""
        return sum(self.line(slot, "verdict") is not None for slot in self.slots)

    def progress(self) -> Progress:
        """How far this reviewer is."""
        record = gather(self._logs(), self.desk.entries)
        mine = sum(any(j.reviewer == self.name for j in record.verdicts.get(e.id, ())) for e in self.desk.selected)
        left = sum(wants(record.verdicts.get(e.id, ()), self.name) for e in self.desk.selected)
        return Progress(self.done, len(self.slots), mine, left)

    # --- one item --------------------------------------------------------------------------------------------------

    def shown(self, slot: Slot) -> ReviewedItem:
        """The item as this reviewer sees it."""
        if self._last is None or self._last[0] != slot:
            self._last = slot, self.desk.shown(slot)
        return self._last[1]

    def image(self, slot: Slot, k: int) -> bytes:
        """Encoded bytes of the k-th image of a place.

        Raises:
            ReviewError: it has fewer images.
        """
        shown = self.shown(slot)
        if not 0 <= k < len(shown.item.images):
            raise ReviewError(f"image {k + 1} of {len(shown.item.images)}: there is none.")
        return shown.images[k] if k in shown.images else self.desk.dataset.image_bytes(shown.item.id, k)

    def line(self, slot: Slot, stage: Stage) -> ReviewLine | None:
        """What was saved last for a place, in this round."""
        return self._held.get((self.batch, self.round, slot.entry.id, bool(slot.defect), stage))

    def opened(self, slot: Slot, stage: Stage) -> None:
        """Note that the page of this stage is shown now, for the time that it takes."""
        self._opened.setdefault((slot.token, stage), self.desk.clock())

    def answer(self, slot: Slot, text: str, confidence: str) -> None:
        """Save the blind answer; a second one changes nothing, because the right one has been seen.

        Raises:
            ReviewError: an answer or confidence that cannot be given.
        """
        if self.line(slot, "answer") is not None:
            return
        options = len(self.shown(slot).item.options)
        kept = allowed_answer(slot.entry, options, (word("answer.yes"), word("answer.no")), text)
        if kept is None:
            wanted = "a number" if slot.entry.form == "open-ended" else "one of the options"
            raise ReviewError(f"Please answer with {wanted}, or say that you cannot tell.")
        if confidence not in CONFIDENCES:
            raise ReviewError("Please say how sure you are.")
        self._save(slot, "answer", answer=kept, confidence=confidence)

    def require_answer(self, slot: Slot) -> ReviewLine:
        """The saved blind answer.

        Raises:
            ReviewError: there is none yet; the right answer must not be shown.
        """
        line = self.line(slot, "answer")
        if line is None:
            raise ReviewError("Answer first: the right answer is shown after yours is saved.")
        return line

    def judge(self, slot: Slot, verdict: str, flags: Iterable[str], note: str) -> None:
        """Save the verdict; a later one on the same place takes its place.

        Raises:
            ReviewError: no blind answer yet, or a verdict that says nothing or contradicts its flags.
        """
        self.require_answer(slot)
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
        self.sent_back = []
        self._save(slot, "verdict", verdict=verdict, flags=tuple(f for f in FLAGS if f in chosen), note=note)
        missed = self._missed()
        if self._over(missed):
            self._choose_batch()
            self.sent_back = [self.desk.shown(slot).kind for slot in missed]

    def _save(self, slot: Slot, stage: Stage, **said: object) -> None:
        now = self.desk.clock()
        began = self._opened.pop((slot.token, stage), None)
        record = {
            "stage": stage,
            "reviewer": self.name,
            "item": slot.entry.id,
            "digest": slot.entry.digest,
            "planted": self.shown(slot).kind,
            "batch": self.batch,
            "round": self.round,
            "time": now.isoformat(timespec="milliseconds"),
            "seconds": -1.0 if began is None else round((now - began).total_seconds(), 1),
        }
        line = ReviewLine.model_validate({**record, **said})
        self.log.append(line)
        self._held[line.key] = line

    # --- batches ---------------------------------------------------------------------------------------------------

    def _choose_batch(self) -> None:
        record = gather(self._logs(), self.desk.entries)
        begun: dict[tuple[str, int], set[str]] = defaultdict(set)
        for batch, turn, item, is_planted, _ in self._held:
            if not is_planted:
                begun[batch, turn].add(item)
        for name, members in self.desk.batches:
            self.batch, self.round = name, 0
            while True:
                mine = begun[name, self.round]
                wanted = [e for e in members if e.id in mine or wants(record.verdicts.get(e.id, ()), self.name)]
                self.slots = self._lay(wanted)
                if not self._over(self._missed()):
                    break
                self.round += 1
            if any(self.line(slot, "verdict") is None for slot in self.slots):
                return
        self.slots = []

    def _lay(self, wanted: Sequence[ReviewItem]) -> list[Slot]:
        """Slots of real items and the planted ones among them, in this reviewer's order."""
        key = (self.name, self.batch, str(self.round))
        plants = planted.choose(self.desk.entries, wanted, planted.count(len(wanted)), *key)
        laid = [Slot(place(self.name, self.batch, self.round, e.id, False), e) for e in wanted]
        laid += [Slot(place(self.name, self.batch, self.round, e.id, True), e, kind) for e, kind in plants]
        return sorted(laid, key=lambda slot: slot.token)

    def _missed(self) -> list[Slot]:
        plants = [(slot, self.line(slot, "verdict")) for slot in self.slots if slot.defect]
        return [slot for slot, line in plants if line and not planted.caught(line.verdict, line.flags)]

    def _over(self, missed: Sequence[Slot]) -> bool:
        """Whether the round is lost already: what is still to come cannot bring the share down far enough."""
        return planted.failed(len(missed), sum(bool(slot.defect) for slot in self.slots))

    def _logs(self) -> dict[str, list[ReviewLine]]:
        return {**read_logs(self.desk.folder), self.name: self.log.lines}
