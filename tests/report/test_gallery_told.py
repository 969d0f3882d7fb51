"""What a gallery says and opens on: reasons in sentences, one question of every task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from tests.report.gallery_data import Looked
from vgbench_gen.quality.explain import encode_png
from vgbench_gen.report.gallery_openers import choose_example, choose_striking, measure_sharpness
from vgbench_gen.report.gallery_rows import tell_evidence
from vgbench_gen.store.dataset import load
from vgbench_gen.tasks.row_evidence import RowEvidence


def test_reasons_are_sentences_with_the_numbers_of_the_row(looked: Looked) -> None:
    for item in looked.items[: looked.real]:
        told, row = tell_evidence(item), RowEvidence.of(item)
        assert told
        assert all(line[0].isupper() and line.endswith(".") and "{" not in line for line in told)
        assert any(f"{row.margin:.3g}x the required margin" in line for line in told) == (0 < row.margin < 100)
        assert row.noise is None or any("of 200 trials with simulated sensor noise" in line for line in told)
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
    assert choose_striking(rows, lambda row: 0.0) == [4, 2, 6, 7]


def test_an_opener_is_the_sharpest_of_its_like() -> None:
    rows = [listed("a", f"s{k}", 1) for k in range(5)] + [listed("a", "s9", 0)]
    assert choose_striking(rows, [2.0, 1.0, 7.0, 7.0, 3.0, 99.0].__getitem__) == [2]
    # Of many, twelve are looked at.
    looked_at: list[int] = []

    def measure(row: int) -> float:
        looked_at.append(row)
        return float(row)

    choose_striking([listed("a", f"s{k}") for k in range(500)], measure)
    assert len(looked_at) == 12


def test_blur_lowers_sharpness() -> None:
    rng = np.random.default_rng(5)
    sharp = cv2.resize(rng.integers(0, 255, (40, 60, 3), np.uint8), (600, 400), interpolation=cv2.INTER_NEAREST)
    values = [
        measure_sharpness(encode_png(np.asarray(cv2.GaussianBlur(sharp, (0, 0), sigma) if sigma else sharp, np.uint8)))
        for sigma in (0, 2, 6)
    ]
    assert values[0] > 2 * values[1] > 4 * values[2]


def test_the_example_has_two_marked_images(looked: Looked) -> None:
    dataset = load(looked.folder)
    item = choose_example(dataset)
    assert (item.question_type, len(item.images)) == ("multi-choice", 2)
    assert all(one.ops for one in RowEvidence.of(item).shown())
    assert choose_example(load(looked.folder)).id == item.id
