"""The table, the files and the page of an audit."""

from __future__ import annotations

import csv
import html
import io
import json
from pathlib import Path

import pytest

from tests.browser import OpenPage
from tests.report.audit_report import EVIL, INSIDE, OUTSIDE, report
from vgbench_gen.report.audit_page import write_audit
from vgbench_gen.report.audit_table import as_json, format_table_lines, make_rows


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return write_audit(report(), tmp_path / "audit")


def test_the_table_begins_with_what_fell() -> None:
    printed = format_table_lines(report())
    assert [line.split()[0] for line in printed[1:4]] == ["RED", "RED", "RED"]
    assert "34.0 %" in printed[1]
    assert "[31.5, 36.5]" in printed[1]
    assert "<= 28.0, upper <= 31.0" in printed[1]
    assert any("3 bars fell" in line for line in printed)
    # The green classifier of a cell whose other one is red has a row of its own; nothing is hidden by merging.
    assert sum(1 + row.more for row in make_rows(report().lines)) == len(report().lines)
    assert len(make_rows(report().lines, everything=True)) == len(report().lines)


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
    assert shown.locator("figure svg[role=img]").count() >= 4
    assert shown.evaluate("getComputedStyle(document.querySelector('.verdict')).borderLeftWidth") == "6px"
    assert watched.overflow_px() == 0
    assert not watched.foreign
