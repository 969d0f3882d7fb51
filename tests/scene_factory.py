"""A small room with exact truth: textured boxes and walls, ray-cast in numpy, served through the `Scene` contract."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray, OrientedBox
from vgbench_gen.geometry.boxes import corners as corners_of
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import invert, make_pose, transform
from vgbench_gen.scenes.base import DepthKind, Frame, Issue, Scene, SceneObject

ROOM_M = np.array([6.0, 5.0, 2.6])
JOINT_M = 0.04  # width of the joints between panels


@dataclass(eq=False)
class Solid:
    """A box in the world (z up), with a texture; `inward` marks the room itself."""

    box: OrientedBox
    label: str
    texture: ColorArray
    inward: bool = False
    panel_m: float = 0.0  # side of square panels with dark joints on every face; 0 for none


class RenderedFrame(Frame):
    """Rendered when asked; keeps nothing. `depth_noise_m` adds fixed noise to the depth only."""

    def __init__(
        self, frame_id: str, camera: Camera, depth_camera: Camera, pose: FloatArray, solids: list[Solid], noise_m: float
    ) -> None:
        self.id, self.timestamp_s, self.pose_deviation = frame_id, None, 0.0
        self.camera, self.depth_camera, self.world_from_camera = camera, depth_camera, pose
        self._solids, self._noise_m = solids, noise_m

    def color(self) -> ColorArray:
        return render(self.camera, self.world_from_camera, self._solids)[1]

    def depth_m(self) -> DepthArray:
        depth = render(self.depth_camera, self.world_from_camera, self._solids, shade=False)[0]
        if self._noise_m:
            rng = np.random.default_rng(abs(hash(self.id)) % 2**32 if not self.id.isdigit() else int(self.id))
            depth = depth + rng.normal(0, self._noise_m, depth.shape)
        return depth.astype(np.float32)


class RoomScene(Scene):
    """See `room_scene`."""

    def __init__(self, frames: list[RenderedFrame], objects: list[SceneObject], kind: DepthKind, dataset: str) -> None:
        self.dataset, self.id, self.split = dataset, "room", "val"
        self.frames, self.objects = frames, objects
        self.up_world = np.array([0.0, 0.0, 1.0])
        self.depth_kind, self.licence, self.source_digest = kind, "cc0-1.0", "0" * 32
        self.issues: list[Issue] = []
        self.total_frames = len(frames)
        self.solids: list[Solid] = []


def room_scene(
    seed: int = 0,
    frames: int = 14,
    width: int = 640,
    height: int = 480,
    depth_kind: DepthKind = "laser",
    depth_scale: float = 0.5,
    noise_m: float = 0.0,
    world_from_room: FloatArray | None = None,
    dataset: str = "ca1m",
    panel_m: float = 0.0,
    grid: bool = False,
) -> RoomScene:
    """A room with a table, things on and around it, and a camera that walks an arc and looks at them.

    grid: the camera is held high and stops at rows and columns instead, and low boxes stand around: places are ahead,
    behind and aside, and what ends higher in the image may be lower.

    depth_scale: depth size over colour size. world_from_room: (4, 4) another world frame for the same room.
    panel_m: side of the panels of every face, whose joints are straight lines; 0 for none.
    """
    rng = np.random.default_rng(seed)
    world_from_room = np.eye(4) if world_from_room is None else world_from_room
    solids = [Solid(make_box(ROOM_M / 2, ROOM_M, 0.0), "room", make_texture(rng, (150, 150, 140)), True, panel_m)]
    for label, center, size, yaw in _furniture(rng):
        color = tuple(int(c) for c in rng.integers(60, 220, 3))
        solids.append(
            Solid(make_box(np.array(center), np.array(size), yaw), label, make_texture(rng, color), panel_m=panel_m)
        )
    if grid:
        apart = np.random.default_rng(17)  # one of its own: everything else stays as it is
        for name, place, sides in _LOW_BOXES:
            box = make_box(np.array(place), np.array(sides), 0.2)
            solids.append(Solid(box, name, make_texture(apart, (120, 90, 160)), panel_m=panel_m))
    camera = Camera(
        np.array([[0.9 * width, 0, (width - 1) / 2 + 3], [0, 0.9 * width, (height - 1) / 2 - 2], [0, 0, 1]]),
        width,
        height,
    )
    depth_camera = resize_camera(camera, round(width * depth_scale), round(height * depth_scale))
    rendered = []
    target = np.array([3.0, 2.9, 0.7])
    for i, angle in enumerate(np.linspace(-1.0, 1.0, frames)):
        radius = 2.3 + 0.35 * np.sin(3 * angle) + rng.normal(0, 0.05)
        eye = np.array([3.0 + radius * np.sin(angle), 2.9 - radius * np.cos(angle), 1.35 + 0.15 * np.sin(5 * angle)])
        look = target + rng.normal(0, 0.12, 3)
        if grid:
            eye = np.array([2.2 + 0.8 * (i % 3), 0.3 + 0.55 * (i // 3), 2.2])
        rendered.append(
            RenderedFrame(str(10 * i), camera, depth_camera, world_from_room @ looking_at(eye, look), solids, noise_m)
        )
    objects = [
        SceneObject(str(i), solid.label, move_box(solid.box, world_from_room))
        for i, solid in enumerate(solids)
        if not solid.inward
    ]
    if not np.array_equal(world_from_room, np.eye(4)):
        moved = [replace(s, box=move_box(s.box, world_from_room)) for s in solids]
        for frame in rendered:
            frame._solids = moved
    scene = RoomScene(rendered, objects, depth_kind, dataset)
    scene.solids = rendered[0]._solids
    scene.up_world = world_from_room[:3, 2]
    return scene


_LOW_BOXES = (
    ("stool", (2.49, 2.26, 0.1), (0.34, 0.43, 0.2)),
    ("basket", (3.14, 2.4, 0.15), (0.45, 0.4, 0.3)),
    ("stool", (2.5, 4.6, 0.15), (0.5, 0.4, 0.3)),
)


def looking_at(eye: FloatArray, target: FloatArray) -> FloatArray:
    """(4, 4) room_from_camera of an upright camera at `eye` that looks at `target`, z up."""
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return make_pose(np.stack([right, np.cross(forward, right), forward], axis=1), eye)


def render(
    camera: Camera, world_from_camera: FloatArray, solids: list[Solid], shade: bool = True
) -> tuple[FloatArray, ColorArray]:
    """(z-depth (h, w) meters, RGB (h, w, 3)) by slab intersection with every solid."""
    v, u = np.mgrid[: camera.height, : camera.width]
    rays = np.stack([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones(u.shape)], axis=-1).reshape(
        -1, 3
    )
    origin, directions = world_from_camera[:3, 3], rays @ world_from_camera[:3, :3].T
    depth = np.full(len(rays), np.inf)
    color = np.zeros((len(rays), 3), dtype=np.uint8)
    for solid in solids:
        local_origin = (origin - solid.box.center_m) @ solid.box.rotation
        local = directions @ solid.box.rotation
        seen = np.arange(len(rays)) if solid.inward else _may_hit(camera, world_from_camera, solid.box)
        # In parts that stay in the cache of a processor.
        for start in range(0, len(seen), 4096):
            rows = seen[start : start + 4096]
            t, axis = _meet(solid, local_origin, local[rows])
            hit = t < depth[rows]
            rows, t = rows[hit], t[hit]
            depth[rows] = t
            if shade:
                color[rows] = _shaded(solid, local_origin + local[rows] * t[:, None], axis[hit])
    return depth.reshape(u.shape), color.reshape(*u.shape, 3)


def _may_hit(camera: Camera, world_from_camera: FloatArray, box: OrientedBox) -> np.ndarray:
    """(n,) pixels in the rectangle around a box in the image, row by row; all where it reaches behind the camera."""
    rows, columns = np.arange(camera.height), np.arange(camera.width)
    corners = transform(invert(world_from_camera), corners_of(box))
    if corners[:, 2].min() > 0.01:
        u = camera.fx * corners[:, 0] / corners[:, 2] + camera.cx
        v = camera.fy * corners[:, 1] / corners[:, 2] + camera.cy
        rows = rows[(rows > v.min() - 1) & (rows < v.max() + 1)]
        columns = columns[(columns > u.min() - 1) & (columns < u.max() + 1)]
    return (rows[:, None] * camera.width + columns).ravel()


def _meet(solid: Solid, origin: FloatArray, directions: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """(n,) how far along rays in the frame of a solid they meet it, `inf` where they miss, and the axis of the face."""
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.sign(directions) * solid.box.size_m / 2
        far = (away - origin) / directions
        nearest_far = np.minimum(np.minimum(far[:, 0], far[:, 1]), far[:, 2])  # faster than along an axis of three
        if solid.inward:
            return nearest_far, far.argmin(axis=1)
        near = (-away - origin) / directions
    farthest_near = np.maximum(np.maximum(near[:, 0], near[:, 1]), near[:, 2])
    met = (farthest_near > 0) & (farthest_near <= nearest_far)
    return np.where(met, farthest_near, np.inf), near.argmax(axis=1)


def _shaded(solid: Solid, points: FloatArray, axis: np.ndarray) -> ColorArray:
    rows = np.arange(len(points))
    a = points[rows, (axis + 1) % 3] + 1.7 * axis
    b = points[rows, (axis + 2) % 3]
    texture = solid.texture
    x, y = np.mod(a * 300, texture.shape[1]), np.mod(b * 300, texture.shape[0])
    x0, y0 = x.astype(int) % texture.shape[1], y.astype(int) % texture.shape[0]
    x1, y1 = (x0 + 1) % texture.shape[1], (y0 + 1) % texture.shape[0]
    wx, wy = (x - np.floor(x))[:, None], (y - np.floor(y))[:, None]
    top = texture[y0, x0] * (1 - wx) + texture[y0, x1] * wx
    samples = top * (1 - wy) + (texture[y1, x0] * (1 - wx) + texture[y1, x1] * wx) * wy
    if solid.panel_m:
        samples = 150 + 0.15 * (samples - 150)  # detectors of lines see the joints, not the noise
        along = np.stack([points[rows, (axis + 1) % 3], points[rows, (axis + 2) % 3]], axis=1)
        samples[(np.mod(along, solid.panel_m) < JOINT_M).any(axis=1)] = 50
    light = np.array([0.85, 0.7, 1.0])[axis]
    shaded: ColorArray = (samples * light[:, None]).astype(np.uint8)
    return shaded


def make_texture(rng: np.random.Generator, base: tuple[int, ...]) -> ColorArray:
    noise = np.zeros((512, 512))
    for cells, weight in ((16, 0.5), (64, 0.9), (128, 0.6)):
        noise += weight * cv2.resize(rng.normal(0, 1, (cells, cells)), (512, 512), interpolation=cv2.INTER_CUBIC)
    return np.clip(np.array(base) + 38 * noise[..., None], 5, 250).astype(np.uint8)


def make_box(center: FloatArray, size: FloatArray, yaw_rad: float) -> OrientedBox:
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return OrientedBox(np.asarray(center, dtype=np.float64), np.asarray(size, dtype=np.float64), rotation)


def move_box(box: OrientedBox, dst_from_src: FloatArray) -> OrientedBox:
    center = transform(dst_from_src, box.center_m[None])[0]
    return OrientedBox(center, box.size_m, dst_from_src[:3, :3] @ box.rotation)


def _furniture(rng: np.random.Generator) -> list[tuple[str, list[float], list[float], float]]:
    return [
        ("table", [3.0, 3.0, 0.36], [1.4, 0.8, 0.72], 0.15),
        ("lamp", [2.6, 3.15, 0.72 + 0.2], [0.5, 0.12, 0.4], 0.3),
        ("basket", [3.35, 2.9, 0.72 + 0.11], [0.3, 0.22, 0.22], float(rng.uniform(-0.5, 0.5))),
        ("cabinet", [4.6, 4.5, 0.6], [0.8, 0.5, 1.2], 0.0),
        ("stool", [1.75, 2.6, 0.24], [0.4, 0.4, 0.48], 0.4),
        ("crate", [4.35, 2.95, 0.2], [0.5, 0.4, 0.4], -0.3),
        ("shelf", [1.2, 4.6, 0.9], [0.9, 0.4, 1.8], 0.0),
    ]
