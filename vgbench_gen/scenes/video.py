"""Frames of a video: in increasing order, or where its time stamps are sound, in any order.

`Video` never seeks (`docs/formats.md#iphone-streams`: seeking in those videos is unreliable). Decoding is the dominant
cost of an iPhone scene: every frame up to the last one asked must be decoded, so ask in increasing order. Frames passed
over are decoded but not converted to RGB; going back opens the file anew. `SeekableVideo` begins at the key frame
before the one asked. FFmpeg takes playlists for videos too, and reads whatever files and addresses they name:
`is_video` tells which files it may open.
"""

from __future__ import annotations

import os
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FrameError, SceneError, escape_surrogates
from vgbench_gen.core.types import ColorArray, IntArray
from vgbench_gen.scenes.files import MAX_PIXELS, open_regular

# As FFmpeg calls its readers of these containers; none of them opens a second file.
READERS = "matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,avi"
OPTIONS = {"format_whitelist": READERS, "protocol_whitelist": "file"}
HEAD_BYTES = 12
_MAX_PACKETS = 2_000_000  # 9 hours at 60 frames per second


def is_video(head: bytes) -> bool:
    """Whether a file that begins with these `HEAD_BYTES` bytes is a video in Matroska, MP4 or AVI."""
    return (
        head[:4] == b"\x1aE\xdf\xa3"
        or head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")
        or (head[:4] == b"RIFF" and head[8:12] == b"AVI ")
    )


class Video:
    """An open video file.

    width, height: pixels, as the container says. count: frames as the container says (0 = it does not say); real
    files may hold a few more or fewer. length: frames that decode, once the end was met, else None.

    Raises:
        SceneError: no video, no decoder for it, or frames of absurd size.
    """

    def __init__(self, path: Path, where: str) -> None:
        self.path, self.where = path, where
        self.length: int | None = None
        self._capture: Any = None
        self._next = 0
        import cv2

        capture = self._open()
        self.width = int(capture.get(cv2.CAP_PROP_FRAME_WIDTH))
        self.height = int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT))
        self.count = max(0, int(min(capture.get(cv2.CAP_PROP_FRAME_COUNT), 1 << 31)))
        if not 0 < self.width * self.height <= MAX_PIXELS:
            self.close()
            raise SceneError(where, f"{self.width}x{self.height} pixels", f"1 to {MAX_PIXELS} pixels")

    def _open(self) -> Any:
        import cv2

        self.close()
        with open_regular(self.path, self.where) as file:
            if not is_video(head := file.read(HEAD_BYTES)):
                raise SceneError(self.where, f"a file that begins with {head!r}", "a video (mkv or mp4)")
        if escape_surrogates(str(self.path)) != str(self.path):
            # OpenCV ends the whole process at it.
            raise SceneError(self.where, "a path that is no UTF-8", "one that is", "Rename the folder.")
        os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = "|".join(f"{name};{value}" for name, value in OPTIONS.items())
        # The OpenCV backends other than FFmpeg would take the path for a device, a stream or an image pattern.
        capture = cv2.VideoCapture(str(self.path.absolute()), cv2.CAP_FFMPEG)
        if not capture.isOpened():
            raise SceneError(self.where, "a file FFmpeg cannot open", "a video (mkv or mp4)")
        # Phones write a display turn into mp4; the intrinsics are those of the stored pixels.
        capture.set(cv2.CAP_PROP_ORIENTATION_AUTO, 0)
        self._capture, self._next = capture, 0
        return capture

    def rgb(self, index: int) -> ColorArray:
        """(H, W, 3) uint8 RGB of frame `index`, counted from 0.

        Raises:
            FrameError: the video ends before it, or the frame does not decode.
        """
        import cv2

        return np.asarray(cv2.cvtColor(self._bgr(index), cv2.COLOR_BGR2RGB), np.uint8)

    def grey(self, index: int) -> npt.NDArray[np.uint8]:
        """(H, W) uint8 brightness of frame `index`. Raises like `rgb`."""
        import cv2

        return np.asarray(cv2.cvtColor(self._bgr(index), cv2.COLOR_BGR2GRAY), np.uint8)

    def _bgr(self, index: int) -> npt.NDArray[np.uint8]:
        if self.length is not None and not 0 <= index < self.length:
            raise self._short(index)
        # The frame grabbed last (`_next - 1`) can be retrieved again.
        if index < self._next - 1 or self._capture is None:
            self._open()
        while self._next <= index:
            if not self._capture.grab():
                self.length = self._next
                self.close()  # after a failed grab the last frame can no longer be retrieved
                raise self._short(index)
            self._next += 1
        done, frame = self._capture.retrieve()
        if not done or frame is None or frame.dtype != np.uint8 or frame.shape != (self.height, self.width, 3):
            found = "nothing" if frame is None else f"pixels {frame.shape} {frame.dtype}"
            raise FrameError(f"{self.where} frame {index}", found, f"an 8-bit frame of {self.width}x{self.height}")
        bgr: npt.NDArray[np.uint8] = frame
        return bgr

    def _short(self, index: int) -> FrameError:
        where = f"{self.where} frame {index}"
        return FrameError(where, f"a video of {self.length} frames", f"at least {index + 1} frames")

    def close(self) -> None:
        """Release the file; it is opened again on the next use."""
        if self._capture is not None:
            self._capture.release()
        self._capture = None


