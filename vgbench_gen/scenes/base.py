"""What a scene is to the rest of the house. Loaders implement this; tasks see nothing else.

Conventions inside (see `vgbench_gen.geometry`): `world_from_camera`, camera x right, y down, z forward, metres,
z-depth with 0 = unknown, pixel (0, 0) is the centre of the top-left pixel. Loaders convert at the border.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.registry import Registry
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray, OrientedBox

DepthKind = Literal["sensor", "laser"]
BoxSource = Literal["annotated", "surface"]
Split = Literal["train", "val", "test", "unknown"]


@dataclass(frozen=True, slots=True)
class SceneRef:
    """A scene that was found but not opened.

    scene_id: as `docs/architecture.md#small-ones-fixed-so-that-nobody-decides-twice` has it ("scene0000_00",
    "7c9be0a21f/iphone", "42898570", "box/scenes_000"). path: the file or folder `open` needs. size_bytes: for
    scheduling the largest first.
    """

    dataset: str
    scene_id: str
    path: Path
    variant: str = ""
    split: str = "unknown"
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SceneObject:
    """An annotated object.

    instance_id: as the dataset writes it. label: the dataset's own word, lower case, stripped.
    box: gravity-aligned where gravity is known; frame "world".
    points_m: (N, 3) float64 surface points in the world frame where a mesh gives them, else None.
    box_source: "annotated" where the dataset says how large the object is, "surface" where the box was fitted to the
    part of its surface that was scanned.
    """

    instance_id: str
    label: str
    box: OrientedBox
    points_m: FloatArray | None = None
    box_source: BoxSource = "annotated"


@dataclass(frozen=True, slots=True, eq=False)
class FrameObject:
    """An annotated object as one frame's own list has it (CA-1M).

    box: frame "camera". rendered_px, projected_px: (x1, y1, x2, y2) in pixels of `color()`, or None.
    """

    instance_id: str
    label: str
    box: OrientedBox
    rendered_px: tuple[float, float, float, float] | None = None
    projected_px: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Issue:
    """Something wrong that did not cost the scene. frame_id is "" for the scene as a whole."""

    frame_id: str
    reason: str
    detail: str


class Frame(abc.ABC):
    """One image with its pose and depth. Pixels are lazy: nothing is decoded until asked, nothing is kept.

    id: as the dataset writes it. timestamp_s: seconds, or None.
    camera: of `color()`. depth_camera: of `depth_m()`; same centre and axes as `camera`.
    world_from_camera: (4, 4) float64 rigid. pose_deviation: max |R^T R - I| before it was repaired.
    """

    id: str
    timestamp_s: float | None
    camera: Camera
    depth_camera: Camera
    world_from_camera: FloatArray
    pose_deviation: float

    @abc.abstractmethod
    def color(self) -> ColorArray:
        """(H, W, 3) uint8 RGB, undistorted, size as in `camera`.

        Raises:
            FrameError: the bytes are damaged or have another size than the camera's.
        """

    @abc.abstractmethod
    def depth_m(self) -> DepthArray:
        """(h, w) float32 z-depth in metres, 0 = unknown, size as in `depth_camera`.

        Raises:
            FrameError: the bytes are damaged or have another size than the camera's.
        """

    def encoded_color(self) -> bytes | None:
        """The original JPEG or PNG bytes where decoding them gives exactly `color()`, else None."""
        return None

    def valid_mask(self) -> BoolArray | None:
        """(H, W) True where `color()` may be used (not anonymised, not outside the lens), or None for all."""
        return None

    def object_mask(self) -> BoolArray | None:
        """(H, W) True on the foreground object (WildRGB-D), or None."""
        return None

    def objects(self) -> Sequence[FrameObject]:
        """This frame's own object list (CA-1M); empty elsewhere."""
        return ()


class Scene(abc.ABC):
    """One capture.

    frames: usable frames in order of capture, poses checked; opening decoded no pixels.
    objects: world-frame objects; may be empty.
    up_world: (3,) float64 unit vector against gravity in the world frame, or None when unknown.
    depth_kind: "sensor" or "laser" decides tolerances and range.
    issues: what was dropped or repaired and why (frames dropped for bad poses among them).
    source_digest: digest of names, sizes and headers of the input files (not of all their bytes).
    """

    dataset: str
    id: str
    split: str
    frames: Sequence[Frame]
    objects: Sequence[SceneObject]
    up_world: FloatArray | None
    depth_kind: DepthKind
    licence: str
    source_digest: str
    issues: list[Issue]
    total_frames: int

    def close(self) -> None:  # noqa: B027 - most scenes hold nothing open
        """Release files. The scene cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """What is to be known about a dataset of scans, apart from how its files are read."""

    title: str
    """The name as people write it, such as "ScanNet++"; pages and dataset cards show it."""
    terms: str
    """What the terms are called under which the scans stand."""
    url: str
    """Where the terms can be read."""
    reason: str
    """Why pixels may be published or not, in one clause without a full stop; the dataset card says it."""
    licence: str = ""
    """The word that `vgbench publish --with-pixels NAME=LICENCE` must repeat. Where it is empty, the licence is not
    established, and whoever publishes names the one that was found."""
    may_publish_pixels: bool = False
    """Whether images made from the scans may be passed on. Where in doubt, they stay at home: rows are published
    without them, and `vgbench hydrate` makes them from the reader's own copy."""
    notice: str = ""
    """What must be printed wherever pixels are published."""
    citation: str = ""
    """A BibTeX entry for the dataset card."""
    caution: str = ""
    """A sentence that a reader of scores on these scans must know."""
    noise: SensorNoise | None = None
    """How far depth, poses, intrinsics and boxes may be off, for the noise test. A recipe may say otherwise in
    `[gates.noise.<dataset>]`. Where nobody says, the largest error of each kind that is known of any dataset is taken.
    The datasets of this package have theirs in `vgbench_gen.core.noise`."""


class Loader(abc.ABC):
    """One dataset on disk."""

    dataset: ClassVar[str]
    """The name under which the loader is registered, and `Scene.dataset` of its scenes."""
    info: ClassVar[DatasetInfo]
    """What pages, dataset cards and the noise test must know about the dataset."""

    laser_only: bool = False
    """Whether the depth of all its scenes is a laser's, so that every distance within a laser's range occurs."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        missing = [name for name in ("dataset", "info") if not hasattr(cls, name)]
        if missing:
            raise TypeError(f"{cls.__qualname__}: found no {' and no '.join(missing)}; a loader states both.")

    @abc.abstractmethod
    def discover(self, root: Path) -> Iterator[SceneRef]:
        """Scenes below `root`, sorted by id; opens nothing large, follows no links out of `root`."""

    @abc.abstractmethod
    def open(self, ref: SceneRef) -> Scene:
        """Open one scene.

        Raises:
            SceneError: the scene cannot be trusted; says file, what was found, what was expected, what to do.
        """


loaders: Registry[Loader] = Registry("dataset", "vgbench_gen.scenes")
