"""Tables against numbers worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.score_rows import ORIGINS, board, depth, entry, failed, row
from tests.store.examples import make_item
from vgbench_gen.evaluation import reference_scores
from vgbench_gen.evaluation.benchmarks.spatialscore.tables import SOURCES, SPATIALSCORE
from vgbench_gen.evaluation.benchmarks.vgbench.tables import VGBENCH
from vgbench_gen.evaluation.board import ORACLE, Board, ScoreRow, count_confusion, digest_content
from vgbench_gen.evaluation.cells import Cell, copies_once, mean
from vgbench_gen.evaluation.layouts import find_paper_layouts
from vgbench_gen.evaluation.tables import Comparison, Table, compare_models
from vgbench_gen.report.scores_files import BESIDE, FAILED, NONE, format_denominators, format_value, group_rows


def by_key(found: Comparison, key: str) -> Table:
    return next(table for table in found.tables if table.key == key)


def cell(table: Table, name: str, head: str) -> Cell:
    line = next(line for line in table.rows if line.name == name)
    return line.cells[[one.name for one in table.columns].index(head)]


def test_micro_macro_pairs_and_both_denominators() -> None:
    # Four poses (three right, one failed), two trackings (one right); twins a/b and c/d, pair e/f.
    entries = [entry(x, twin=t) for x, t in zip("abcd", ("1", "1", "2", "2"), strict=True)]
    entries += [entry(x, task="point_tracking", origin="tracking_vqa_pairs", pair="p") for x in "ef"]
    made = board(entries, m=[row("a"), row("b"), row("c"), failed("d"), row("e"), row("f", 0.0)])
    table = compare_models(made).summary
    micro = cell(table, "m", "Score")
    assert micro.value == pytest.approx(4 / 5)
    assert (micro.n, micro.asked) == (5, 6)
    assert micro.value_all == pytest.approx(4 / 6)
    macro = cell(table, "m", "Macro")
    assert macro.value == pytest.approx((3 / 3 + 1 / 2) / 2)
    assert macro.value_all == pytest.approx((3 / 4 + 1 / 2) / 2)
    twins, pairs = cell(table, "m", "Twins"), cell(table, "m", "Pairs")
    assert (twins.value, twins.n, twins.asked, twins.value_all) == (1.0, 1, 2, 0.5)
    assert (pairs.value, pairs.n) == (0.0, 1)
    # Always "A" is right everywhere, so nothing is gained over it.
    assert cell(table, reference_scores.CONSTANT, "Score").value == 1.0
    assert math.isnan(cell(table, "m", "Skill").value)
    assert next(line for line in table.rows if line.name == "m").note == "incomplete: 1 of 6 failed"


def test_headline_and_open_metrics() -> None:
    # Truths 1, 2, 4 m. Answers 1.2 (within 1.25), 3 (within 2), none: errors 0.2, 0.5, infinite.
    entries = [depth(x, truth) for x, truth in zip("abc", (1.0, 2.0, 4.0), strict=True)]
    rows = [
        row("a", extracted=1.2, delta_2=1.0, delta_125=1.0, mra=0.6, relative_error=0.2),
        row("b", extracted=3.0, delta_2=1.0, delta_125=0.0, mra=0.1, relative_error=0.5),
        row("c", 0.0, outcome="unreadable", status="no_answer", extracted=None,
            delta_2=0.0, delta_125=0.0, mra=0.0, relative_error=math.inf),
    ]  # fmt: skip
    found = compare_models(board(entries, m=rows))
    assert cell(found.summary, "m", "delta = 2").value == pytest.approx(2 / 3)
    assert cell(found.summary, "m", "delta = 1.25").value == pytest.approx(1 / 3)
    assert cell(by_key(found, "vgbench"), "m", "Depth").value == pytest.approx(2 / 3)
    assert cell(by_key(found, "vgbench-1.25"), "m", "Depth").value == pytest.approx(1 / 3)
    table = by_key(found, "open-ended")
    assert cell(table, "m", "metric depth: MRA").value == pytest.approx(0.7 / 3)
    assert cell(table, "m", "metric depth: median error").value == 0.5
    # Strictly within a factor of 2 reaches two of the three, within 1.25 one.
    assert cell(table, reference_scores.CONSTANT, "metric depth: delta = 2").value == pytest.approx(2 / 3)
    assert cell(table, reference_scores.CONSTANT, "metric depth: delta = 1.25").value == pytest.approx(1 / 3)
    # (2/3 - 2/3) / (1 - 2/3)
    assert cell(found.summary, "m", "Skill").value == pytest.approx(0.0)
    assert cell(found.summary, "m", "Unreadable").value == pytest.approx(1 / 3)


def test_copies_of_a_question_count_once() -> None:
    # a, b and c are one question, answered right, wrong and right; d is wrong, e right; the truth of d alone is B.
    entries = [entry(x, content="one") for x in "abc"] + [entry("d", content="two", truth="B"), entry("e")]
    rows = [row("a"), row("b", 0.0), row("c"), row("d", 0.0), row("e")]
    table = compare_models(board(entries, m=rows)).summary
    once = cell(table, "m", "Copies once")
    assert once.value == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert (once.n, once.asked) == (3, 3)
    assert 0 <= once.low < once.value < once.high <= 1
    assert cell(table, "m", "Score").value == pytest.approx(3 / 5)
    assert cell(table, reference_scores.CONSTANT, "Score").value == pytest.approx(4 / 5)
    assert cell(table, reference_scores.CONSTANT, "Copies once").value == pytest.approx(2 / 3)
    assert {head.name: head.total for head in table.columns}["Copies once"] == 3
    assert "2 are copies" in table.caption
    # The copy whose request failed is left out, and counts as answered through the others.
    made = board(entries, m=[row("a"), failed("b"), row("c", 0.0), failed("d"), row("e")])
    part = copies_once(made.answers_of("m"), "score", 0)
    assert (part.value, part.n, part.asked) == (0.75, 2, 3)
    assert part.value_all == pytest.approx(0.5)


def test_content_is_all_that_is_seen_and_the_answer() -> None:
    item = make_item(0, ["a.jpg", "b.jpg"])
    assert digest_content(replace(item, id="other", index=7, benchmark="BLINK")) == digest_content(item)
    changes: list[dict[str, Any]] = [
        {"question": "x"}, {"context": "x"}, {"options": item.options[::-1]}, {"answer": "C"},
        {"images": ("b.jpg", "a.jpg")}, {"images": ("a.jpg",)}, {"options": (), "context": item.options[0]},
    ]  # fmt: skip
    assert len({digest_content(item), *(digest_content(replace(item, **change)) for change in changes)}) == 8


def test_wrong_letters_say_which_part_of_the_answer_failed() -> None:
    parts = ("", "depth", "yaw", "depth+yaw")
    shapes = ("size_order", "depth", "", "depth+size_order")
    entries = [entry(x, task="object_location", error_parts=parts) for x in "abcd"]
    entries += [entry("e", task="object_location", error_parts=shapes, truth="C"), entry("f", task="object_location")]
    entries.append(entry("g", error_parts=("rotation", "", "translation", "rotation+translation"), truth="B"))
    said = dict(zip("abcdefg", ("A", "B", "B", "D", "A", "D", "AB"), strict=True))
    rows = [row(x, float(x == "a"), extracted=letter) for x, letter in said.items()]
    table = by_key(compare_models(board(entries, m=rows)), "wrong-parts")
    task = "object location"
    cells = {one.name: cell(table, "m", one.name) for one in table.columns}
    found = {name: (f"{one.value:.2f}", one.n) for name, one in cells.items()}
    # Four wrong letters: depth twice, both once, the order of sides once. f tells no parts, g gave no letter.
    assert found == {
        f"{task}: depth": ("0.50", 4), f"{task}: size order": ("0.25", 4), f"{task}: yaw": ("0.00", 4),
        f"{task}: depth+size order": ("0.00", 4), f"{task}: depth+yaw": ("0.25", 4),
        "relative pose: rotation": ("nan", 0), "relative pose: translation": ("nan", 0),
        "relative pose: rotation+translation": ("nan", 0),
    }  # fmt: skip
    assert next(one.total for one in table.columns if one.name == f"{task}: yaw") == 5
    guess = cell(table, reference_scores.CHANCE, f"{task}: yaw").value
    assert guess == pytest.approx(4 / 5 / 3)
    assert compare_models(board([entry("a")], m=[row("a")])).wrong_parts is None


def test_who_is_wrong_nowhere_has_no_wrong_part_and_did_not_fail() -> None:
    parts = ("", "depth", "yaw", "depth+yaw")
    entries = [entry(x, task="object_location", error_parts=parts) for x in "abc"]
    right, lost = [row(x) for x in "abc"], [failed(x) for x in "abc"]
    partly = [row("a"), row("b", 0.0), failed("c")]
    table = by_key(compare_models(board(entries, right=right, lost=lost, partly=partly)), "wrong-parts")
    head = next(one for one in table.columns if one.name == "object location: depth")
    shown = {}
    for name in ("right", "lost", "partly"):
        one = cell(table, name, head.name)
        shown[name] = (format_value(one, head), format_denominators(one, head))
    assert shown == {"right": (NONE, ""), "lost": (FAILED, "0 of 3"), "partly": ("100.0", "n 1")}


def test_models_stand_in_groups_of_size() -> None:
    names = ("InternVL3-78B", "gpt-4o", "Kimi-VL-A3B", "InternVL3-8B", "Qwen2.5-VL-3B")
    made = Board((entry("a"),))
    for name in (*names, "baseline:random"):
        made.add(name, {"set": [row("a")]})
    lines = compare_models(made).summary.rows
    assert [(line.name, line.group) for line in lines[:6]] == [
        ("Kimi-VL-A3B", "below 5B"), ("Qwen2.5-VL-3B", "below 5B"), ("InternVL3-8B", "5B to below 15B"),
        ("InternVL3-78B", "32B and more"), ("gpt-4o", "size not known"), ("baseline:random", ""),
    ]  # fmt: skip
    heads = [heading for _, heading in group_rows(lines)]
    assert heads == ["below 5B", "", "5B to below 15B", "32B and more", "size not known", BESIDE, "", ""]
    # Nothing to tell apart: no headings, and the order of names.
    alone = board([entry("a")], b=[row("a")], a=[row("a")])
    assert [(line.name, line.group) for line in compare_models(alone).summary.rows[:2]] == [("b", ""), ("a", "")]


def test_circular_needs_every_order_and_repeats_are_averaged() -> None:
    entries = [entry(x) for x in "abc"]
    rows = [row("a", rotation=k) for k in range(4)]
    rows += [row("b", float(k != 2), rotation=k) for k in range(4)]
    rows += [row("c", rotation=k) for k in range(3)] + [row("c", 0.0, epoch=1)]
    made = board(entries, m=rows)
    np.testing.assert_array_equal(made.answers_of("m")["circular"], [1.0, 0.0, np.nan])
    np.testing.assert_array_equal(made.answers_of("m")["score"], [1.0, 1.0, 0.5])
    circular = cell(compare_models(made).summary, "m", "Circular")
    assert (circular.value, circular.n, circular.asked) == (0.5, 2, 3)


def test_prompt_sets_and_controls_are_runs_of_their_own() -> None:
    entries = [entry(x) for x in "ab"]
    rows = [row("a"), row("b"), row("a", 0.0, stage="blind"), row("b", 0.0, prompt_set="final_line")]
    made = board(entries, m=rows)
    assert list(made.runs) == ["m", "m (final_line)", "m (blind)"]
    kinds = {line.name: line.kind for line in compare_models(made).summary.rows}
    assert kinds == {
        "m": "model", "m (final_line)": "model", "m (blind)": "floor", "best constant per column": "floor",
        "uniform guess": "floor",
    }  # fmt: skip
    assert count_confusion(made, "m (blind)", np.array([True, True])) == {"A": {"B": 1}}


def test_baselines_stand_beside_models_and_are_compared_where_they_are_alone() -> None:
    entries = [entry(x) for x in "ab"]
    made = board(entries, m=[row("a")])
    made.add("baseline:random", {"set": [row("a", 0.0), row("b")]})
    assert [line.kind for line in compare_models(made).summary.rows][:2] == ["model", "floor"]
    alone = board(entries)
    alone.add("baseline:random", {"set": [row("a", 0.0), row("b")]})
    assert [line.kind for line in compare_models(alone).summary.rows] == ["model", "floor", "floor"]


def test_a_baseline_that_tried_no_question_of_a_cell_has_no_number_there() -> None:
    entries = [entry("a"), entry("b", task="point_tracking"), entry("c", task="point_tracking")]
    refused = [row(x, 0.0, outcome="refused", status="refusal", extracted=None) for x in "bc"]
    made = board(entries, m=[row("a"), *refused])
    made.add("baseline:solvers", {"set": [row("a"), *refused]})
    tracking = made.mask(lambda one: one.task == "point_tracking")
    solvers, model = (made.answers_of(name) for name in ("baseline:solvers", "m"))
    left = mean(solvers[tracking], "score", 0)
    assert (math.isnan(left.value), math.isnan(left.low), left.n, left.asked) == (True, True, 0, 2)
    # What a model refuses is wrong, and so is over all questions what a baseline did not try.
    assert mean(model[tracking], "score", 0).value == 0.0
    assert mean(solvers, "score", 0).value == pytest.approx(1 / 3)
    # One that was tried counts the others of its cell.
    part = made.mask(lambda one: one.id in "ab")
    assert mean(solvers[part], "score", 0).value == 0.5


def test_agents_with_oracle_tools_stand_beside_models_and_are_never_the_best() -> None:
    names = [str(k) for k in range(40)]
    made = board([entry(x) for x in names], m=[row(x, 0.0) for x in names], n=[row(x, 0.0) for x in names])
    made.add(f"agent{ORACLE}", {"set": [row(x) for x in names]})
    found = compare_models(made)
    assert [(line.name, line.kind) for line in found.summary.rows][:3] == [
        ("m", "model"),
        ("n", "model"),
        (f"agent{ORACLE}", "floor"),
    ]
    assert not any(each.mark for line in found.summary.rows for each in line.cells)
    assert found.pairs[["first", "second"]].to_numpy().tolist() == [["m", "n"]]


def scored(pattern: Sequence[int]) -> list[ScoreRow]:
    return [row(str(k), float(right)) for k, right in enumerate(pattern)]


def test_marks_only_where_the_paired_difference_is_significant() -> None:
    entries = [entry(str(k)) for k in range(60)]
    best, second, third = [1] * 60, [1] * 40 + [0] * 20, [1] * 15 + [0] * 45
    near = [1] * 38 + [0] * 22
    table = by_key(compare_models(board(entries, c=scored(third), a=scored(best), b=scored(second))), "vgbench")
    assert [cell(table, name, "Overall").mark for name in "abc"] == ["best", "second", ""]
    assert cell(table, "a", "Homo.").mark == ""  # no such question
    table = by_key(compare_models(board(entries, a=scored(best), b=scored(second), c=scored(near))), "vgbench")
    assert [cell(table, name, "Overall").mark for name in "abc"] == ["best", "", ""]
    found = compare_models(board(entries, b=scored(second), c=scored(near)))
    assert [cell(by_key(found, "vgbench"), name, "Overall").mark for name in "bc"] == ["", ""]
    (pair,) = found.pairs.to_dict("records")
    assert [pair[name] for name in ("first", "second", "n", "only_a", "only_b")] == ["b", "c", 60, 2, 0]
    assert pair["p"] > 0.05
    assert pair["needed"] > 60


def test_every_question_of_the_paper_has_one_column() -> None:
    entries = [entry(head, origin=origin) for head, origin in ORIGINS.items()]
    for layout, questions in ((VGBENCH, entries), (SPATIALSCORE, entries)):
        heads = [[c.head for c in layout.columns[1:] if c.wanted(one)] for one in questions]
        assert all(len(found) == 1 for found in heads)
        assert all(layout.columns[0].wanted(one) for one in questions)
    assert [c.head for c in VGBENCH.columns] == [
        "Overall", "Homo.", "Pose-Est.", "Camera", "3D-Recon.", "Distance", "Depth", "Tracking", "Obj-Pos."
    ]  # fmt: skip
    assert [[c.head for c in VGBENCH.columns[1:] if c.wanted(one)] for one in entries] == [[head] for head in ORIGINS]
    assert [layout.key for layout in find_paper_layouts(Board(tuple(entries)))] == ["vgbench"]


def test_sources_by_their_own_metric() -> None:
    # VSI-Bench: directions in three difficulties are one of the tasks. Means: count 0.4, direction (1 + 0 + 0) / 3.
    vsi = {"source": "VSI-Bench", "category": "Counting"}
    directions = [entry(f"d{k}", origin=f"object_rel_direction_{d}", **vsi) for k, d in enumerate(("easy", "hard"))]
    entries = [entry("n", origin="object_counting", kind="count", truth=4.0, rule="mra", options=0, **vsi), *directions]
    # MMVP: items 1 and 2, 3 and 4 are pairs.
    entries += [entry(f"p{k}", source="MMVP", origin_id=str(k), category="Others") for k in (1, 2, 3, 4)]
    entries += [
        entry(f"f{k}", source="3DSRBench", origin="height_higher", origin_id=name, category="Object Properties")
        for k, name in enumerate(("AB", "AB-flip", "CD"))
    ]
    rows = [row("n", 0.4), row("d0"), row("d1", 0.0), row("p1"), row("p2", 0.0), row("p3"), row("p4")]
    rows += [row("f0"), row("f1"), row("f2", 0.0)]
    found = compare_models(board(entries, m=rows))
    vsi_table = by_key(found, "vsi")
    assert cell(vsi_table, "m", "Overall (macro)").value == pytest.approx((0.4 + 0.5) / 2)
    assert cell(vsi_table, "m", "Rel. Dir.").value == 0.5
    # The best constant under MRA is the truth itself, and one letter answers both directions.
    assert cell(vsi_table, reference_scores.CONSTANT, "Overall (macro)").value == 1.0
    assert cell(by_key(found, "mmvp"), "m", "Pairs").value == 0.5
    assert cell(by_key(found, "mmvp"), "m", "Samples").value == 0.75
    assert cell(by_key(found, "3dsrbench"), "m", "Flip").value == 1.0
    assert cell(by_key(found, "3dsrbench"), "m", "Flip").n == 1
    assert cell(by_key(found, "spatialscore"), "m", "Others").n == 4
    assert {layout.key for layout in SOURCES} >= {"cvbench", "mmiu", "blink", "others"}


def test_constant_numbers_stay_in_their_task() -> None:
    entries = [depth("a", 1.0), depth("b", 1.1), depth("c", 9.0, task="object_distance"), entry("d"), entry("e")]
    entries.append(entry("f", truth="C"))
    np.testing.assert_array_equal(reference_scores.score_constant(entries[:5]), [1, 1, 1, 1, 1])
    assert reference_scores.score_chance(entries).sum() == 0.75


@given(st.lists(st.sampled_from((0.0, 0.5, 1.0, None)), min_size=1, max_size=12), st.randoms())
def test_a_mean_is_between_its_ends_whatever_the_order_of_replies(scores: list[float | None], random: object) -> None:
    entries = [entry(str(k), scene=f"s{k % 3}") for k in range(len(scores))]
    rows = [failed(str(k)) if s is None else row(str(k), s) for k, s in enumerate(scores)]
    made = board(entries, m=rows)
    random.shuffle(rows)  # type: ignore[attr-defined]
    made.add("again", {"set": rows})
    one, again = (mean(made.answers_of(name), "score", 0) for name in made.runs)
    assert repr(one) == repr(again)
    known = [s for s in scores if s is not None]
    assert (one.n, one.asked) == (len(known), len(scores))
    if known:
        assert one.value == pytest.approx(sum(known) / len(known))
        assert one.value_all == pytest.approx(sum(known) / len(scores))
        assert min(known) - 1e-9 <= one.value <= max(known) + 1e-9
        assert one.low <= one.value <= one.high
