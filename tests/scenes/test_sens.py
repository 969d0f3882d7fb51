"""`.sens` streams: round trips, an independent reader as oracle, torn and hostile files."""

from __future__ import annotations

import dataclasses
import io
import os
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.scenes.scannet_writer import COLOR_K, COLOR_SIZE, DEPTH_K, DEPTH_SIZE, LOST, Sens, jpeg, pictures
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.scenes import _sens
from vgbench_gen.scenes._sens import SensFile


def opened(tmp_path: Path, sens: Sens, cut: int | None = None) -> SensFile:
    path = tmp_path / "scan.sens"
    path.write_bytes(sens.bytes()[:cut])
    return SensFile(path)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(("color_kind", "depth_kind"), [(2, 1), (1, 0), (0, 1)])
def test_round_trip(tmp_path: Path, version: int, color_kind: int, depth_kind: int) -> None:
    frames = pictures(6)
    file = opened(tmp_path, Sens(frames, version=version, color_kind=color_kind, depth_kind=depth_kind))
    assert (len(file), file.shortfall) == (6, "")
    assert (file.header.color_size, file.header.depth_size) == (COLOR_SIZE, DEPTH_SIZE)
    np.testing.assert_allclose(file.header.color_K, COLOR_K, rtol=1e-6)
    np.testing.assert_allclose(file.header.depth_K, DEPTH_K, rtol=1e-6)
    assert file.times_us.tolist() == [1_000_000 + 33_333 * n for n in range(6)]
    for number in (4, 0, 5, 2, 2):
        frame, depth_m, rgb = frames[number], file.depth_m(number), file.color(number)
        np.testing.assert_allclose(file.poses[number], frame.pose, atol=1e-6)
        assert (str(depth_m.dtype), str(rgb.dtype), rgb.shape) == ("float32", "uint8", frame.rgb.shape)
        np.testing.assert_array_equal(depth_m, frame.depth.astype(np.float32) / np.float32(1000))
        assert depth_m[3, 5] == pytest.approx(1.234 + 0.001 * number)
        assert depth_m[0, 0] == 0
        assert np.abs(rgb[16, 16].astype(int) - [200, 40, 10 + number]).max() <= (3 if color_kind == 2 else 0)
        assert np.abs(rgb.astype(int) - frame.rgb).mean() <= (1.5 if color_kind == 2 else 0)
        encoded = file.encoded_color(number)
        assert (encoded is None) == (color_kind == 0)
        if encoded is not None:
            np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(encoded))), rgb)
    file.close()


def test_depth_shift_divides(tmp_path: Path) -> None:
    file = opened(tmp_path, Sens(pictures(1), shift=4000.0))
    assert file.depth_m(0)[3, 5] == pytest.approx(1234 / 4000)


def test_against_a_sequential_reader(captures: Path) -> None:
    path = captures / "scannet/scene9001_00/scene9001_00.sens"
    ours = SensFile(path)
    with path.open("rb") as stream:
        (version, name) = struct.unpack("<IQ", stream.read(12))
        stream.read(name)
        color_K = np.frombuffer(stream.read(256), "<f4").reshape(4, 4, 4)[0]
        *_, shift = struct.unpack("<iiIIIIf", stream.read(28))
        (count,) = struct.unpack("<Q", stream.read(8))
        assert (version, count, len(ours)) == (4, 40, 40)
        np.testing.assert_array_equal(ours.header.color_K, color_K)
        for number in range(count):
            pose = np.frombuffer(stream.read(64), "<f4").reshape(4, 4)
            _, _, color_bytes, depth_bytes = struct.unpack("<QQQQ", stream.read(32))
            color, depth = stream.read(color_bytes), stream.read(depth_bytes)
            np.testing.assert_array_equal(ours.poses[number], pose)
            assert (number in (7, 23)) == bool(np.isneginf(pose).all())
            if number % 8 == 0:
                metres = np.frombuffer(zlib.decompress(depth), "<u2").reshape(240, 320) / shift
                np.testing.assert_allclose(ours.depth_m(number), metres, rtol=1e-6)
                assert np.abs(ours.color(number).astype(int) - np.asarray(Image.open(io.BytesIO(color)))).max() <= 2
                assert ours.encoded_color(number) == color
        assert struct.unpack("<Q", stream.read(8)) == (0,)
    ours.close()


