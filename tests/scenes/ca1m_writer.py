"""Writes CA-1M captures as the format description says, from synthetic frames. Uses no loader code."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.samples import encode

VIDEO = "42898570"
LANDSCAPE, PORTRAIT = (64, 48), (48, 64)
Array = npt.NDArray[Any]

png, tiff = encode.encode_png, encode.encode_tiff


def K_for(size: tuple[int, int], scale: float = 1.0) -> list[list[float]]:
    """K of a size x scale picture; principal point a little off the middle, edge-aligned under scaling."""
    width, height = size
    cx, cy = (width / 2 + 1.25) * scale - 0.5, (height / 2 - 0.75) * scale - 0.5
    return [[60.0 * scale, 0.0, cx], [0.0, 61.0 * scale, cy], [0.0, 0.0, 1.0]]


def pose(yaw_deg: float, pitch_deg: float, position: tuple[float, float, float]) -> Array:
    """Camera-to-world in a z-up world of an upright image that looks `pitch_deg` down."""
    yaw, pitch = np.radians([yaw_deg, pitch_deg])
    forward = np.array([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), -np.sin(pitch)])
    right = np.array([np.sin(yaw), -np.cos(yaw), 0.0])
    T = np.eye(4)
    T[:3, :3] = np.stack([right, np.cross(forward, right), forward], axis=1)
    T[:3, 3] = position
    return T


def gravity(T: Array, pitch_deg: float) -> Array:
    """T_gravity: camera from levelled camera, for poses made by `pose`."""
    pitch = np.radians(pitch_deg)
    c, s = np.cos(pitch), np.sin(pitch)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


@dataclass
class Shot:
    """One frame; members may be changed or removed before writing."""

    timestamp: str
    rgb: Array
    depth_mm: Array
    sensor_mm: Array
    RT: Array
    members: dict[str, bytes] = field(default_factory=dict)


def shot(number: int, size: tuple[int, int] = LANDSCAPE, timestamp: str | None = None) -> Shot:
    """Frame `number` with known pixels: rgb[5, 7] = (200, 100, number), depth[4, 6] = 1234 + number, a far 12 m."""
    rng = np.random.default_rng(number)
    width, height = size
    rgb = rng.integers(0, 255, (height, width, 3), dtype=np.uint8)
    rgb[5, 7] = (200, 100, number)
    depth = rng.integers(500, 4000, (height // 2, width // 2)).astype(np.uint16)
    depth[4, 6], depth[0, 0], depth[1, 1], depth[1, 2] = 1234 + number, 0, 12_000, 10_000
    sensor = rng.integers(500, 4000, (height // 4, width // 4)).astype(np.uint16)
    sensor[2, 3] = 2345 + number
    RT = pose(20.0 * number, 15.0, (1.0 + 0.1 * number, 2.0, 1.5))
    made = Shot(timestamp or str(900_000_000 + 100_000_000 * number), rgb, depth, sensor, RT)
    confidence = np.linspace(0, 1, sensor.size, dtype=np.float32).reshape(sensor.shape)

    def text(value: Any) -> bytes:
        return json.dumps(value.tolist() if isinstance(value, np.ndarray) else value).encode()

    made.members = {
        "wide/image.png": png(rgb),
        "wide/image/K.json": text(K_for(size)),
        "_wide/image/size": text(list(size)),
        "wide/depth.png": png(sensor),
        "wide/depth/K.json": text(K_for(size, 0.25)),
        "_wide/depth/size": text([width // 4, height // 4]),
        "wide/depth/confidence.tiff": tiff(confidence),
        "wide/T_gravity.json": text(gravity(RT, 15.0)),
        "wide/instances.json": b"[]",
        "gt/RT.json": text(RT),
        "gt/depth.png": png(depth),
        "gt/depth/K.json": text(K_for(size, 0.5)),
        "_gt/depth/size": text([width // 2, height // 2]),
        "gt/image/K.json": text(K_for(size)),
    }
    return made


def instance(name: str, category: str, position: Any, scale: Any, R: Any, **more: Any) -> dict[str, Any]:
    """One entry of an `instances.json`; `corners` is deliberately wrong, nobody may read it."""
    entry = {"id": name, "category": category, "position": np.asarray(position).tolist()}
    entry |= {"scale": np.asarray(scale).tolist(), "R": np.asarray(R).tolist(), "corners": [[9.0, 9.0, 9.0]] * 8}
    return entry | more


def yaw(deg: float) -> Array:
    c, s = np.cos(np.radians(deg)), np.sin(np.radians(deg))
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def members(shots: list[Shot], world: Any = (), video: str = VIDEO) -> dict[str, bytes]:
    """Name -> bytes of a whole capture, in the order of a real one; `world` is what world.gt/instances.json holds."""
    named = {f"{video}/{one.timestamp}.{name}": data for one in shots for name, data in one.members.items()}
    if world is not None:
        named[f"{video}/world.gt/instances.json"] = json.dumps(list(world) if world == () else world).encode()
    return named


def write_tar(path: Path, content: dict[str, bytes], extra: list[tarfile.TarInfo] | None = None) -> Path:
    """Uncompressed tar; `extra` headers without payload come first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:") as archive:
        for header in extra or []:
            archive.addfile(header)
        for name, data in content.items():
            encode.add_tar_member(archive, name, data)
    return path


def write_folder(root: Path, content: dict[str, bytes]) -> Path:
    """The same members extracted; a file and a folder never share a name in this format."""
    for name, data in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info
