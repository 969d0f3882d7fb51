"""The report of scores: the same numbers in every format, no harm from names, readable in a browser."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.browser import OpenPage
from tests.evaluation.score_rows import ORIGINS, board, depth, entry, failed, row
from tests.report.gallery_data import HOSTILE
from vgbench_gen.evaluation.board import Board, ScoreRow
from vgbench_gen.evaluation.tables import compare_models
from vgbench_gen.report.scores_files import (
    as_json,
    escape_latex,
    format_csv,
    format_latex,
    format_markdown,
    format_text_lines,
)
from vgbench_gen.report.scores_page import ComparedModels, list_warnings, render_page, write_scores_report
from vgbench_gen.report.scores_plots import choose_bars

EVIL = f"=cmd | {HOSTILE} \\input{{x}} 100% _a_ **b** end{{tabular}}"


def made() -> Board:
    """Forty questions of every kind, a good, a weak and a hostile model, and the good one without images."""
    columns = list(ORIGINS.items())
    entries = [
        entry(
            f"q{k}",
            origin=columns[k % 8][1],
            task=f"task_{columns[k % 8][0]}",
            difficulty=("easy", "medium", "hard")[k % 3],
            scans=("scannet", "ca1m")[k % 2],
            scene=f"s{k // 2}",
            truth="ABCD"[k % 4],
        )
        for k in range(32)
    ]
    entries += [depth(f"q{k}", 1.0 + 0.1 * k, scene=f"s{k // 2}") for k in range(32, 40)]

    def answers(share: int, **more: object) -> list[ScoreRow]:
        return [
            row(f"q{k}", float(k % 10 < share), extracted="A", delta_2=float(k % 10 < share), delta_125=0.0, mra=0.3,
                relative_error=math.inf, cost_usd=0.001 * share, **more)
            for k in range(40)
        ]  # fmt: skip

    weak = [failed("q0"), *answers(3)[1:]]
    weak[5] = row("q5", 0.0, outcome="unreadable", status="no_answer", extracted=None)
    weak[6] = row("q6", 0.0, outcome="refused", status="refusal", extracted=None)
    found = board(entries, good=answers(9) + answers(4, stage="blind"), weak=weak)
    found.add(EVIL, {"set": answers(6)})
    return found


class Cells(HTMLParser):
    """Texts of the first table's cells, by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._in, self._done = False, False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        self._in = tag in ("td", "th") or (self._in and tag == "span")
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._in = self._in and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_all_formats_say_the_same(tmp_path: Path) -> None:
    found = compare_models(made())
    table = found.summary
    good = next(line for line in table.rows if line.name == "good").cells[0]
    assert good.value == pytest.approx(0.9)
    csv_rows = [
        r for r in csv.DictReader(io.StringIO(format_csv(found))) if (r["table"], r["name"]) == ("summary", "good")
    ]
    assert float(csv_rows[0]["value"]) == pytest.approx(0.9)
    text = f"{100 * good.value:.1f}"
    interval = f"[{100 * good.low:.1f}, {100 * good.high:.1f}]"
    assert f"| good | **{text}** {interval} |" in format_markdown(found, "x")
    assert rf"good & \textbf{{{text}}}\,{{\scriptsize {interval}}}" in format_latex(found)
    lines = format_text_lines(table)
    assert any(line.startswith("good") and f"{text}*" in line for line in lines)
    assert lines[-1].startswith("* the best, significantly ahead of all others")
    in_json = as_json(found)
    assert in_json["tables"][0]["lines"][0]["cells"]["delta = 2"]["value"] == good.value
    json.dumps(in_json, allow_nan=False)
    parsed = Cells()
    parsed.feed(render_page(ComparedModels("set", made(), found, tmp_path)))
    first = next(one for one in parsed.rows if one and one[0].strip() == "good")
    assert first[1].split() == [text, *interval.split()]


def test_doubts_are_told() -> None:
    found = made()
    found.notes = ("set, m: 3 replies are not scored.",)
    told = list_warnings(ComparedModels("set", found, compare_models(found), Path()))
    assert told[0] == "set, m: 3 replies are not scored."
    assert "weak: incomplete: 1 of 40 failed." in told
    assert any(line.startswith("weak: 2.6 % of replies could not be read") for line in told)
    assert any(line.startswith("weak: not significantly above the best constant") for line in told)
    assert not any(line.startswith("good:") for line in told)


