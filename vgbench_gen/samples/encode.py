"""Bytes of the files that the four layouts are made of. Forms: `docs/formats.md`.

Nothing here reads what it wrote, or uses what the loaders use, so tests of the loaders may build files of it, faulty
ones too. The same input gives the same bytes: no time stamps, no owner, no compressor threads.
"""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import lz4.block
import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import FloatArray

Array = npt.NDArray[Any]

MESH_FROM_NERFSTUDIO: FloatArray = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1]])
_OPENCV_FROM_OPENGL: FloatArray = np.diag([1.0, -1.0, -1.0, 1.0])
# Without a predictor, which not every reader has for floating point (code of TIFF Technical Note 2).
_TIFF_ADOBE_DEFLATE = 8


# -- pictures ---------------------------------------------------------------------------------------------------------


def encode_png(pixels: Array, level: int = 1) -> bytes:
    """PNG of RGB (H, W, 3) uint8 or grey (H, W) uint8 or uint16; `level` is zlib's, 0 to 9."""
    flags = [cv2.IMWRITE_PNG_COMPRESSION, level]
    if pixels.ndim == 3:
        # Noisy pictures repeat nothing, so the shortest code of differences to the row above is 12 % larger than the
        # best filter of each row with runs, in half of its time, and read in two thirds.
        flags += [cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_HUFFMAN_ONLY]
        flags += [cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_UP]
    elif level == 1:
        flags += [cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_UP]  # 4 % larger, in two thirds of the time
    return _encode_image(".png", pixels, flags)


def encode_jpeg(rgb: Array, quality: int = 95, full_chroma: bool = False) -> bytes:
    """JPEG of RGB (H, W, 3) uint8; `full_chroma` leaves colour at full resolution (4:4:4)."""
    flags = [cv2.IMWRITE_JPEG_QUALITY, quality]
    if full_chroma:
        flags += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    return _encode_image(".jpg", rgb, flags)


def encode_tiff(pixels: Array) -> bytes:
    """TIFF of one channel (H, W), deflated."""
    return _encode_image(
        ".tiff", pixels, [cv2.IMWRITE_TIFF_COMPRESSION, _TIFF_ADOBE_DEFLATE, cv2.IMWRITE_TIFF_PREDICTOR, 1]
    )


def _encode_image(suffix: str, pixels: Array, flags: Sequence[int]) -> bytes:
    pixels = np.ascontiguousarray(pixels)
    done, data = cv2.imencode(suffix, cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR) if pixels.ndim == 3 else pixels, flags)
    if not done:
        raise ValueError(f"cannot encode {pixels.dtype} {pixels.shape} as {suffix}")
    return data.tobytes()


def convert_to_millimetres(depth_m: Array) -> npt.NDArray[np.uint16]:
    """Depth (h, w) meters as whole millimeters; what is unknown or does not fit is 0."""
    finite = np.where(np.isfinite(depth_m), depth_m, 0.0)
    mm = np.rint(finite * 1000.0)
    return np.where((mm > 0) & (mm < 65536), mm, 0).astype(np.uint16)


def encode_json(value: Any) -> bytes:
    """JSON; arrays as nested lists."""
    return json.dumps(value, default=lambda item: item.tolist()).encode()


# -- ScanNet ----------------------------------------------------------------------------------------------------------


def encode_sens_header(
    *,
    name: bytes,
    color_K: Array,
    depth_K: Array,
    color_size: tuple[int, int],
    depth_size: tuple[int, int],
    count: int,
    version: int = 4,
    depth_to_color: Array | None = None,
    color_kind: int = 2,
    depth_kind: int = 1,
    shift: float = 1000.0,
) -> bytes:
    """Everything of a `.sens` file before its first record. Intrinsics are (4, 4), sizes (width, height)."""
    depth_to_color = np.eye(4) if depth_to_color is None else depth_to_color
    return b"".join(
        [
            struct.pack("<IQ", version, len(name)),
            name,
            np.array([color_K, np.eye(4), depth_K, depth_to_color], "<f4").tobytes(),
            struct.pack("<ii", color_kind, depth_kind),
            struct.pack("<IIII", *color_size, *depth_size),
            struct.pack("<fQ", shift, count),
        ]
    )


def encode_sens_record(pose: Array, time_us: int, color: bytes, depth: bytes, color_count: int | None = None) -> bytes:
    """One frame of a `.sens` file: camera-to-world pose (4, 4), both streams stamped alike as in the release."""
    counts = struct.pack("<QQQQ", time_us, time_us, len(color) if color_count is None else color_count, len(depth))
    return pose.astype("<f4").tobytes() + counts + color + depth


def encode_sens_depth(depth_mm: npt.NDArray[np.uint16]) -> bytes:
    """Depth as the release stores it: zlib around little-endian 16-bit rows."""
    return zlib.compress(depth_mm.astype("<u2").tobytes(), 4)  # as small as level 6, in two thirds of its time


