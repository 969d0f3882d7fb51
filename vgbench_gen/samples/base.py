"""What the makers of sample scenes hand to the writers: a world that can be looked at, and a path through it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray, IntArray, OrientedBox


@dataclass(frozen=True, slots=True, eq=False)
class SampleObject:
    """One thing of the world.

    instance_id: >= 1, unique in the world, the number that `Look.instance` shows.
    label: lower-case English, as the datasets write it ("office chair").
    box: smallest upright box around the object's triangles, world frame (z up); its third axis is vertical.
    structural: part of the building (wall, floor, door, window); the datasets annotate it like everything else.
    """

    instance_id: int
    label: str
    box: OrientedBox
    structural: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class WorldSurface:
    """The world as one triangle mesh.

    vertices_m: (N, 3) float64, world frame. faces: (M, 3) int64. color: (N, 3) uint8 RGB, light baked in.
    instance: (M,) int64, `SampleObject.instance_id` of each face.
    """

    vertices_m: FloatArray
    faces: IntArray
    color: ColorArray
    instance: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class RenderedView:
    """One rendered view.

    color: (H, W, 3) uint8 RGB. depth_m: (H, W) float32 exact z-depth, 0 where no surface is hit.
    instance: (H, W) int32 instance of the surface that is hit, 0 where none.
    """

    color: ColorArray
    depth_m: DepthArray
    instance: np.ndarray


class World(Protocol):
    """A lit, textured, static scene. Frame: z up, metres, floor at z = 0."""

    @property
    def objects(self) -> tuple[SampleObject, ...]:
        """Everything in it, structural things included, sorted by instance id."""

    def look(self, camera: Camera, world_from_camera: FloatArray) -> RenderedView:
        """Render one view. The same view gives the same bytes, in whatever order views are asked for."""

    def render_depth(self, camera: Camera, world_from_camera: FloatArray) -> tuple[DepthArray, np.ndarray, FloatArray]:
        """Geometry alone, cheaper than `look`: (depth_m (H, W) float32, instance (H, W) int32, cosine (H, W) of the
        angle between the ray and the surface normal, 0 where nothing is hit). For sensor models."""

    def make_surface(self, edge_m: float = 0.05) -> WorldSurface:
        """The mesh as a scanner fuses it: edges of about `edge_m` at most, so that vertex colours mean something."""


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """A hand-held recording of a world.

    world: what is filmed. camera: upright colour camera at delivered size; portrait when height > width.
    world_from_camera: (F, 4, 4) float64. timestamps_s: (F,) float64, increasing.
    lost: frames whose pose the recorder lost. blurred: frames to smear with motion.
    focus: instance of the turntable object (WildRGB-D), else 0.
    room: name shared by captures of one room (a rescan).
    """

    world: World
    camera: Camera
    world_from_camera: FloatArray
    timestamps_s: FloatArray
    lost: frozenset[int] = frozenset()
    blurred: frozenset[int] = frozenset()
    focus: int = 0
    room: str = ""
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """One scene to make; small, crosses process borders, decides every byte of the scene.

    dataset: scannet, scannetpp, ca1m or wildrgbd. scene_id: as the dataset's loader names it. seed: of the whole set.
    number: running number of the scene in its dataset (0, 1, ...); with seed and dataset it names the random stream.
    frames: how many to film. camera_kind: "iphone" or "dslr" for scannetpp, else "".
    """

    dataset: str
    scene_id: str
    seed: int
    number: int
    frames: int = 30
    camera_kind: str = ""
    split: str = "train"
