"""Writes small ScanNet++ scenes with known geometry, in the layouts of the dataset. Uses no loader code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import trimesh
from scipy.spatial.transform import Rotation

from vgbench_gen.samples import encode

Array = npt.NDArray[Any]

depth_bin, colmap_line, camera_line = encode.encode_depth_bin, encode.format_colmap_image, encode.format_colmap_camera

SCENE = "0a1b2c3d4e"
SIZE = (320, 240)
PHONE_K = np.array([[300.0, 0, 161.5], [0, 302.0, 117.5], [0, 0, 1]])
PHONE_DISTORTION = (-0.12, 0.03, 0.002, -0.001)
DSLR_SIZE = (300, 200)
DSLR_K = np.array([[135.0, 0, 148.0], [0, 135.5, 101.0], [0, 0, 1]])
DSLR_DISTORTION = (-0.03, -0.006, 0.002, -0.0004)
# Folders of undistorted pictures with those of their masks, in the names of two versions of the toolkit.
UNDISTORTED = [
    ("resized_undistorted_images", "resized_undistorted_masks"),
    ("undistorted_images", "undistorted_anon_masks"),
]
EXTENTS = (1.0, 0.8, 0.6)
BOX_CENTRE = (3.0, 3.0, 0.3)
# Floor with its top at z = 0, wall with its face at y = 7, box on the floor: (centre, extents), meters.
SOLIDS = [((4, 4, -0.05), (8, 8, 0.1)), ((4, 7.05, 3), (8, 0.1, 6)), (BOX_CENTRE, EXTENTS)]


def room() -> trimesh.Trimesh:
    """Mesh of `SOLIDS`, the box finely divided."""
    parts = [trimesh.creation.box(extents=extents, transform=shift(*centre)) for centre, extents in SOLIDS]
    parts[2] = parts[2].subdivide().subdivide().subdivide()
    mesh = trimesh.util.concatenate(parts)
    assert isinstance(mesh, trimesh.Trimesh)
    return mesh


def shift(x: float, y: float, z: float) -> Array:
    """4x4 translation."""
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def look_at(eye: Sequence[float], target: Sequence[float], roll_deg: float = 0.0) -> Array:
    """world_from_camera, x right, y down, z forward, turned about its axis by roll (clockwise as seen)."""
    z = np.subtract(target, eye).astype(float)
    z /= np.linalg.norm(z)
    x = np.cross(z, [0, 0, 1.0])
    x /= np.linalg.norm(x)
    out = np.eye(4)
    out[:3, :3] = np.stack([x, np.cross(z, x), z], 1) @ Rotation.from_euler("z", roll_deg, degrees=True).as_matrix()
    out[:3, 3] = eye
    return out


def ramp(size: tuple[int, int], index: int) -> Array:
    """RGB picture: red and green are the pixel's own column and row, times 0.7, blue is the frame, times 40."""
    width, height = size
    out = np.zeros((height, width, 3), np.uint8)
    out[..., 0] = np.rint(np.arange(width) * 0.7)
    out[..., 1] = np.rint(np.arange(height) * 0.7)[:, None]
    out[..., 2] = 40 * index
    return out


def true_depth(pose: Array, rays_xy: Array) -> Array:
    """(N,) z-depth of rays (x, y, 1), (N, 2), to the first of `SOLIDS`, by slabs; 0 for a miss."""
    world = np.concatenate([rays_xy, np.ones((len(rays_xy), 1))], 1) @ pose[:3, :3].T
    nearest = np.full(len(world), np.inf)
    for centre, extents in SOLIDS:
        half = np.array(extents) / 2
        with np.errstate(divide="ignore"):
            sides = (np.array(centre) + np.stack([-half, half])[:, None] - pose[:3, 3]) / world
        enter, leave = sides.min(0).max(1), sides.max(0).min(1)
        nearest = np.minimum(nearest, np.where((enter <= leave) & (enter > 0), enter, np.inf))
    return np.where(np.isfinite(nearest), nearest, 0.0)


