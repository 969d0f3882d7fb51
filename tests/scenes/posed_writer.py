"""The rendered room as a recording of color, depth and a table of poses, under any reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from tests.scene_factory import RoomScene, room_scene
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.scenes.readings import STATED, Reading


def make_room(frames: int = 10, width: int = 160, height: int = 120) -> RoomScene:
    """The room that recordings are written of."""
    return room_scene(seed=1, frames=frames, width=width, height=height)


def write_pictures(
    folder: Path,
    room: RoomScene,
    color: str = "rgb/{:06d}.png",
    depth: str = "depth/{:06d}.png",
    per_meter: float = 1000,
    turn: Callable[[ColorArray], ColorArray] = lambda picture: picture,
) -> None:
    """Color and 16-bit depth of every frame, under names by its number."""
    for number, frame in enumerate(room.frames):
        picture = cv2.cvtColor(np.ascontiguousarray(turn(frame.color())), cv2.COLOR_RGB2BGR)
        steps = np.rint(turn(frame.depth_m()) * per_meter).astype(np.uint16)  # type: ignore[arg-type]
        for name, image in ((color, picture), (depth, steps)):
            path = folder / name.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            assert cv2.imwrite(str(path), np.ascontiguousarray(image))


def stored_poses(room: RoomScene, reading: Reading = STATED) -> FloatArray:
    """(N, 4, 4) poses as a file states them that is to be read so."""
    return reading.undo(np.stack([frame.world_from_camera for frame in room.frames]))


def to_quaternion_row(pose: FloatArray) -> list[float]:
    """x y z qx qy qz qw of a pose (4, 4)."""
    return [*pose[:3, 3].tolist(), *Rotation.from_matrix(pose[:3, :3]).as_quat().tolist()]


def write_own(folder: Path, room: RoomScene, reading: Reading = STATED, /, **columns: str) -> Path:
    """A folder with a `posed.toml`, whose poses stand in poses.csv; `columns` are its lines as TOML."""
    write_pictures(folder, room)
    rows = [
        ",".join(map(repr, [number, *to_quaternion_row(pose)]))
        for number, pose in enumerate(stored_poses(room, reading))
    ]
    (folder / "poses.csv").write_text("\n".join(["frame,x,y,z,qx,qy,qz,qw", *rows]) + "\n")
    camera = room.frames[0].camera
    lines = {
        "color": '"rgb/*"',
        "depth": '"depth/*"',
        "poses": '"poses.csv"',
        "camera": str([camera.fx, camera.fy, camera.cx, camera.cy]),
    } | columns
    (folder / "posed.toml").write_text("".join(f"{name} = {value}\n" for name, value in lines.items() if value))
    return folder
