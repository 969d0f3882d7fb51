"""The lines, the files and the page of an audit."""

from __future__ import annotations

import csv
import html
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.browser import OpenPage
from tests.report.audit_report import EVIL, HOLDS, INSIDE, LEAKS, OUTSIDE, SMALL, accuracy, count, report
from vgbench_gen.pipeline.audit import AuditReport
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report.audit_page import make_page, write_audit
from vgbench_gen.report.audit_table import (
    as_json,
    describe,
    describe_need,
    format_lines,
    make_table,
    read_record,
    sort_findings,
)
from vgbench_gen.report.scores_files import NONE

SENTENCE = "1258 questions in 4 cells: 11 of 16 statistics passed, 3 not judged, 2 failed"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return write_audit(report(), tmp_path / "audit")


def test_a_sentence_a_line_for_each_cell_and_what_fell() -> None:
    lines = format_lines(replace(report(), dataset="set"), "audit/index.html", 160)
    assert lines[0] == f"set: {SENTENCE}"
    begin = next(k for k, line in enumerate(lines) if line.startswith("metric_depth/multi-choice"))
    assert lines[begin].split() == [
        "metric_depth/multi-choice",
        "34",
        "[32,",
        "36]",
        "failed",
        "26",
        "26",
        "2",
        "failed",
    ]
    cells = ["metric_depth/multi-choice", "point_tracking/judgment", "metric_depth/open-ended"]
    assert [line.split()[0] for line in lines[begin : begin + 3]] == cells
    assert lines[begin + 3].split(maxsplit=1) == ["object_location/multi-choice", "not judged: 155 of 800 questions"]
    repeats, text, *end = lines[begin + 4 :]
    assert repeats.startswith("failed: metric_depth/multi-choice: 2 questions that repeat another, at most 0: <script>")
    assert text == (
        "failed: metric_depth/multi-choice: text-and-marks accuracy (forest) 34.0 % [31.5, 36.5], chance 25, at most "
        "28: leans on depth, size 0, x"
    )
    assert end == ["A note.", "all statistics: audit/index.html"]
    assert not any(INSIDE in line or OUTSIDE in line for line in lines)  # 200 ids would hide what a line says


def test_a_narrow_screen_lacks_the_last_columns_first() -> None:
    whole = replace(report(), dataset="set")
    for width in (60, 80, 100, 160):
        lines = format_lines(whole, "page", width)
        assert max(map(len, lines)) <= width
        heads = " ".join(lines).partition("metric_depth")[0].split("cell ")[-1].split()
        there = [word in heads for word in ("text", "solver", "wrong", "repeats", "wording")]
        assert there == sorted(there, reverse=True)
        assert there[0]


def test_of_what_fell_at_most_fifteen_lines_and_with_all_every_figure() -> None:
    whole = report()
    failed = next(found for found in whole.findings if found.failed)
    whole.findings = [replace(failed, task=f"task{k}", detail="x " * 40 * (k % 2)) for k in range(40)]
    for width in (80, 140):
        lines = format_lines(whole, "page", width)
        begin = next(k for k, line in enumerate(lines) if line.startswith("failed: "))
        told = lines[begin : lines.index("A note.")]
        assert len(told) <= 15
        assert sum(line.startswith("failed: ") for line in told) + int(told[-1].split()[2]) == 40
        assert sum(line.startswith("failed: ") for line in format_lines(whole, "page", width, everything=True)) == 40
    lines = format_lines(report(), "page", 160, everything=True)
    words = [line.partition(":")[0] for line in lines]
    assert [words.count(word) for word in ("failed", "not judged", "passed", "no limit")] == [2, 3, 11, 1]
    assert "not judged: object_location/multi-choice: text-and-marks accuracy (forest), 155 of 800 questions" in (lines)


