"""Bounded reading of small files and pictures."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.scenes.files import (
    compute_source_digest,
    decode_depth_u16,
    decode_image_rgb,
    decode_mask_u8,
    find_seam,
    inside,
    parse_matrix,
    read_json,
    read_picture_header,
)

RNG = np.random.default_rng(3)
RGB = RNG.integers(0, 255, (6, 9, 3), dtype=np.uint8)
DEPTH = RNG.integers(0, 65535, (5, 7), dtype=np.uint16)


def encoded(pixels: Any, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    (pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)).save(out, kind, **options)
    return out.getvalue()


def test_pictures_against_pillow() -> None:
    np.testing.assert_array_equal(decode_image_rgb(encoded(RGB, "PNG"), "x", (9, 6)), RGB)
    for options in ({}, {"progressive": True}, {"subsampling": 0}, {"comment": b"\xff\xd9"}):
        data = encoded(RGB, "JPEG", **options)
        expected = np.asarray(Image.open(io.BytesIO(data)))
        assert np.abs(decode_image_rgb(data, "x", (9, 6)).astype(int) - expected).max() <= 3
        assert read_picture_header(data, "x").plain
    np.testing.assert_array_equal(decode_depth_u16(encoded(DEPTH, "PNG"), "x", (7, 5)), DEPTH)
    np.testing.assert_array_equal(decode_mask_u8(encoded(RGB[..., 0], "PNG"), "x", (9, 6)), RGB[..., 0])
    bits = RGB[..., 0] > 99
    np.testing.assert_array_equal(decode_mask_u8(encoded(bits, "PNG"), "x"), bits * np.uint8(255))


def test_orientation_turns_nothing_and_is_not_passed_through() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(RGB, "JPEG", exif=exif)
    assert decode_image_rgb(data, "x").shape == RGB.shape
    assert not read_picture_header(data, "x").plain
    for other in (encoded(RGB[..., 0], "JPEG"), encoded(np.dstack([RGB, RGB[..., 0]]), "PNG")):
        assert not read_picture_header(other, "x").plain
        assert decode_image_rgb(other, "x").shape == RGB.shape


@pytest.fixture(scope="module")
def photograph() -> Any:
    """(480, 640, 3) soft shapes and noise, which fill a JPEG as a photograph does."""
    rng = np.random.default_rng(5)
    small = Image.fromarray(rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)).resize((640, 480))
    return np.clip(np.asarray(small) + rng.normal(0, 12, (480, 640, 3)), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
def test_a_jpeg_with_a_hole_is_refused(photograph: Any, options: dict[str, Any]) -> None:
    """OpenCV decodes each of these without a word, most pixels wrong. A few hold as many blocks as before."""
    data = encoded(photograph, "JPEG", **options)
    places = range(len(data) // 20, len(data) - 2000, len(data) // 20)
    noise = RNG.integers(0, 255, 1024, dtype=np.uint8).tobytes()
    passed = 0
    for fill in (bytes(1024), noise):
        for at in places:
            try:
                decode_image_rgb(data[:at] + fill + data[at + 1024 :], "x")
                passed += 1
            except FrameError:
                pass
    assert passed <= 0.1 * 2 * len(places)


def test_sixteen_zeros_among_the_pixels_of_a_jpeg_are_seen(photograph: Any) -> None:
    """Half of such holes leave as many blocks as before, so that the library has nothing to warn of."""
    data = encoded(photograph, "JPEG")
    start = data.index(b"\xff\xda") + 14
    for at in range(start, len(data) - 20, len(data) // 60):
        with pytest.raises(FrameError, match=r"found (zeros in the place of pixels|pixels that do not decode)"):
            decode_image_rgb(data[:at] + bytes(16) + data[at + 16 :], "x")


@pytest.mark.parametrize("options", [{}, {"subsampling": 0}])
def test_a_small_hole_after_which_the_colours_are_off_is_seen(photograph: Any, options: dict[str, Any]) -> None:
    """The decoder falls in step again with as many blocks as before and complains of nothing."""
    import simplejpeg

    data = encoded(photograph, "JPEG", **options)
    whole = simplejpeg.decode_jpeg(data).astype(int)
    passed = seen = 0
    for at in range(len(data) // 9, len(data) * 9 // 10, len(data) // 100):
        damaged = data[:at] + data[at + 16 :]
        try:
            pixels = simplejpeg.decode_jpeg(damaged, strict=True)
        except ValueError:
            continue
        if np.mean(np.abs(pixels - whole) > 32) > 0.1:
            passed += 1
            try:
                decode_image_rgb(damaged, "x")
            except FrameError as error:
                seen += "pixels that are off from row" in str(error)
    assert passed >= 15
    assert seen >= 0.8 * passed


@given(st.data())
def test_a_seam_is_found_where_it_begins(photograph: Any, data: st.DataObject) -> None:
    width, height = data.draw(st.sampled_from([(8, 8), (16, 8), (16, 16)]))
    count = 640 // width
    row, column = data.draw(st.integers(2, 480 // height - 3)), data.draw(st.integers(count // 8, count - count // 8))
    off = np.array([data.draw(st.sampled_from([-50, 50])), *data.draw(st.tuples(*[st.integers(-60, 60)] * 2))])
    pixels = photograph // 4 + 96
    pixels[row * height :][:height, column * width :] = pixels[row * height :][:height, column * width :] + off
    pixels[(row + 1) * height :] = pixels[(row + 1) * height :] + off
    found = find_seam(pixels, (width, height))
    assert found is not None
    assert found[0] == row * height
    assert abs(found[1] - column * width) <= 2 * width


@given(st.integers(0, 480), st.integers(0, 480), st.integers(0, 640), st.integers(0, 640), st.sampled_from([8, 16]))
@example(64, 480, 0, 640, 16)
@example(64, 480, 320, 640, 16)
@example(64, 80, 320, 640, 16)
@example(0, 480, 320, 640, 8)
def test_bars_and_boxes_are_no_seams(photograph: Any, top: int, end: int, left: int, right: int, unit: int) -> None:
    """Also where they begin and end with blocks of the picture."""
    pixels = photograph.copy()
    pixels[top:end, left:right] = 0
    assert find_seam(pixels, (unit, unit)) is None


@pytest.mark.parametrize("options", [{"optimize": True}, {}, {"progressive": True}])
def test_an_even_surface_is_no_hole(options: dict[str, Any]) -> None:
    """With codes of its own it is written as zeros."""
    data = encoded(np.full((480, 640, 3), 200, np.uint8), "JPEG", **options)
    assert (bytes(16) in data) == bool(options)
    assert np.abs(decode_image_rgb(data, "x").astype(int) - 200).max() <= 3


def test_what_follows_the_end_of_a_jpeg_does_no_harm(photograph: Any) -> None:
    data = encoded(photograph, "JPEG")
    whole = decode_image_rgb(data, "x")
    for tail in (b"\0" * 4000, b"made by a camera\xff\xd8\xff\xe0" * 9):
        np.testing.assert_array_equal(decode_image_rgb(data + tail, "x"), whole)


@pytest.mark.parametrize("share", [0.2, 0.7, 0.99])
def test_a_jpeg_that_was_cut_and_closed_again_is_refused(photograph: Any, share: float) -> None:
    data = encoded(photograph, "JPEG")
    with pytest.raises(FrameError, match="here: found pixels that do not decode"):
        decode_image_rgb(data[: int(share * len(data))] + b"\xff\xd9", "here")


def test_a_jpeg_of_thousands_of_scans_is_refused_before_it_is_decoded(photograph: Any) -> None:
    data = encoded(photograph, "JPEG", progressive=True)
    last = data.rfind(b"\xff\xda")
    with pytest.raises(FrameError, match=r"a JPEG of 20\d\d scans; expected at most 100"):
        decode_image_rgb(data[:last] + 2_000 * data[last:-2] + b"\xff\xd9", "x")


def _png(width: int, height: int, bits: int = 8, kind: int = 2) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBB", 13, b"IHDR", width, height, bits, kind) + bytes(20) + b"IEND"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"BM" + bytes(99),
        encoded(RGB, "JPEG")[:-8],
        encoded(RGB, "PNG")[:-12],
        encoded(RGB, "PNG")[:60] + bytes(30) + b"IEND",
        _png(60_000, 60_000),
        _png(0, 5),
        _png(2**32 - 1, 2**32 - 1),
        b"\xff\xd8" + b"\xff" * 500 + b"\xff\xd9",
        b"\xff\xd8\xff\xe0\x00\x00" * 40 + b"\xff\xd9",
        b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03" + bytes(20) + b"\xff\xd9",
    ],
)
def test_damaged_pictures(data: bytes) -> None:
    with pytest.raises(FrameError, match="here"):
        decode_image_rgb(data, "here")
    with pytest.raises(FrameError, match="here"):
        decode_depth_u16(data, "here")


def test_wrong_size_and_depth_of_eight_bits() -> None:
    with pytest.raises(FrameError, match="9x6 pixels; expected 6x9"):
        decode_image_rgb(encoded(RGB, "PNG"), "x", (6, 9))
    for data in (encoded(RGB[..., 0], "PNG"), encoded(RGB, "PNG"), encoded(RGB[..., 0], "JPEG")):
        with pytest.raises(FrameError, match="16-bit"):
            decode_depth_u16(data, "x")


@pytest.mark.parametrize("text", ["{", "[" * 200_000, "1" * 9000, "\udcff", ""])
def test_bad_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SceneError, match=r"a\.json"):
        read_json(path, path)
    with pytest.raises(FrameError):
        read_json(path.read_bytes(), "x", error=FrameError)


def test_json_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": [1, 2]}')
    assert read_json(path, path) == {"a": [1, 2]}
    with pytest.raises(SceneError, match="at most 5"):
        read_json(path, path, 5)
    with pytest.raises(SceneError, match="at most 5"):
        read_json(b"[1, 2, 3]", "x", 5)
    with pytest.raises(SceneError, match="lists and objects"):
        read_json(b"[" + b"{}," * 2_000_000 + b"{}]", "x")
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path / "pipe", tmp_path, tmp_path / "absent", tmp_path / "a\0b"):
        with pytest.raises(SceneError):
            read_json(bad, bad)


def test_inside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "root2").mkdir()
    (root / "good").symlink_to(root / "sub")
    (root / "bad").symlink_to(tmp_path / "root2")
    (root / "loop").symlink_to(root / "loop")
    (tmp_path / "entry").symlink_to(root)
    assert inside(root, root / "good/x") == (root / "sub/x").resolve()
    assert inside(tmp_path / "entry", tmp_path / "entry/sub") == (root / "sub").resolve()
    for path in (root / "bad/x", root / "../root2", root / "sub/../../x", Path("/etc/passwd")):
        with pytest.raises(SceneError):
            inside(root, path)


def test_matrices() -> None:
    np.testing.assert_array_equal(parse_matrix("1, 2\n3 4", "x", ((2, 2),)), [[1, 2], [3, 4]])
    assert parse_matrix(" ".join("1" * 9), "x", ((4, 4), (3, 3))).shape == (3, 3)
    words = "-inf INF nan -1.#INF 1.#INF00 -1.#IND 1.#QNAN 1.#SNAN Infinity"
    numbers = parse_matrix(words, "x", ((1, 9),))[0]
    np.testing.assert_array_equal(numbers, [-np.inf, np.inf, np.nan, -np.inf, np.inf, np.nan, np.nan, np.nan, np.inf])
    for text in ("", "1 2 3", "1 2 3 x", "1 2 3 1.#X", "1 " * 900_000):
        with pytest.raises(FrameError, match="2x2"):
            parse_matrix(text, "x", ((2, 2),))


def test_digest() -> None:
    a, b = ("a", 1, b"\0"), ("b", 2, [1.5])
    assert compute_source_digest([a, b]) == compute_source_digest([b, a]) != compute_source_digest([a, ("b", 3, [1.5])])


def test_too_little_memory_is_not_called_a_damaged_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    def fail(*_: object) -> None:
        error = cv2.error("Failed to allocate 3000000 bytes")
        error.code = cv2.Error.STS_NO_MEM
        raise error

    monkeypatch.setattr(cv2, "imdecode", fail)
    with pytest.raises(MemoryError, match="depth"):
        decode_depth_u16(encoded(DEPTH, "PNG"), "depth")
