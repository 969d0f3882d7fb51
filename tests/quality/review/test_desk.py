from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vgbench_gen.quality.review.desk import Desk, Seat, Slot
from vgbench_gen.quality.review.lines import CANNOT_TELL, ReviewError
from vgbench_gen.quality.review.log import read_logs
from vgbench_gen.quality.review.queue import entries_of
from vgbench_gen.quality.review.status import gather
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.media import MediaStore

OpenDesk = Callable[..., Desk]


@pytest.fixture
def open_desk(dataset: Dataset, media: MediaStore, tmp_path: Path) -> OpenDesk:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def tick() -> datetime:
        nonlocal now
        now += timedelta(seconds=1.5)
        return now

    def start(items: int = 12, batch: int = 6) -> Desk:
        entries = entries_of(dataset)
        return Desk(dataset, entries, entries[:items], tmp_path / "review", media, batch, tick)

    return start


def decide(seat: Seat, slot: Slot, verdict: str = "valid") -> None:
    flags = ["unclear"] if verdict == "invalid" else []
    seat.opened(slot, "answer")
    seat.answer(slot, CANNOT_TELL, "guess")
    seat.judge(slot, verdict, flags, "")


def work(seat: Seat, steps: int = 1000, verdict: str = "valid", on_planted: str = "invalid") -> list[Slot]:
    done: list[Slot] = []
    while len(done) < steps and (slot := seat.next()) is not None:
        decide(seat, slot, on_planted if slot.defect else verdict)
        done.append(slot)
    return done


def test_the_truth_comes_after_the_answer(open_desk: OpenDesk) -> None:
    seat = open_desk().seat("ann")
    slot = seat.next()
    assert slot is not None
    with pytest.raises(ReviewError, match="Answer first"):
        seat.require_answer(slot)
    with pytest.raises(ReviewError, match="Answer first"):
        seat.judge(slot, "valid", [], "")
    for answer, confidence in (("E", "sure"), (CANNOT_TELL, ""), ("", "sure")):
        with pytest.raises(ReviewError, match="Please"):
            seat.answer(slot, answer, confidence)
    assert seat.log.lines == []
    seat.opened(slot, "answer")
    seat.answer(slot, CANNOT_TELL, "guess")
    seat.answer(slot, "1" if slot.entry.form == "open-ended" else "A", "sure")  # too late: the truth has been shown
    assert seat.require_answer(slot).answer == CANNOT_TELL
    assert len(seat.log.lines) == 1
    assert seat.log.lines[0].seconds == 1.5
    for verdict, flags, says in (
        ("fine", [], "choose"),
        ("valid", ["bad"], "choose"),
        ("valid", ["privacy"], "A valid item"),
        ("invalid", [], "wrong"),
    ):
        with pytest.raises(ReviewError, match=says):
            seat.judge(slot, verdict, flags, "")
    seat.judge(slot, "invalid", [], "why")
    with pytest.raises(ReviewError, match="not in your present batch"):
        seat.slot("0" * 16)


def test_one_stops_and_goes_on_where_one_stopped(open_desk: OpenDesk) -> None:
    desk = open_desk()
    seat = desk.seat("ann")
    done = work(seat, 3)
    half = seat.next()
    assert half is not None
    seat.answer(half, CANNOT_TELL, "guess")
    order = [slot.token for slot in seat.slots]
    desk.close()
    again = open_desk().seat("ann")
    assert [slot.token for slot in again.slots] == order
    assert again.next() == half
    assert again.require_answer(half).confidence == "guess"
    assert again.before(half) == done[-1]
    real = next(slot for slot in done if not slot.defect)
    again.judge(real, "unsure", [], "second thought")
    held = gather(read_logs(again.desk.folder), again.desk.entries)
    assert [given.verdict for given in held.verdicts[real.entry.id]] == ["unsure"]


def test_two_reviewers_and_a_third_where_they_differ(open_desk: OpenDesk) -> None:
    desk = open_desk()
    ann, bob = desk.seat("ann"), desk.seat("bob")
    first = work(ann)
    real = [slot.entry.id for slot in first if not slot.defect]
    assert sorted(real) == sorted(e.id for e in desk.selected)
    assert sum(bool(slot.defect) for slot in first) == 2  # one in each batch of six
    work(bob, 5, "valid")
    work(bob, 1000, "invalid")
    assert ann.next() is None
    assert bob.next() is None
    record = gather(read_logs(desk.folder), desk.entries)
    differing = {item for item, given in record.verdicts.items() if len({j.verdict for j in given}) > 1}
    assert 0 < len(differing) < 12
    cyd = work(desk.seat("cyd"))
    assert {slot.entry.id for slot in cyd if not slot.defect} == differing
    assert desk.seat("dan").next() is None
    assert desk.seat("dan").progress().left == 0


def test_a_reviewer_who_lets_planted_items_pass_does_the_batch_again(open_desk: OpenDesk) -> None:
    desk = open_desk()
    seat = desk.seat("ann")
    batch = seat.batch
    before = [slot.token for slot in seat.slots]
    while not seat.sent_back:
        work(seat, 1, on_planted="valid")
    assert len(seat.sent_back) == 1
    assert (seat.batch, seat.round) == (batch, 1)
    assert set(before).isdisjoint(slot.token for slot in seat.slots)
    assert seat.progress().judged == 0
    desk.close()
    desk = open_desk()
    seat = desk.seat("ann")
    assert (seat.batch, seat.round) == (batch, 1)  # also after a restart
    work(seat)
    assert seat.progress().judged == 12
    assert gather(read_logs(desk.folder), desk.entries).checks["ann"].sent_back == 1


def test_planted_items_look_like_others_and_are_kept_apart(open_desk: OpenDesk) -> None:
    desk = open_desk()
    seat = desk.seat("ann")
    (plant,) = [slot for slot in seat.slots if slot.defect]
    assert len({len(slot.token) for slot in seat.slots}) == 1
    assert plant.entry.id not in {slot.entry.id for slot in seat.slots if not slot.defect}
    shown = seat.shown(plant)
    assert shown.kind
    assert seat.image(plant, 0)[:2] == b"\xff\xd8"
    with pytest.raises(ReviewError, match="there is none"):
        seat.image(plant, 9)
    decide(seat, plant, "invalid")
    assert {line.planted for line in seat.log.lines} == {shown.kind}
    assert gather(read_logs(desk.folder), desk.entries).verdicts == {}
