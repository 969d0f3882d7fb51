from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vgbench_gen.quality.review.lines import CANNOT_TELL, ReviewError
from vgbench_gen.quality.review.log import read_logs
from vgbench_gen.quality.review.queue import list_items
from vgbench_gen.quality.review.session import Assignment, ReviewQueue, ReviewSession
from vgbench_gen.quality.review.status import count_verdicts
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.media import MediaStore

OpenDesk = Callable[..., ReviewQueue]


@pytest.fixture
def open_queue(dataset: Dataset, media: MediaStore, tmp_path: Path) -> OpenDesk:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def tick() -> datetime:
        nonlocal now
        now += timedelta(seconds=1.5)
        return now

    def start(items: int = 12, batch: int = 6) -> ReviewQueue:
        entries = list_items(dataset)
        return ReviewQueue(dataset, entries, entries[:items], tmp_path / "review", media, batch, tick)

    return start


def decide(session: ReviewSession, assignment: Assignment, verdict: str = "valid") -> None:
    flags = ["unclear"] if verdict == "invalid" else []
    session.note_opened(assignment, "answer")
    session.answer(assignment, CANNOT_TELL, "guess")
    session.judge(assignment, verdict, flags, "")


def work(
    session: ReviewSession, steps: int = 1000, verdict: str = "valid", on_planted: str = "invalid"
) -> list[Assignment]:
    done: list[Assignment] = []
    while len(done) < steps and (assignment := session.find_next()) is not None:
        decide(session, assignment, on_planted if assignment.defect else verdict)
        done.append(assignment)
    return done


def test_the_truth_comes_after_the_answer(open_queue: OpenDesk) -> None:
    session = open_queue().open_session("ann")
    assignment = session.find_next()
    assert assignment is not None
    with pytest.raises(ReviewError, match="Answer first"):
        session.require_answer(assignment)
    with pytest.raises(ReviewError, match="Answer first"):
        session.judge(assignment, "valid", [], "")
    for answer, confidence in (("E", "sure"), (CANNOT_TELL, ""), ("", "sure")):
        with pytest.raises(ReviewError, match="Please"):
            session.answer(assignment, answer, confidence)
    assert session.log.lines == []
    session.note_opened(assignment, "answer")
    session.answer(assignment, CANNOT_TELL, "guess")
    session.answer(
        assignment, "1" if assignment.entry.form == "open-ended" else "A", "sure"
    )  # too late: the truth has been shown
    assert session.require_answer(assignment).answer == CANNOT_TELL
    assert len(session.log.lines) == 1
    assert session.log.lines[0].seconds == 1.5
    for verdict, flags, says in (
        ("fine", [], "choose"),
        ("valid", ["bad"], "choose"),
        ("valid", ["privacy"], "A valid item"),
        ("invalid", [], "wrong"),
    ):
        with pytest.raises(ReviewError, match=says):
            session.judge(assignment, verdict, flags, "")
    session.judge(assignment, "invalid", [], "why")
    with pytest.raises(ReviewError, match="not in your present batch"):
        session.find_assignment("0" * 16)


def test_one_stops_and_goes_on_where_one_stopped(open_queue: OpenDesk) -> None:
    queue = open_queue()
    session = queue.open_session("ann")
    done = work(session, 3)
    half = session.find_next()
    assert half is not None
    session.answer(half, CANNOT_TELL, "guess")
    order = [assignment.token for assignment in session.assignments]
    queue.close()
    again = open_queue().open_session("ann")
    assert [assignment.token for assignment in again.assignments] == order
    assert again.find_next() == half
    assert again.require_answer(half).confidence == "guess"
    assert again.find_previous(half) == done[-1]
    real = next(assignment for assignment in done if not assignment.defect)
    again.judge(real, "unsure", [], "second thought")
    held = count_verdicts(read_logs(again.queue.folder), again.queue.entries)
    assert [given.verdict for given in held.verdicts[real.entry.id]] == ["unsure"]


