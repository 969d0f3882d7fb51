"""The three packings of depth.bin."""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import lz4.block
import numpy as np
import pytest

from tests.scenes import scannetpp_writer as writer
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.scenes._depth_bin import open_depth_bin


def some_frames(count: int) -> list[Any]:
    """Frames (192, 256) float32 that differ from each other, with whole millimeters."""
    rng = np.random.default_rng(1)
    coarse = rng.integers(300, 6000, (count, 24, 32))
    return [np.kron(c, np.ones((8, 8))).astype(np.float32) / np.float32(1000) + i / 1000 for i, c in enumerate(coarse)]


@pytest.mark.parametrize("variant", ["A", "B", "B16", "C"])
def test_round_trip_in_any_order(tmp_path: Path, variant: str) -> None:
    frames = some_frames(9)
    (tmp_path / "depth.bin").write_bytes(writer.depth_bin(frames, variant))
    depth = open_depth_bin(tmp_path / "depth.bin", "here")
    assert depth.variant == variant[0]
    for index in (0, 5, 2, 2, 8, 1):
        got = depth.read(index)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, frames[index], atol=1e-6)
    for index in (9, -1):
        with pytest.raises(FrameError):
            depth.read(index)
    assert depth.count == 9
    assert depth.note == ""
    depth.close()


@pytest.mark.parametrize("variant", ["B", "C"])
def test_not_finite_and_negative_values_are_unknown(tmp_path: Path, variant: str) -> None:
    frames = some_frames(3)
    frames[0][5, 7:10] = np.nan, np.inf, -np.inf
    frames[0][6, 7] = -1
    (tmp_path / "depth.bin").write_bytes(writer.depth_bin(frames, variant))
    got = open_depth_bin(tmp_path / "depth.bin", "here").read(0)
    assert (got[5, 7:10] == 0).all()
    assert got[6, 7] == 0
    assert (got > 0).sum() == got.size - 4


def test_a_stream_goes_back_through_saved_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = some_frames(1)[0]
    frames = [base + np.float32(i) / 100 for i in range(200)]
    (tmp_path / "depth.bin").write_bytes(writer.depth_bin(frames, "C"))
    depth: Any = open_depth_bin(tmp_path / "depth.bin", "here")
    inflate, calls = depth._inflate_frame, list[int]()

    def counted() -> Any:
        calls.append(1)
        return inflate()

    monkeypatch.setattr(depth, "_inflate_frame", counted)
    for index, most in ((190, 190), (191, 1), (191, 64), (3, 4), (150, 23), (130, 3), (199, 70), (0, 1)):
        calls.clear()
        np.testing.assert_allclose(depth.read(index), frames[index], atol=1e-6)
        assert len(calls) <= most, f"frame {index} took {len(calls)} frames"


def test_a_damaged_record_costs_that_frame(tmp_path: Path) -> None:
    frames = some_frames(5)
    for variant in ("A", "B"):
        data = bytearray(writer.depth_bin(frames, variant))
        (length,) = struct.unpack_from("<I", data, 0)
        data[8 : 4 + length] = bytes(255 - b for b in data[8 : 4 + length])
        (tmp_path / "depth.bin").write_bytes(data)
        depth = open_depth_bin(tmp_path / "depth.bin", "here")
        with pytest.raises(FrameError, match="record 0"):
            depth.read(0)
        np.testing.assert_allclose(depth.read(4), frames[4], atol=1e-6)


def test_truncated_files_lose_their_end(tmp_path: Path) -> None:
    frames = some_frames(5)
    for variant in ("A", "B"):
        (tmp_path / "depth.bin").write_bytes(writer.depth_bin(frames, variant)[:-100])
        depth = open_depth_bin(tmp_path / "depth.bin", "here")
        assert depth.count == 4
        assert "after record 4" in depth.note
        np.testing.assert_allclose(depth.read(3), frames[3], atol=1e-6)
    (tmp_path / "depth.bin").write_bytes(writer.depth_bin(frames, "C")[:-100])
    depth = open_depth_bin(tmp_path / "depth.bin", "here")
    with pytest.raises(FrameError):
        depth.read(4)
    np.testing.assert_allclose(depth.read(3), frames[3], atol=1e-6)
    assert depth.count == 4
    assert "after frame 4" in depth.note


def test_damage_within_a_stream(tmp_path: Path) -> None:
    frames = some_frames(4)
    data = bytearray(writer.depth_bin(frames, "C"))
    middle = len(data) * 5 // 8
    data[middle : middle + 300] = np.random.default_rng(0).bytes(300)
    (tmp_path / "depth.bin").write_bytes(data)
    depth = open_depth_bin(tmp_path / "depth.bin", "here")
    for _ in range(2):
        with pytest.raises(FrameError):
            depth.read(3)
        np.testing.assert_allclose(depth.read(1), frames[1])


def test_without_lz4_only_variant_a_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4", None)
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    frames = some_frames(2)
    (tmp_path / "depth.bin").write_bytes(writer.depth_bin(frames, "A"))
    with pytest.raises(SceneError, match="pip install lz4"):
        open_depth_bin(tmp_path / "depth.bin", "here")
    for variant in ("B", "C"):
        (tmp_path / "depth.bin").write_bytes(writer.depth_bin(frames, variant))
        assert open_depth_bin(tmp_path / "depth.bin", "here").variant == variant


def packed(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


short_lz4 = lz4.block.compress(b"\x01" * 98_300, store_size=False)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 4,
        b"not depth at all" * 5000,
        struct.pack("<I", 0xFFFFFFFF) + b"\x00" * 1000,
        # One frame too small, one too large, a bomb, and a frame of random bits.
        struct.pack("<I", len(packed(b"\x00" * 98_302))) + packed(b"\x00" * 98_302),
        struct.pack("<I", len(packed(b"\x00" * 50_000_000))) + packed(b"\x00" * 50_000_000),
        struct.pack("<I", len(short_lz4)) + short_lz4,
        packed(b"\x00" * 196_000),
        packed(np.random.default_rng(0).bytes(196_608)),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "depth.bin").write_bytes(data)
    with pytest.raises(SceneError, match=r"here: found .*expected"):
        open_depth_bin(tmp_path / "depth.bin", "here")


def test_the_shipped_capture(captures: Path) -> None:
    depth = open_depth_bin(captures / "scannetpp/7c9be0a21f/iphone/depth.bin", "here")
    assert (depth.variant, depth.count, depth.note) == ("A", 60, "")
    got = depth.read(59)
    assert 0.5 < np.median(got[got > 0]) < 4
