"""The iPhone half of a ScanNet++ sample: videos, depth stream, poses, COLMAP model (`docs/formats.md#iphone-streams`).

Colour, masks and sensor depth lie on one grid, that of the phone's slightly distorting lens, in sensor orientation:
a portrait capture is stored lying on its side, as the phone does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.types import Camera, DepthArray, FloatArray
from vgbench_gen.geometry.cameras import resize_camera, rotate_camera_by_quarters, rotate_pose_by_quarters
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.samples.base import Capture, SampleSpec
from vgbench_gen.samples.encode import encode_depth_bin, encode_json, format_colmap_camera, format_colmap_model
from vgbench_gen.samples.layout import FIRST_UPTIME_S, expose_frame, make_rng
from vgbench_gen.samples.lenses import LensImage
from vgbench_gen.samples.sensors import LIDAR_SIZE, simulate_lidar
from vgbench_gen.samples.video import open_video

# Video of a moving phone is softer than its number of pixels; what it lacks need not be rendered.
_PINHOLE_SHARE = 0.7
_FPS = 60
_CRF, _MASK_CRF = 17, 30
_DISTORTION_LOW, _DISTORTION_HIGH = (0.02, -0.09, -6e-4, -6e-4), (0.06, -0.04, 6e-4, 6e-4)
# Exact depth is cast this many times finer than the sensor's grid before the nearest value is taken.
_FINER = 2.0
_OPENGL_FROM_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])


def write_iphone(capture: Capture, spec: SampleSpec, file_from_world: FloatArray, folder: Path) -> None:
    """Everything below `iphone/`. file_from_world: (4, 4), where the mesh was put."""
    camera, poses = capture.camera, capture.world_from_camera
    if camera.height > camera.width:
        camera, poses = rotate_camera_by_quarters(camera, 1), rotate_pose_by_quarters(poses, 1)
    k1, k2, p1, p2 = np.round(make_rng(spec, "lens").uniform(_DISTORTION_LOW, _DISTORTION_HIGH), 6).tolist()
    lens = LensImage("OPENCV", camera, (k1, k2, p1, p2), _PINHOLE_SHARE)
    depth_lens = LensImage("OPENCV", resize_camera(camera, *LIDAR_SIZE), lens.distortion, _FINER)
    depths: list[DepthArray] = []
    with open_video(folder / "rgb.mkv", camera.size, _FPS, _CRF) as append:
        for number, pose in enumerate(poses):
            look = capture.world.look(lens.pinhole, pose)
            exact, _, cosine = capture.world.render_depth(depth_lens.pinhole, pose, look)
            seen = depth_lens.nearest(exact), depth_lens.nearest(cosine.astype(np.float32))
            depths.append(simulate_lidar(*seen, make_rng(spec, "depth", number))[0])
            color = lens.color(look.color)
            del look, exact, cosine  # a picture and its depth are large
            append(expose_frame(color, camera, capture, spec, number))
    white = np.full((camera.height, camera.width, 3), 255, np.uint8)
    with open_video(folder / "rgb_mask.mkv", camera.size, _FPS, _MASK_CRF) as append:
        for _ in poses:
            append(white)
    (folder / "depth.bin").write_bytes(encode_depth_bin(depths, "A"))
    names = [f"frame_{number:06d}" for number in range(len(poses))]
    kept = {
        name: file_from_world @ pose
        for i, (name, pose) in enumerate(zip(names, poses, strict=True))
        if i not in capture.lost
    }
    times = FIRST_UPTIME_S + capture.timestamps_s
    records = {name: _record(camera, pose, kept, float(times[int(name[-6:])])) for name, pose in kept.items()}
    (folder / "pose_intrinsic_imu.json").write_bytes(encode_json(records))
    exif = {name: {"PixelXDimension": camera.width, "PixelYDimension": camera.height} for name in names}
    (folder / "exif.json").write_bytes(encode_json(exif))
    line = format_colmap_camera("OPENCV", camera.size, camera.K, lens.distortion)
    (folder / "colmap").mkdir()
    for name, text in format_colmap_model(line, {f"{key}.jpg": pose for key, pose in kept.items()}).items():
        (folder / "colmap" / name).write_text(text)


def _record(camera: Camera, pose: FloatArray, poses: dict[str, FloatArray], time_s: float) -> dict[str, Any]:
    """One frame of pose_intrinsic_imu.json; the phone's own world has y up and starts at the first frame."""
    up_to_y = make_pose([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]], np.zeros(3))
    start = make_pose(np.eye(3), -next(iter(poses.values()))[:3, 3])
    down_in_camera = -pose[2, :3]
    still = [0.0, 0.0, 0.0]
    imu = {"rotate_rate": still, "acceleration": still, "magnet": still, "attitude": still, "gravity": down_in_camera}
    own = up_to_y @ start @ pose @ _OPENGL_FROM_OPENCV
    return {"timestamp": time_s, "pose": own, "intrinsic": camera.K, "imu": imu, "aligned_pose": pose}
