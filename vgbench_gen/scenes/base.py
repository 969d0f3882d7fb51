"""What a scene is to the rest of the house. Loaders implement this; tasks see nothing else.

Conventions inside (see `vgbench_gen.geometry`): `world_from_camera`, camera x right, y down, z forward, meters,
z-depth with 0 = unknown, pixel (0, 0) is the centre of the top-left pixel. Loaders convert at the border.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

from vgbench_gen.core.errors import escape_surrogates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.registry import Registry
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray, OrientedBox
from vgbench_gen.scenes.readings import STATED, Reading

DepthKind = Literal["sensor", "laser"]
BoxSource = Literal["annotated", "surface"]
Split = Literal["train", "val", "test", "unknown"]


@dataclass(frozen=True, slots=True)
class SceneRef:
    """A scene that was found but not opened."""

    dataset: str
    scene_id: str
    """The id of the scene, in the form that `docs/architecture.md#fixed-details` fixes:
    "scene0000_00", "7c9be0a21f/iphone", "42898570", "box/scenes_000"."""
    path: Path
    """The file or folder that `open` needs."""
    variant: str = ""
    """Which of the loader's layouts it is, "" where there is one only."""
    split: str = "unknown"
    """The official split: "train", "val", "test", or "unknown" where none is known."""
    size_bytes: int = 0
    """The size on disk, by which the largest scenes are scheduled first."""

    def __post_init__(self) -> None:
        # A folder's name may hold bytes that are no UTF-8: they can neither be printed nor stored as text.
        object.__setattr__(self, "scene_id", escape_surrogates(self.scene_id))


@dataclass(frozen=True, slots=True, eq=False)
class SceneObject:
    """An annotated object."""

    instance_id: str
    """The id, as the dataset writes it."""
    label: str
    """The dataset's own word, in lower case and stripped."""
    box: OrientedBox
    """The box in the frame "world", aligned with gravity where that is known."""
    points_m: FloatArray | None = None
    """Points of its surface in the world frame, (N, 3) float64, meters, where a mesh gives them, else None."""
    box_source: BoxSource = "annotated"
    """"annotated" where the dataset says how large the object is, "surface" where the box was fitted to the part of its
    surface that was scanned."""


@dataclass(frozen=True, slots=True, eq=False)
class FrameObject:
    """An annotated object as one frame's own list has it (CA-1M)."""

    instance_id: str
    label: str
    box: OrientedBox
    """The box in the frame "camera"."""
    rendered_px: tuple[float, float, float, float] | None = None
    """The rectangle of the visible part, (x1, y1, x2, y2) in pixels of `color()`, or None."""
    projected_px: tuple[float, float, float, float] | None = None
    """The rectangle of the whole box, (x1, y1, x2, y2) in pixels of `color()`, or None."""


@dataclass(frozen=True, slots=True)
class Issue:
    """Something wrong that did not cost the scene."""

    frame_id: str
    """The frame, "" for the scene as a whole."""
    reason: str
    """The reason in one word for a program, such as "pose_missing"; the words are the loader's own, and scenes are
    counted by them. A word that contains "pose", with the id of a frame, takes that frame from the valid poses that
    `vgbench scenes` counts; "gravity_disagrees" is counted as well, and warns where it holds for half of the frames."""
    detail: str
    """One line for a person."""


class Frame(abc.ABC):
    """One image with its pose and depth. Pixels are lazy: nothing is decoded until it is asked for, and nothing is
    kept."""

    id: str
    """The id, as the dataset writes it: text, not empty, no other frame of the scene has it."""
    timestamp_s: float | None
    """The time of capture in seconds, or None."""
    camera: Camera
    """The camera of `color()`."""
    depth_camera: Camera
    """The camera of `depth_m()`, with the centre and the axes of `camera`."""
    world_from_camera: FloatArray
    """The pose, a rigid (4, 4) float64 matrix, meters."""
    pose_deviation: float
    """The largest entry of |R^T R - I| before the rotation was repaired."""

    @abc.abstractmethod
    def color(self) -> ColorArray:
        """(H, W, 3) uint8 RGB, undistorted, size as in `camera`.

        Raises:
            FrameError: the bytes are damaged or have another size than the camera's.
        """

    @abc.abstractmethod
    def depth_m(self) -> DepthArray:
        """(h, w) float32 z-depth in meters, 0 = unknown, size as in `depth_camera`.

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
    """One capture."""

    dataset: str
    id: str
    split: str
    """The official split: "train", "val", "test" or "unknown"."""
    frames: Sequence[Frame]
    """The usable frames in order of capture, with checked poses; opening decoded no pixels."""
    objects: Sequence[SceneObject]
    """The objects in the world frame; there may be none."""
    building: Sequence[SceneObject] = ()
    """Annotated walls, floors and ceilings that are not among the objects, with their surface points."""
    up_world: FloatArray | None
    """The unit vector against gravity in the world frame, (3,) float64, or None where it is unknown."""
    depth_kind: DepthKind
    """"sensor" or "laser": how near two views must agree about a depth, and up to which distance depth is believed
    (`geometry.visibility`, and the recipe's `[gates.depth]`)."""
    metric: bool = True
    """Whether poses and depth are in meters; where they have a scale of their own, no kind asks that needs meters."""
    reading: Reading = STATED
    """How stored poses were read (`scenes.readings`)."""
    quaternions: str = ""
    """The order in which the files have them, "xyzw" or "wxyz"; "" where they have matrices."""
    needs_decision: bool = False
    """Whether nothing may be asked unless the pictures decide that this reading is right, as nobody else vouches for
    it; the official datasets are refused only where another reading is right."""
    pairing: str = ""
    """How pictures and poses were put together, in words, where the loader had to find out."""
    licence: str
    source_digest: str
    """A digest of names, sizes and headers of the input files, not of all their bytes."""
    issues: list[Issue]
    """What was dropped or repaired and why, frames with bad poses among them."""
    total_frames: int
    """All frames of the capture, the dropped ones included."""

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
    without them, and `vgbench pull --scenes` makes them from the reader's own copy."""
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

    version: ClassVar[int] = 1
    """Raise it when the loader hands out other cameras, poses, depth, pixels or objects for the same files: the scenes
    that an earlier version measured are then measured again."""
    is_general: bool = False
    """Whether it leaves to other loaders what they take as well."""
    laser_only: bool = False
    """Whether the depth of all its scenes is a laser's, so that every distance within a laser's range occurs."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        missing = [name for name in ("dataset", "info") if not hasattr(cls, name)]
        if missing:
            raise TypeError(
                f"{cls.__qualname__}: found no {' and no '.join(missing)}; expected `dataset`, the name under which "
                "the loader is registered, and `info`, a DatasetInfo. Set them in the class."
            )

    @abc.abstractmethod
    def discover(self, root: Path) -> Iterator[SceneRef]:
        """Scenes below `root`, sorted by id; opens nothing large, follows no links out of `root`.

        Of several places with one id, the first that comes counts, and `vgbench_gen.scenes.discover` names the others.
        """

    @abc.abstractmethod
    def open(self, ref: SceneRef) -> Scene:
        """Open one scene.

        Raises:
            SceneError: the scene cannot be trusted; says file, what was found, what was expected, what to do. A
                `FrameError` or `PoseError` that leaves `open` costs the whole scene too, so catch it for each frame.
        """


loaders: Registry[Loader] = Registry("dataset", "vgbench_gen.scenes")
