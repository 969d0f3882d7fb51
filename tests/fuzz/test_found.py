"""What the fuzzer found, each by its name."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from tests.importers import source_files
from tests.kills.__main__ import write_built
from tests.publish.exported import written
from tests.scenes import ca1m_writer, scannetpp_writer
from vgbench_gen.core.errors import DatasetError, FrameError
from vgbench_gen.evaluation.benchmarks.rover.samples import encode_picture, read_samples
from vgbench_gen.evaluation.imported import import_log
from vgbench_gen.evaluation.saved import read_scores
from vgbench_gen.importers._dataset import import_source
from vgbench_gen.importers._files import Place
from vgbench_gen.pipeline.redraw import RedrawSettings, redraw
from vgbench_gen.quality.review.log import VerdictLog, read_logs
from vgbench_gen.report.gallery_verdicts import read_audit
from vgbench_gen.scenes.files import decode_depth_u16
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import read_manifest
from vgbench_gen.store.shards import iterate_rows, open_parquet

ROOT = Path(__file__).parents[2]
OPEN = """
import sys
from pathlib import Path
from vgbench_gen.scenes.video import Video
Video(Path(sys.argv[1]), "rgb.mkv")
"""


def test_a_video_below_a_folder_whose_name_is_no_utf8_does_not_end_the_process(tmp_path: Path) -> None:
    """OpenCV died of it (SIGSEGV), and with it the build."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    folder.mkdir()
    size = scannetpp_writer.SIZE
    scannetpp_writer.write_video(tmp_path / "rgb.mkv", [scannetpp_writer.ramp(size, k) for k in range(2)])
    (tmp_path / "rgb.mkv").rename(folder / "rgb.mkv")
    command = [sys.executable, "-c", OPEN, str(folder / "rgb.mkv")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "SceneError: rgb.mkv: found a path that is no UTF-8" in done.stderr


def test_a_table_whose_name_is_no_utf8_is_refused(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.parquet"))
    path.write_bytes(b"PAR1")
    with pytest.raises(DatasetError, match="an unreadable file"):
        open_parquet(path)


def test_an_audit_of_too_many_lists_in_each_other_is_refused(tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit/audit.json").write_text("[" * 100_000)
    with pytest.raises(DatasetError, match="no audit"):
        read_audit(tmp_path, {})


def test_an_index_of_thousands_of_digits_costs_its_row(tmp_path: Path) -> None:
    table = source_files.mmvp_original(tmp_path / "source") / "Questions.csv"
    table.write_text(table.read_text().replace("99,", "9" * 5000 + ",", 1))
    found = import_source("mmvp", Place(tmp_path / "source"), tmp_path / "out")
    assert found.items == 3
    assert [row.reason for report in found.reports for row in report.bad] == ["index"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("manifest.json", lambda folder: open_parquet(folder / "manifest.json")),
        ("manifest.json", read_manifest),
        ("ann.jsonl", read_logs),
        ("ann.jsonl", lambda folder: VerdictLog(folder, "ann")),
        ("m.jsonl", lambda folder: read_scores(folder / "m.jsonl", folder / "replies")),
        (f"ab/ab{'0' * 30}.png", lambda folder: MediaStore(folder).get(f"ab{'0' * 30}.png")),
    ],
)
def test_a_pipe_in_the_place_of_a_file_of_a_dataset_is_not_waited_for(
    tmp_path: Path, name: str, read: Callable[[Path], object]
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(DatasetError, match="no regular file"):
        read(tmp_path)


def test_a_column_whose_name_is_no_utf8_is_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"question": ["x"]}), path, store_schema=False)
    data = path.read_bytes()
    at = data.rindex(b"question")  # in the notes on the column's bytes; the schema names it before
    path.write_bytes(data[:at] + b"\xff\xfe" + data[at + 2 :])
    with pytest.raises(DatasetError, match="an unreadable file"):
        list(iterate_rows([path]))


def test_half_a_character_in_an_annotation_does_not_end_an_import(tmp_path: Path) -> None:
    """It went into the manifest's list of bad rows, which could not be written."""
    notes = source_files.spatialsense(tmp_path / "source") / "annotations.json"
    notes.write_text(notes.read_text().replace("lamp", "\\ud800lamp", 1))
    found = import_source("spatialsense", Place(tmp_path / "source"), tmp_path / "out")
    assert found.items
    assert read_manifest(tmp_path / "out")


def test_an_excel_file_with_damaged_members_is_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    """zlib and zipfile raise errors of their own, which ended `score`."""
    source = written(tmp_path / "set")
    book = Workbook()
    book.worksheets[0].append(["index", "prediction"])
    book.save(tmp_path / "log.xlsx")
    data = bytearray((tmp_path / "log.xlsx").read_bytes())
    data[60:200] = b"\xff" * 140
    (tmp_path / "log.xlsx").write_bytes(data)
    with pytest.raises(DatasetError, match="a log of vlmevalkit"):
        import_log(source, tmp_path / "log.xlsx", "vlmevalkit")


def test_an_excel_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    source = written(tmp_path / "set")
    with zipfile.ZipFile(tmp_path / "log.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 150_000_000)
    with pytest.raises(DatasetError, match="150000000 bytes when unpacked; at most 100000000"):
        import_log(source, tmp_path / "log.xlsx", "vlmevalkit")


@pytest.mark.timeout(30)
def test_a_pipe_among_logs_and_samples_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1_samples_x.jsonl")
    with pytest.raises(DatasetError, match="no regular file"):
        import_log(written(tmp_path / "set"), tmp_path, "lmms-eval")
    with pytest.raises(DatasetError, match="no regular file"):
        list(read_samples(tmp_path / "1_samples_x.jsonl"))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("truth", 99), ("frame_ids", None), ("frame_ids", []), ("frame_ids", ["no frame"]), ("scene_id", "x" * 300),
        ("cameras", "{}"), ("pictures", "{}"),
    ],
)  # fmt: skip
def test_a_fact_that_is_none_is_named(tmp_path: Path, column: str, value: object) -> None:
    """`distractors` and `build` ended in a traceback where a cell of a shard was damaged."""
    write_built(tmp_path)
    (shard,) = (tmp_path / "out/facts").rglob("*.parquet")
    table = pq.read_table(shard)
    values = table[column].to_pylist()
    values[table["task"].to_pylist().index("relative_depth")] = value  # which is asked with options
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(values, table[column].type)), shard)
    with pytest.raises(DatasetError, match="box__scenes_000"):
        redraw(tmp_path / "out", RedrawSettings({"default": 1.0}, 1), tmp_path / "new")


