"""Questions and scored replies written by hand, for tests of tables and pages."""

from __future__ import annotations

from typing import Any

from vgbench_gen.evaluation.board import Board, Entry, ScoreRow

# The paper's columns by the origin that built and published rows carry (`docs/protocols.md#columns-of-the-tables`).
ORIGINS = {
    "Homo.": "homography_image_to_matrix_vqa",
    "Pose-Est.": "pose_estimation_vqa",
    "Camera": "camera_param_vqa_pairs",
    "3D-Recon.": "reconstruction_vqa",
    "Distance": "object_distance_open_ended_vqa",
    "Depth": "metric_depth_vqa",
    "Tracking": "tracking_vqa_pairs",
    "Obj-Pos.": "object_location_yes_no_vqa",
}


def entry(name: str, **changes: Any) -> Entry:
    """A choice question with four options; the truth is A."""
    fields: dict[str, Any] = {
        "id": name, "dataset": "set", "source": "VGBench", "task": "relative_pose", "ask": "",
        "question_type": "multi-choice", "category": "Camera and Image Transformation",
        "subcategory": "3D Camera Pose", "origin": "pose_estimation_vqa",
        "scans": "scannet", "scene": f"scannet/{name}", "difficulty": "easy", "twin": "", "pair": "", "kind": "letter",
        "truth": "A", "rule": "exact", "chance": 0.25, "options": 4,
    }  # fmt: skip
    return Entry(**fields | changes)


def depth(name: str, truth: float, **changes: Any) -> Entry:
    """An open question for a length in meters."""
    fields: dict[str, Any] = {
        "task": "metric_depth", "question_type": "open-ended", "category": "Depth and Distance",
        "origin": "metric_depth_vqa", "kind": "length", "truth": truth, "rule": "delta", "chance": 0.0, "options": 0,
    }  # fmt: skip
    return entry(name, **fields | changes)


def row(name: str, score: float = 1.0, **changes: Any) -> ScoreRow:
    """A reply with this score, read as A where right and as B where not."""
    fields: dict[str, Any] = {
        "rotation": 0, "epoch": 0, "stage": "", "prompt_set": "paper", "status": "ok",
        "outcome": "right" if score >= 1 else "wrong", "official": score, "strict": score, "followed": True,
        "extracted": "A" if score >= 1 else "B",
    }  # fmt: skip
    return ScoreRow(id=name, score=score, **fields | changes)


def failed(name: str, **changes: Any) -> ScoreRow:
    """A request that got no reply."""
    return row(name, 0.0, outcome="failed", status="api_error", extracted=None, followed=False, **changes)


def board(entries: list[Entry], **models: list[ScoreRow]) -> Board:
    """A board of one data set; `_` in a name stands for `-`."""
    made = Board(tuple(entries))
    for name, rows in models.items():
        made.add(name.replace("_", "-"), {"set": rows})
    return made
