"""Every gate and margin in one place, each with its reason. A recipe may override any of them.

Source of the values: `docs/constants.md`. `D%` is per cent of the image diagonal;
`at 640` means pixels after scaling the image to 640 wide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar

from pydantic import ConfigDict, SerializerFunctionWrapHandler, ValidationError, model_serializer, model_validator
from pydantic_core import InitErrorDetails

from vgbench_gen.core.config import Config
from vgbench_gen.core.noise import NoiseGates


class FrameGates(Config):
    """Which frames of a scene are used at all."""

    keyframe_turn_deg: float = 10.0
    """A frame is a new keyframe when its camera has turned by at least this since the last one, in degrees; below it a
    hand-held camera repeats itself, because frames 0.1 s apart are near-duplicates."""
    keyframe_shift_m: float = 0.2
    """A frame is also a new keyframe when its camera has moved by at least this since the last one, in meters."""
    max_keyframes: int = 200
    """The most keyframes of one scene, chosen far apart from each other; bounds time and memory of long scans."""
    long_side_px: int = 1024
    """The longer side of the delivered images, in pixels; more detail costs readers tokens and adds nothing to
    geometry."""
    wide_side_px: int = 1600
    """The longer side of the images that crops are cut from, in pixels, where a frame is that large; a crop of
    `homography.crop_share` of the side then has nearly as many pixels as a delivered frame."""
    sharpness_min: float = 15.0
    """The least variance of the Laplacian of the grey image at a width of at most 640; below this edges are gone in any
    scene."""
    sharpness_of_median_min: float = 0.4
    """The least sharpness as a share of the scene's median; a plain wall is smooth, but a blurred frame is smoother
    than its neighbours."""
    depth_valid_min: float = 0.60
    """The least share of pixels with known depth; where most depth is unknown, what hides things is unknown too."""


class DepthGates(Config):
    """Where measured depth can be believed."""

    near_m: float = 0.4
    """The least depth in meters; structured light and phone LiDAR see nothing nearer."""
    far_sensor_m: float = 4.5
    """The largest depth of a sensor in meters; the error grows with the square of the depth, and phone LiDAR ends at
    5 m."""
    far_laser_m: float = 8.0
    """The largest depth rendered from a laser scan, in meters."""
    edge_guard_px_at_640: float = 8.0
    """How far pixels must be from a step in depth, in pixels at a width of 640; along steps pixels mix foreground and
    background."""
    edge_step_m: float = 0.10
    """The least difference in depth between neighbours that counts as a step, in meters."""
    edge_step_relative: float = 0.05
    """The least difference that counts as a step, as a share of the depth; the larger of the two limits holds."""
    border: float = 0.02
    """The share of the image's width and height that is kept free at each border."""


class SceneGates(Config):
    """Whether poses and depth of a scene agree."""

    pairs: int = 20
    """How many random overlapping pairs of frames are measured."""
    cycle_median_px_at_640: float = 2.0
    """The largest median error of going from one view to another and back by depth, in pixels at a width of 640."""
    agree_share_min: float = 0.70
    """The least share of the pixels that both views see whose depth agrees within the tolerance of visible points;
    occlusion alone takes up to a third."""


class RegionGates(Config):
    """Which rectangles of an image are flat enough that their depth can be asked."""

    side_min_px: int = 32
    """The least side in pixels of the delivered image; smaller rectangles cannot be looked at."""
    area_min: float = 0.005
    """The least area as a share of the image."""
    valid_min: float = 0.90
    """The least share of pixels with known depth."""
    iqr_of_median_max: float = 0.10
    """The largest interquartile range of the depth as a share of its median."""
    spread_of_median_max: float = 0.25
    """The largest range from the 5th to the 95th percentile of the depth as a share of its median."""
    mean_to_median_max: float = 0.03
    """The largest difference between mean and median depth as a share of the median, so that "mean depth" is a fair
    word."""
    plane_residual_m: float = 0.004
    """The largest root mean square of the depth about the plane that fits the rectangle best, in meters; this and the
    next one add up. A rectangle over an edge between two surfaces exceeds it."""
    plane_residual_per_m: float = 0.002
    """What is added to that for depth of a sensor, in meters, times the square of the depth, as noise grows."""
    plane_residual_laser_per_m: float = 0.0005
    """The same for depth that was rendered from a laser scan."""
    normal_spread_max_deg: float = 20.0
    """The largest angle between the planes of the rectangle's quarters and that of the whole, in degrees; beyond it the
    rectangle lies over a fold or on something curved."""