def test_names_do_no_harm(tmp_path: Path) -> None:
    found = made()
    html = render_page(ComparedModels(HOSTILE, found, compare_models(found), tmp_path))
    assert "<script" not in html
    assert "<img" not in html
    # In Markdown no pipe of a name ends a cell, in LaTeX no command of a name runs, in CSV it is no formula.
    markdown, tex = format_markdown(compare_models(found), HOSTILE), format_latex(compare_models(found))
    widths = {line.replace("\\|", "").count("|") for line in markdown.splitlines() if "cmd" in line and "| =" in line}
    assert widths <= {line.count("|") for line in markdown.splitlines() if line.startswith("| good")}
    assert "<img" not in markdown.replace("\\<", "")
    assert "\\input" not in tex
    assert tex.count(r"\end{tabular}") == tex.count(r"\begin{tabular}")
    assert escape_latex("[0.1]") == "{[}0.1]"  # after a line's end a bracket would be taken for its height
    assert escape_latex("50% a_b & {x}") == r"50\% a\_b \& \{x\}"
    assert not re.search(r"^summary,=", format_csv(compare_models(found)), re.MULTILINE)


@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_in_a_browser(open_page: OpenPage, tmp_path: Path, width: int) -> None:
    found = made()
    path = write_scores_report(ComparedModels("set", found, compare_models(found), tmp_path))
    watched = open_page(path.as_uri(), width=width)
    page = watched.page
    assert watched.overflow_px() == 0
    assert page.title() == "Scores on set"
    assert page.locator("h2").all_inner_texts()[:3] == [
        "Accuracy by task",
        "Summary",
        "VGBench (layout of Table 1), delta = 2 as in the paper",
    ]
    # One chart and one table stand open; every column of the table is explained.
    assert page.locator("table:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollHeight") < (2600 if width > 760 else 7000)
    heads = page.locator("main table").first.locator("thead th.number")
    names = [head.evaluate("th => th.firstChild.textContent.trim()") for head in heads.all()]
    assert page.locator("dl.columns").first.locator("dt").all_inner_texts() == names
    good = page.locator("main table").first.locator("tr", has=page.locator("th", has_text=re.compile("^good$")))
    assert good.locator(".best").first.inner_text() == "90.0"
    for summary in page.locator("details.part > summary").all():
        summary.click()
    assert page.locator("table:visible").count() > 6
    assert watched.overflow_px() == 0
    if width < 760:
        label = good.locator("td").first.evaluate("cell => getComputedStyle(cell, '::before').content")
        assert label == '"delta = 2"'
        assert page.evaluate("document.documentElement.scrollHeight") > 12000
    else:
        page.set_viewport_size({"width": 800, "height": 800})
        page.locator(".scrolls").first.wait_for(state="visible")
        page.locator(".wide").first.evaluate("one => one.scrollLeft = 10000")
        page.locator(".scrolls").first.wait_for(state="hidden")


@pytest.mark.parametrize("width", [880, 390])
def test_numbers_of_the_chart_stand_beside_its_bars(open_page: OpenPage, tmp_path: Path, width: int) -> None:
    entries = [entry(f"q{k}", task=f"task{k % 3}", scene=f"s{k}") for k in range(90)]
    found = board(entries, right=[row(f"q{k}") for k in range(90)], wrong=[row(f"q{k}", 0.0) for k in range(90)])
    path = write_scores_report(ComparedModels("set", found, compare_models(found), tmp_path))
    page = open_page(path.as_uri(), width=width).page
    assert page.locator(".panel").count() == 3
    for panel in page.locator(".panel").all():
        bars = panel.locator("svg").bounding_box()
        assert bars is not None
        texts = panel.locator(".ends li").all()
        assert [text.inner_text() for text in texts] == ["100.0", "0.0"]
        for text, bar in zip(texts, panel.locator("svg g").all(), strict=True):
            box, drawn = text.bounding_box(), bar.locator("rect").bounding_box()
            assert box is not None
            assert box["x"] >= bars["x"] + bars["width"] - 0.5
            if drawn is not None and drawn["width"]:  # at the height of its bar
                assert box["y"] < drawn["y"] + drawn["height"] / 2 < box["y"] + box["height"]


