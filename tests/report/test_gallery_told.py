"""What a gallery says and opens on: reasons in sentences, one question of every task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.report.gallery_data import Looked
from vgbench_gen.report.gallery_openers import choose_striking
from vgbench_gen.report.gallery_told import tell_evidence
from vgbench_gen.tasks.row_evidence import RowEvidence


def test_reasons_are_sentences_with_the_numbers_of_the_row(looked: Looked) -> None:
    for item in looked.items[: looked.real]:
        told, row = tell_evidence(item), RowEvidence.of(item)
        assert told
        assert all(line[0].isupper() and line.endswith(".") and "{" not in line for line in told)
        assert any(f"met {row.margin:.3g} times over" in line for line in told) == (0 < row.margin < 100)
        if item.task == "metric_depth":
            assert told[0] == f"Measured: {item.answer_value[0]:.3g} m."
        if item.distractors:
            nearest = min(decoy.separation for decoy in item.distractors)
            assert any(f"is {nearest:.3g} times as far from the truth" in line for line in told)
        if row.claim is not None:
            assert ("The claim holds." in told) == row.claim.holds
    assert tell_evidence(replace(looked.items[0], evidence={"truth": 3})) == []


def listed(task: str, scene: str, rated: int = 0, form: str = "multi-choice", image: str = "x") -> dict[str, Any]:
    return {"task": task, "scene": scene, "rated": rated, "type": form, "image": image}


def test_openers_are_one_of_each_task_from_many_scenes() -> None:
    rows = [
        listed("b", "s1", 1),
        listed("b", "s1", 2, "judgment"),
        listed("b", "s1", 2),
        listed("a", "s1", 2, image=""),
        listed("a", "s1", 1),
        listed("c", "s1", 2),
        listed("c", "s2", 2),
        listed("d", "s1", 0, "open-ended"),
    ]
    assert choose_striking(rows) == [4, 2, 6, 7]
