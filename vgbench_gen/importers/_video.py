"""Evenly spaced frames of a video as JPEG."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.spread import choose_evenly
from vgbench_gen.core.stand_ins import HEAD_BYTES, describe_stand_in
from vgbench_gen.core.types import ColorArray
from vgbench_gen.importers._archives import read_member
from vgbench_gen.importers._files import RowError
from vgbench_gen.scenes.video import OPTIONS, is_video
from vgbench_gen.store.pictures import encode_jpeg

_CACHED = 512  # videos whose frames stay in memory (about 0.7 MB each), as questions about a video are scattered


@lru_cache(maxsize=_CACHED)
def read_uniform_frames(path: Path, wanted: int, inner: str = "") -> tuple[bytes, ...]:
    """Evenly spaced frames as JPEG (quality 95, upright); all frames of a shorter video.

    `core.spread.choose_evenly` selects them from the frames in display order, which are counted rather than computed
    from the duration.

    Args:
        path: of the video, or of an archive.
        wanted: number of frames, 0 for all.
        inner: name of the video in the archive.

    Raises:
        RowError: no video, or no frame can be decoded.
    """
    name, data = inner or path.name, read_member(path, inner) if inner else path
    total = sum(1 for _ in _walk(name, data, decode=False))
    chosen, seen = _take(_walk(name, data, decode=True), choose_evenly(total, wanted))
    if not seen:
        raise RowError("video", f"{name}, of which no frame can be decoded", "video_broken")
    if len(chosen) < min(total, wanted or total):
        # The container lists more frames than can be decoded, so the decodable ones are spaced again.
        chosen, _ = _take(_walk(name, data, decode=True), choose_evenly(seen, wanted))
    return tuple(map(encode_jpeg, chosen))


def _take(frames: Iterator[Any], places: Sequence[int]) -> tuple[list[ColorArray], int]:
    """(frames at some indices, number of decoded frames); decoding stops at the last index."""
    wanted, found, seen = set(places), [], 0
    for frame in frames:
        if seen in wanted:
            found.append(_turn_upright(frame))
        seen += 1
        if len(found) == len(wanted):
            break
    return found, seen


def _walk(name: str, data: Path | bytes, decode: bool) -> Iterator[Any]:
    """Decoded frames in display order, or, without decoding, the packets with one frame each."""
    import av

    try:
        with data.open("rb") if isinstance(data, Path) else io.BytesIO(data) as file:
            if not is_video(head := file.read(HEAD_BYTES)):
                found = describe_stand_in(head) or ("no Matroska, MP4 or AVI",)
                raise RowError("video", f"{name}, which is {'. '.join(found)}", "video_broken")
        with av.open(str(data) if isinstance(data, Path) else io.BytesIO(data), options=OPTIONS) as container:
            if not container.streams.video:
                raise RowError("video", f"{name}, which holds no video", "video_broken")
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            for packet in container.demux(stream):
                if decode:
                    with suppress(av.error.InvalidDataError):  # skips a damaged frame
                        yield from packet.decode()
                elif packet.size and not packet.is_discard:
                    yield packet
    except (av.error.FFmpegError, OSError) as error:
        raise RowError("video", f"{name}, which cannot be read ({str(error)[:80]})", "video_broken") from error


def _turn_upright(frame: Any) -> ColorArray:
    """(H, W, 3) uint8 RGB pixels of a frame."""
    pixels = frame.to_ndarray(format="bgr24")
    quarters = round(frame.rotation / 90) % 4  # counterclockwise, from the container's display matrix
    return np.ascontiguousarray(np.rot90(pixels, quarters)[:, :, ::-1])
