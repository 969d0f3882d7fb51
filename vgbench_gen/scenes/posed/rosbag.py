"""Bags of ROS 1 and ROS 2 with color, depth that is aligned to it, and transforms of the camera, by `rosbags`.

Depth has color's frame and size (as aligned by `IntelRealSense/realsense-ros`); the pose is composed of
`/tf` and `/tf_static`, from the fixed frame down to the frame of color, which is optical (REP 103). Pictures are of
`ros/sensor_msgs` (Image, CompressedImage) and `ros-perception/image_transport_plugins` (compressedDepth).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.types import ColorArray, DepthArray
from vgbench_gen.scenes import files
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.cameras import StatedIntrinsics, take_camera_info
from vgbench_gen.scenes.posed.extras import need
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pairing import match_nearest
from vgbench_gen.scenes.posed.pixels import convert_depth
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.posed.ros_tf import FIXED, Transforms, clean_frame
from vgbench_gen.scenes.promised import list_files

_RUN_SLAM = "Run a SLAM such as RTAB-Map on it and save TUM RGB-D or an RTAB-Map export, with depth aligned to color."
_ALIGN = "Align depth to color (align_depth.enable:=true of realsense2_camera, or depth_image_proc/register)."
_UNPACK = "Write it anew with rosbag reindex or rosbag decompress, mcap recover, or ros2 bag convert."
# Encodings of raw color: how many channels, and which of them are red, green and blue.
_COLOR = {"rgb8": (3, (0, 1, 2)), "bgr8": (3, (2, 1, 0)), "rgba8": (4, (0, 1, 2)), "bgra8": (4, (2, 1, 0))}
_DEPTH = {"16UC1": "u2", "mono16": "u2", "32FC1": "f4"}
_PACKED = ("jpeg", "png")
_CONFIG_BYTES = 12  # of compressedDepth, before its PNG
_MAX_CHUNK_BYTES = 256_000_000
_TRIED = 20


def read_recording(path: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a bag, or of a folder with the files of one. Raises SceneError."""
    names = list_files(path, path, []) if path.is_dir() else [""]
    paths = [path / name for name in names if (path / name).suffix in (".mcap", ".db3", ".bag")]
    if not paths:
        raise SceneError(path, ", ".join(names), "files .mcap, .db3 or .bag", "Unpack it with ros2 bag convert.")
    bag = _Bag(paths)
    with close_if_raised(bag.close):
        try:
            return _read(bag, path, layout, [(each.name, each.stat().st_size) for each in paths])
        except FrameError as problem:
            raise SceneError(problem.where, problem.found, problem.expected, problem.remedy) from problem


def _read(bag: _Bag, path: Path, layout: FileLayout, digest: list[tuple[object, ...]]) -> StoredRecording:
    color, depth = streams = _choose_streams(bag, path)
    lens = _find_intrinsics(color, path).make_lens(color.size, layout.first_pixel, path)
    places: dict[str, dict[int, _Place]] = {each.name: {} for each in streams}
    issues, transforms = list[Issue](), Transforms()
    edges = [each for topic in bag.topics.values() for each in topic if each.msgtype.lower().endswith("tfmessage")]
    try:
        for place, data in bag.list_messages([*color.connections, *depth.connections, *edges]):
            name = place.connection.topic
            if name in places:
                places[name].setdefault(place.stamp_ns, place)
                continue
            try:
                transforms.add(bag.parse(place.connection, data), name.endswith("tf_static"))
            except (FrameError, AttributeError, TypeError) as problem:  # the bag may define it without its fields
                issues.append(Issue("", "unusable_file", f"{name}: {problem}"))
    except FrameError as problem:
        issues.append(Issue("", "truncated", f"read up to a damaged place: {problem}"))
    chain = transforms.find_chain(color.frame)
    if not transforms.moves(chain):
        found = f"no transforms that move the camera ({color.frame or 'a frame without a name'}): it has no poses"
        raise SceneError(path, found, "/tf from map, odom or world down to it", _RUN_SLAM)
    colors, depths = (sorted(places[each.name].items()) for each in streams)
    color_s, depth_s = (np.array([stamp_ns * 1e-9 for stamp_ns, _ in each]) for each in (colors, depths))
    poses, known = transforms.compose(chain, color_s, layout.max_gap_s)
    stated: dict[str, object] = {"depth_per_meter": 1.0} if depth.coding == "32FC1" else {}
    stated |= {"up": (0.0, 0.0, 1.0)} if chain[0][0].rpartition("/")[2] in FIXED else {}
    layout = layout.model_copy(update={key: each for key, each in stated.items() if key not in layout.model_fields_set})
    pairs, records = match_nearest(color_s, depth_s, layout.max_gap_s), []
    for i, (stamp_ns, at) in enumerate(colors):
        if i not in pairs or not known[i]:
            reason, lacks = ("pose_missing", "pose") if i in pairs else ("incomplete", "depth")
            issues.append(Issue(str(stamp_ns), reason, f"{color.name} has no {lacks}"))
            continue
        records.append(StoredFrame(
            str(stamp_ns), float(color_s[i]), lens, partial(color.read_color, at), partial(color.read_encoded, at),
            None, depth.size, partial(depth.read_depth, depths[pairs[i]][1], layout), poses[i],
        ))  # fmt: skip
    gap_ms = 1000 * max((abs(color_s[i] - depth_s[j]) for i, j in pairs.items()), default=0.0)
    pairing = f"{color.name} and {depth.name} at most {gap_ms:.0f} ms apart, placed in {chain[0][0]}"
    digest.append((color.name, depth.name))
    return StoredRecording(layout, records, len(colors), issues, digest, pairing, close=bag.close)