def encode_ply(vertices: Array, faces: Array, color: Array, order: str = "<") -> bytes:
    """Binary PLY of a triangle mesh; `color` (V, 3) or (V, 4) uint8, `order` "<" or ">"."""
    channels = ("red", "green", "blue", "alpha")[: color.shape[1]]
    kind = {"<": "binary_little_endian", ">": "binary_big_endian"}[order]
    head = f"ply\nformat {kind} 1.0\nelement vertex {len(vertices)}\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz")
    head += "".join(f"property uchar {channel}\n" for channel in channels)
    head += f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    points = np.zeros(len(vertices), [("xyz", order + "f4", 3), ("color", "u1", len(channels))])
    points["xyz"], points["color"] = vertices, color
    triangles = np.zeros(len(faces), [("n", "u1"), ("i", order + "i4", 3)])
    triangles["n"], triangles["i"] = 3, faces
    return head.encode() + points.tobytes() + triangles.tobytes()


# -- ScanNet++ --------------------------------------------------------------------------------------------------------


def encode_depth_bin(frames_m: Sequence[Array], variant: str = "A") -> bytes:
    """`depth.bin` of depths (192, 256) meters: variant A (LZ4, millimeters), B (deflate, float meters per frame),
    "B16" (as B, millimeters) or C (one deflate stream of float meters)."""
    if variant == "C":
        return _deflate(b"".join(frame.astype("<f4").tobytes() for frame in frames_m))
    out = []
    for frame in frames_m:
        if variant == "B":
            block = _deflate(frame.astype("<f4").tobytes())
        elif variant == "B16":
            block = _deflate(convert_to_millimetres(frame).astype("<u2").tobytes())
        else:
            block = lz4.block.compress(convert_to_millimetres(frame).astype("<u2").tobytes(), store_size=False)
        out.append(struct.pack("<I", len(block)) + block)
    return b"".join(out)


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def format_colmap_camera(model: str, size: tuple[int, int], K: Array, distortion: Sequence[float] = ()) -> str:
    """Line of cameras.txt; COLMAP counts pixels from the corner of the image."""
    params = [K[0, 0], K[1, 1], K[0, 2] + 0.5, K[1, 2] + 0.5, *distortion]
    return f"1 {model} {size[0]} {size[1]} " + " ".join(f"{value:.17g}" for value in params)


def format_colmap_image(number: int, name: str, world_from_camera: Array, camera_id: int = 1) -> str:
    """First line of one image in images.txt: quaternion (w first) and translation of camera_from_world."""
    camera_from_world = np.linalg.inv(np.asarray(world_from_camera, np.float64))
    quaternion = Rotation.from_matrix(camera_from_world[:3, :3]).as_quat(scalar_first=True)
    numbers = (*quaternion, *camera_from_world[:3, 3])
    return " ".join([str(number), *(f"{value:.17g}" for value in numbers), str(camera_id), name])


def format_colmap_model(
    camera: str, poses: Mapping[str, Array], points: str = "", promised: int | None = None
) -> dict[str, str]:
    """Text of cameras.txt, images.txt and an empty points3D.txt by file name.

    camera: line of the only camera. poses: world_from_camera by image name. points: second line of every image.
    promised: count in the head of images.txt, where it is to differ.
    """
    lines = [
        "# Image list with two lines of data per image:",
        "#   IMAGE_ID, QW, QX, QY, QZ, TX, TY, TZ, CAMERA_ID, NAME",
        "#   POINTS2D[] as (X, Y, POINT3D_ID)",
        f"# Number of images: {len(poses) if promised is None else promised}, mean observations per image: 0",
    ]
    for number, (name, pose) in enumerate(poses.items(), 1):
        lines += [format_colmap_image(number, name, pose), points]
    cameras = ["# Camera list with one line of data per camera:", "#   CAMERA_ID, MODEL, WIDTH, HEIGHT, PARAMS[]"]
    cameras += ["# Number of cameras: 1", camera]
    points3d = ["# 3D point list with one line of data per point:"]
    points3d += ["#   POINT3D_ID, X, Y, Z, R, G, B, ERROR, TRACK[] as (IMAGE_ID, POINT2D_IDX)"]
    points3d += ["# Number of points: 0, mean track length: 0"]
    named = {"cameras.txt": cameras, "images.txt": lines, "points3D.txt": points3d}
    return {name: "\n".join(content) + "\n" for name, content in named.items()}


def convert_to_nerfstudio(world_from_camera: Array) -> FloatArray:
    """`transform_matrix` of a pose in the frame of the mesh: OpenGL camera axes, world with x, y swapped, z turned."""
    matrix: FloatArray = MESH_FROM_NERFSTUDIO @ world_from_camera @ _OPENCV_FROM_OPENGL
    return matrix


# -- CA-1M ------------------------------------------------------------------------------------------------------------


def add_tar_member(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    """Add one file, readable by all, dated 1970."""
    header = tarfile.TarInfo(name)
    header.size, header.mode = len(data), 0o444
    archive.addfile(header, io.BytesIO(data))