def test_a_set_in_which_no_cell_can_be_judged_says_what_it_takes() -> None:
    demo = replace(report(), dataset="demo", notes=[])
    demo.findings = [replace(found, n=40, verdict="not judged") if found.needed == 800 else found
                     for found in demo.findings if found.verdict != "reported"]  # fmt: skip
    demo.cells = {"/".join(LEAKS): {"questions": 20, "judged": 40, "scenes": 5},
                  "/".join(SMALL): {"questions": 3, "judged": 9, "scenes": 5},
                  "/".join(HOLDS): {"questions": 0, "judged": 0, "scenes": 0}}  # fmt: skip
    need = "Too few questions to judge the text of any cell: it takes 800 per task and question type"
    assert describe_need(demo) == f"{need}, from about 100 to 440 scenes like these."
    lines = format_lines(demo, "page", 200)
    assert [lines[1], lines[-1]] == [describe_need(demo), "page".join(["all statistics: ", ""])]
    assert lines[2].startswith("failed: ")
    assert len(lines) == 4
    assert describe_need(replace(demo, cells={})) == f"{need}."
    text = make_page(replace(demo, findings=[found for found in demo.findings if not found.failed]))
    assert '<p class="verdict few">' in text
    assert need in text
    assert describe_need(report()) == describe_need(AuditReport()) == ""


def test_what_luck_cannot_move_comes_first_then_what_is_most_surely_beyond_its_limit() -> None:
    sure = accuracy("rule", LEAKS, 29.0, 28.0, "failed", p=1e-6)
    far = accuracy("rule", HOLDS, 60.0, 53.0, "failed", p=5e-4)
    weak = accuracy("solver", HOLDS, 60.0, 85.0, "failed", p=1e-6)
    counted, small = count("repeats", LEAKS, 1.0), accuracy("text", SMALL, 40.0, 28.0, "not judged")
    holds = [accuracy("rule", SMALL, 25.0, 28.0, "passed", p=p) for p in (0.01, 0.9)]
    ranked = [counted, weak, sure, far, small, *holds]
    assert sort_findings(reversed(ranked)) == ranked
    # Of several figures of a kind the worst stands in the table.
    heads, ((cell, *row),) = make_table([holds[1], replace(holds[0], value=27.4)])
    assert (heads, cell, row) == (["cell", "best rule"], "object_location/multi-choice", ["27"])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (accuracy("solver", HOLDS, 91.0, 85.0, "passed", name="a_b"),
         "accuracy of the solver (a b) 91.0 % [88.5, 93.5], chance 50, at least 85"),
        (Finding("wording", "", n=9, value=0.0, limit=0.0, unit="count", verdict="passed"),
         "0 defects of wording, at most 0"),
        (Finding("text", n=9, detail="no numbers"), "text-and-marks accuracy: no numbers"),
        (Finding("control", "random", n=900, needed=800, verdict="not judged"),
         "accuracy of the learners (random)"),
    ],
)  # fmt: skip
def test_a_figure_in_words(found: Finding, said: str) -> None:
    assert describe(found) == said


def test_the_files_hold_every_figure(page: Path) -> None:
    assert sorted(path.name for path in page.parent.iterdir()) == ["audit.csv", "audit.json", "bias.csv", "index.html"]
    found = json.loads((page.parent / "audit.json").read_text("utf-8"))
    assert found["verdicts"] == {"failed": 2, "not judged": 3, "passed": 11, "reported": 1}
    assert found["cells"] == report().cells
    assert found["findings"][-1]["value"] is None  # NaN is no JSON
    # What is read back is what was written, also where it is no number.
    assert repr([read_record(record) for record in found["findings"]]) == repr(report().findings)
    lines = list(csv.DictReader(io.StringIO((page.parent / "audit.csv").read_text("utf-8"))))
    assert len(lines) == len(found["findings"])
    failed = next(line for line in lines if line["verdict"] == "failed")
    assert (failed["kind"], failed["value"], failed["limit"], failed["items"]) == (
        "text",
        "34.0",
        "28.0",
        f"{OUTSIDE} {INSIDE}",
    )
    assert (page.parent / "bias.csv").read_text().splitlines() == [
        "id,bias",
        f"{INSIDE},0.710000",
        "c" * 24 + ",0.220000",
    ]
    assert as_json(report()) == as_json(report())
    for spoiled in ({"kind": "blind"}, {"verdict": "red"}, {"n": "many"}, {"name": 3}):
        with pytest.raises(ValueError, match="validation error"):
            read_record(found["findings"][0] | spoiled)