HUGE = 2**32 - 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": 2}, "version 3 or 4"),
        ({"version": 0x706C7900}, "version 3 or 4"),
        ({"name": b"x" * 5000}, "at most 4096"),
        ({"color_size": (HUGE, HUGE)}, "pixels"),
        ({"color_size": (0, 48)}, "pixels"),
        ({"depth_size": (HUGE, 2)}, "pixels"),
        ({"depth_size": (65536, 65536)}, "pixels"),
        ({"promised": 2**63}, "at most 200000"),
        ({"color_counts": {1: 2**63 + 5}}, "at most"),
        ({"color_counts": {0: 2**40}}, "at most"),
        ({"depth_kind": 2}, "OCCI"),
        ({"depth_kind": -1}, "raw or 1 zlib"),
        ({"color_kind": -1}, "2 JPEG"),
        ({"shift": 0.0}, "1 to 1e"),
        ({"shift": 1e-36}, "1 to 1e"),  # every depth would be infinite
        ({"shift": 1e30}, "1 to 1e"),
        ({"shift": float("nan")}, "1 to 1e"),
        ({"frames": []}, "at least one"),
    ],
)
def test_hostile_header_costs_the_scene(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    sens = dataclasses.replace(Sens(pictures(3)), **changes)
    tracemalloc.start()
    with pytest.raises(SceneError, match=expected) as caught:
        opened(tmp_path, sens)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert "scan.sens" in caught.value.where
    assert caught.value.remedy


def test_name_length_beyond_the_file(tmp_path: Path) -> None:
    path = tmp_path / "scan.sens"
    path.write_bytes(struct.pack("<IQ", 4, 2**63) + bytes(600))
    with pytest.raises(SceneError, match="sensor name"):
        SensFile(path)


def test_torn_file_keeps_complete_frames(tmp_path: Path) -> None:
    frames = pictures(5)
    sens = Sens(frames)
    records = sens.records()
    starts = np.cumsum([len(sens.header()), *map(len, records)])
    for kept, extra in ((1, 0), (3, 40), (4, 96), (4, len(records[4]) - 1)):
        file = opened(tmp_path, sens, int(starts[kept]) + extra)
        assert len(file) == kept
        assert f"after {kept} of 5 frames" in file.shortfall
        np.testing.assert_array_equal(file.depth_units(kept - 1), frames[kept - 1].depth)
        file.close()
    whole = opened(tmp_path, sens, int(starts[5]))  # without the IMU block
    assert (len(whole), whole.shortfall) == (5, "")
    for cut in (0, 7, 200, int(starts[0]), int(starts[1]) - 1):
        with pytest.raises(SceneError):
            opened(tmp_path, sens, cut)


@pytest.mark.parametrize("stdlib", [False, True])
def test_damaged_pixels_cost_the_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stdlib: bool) -> None:
    if stdlib:
        monkeypatch.setattr(_sens, "_inflater", zlib)
    frames = pictures(9)
    good = zlib.compress(frames[0].depth.tobytes())
    bomb = zlib.compress(bytes(50_000_000))
    depth = {
        0: b"no zlib at all" * 9,
        1: good[:-3],
        2: good[:-4] + b"\0\1\2\3",
        3: zlib.compress(frames[0].depth.tobytes() + b"x"),
        4: zlib.compress(frames[0].depth.tobytes()[:-2]),
        5: bomb,
    }
    whole = jpeg(frames[0].rgb)
    color = {
        0: whole[: len(whole) // 2],
        1: b"GIF89a" + bytes(99),
        2: jpeg(frames[0].rgb[::2]),
        3: whole[:2],
        4: b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBB", 13, b"IHDR", 60_000, 60_000, 8, 2) + b"IEND" * 9,
        5: whole[:40] + bytes(300),
    }
    file = opened(tmp_path, Sens(frames, depth_bytes=depth, color_bytes=color))
    tracemalloc.start()
    for number in range(6):
        with pytest.raises(FrameError, match=f"frame {number}"):
            file.depth_m(number)
        with pytest.raises(FrameError, match=f"frame {number}"):
            file.color(number)
        with pytest.raises(FrameError, match=f"frame {number}"):
            file.encoded_color(number)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    for number in range(6, 9):
        np.testing.assert_array_equal(file.depth_units(number), frames[number].depth)
        assert file.color(number).shape == frames[number].rgb.shape


def test_close_releases_the_file(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    file = opened(tmp_path, Sens(pictures(2)))
    file.close()
    file.close()
    with pytest.raises(FrameError, match="closed"):
        file.color(0)
    with pytest.raises(SceneError):
        opened(tmp_path, Sens(pictures(2), version=9))
    assert set(Path("/proc/self/fd").iterdir()) <= before  # what other tests left open may be closed meanwhile


def test_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sens")
    for path in (tmp_path / "pipe.sens", tmp_path, tmp_path / "absent.sens"):
        with pytest.raises(SceneError):
            SensFile(path)


def test_lost_poses_stay_visible(tmp_path: Path) -> None:
    frames = pictures(3)
    frames[1].pose = LOST
    assert np.isneginf(opened(tmp_path, Sens(frames)).poses[1]).all()
