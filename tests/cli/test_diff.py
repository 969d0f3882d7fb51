"""Two datasets compared as a user compares them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.examples import make_item
from vgbench_gen.cli.main import main
from vgbench_gen.core.types import Item
from vgbench_gen.store.diff import diff
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.shards import write_items

Capture = pytest.CaptureFixture[str]

ROWS = [make_item(k, group_id=f"g{k}") for k in range(5)]
TRUE = make_item(5, id="yes", group_id="j", question_type="judgment", task="relative_pose", answer="Yes", options=())
FALSE = replace(TRUE, id="no", answer="No")


def written(folder: Path, items: list[Item]) -> Path:
    write_items(folder / "items", items, MediaStore(folder / "media"))
    return folder


def test_rows_are_the_same_wherever_they_stand() -> None:
    before = [*ROWS, TRUE, FALSE]
    found = diff(before, [replace(item, index=9 - k, index_origin=k) for k, item in enumerate(before)])
    assert (found.equal, found.same, found.rows) == (True, 7, (7, 7))
    turned = diff(before, before[::-1])
    assert (turned.equal, turned.same, turned.moved) == (False, 7, True)
    # A row more does not move the others.
    assert not diff(before, [make_item(8, group_id="new"), *before]).moved


def test_every_row_is_told_apart_once() -> None:
    a = [*ROWS, TRUE, FALSE]
    b = [
        replace(ROWS[0], question="What is the depth?"),
        replace(ROWS[1], id="redrawn", options=("1.20 m", "2.40 m", "3.70 m", "4.80 m"), distractor_seed=8),
        replace(ROWS[2], answer_value=(2.5,), answer="C"),
        replace(ROWS[3], images=("0" * 32 + ".jpg",)),
        replace(FALSE, id="claimed otherwise", question="Another claim?"),
        replace(TRUE, id="still yes", evidence={"z_m": 1.0}),
        make_item(9, id="fresh", group_id="fresh", task="point_tracking"),
    ]
    found = diff(a, b)
    kinds = {change.id_a: (change.id_b, change.kind, change.columns) for change in found.changed}
    assert kinds == {
        "item0000": ("item0000", "reworded", ("question",)),
        "item0001": ("redrawn", "other options", ("id", "options", "distractor_seed")),
        "item0002": ("item0002", "other answer", ("answer", "answer_value")),
        "item0003": ("item0003", "other pictures", ("images",)),
        "no": ("claimed otherwise", "reworded", ("id", "question")),
        "yes": ("still yes", "other notes", ("id", "evidence")),
    }
    assert (found.same, found.only_a, found.only_b) == (0, ["item0004"], ["fresh"])
    assert found.tasks == {
        "metric_depth": {"same": 0, "changed": 4, "only_a": 1, "only_b": 0},
        "point_tracking": {"same": 0, "changed": 0, "only_a": 0, "only_b": 1},
        "relative_pose": {"same": 0, "changed": 2, "only_a": 0, "only_b": 0},
    }
    assert found.columns["question"] == 2


def test_a_number_that_is_none_is_no_difference() -> None:
    nan = [replace(ROWS[0], tolerance=float("nan"), answer_value=(float("nan"),))]
    assert diff(nan, [replace(nan[0], tolerance=float("nan"), answer_value=(float("nan"),))]).equal


def test_diff_of_folders(tmp_path: Path, capsys: Capture) -> None:
    a = written(tmp_path / "a", ROWS)
    same = written(tmp_path / "same", [replace(item) for item in ROWS])
    b = written(tmp_path / "b", [replace(ROWS[0], question="What is the depth?"), *ROWS[1:4]])
    assert main(["diff", str(a), str(same)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "equal: the same rows in the same order"
    assert main(["diff", str(a), str(b)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"A {a}: 5 rows"
    assert lines[3].split() == ["metric_depth", "3", "1", "1", "0"]
    assert lines[4:] == [
        "reworded: metric_depth multi-choice item0000: question",
        "only in A: item0004",
        "columns that differ: question 1",
    ]
    assert main(["diff", str(a), str(b), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["equal"], told["same"], told["only_a"], told["columns"]) == (False, 3, ["item0004"], {"question": 1})
    assert main(["diff", str(a), str(tmp_path / "absent")]) == 2