class _Place(NamedTuple):
    """Where a message is found again. stamp_ns: of its header, where it has one."""

    connection: Any
    record_ns: int
    stamp_ns: int


class _Bag:
    """The messages in the files of a recording. Raises SceneError where one of them is no whole bag.

    topics: connections of the package `rosbags`, by name and type of what they carry.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.topics: dict[str, list[Any]] = {}
        self._is_ros1, self._lock, undo = paths[0].suffix == ".bag", Lock(), ExitStack()
        package = need("rosbags.rosbag1" if self._is_ros1 else "rosbags.rosbag2", "recordings")
        self._types = need("rosbags.typesys", "recordings")
        self._store = self._types.get_typestore(self._types.Stores["ROS1_NOETIC" if self._is_ros1 else "ROS2_HUMBLE"])
        self.close = undo.close
        with close_if_raised(self.close):
            for path in paths:
                files.open_regular(path, path).close()
                try:
                    reader = undo.enter_context(package.Reader(path))
                except Exception as problem:  # whatever the package meets in bytes that are no bag
                    raise SceneError(path, _say(problem), "a whole bag, with its index", _UNPACK) from problem
                largest = max((chunk.datasize for chunk in reader.chunks.values()), default=0) if self._is_ros1 else 0
                if largest > _MAX_CHUNK_BYTES:
                    raise SceneError(path, f"a chunk of {largest} bytes", f"at most {_MAX_CHUNK_BYTES}", _UNPACK)
                for each in reader.connections:
                    self.topics.setdefault(f"{each.topic} {each.msgtype}", []).append(each)

    def list_messages(self, connections: Sequence[Any], at_ns: int | None = None) -> Iterator[tuple[_Place, bytes]]:
        """Places and bytes of messages: all, or those recorded at a time. Raises FrameError."""
        for owner in dict.fromkeys(each.owner for each in connections):
            mine = [each for each in connections if each.owner is owner]
            try:
                for connection, record_ns, data in owner.messages(mine, at_ns, None if at_ns is None else at_ns + 1):
                    # A header begins with its number in ROS 1, in ROS 2 the message with the order of its bytes.
                    seconds, rest = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8))
                    yield _Place(connection, record_ns, 10**9 * seconds + rest), data
            except Exception as problem:
                raise FrameError(owner.path, _say(problem), "a whole bag", _UNPACK) from problem

    def read(self, place: _Place) -> Any:
        """The message at a place. Raises FrameError."""
        with self._lock:
            for found, data in self.list_messages([place.connection], place.record_ns):
                if found == place:
                    return self.parse(place.connection, data)
        raise FrameError(place.connection.topic, f"no message of {place.stamp_ns}", "that of the opened bag")

    def parse(self, connection: Any, data: bytes) -> Any:
        """A message as an object with the fields of its type. Raises FrameError."""
        kind, store = connection.msgtype, self._store
        try:
            if kind not in store.fielddefs:  # as tf in ROS 1: the bag defines it
                found = self._types.get_types_from_msg(connection.msgdef.data, kind)
                store.register({key: each for key, each in found.items() if key not in store.fielddefs})
            return (store.deserialize_ros1 if self._is_ros1 else store.deserialize_cdr)(data, kind)
        except Exception as problem:
            raise FrameError(connection.topic, _say(problem), f"a plain {kind}", _UNPACK) from problem


class _Stream(NamedTuple):
    """Pictures of one topic.

    coding: as the messages state it, or "jpeg" and "png". size: width and height.
    """

    bag: _Bag
    connections: list[Any]
    name: str
    coding: str
    is_depth: bool
    frame: str
    size: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.name} ({self.coding} {self.size[0]}x{self.size[1]} in {self.frame or 'no frame'})"

    def read_color(self, place: _Place) -> ColorArray:
        """(H, W, 3) uint8 RGB of a message. Raises FrameError."""
        message = self.bag.read(place)
        if self.coding in _PACKED:
            return files.decode_image_rgb(message.data.tobytes(), self.name, self.size)
        channels, rgb = _COLOR[self.coding]
        return np.ascontiguousarray(self._take_pixels(message, channels, "u1")[..., rgb], np.uint8)

    def read_encoded(self, place: _Place) -> bytes | None:
        """The JPEG or PNG of a message where viewers show it as `read_color` does, else None. Raises FrameError."""
        is_packed = self.coding in _PACKED
        return files.keep_plain(self.bag.read(place).data.tobytes(), self.name, self.size) if is_packed else None

    def read_depth(self, place: _Place, layout: FileLayout) -> DepthArray:
        """(h, w) float32 meters of a message, 0 where unknown. Raises FrameError."""
        message = self.bag.read(place)
        if self.coding in _PACKED:
            return convert_depth(files.decode_depth_u16(_find_png(message), self.name, self.size), layout)
        return convert_depth(self._take_pixels(message, 1, _DEPTH[self.coding])[..., 0], layout)

    def _take_pixels(self, message: Any, channels: int, kind: str) -> npt.NDArray[Any]:
        """(H, W, channels) of a raw message of the coding and size of the stream."""
        dtype = np.dtype(kind).newbyteorder(">" if message.is_bigendian else "<")
        row, (width, height) = self.size[0] * channels * dtype.itemsize, self.size
        same = (message.encoding, message.width, message.height) == (self.coding, width, height)
        if not same or message.step < row or len(message.data) != message.step * height:
            found = f"{message.width}x{message.height}, {len(message.data)} bytes in rows of {message.step}"
            raise FrameError(self.name, found, f"{self.coding} {width}x{height} in rows of {row} or more")
        rows = np.ascontiguousarray(message.data.reshape(height, message.step)[:, :row])
        return rows.view(dtype).reshape(height, width, channels)


def _choose_streams(bag: _Bag, where: object) -> tuple[_Stream, _Stream]:
    """Color, and depth of its frame and size. Raises SceneError where there is none, and FrameError."""
    topics = (topic for topic in bag.topics.values() if topic[0].msgtype.endswith("Image"))
    streams = [each for topic in topics if (each := _describe(bag, topic))]
    pairs = [(color, depth) for depth in streams if depth.is_depth for color in streams
             if not color.is_depth and (color.frame, color.size) == (depth.frame, depth.size)]  # fmt: skip
    if pairs:
        return max(pairs, key=lambda pair: (*_rank(pair[1]), *_rank(pair[0])))
    listed = ", ".join(map(str, streams[:6])) or "a bag without readable pictures"
    has_poses = any(topic.lower().endswith("tfmessage") for topic in bag.topics)
    found = listed if has_poses else f"{listed}, and no transforms: it has no poses"
    raise SceneError(where, found, "color, and depth of its frame and size", _ALIGN if has_poses else _RUN_SLAM)


def _rank(stream: _Stream) -> tuple[bool, bool, int]:
    aligned = any(word in stream.name for word in ("aligned", "registered"))
    return "depth" in stream.name, aligned, sum(each.msgcount for each in stream.connections)


def _find_intrinsics(color: _Stream, where: Path) -> StatedIntrinsics:
    """By the first camera_info of the frame and size of color. Raises SceneError and FrameError."""
    is_rectified = "rect" in color.name.removesuffix("/compressed").rpartition("/")[2]
    for topic in (each for each in color.bag.topics.values() if each[0].msgtype.endswith("CameraInfo")):
        for place, data in islice(color.bag.list_messages(topic), 1):
            info = color.bag.parse(place.connection, data)
            if (clean_frame(info.header.frame_id), (info.width, info.height)) == (color.frame, color.size):
                return take_camera_info(info, is_rectified, topic[0].topic)
    raise SceneError(where, f"no camera_info for {color}", "one of its frame and size", "Record it with the pictures.")


def _describe(bag: _Bag, topic: list[Any]) -> _Stream | None:
    """What a topic of color or depth shows, by the first sound one of a few messages; else None."""
    name = topic[0].topic
    for place, data in islice(bag.list_messages(topic), _TRIED):
        try:
            message = bag.parse(place.connection, data)
            if topic[0].msgtype.endswith("CompressedImage"):
                header = files.read_picture_header(_find_png(message), name)
                size, coding, form = header.size, header.kind, (header.channels, header.bits)
                is_color, is_depth = form == (3, 8), form == (1, 16) and "32FC1" not in message.format
            else:
                size, coding = (message.width, message.height), message.encoding
                is_color = coding in _COLOR
                is_depth = coding in _DEPTH and (coding != "mono16" or "depth" in name)  # else infrared
            if (is_color or is_depth) and 0 < size[0] * size[1] <= files.MAX_PIXELS:
                return _Stream(bag, topic, name, coding, is_depth, clean_frame(message.header.frame_id), size)
        except FrameError:
            continue
    return None


def _find_png(message: Any) -> bytes:
    return bytes(message.data[_CONFIG_BYTES if "compressedDepth" in message.format else 0 :].tobytes())


def _say(problem: Exception) -> str:
    return f"{type(problem).__name__}: {str(problem)[:80]}"
