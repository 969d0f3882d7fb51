"""The table, the files and the page of an audit."""

from __future__ import annotations

import csv
import html
import io
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.browser import OpenPage
from tests.report.audit_report import EVIL, INSIDE, OUTSIDE, report
from vgbench_gen.pipeline.audit import AuditLine, AuditReport, Where
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report.audit_page import make_headline, make_page, write_audit
from vgbench_gen.report.audit_table import (
    as_json,
    describe_power,
    format_brief_lines,
    format_table_lines,
    make_rows,
    merge_fallen,
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return write_audit(report(), tmp_path / "audit")


def test_the_table_begins_with_what_fell() -> None:
    printed = format_table_lines(report(), 140)
    assert [line.split()[0] for line in printed[1:4]] == ["RED", "RED", "RED"]
    assert "34.0 %" in printed[1]
    assert "[31.5, 36.5]" in printed[1]
    assert "<= 28.0, upper <= 31.0" in printed[1]
    assert any("3 bars fell" in line for line in printed)
    assert len(make_rows(report().lines)) == len(report().lines)


def test_a_summary_of_a_line_for_each_fallen_bar() -> None:
    head, *fallen = report().summary().splitlines()
    counts = Counter(line.finding.verdict for line in report().lines)
    assert head.endswith(
        f"1258 questions, {len(report().lines)} figures ({counts['green']} green, {counts['red']} red, "
        f"{counts['few']} few, {counts['skipped']} skipped)"
    )
    assert len(fallen) == 3
    assert "34.0 % (31.5 to 36.5), n 1200, chance 25.0, bar <= 28.0, upper <= 31.0" in fallen[0]
    # The questions behind a line are no part of it: 200 ids would hide what it says.
    assert all(OUTSIDE not in line and INSIDE not in line for line in fallen)


def test_in_brief_what_fell_and_where_the_rest_stands() -> None:
    summary, heads, *rows, note, last = format_brief_lines(report(), "audit/index.html", 140)
    assert "3 bars fell" in summary
    assert heads.split()[0] == "verdict"
    assert [row.split()[0] for row in rows] == ["RED"] * 3
    assert (note, last) == ("A note.", "all figures: audit/index.html")


def test_in_brief_it_is_never_more_than_fifteen_lines() -> None:
    whole = report()
    red = next(line for line in whole.lines if line.finding.fell)
    tested = replace(red.finding, audit="exchange", unit="KS", value=20)
    whole.lines = [replace(red, finding=replace(red.finding, name=f"rule {k}")) for k in range(40)]
    whole.lines += [replace(red, finding=replace(tested, name=f"quantity {k}")) for k in range(30)]
    whole.notes = [f"Note {k}." for k in range(9)]
    assert len(format_brief_lines(whole, "page", 80)) <= 15
    lines = format_brief_lines(whole, "page", 140)
    assert len(lines) == 15
    rows = [line for line in lines if line.startswith("RED")]
    # 40 rules have a row each, the tests of one cell share one; what has no room is counted.
    (left,) = (int(line.split()[2]) for line in lines if line.startswith("… and"))
    shown = sum(1 + row.more for row in merge_fallen(whole)[: len(rows)])
    assert shown + left == 70
    assert len(merge_fallen(whole)) == 41


def test_in_brief_a_green_set_has_no_table() -> None:
    green = report()
    green.lines = [line for line in green.lines if not line.finding.fell]
    assert format_brief_lines(green, "page")[1:] == ["A note.", "all figures: page"]


def test_the_files_hold_every_figure(page: Path) -> None:
    found = json.loads((page.parent / "audit.json").read_text("utf-8"))
    assert found["verdicts"] == {"red": 3, "few": 1, "green": 5, "reported": 0, "skipped": 1}
    first = found["findings"][0]
    assert (first["audit"], first["value"], first["items"]) == ("blind", 34.0, [OUTSIDE, INSIDE])
    skipped = found["findings"][-1]
    assert skipped["value"] is None  # NaN is no JSON
    lines = list(csv.DictReader(io.StringIO((page.parent / "audit.csv").read_text("utf-8"))))
    assert len(lines) == len(found["findings"])
    assert lines[0]["items"] == f"{OUTSIDE} {INSIDE}"
    assert (page.parent / "bias.csv").read_text().splitlines() == [
        "id,bias",
        f"{INSIDE},0.710000",
        "c" * 24 + ",0.220000",
    ]
    assert as_json(report()) == as_json(report())


def test_a_set_that_is_too_small_to_judge_is_not_called_good() -> None:
    whole = report()
    unfallen = [line for line in whole.lines if not line.finding.fell]
    few = next(line for line in whole.lines if line.finding.verdict == "few")
    boxes, printed = {}, {}
    for n in (5, 6):  # beside one that is few and five green ones
        whole.lines = [*unfallen, *[few] * (n - 1)]
        boxes[n] = make_page(whole).split('<p class="verdict')[1].split("</p>")[0]
        printed[n] = [*format_brief_lines(whole, "page"), *format_table_lines(whole)]
    assert boxes[5].startswith(" green")
    assert "too few" not in " ".join([boxes[5], *printed[5]])
    told = "6 of 11 checks are inconclusive: not enough questions."
    assert boxes[6].startswith(f' "><b>{told}</b>')
    assert (printed[6][1], printed[6].count(told)) == (told, 2)
    assert make_page(report()).count('class="verdict red"') == 1


def test_the_page_is_inert_and_asks_for_nothing(page: Path) -> None:
    text = page.read_text("utf-8")
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7 * 7 }}" in text  # the template's words are ours, the data's are not run
    assert "default-src 'none'" in html.unescape(text)
    assert "http:" not in text
    assert "nan" not in text


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_in_a_browser(page: Path, open_page: OpenPage, width: int, height: int) -> None:
    watched = open_page(page.as_uri(), width=width, height=height)
    shown = watched.page
    assert shown.locator(".verdict.red").inner_text().endswith("3 bars fell")
    assert shown.locator("#fallen + table tbody tr").count() == 3
    behind = shown.locator("#fallen + table tbody tr").first.locator("details")
    behind.locator("summary").click()
    # Questions of the dataset lead to the gallery; those of the pool stand here in words.
    assert behind.locator("li a").count() == 1
    link = behind.locator("li a").first
    assert link.get_attribute("href") == f"../gallery/index.html#item={INSIDE}"
    assert "A question of the pool?" in behind.inner_text()
    assert EVIL.split()[0] in behind.inner_text()
    assert shown.locator(".headline tbody tr").count() == 2
    assert "the middle value" in shown.locator(".headline thead").inner_text() or width < 760
    assert shown.evaluate("getComputedStyle(document.querySelector('.verdict')).borderLeftWidth") == "6px"
    assert watched.overflow_px() == 0
    shown.get_by_role("link", name="All 10 figures").click()
    assert shown.locator("figure svg[role=img]").count() >= 4
    # Labels stand whole, beside their marks or above them.
    labels = shown.locator(".rows li > span:first-child")
    assert "metric depth · multi-choice · forest" in labels.all_inner_texts()
    assert labels.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth + 1)")
    assert watched.overflow_px() == 0
    assert not watched.foreign


