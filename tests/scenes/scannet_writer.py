"""Writes ScanNet scans byte for byte as the format description says, from synthetic frames. Uses no loader code."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.samples import encode

COLOR_SIZE, DEPTH_SIZE = (64, 48), (32, 24)
COLOR_K = np.array([[57.5, 0, 31.3, 0], [0, 58.5, 23.9, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.float64)
DEPTH_K = np.array([[28.75, 0, 15.4, 0], [0, 29.25, 11.7, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.float64)
ALIGNMENT = np.array([[0.6, -0.8, 0, 1.5], [0.8, 0.6, 0, -2.0], [0, 0, 1, 0.25], [0, 0, 0, 1]], np.float64)
LOST = np.full((4, 4), -np.inf)

png = encode.encode_png


@dataclass
class Picture:
    """One frame: rgb (H, W, 3) uint8, depth (h, w) uint16 millimeters, pose (4, 4) camera-to-world."""

    rgb: npt.NDArray[np.uint8]
    depth: npt.NDArray[np.uint16]
    pose: npt.NDArray[np.float64]


def pictures(count: int = 5, seed: int = 0) -> list[Picture]:
    """Smooth colour with a known pixel, noisy depth with zeros, poses that look down a little."""
    rng = np.random.default_rng(seed)
    out = []
    for number in range(count):
        small = rng.integers(0, 255, (4, 5, 3), dtype=np.uint8)
        rgb = np.asarray(cv2.resize(small, COLOR_SIZE, interpolation=cv2.INTER_CUBIC), np.uint8)
        rgb[8:24, 8:24] = (200, 40, 10 + number)
        depth = rng.integers(500, 4000, DEPTH_SIZE[::-1]).astype(np.uint16)
        depth[3, 5], depth[0, 0] = 1234 + number, 0
        yaw = 0.3 + 0.2 * number
        c, s = np.cos(yaw), np.sin(yaw)
        pose = np.eye(4)
        pose[:3, :3] = [[s, 0, c], [-c, 0, s], [0, -1, 0]]  # columns right, down, forward in a z-up world
        pose[:3, 3] = 1.0 + 0.1 * number, 2.0, 1.5
        out.append(Picture(rgb, depth, pose))
    return out


def jpeg(rgb: npt.NDArray[np.uint8]) -> bytes:
    """JPEG of the best quality without chroma subsampling."""
    return encode.encode_jpeg(rgb, 100, full_chroma=True)


@dataclass
class Sens:
    """A `.sens` file to be written; every field can be made wrong."""

    frames: list[Picture]
    version: int = 4
    name: bytes = b"StructureSensor (calibrated)"
    color_kind: int = 2
    depth_kind: int = 1
    color_size: tuple[int, int] = COLOR_SIZE
    depth_size: tuple[int, int] = DEPTH_SIZE
    color_K: npt.NDArray[np.float64] = field(default_factory=COLOR_K.copy)
    depth_extrinsic: npt.NDArray[np.float64] = field(default_factory=lambda: np.eye(4))
    shift: float = 1000.0
    promised: int | None = None
    color_bytes: dict[int, bytes] = field(default_factory=dict)
    depth_bytes: dict[int, bytes] = field(default_factory=dict)
    color_counts: dict[int, int] = field(default_factory=dict)

    def header(self) -> bytes:
        """Everything before the first record."""
        return encode.encode_sens_header(
            name=self.name,
            color_K=self.color_K,
            depth_K=DEPTH_K,
            color_size=self.color_size,
            depth_size=self.depth_size,
            count=len(self.frames) if self.promised is None else self.promised,
            version=self.version,
            depth_to_color=self.depth_extrinsic,
            color_kind=self.color_kind,
            depth_kind=self.depth_kind,
            shift=self.shift,
        )

    def records(self) -> list[bytes]:
        """One record per frame."""
        out = []
        for number, frame in enumerate(self.frames):
            encoders = {0: lambda rgb: rgb.tobytes(), 1: lambda rgb: png(rgb), 2: jpeg}
            color = self.color_bytes.get(number, encoders.get(self.color_kind, jpeg)(frame.rgb))
            packed = (
                encode.encode_sens_depth(frame.depth) if self.depth_kind == 1 else frame.depth.astype("<u2").tobytes()
            )
            depth, time_us = self.depth_bytes.get(number, packed), 1_000_000 + 33_333 * number
            out.append(encode.encode_sens_record(frame.pose, time_us, color, depth, self.color_counts.get(number)))
        return out

    def bytes(self) -> bytes:
        """The file; version 4 ends with two IMU records."""
        imu = (2).to_bytes(8, "little") + bytes(2 * 128) if self.version == 4 else b""
        return self.header() + b"".join(self.records()) + imu


def text(matrix: npt.NDArray[np.float64]) -> str:
    """`%f` numbers in rows."""
    return "\n".join(" ".join(f"{v:f}" for v in row) for row in matrix) + "\n"


def scan_folder(root: Path, scan_id: str = "scene0001_00", *, alignment: bool = True) -> Path:
    """Folder `root/scan_id` with `<scanId>.txt`."""
    folder = root / scan_id
    folder.mkdir(parents=True)
    lines = [
        f"colorHeight = {COLOR_SIZE[1]}",
        f"colorWidth = {COLOR_SIZE[0]}",
        f"depthHeight = {DEPTH_SIZE[1]}",
        f"depthWidth = {DEPTH_SIZE[0]}",
        "fx_color = 999.0",
        "fx_depth = 999.0",
        "sceneType = Kitchen = big",
    ]
    if alignment:
        lines.insert(0, "axisAlignment = " + " ".join(f"{v:f}" for v in ALIGNMENT.ravel()))
    (folder / f"{scan_id}.txt").write_text("\n".join(lines) + "\n")
    return folder


def write_sens(root: Path, sens: Sens, scan_id: str = "scene0001_00") -> Path:
    """Scan folder with one `.sens` file."""
    folder = scan_folder(root, scan_id)
    (folder / f"{scan_id}.sens").write_bytes(sens.bytes())
    return folder


def write_python_export(
    folder: Path, frames: list[Picture], *, below: str = "", as_png: bool = False, step: int = 1, square: bool = False
) -> None:
    """Official Python exporter; `step` > 1 leaves gaps, `square` writes 3x3 intrinsics."""
    base = folder / below
    for name in ("color", "depth", "pose", "intrinsic"):
        (base / name).mkdir(parents=True)
    for position, frame in enumerate(frames):
        number = position * step
        encoded, suffix = (png(frame.rgb), "png") if as_png else (jpeg(frame.rgb), "jpg")
        (base / "color" / f"{number}.{suffix}").write_bytes(encoded)
        (base / "depth" / f"{number}.png").write_bytes(png(frame.depth))
        (base / "pose" / f"{number}.txt").write_text(text(frame.pose))
    size = 3 if square else 4
    for name, matrix in (("color", COLOR_K), ("depth", DEPTH_K)):
        (base / "intrinsic" / f"intrinsic_{name}.txt").write_text(text(matrix[:size, :size]))
        (base / "intrinsic" / f"extrinsic_{name}.txt").write_text(text(np.eye(4)))


def write_cpp_export(folder: Path, frames: list[Picture], *, depth_png: bool = False) -> None:
    """Official C++ exporter: one flat folder; PGM samples are big-endian."""

    def row(matrix: npt.NDArray[np.float64]) -> str:
        return " ".join(f"{v:g}" for v in matrix.ravel())

    info = {
        "m_versionNumber": "4",
        "m_sensorName": "StructureSensor",
        "m_colorWidth": str(COLOR_SIZE[0]),
        "m_colorHeight": str(COLOR_SIZE[1]),
        "m_depthWidth": str(DEPTH_SIZE[0]),
        "m_depthHeight": str(DEPTH_SIZE[1]),
        "m_depthShift": "1000",
        "m_calibrationColorIntrinsic": row(COLOR_K),
        "m_calibrationColorExtrinsic": row(np.eye(4)),
        "m_calibrationDepthIntrinsic": row(DEPTH_K),
        "m_calibrationDepthExtrinsic": row(np.eye(4)),
        "m_frames.size": str(len(frames)),
    }
    (folder / "_info.txt").write_text("".join(f"{key} = {value}\n" for key, value in info.items()))
    width, height = DEPTH_SIZE
    for number, frame in enumerate(frames):
        stem = folder / f"frame-{number:06d}"
        Path(f"{stem}.color.jpg").write_bytes(jpeg(frame.rgb))
        Path(f"{stem}.pose.txt").write_text(text(frame.pose))
        if depth_png:
            Path(f"{stem}.depth.png").write_bytes(png(frame.depth))
        else:
            head = f"P5\n# written by a test\n{width} {height}\n65535\n".encode()
            Path(f"{stem}.depth.pgm").write_bytes(head + frame.depth.astype(">u2").tobytes())


def write_frames_25k(folder: Path, frames: list[Picture]) -> None:
    """Subset of 25k frames: every hundredth frame, six digits, `intrinsics_` in the scan folder."""
    for name in ("color", "depth", "pose", "label", "instance"):
        (folder / name).mkdir()
    for position, frame in enumerate(frames):
        stem = f"{position * 100:06d}"
        (folder / "color" / f"{stem}.jpg").write_bytes(jpeg(frame.rgb))
        (folder / "depth" / f"{stem}.png").write_bytes(png(frame.depth))
        (folder / "pose" / f"{stem}.txt").write_text(text(frame.pose))
        (folder / "label" / f"{stem}.png").write_bytes(png(frame.depth))
    (folder / "intrinsics_color.txt").write_text(text(COLOR_K))
    (folder / "intrinsics_depth.txt").write_text(text(DEPTH_K))


def write_posed_images(folder: Path, frames: list[Picture], *, depth_K: bool = True) -> None:
    """Detector toolkits: everything in one folder, five digits."""
    for number, frame in enumerate(frames):
        (folder / f"{number:05d}.jpg").write_bytes(jpeg(frame.rgb))
        (folder / f"{number:05d}.png").write_bytes(png(frame.depth))
        (folder / f"{number:05d}.txt").write_text(text(frame.pose))
    (folder / "intrinsic.txt").write_text(text(COLOR_K))
    if depth_K:
        (folder / "depth_intrinsic.txt").write_text(text(DEPTH_K))


def write_mesh(path: Path, vertices: npt.NDArray[np.float64], faces: npt.NDArray[np.int64], form: str = "<") -> None:
    """PLY with colours, `form` "<" or ">" for binary of that byte order, "" for ASCII."""
    if form:
        path.write_bytes(encode.encode_ply(vertices, faces, np.zeros((len(vertices), 4), np.uint8), form))
        return
    head = f"ply\nformat ascii 1.0\ncomment test\nelement vertex {len(vertices)}\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz")
    head += "".join(f"property uchar {channel}\n" for channel in ("red", "green", "blue", "alpha"))
    head += f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    rows = [" ".join(map(repr, map(float, v))) + " 1 2 3 255" for v in vertices]
    rows += ["3 " + " ".join(map(str, f)) for f in faces.tolist()]
    path.write_text(head + "\n".join(rows) + "\n")


def block(center: tuple[float, float, float], size: tuple[float, float, float], yaw: float) -> npt.NDArray[np.float64]:
    """(1000, 3) grid points filling a cuboid turned about z."""
    steps = np.linspace(-0.5, 0.5, 10)
    grid = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(-1, 3) * size
    c, s = np.cos(yaw), np.sin(yaw)
    return np.asarray(grid @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + center, np.float64)


def write_annotation(
    folder: Path,
    parts: list[tuple[str, npt.NDArray[np.float64]]],
    *,
    full_mesh: bool = False,
    repeat: bool = False,
) -> None:
    """Mesh, segments and aggregation; each part becomes two segments with numbers that are no vertex numbers."""
    scan_id = folder.name
    vertices = np.concatenate([points for _, points in parts])
    segs: list[int] = []
    groups: list[dict[str, object]] = []
    for number, (label, points) in enumerate(parts):
        segments = [100_000 + 10 * number, 7 + number]
        segs += [segments[i % 2] for i in range(len(points))]
        groups.append({"id": number, "objectId": number, "segments": segments, "label": label})
    if repeat:
        groups += [{**g, "id": i, "objectId": i, "segments": g["segments"][::-1]} for i, g in enumerate(groups, 50)]  # type: ignore[index]
    mesh = "_vh_clean" if full_mesh else "_vh_clean_2"
    segs_name = f"{scan_id}{mesh}{'' if full_mesh else '.0.010000'}.segs.json"
    write_mesh(folder / f"{scan_id}{mesh}.ply", vertices, np.array([[0, 1, 2], [2, 3, 4]]))
    (folder / segs_name).write_text(json.dumps({"params": {"kThresh": "0.01"}, "sceneId": scan_id, "segIndices": segs}))
    aggregation = {"sceneId": f"scannet.{scan_id}", "appId": "Aggregator.v2", "segGroups": groups}
    name = f"{scan_id}{mesh if full_mesh else ''}.aggregation.json"
    (folder / name).write_text(json.dumps({**aggregation, "segmentsFile": f"scannet.{segs_name}"}))
