from __future__ import annotations

import base64
import csv
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.importers.hub import hub_image, imported, photo, write_parquet, write_photo, write_zip
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.importers.base import ASKED, ORIGIN, importers

QUESTION = "Consider the real-world 3D orientations of the objects. Are they facing same or very different directions?"
LINK = "http://images.cocodataset.org/train2017/000000156296.jpg"


def row(qid: str, seed: int = 1, category: str = "multi_object_same_direction", **changes: Any) -> dict[str, Any]:
    fields = {
        "index": str(seed), "qid": qid, "question": QUESTION, "A": "same or similar directions",
        "B": "very different directions", "C": "", "D": "", "answer": "B", "category": category,
        "image": base64.b64encode(photo(seed)).decode(), "image_url": LINK,
    }  # fmt: skip
    return fields | changes


def written(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)


def test_flips_are_pairs_and_turned_copies_are_passed_over(tmp_path: Path) -> None:
    sides = {"A": "front", "B": "left", "C": "back", "D": "right", "answer": "D", "question": "Which\nside?"}
    rows = [
        row("2B3POEXX"), row("2B3POEXX-flip", 2, answer="A"), row("2B3POEXX-1"), row("2B3POEXX-flip-1"),
        row("2Q0M0IF1", 3, "orientation_viewpoint", **sides, image_url=""),
        row("NF7XUVPP", 4, "height_higher", C="nan"), row("9W5Z497F", 5, "location_above"), row("AAAAAAAA", 6, "mood"),
        row("what is this?"),
        row("BBBBBBBB", image="%" * 400), row("CCCCCCCC", answer="C"),
    ]  # fmt: skip
    written(tmp_path / "3dsrbench_v1_vlmevalkit.tsv", rows)
    found = imported("3dsrbench", tmp_path, tmp_path / "media", published=True)
    assert [item.evidence[ORIGIN]["index"] for item in found.items] == [
        "2B3POEXX", "2B3POEXX-flip", "2Q0M0IF1", "NF7XUVPP", "9W5Z497F"
    ]  # fmt: skip
    first, flip, sided = found.items[:3]
    assert first.evidence[ASKED]["text"] == f"{QUESTION}\n(A) same or similar directions\n(B) very different directions"
    assert sided.evidence[ASKED]["text"] == "Which\nside?\n(A) front\n(B) left\n(C) back\n(D) right"
    assert (first.answer, flip.answer, sided.answer) == ("B", "A", "D")
    assert first.pair_id == flip.pair_id != sided.pair_id
    assert (first.source, first.scene_id) == (flip.source, flip.scene_id) == ("coco", "000000156296")
    assert (sided.source, sided.scene_id) == ("3DSRBench", "2Q0M0IF1")
    assert [item.subcategory for item in found.items[1:]] == ["Orientation", "Orientation", "Size", "3D Localization"]
    assert found.media.get(first.images[0]) == photo(1)
    assert found.bad == {"answer": 1, "image_broken": 1, "qid": 1}
    assert found.report.left_out == 1
    assert imported("3dsrbench", tmp_path, tmp_path / "media").bad["category"] == 1
    assert "multi_object: 5 rows where 1722 are known" in found.report.differences


@pytest.mark.parametrize("archived", [False, True])
def test_a_flip_that_names_its_photo_is_mirrored(tmp_path: Path, archived: bool) -> None:
    rows = [row("2B3POEXX", image=None), row("2B3POEXX-flip", image=None)]
    named = [{("index" if key == "qid" else key): value for key, value in one.items() if key not in ("index", "image")}
             for one in rows]  # fmt: skip
    write_parquet(tmp_path / "3dsrbench_v1-00000-of-00001.parquet", named)
    if archived:
        write_zip(tmp_path / "coco_images.zip", {"coco_images/train2017/000000156296.jpg": photo(7)})
    else:
        write_photo(tmp_path / "coco_images/train2017/000000156296.jpg", 7)
    found = imported("3dsrbench", tmp_path, tmp_path / "media")
    first, flip = found.items
    assert flip.evidence[ORIGIN]["index"] == "2B3POEXX-flip"
    np.testing.assert_array_equal(found.pixels(flip), cv2.flip(found.pixels(first), 1))
    assert not np.array_equal(found.pixels(flip), found.pixels(first))


def test_only_line_breaks_end_rows_and_a_damaged_table_is_named(tmp_path: Path) -> None:
    odd = "Which side\u2028 is\x85 it,\x0b\x1c left\r\nor right?"
    bare = "Which side\u2028 is\x85 it?"  # without quotes around it
    rows = [row("2B3POEXX", question=odd), row("2B3POEXY", 2, question=bare)]
    written(tmp_path / "3dsrbench_v1_vlmevalkit.tsv", rows)
    found = imported("3dsrbench", tmp_path, tmp_path / "media")
    assert [item.question for item in found.items] == [odd, bare]
    for data, told in (
        (b"qid\tquestion\xff\n", "byte 0xFF in line 1, which is not UTF-8"),
        (b'qid\t"' + b"x" * (2**27 + 1), "no table"),
    ):
        (tmp_path / "3dsrbench_v1_vlmevalkit.tsv").write_bytes(data)
        with pytest.raises(DatasetError, match=told):
            imported("3dsrbench", tmp_path, tmp_path / "media")


def test_images_inside_parquet_and_missing_ones(tmp_path: Path) -> None:
    rows = [row("2B3POEXX-flip", image=hub_image(9)), row("3B3POEXX", image={"bytes": None, "path": "gone.jpg"})]
    write_parquet(tmp_path / "data/test-00000-of-00001.parquet", rows)
    found = imported("3dsrbench", tmp_path, tmp_path / "media")
    assert [found.media.get(item.images[0]) for item in found.items] == [photo(9)]
    assert found.bad == {"image_missing": 1}


def test_sizes() -> None:
    parts = importers["3dsrbench"].parts
    assert sum(part.expected or 0 for part in parts.values()) == importers["3dsrbench"].published == 5157
