"""The whole benchmark from sample scenes: every published total, counted in the parquet files themselves."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from vgbench_gen.pipeline.build import build

# SpatialScore (arXiv 2505.17012), tables 1, 4 and 5.
BY_FORM = {"judgment": 1132, "multi-choice": 4032, "open-ended": 836}
BY_MODALITY = {"single-image": 2800, "multi-images": 3200}
BY_SOURCE = {"scannet": 1214, "scannetpp": 873, "ca1m": 3289, "wildrgbd": 624}
BY_TASK = {
    "homography_to_matrix": 500, "homography_to_image": 500, "relative_pose": 550, "camera_parameters": 500,
    "view_after_motion": 550, "object_distance": 600, "metric_depth": 550, "relative_depth": 550,
    "point_tracking": 1100, "object_location": 600,
}  # fmt: skip


@pytest.fixture
def samples() -> Path:
    """The full set of sample scenes: VGBENCH_SAMPLES, or `raw_scenes` of the checkout."""
    root = Path(os.environ.get("VGBENCH_SAMPLES", "") or Path(__file__).resolve().parents[2] / "raw_scenes")
    if len(list(root.glob("samples-*/SAMPLES.json"))) < 4:
        pytest.skip("no sample scenes here: make them with `make samples`, or set VGBENCH_SAMPLES to their folder")
    return root


def check_published(out: Path) -> None:
    """Every total of the paper's tables, and the limits that keep the dataset fair."""
    ids = ["scene_id", "group_id", "twin_id", "pair_id"]
    names = ["task", "question_type", "input_modality", "source", "answer", *ids]
    rows: list[dict[str, Any]] = pq.read_table(sorted((out / "items").glob("*.parquet")), columns=names).to_pylist()

    def counts(*columns: str) -> Counter[Any]:
        return Counter(row[columns[0]] if len(columns) == 1 else tuple(row[c] for c in columns) for row in rows)

    assert len(rows) == 6000
    assert counts("question_type") == BY_FORM
    assert counts("input_modality") == BY_MODALITY
    assert counts("source") == BY_SOURCE
    assert counts("task") == BY_TASK
    by_form = counts("task", "question_type")
    assert by_form["object_location", "judgment"] == by_form["object_location", "multi-choice"] == 300
    # Twins: as many true as false claims in every cell, also per source; each truth is asked once.
    answers = counts("task", "source", "question_type", "answer")
    for (task, source, form, answer), number in answers.items():
        if form == "judgment":
            assert number == answers[task, source, form, "No" if answer == "Yes" else "Yes"]
    assert set(Counter(row["twin_id"] for row in rows if row["twin_id"]).values()) == {2}
    assert len({(row["group_id"], row["question_type"]) for row in rows}) == len({row["group_id"] for row in rows})
    # Consistency pairs: a tenth of the items and more.
    assert set(Counter(row["pair_id"] for row in rows if row["pair_id"]).values()) == {2}
    assert sum(bool(row["pair_id"]) for row in rows) >= 600
    # Letters as even as their number allows.
    for task, source in {(row["task"], row["source"]) for row in rows}:
        letters = [answers[task, source, "multi-choice", letter] for letter in "ABCD"]
        assert max(letters) - min(letters) <= 1
    scenes = Counter(source for source, _ in {(row["source"], row["scene_id"]) for row in rows})
    for (task, source, _), number in counts("task", "source", "scene_id").items():
        assert number <= max(0.03, 1.5 / scenes[source]) * BY_TASK[task]
    assert {source for task, source in counts("task", "source") if task.startswith("object")} == {"ca1m"}


@pytest.mark.slow
def test_the_published_benchmark_from_sample_scenes(samples: Path, tmp_path: Path) -> None:
    build("vgbench", samples, tmp_path / "b", workers=len(os.sched_getaffinity(0)))
    check_published(tmp_path / "b")
