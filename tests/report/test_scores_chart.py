"""The chart that a page of scores opens on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.score_rows import board, entry, failed, row
from tests.report.gallery_data import Looked
from tests.report.review_site import desk_of
from vgbench_gen.evaluation.board import Board
from vgbench_gen.evaluation.tables import compare_models
from vgbench_gen.report.scores_files import NONE
from vgbench_gen.report.scores_page import ComparedModels, render_page
from vgbench_gen.report.scores_plots import choose_bars, plot_costs, plot_panels, read_human_scores

NEAR, FAR = "near_task", "far_task"


def made() -> Board:
    """Two tasks of twenty questions, a model right on fourteen of each, and solvers that try one task alone; and three
    questions of a third task."""
    entries = [entry(f"q{k}", task=(NEAR, FAR)[k % 2], scene=f"s{k}", truth="AB"[k % 4 > 1]) for k in range(40)]
    entries += [entry(f"q{k}", task="rare_task", scene=f"s{k}") for k in range(40, 43)]
    tried = [row(f"q{k}", 1.0) for k in range(0, 40, 2)]
    left = [row(f"q{k}", 0.0, outcome="refused", status="refusal", extracted=None) for k in range(1, 40, 2)]
    found = board(entries, model=[row(f"q{k}", float(k < 28)) for k in range(43)])
    found.add("baseline:solvers", {"set": tried + left})
    found.add("baseline:blind", {"set": [row(f"q{k}", float(k % 10 < 4)) for k in range(43)]})
    return found


def chart_of(found: Board, human: dict[str, float]) -> dict[str, Any]:
    tables = compare_models(found)
    table = next(table for table in tables.parts if table.key == "task")
    return plot_panels(table, choose_bars(tables.summary)[0], human)


def texts(panel: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Of each bar of a panel what is printed, how long it is, and how its tooltip ends."""
    return {bar["style"].name: (bar["text"], bar["width"], bar["told"].rpartition(": ")[2]) for bar in panel["bars"]}


def test_bars_and_lines_stand_where_the_numbers_are() -> None:
    chart = chart_of(made(), {NEAR: 0.95})
    far, near = chart["panels"]
    assert (near["name"], near["total"]) == ("near task", 20)
    assert [(bar["style"].name, bar["text"], bar["width"]) for bar in near["bars"]] == [
        ("model", "70.0", "70.0%"), ("baseline:solvers", "100.0", "100.0%"),
    ]  # fmt: skip
    low, high = (float(end.removesuffix("%")) for end in near["bars"][0]["span"])
    assert 40 < low < 70 < high < 95
    lines = {one["name"]: one["x"] for one in near["references"]}
    assert lines == {"blind": "40.0%", "chance": "25.0%", "constant": "50.0%", "human": "95.0%"}
    # What was not tried is no 0 %.
    assert texts(far)["baseline:solvers"] == (NONE, "", "not attempted")
    assert "human" not in {one["name"] for one in far["references"]}


def test_fewer_than_twenty_questions_have_no_panel(tmp_path: Path) -> None:
    assert chart_of(made(), {})["few"] == [("rare task", 3)]
    html = render_page(ComparedModels("set", made(), compare_models(made()), tmp_path))
    assert "Not drawn, with fewer than 20 questions: rare task (3)." in html
    assert html.count('<figure class="panel">') == 2


def test_a_model_that_refuses_all_has_tried_and_failed() -> None:
    found = made()
    refused = [row(f"q{k}", 0.0, outcome="refused", status="refusal", extracted=None) for k in range(1, 40, 2)]
    found.add("prude", {"set": [row(f"q{k}", 1.0) for k in range(0, 40, 2)] + refused})
    shown = texts(chart_of(found, {})["panels"][0])
    assert shown["prude"][:2] == ("0.0", "0.0%")
    assert shown["baseline:solvers"] == (NONE, "", "not attempted")


def test_requests_that_failed_and_questions_not_asked_are_told_apart_from_refusing() -> None:
    found = made()
    found.add(
        "dead", {"set": [row(f"q{k}", 1.0) for k in range(0, 40, 2)] + [failed(f"q{k}") for k in range(1, 40, 2)]}
    )
    found.add("short", {"set": [row(f"q{k}", 1.0) for k in range(0, 40, 2)]})
    shown = texts(chart_of(found, {})["panels"][0])
    assert shown["dead"] == (NONE, "", "all requests failed")
    assert shown["short"] == (NONE, "", "not asked")
    assert shown["baseline:solvers"] == (NONE, "", "not attempted")


def test_the_page_opens_on_it_and_tells_what_was_tried(tmp_path: Path) -> None:
    found = made()
    html = render_page(ComparedModels("set", found, compare_models(found), tmp_path))
    assert html.index('id="chart"') < html.index("<table")
    assert "attempted 20 of 40; the others count as wrong" in html
    assert "No human baseline" in html
    assert html.count(": not attempted</title>") == 1


def test_questions_of_one_task_are_drawn_as_one_panel(tmp_path: Path) -> None:
    found = board([entry(f"q{k}", scene=f"s{k}") for k in range(25)], a=[row(f"q{k}", float(k < 5)) for k in range(25)])
    html = render_page(ComparedModels("set", found, compare_models(found), tmp_path))
    assert re.findall(r"<figcaption>(.*?) <span", html) == ["all questions"]
    assert re.findall(r'<li title="[^"]*">([^<]*)</li>', html) == ["20.0"]


def test_costs_are_numbered_and_stand_by_their_logarithm() -> None:
    entries = [entry(f"q{k}", scene=f"s{k}") for k in range(10)]
    costs = {"cheap": (0.001, 5), "dear": (0.1, 8), "free": (0.0, 9)}
    rows = {
        name: [row(f"q{k}", float(k < right), cost_usd=usd) for k in range(10)] for name, (usd, right) in costs.items()
    }
    found = board(entries, **rows)
    chart = plot_costs(list(found.runs.values()), compare_models(found).summary)
    assert chart is not None
    points = [(one["number"], one["told"].partition(":")[0], one["x"], one["y"]) for one in chart["points"]]
    assert points == [(1, "cheap", "0.0%", "50.0%"), (2, "dear", "100.0%", "20.0%")]
    assert [(column["x"], column["label"]) for column in chart["columns"]] == [
        ("0.0%", "1"), ("50.0%", "10"), ("100.0%", "100"),
    ]  # fmt: skip
    found = board(entries, cheap=rows["cheap"], free=rows["free"])
    assert plot_costs(list(found.runs.values()), compare_models(found).summary) is None


def test_people_are_known_from_reviews(looked: Looked, tmp_path: Path) -> None:
    queue = desk_of(looked, looked.folder)
    try:
        for name, right in (("ann", True), ("bob", False)):
            session = queue.open_session(name)
            while (place := session.find_next()) is not None:
                known = place.entry.form != "open-ended" and right
                session.answer(place, place.entry.answer if known and not place.defect else "cannot tell", "sure")
                session.judge(place, *(("invalid", ["unclear"]) if place.defect else ("valid", [])), "")
        found = read_human_scores([looked.folder, tmp_path])
        for task in {e.task for e in queue.selected}:
            forms = [e.form for e in queue.selected if e.task == task]
            assert found[task] == pytest.approx(sum(form != "open-ended" for form in forms) / len(forms) / 2)
    finally:
        queue.close()
        for path in (looked.folder / "review").iterdir():
            path.unlink()
