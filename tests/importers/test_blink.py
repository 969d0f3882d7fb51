from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.importers.hub import hub_image, imported, write_parquet
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.evaluation.prompting import find_prompt_set, make_full_text, rotate_options
from vgbench_gen.importers.base import ASKED, ORIGIN, importers

QUESTION = "How many fingers are in front of the bathtub?"
PROMPT = f"{QUESTION}\nSelect from the following choices.\n(A) 4\n(B) 3\n(C) 2\n(D) 5"
TASKS = ("Counting", "Object_Localization", "Relative_Depth", "Spatial_Relation", "Visual_Correspondence")


def row(task: str, number: int, images: int = 1, **changes: Any) -> dict[str, Any]:
    """The columns of the Hub's files; images that a task has not are null."""
    shown = {f"image_{k}": hub_image(10 * number + k) if k <= images else None for k in range(1, 5)}
    fields = {
        "idx": f"val_{task}_{number}", "sub_task": task, "question": QUESTION, **shown, "choices": ["4", "3", "2", "5"],
        "answer": "(B)", "prompt": PROMPT, "explanation": "",
    }  # fmt: skip
    return fields | changes


def written(folder: Path, **rows: list[dict[str, Any]]) -> Path:
    for task in TASKS:
        made = rows.get(task, [row(task, 1, 2 if task == "Visual_Correspondence" else 1)])
        write_parquet(folder / task / "val-00000-of-00001.parquet", made)
        write_parquet(folder / task / "test-00000-of-00001.parquet", [row(task, 1, answer="hidden")])
    return folder


def test_five_tasks_count_for_spatialscore_and_the_sixth_is_blinks_own(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        Counting=[
            row("Counting", 18),
            row("Counting", 19, answer="hidden"),
            row("Counting", 20, choices=["4", "3"]),
            row("Counting", 21, prompt=None),
        ],
    )
    write_parquet(folder / "Multi-view_Reasoning/val-00000-of-00001.parquet", [row("Multi-view_Reasoning", 1, 3)])
    found = imported("blink", folder, tmp_path / "media", published=True)
    assert [item.category_origin for item in found.items] == ["Counting", *TASKS]
    first, put_together = found.items[:2]
    assert first.evidence[ASKED]["text"] == put_together.evidence[ASKED]["text"] == PROMPT
    assert first.evidence[ORIGIN]["index"] == "val_Counting_18"
    assert (first.question, first.options, first.answer) == (QUESTION, ("4", "3", "2", "5"), "B")
    assert [item.subcategory for item in found.items[1:]] == [
        "Object Counting", "2D Localization", "Relative", "Orientation", "Point Correspondence"
    ]  # fmt: skip
    assert [item.input_modality for item in found.items[-2:]] == ["single-image", "multi-images"]
    assert found.bad == {"answer": 1, "prompt": 1}
    assert found.report.left_out == 1
    whole = imported("blink", folder, tmp_path / "media")
    assert len(whole.items) == 7
    assert {item.benchmark for item in whole.items} == {"BLINK"}
    assert {item.category_origin: len(item.images) for item in whole.items} == {
        **dict.fromkeys(TASKS, 1), "Visual_Correspondence": 2, "Multi-view_Reasoning": 3
    }  # fmt: skip
    # The words asked are the published ones; turned, the options change places in them.
    words = find_prompt_set("paper")
    assert make_full_text(first, words) == PROMPT
    assert make_full_text(rotate_options(first, 1), words).endswith("(A) 3\n(B) 2\n(C) 5\n(D) 4")


def test_missing_tasks_and_columns_are_named(tmp_path: Path) -> None:
    folder = written(tmp_path)
    assert len(imported("blink", folder, tmp_path / "media").items) == 5
    (folder / "Relative_Depth/val-00000-of-00001.parquet").unlink()
    with pytest.raises(DatasetError, match=r"Relative_Depth/\*\*/val"):
        imported("blink", folder, tmp_path / "media")
    bare = row("Relative_Depth", 1)
    del bare["answer"]
    write_parquet(folder / "Relative_Depth/val-00000-of-00001.parquet", [bare])
    with pytest.raises(DatasetError, match=r"the columns idx, .*; expected among them answer"):
        imported("blink", folder, tmp_path / "media")


def test_sizes() -> None:
    parts = importers["blink"].parts
    assert sum(part.expected or 0 for part in parts.values()) == 814
    assert sum(part.expected or 0 for part in parts.values() if part.published) == importers["blink"].published == 681