class ObjectGates(Config):
    """Objects that may be asked about in a frame.

    Questions speak of the whole object and mark it by a rectangle, so a careful reader must see which one it is and how
    far it reaches. Below `inside_min`, `rendered_to_projected_iou_min` and `share_min` pictures of real captures showed
    a table where a chair was meant, and a run of cabinets of which nobody could tell the end.
    """

    visible_min: float = 0.50
    """The least visible share of the object's projection."""
    inside_min: float = 0.98
    """The least share of the projected rectangle that lies inside the image: nobody sees how far a thing goes on beyond
    the border."""
    area_min: float = 0.005
    """The least visible area as a share of the image."""
    second_side_min_m: float = 0.05
    """The least middle side of the object's box in meters; thinner things have no measurable box."""
    depth_max_m: float = 5.0
    """The largest depth of the box's centre in meters, which is the range of sensors."""
    rendered_to_projected_iou_min: float = 0.65
    """The least IoU of the rectangle around the visible pixels and the drawn rectangle, which is the projected box;
    where the visible pixels fill little of it, it marks something else."""
    share_min: float = 0.50
    """The least share of the known depth in the rectangle that is the object's own: in its box, and in no smaller box
    that stands in it."""
    ambiguous_rect_iou_max: float = 0.5
    """The largest IoU with the rectangle of another object that can be seen."""
    surface_flat_min: float = 0.35
    """The least ratio of the smallest to the middle side of a box around scanned surface (ScanNet, ScanNet++), which
    must hold the whole object and not a sheet; fronts of cabinets, backrests and screens stay below."""
    surface_side_min_m: float = 0.15
    """The least side of a box fitted to scanned surface, in meters; fusion rounds off 1 to 2 cm, which is a fifth of a
    mug."""
    continues_max: float = 0.3
    """The largest share of the band along a side of the rectangle that something nearer may cover; above it the object
    may go on behind that thing. Asked of boxes around scanned surface."""
    continues_step_m: float = 0.15
    """How much nearer than the object that thing has to be, in meters."""


class PairGates(Config):
    """Two views between which motion is asked."""

    overlap_min: float = 0.30
    """The least share of either view that the other one sees, of which the smaller counts; below it motion can only be
    inferred by luck."""
    overlap_max: float = 0.80
    """The largest value of the smaller of these two shares; above it hardly anything moves."""
    parallax_min_deg: float = 3.0
    """The least median angle between the two rays to a point, in degrees; below it translation is undefined."""
    parallax_max_deg: float = 30.0
    """The largest median angle between the two rays to a point, in degrees; above it surfaces look different."""
    baseline_min_m: float = 0.15
    """The least distance between the camera centres in meters, which is several times the error of poses."""
    baseline_of_depth_min: float = 0.05
    """The least distance between the camera centres as a share of the median depth."""
    rotation_min_deg: float = 5.0
    """The least angle between the views in degrees, which is five times the error of poses."""
    rotation_max_deg: float = 60.0
    """The largest angle between the views in degrees; above it little overlap remains."""
    plane_share_max: float = 0.80
    """The largest share of the points that both views see which may lie on one plane; a pose from a single plane has
    two solutions."""
    distinct_turn_deg: float = 5.0
    """Two groups of a task in one scene must differ in at least one frame: this is how far, in degrees, that frame must
    have turned."""
    distinct_shift_m: float = 0.15
    """How far in meters that frame must have moved, where it has not turned far enough."""


