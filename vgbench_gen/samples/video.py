"""Videos whose bytes depend on the pictures alone: one encoder thread, nothing random in the container."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import ConfigError

_ENCODER = "libx264"


@contextmanager
def open_video(path: Path, size: tuple[int, int], fps: int, crf: int) -> Iterator[Any]:
    """Yield a function that appends one picture (H, W, 3) uint8 RGB to an H.264 video in a Matroska file.

    size: (width, height), even numbers. crf: quality of x264, 0 (lossless) to 51; 18 is taken for visually lossless.

    Raises:
        ConfigError: PyAV's encoder is missing.
    """
    check_encoder()
    import av

    # `bitexact` leaves out the random segment id and the writer's version.
    with av.open(str(path), "w", format="matroska", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream(_ENCODER, rate=fps)
        stream.width, stream.height = size
        stream.codec_context.time_base = Fraction(1, fps)
        stream.pix_fmt = "yuv420p"
        stream.codec_context.thread_count = 1
        # x264's macroblock tree gives other bytes from run to run (14 runs: 2 to 11 different videos; 150 runs without
        # it: one). This tuning has neither it nor what it looks ahead for.
        options = {"preset": "veryfast", "tune": "zerolatency", "crf": str(crf), "threads": "1"}
        stream.codec_context.options = options

        number = count()

        def append(rgb: npt.NDArray[np.uint8]) -> None:
            # BT.601, limited range: what decoders assume of a video that states nothing.
            planes = cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2YUV_I420)
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            # Without a time of its own a frame gets a random one, and the encoder spends bits by it.
            frame.pts, frame.time_base = next(number), Fraction(1, fps)
            container.mux(stream.encode(frame))

        yield append
        container.mux(stream.encode())


def check_encoder() -> None:
    """Refuse before any work where videos cannot be written.

    Raises:
        ConfigError: PyAV's encoder is missing.
    """
    what = "samples of ScanNet++ iPhones are videos"
    import av

    if _ENCODER not in av.codecs_available:
        raise ConfigError(
            f"{what} and this PyAV has no encoder {_ENCODER}. Install PyAV from its wheels: pip install av."
        )
