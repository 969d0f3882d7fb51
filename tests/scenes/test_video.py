"""Frames of videos in any order: which one it is is read from the frame itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from tests.scenes.video_writer import draw_number, read_number, write_video
from vgbench_gen.core.errors import FrameError
from vgbench_gen.scenes.video import SeekableVideo, Video

COUNT = 130


def make_stamps(uneven: bool) -> list[int]:
    steps = np.random.default_rng(1).integers(40, 400, COUNT)
    return np.cumsum(steps).tolist() if uneven else []


@pytest.mark.parametrize(
    ("name", "codec", "uneven"),
    [
        ("a.mp4", "libx265", False),
        ("a.mp4", "libx265", True),
        ("ten_bits.mp4", "libx265", False),
        ("a.mp4", "libx264", False),
        ("a.mkv", "libx265", True),
        ("a.avi", "mpeg4", False),  # without time stamps of what is shown when: from the start
    ],
)
def test_each_frame_is_the_one_that_was_asked(tmp_path: Path, name: str, codec: str, uneven: bool) -> None:
    """In any order, at key frames, before them and at both ends; pixels are those of the video read from its start."""
    path = tmp_path / name
    pixels = "yuv420p10le" if name == "ten_bits.mp4" else "yuv420p"
    write_video(path, map(draw_number, range(COUNT)), make_stamps(uneven), codec, pixels=pixels)
    video, plain = SeekableVideo(path, name), Video(path, name)
    order = [0, COUNT - 1, 20, 19, 21, 60, 58, 59, 61, 61, *np.random.default_rng(0).permutation(COUNT)[:25].tolist()]
    if name == "a.avi":
        order = sorted(order)
    assert [read_number(video.rgb(index)) for index in order] == order
    for index in sorted(order)[::8]:
        assert np.array_equal(video.rgb(index), plain.rgb(index))
        assert np.array_equal(video.grey(index), plain.grey(index))
    for index in (COUNT, -1):
        with pytest.raises(FrameError, match=f"a video of {COUNT} frames"):
            video.rgb(index)
    video.close()
    assert read_number(video.rgb(7)) == 7  # opened again
    video.close()


def test_only_what_lies_behind_a_key_frame_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.mp4"
    write_video(path, map(draw_number, range(COUNT)))
    monkeypatch.setattr(Video, "_bgr", lambda *given: pytest.fail("decoded from the start"))
    video = SeekableVideo(path, "a")
    decoded = 0

    def count(frames: Any) -> Any:
        nonlocal decoded
        for frame in frames:
            decoded += 1
            yield frame

    video.rgb(0)
    video._last = None
    decode = video._container.decode
    video._container = _Counted(video._container, lambda stream: count(decode(stream)))
    assert [read_number(video.rgb(index)) for index in (25, 125, 127, 127, 45)] == [25, 125, 127, 127, 45]
    assert decoded <= 6 + 6 + 2 + 6  # key frames are 20 apart
    video.close()


class _Counted:
    def __init__(self, container: Any, decode: Any) -> None:
        self._container, self.decode = container, decode

    def __getattr__(self, name: str) -> Any:
        return getattr(self._container, name)


def test_a_frame_counts_only_with_its_time_stamp(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    write_video(path, map(draw_number, range(COUNT)))
    video = SeekableVideo(path, "a")
    stamps, keys = video._stamps
    video.__dict__["_stamps"] = np.insert(stamps, 50, stamps[49] + 1), keys
    with pytest.raises(FrameError, match="frame 50: found nothing with its time stamp"):
        video.rgb(50)
    assert read_number(video.rgb(49)) == 49
    video.close()


def test_stamps_that_stand_twice_do_not_count(tmp_path: Path) -> None:
    """Matroska has milliseconds; six frames each have the same."""
    path = tmp_path / "a.mkv"
    write_video(path, map(draw_number, range(COUNT)), range(COUNT), "libx264")
    video = SeekableVideo(path, "a")
    assert len(video._stamps[0]) == 0
    assert [read_number(video.rgb(index)) for index in (3, 70, 71)] == [3, 70, 71]
    video.close()


def test_a_video_whose_beginning_is_cut_away_by_its_container_begins_behind_it(tmp_path: Path) -> None:
    write_video(tmp_path / "whole.mp4", map(draw_number, range(COUNT)))
    with av.open(str(tmp_path / "whole.mp4")) as whole, av.open(str(tmp_path / "a.mp4"), "w") as cut:
        stream = cut.add_stream_from_template(whole.streams.video[0])
        for packet in whole.demux(video=0):
            if packet.pts is not None and packet.dts is not None and packet.time_base is not None:
                early = round(13 / 60 / packet.time_base)
                packet.pts, packet.dts, packet.stream = packet.pts - early, packet.dts - early, stream
                cut.mux(packet)
    video, plain = SeekableVideo(tmp_path / "a.mp4", "a"), Video(tmp_path / "a.mp4", "a")
    assert [read_number(each.rgb(index)) for index in (0, 20) for each in (video, plain)] == [13, 13, 33, 33]
    video.close()


def test_damage_moves_no_other_frame(tmp_path: Path) -> None:
    """Bytes gone in the middle cost the frames there; the ones behind are still those of their numbers."""
    path = tmp_path / "a.mp4"
    write_video(path, map(draw_number, range(COUNT)))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 300] = bytes(300)
    path.write_bytes(data)
    video = SeekableVideo(path, "a")
    wrong = 0
    for index in range(0, COUNT, 3):
        try:
            wrong += read_number(video.rgb(index)) != index
        except FrameError:
            wrong += 1
    assert wrong < 20
    assert read_number(video.rgb(COUNT - 1)) == COUNT - 1
    video.close()


def test_a_video_cut_off_has_the_frames_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "a.mkv"
    write_video(path, map(draw_number, range(COUNT)))
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    video = SeekableVideo(path, "a")
    assert read_number(video.rgb(50)) == 50
    with pytest.raises(FrameError, match=r"a video of \d\d frames"):
        video.rgb(COUNT - 1)
    video.close()
