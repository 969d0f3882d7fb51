from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.importers.hub import imported, photo, write_parquet, write_photo, write_zip
from vgbench_gen.importers.base import ASKED, ORIGIN, importers

OPTIONS = "A: 1 2 3\n4 5 6\n7 8 9\n\nB: 2 2 3\n4 5 6\n7 8 9\n\nC: 3 2 3\n4 5 6\n7 8 9\n\nD: 4 2 3\n4 5 6\n7 8 9\n"
CONTEXT = f"Your task is computing the 3x3 homography matrix.\nSelect from the following choices.\n{OPTIONS}"
QUESTION = "Please compute the 3x3 homography matrix between these two images."
DOMAINS = {
    "Homography_estimation": "2D-spatial", "Image_Spatial_Transformation_Estimation": "2D-spatial",
    "point_tracking": "2D-spatial", "threeD_Depth_Estimation": "3D-spatial", "threeD_Object_Detection": "3D-spatial",
    "threeD_Object_Tracking": "3D-spatial", "threeD_Pose_Estimation": "3D-spatial", "Multiview_reasoning": "3D-spatial",
    "visual_correspondence_scannet": "High-level-obj-semantic",
    "visually_grounded_reasoning_nlvr2": "High-level-obj-semantic",
    "visually_grounded_reasoning_marvl": "High-level-obj-semantic",
}  # fmt: skip


def row(task: str, number: int, **changes: Any) -> dict[str, Any]:
    paths = [f"./{DOMAINS.get(task, 'x')}/{task}/{task}_{number}_{k}.jpg" for k in range(2)]
    fields = {
        "task": task, "visual_input_component": "natural image", "source": "s", "options": OPTIONS,
        "question": QUESTION, "context": CONTEXT, "input_image_path": paths, "output": "C",
    }  # fmt: skip
    return fields | changes


def test_ten_tasks_of_sixty(tmp_path: Path) -> None:
    rows = [row(task, 3) for task in DOMAINS] + [row("gui_app_recognition", 1), row("ravens", 2)]
    write_parquet(tmp_path / "all.parquet", rows)
    for task, domain in DOMAINS.items():
        for k in range(2):
            if domain == "3D-spatial":
                continue
            write_photo(tmp_path / domain / task / f"{task}_3_{k}.jpg", k)
    # What was not unpacked is read where it is.
    deep = {
        f"{task}/{task}_3_{k}.jpg": photo(5 + k) for task, d in DOMAINS.items() if d == "3D-spatial" for k in (0, 1)
    }
    write_zip(tmp_path / "3D-spatial.zip", deep)
    found = imported("mmiu", tmp_path, tmp_path / "media", published=True)
    assert not found.bad
    assert {item.category_origin: item.subcategory for item in found.items} == {
        "Homography_estimation": "2D Transformation", "Image_Spatial_Transformation_Estimation": "2D Transformation",
        "point_tracking": "3D Tracking", "threeD_Depth_Estimation": "Absolute",
        "threeD_Object_Detection": "3D Localization", "threeD_Object_Tracking": "3D Localization",
        "threeD_Pose_Estimation": "3D Camera Pose", "Multiview_reasoning": "3D Camera Pose",
        "visual_correspondence_scannet": "Point Correspondence",
        "visually_grounded_reasoning_nlvr2": "2D Localization", "visually_grounded_reasoning_marvl": "2D Localization",
    }  # fmt: skip
    first = found.items[0]
    assert first.evidence[ASKED]["text"] == f"{CONTEXT}\n{QUESTION}"
    assert first.options == tuple(f"{k} 2 3\n4 5 6\n7 8 9" for k in (1, 2, 3, 4))
    assert (first.answer, first.context, first.input_modality) == ("C", QUESTION, "multi-images")
    assert first.question == "Your task is computing the 3x3 homography matrix."
    assert first.evidence[ORIGIN]["index"] == first.index_origin == 3
    assert len({item.id for item in found.items}) == 11
    told = "\n".join(found.report.differences)
    assert "visually_grounded_reasoning: 2 rows where 400 are known" in told
    assert "Multiview_reasoning: 1 rows where 133 are known" in told


def test_nested_rows_and_bad_ones(tmp_path: Path) -> None:
    flat = row("point_tracking", 5)
    nested = {
        "task": "point_tracking",
        "options": OPTIONS,
        "input": {key: flat[key] for key in ("question", "context", "input_image_path")},
        "output": {"output_text": "D"},
    }
    write_parquet(tmp_path / "nested/all.parquet", [nested])
    for name in flat["input_image_path"]:
        write_photo(tmp_path / "nested/MMIU-Benchmark" / name, 1)
    [item] = imported("mmiu", tmp_path / "nested", tmp_path / "media").items
    assert (item.answer, item.index_origin, item.benchmark) == ("D", 5, "MMIU")
    bad = [row("point_tracking", 1), row("point_tracking", 2, input_image_path=[]),
           row("point_tracking", 3, options="A: x\nB: y"), row("point_tracking", 4, output="E"),
           row("point_tracking", 6, input_image_path=["../../secret_0_0.jpg"])]  # fmt: skip
    write_parquet(tmp_path / "bad/all.parquet", bad)
    for k in range(2):
        write_photo(tmp_path / f"bad/2D-spatial/point_tracking/point_tracking_4_{k}.jpg", k)
    found = imported("mmiu", tmp_path / "bad", tmp_path / "media")
    assert not found.items
    assert found.bad == {"answer": 1, "context": 1, "image_missing": 1, "image_name": 1, "input_image_path": 1}


def test_sizes() -> None:
    parts = importers["mmiu"].parts
    assert len(parts) == 10
    assert sum(part.expected or 0 for part in parts.values()) == importers["mmiu"].published == 2133
