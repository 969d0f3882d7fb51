"""Damaged and oversized files of other people's benchmarks cost the row that names them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from vgbench_gen.importers import _archives, _reading
from vgbench_gen.importers._archives import read_member
from vgbench_gen.importers._files import RowError


def write_zip(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images/one.png", content)
    return path


def test_a_deflate_stream_with_a_hole_is_a_broken_image(tmp_path: Path) -> None:
    """`zlib.error` is neither an OSError nor a BadZipFile."""
    path = write_zip(tmp_path / "a.zip", bytes(range(256)) * 400)
    data = bytearray(path.read_bytes())
    data[50:70] = b"\xff" * 20
    path.write_bytes(data)
    with pytest.raises(RowError, match="invalid") as error:
        read_member(path, "one.png")
    assert error.value.reason == "image_broken"


def test_what_lies_in_the_place_of_an_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(RowError, match=r"a\.zip, which is a Git LFS pointer, not the file\. Run `git lfs pull`"):
        read_member(tmp_path / "a.zip", "one.png")


def test_a_member_is_refused_by_its_stated_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_archives, "MAX_MEMBER_BYTES", 1000)
    path = write_zip(tmp_path / "b.zip", bytes(100_000))
    with pytest.raises(RowError, match="larger than 1000 bytes"):
        read_member(path, "one.png")


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    out = io.BytesIO()
    Image.new("1", (12_000, 8_000)).save(out, "PNG")
    with pytest.raises(RowError, match="12000x8000 pixels"):
        _reading._check_image(out.getvalue(), "png")


def test_of_a_file_that_is_too_long_only_the_start_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reading, "MAX_IMAGE_BYTES", 10)
    (tmp_path / "long").write_bytes(bytes(1000))
    assert len(_reading._read_start(tmp_path / "long")) == 11
