"""Small files in the form in which sources are distributed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vgbench_gen.core.types import Item
from vgbench_gen.importers._files import Place
from vgbench_gen.importers._reading import ImportReport, read_source
from vgbench_gen.importers.base import importers
from vgbench_gen.store.media import MediaStore

ROOT = Path(__file__).parent


def photo(seed: int, suffix: str = ".jpg") -> bytes:
    """A small picture, another one per seed, not the same as its mirror image."""
    pixels = np.full((24, 32, 3), (seed * 37 % 200, 40, 90), np.uint8)
    pixels[:, :8] = (255, seed % 250, 0)
    return bytes(cv2.imencode(suffix, pixels)[1].tobytes())


def hub_image(seed: int) -> dict[str, Any]:
    """A cell of a column of images as the Hub's parquet files have it."""
    return {"bytes": photo(seed), "path": f"{seed}.jpg"}


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows in one file; all have the columns of the first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)


def write_zip(path: Path, members: Mapping[str, bytes]) -> None:
    """An archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def write_photo(path: Path, seed: int) -> None:
    """A picture as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(photo(seed, path.suffix))


def video(frames: int, rotation: int = 0) -> bytes:
    """An H.264 video in an MP4 with B-frames: frame k is grey, 40 + 4 k, brighter on its left quarter."""
    import av

    held = io.BytesIO()
    with av.open(held, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=24)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.thread_count = 1
        stream.codec_context.options = {"bf": "2", "crf": "8", "g": "12"}
        for k in range(frames):
            pixels = np.full((48, 64, 3), 40 + 4 * k, np.uint8)
            pixels[:, :16] = 255
            frame = av.VideoFrame.from_ndarray(pixels, format="bgr24")
            frame.pts, frame.time_base = k, Fraction(1, 24)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return held.getvalue()


def imported(name: str, folder: Path, media: Path, published: bool = False, images: Path | None = None) -> Imported:
    """Import a source from a folder."""
    report = ImportReport(name)
    items = list(read_source(importers[name], Place(folder, images), MediaStore(media), report, published))
    return Imported(items, report, MediaStore(media))


class Imported:
    """What came of a source."""

    def __init__(self, items: list[Item], report: ImportReport, media: MediaStore) -> None:
        self.items, self.report, self.media = items, report, media

    def pixels(self, item: Item, k: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The k-th image of an item, decoded, BGR."""
        data = np.frombuffer(self.media.get(item.images[k]), np.uint8)
        return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)

    @property
    def bad(self) -> dict[str, int]:
        """Rows that were not taken over, by reason."""
        found: dict[str, int] = self.report.as_json()["bad"]
        return found
