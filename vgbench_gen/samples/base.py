"""What the makers of sample scenes hand to the writers: a world that can be looked at, and a path through it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray, IntArray, OrientedBox
from vgbench_gen.samples import FRAMES

FIRST_TOUR = 500
"""The number from which on scenes are tours (`samples.paths.make_tour`)."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleObject:
    """One thing of the world."""

    instance_id: int
    """A number from 1, unique in the world, which `RenderedView.instance` shows."""
    label: str
    """What it is, in lower-case English as the datasets write it ("office chair")."""
    box: OrientedBox
    """The smallest upright box around its triangles in the world frame (z up), whose third axis is vertical."""
    structural: bool = False
    """Whether it is part of the building (wall, floor, door, window); the datasets annotate it like everything else."""


@dataclass(frozen=True, slots=True, eq=False)
class WorldSurface:
    """The world as one triangle mesh."""

    vertices_m: FloatArray
    """The vertices in the world frame, (N, 3) float64 meters."""
    faces: IntArray
    """The triangles as places of their vertices, (M, 3) int64."""
    color: ColorArray
    """The colours of the vertices with light baked in, (N, 3) uint8 RGB."""
    instance: IntArray
    """The `SampleObject.instance_id` of each triangle, (M,) int64."""


@dataclass(frozen=True, slots=True, eq=False)
class RenderedView:
    """One rendered view."""

    color: ColorArray
    """The picture, (H, W, 3) uint8 RGB."""
    depth_m: DepthArray
    """The exact depth z in meters, (H, W) float32; 0 where no surface is hit."""
    instance: np.ndarray
    """The instance of the surface that is hit, (H, W) int32; 0 where none is."""
    cells: Any = None
    """What the world may keep of the view, so that other depth from the same pose is cheaper."""


class World(Protocol):
    """A lit, textured, static scene. Frame: z up, meters, floor at z = 0."""

    @property
    def objects(self) -> tuple[SampleObject, ...]:
        """Everything in it, structural things included, sorted by instance id."""

    def look(self, camera: Camera, world_from_camera: FloatArray) -> RenderedView:
        """Render one view. The same view gives the same bytes, in whatever order views are asked for."""

    def render_depth(
        self, camera: Camera, world_from_camera: FloatArray, view: RenderedView | None = None
    ) -> tuple[DepthArray, np.ndarray, FloatArray]:
        """Geometry alone, cheaper than `look`: (depth_m (H, W) float32, instance (H, W) int32, cosine (H, W) of the
        angle between the ray and the surface normal, 0 where nothing is hit). For sensor models.

        view: of another camera of the same pose, with which it is cheaper still.
        """

    def make_surface(self, edge_m: float = 0.05) -> WorldSurface:
        """The mesh as a scanner fuses it: edges of about `edge_m` at most, so that vertex colours mean something."""


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """A hand-held recording of a world."""

    world: World
    camera: Camera
    """The upright colour camera at delivered size; portrait where its height is above its width."""
    world_from_camera: FloatArray
    """The poses of the frames, (F, 4, 4) float64."""
    timestamps_s: FloatArray
    """The times of the frames in seconds, (F,) float64 and increasing."""
    lost: frozenset[int] = frozenset()
    """The places of the frames whose pose the recorder lost."""
    blurred: frozenset[int] = frozenset()
    """The places of the frames to smear with motion."""
    focus: int = 0
    """The instance of the object on the turntable (WildRGB-D); 0 where there is none."""
    room: str = ""
    """The name that captures of one room share, such as a rescan."""
    notes: dict[str, str] = field(default_factory=dict)
    """Further facts by name, such as the kind of the room under "kind"."""


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """One scene to make: small enough to cross process borders, and deciding every byte of the scene."""

    dataset: str
    """The dataset that it imitates: scannet, scannetpp, ca1m or wildrgbd."""
    scene_id: str
    """Its id, as the dataset's loader names it."""
    seed: int
    number: int
    """The number of the scene in its dataset, from 0; with seed and dataset it names the random stream."""
    frames: int = FRAMES
    camera_kind: str = ""
    """"iphone" or "dslr" for scannetpp; empty for the others."""
    split: str = "train"
    """The official split that the scene stands for."""
