"""The chart that a page of scores opens on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.score_rows import board, entry, failed, row
from tests.report.gallery_data import Looked
from tests.report.review_site import desk_of
from vgbench_gen.evaluation.board import Board
from vgbench_gen.evaluation.tables import compare_models
from vgbench_gen.report.scores_files import ScoresReport
from vgbench_gen.report.scores_page import render_page
from vgbench_gen.report.scores_plots import choose_styles, plot_parts, read_human_scores

NEAR, FAR = "near_task", "far_task"


def made() -> Board:
    """Two tasks of ten questions: a model right on seven of one, and solvers that try one task alone."""
    entries = [entry(f"q{k}", task=(NEAR, FAR)[k % 2], scene=f"s{k}", truth="AB"[k % 4 > 1]) for k in range(20)]
    tried = [row(f"q{k}", 1.0) for k in range(0, 20, 2)]
    left = [row(f"q{k}", 0.0, outcome="refused", status="refusal", extracted=None) for k in range(1, 20, 2)]
    found = board(entries, model=[row(f"q{k}", float(k < 14)) for k in range(20)])
    found.add("baseline:solvers", {"set": tried + left})
    found.add("baseline:blind", {"set": [row(f"q{k}", float(k % 10 < 4)) for k in range(20)]})
    return found


def test_bars_and_lines_stand_where_the_numbers_are() -> None:
    keys, _ = choose_styles(compare_models(made()).summary)
    chart = plot_parts(made(), keys, {NEAR: 0.95})
    far, near = chart["panels"]
    assert (near["name"], near["total"]) == ("near task", 10)
    assert [(bar["key"].name, bar["text"], bar["width"]) for bar in near["bars"]] == [
        ("model", "70.0", "70.0%"), ("baseline:solvers", "100.0", "100.0%"),
    ]  # fmt: skip
    lines = {one["name"]: one["x"] for one in near["references"]}
    assert lines == {"blind": "40.0%", "chance": "25.0%", "constant": "50.0%", "human": "95.0%"}
    # What was not tried is no 0 %.
    assert [(bar["text"], bar["width"]) for bar in far["bars"]] == [("70.0", "70.0%"), ("not attempted", "")]
    assert "human" not in {one["name"] for one in far["references"]}


def test_a_model_that_refuses_all_has_tried_and_failed() -> None:
    found = made()
    refused = [row(f"q{k}", 0.0, outcome="refused", status="refusal", extracted=None) for k in range(1, 20, 2)]
    found.add("prude", {"set": [row(f"q{k}", 1.0) for k in range(0, 20, 2)] + refused})
    keys, _ = choose_styles(compare_models(found).summary)
    far = plot_parts(found, keys, {})["panels"][0]
    shown = {bar["key"].name: (bar["text"], bar["width"]) for bar in far["bars"]}
    assert shown["prude"] == ("0.0, all refused", "0.0%")
    assert shown["baseline:solvers"] == ("not attempted", "")


def test_requests_that_failed_and_questions_not_asked_are_told_apart_from_refusing() -> None:
    found = made()
    found.add(
        "dead", {"set": [row(f"q{k}", 1.0) for k in range(0, 20, 2)] + [failed(f"q{k}") for k in range(1, 20, 2)]}
    )
    found.add("short", {"set": [row(f"q{k}", 1.0) for k in range(0, 20, 2)]})
    keys, _ = choose_styles(compare_models(found).summary)
    far = plot_parts(found, keys, {})["panels"][0]
    shown = {bar["key"].name: (bar["text"], bar["width"]) for bar in far["bars"]}
    assert shown["dead"] == ("all requests failed", "")
    assert shown["short"] == ("not asked", "")
    assert shown["baseline:solvers"] == ("not attempted", "")


def test_the_page_opens_on_it_and_tells_what_was_tried(tmp_path: Path) -> None:
    found = made()
    html = render_page(ScoresReport("set", found, compare_models(found)), tmp_path)
    assert html.index('id="chart"') < html.index("<table")
    assert "attempted 10 of 20; the others count as wrong" in html
    assert "No human baseline" in html
    # Lines of chance run behind these words, and a wide edge keeps them apart; other figures stand beside bars.
    assert html.count('class="figure absent">') == html.count('class="figure absent">not attempted<') == 1
    assert ".absent { stroke-width: 10px; }" in html


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