class SeekableVideo(Video):
    """A video of which single frames are wanted: decoding begins at the last key frame that is shown before each.

    Which frame is which is said by the time stamps of all packets, read once without decoding; a frame counts only with
    the stamp that stands at its place. Where stamps are missing or stand twice, this is `Video`. 100 frames spread over
    18,000 of 1920x1440 with a key frame a second take 27 s instead of 221 s.
    """

    def __init__(self, path: Path, where: str) -> None:
        self._container: Any = None
        self._frames: Any = None
        self._last: Any = None
        super().__init__(path, where)

    @cached_property
    def _stamps(self) -> tuple[IntArray, IntArray]:
        """Time stamps of all frames in the order shown and of key frames; none where they do not tell frames apart."""
        import av

        nothing = np.zeros(0, np.int64)
        try:
            with av.open(str(self.path.absolute()), options=OPTIONS) as container:
                packets = container.demux(container.streams.video[0])
                found = [(each.pts, each.is_keyframe) for each in islice(packets, _MAX_PACKETS) if _is_shown(each)]
        except (av.FFmpegError, IndexError):
            return nothing, nothing
        stamps = {stamp for stamp, _ in found}
        keys = sorted(stamp for stamp, is_key in found if is_key and stamp is not None)
        if None in stamps or not len(stamps) == len(found) < _MAX_PACKETS or keys[:1] != [min(stamps, default=None)]:
            return nothing, nothing
        return np.array(sorted(stamps), np.int64), np.array(keys, np.int64)

    def _bgr(self, index: int) -> npt.NDArray[np.uint8]:
        stamps, keys = self._stamps
        if not len(stamps):
            return super()._bgr(index)
        self.length = len(stamps)
        if not 0 <= index < self.length:
            raise self._short(index)
        import av

        try:
            frame = self._decode(int(stamps[index]), int(keys[np.searchsorted(keys, stamps[index], "right") - 1]))
            # Colors as OpenCV makes them.
            bgr = None if frame is None else frame.to_ndarray(format="bgr24", interpolation="BICUBIC")
        except av.FFmpegError as problem:
            self.close()
            raise FrameError(f"{self.where} frame {index}", str(problem)[:80], "a frame that decodes") from problem
        if bgr is None or bgr.shape != (self.height, self.width, 3):
            found = "nothing with its time stamp" if bgr is None else f"pixels {bgr.shape}"
            raise FrameError(f"{self.where} frame {index}", found, f"an 8-bit frame of {self.width}x{self.height}")
        return np.asarray(bgr, np.uint8)

    def _decode(self, stamp: int, key: int) -> Any:
        """The frame with a time stamp, None where it does not come. key: the stamp of the key frame before it."""
        import av

        if self._container is None:
            super().close()
            self._container = av.open(str(self.path.absolute()), options=OPTIONS)
            self._container.streams.video[0].thread_type = "AUTO"
        at = None if self._last is None else self._last.pts
        if at == stamp:
            return self._last
        if at is None or not key <= at < stamp:
            stream = self._container.streams.video[0]
            self._container.seek(key, stream=stream)
            self._frames, self._last = self._container.decode(stream), None
        for frame in self._frames:
            if frame.pts is not None and frame.pts >= stamp:
                self._last = frame
                return frame if frame.pts == stamp else None
        self._last = None
        return None

    def close(self) -> None:
        """As of `Video`."""
        super().close()
        if self._container is not None:
            self._container.close()
        self._container = self._frames = self._last = None


def _is_shown(packet: Any) -> bool:
    """Whether a packet holds a frame that is shown: not the end, and not cut away by the container's list of edits."""
    return packet.size > 0 and not packet.is_discard