def test_two_reviewers_and_a_third_where_they_differ(open_queue: OpenDesk) -> None:
    queue = open_queue()
    ann, bob = queue.open_session("ann"), queue.open_session("bob")
    first = work(ann)
    real = [assignment.entry.id for assignment in first if not assignment.defect]
    assert sorted(real) == sorted(e.id for e in queue.selected)
    assert sum(bool(assignment.defect) for assignment in first) == 2  # one in each batch of six
    work(bob, 5, "valid")
    work(bob, 1000, "invalid")
    assert ann.find_next() is None
    assert bob.find_next() is None
    record = count_verdicts(read_logs(queue.folder), queue.entries)
    differing = {item for item, given in record.verdicts.items() if len({j.verdict for j in given}) > 1}
    assert 0 < len(differing) < 12
    cyd = work(queue.open_session("cyd"))
    assert {assignment.entry.id for assignment in cyd if not assignment.defect} == differing
    assert queue.open_session("dan").find_next() is None
    assert queue.open_session("dan").count_progress().left == 0


def test_who_lets_one_planted_item_pass_is_told_and_keeps_the_verdicts(open_queue: OpenDesk) -> None:
    queue = open_queue()
    session = queue.open_session("ann")
    batch, before = session.batch, [assignment.token for assignment in session.assignments]
    done = []
    while not session.missed:
        done += work(session, 1, on_planted="valid")
    assert session.missed == queue.show(done[-1]).kind
    assert (session.batch, session.round, session.sent_back) == (batch, 0, [])
    # What there was stays, and more are planted among it.
    assert set(before) < {assignment.token for assignment in session.assignments}
    assert sum(bool(assignment.defect) for assignment in session.assignments) == 5
    assert session.done == len(done)
    # A second thought on it comes too late.
    session.judge(done[-1], "invalid", ["wrong_answer"], "")
    line = session.find_line(done[-1], "verdict")
    assert line is not None
    assert line.verdict == "valid"
    queue.close()
    queue = open_queue()
    session = queue.open_session("ann")
    assert (session.batch, session.round, session.done) == (batch, 0, len(done))  # also after a restart
    work(session)
    assert session.count_progress().judged == 12
    checks = count_verdicts(read_logs(queue.folder), queue.entries).checks["ann"]
    assert (checks.missed, checks.sent_back) == (1, 0)


def test_a_reviewer_who_lets_planted_items_pass_does_the_batch_again(open_queue: OpenDesk) -> None:
    queue = open_queue()
    session = queue.open_session("ann")
    batch = session.batch
    before = [assignment.token for assignment in session.assignments]
    while not session.sent_back:
        work(session, 1, on_planted="valid")
    assert len(session.sent_back) == 2
    assert (session.batch, session.round) == (batch, 1)
    assert set(before).isdisjoint(assignment.token for assignment in session.assignments)
    assert session.count_progress().judged == 0
    queue.close()
    queue = open_queue()
    session = queue.open_session("ann")
    assert (session.batch, session.round) == (batch, 1)  # also after a restart
    work(session)
    assert session.count_progress().judged == 12
    assert count_verdicts(read_logs(queue.folder), queue.entries).checks["ann"].sent_back == 1


def test_the_count_of_judged_items_betrays_no_planted_one(open_queue: OpenDesk) -> None:
    session = open_queue().open_session("ann")
    places = len(session.assignments)
    counts = []
    for _ in range(places):
        counts.append(session.count_progress().judged)
        work(session, 1)
    assert counts == [0] * places
    assert session.count_progress().judged == places - 1  # one place of each batch is planted


def test_planted_items_look_like_others_and_are_kept_apart(open_queue: OpenDesk) -> None:
    queue = open_queue()
    session = queue.open_session("ann")
    (plant,) = [assignment for assignment in session.assignments if assignment.defect]
    assert len({len(assignment.token) for assignment in session.assignments}) == 1
    assert plant.entry.id not in {assignment.entry.id for assignment in session.assignments if not assignment.defect}
    shown = session.show(plant)
    assert shown.kind
    assert session.read_image(plant, 0)[:2] == b"\xff\xd8"
    with pytest.raises(ReviewError, match="there is none"):
        session.read_image(plant, 9)
    decide(session, plant, "invalid")
    assert {line.planted for line in session.log.lines} == {shown.kind}
    assert count_verdicts(read_logs(queue.folder), queue.entries).verdicts == {}