def test_groups_of_size_stand_above_their_models_in_every_format(tmp_path: Path) -> None:
    sized = Board((entry("q0"), entry("q1", content="c"), entry("q2", content="c")))
    for name in ("InternVL3-78B", "gpt-4o", "InternVL3-1B", "baseline:random"):
        sized.add(name, {"set": [row(f"q{k}", float(k < 2)) for k in range(3)]})
    found = compare_models(sized)
    order = ["below 5B", "InternVL3-1B", "32B and more", "InternVL3-78B", "size not known", "gpt-4o",
             "baselines and controls", "baseline:random"]  # fmt: skip
    text = "\n".join(format_text_lines(found.summary))
    for told in (
        text,
        format_markdown(found, "x"),
        format_latex(found),
        render_page(ComparedModels("x", sized, found, tmp_path)),
    ):
        table = told[told.index(order[0]) :]
        places = [table.index(name) for name in order]
        assert places == sorted(places)
    lines = as_json(found)["tables"][0]["lines"]
    assert [line["group"] for line in lines[:4]] == ["below 5B", "32B and more", "size not known", ""]
    assert {row["group"] for row in csv.DictReader(io.StringIO(format_csv(found)))} == {*order[:6:2], ""}
    assert lines[0]["cells"]["Copies once"]["value"] == 0.75
    assert "below 5B" not in format_markdown(compare_models(made()), "x")


def crowd(size: int = 8) -> Board:
    """Models of which the last was asked two of twelve questions (answered right, where one letter is right too), and
    two baselines that are worse than all of them."""
    entries = [
        entry(f"q{k}", truth="AABCDBCDBCDB"[k], scene=f"s{k}", difficulty=("easy", "hard")[k % 2]) for k in range(12)
    ]
    models = {f"m{m}": [row(f"q{k}", float(k < 11 - m)) for k in range(12)] for m in range(size)}
    models["few"] = [row(f"q{k}") for k in range(2)]
    found = board(entries, **models)
    for name in ("baseline:random", "baseline:constant"):
        found.add(name, {"set": [row(f"q{k}", float(not k)) for k in range(12)]})
    return found


def test_runs_without_a_bar_are_named(tmp_path: Path) -> None:
    found = crowd()
    tables = compare_models(found)
    styles, undrawn = choose_bars(tables.summary)
    assert [style.name for style in styles] == ["m0", "m1", "m2", "m3"]
    assert undrawn == ["m4", "m5", "m6", "m7", "few"]
    assert len({style.color for style in styles}) == len(styles)
    assert "Only in the tables: m4, m5, m6, m7, few." in render_page(ComparedModels("set", found, tables, tmp_path))
    found.add("baseline:solvers", {"set": [row(f"q{k}") for k in range(12)]})
    assert choose_bars(compare_models(found).summary)[0][-1].color == "floor-0"


def test_models_asked_a_part_are_marked_and_judged_by_their_own_questions(tmp_path: Path) -> None:
    found = crowd()
    told = list_warnings(ComparedModels("set", found, compare_models(found), Path()))
    # One letter is right for both of its questions, for 4 of all 12.
    line = "few: not significantly above the best constant on the 2 questions that it answered (100.0 %)."
    assert line in told
    assert not any(line.startswith("m0: not significantly") for line in told)
    assert "m7: not significantly above the best constant (33.3 %)." in told
    found = crowd(3)
    styles, _ = choose_bars(compare_models(found).summary)
    assert [(style.name, style.note) for style in styles if style.note] == [("few", "asked 2 of 12")]
    html = render_page(ComparedModels("set", found, compare_models(found), tmp_path))
    assert '<svg class="k-3 part"' in html
    assert "few* (asked 2 of 12)</li>" in html


def test_the_terminal_says_what_a_number_is_over() -> None:
    lines = format_text_lines(compare_models(crowd()).summary)
    few, whole = (next(line for line in lines if line.startswith(name)) for name in ("few", "m0"))
    assert "100.0 (n 2)" in few
    assert "the best" not in lines[-1]  # nothing is marked, so nothing is explained
    assert "(n" not in whole
    # Numbers of one column end at one place, whatever stands behind them.
    assert few.index(" (n 2)") == whole.index("91.7") + len("91.7")
