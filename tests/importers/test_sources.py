"""Six sources read from small files in the form in which they are distributed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.importers import source_files
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.importers._files import Place
from vgbench_gen.importers._reading import ImportReport, read_source
from vgbench_gen.importers.base import importers, read_origin_index
from vgbench_gen.store.media import MediaStore

Made = tuple[list[Item], ImportReport]
MINE = ("mmvp", "realworldqa", "spatialsense", "spatialbench", "qspatialbench", "cvbench")


def imported(name: str, make: Callable[[Path], Path], folder: Path, published: bool = True) -> Made:
    report = ImportReport(name)
    place, media = Place(make(folder / "source")), MediaStore(folder / "media")
    return list(read_source(importers[name], place, media, report, published)), report


def said(items: Sequence[Item]) -> list[tuple[object, ...]]:
    return [
        (read_origin_index(i), i.question_type, i.category, i.subcategory, i.category_origin, i.answer) for i in items
    ]


def test_mmvp_pairs_and_swapped_keys_are_noted(tmp_path: Path) -> None:
    items, report = imported("mmvp", source_files.mmvp_original, tmp_path)
    others = "Others", "Miscellaneous", "unknown"
    assert said(items) == [(n, "multi-choice", *others, key) for n, key in ((1, "A"), (2, "B"), (99, "A"), (100, "B"))]
    assert [item.pair_id for item in items] == ["MMVP-1", "MMVP-1", "MMVP-50", "MMVP-50"]
    assert items[0].evidence["asked"]["text"].endswith("open or closed?\n(a) Open (b) Closed")
    assert items[0].options == ("Open", "Closed")
    assert ["note" in item.evidence for item in items] == [False, False, True, True]
    assert report.differences == ["all: 4 rows where 300 are known",
                                  "SpatialScore holds 300 of its questions; 4 rows are here"]  # fmt: skip


def test_the_corrected_copy_of_mmvp_needs_no_note(tmp_path: Path) -> None:
    items, report = imported("mmvp", source_files.mmvp_corrected, tmp_path)
    assert [(item.index_origin, item.answer) for item in items] == [(99, "B"), (100, "A")]
    assert not report.notes
    assert all(item.benchmark == "SpatialScore/MMVP" for item in items)


def test_realworldqa_takes_the_form_from_the_key(tmp_path: Path) -> None:
    items, report = imported("realworldqa", source_files.realworldqa, tmp_path)
    assert [(i.index_origin, i.question_type, i.answer) for i in items] == [
        (0, "multi-choice", "B"), (1, "judgment", "No"), (2, "open-ended", "2"), (3, "open-ended", "Downhill"),
    ]  # fmt: skip
    assert items[0].options == ("Left", "Ahead", "Right")
    assert items[0].context.startswith("Please answer directly")
    assert (items[2].answer_value, items[3].answer_value) == ((2.0,), ())
    assert [(bad.where, bad.reason) for bad in report.bad] == [("test-00000-of-00001.parquet:4", "image_missing")]


def test_spatialsense_takes_the_test_split(tmp_path: Path) -> None:
    items, report = imported("spatialsense", source_files.spatialsense, tmp_path)
    relation = "judgment", "3D Positional Relation", "Orientation", "unknown"
    assert said(items) == [("59fb01", *relation, "Yes"), ("59fb02", *relation, "No"), ("59fb03", *relation, "Yes")]
    assert items[1].question == "Is the cat to the left of the mirror? Answer with Yes or No."
    # One photo is one cluster, whatever is asked about it.
    assert [(i.source, i.scene_id) for i in items] == [("flickr", "570_8b")] * 2 + [("nyu", "nyu_bedroom_1")]
    assert [bad.reason for bad in report.bad] == ["image_missing"]
    assert report.rows == 4


def test_spatialbench_has_five_parts_of_three_kinds(tmp_path: Path) -> None:
    items, report = imported("spatialbench", source_files.spatialbench, tmp_path)
    assert [(i.category_origin, i.question_type, i.answer) for i in items] == [
        ("positional", "multi-choice", "A"), ("existence", "judgment", "Yes"), ("counting", "open-ended", "3"),
        ("reach", "judgment", "No"), ("size", "judgment", "No"),
    ]  # fmt: skip
    assert items[2].category == "Counting"
    assert items[0].category == "3D Positional Relation"
    assert len({item.id for item in items}) == 5
    assert not report.bad
    assert len({item.images for item in items}) == 5


def test_qspatialbench_writes_what_the_float_meant(tmp_path: Path) -> None:
    items, report = imported("qspatialbench", source_files.qspatialbench, tmp_path)
    assert [(i.answer, i.answer_value, i.unit) for i in items] == [
        ("1.51 m", (1.51,), "m"), ("35 cm", (35.0,), "cm"), ("0.8 m", (0.8,), "m"), ("1.8 m", (1.8,), "m"),
    ]  # fmt: skip
    assert [i.category for i in items] == ["Object Properties"] + ["Depth and Distance"] * 3
    assert [i.benchmark.partition("/")[2] for i in items] == ["QSpatialBench-Plus"] * 2 + ["QSpatialBench-ScanNet"] * 2
    assert (items[2].source, items[2].scene_id, items[2].licence) == ("scannet", "scene0015_00", "scannet-tou")
    assert not report.bad


def test_qspatialbench_without_frames_of_scannet_says_which(tmp_path: Path) -> None:
    items, report = imported("qspatialbench", lambda top: source_files.qspatialbench(top, False), tmp_path)
    assert len(items) == 2
    assert all("images/scene0015_00/color/0.jpg" in str(bad) for bad in report.bad)
    assert len(report.bad) == 2


def test_cvbench_keeps_the_prompt_word_for_word(tmp_path: Path) -> None:
    items, report = imported("cvbench", source_files.cvbench, tmp_path)
    assert [(read_origin_index(i), i.category_origin, i.category, i.answer) for i in items] == [
        (0, "Count", "Counting", "F"), (1, "Relation", "Object Localization", "B"),
        (1438, "Depth", "Depth and Distance", "B"),
    ]  # fmt: skip
    assert items[0].options == ("1", "3", "0", "2", "5", "4")
    assert items[0].question == "How many walls are in the image?"
    assert items[2].context == "The coordinates are: red: [1, 2]"
    assert items[2].options == ("door", "lamp")
    # A task it does not know is refused and counted.
    assert [(bad.field, bad.reason) for bad in report.bad] == []
    assert report.left_out == 1
    assert "Sorting: 1 rows of a part that is not known" in report.differences
    alone, report = imported("cvbench", source_files.cvbench, tmp_path / "alone", published=False)
    assert [bad.reason for bad in report.bad] == ["task"]
    assert {i.benchmark for i in alone} == {"CV-Bench"}


@pytest.mark.parametrize("name", MINE)
def test_a_folder_without_the_source_says_what_it_has(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(DatasetError, match=r"notes\.txt.*expected files like"):
        imported(name, lambda top: tmp_path, tmp_path)


def test_a_changed_column_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    source_files.parquet(tmp_path / "data" / "test.parquet", [{"image": None, "query": "?", "answer": "B"}])
    with pytest.raises(DatasetError, match=r"image, query, answer; expected among them question"):
        imported("realworldqa", lambda top: tmp_path, tmp_path)


def test_every_importer_says_what_spatialscore_has_of_it() -> None:
    for importer in importers.values():
        known = [part.expected for part in importer.parts.values() if part.published]
        if None not in known:
            assert sum(n or 0 for n in known) == importer.published, importer.title
    assert sum(importer.published for importer in importers.values()) == 28093 - 6000