class TaskGates(Config):
    """Gates and margins of one task, or of several that share them; a task defines them where it stands.

    A subclass is known to every recipe as the table `[gates.<section>]` as soon as its module is imported.
    """

    section: ClassVar[str]
    """Name of the table in a recipe."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if not hasattr(cls, "section"):
            return  # a base of several tables
        old = _SECTIONS.get(cls.section, cls)
        if cls.section in Gates.model_fields or (old.__module__, old.__qualname__) != (
            cls.__module__,
            cls.__qualname__,
        ):
            raise TypeError(
                f"{cls.__module__}.{cls.__qualname__}: gates.{cls.section} exists; choose another `section`"
            )
        _SECTIONS[cls.section] = cls


_SECTIONS: dict[str, type[TaskGates]] = {}
SectionT = TypeVar("SectionT", bound=TaskGates)


class Gates(Config):
    """All gates and margins of a build: those that many tasks share as fields, those of tasks by `section`."""

    # What pydantic calls extra are the sections of tasks; nothing else is let in.
    model_config = ConfigDict(extra="allow")

    frame: FrameGates = FrameGates()
    """Which frames are used."""
    depth: DepthGates = DepthGates()
    """Where depth can be believed."""
    scene: SceneGates = SceneGates()
    """Whether poses and depth of a scene agree."""
    region: RegionGates = RegionGates()
    """Which rectangles are asked about."""
    object: ObjectGates = ObjectGates()
    """Which objects are asked about."""
    pair: PairGates = PairGates()
    """Which two views are asked about."""
    noise: NoiseGates = NoiseGates()
    """The errors of the sources and how well an answer must bear them."""

    def section(self, kind: type[SectionT]) -> SectionT:
        """The gates of a task, as they were given or else as they are shipped."""
        found = (self.__pydantic_extra__ or {}).get(kind.section)
        return found if isinstance(found, kind) else _load_shipped(kind)

    @classmethod
    def sections(cls) -> dict[str, type[Config]]:
        """The models of all gates of tasks imported so far, by their section."""
        return dict(sorted(_SECTIONS.items()))

    @model_validator(mode="before")
    @classmethod
    def _read_sections(cls, data: Any) -> Any:
        """Turn the tables of tasks into their own models, and refuse tables that no task has."""
        if not isinstance(data, Mapping):
            return data
        read, problems = dict(data), list[InitErrorDetails]()
        for name in sorted(set(data) - set(cls.model_fields)):
            kind, given = _SECTIONS.get(name), data[name]
            if kind is None:
                problems.append(InitErrorDetails(type="extra_forbidden", loc=(name,), input=given))
                continue
            try:
                # By way of JSON, as in `core.config`: a list may then fill a tuple.
                read[name] = given if isinstance(given, kind) else kind.model_validate_json(json.dumps(given))
            except ValidationError as error:
                problems += [
                    InitErrorDetails(type=e["type"], loc=(name, *e["loc"]), input=e["input"], ctx=e.get("ctx", {}))
                    for e in error.errors(include_url=False)
                ]
            # What is as shipped is not kept, so that two sets of gates that mean the same are equal.
            if name in read and read[name] == _load_shipped(kind):
                del read[name]
        if problems:
            raise ValidationError.from_exception_data(cls.__name__, problems)
        return read

    @model_serializer(mode="wrap")
    def _write_sections(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write the gates of our own tasks too where they are as shipped, but none of other packages, which may be gone
        when a manifest is read again."""
        written: dict[str, Any] = handler(self)
        ours = {name: kind for name, kind in sorted(_SECTIONS.items()) if kind.__module__.startswith("vgbench_gen.")}
        return {name: _load_shipped(kind).model_dump() for name, kind in ours.items()} | written


@cache
def _load_shipped(kind: type[SectionT]) -> SectionT:
    return kind()
