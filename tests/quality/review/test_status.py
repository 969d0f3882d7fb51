from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.quality.review.people import entry, lines
from vgbench_gen.quality.review.export import sort_judged, write_export
from vgbench_gen.quality.review.lines import ReviewLine
from vgbench_gen.quality.review.report import format_report, make_report
from vgbench_gen.quality.review.status import ReviewRecord, count_verdicts, find_status, needs_verdict

ITEMS = [entry(name) for name in "abcdefg"]


def counted(*found: Sequence[ReviewLine]) -> ReviewRecord:
    logs: dict[str, list[ReviewLine]] = {}
    for line in (line for some in found for line in some):
        logs.setdefault(line.reviewer, []).append(line)
    return count_verdicts(logs, ITEMS)


def test_planted_items_do_not_count_and_neither_does_who_misses_too_many() -> None:
    plants = [lines("ann", name, "invalid", planted="flipped", flags=["wrong_answer"]) for name in "bcdefgh"]
    missed = [lines("ann", name, "valid", planted="exchanged") for name in "ij"]
    other = lines("bob", "a", "valid", answer="C")
    for caught, slips, names in (
        (0, 1, ["ann", "bob"]),  # one slip says little
        (7, 2, ["bob"]),
        (0, 2, ["bob"]),
        (7, 1, ["ann", "bob"]),
        (0, 0, ["ann", "bob"]),
    ):
        record = counted(lines("ann", "a", "valid"), other, *plants[:caught], *missed[:slips])
        assert {item: [j.reviewer for j in given] for item, given in record.verdicts.items()} == {"a": names}
        checks = record.checks["ann"]
        assert (checks.shown, checks.missed, checks.counted) == (caught + slips, slips, "ann" in names)


def test_verdicts_on_changed_items_are_stale() -> None:
    record = counted(
        lines("ann", "a", "valid", digest="old"), lines("ann", "gone", "valid"), lines("ann", "b", "valid")
    )
    assert set(record.verdicts) == {"b"}
    assert record.stale == 2


@pytest.mark.parametrize(
    ("verdicts", "state", "third"),
    [
        ([], "open", True),
        (["valid"], "open", True),
        (["valid", "valid"], "accepted", False),
        (["invalid", "invalid"], "rejected", False),
        (["unsure", "unsure"], "rejected", False),
        (["valid", "invalid"], "disputed", True),
        (["valid", "unsure"], "disputed", True),
        (["valid", "invalid", "valid"], "accepted", False),
        (["valid", "invalid", "unsure"], "disputed", False),
    ],
)
def test_where_verdicts_leave_an_item(verdicts: list[str], state: str, third: bool) -> None:
    record = counted(*(lines(f"r{n}", "a", verdict, minute=n) for n, verdict in enumerate(verdicts)))
    given = record.verdicts.get("a", [])
    assert find_status(given).state == state
    assert needs_verdict(given, "zoe") is third
    assert not any(needs_verdict(given, f"r{n}") for n in range(len(verdicts)))


def accepted_and_not() -> ReviewRecord:
    both = [("ann", 0), ("bob", 1)]
    return counted(
        *(lines(r, "a", "valid", minute=m) for r, m in both),
        *(lines(r, "b", "valid", answer="B", flags=["needs_instrument"], minute=m) for r, m in both),
        lines("ann", "c", "valid"),
        lines("bob", "c", "invalid", flags=["second_answer"], minute=1),
        lines("cyd", "c", "valid", minute=2),
        *(lines(r, "d", "invalid", flags=["wrong_answer"], minute=m) for r, m in both),
        lines("ann", "e", "valid"),
        lines("ann", "f", "unsure", flags=["privacy"]),
        lines("ann", "g", "valid"),
        lines("bob", "g", "unsure", minute=1),
    )


def test_export_for_release_and_for_the_hard_subset(tmp_path: Path) -> None:
    record = accepted_and_not()
    release = sort_judged(ITEMS, record)
    assert release.accepted == ("a", "b", "c")
    assert dict(release.refused) == {
        "d": "rejected: invalid by 2 (ann: invalid wrong_answer, bob: invalid wrong_answer)",
        "f": "disputed: privacy flag by ann",
        "g": "disputed: a third reviewer is needed (ann: valid, bob: unsure)",
    }
    hard = sort_judged(ITEMS, record, "hard")
    assert hard.accepted == ("a",)
    assert dict(hard.refused)["b"] == "not for hard: nobody found the answer blind"
    assert dict(hard.refused)["c"] == "not for hard: bob did not call it valid"
    beside = write_export(release, tmp_path / "accepted.txt")
    assert (tmp_path / "accepted.txt").read_text() == "a\nb\nc\n"
    assert beside.name == "accepted.refused.tsv"
    assert beside.read_text().splitlines()[2] == "f\tdisputed: privacy flag by ann"


def test_the_report_counts_items_once_and_stops_a_cell_at_a_wrong_answer() -> None:
    found = make_report(ITEMS, accepted_and_not())
    assert found.states == {"accepted": 3, "rejected": 1, "disputed": 2, "open": 1}
    (cell,) = found.cells
    assert (cell.n, cell.accepted, cell.wrong, cell.ambiguous, cell.stopped) == (4, 3, 1, 0, True)
    (task,) = found.tasks
    # Of the first two reviewers alone: a, b and d agree, c and g do not.
    assert task.n == 5
    assert task.raw == pytest.approx(3 / 5)
    assert task.human == pytest.approx(3 / 4)  # d is invalid and left out, b was answered wrong twice
    assert (task.verdict, task.grade) == ("few", "")
    assert found.failed
    text = format_report(found)
    assert "STOP" in text
    assert max(map(len, text.splitlines())) <= 120
    assert found.to_json()["tasks"][0]["answer_alpha"] == pytest.approx(1.0)


def test_bars_are_judged_from_thirty_items_and_grade_the_task() -> None:
    items = [entry(f"i{n}", answer="AB"[n % 2]) for n in range(40)]
    logs: dict[str, list[ReviewLine]] = {"ann": [], "bob": []}
    for n, e in enumerate(items):
        for reviewer in logs:
            wrong = n >= 35 or (reviewer == "bob" and n == 34)
            logs[reviewer] += lines(reviewer, e.id, "valid", answer="C" if wrong else e.answer)
    found = make_report(items, count_verdicts(logs, items))
    (task,) = found.tasks
    assert task.human == pytest.approx((35 - 0.5) / 40)
    assert task.low < task.human < task.high
    assert (task.verdict, task.grade) == ("green", "instrument")
    assert not found.failed
    logs["bob"] = [line for e in items for line in lines("bob", e.id, "invalid", e.answer, ["unclear"])]
    assert make_report(items, count_verdicts(logs, items)).tasks[0].verdict == "red"