def test_a_chunk_that_claims_gigabytes_is_refused_before_they_are_taken() -> None:
    """OpenCV took 3 GB for a depth image of 2 KB."""
    data = bytearray(ca1m_writer.png(np.full((24, 32), 1000, np.uint16)))
    assert decode_depth_u16(bytes(data), "depth").shape == (24, 32)
    data[33:37] = (3 << 30).to_bytes(4, "big")
    with pytest.raises(FrameError, match="a chunk that reaches beyond the end"):
        decode_depth_u16(bytes(data), "depth")


@pytest.mark.timeout(30)
def test_pictures_for_a_judge_are_bounded_before_they_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "huge.png").touch()
    os.truncate(tmp_path / "huge.png", 1 << 40)
    with pytest.raises(DatasetError, match="no regular file"):
        encode_picture(tmp_path / "pipe.png", "x")
    with pytest.raises(DatasetError, match="more than"):
        encode_picture(tmp_path / "huge.png", "x")


def test_a_log_that_is_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "1_samples_x.jsonl"
    log.symlink_to(log)
    with pytest.raises(DatasetError, match="no readable file"):
        import_log(written(tmp_path / "set"), log, "lmms-eval")


def test_a_fact_with_an_infinite_margin_is_named(tmp_path: Path) -> None:
    write_built(tmp_path)
    (shard,) = (tmp_path / "out/facts").rglob("*.parquet")
    table = pq.read_table(shard)
    place = table.schema.get_field_index("margin")
    margins = pa.array([math.inf] * len(table), table["margin"].type)
    pq.write_table(table.set_column(place, table.schema.field(place), margins), shard)
    with pytest.raises(DatasetError, match="not finite"):
        redraw(tmp_path / "out", RedrawSettings({"default": 1.0}, 1), tmp_path / "new")