def test_the_headline_shows_what_says_most_against_a_task() -> None:
    found = make_headline(report())
    assert found is not None
    assert [measure["title"] for measure in found["measures"]] == ["Text only", "No skill", "Solver", "Wrong image"]
    first = next(line.finding for line in report().lines if line.finding.audit == "blind")
    # Far above chance on few questions says less than somewhat above it on many.
    lucky = replace(first, name="lucky", n=12, value=60.0, low=20.0, high=90.0, verdict="few")
    more = replace(report(), lines=[*report().lines, AuditLine("pool", lucky)])
    again = make_headline(more)
    assert again is not None
    for shown in (found, again):
        cell = next(row for row in shown["rows"] if row["task"] == "metric depth")["cells"][0]
        assert (cell["value"], cell["verdict"], cell["chance"]) == ("34", "red", "25.0%")
    assert make_headline(replace(report(), lines=[])) is None


def test_the_closing_sentence_says_what_could_have_been_seen() -> None:
    def seen(task: str, n: int, points: float, where: Where = "pool") -> AuditLine:
        return AuditLine(where, Finding("blind", "forest", task, "multi-choice", n=n, seen=points))

    large = [seen("a", 900, 5.0), seen("b", 800, 9.04), seen("b", 800, 12.0), seen("a", 60, 30.0, "release")]
    few = [seen("c", 799, 20.0), seen("d", 10, math.inf)]
    assert describe_power(AuditReport(lines=large)) == [
        "A leak in the text would have been seen from 5.0 to 9.0 points above chance in 2 cells of task and type."
    ]
    assert describe_power(AuditReport(lines=few)) == [
        "2 cells of task and type with fewer than 800 in the pool: their text is not judged."
    ]
    (both,) = describe_power(AuditReport(lines=[*large[:1], *few[:1]]))
    assert both.startswith(
        "A leak in the text would have been seen from 5.0 points above chance in 1 cell of task and type; 1"
    )
    assert describe_power(AuditReport()) == []
