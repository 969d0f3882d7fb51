from __future__ import annotations

import asyncio
import os
import struct
import zlib
from pathlib import Path

import pytest

from tests.backends.fixtures import picture
from vgbench_gen.backends import _images
from vgbench_gen.backends._images import ImageCache, SentImage
from vgbench_gen.backends.base import BackendError, ImagePart


def prepare(images: ImageCache, *parts: ImagePart) -> list[SentImage]:
    async def run() -> list[SentImage]:
        return [await images.prepare(part) for part in parts]

    return asyncio.run(run())


def test_bytes_go_out_untouched_unless_a_smaller_image_is_asked_for() -> None:
    jpeg = picture(400, 200)
    whole, fits, smaller = prepare(ImageCache(), ImagePart(jpeg), ImagePart(jpeg, 400), ImagePart(jpeg, 100))
    assert whole.data == fits.data == jpeg
    assert (whole.size_px, smaller.size_px) == ((400, 200), (100, 50))
    assert smaller.data.startswith(b"\xff\xd8\xff")
    assert len({whole.digest, smaller.digest}) == 2


def test_an_image_is_encoded_once_and_the_oldest_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / f"{k}.jpg" for k in range(4)]
    for k, path in enumerate(paths):
        path.write_bytes(picture(shade=k * 9))
    read: list[object] = []
    whole = _images._read

    def reading(part: ImagePart) -> tuple[bytes, str]:
        read.append(part.source)
        return whole(part)

    monkeypatch.setattr(_images, "_read", reading)
    images = ImageCache(kept_bytes=int(3.2 * 2.4 * paths[0].stat().st_size))
    parts = [ImagePart(path) for path in paths]
    prepare(images, *parts[:3], *parts[:3])
    assert read == paths[:3]
    prepare(images, parts[3], parts[2], parts[0])  # the fourth took the place of the first
    assert read == [*paths, paths[0]]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    images = ImageCache()
    path.write_bytes(picture(shade=1))
    (before,) = prepare(images, ImagePart(path))
    path.write_bytes(picture(32, 32, shade=2))
    (after,) = prepare(images, ImagePart(path))
    assert before.digest != after.digest


def huge(side_px: int) -> bytes:
    """A PNG's header and nothing behind it."""
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", side_px, side_px, 8, 2, 0, 0, 0)), (b"IDAT", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no usable JPEG"),
        (b"GIF89a" + b"\0" * 50, "no usable JPEG"),
        (b"<svg/>", "no usable JPEG"),
        (picture()[:20], "no usable JPEG"),
        (huge(60_000), "DecompressionBomb"),
        (huge(12_000), "12000 x 12000 pixels, more than"),
    ],
)
def test_what_is_no_image_is_refused_before_it_is_decoded(data: bytes, said: str) -> None:
    with pytest.raises(BackendError, match=said) as caught:
        prepare(ImageCache(), ImagePart(data))
    assert caught.value.kind == "wrong_request"


def test_paths_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large.jpg").write_bytes(picture())
    monkeypatch.setattr(_images, "MAX_BYTES", 100)
    for name, said in (("none.jpg", "cannot be read"), ("pipe", "no regular file"), ("large.jpg", "larger than")):
        with pytest.raises(BackendError, match=said):
            prepare(ImageCache(), ImagePart(tmp_path / name))
    with pytest.raises(BackendError, match="no regular file"):
        prepare(ImageCache(), ImagePart(tmp_path))


def test_damage_behind_a_good_header_is_found_when_the_image_is_made_smaller() -> None:
    png = picture(400, 200, "PNG")
    torn = png[:60] + b"\0" * 40
    with pytest.raises(BackendError, match="damaged"):
        prepare(ImageCache(), ImagePart(torn, 100))
