"""Rows of the published schema: options inside the text in all the shapes met, and rows that nobody can judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.importers._words import find_options
from vgbench_gen.importers.published import read_published
from vgbench_gen.quality.questions import group_by_scene


def row(**changes: Any) -> dict[str, Any]:
    return {
        "index": 7,
        "category": "Depth and Distance",
        "subcategory": "Absolute",
        "question_type": "multi-choice",
        "question": "How deep is it?\nA: 1.00 m\nB: 2.00 m\nC: 3.00 m\nD: 4.00 m",
        "answer": "B",
        "img_paths": ["a.jpg"],
        "source": "VGBench",
        "category_origin": "metric_depth_vqa",
        **changes,
    }


def written(folder: Path, rows: object) -> Path:
    path = folder / "rows.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "question", "options"),
    [
        ("What?\nA: one\nB: two", "What?", ("one", "two")),
        ("What?\nOptions:\nA. one\nB. two\nC. three", "What?", ("one", "two", "three")),
        ("What?\n(A) one\n(B) two", "What?", ("one", "two")),
        ("What? Options: A: one B: two C: three", "What?", ("one", "two", "three")),
        ("Is (A) it?\n A) one\n B) two", "Is (A) it?", ("one", "two")),
        (
            "Which?\nA: [[1, 0],\n [0, 1]]\nB: [[2, 0],\n [0, 2]]",
            "Which?",
            ("[[1, 0],\n [0, 1]]", "[[2, 0],\n [0, 2]]"),
        ),
        ("Select from the following choices.\n(a) near\n(b) far", "", ("near", "far")),
        ("Camera A. is not an option", "Camera A. is not an option", ()),
        ("B: two\nC: three", "B: two\nC: three", ()),
        ("A: one\nC: three", "A: one\nC: three", ()),
    ],
)
def test_options_are_found_in_the_text(text: str, question: str, options: tuple[str, ...]) -> None:
    assert (find_options(text).lead, find_options(text).options) == (question, options)


def test_a_row_of_each_form(tmp_path: Path) -> None:
    rows = [
        row(),
        row(index=8, question_type="judgment", question="Is it 2 m?", answer="no", img_paths=["b.jpg"]),
        row(index=9, question_type="open-ended", question="How deep?", answer="1.72 meters", img_paths=["c.jpg"]),
        row(index=10, answer="(C) 3.00 m", img_paths=["d.jpg", "a.jpg"], category_origin="unknown"),
    ]
    (choice, claim, number, other), _ = read_published(written(tmp_path, rows))
    assert (choice.id, choice.task, choice.form, choice.truth) == ("7", "VGBench/metric_depth_vqa", "multi-choice", 1)
    assert choice.options[1] == "2.00 m"
    assert (claim.options, claim.truth) == (("Yes", "No"), 1)
    assert (number.value, number.truth) == (1.72, -1)
    assert (other.truth, other.task) == (2, "VGBench/Absolute")
    labels = group_by_scene([choice, claim, number, other])
    assert labels[0] == labels[3]  # they share a.jpg
    assert len(set(labels)) == 3


def test_rows_that_nobody_can_judge_are_counted_and_named(tmp_path: Path) -> None:
    rows = [
        row(),
        "text",
        row(question=None),
        row(question_type="essay"),
        row(answer="E"),
        row(question="Which? one, two"),
        row(question_type="judgment", answer="perhaps"),
        row(question_type="open-ended", answer="about a metre"),
        row(img_paths="a.jpg"),
        row(question="A: " + "x" * 200_000),
        row(),
    ]
    questions, unread = read_published(written(tmp_path, rows))
    assert [bad.where for bad in unread] == [f"row {k}" for k in range(1, 10)]
    assert [bad.field for bad in unread] == [
        "row", "question", "question_type", "answer", "options", "answer", "answer", "img_paths", "question",
    ]  # fmt: skip
    assert [question.id for question in questions] == ["7", "7-row10"]  # the same index twice


@pytest.mark.parametrize("content", ["{}", "[1, 2", "[]", '[{"question": 3}]', "[" * 100_000])
def test_nonsense_is_refused_with_file_and_remedy(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match="SpatialScore publishes") as caught:
        read_published(path)
    assert str(path) in str(caught.value)
    with pytest.raises(DatasetError, match="no file"):
        read_published(tmp_path / "missing.json")
