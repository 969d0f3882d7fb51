"""Videos as phones write them: HEVC with key frames, and pictures that are shown in another order than coded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from vgbench_gen.core.types import ColorArray

TICKS = 6000  # a second
HEVC = "keyint=20:min-keyint=20:scenecut=0:bframes=3:open-gop=1:log-level=error:pools=1"
_BITS, _SIDE = 12, 40


def write_video(
    path: Path,
    pictures: Iterable[ColorArray],
    stamps: Sequence[int] = (),
    codec: str = "libx265",
    quality: int = 20,
    pixels: str = "yuv420p",
) -> None:
    """A video of RGB pictures. stamps: when each is shown, in `TICKS`; 60 a second by default. quality: 0
    loses least."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=60)
        stream.pix_fmt = pixels
        if codec == "libx265":
            stream.options = {"preset": "ultrafast", "crf": str(quality), "x265-params": HEVC}
        elif codec == "libx264":
            stream.options = {"preset": "ultrafast", "g": "20", "bf": "2", "threads": "1"}
        stream.codec_context.time_base = Fraction(1, TICKS if stamps else 60)
        for number, picture in enumerate(pictures):
            if not number:
                stream.height, stream.width = picture.shape[:2]
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")
            frame.pts, frame.time_base = stamps[number] if stamps else number, stream.codec_context.time_base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def draw_number(number: int) -> ColorArray:
    """A picture (120, 160, 3) of twelve squares, bright green where the number has that bit, dark red elsewhere."""
    bits = np.array([number >> bit & 1 for bit in range(_BITS)]).reshape(3, 4)
    channels = [
        np.kron(values, np.ones((_SIDE, _SIDE))) for values in (90 - 60 * bits, 30 + 200 * bits, 60 + 40 * bits)
    ]
    return np.stack(channels, axis=2).astype(np.uint8)


def read_number(picture: ColorArray) -> int:
    """The number that is drawn in a picture."""
    middles = picture[_SIDE // 2 :: _SIDE, _SIDE // 2 :: _SIDE, 1] > 128
    return int(sum(1 << bit for bit, bright in enumerate(middles.ravel()) if bright))
