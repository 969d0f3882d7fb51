"""Sources put together: repeats, images that look alike, scenes that were trained on, totals, and the verb."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import vgbench_gen
from tests.importers import source_files
from tests.importers.source_files import photo
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Item
from vgbench_gen.importers import _report
from vgbench_gen.importers._dataset import assemble, find_places
from vgbench_gen.importers._reading import make_item
from vgbench_gen.importers._report import PUBLISHED
from vgbench_gen.importers._words import lettered_words
from vgbench_gen.importers.base import ScoreCategory, SourceRow, importers
from vgbench_gen.importers.places import TrainingScenes, read_training_scenes
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import dataset_fingerprint, read_manifest
from vgbench_gen.store.shards import write_items

OPTIONS = ["one metre", "two metres"]


def question(
    key: str, *images: str, answer: str = "A", scans: str = "", scene: str = "", benchmark: str = "VGBench"
) -> Item:
    words = lettered_words("How deep is it?", OPTIONS)
    row = SourceRow(0, "multi-choice", words, answer, (), "metric_depth_vqa", ScoreCategory.ABSOLUTE,
                    key=key, scans=scans, scene=scene)  # fmt: skip
    return make_item(row, name="Q", benchmark=benchmark, source=benchmark, images=images or ("x.jpg",), index=0)


def find_leaked(items: list[Item], scenes: TrainingScenes) -> list[str]:
    return [item.id for item in items if scenes.has(item)]


def made_smaller(data: bytes) -> bytes:
    stream = io.BytesIO()
    with Image.open(io.BytesIO(data)) as picture:
        picture.resize((picture.width * 2 // 3, picture.height * 2 // 3)).save(stream, "JPEG", quality=60)
    return stream.getvalue()


def test_repeats_and_contradictions_need_the_same_images() -> None:
    items = [question("a", "1.jpg"), question("b", "1.jpg"), question("c", "1.jpg", answer="B"), question("d", "2.jpg")]
    assert _report.find_repeats(items) == ([("Q-a", "Q-b")], [("Q-a", "Q-b", "Q-c")])


def test_a_copy_in_another_size_and_quality_is_found_and_another_photo_is_not(tmp_path: Path) -> None:
    media = MediaStore(tmp_path)
    first, copy, other = (media.put(data, "jpg") for data in (photo("a"), made_smaller(photo("a")), photo("b")))
    items = [question("a", first), question("b", copy), question("c", copy, answer="B"), question("d", other)]
    items.append(question("e", first, copy))  # another number of images is another question
    items.append(question("f", copy, benchmark="SpatialScore/MMVP"))
    hashes = _report.hash_images([first, copy, other], media)
    same, different = _report.find_near_repeats(items, hashes)
    assert sorted(same) == [("Q-a", "Q-b"), ("Q-a", "Q-f")]
    assert sorted(different) == [("Q-a", "Q-c")]
    assert _report.find_shared_images(items, hashes) == {"MMVP and VGBench": 1}


def test_images_are_shared_by_the_bits_in_which_their_hashes_differ() -> None:
    rng = rng_for(3, "hashes")
    first = [int(look) for look in rng.integers(0, 2**63, 60, dtype=np.uint64)]
    bits = [rng.choice(64, int(rng.integers(1, 10)), replace=False) for _ in first]
    near = [look ^ sum(1 << int(k) for k in flips) for look, flips in zip(first, bits, strict=True)]
    hashes = {f"{name}{k}": look for name, looks in (("a", first), ("b", near)) for k, look in enumerate(looks)}
    items = [question(name, name, benchmark=name[0].upper()) for name in hashes]
    expected = sum(any((one ^ other).bit_count() <= _report.NEAR_BITS for other in near) for one in first)
    assert 10 < expected < 60
    assert _report.find_shared_images(items, hashes) == {"A and B": expected}


def test_many_plain_images_take_no_pairs_of_their_own(tmp_path: Path) -> None:
    hashes = {f"{k}.jpg": 0 for k in range(3000)}
    items = [question(str(k), f"{k}.jpg", benchmark=("A", "B")[k % 2]) for k in range(3000)]
    assert _report.find_shared_images(items, hashes) == {"A and B": 1500}


LIST = """# scenes
scannet/scene0011_00
scannetpp/7c9be0a21f
scene0707_00   # in any data set
42446540
0a5c013435/iphone
"""


@pytest.mark.parametrize(
    ("scans", "scene", "is_leaked"),
    [
        ("scannet", "scene0011_00", True),
        ("ScanNet", "scene0011_02", True),  # the same room, scanned again
        ("scannet", "scene0012_00", False),
        ("scannet", "scene0707_01", True),
        ("scannetpp", "7c9be0a21f/iphone", True),
        ("scannetpp", "7c9be0a21e", False),
        ("scannetpp", "0a5c013435/dslr", True),
        ("arkitscenes", "42446540", True),
        ("ca1m", "ca1m-val-42446540", True),
        ("ca1m", "42446541", False),
        ("coco", "scene0011_00", False),
    ],
)
def test_scenes_and_rescans_that_were_trained_on(scans: str, scene: str, is_leaked: bool, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(LIST)
    scenes = read_training_scenes(tmp_path / "train.txt")
    assert bool(find_leaked([question("a", scans=scans, scene=scene)], scenes)) is is_leaked


def test_videos_of_one_visit_are_one_place(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("ca1m/42446540\n")
    (tmp_path / "metadata.csv").write_text(
        "video_id,visit_id,fold\n42446540,421254,Training\n42446541,421254,Training\n42446542,7,Training\n"
    )
    videos = [question(video, scans="arkitscenes", scene=video) for video in ("42446540", "42446541", "42446542")]
    alone = read_training_scenes(tmp_path / "train.txt")
    assert find_leaked(videos, alone) == ["Q-42446540"]
    visits = read_training_scenes(tmp_path / "train.txt", tmp_path / "metadata.csv")
    assert find_leaked(videos, visits) == ["Q-42446540", "Q-42446541"]


def test_a_dataset_tells_what_was_trained_on(tmp_path: Path) -> None:
    scenes = read_training_scenes(build(tmp_path / "train"))
    rooms = [question(scene, scans="scannet", scene=scene) for scene in ("scene0015_00", "scene0016_00")]
    assert find_leaked(rooms, scenes) == ["Q-scene0015_00"]


def test_the_published_tables_contradict_each_other_as_told() -> None:
    assert 3622 + 1222 + 1132 == 5976 == PUBLISHED["question type"]["judgment"] + 69
    of = PUBLISHED["source"]
    single = sum(of[name] for name in ("SpatialBench", "QSpatialBench", "MMVP", "RealWorldQA", "VSR", "CV-Bench",
                                       "SpatialSense", "3DSRBench"))  # fmt: skip
    assert single + (120 + 122 + 124 + 143) + 2800 == 17458 == PUBLISHED["modality"]["single-image"] + 400


def sources(folder: Path) -> Path:
    source_files.mmvp_original(folder / "MMVP")
    source_files.qspatialbench(folder / "Q-Spatial-Bench")
    source_files.cvbench(folder / "CV-Bench")
    return folder


def build(folder: Path) -> Path:
    """Two questions of ours: one about a photo that CV-Bench has too, one about a room that was scanned again."""
    media = MediaStore(folder / "media")
    shared = media.put(photo("cvbench 0", form="PNG"), "png")
    own = media.put(photo("own"), "jpg")
    items = [
        question("a", shared, scans="wildrgbd", scene="ball/1"),
        question("b", own, scans="scannet", scene="scene0015_01"),
    ]
    write_items(folder / "items", items, media)
    return folder


def test_an_assembly_counts_compares_and_guards(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("scannet/scene0015_02\n")
    given: dict[str, Any] = {
        "vgbench": build(tmp_path / "build"),
        "training": read_training_scenes(tmp_path / "train.txt"),
    }
    places = find_places(sources(tmp_path / "sources"))
    found = assemble(places, tmp_path / "out", **given)
    dataset = vgbench_gen.load(tmp_path / "out")
    kept = [item.id for item in dataset]
    assert len(kept) == 4 + 2 + 3 + 1  # MMVP, two of QSpatialBench, CV-Bench, one of ours
    assert found.notes["leaked"]["benchmarks"] == {"QSpatialBench-ScanNet": 2, "VGBench": 1}
    assert not set(found.notes["leaked"]["ids"]) & set(kept)
    assert [item.index for item in dataset] == list(range(10))
    assert {item.benchmark for item in dataset} == {
        "SpatialScore/MMVP", "SpatialScore/QSpatialBench-Plus", "SpatialScore/cvbench", "SpatialScore/VGBench",
    }  # fmt: skip
    assert found.notes["shared_images"] == {"VGBench and cvbench": 1}
    assert set(found.absent) == {i.title for i in importers.values() if i.published} - {
        "MMVP",
        "QSpatialBench",
        "CV-Bench",
    }
    totals = {(t["table"], t["name"]): (t["here"], t["published"]) for t in found.notes["totals"]}
    assert totals["all", "questions"] == (10, 28093)
    assert totals["source", "CV-Bench"] == (3, 2638)
    assert totals["source", "QSpatialBench"] == (2, 271)
    assert totals["category", "Others"] == (4, 1877)
    assert totals["question type", "open-ended"] == (2, 4353)
    manifest = read_manifest(tmp_path / "out")
    assert manifest["fingerprint"] == found.fingerprint == dataset_fingerprint(dataset)
    # The same sources give the same dataset, and with --keep-leaked all of it.
    again = assemble(places, tmp_path / "again", **given)
    assert again.fingerprint == found.fingerprint
    assert assemble(places, tmp_path / "again", keep_leaked=True, **given).items == 13


def test_published_sizes_add_up() -> None:
    for table in PUBLISHED.values():
        assert sum(table.values()) == 28093


def test_nothing_to_assemble_is_an_error_that_names_the_sources(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="MMVP: no folder"):
        assemble(find_places(tmp_path / "empty"), tmp_path / "out")
    assert not (tmp_path / "out" / "items").exists()


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    assert main(list(arguments)) == status
    out, error = capsys.readouterr()
    return json.loads(out) if "--json" in arguments else out + error


def test_import_ask_score_and_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    found = run(capsys, "import", "spatialscore", "--from", str(sources(tmp_path / "sources")), "--out", out, "--json")
    assert (found["items"], found["absent"]["VGBench"]) == (11, "no build given")
    script = tmp_path / "script.jsonl"
    lines = [
        {"match": "****Please select", "reply": "(B)"},
        {"match": "width of the desk", "reply": r"\scalar{150} \distance_unit{cm}"},
        {"match": "scalar {scalar}", "reply": "never sent in this notation"},
        {"match": r"\scalar{scalar}", "reply": r"\scalar{9} \distance_unit{m}"},
    ]
    script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run(capsys, "eval", out, "--model", f"scripted:{script}", "--model", "baseline:truth")
    scored = {row["model"]: row for row in run(capsys, "compare", out, "--json")["models"]}
    # B is right for two of MMVP's four and two of CV-Bench's three; 150 cm for 1.51 m, and nothing else of the lengths.
    assert scored["script.jsonl" if "script.jsonl" in scored else f"scripted:{script}"]["sane"] == pytest.approx(5 / 11)
    assert scored["baseline:truth"]["sane"] == scored["baseline:truth"]["official"] == 1
    tables = run(capsys, "compare", out, "--json")
    text = json.dumps(tables)
    for title in ("SpatialScore categories (layout of Tables 2 and 3)", "CV-Bench", "MMVP", "Other sources"):
        assert title in text


def test_one_source_is_imported_under_its_own_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = source_files.cvbench(tmp_path / "source")
    out = tmp_path / "out"
    text = run(capsys, "import", "cvbench", "--from", str(source), "--out", str(out))
    assert "CV-Bench: 4 rows, 3 questions, 1 not taken (task 1)" in text
    assert "Count: 1 rows where 788 are known" in text
    assert {item.benchmark for item in vgbench_gen.load(out)} == {"CV-Bench"}
    first = (out / "items" / "items-00000-of-00001.parquet").read_bytes()
    assert "found no recipe" in run(capsys, "verify", str(out), status=2)  # there are no scans to check it against
    run(capsys, "import", "cvbench", "--from", str(source), "--out", str(out))
    assert (out / "items" / "items-00000-of-00001.parquet").read_bytes() == first


def test_what_cannot_be_imported_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert "Did you mean cvbench?" in run(capsys, "import", "cv-bench", "--from", ".", "--out", out, status=2)
    assert "no folder" in run(capsys, "import", "mmvp", "--from", str(tmp_path / "no"), "--out", out, status=2)
    assert "no repository on the Hub" in run(capsys, "import", "spatialsense", "--out", out, status=2)
    assert "belong to" in run(capsys, "import", "mmvp", "--from", ".", "--out", out, "--keep-leaked", status=2)
