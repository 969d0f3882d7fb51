"""The rendered room as a ROS bag, by the writers of the package `rosbags`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from tests.scene_factory import room_scene
from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.poses import invert, make_pose

START_NS = 1_722_345_678_901_234_567
STEP_NS = 200_000_000
LATE_NS = 350_000_000  # a message is recorded so long after its stamp
TF_ROS1 = """geometry_msgs/TransformStamped[] transforms
================================================================================
MSG: geometry_msgs/TransformStamped
Header header
string child_frame_id
Transform transform
================================================================================
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
================================================================================
MSG: geometry_msgs/Transform
Vector3 translation
Quaternion rotation
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
================================================================================
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
"""
BASE_FROM_OPTICAL = make_pose(Rotation.from_quat([0.5, -0.5, 0.5, -0.5]).as_matrix(), np.array([0.21, -0.04, 0.33]))
WORLD_FROM_MAP = make_pose(Rotation.from_rotvec([0, 0, 1.1]).as_matrix(), np.array([5.0, -2.0, 0.4]))


@dataclass(frozen=True)
class Shot:
    """One frame of the room."""

    color: ColorArray
    depth_m: DepthArray
    pose: FloatArray
    camera: Camera


@cache
def render_shots() -> list[Shot]:
    """The frames of the room, with depth at the size of color."""
    room = room_scene(seed=1, frames=8, width=88, height=66, depth_scale=1.0)
    return [Shot(frame.color(), frame.depth_m(), frame.world_from_camera, frame.camera) for frame in room.frames]


@dataclass
class BagWriter:
    """What is written, and how."""

    form: str = "bag"
    """"bag", "mcap", or "db3"."""
    packing: str = ""
    """"lz4", "bz2", "zstd", or "messages" (packed one by one)."""
    color: str = "bgr8"
    """The encoding of raw color, or "png" and "jpeg" for CompressedImage."""
    depth: str = "16UC1"
    """The encoding of raw depth, or "compressedDepth"."""
    depth_frame: str = "eye_optical"
    depth_name: str = "/eye/aligned_depth_to_color/image_raw"
    distortion: tuple[float, ...] = ()
    tf: str = "whole"
    """"whole", "static" for what does not move, "" for none."""
    tf_step_ns: int = 40_000_000
    skip_tf: tuple[int, ...] = ()
    """Frames about whose stamps the robot has no transform."""
    skip_depth: tuple[int, ...] = ()
    padding: int = 0
    """Bytes after each row of raw pictures."""
    is_bigendian: bool = False
    clock_ns: int = 1
    """Steps in which time of recording goes, as where it is simulated."""
    written: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path, name: str = "lab") -> Path:
        """Write the bag; gives the file, or for "db3" the folder."""
        from rosbags import rosbag1, rosbag2
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        self._is_ros1 = self.form == "bag"
        folder.mkdir(parents=True, exist_ok=True)
        if self._is_ros1:
            self._store = get_typestore(Stores.ROS1_NOETIC)
            known = get_types_from_msg(TF_ROS1, "tf2_msgs/msg/TFMessage")
            self._store.register({"tf2_msgs/msg/TFMessage": known["tf2_msgs/msg/TFMessage"]})
            path = folder / f"{name}.bag"
            writer: Any = rosbag1.Writer(path)
            writer.chunk_threshold = 80_000  # several chunks
            if self.packing:
                writer.set_compression(getattr(rosbag1.Writer.CompressionFormat, self.packing.upper()))
        else:
            self._store = get_typestore(Stores.ROS2_HUMBLE)
            plugins = {"mcap": rosbag2.StoragePlugin.MCAP, "db3": rosbag2.StoragePlugin.SQLITE3}
            path = folder / name
            writer = rosbag2.Writer(path, version=8, storage_plugin=plugins[self.form])
            modes = {"zstd": rosbag2.CompressionMode.STORAGE, "messages": rosbag2.CompressionMode.MESSAGE}
            if self.packing:
                writer.set_compression(modes[self.packing], rosbag2.CompressionFormat.ZSTD)
        with writer:
            self._writer = writer
            self._connections: dict[str, Any] = {}
            self._write_all()
        return path

    def _write_all(self) -> None:
        shots = render_shots()
        stamps = [START_NS + i * STEP_NS for i in range(len(shots))]
        slash = "/" if self._is_ros1 else ""
        if self.tf:
            edges = [("world", "map", WORLD_FROM_MAP), ("base", "eye_optical", BASE_FROM_OPTICAL)]
            self._write_tf("/tf_static", START_NS, edges)
        if self.tf == "whole":
            for at in range(START_NS - 3 * STEP_NS // 2, stamps[-1] + 2 * STEP_NS, self.tf_step_ns):
                self._write_tf("/tf", at, [("map", "odom", self._map_from_odom(at))])
        for i, (frame, stamp) in enumerate(zip(shots, stamps, strict=True)):
            if self.tf == "whole" and i not in self.skip_tf:
                odom_from_base = invert(self._map_from_odom(stamp)) @ frame.pose @ invert(BASE_FROM_OPTICAL)
                self._write_tf("/tf", stamp, [(f"{slash}odom", "base", odom_from_base)])
            self._write_color(frame.color, stamp, f"{slash}eye_optical")
            self._write_info("/eye/color/half_info", stamp, "eye_optical", frame.camera.K + 5, (44, 33))
            self._write_info("/eye/color/other_info", stamp, "other", frame.camera.K + 3, frame.camera.size)
            self._write_info("/eye/color/camera_info", stamp, "eye_optical", frame.camera.K, frame.camera.size)
            if i not in self.skip_depth:
                self._write_depth(frame.depth_m, stamp + 7_000_000)
            self._write_image("/eye/infra1/image_rect_raw", stamp, "eye_optical", "mono8", np.zeros((66, 88), np.uint8))
            far = np.full((33, 44), 1234, np.uint16)
            self._write_image("/eye/depth/image_rect_raw", stamp, "eye_depth", "16UC1", far)

    def _map_from_odom(self, at: int) -> FloatArray:
        """It drifts evenly, so that between two stamps it is known exactly."""
        return make_pose(
            Rotation.from_rotvec([0, 0, 0.4]).as_matrix(), np.array([1.0, 2.0, 0.0]) + 1e-9 * (at - START_NS) * 0.3
        )

    def _write_color(self, picture: Any, stamp: int, frame: str) -> None:
        bgr = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
        if self.color in ("png", "jpeg"):
            encoded = cv2.imencode(f".{self.color}", bgr)[1].tobytes()
            self.written[f"color {stamp}"] = encoded
            text = f"rgb8; {self.color} compressed bgr8"
            self._write_packed("/eye/color/image_raw/compressed", stamp, frame, text, encoded)
            return
        channels = {"rgb8": picture, "bgr8": bgr, "rgba8": cv2.cvtColor(picture, cv2.COLOR_RGB2RGBA)}
        self._write_image("/eye/color/image_raw", stamp, frame, self.color, channels[self.color])

    def _write_depth(self, depth_m: Any, stamp: int) -> None:
        if self.depth == "32FC1":
            self._write_image(self.depth_name, stamp, self.depth_frame, "32FC1", np.where(depth_m > 0, depth_m, np.nan))
            return
        steps = np.rint(depth_m * 1000).astype(np.uint16)
        if self.depth == "16UC1":
            self._write_image(self.depth_name, stamp, self.depth_frame, "16UC1", steps)
            return
        data = bytes(12) + cv2.imencode(".png", steps)[1].tobytes()
        self._write_packed(
            f"{self.depth_name}/compressedDepth", stamp, self.depth_frame, "16UC1; compressedDepth", data
        )

    def _write_image(self, topic: str, stamp: int, frame: str, coding: str, pixels: Any) -> None:
        pixels = pixels.astype(np.float32) if coding == "32FC1" else pixels
        if self.is_bigendian and pixels.dtype.itemsize > 1:
            pixels = pixels.astype(pixels.dtype.newbyteorder(">"))
        rows = np.ascontiguousarray(pixels).view(np.uint8).reshape(len(pixels), -1)
        rows = np.pad(rows, ((0, 0), (0, self.padding)))
        big = int(self.is_bigendian)
        self._write(topic, "sensor_msgs/msg/Image", stamp, header=self._header(stamp, frame), height=pixels.shape[0],
                    width=pixels.shape[1], encoding=coding, is_bigendian=big, step=rows.shape[1],
                    data=rows.reshape(-1))  # fmt: skip

    def _write_packed(self, topic: str, stamp: int, frame: str, text: str, data: bytes) -> None:
        self._write(topic, "sensor_msgs/msg/CompressedImage", stamp, header=self._header(stamp, frame), format=text,
                    data=np.frombuffer(data, np.uint8))  # fmt: skip

    def _write_info(self, topic: str, stamp: int, frame: str, K: FloatArray, size: tuple[int, int]) -> None:
        P = np.hstack([K, np.zeros((3, 1))])
        named = {
            "D": np.array(self.distortion, float),
            "K": K.reshape(-1),
            "R": np.eye(3).reshape(-1),
            "P": P.reshape(-1),
        }
        if not self._is_ros1:
            named = {key.lower(): value for key, value in named.items()}
        roi = self._make(
            "sensor_msgs/msg/RegionOfInterest", x_offset=0, y_offset=0, height=0, width=0, do_rectify=False
        )
        self._write(topic, "sensor_msgs/msg/CameraInfo", stamp, header=self._header(stamp, frame), height=size[1],
                    width=size[0], distortion_model="plumb_bob", binning_x=0, binning_y=0, roi=roi,
                    **named)  # fmt: skip

    def _write_tf(self, topic: str, stamp: int, edges: list[tuple[str, str, FloatArray]]) -> None:
        transforms = []
        for parent, child, pose in edges:
            turn = Rotation.from_matrix(pose[:3, :3]).as_quat()
            transform = self._make(
                "geometry_msgs/msg/Transform",
                translation=self._make(
                    "geometry_msgs/msg/Vector3", **dict(zip("xyz", pose[:3, 3].tolist(), strict=True))
                ),
                rotation=self._make("geometry_msgs/msg/Quaternion", **dict(zip("xyzw", turn.tolist(), strict=True))),
            )
            transforms.append(
                self._make(
                    "geometry_msgs/msg/TransformStamped",
                    header=self._header(stamp, parent),
                    child_frame_id=child,
                    transform=transform,
                )
            )
        self._write(topic, "tf2_msgs/msg/TFMessage", stamp, transforms=transforms)

    def _header(self, stamp: int, frame: str) -> Any:
        time = self._make("builtin_interfaces/msg/Time", sec=stamp // 10**9, nanosec=stamp % 10**9)
        sequence = {"seq": 5} if self._is_ros1 else {}
        return self._make("std_msgs/msg/Header", stamp=time, frame_id=frame, **sequence)

    def _make(self, kind: str, **fields: Any) -> Any:
        return self._store.types[kind](**fields)

    def _write(self, topic: str, kind: str, stamp: int, **fields: Any) -> None:
        if topic not in self._connections:
            given = {"msgdef": TF_ROS1, "md5sum": "94810edda583a504dfda3829e70d7eec"}
            extra: dict[str, Any] = given if self._is_ros1 and kind.startswith("tf2") else {"typestore": self._store}
            self._connections[topic] = self._writer.add_connection(topic, kind, **extra)
        message = self._make(kind, **fields)
        data = (self._store.serialize_ros1 if self._is_ros1 else self._store.serialize_cdr)(message, kind)
        self._writer.write(self._connections[topic], (stamp + LATE_NS) // self.clock_ns * self.clock_ns, data)
