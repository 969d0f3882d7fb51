from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.hub import imported, write_photo
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.importers.base import ASKED, ORIGIN, importers

ZERO_SHOT = {"subj": "car", "obj": "suitcase"}
RANDOM = {"reference_frame": None}


def line(image: int, caption: str, label: Any, **more: Any) -> dict[str, Any]:
    name = f"{image:012}.jpg"
    return {
        "image": name, "image_link": f"http://images.cocodataset.org/train2017/{name}", "caption": caption,
        "label": label, "relation": "behind", "annotator_id": 2, "vote_true_validator_id": "[18, 2]",
        "vote_false_validator_id": "[1]", **more,
    }  # fmt: skip


def written(path: Path, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def test_both_splits_as_the_authors_have_them(tmp_path: Path) -> None:
    rows = [line(550019, "The parking meter is behind the car.", 0, **ZERO_SHOT),
            line(550019, "The car is behind the meter.", 1, **ZERO_SHOT),
            line(7, "The cat is in it.", 1, **ZERO_SHOT), line(550019, "What?", 2, **ZERO_SHOT),
            line(550019, " ", 1, **ZERO_SHOT), line(550019, "It\u2028is.", 1, **ZERO_SHOT), "no object"]  # fmt: skip
    written(tmp_path / "data/splits/zeroshot/test.jsonl", rows)
    written(tmp_path / "data/splits/random/test.jsonl", [line(12, "The dog is on it.", 1, **RANDOM)])
    write_photo(tmp_path / "data/trainval2017/000000550019.jpg", 1)
    write_photo(tmp_path / "coco/val2017/000000000012.jpg", 2)
    found = imported("vsr", tmp_path, tmp_path / "media", published=True)
    first, second, odd = found.items
    assert "'It\u2028is.'" in odd.question
    assert first.evidence[ASKED]["text"] == (
        "Is this statement true based on the image: 'The parking meter is behind the car.'? Answer with Yes or No."
    )
    assert (first.answer, second.answer) == ("No", "Yes")
    assert first.evidence[ORIGIN]["index"] == "000000550019.jpg"
    assert (first.benchmark, first.question_type, first.category, first.subcategory, first.category_origin) == (
        "SpatialScore/VSR-ZeroShot", "judgment", "3D Positional Relation", "Orientation", "unknown"
    )  # fmt: skip
    assert first.images == second.images
    assert (first.source, first.scene_id) == (second.source, second.scene_id) == ("coco", "000000550019")
    assert first.id != second.id
    assert found.bad == {"caption": 1, "image": 1, "image_missing": 1, "label": 1}
    assert found.report.differences[0] == "zeroshot: 7 rows where 1222 are known"
    [other] = imported("vsr-random", tmp_path, tmp_path / "media").items
    assert (other.benchmark, other.answer) == ("VSR-Random", "Yes")
    assert not imported("vsr-random", tmp_path, tmp_path / "media", published=True).items


def test_the_hub_has_one_file_per_split_and_they_are_not_mixed_up(tmp_path: Path) -> None:
    written(tmp_path / "test.jsonl", [line(12, "The dog is on it.", 1, **RANDOM)])
    write_photo(tmp_path / "photos/000000000012.jpg", 2)
    found = imported("vsr-random", tmp_path, tmp_path / "media", images=tmp_path / "photos")
    assert len(found.items) == 1
    with pytest.raises(DatasetError, match="reference_frame; expected the zeroshot split"):
        imported("vsr", tmp_path, tmp_path / "media")
    written(tmp_path / "test.jsonl", [{"image": "x.jpg", "statement": "?"}])
    with pytest.raises(DatasetError, match="the columns image, statement; expected among them caption, label"):
        imported("vsr", tmp_path, tmp_path / "media")


def test_sizes() -> None:
    assert {name: part.expected for name, part in importers["vsr"].parts.items()} == {"zeroshot": 1222}
    assert {name: part.expected for name, part in importers["vsr-random"].parts.items()} == {"random": 2195}
    assert (importers["vsr"].published, importers["vsr-random"].published) == (1222, 0)
