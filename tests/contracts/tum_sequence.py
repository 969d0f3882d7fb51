"""The rendered room as a sequence of TUM RGB-D, with the intrinsics that the loader of `examples/` expects."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from tests.scene_factory import room_scene
from vgbench_gen.core.types import Camera
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.samples.encode import encode_png

NAME = "rgbd_dataset_freiburg3_room"
SIZE = (640, 480)
CAMERA = Camera(np.array([[535.4, 0.0, 320.1], [0.0, 539.2, 247.6], [0.0, 0.0, 1.0]]), *SIZE)


POSE = "1.0 0 0 0 0 0 0 1"
BROKEN = {"freiburg1_desk": POSE, "freiburg3_cut": POSE.removesuffix(" 1"), "freiburg3_away": POSE}


def write_broken_sequences(root: Path) -> Path:
    """Sequences that the loader refuses: of another camera, with a torn pose, with an image elsewhere."""
    for name, pose in BROKEN.items():
        folder = root / f"rgbd_dataset_{name}"
        (folder / "rgb").mkdir(parents=True)
        (folder / "groundtruth.txt").write_text(f"{pose}\n")
        (folder / "rgb.txt").write_text("1.0 rgb/1.0.png\n")
        (folder / "depth.txt").write_text("1.0 ../../../secret.png\n")
    return root


def write_sequence(root: Path, frames: int = 14) -> Path:
    """A sequence whose last image has no pose near it; rendered at half size, which costs a quarter of the time."""
    folder = root / NAME
    for name in ("rgb", "depth"):
        (folder / name).mkdir(parents=True)
    images, depths = ["# time image"], ["# time depth"]
    # The remark makes the table as long as that of a quarter of an hour, which is over 1 MB.
    poses = ["# time tx ty tz qx qy qz qw" + " " * 1_000_000]
    for number, frame in enumerate(room_scene(seed=1, frames=frames).frames):
        frame.camera = frame.depth_camera = resize_camera(CAMERA, SIZE[0] // 2, SIZE[1] // 2)
        depth = cv2.resize(np.round(frame.depth_m() * 5000).astype(np.uint16), SIZE, interpolation=cv2.INTER_NEAREST)
        time_s, later_s = f"{100 + 0.1 * number:.6f}", f"{100.004 + 0.1 * number:.6f}"
        (folder / "rgb" / f"{time_s}.png").write_bytes(encode_png(cv2.resize(frame.color(), SIZE)))
        (folder / "depth" / f"{later_s}.png").write_bytes(encode_png(depth))
        images.append(f"{time_s} rgb/{time_s}.png")
        depths.append(f"{later_s} depth/{later_s}.png")
        if number < frames - 1:
            x, y, z, w = Rotation.from_matrix(frame.world_from_camera[:3, :3]).as_quat(canonical=True)
            tx, ty, tz = frame.world_from_camera[:3, 3]
            poses.append(f"{later_s} {tx:.6f} {ty:.6f} {tz:.6f} {x:.8f} {y:.8f} {z:.8f} {w:.8f}")
    for name, rows in {"rgb.txt": images, "depth.txt": depths, "groundtruth.txt": poses}.items():
        (folder / name).write_text("\n".join(rows) + "\n")
    return folder
