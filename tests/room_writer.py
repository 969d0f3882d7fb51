"""The room of `scene_factory` on disk, as a CA-1M tar and a WildRGB-D folder, so that builds run without captures."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from tests.scene_factory import RoomScene
from vgbench_gen.core.types import Camera, OrientedBox
from vgbench_gen.geometry.boxes import clip_rect, project_rect, transform_box
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import invert
from vgbench_gen.samples.encode import add_tar_member, convert_to_millimetres, encode_png
from vgbench_gen.samples.write_ca1m import compute_camera_from_level


def write_ca1m(root: Path, room: RoomScene, video: str = "90000001") -> Path:
    """`ca1m-val-<video>.tar` below `root/ca1m`; laser depth at the room's depth size."""
    members: dict[str, bytes] = {}
    for frame in room.frames:
        T = frame.world_from_camera
        head = f"{video}/{1_000_000_000 + 100_000_000 * int(frame.id)}"
        camera, depth_camera = frame.camera, frame.depth_camera
        sensor = resize_camera(camera, camera.width // 4, camera.height // 4)
        depth_mm = convert_to_millimetres(frame.depth_m())
        sensor_mm = cv2.resize(depth_mm, sensor.size, interpolation=cv2.INTER_NEAREST)
        objects = [
            _instance(o.instance_id, o.label, transform_box(o.box, invert(T), "camera"), camera) for o in room.objects
        ]
        members |= {
            f"{head}.wide/image.png": encode_png(frame.color()),
            f"{head}.wide/image/K.json": _json(camera.K),
            f"{head}._wide/image/size": _json(np.array(camera.size)),
            f"{head}.wide/depth.png": encode_png(sensor_mm),
            f"{head}.wide/depth/K.json": _json(sensor.K),
            f"{head}._wide/depth/size": _json(np.array(sensor.size)),
            f"{head}.wide/T_gravity.json": _json(compute_camera_from_level(T)),
            f"{head}.wide/instances.json": json.dumps([o for o in objects if o is not None]).encode(),
            f"{head}.gt/RT.json": _json(T),
            f"{head}.gt/depth.png": encode_png(depth_mm),
            f"{head}.gt/depth/K.json": _json(depth_camera.K),
            f"{head}._gt/depth/size": _json(np.array(depth_camera.size)),
        }
    world = [_instance(o.instance_id, o.label, o.box, None) for o in room.objects]
    members[f"{video}/world.gt/instances.json"] = json.dumps(world).encode()
    path = root / "ca1m" / f"ca1m-val-{video}.tar"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:") as archive:
        for name, data in members.items():
            add_tar_member(archive, name, data)
    return path


def write_wildrgbd(root: Path, room: RoomScene, category: str = "box", name: str = "scenes_000") -> Path:
    """One WildRGB-D scene below `root/wildrgbd`, in the frame of its first camera; depth at colour size."""
    folder = root / "wildrgbd" / category / "scenes" / name
    for part in ("rgb", "depth", "masks"):
        (folder / part).mkdir(parents=True)
    first_from_world = invert(room.frames[0].world_from_camera)
    lines = []
    for number, frame in enumerate(room.frames):
        depth = cv2.resize(frame.depth_m(), frame.camera.size, interpolation=cv2.INTER_NEAREST)
        mask = np.zeros(depth.shape, np.uint8)
        mask[depth.shape[0] // 3 : -depth.shape[0] // 3, depth.shape[1] // 3 : -depth.shape[1] // 3] = 255
        (folder / "rgb" / f"{number:05d}.png").write_bytes(encode_png(frame.color()))
        (folder / "depth" / f"{number:05d}.png").write_bytes(encode_png(convert_to_millimetres(depth)))
        (folder / "masks" / f"{number:05d}.png").write_bytes(encode_png(mask))
        pose = first_from_world @ frame.world_from_camera
        lines.append(" ".join([str(number), *(f"{value:.12g}" for value in pose.ravel())]))
    camera = room.frames[0].camera
    K_by_columns = camera.K.T.ravel().tolist()
    (folder / "metadata").write_text(json.dumps({"w": camera.width, "h": camera.height, "K": K_by_columns}))
    (folder / "cam_poses.txt").write_text("\n".join(lines) + "\n")
    return folder


def _instance(name: str, label: str, box: OrientedBox, camera: Camera | None) -> dict[str, Any] | None:
    rotation, size = box.rotation, box.size_m
    if camera is not None:
        # Frame lists have the vertical extent second (y down); world lists third.
        rotation = np.stack([rotation[:, 0], -rotation[:, 2], rotation[:, 1]], axis=1)
        size = size[[0, 2, 1]]
    entry = {
        "id": name,
        "category": label,
        "position": box.center_m.tolist(),
        "scale": size.tolist(),
        "R": rotation.tolist(),
    }
    if camera is None:
        return entry
    rect = project_rect(camera, box)
    if rect is None:
        return None
    clipped = clip_rect(rect, camera.width, camera.height)
    if clipped[0] >= clipped[2] or clipped[1] >= clipped[3]:
        return None
    return entry | {"box_2d_proj": list(rect), "box_2d_rend": list(clipped)}


def _json(array: npt.NDArray[Any]) -> bytes:
    return json.dumps(array.tolist()).encode()
