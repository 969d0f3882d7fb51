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
    session.answer(assignment, CANNOT_TELL, "guess")
    session.answer(
        assignment, "1" if assignment.entry.form == "open-ended" else "A", "sure"
    )  # too late: the truth has been shown
    assert session.require_answer(assignment).answer == CANNOT_TELL
    assert len(session.log.lines) == 1
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


def test_who_lets_planted_items_pass_does_not_count_and_others_are_asked(open_queue: OpenDesk) -> None:
    queue = open_queue(batch=3)  # four batches with a planted item in each
    ann, bob = queue.open_session("ann"), queue.open_session("bob")
    work(ann, on_planted="valid")
    done = work(bob)
    checks = count_verdicts(read_logs(queue.folder), queue.entries).checks
    assert (checks["ann"].shown, checks["ann"].missed, checks["ann"].counted) == (4, 4, False)
    assert (checks["bob"].shown, checks["bob"].missed, checks["bob"].counted) == (4, 0, True)
    assert ann.find_next() is None  # one round
    assert len(work(queue.open_session("cyd"))) == len(done)
    # A second thought on a planted item counts as on any other.
    for plant in [each for each in done if each.defect][:2]:
        bob.batch = next(line.batch for line in bob.log.lines if line.planted and line.item == plant.entry.id)
        bob.judge(plant, "valid", [], "")
    assert not count_verdicts(read_logs(queue.folder), queue.entries).checks["bob"].counted


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