def test_the_page_is_inert_and_asks_for_nothing(page: Path) -> None:
    text = page.read_text("utf-8")
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7 * 7 }}" in text  # the template's words are ours, the data's are not run
    assert "default-src 'none'" in html.unescape(text)
    assert "http:" not in text
    assert "nan" not in text
    assert make_page(report()) == make_page(report())


def test_a_page_of_nothing_and_of_what_holds() -> None:
    assert '<p class="verdict green">' in make_page(AuditReport("set"))
    green = replace(report(), findings=[found for found in report().findings if not found.failed])
    text = make_page(green)
    assert '<p class="verdict green">' in text
    assert "What failed" not in text


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_in_a_browser(page: Path, open_page: OpenPage, width: int, height: int) -> None:
    watched = open_page(page.as_uri(), width=width, height=height)
    shown = watched.page
    assert shown.locator(".verdict.red").inner_text() == (
        "2 of 16 checks failed: 11 passed and 3 cannot be judged yet, on 1,258 questions."
    )
    table = shown.locator("table")
    meanings = shown.locator("dl.columns > div").all_inner_texts()
    assert len(meanings) == table.locator("thead th").count() - 1
    rows = table.locator("tbody tr")
    assert [name.inner_text() for name in rows.locator("th").all()] == [
        *("metric depth, multiple choice", "object location, multiple choice", "point tracking, judgment"),
        "metric depth, open-ended",
    ]
    leak = rows.first.locator("td").first
    assert leak.inner_text().split() == ["34.0", "%", "failed", "chance", "25", "·", "at", "most", "28"]
    assert "[31.5, 36.5]" in (leak.locator("[title]").get_attribute("title") or "")
    assert rows.nth(1).locator("td").first.inner_text() == "155 of 800"  # no number where nothing is judged
    assert shown.locator(".tag.red").count() == 4  # both, in the table and in the list
    texts = table.locator("tbody td").all_inner_texts()
    assert NONE in texts
    assert "" not in texts
    # Questions of the dataset lead to the gallery; others stand here in words.
    behind = shown.locator("#failed + ul > li").nth(1).locator("details")
    behind.locator("summary").click()
    assert behind.locator("li a").count() == 1
    assert behind.locator("li a").first.get_attribute("href") == f"../gallery/index.html#item={INSIDE}"
    assert "A question that could be asked?" in behind.inner_text()
    assert EVIL.split()[0] in behind.inner_text()
    assert shown.locator("#whole + ul > li").count() == 1
    assert shown.evaluate("getComputedStyle(document.querySelector('.verdict')).borderLeftWidth") == "6px"
    assert watched.overflow_px() == 0
    assert not watched.foreign


def test_a_figure_of_a_task_stands_in_all_its_cells() -> None:
    share = Finding("scene share", task="a", n=60, value=5.0, limit=3.0, verdict="failed")
    texts = [Finding("text", task=task, form="judgment", n=5, value=50.0) for task in ("b", "a")]
    assert make_table([*texts, share])[1] == [["a/judgment", "50", "5.0 failed"], ["b/judgment", "50", ""]]
    assert make_table([share])[1] == [["a", "5.0 failed"]]


def test_a_figure_has_no_number_where_it_has_none() -> None:
    heads, (row,) = make_table([Finding("text", task="a", form="judgment", n=5, value=math.nan)])
    assert (heads, row) == (["cell", "text + marks"], ["a/judgment", ""])