def depth_grid_rays(K: Array, distortion: Sequence[float], size: tuple[int, int]) -> Array:
    """(192 * 256, 2) rays of the sensor depth pixels, which share the distorted grid of colour."""
    x, y = np.meshgrid(np.arange(256.0), np.arange(192.0))
    pixels = np.stack([(x + 0.5) * size[0] / 256 - 0.5, (y + 0.5) * size[1] / 192 - 0.5], -1).reshape(-1, 1, 2)
    criteria = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 100, 1e-12)
    return np.asarray(cv2.undistortPoints(pixels, K, np.array(distortion), criteria=criteria)).reshape(-1, 2)


# -- files ----------------------------------------------------------------------------------------------------------


def write_video(path: Path, frames: Iterable[Array]) -> None:
    """Lossless video of RGB pictures."""
    writer: Any = None
    for frame in frames:
        if writer is None:
            size = (frame.shape[1], frame.shape[0])
            writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, cv2.VideoWriter.fourcc(*"FFV1"), 30, size)
        writer.write(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
    assert writer is not None
    writer.release()


def write_picture(path: Path, rgb: Array) -> None:
    """JPEG or PNG by the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done, data = cv2.imencode(path.suffix.lower(), cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR) if rgb.ndim == 3 else rgb)
    assert done
    path.write_bytes(data.tobytes())


def write_colmap(
    folder: Path, camera: str, poses: Mapping[str, Array], points: str = "", promised: int | None = None
) -> None:
    """cameras.txt, images.txt (second lines are `points`, blank by default) and an empty points3D.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in encode.format_colmap_model(camera, poses, points, promised).items():
        (folder / name).write_text(text)


def nerfstudio(poses: Mapping[str, Array], size: tuple[int, int], K: Array, **camera: Any) -> dict[str, Any]:
    """A transforms.json: OpenGL camera axes and a world with x, y swapped and z mirrored."""
    frames = [
        {"file_path": name, "transform_matrix": encode.convert_to_nerfstudio(pose).tolist(), "is_bad": False}
        for name, pose in poses.items()
    ]
    intrinsics = {"fl_x": K[0, 0], "fl_y": K[1, 1], "cx": K[0, 2] + 0.5, "cy": K[1, 2] + 0.5}
    return {**intrinsics, "w": size[0], "h": size[1], **camera, "frames": frames, "test_frames": []}


def write_json(path: Path, content: Any) -> None:
    """JSON file, folders made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_scans(scans: Path, mesh: trimesh.Trimesh) -> None:
    """Mesh, one segment for every ten vertices, and annotations: floor, box, and a part that overlaps the box."""
    scans.mkdir(parents=True, exist_ok=True)
    mesh.export(scans / "mesh_aligned_0.05.ply", file_type="ply")
    count = len(mesh.vertices)
    # Shuffled ids: an id is no vertex index.
    ids = 1000 + np.random.default_rng(3).permutation(count // 10 + 1)
    segments = np.repeat(ids, 10)[:count]
    write_json(scans / "segments.json", {"sceneId": SCENE, "segIndices": segments.tolist()})
    low = np.array(BOX_CENTRE) - np.array(EXTENTS) / 2
    high = np.array(BOX_CENTRE) + np.array(EXTENTS) / 2
    on_box = ((mesh.vertices >= low - 1e-6) & (mesh.vertices <= high + 1e-6)).all(1)
    pure = [int(i) for i in np.unique(segments) if on_box[segments == i].all()]
    turn = np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]])  # rows are axes: the first is +y
    obb = {
        "centroid": list(BOX_CENTRE),
        "axesLengths": [EXTENTS[1], EXTENTS[0], EXTENTS[2]],
        "normalizedAxes": turn.reshape(-1).tolist(),
    }
    floor = {**obb, "centroid": [4, 4, 0], "axesLengths": [8, 8, 0.1]}
    groups = [
        {"id": 1, "objectId": 1, "index": 0, "label": "Floor", "segments": [int(segments[0])], "obb": floor},
        {"id": 2, "objectId": 2, "index": 1, "label": " Storage Box ", "segments": pure, "obb": obb},
        {"id": 5, "objectId": 5, "index": 2, "label": "box lid", "segments": pure[:5], "obb": obb},
        {"id": 6, "objectId": 6, "index": 3, "label": "SPLIT", "segments": pure[:1], "obb": obb},
    ]
    write_json(scans / "segments_anno.json", {"sceneId": SCENE, "segGroups": groups})


@dataclass
class Phone:
    """An iPhone capture: poses by video index (all frames have colour and depth)."""

    poses: list[Array]
    depths: list[Array] = field(default_factory=list)
    mesh: trimesh.Trimesh = field(default_factory=room)

    def names(self) -> list[str]:
        """frame_%06d."""
        return [f"frame_{i:06d}" for i in range(len(self.poses))]

    def json(self) -> dict[str, Any]:
        """pose_intrinsic_imu.json; the raw `pose` is another world on purpose."""
        return {
            key: {
                "timestamp": 100.0 + i / 60,
                "pose": (shift(5, 5, 5) @ pose).tolist(),
                "intrinsic": PHONE_K.tolist(),
                "aligned_pose": pose.tolist(),
                "imu": {"gravity": [0, 1, 0]},
            }
            for i, (key, pose) in enumerate(zip(self.names(), self.poses, strict=True))
        }

    def write(self, root: Path, variant: str = "A", *, video: bool = True, colmap: bool = True) -> Path:
        """Write `<root>/data/<scene>/iphone` and scans; returns the scene's folder."""
        scene = root / "data" / SCENE
        phone = scene / "iphone"
        phone.mkdir(parents=True)
        rays = depth_grid_rays(PHONE_K, PHONE_DISTORTION if colmap else (0.0,) * 4, SIZE)
        self.depths = [true_depth(pose, rays).reshape(192, 256) for pose in self.poses]
        (phone / "depth.bin").write_bytes(depth_bin(self.depths, variant))
        pictures = [ramp(SIZE, i) for i in range(len(self.poses))]
        if video:
            write_video(phone / "rgb.mkv", pictures)
            write_video(phone / "rgb_mask.mkv", [np.full_like(picture, 255) for picture in pictures])
        else:
            for key, picture in zip(self.names(), pictures, strict=True):
                write_picture(phone / "rgb" / f"{key}.jpg", picture)
        write_json(phone / "pose_intrinsic_imu.json", self.json())
        if colmap:
            names = {f"video/{key}.jpg": pose for key, pose in zip(self.names(), self.poses, strict=True)}
            some = dict(list(names.items())[::2])
            write_colmap(phone / "colmap", camera_line("OPENCV", SIZE, PHONE_K, PHONE_DISTORTION), some)
        write_scans(scene / "scans", self.mesh)
        return scene


def write_dslr(root: Path, poses: Mapping[str, Array], mesh: trimesh.Trimesh) -> Path:
    """`<root>/data/<scene>/dslr`: fisheye pictures (PNG bytes would not do: JPEG of quality 100), masks that hide
    nothing, COLMAP, nerfstudio's file, mesh."""
    scene = root / "data" / SCENE
    for number, name in enumerate(poses):
        picture = ramp(DSLR_SIZE, number)
        done, data = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 100])
        assert done
        path = scene / "dslr" / "resized_images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.tobytes())
        mask = np.full(DSLR_SIZE[::-1], 255, np.uint8)
        write_picture(scene / "dslr/resized_anon_masks" / f"{Path(name).stem}.png", mask)
    fisheye = dict(zip(("k1", "k2", "k3", "k4"), DSLR_DISTORTION, strict=True))
    content = nerfstudio(poses, DSLR_SIZE, DSLR_K, camera_model="OPENCV_FISHEYE", **fisheye)
    write_json(scene / "dslr/nerfstudio/transforms.json", content)
    line = camera_line("OPENCV_FISHEYE", DSLR_SIZE, DSLR_K, DSLR_DISTORTION)
    write_colmap(scene / "dslr" / "colmap", line, poses, points="10.5 20.5 -1 30.25 40.5 7")
    write_scans(scene / "scans", mesh)
    return scene
