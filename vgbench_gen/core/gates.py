"""Every gate and margin in one place, each with its reason. A recipe may override any of them.

Source of the values: `docs/validity.md#gates` and `docs/validity.md#tasks`. `D%` is per cent of the image diagonal;
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

    keyframe_turn_deg: float = 10.0  # a hand-held camera repeats itself below this; 0.1 s frames are near-duplicates
    keyframe_shift_m: float = 0.2
    max_keyframes: int = 200  # bounds time and memory of long scans
    long_side_px: int = 1024  # delivered size: more detail costs readers tokens and adds nothing to geometry
    sharpness_min: float = 15.0  # Laplacian variance at <= 640 wide; below this edges are gone whatever the scene
    sharpness_of_median_min: float = 0.4  # a plain wall is smooth, a blurred frame is smoother than its neighbours
    depth_valid_min: float = 0.60  # mostly unknown depth hides occluders


class DepthGates(Config):
    """Where measured depth can be believed."""

    near_m: float = 0.4  # structured light and phone LiDAR see nothing nearer
    far_sensor_m: float = 4.5  # error grows with z^2; phone LiDAR ends at 5 m
    far_laser_m: float = 8.0
    edge_guard_px_at_640: float = 8.0  # mixed pixels along depth steps
    edge_step_m: float = 0.10
    edge_step_relative: float = 0.05
    border: float = 0.02  # share of the image size kept free at the border


class SceneGates(Config):
    """Whether poses and depth of a scene agree."""

    pairs: int = 20
    cycle_median_px_at_640: float = 2.0
    agree_share_min: float = 0.70


class RegionGates(Config):
    """2D regions whose depth is asked."""

    side_min_px: int = 32
    area_min: float = 0.005
    valid_min: float = 0.90
    iqr_of_median_max: float = 0.10
    spread_of_median_max: float = 0.25  # p5 to p95
    mean_to_median_max: float = 0.03  # so that "mean depth" is a fair word


class ObjectGates(Config):
    """Objects that may be asked about in a frame.

    Questions speak of the whole object and mark it by a rectangle, so a careful reader must see which one it is and
    how far it reaches. `inside_min`, `rendered_to_projected_iou_min` and `share_min` are stricter than the
    usual ones (0.5, none, none): below them pictures of real captures showed a table where a chair was meant.
    """

    visible_min: float = 0.50
    inside_min: float = 0.75
    area_min: float = 0.01
    area_min_when_inside: float = 0.005
    inside_for_small: float = 0.90
    second_side_min_m: float = 0.05
    depth_max_m: float = 5.0
    # The drawn rectangle is the projected box; where the visible pixels fill little of it, it marks something else.
    rendered_to_projected_iou_min: float = 0.65
    share_min: float = 0.45  # of the rectangle's known depth that lies in the object's box
    ambiguous_rect_iou_max: float = 0.5
    # Boxes around scanned surface (ScanNet, ScanNet++) must hold the whole object, not a sheet or a visible part.
    surface_flat_min: float = 0.35  # smallest over middle side: cabinet fronts, backrests and screens stay below
    surface_side_min_m: float = 0.15  # fitted boxes only: fusion rounds off 1-2 cm, a fifth of a mug
    continues_max: float = 0.3  # of the band along a side that is covered by something nearer
    continues_step_m: float = 0.15


class PairGates(Config):
    """Two views between which motion is asked."""

    overlap_min: float = 0.30
    overlap_max: float = 0.80
    parallax_min_deg: float = 3.0
    parallax_max_deg: float = 30.0
    baseline_min_m: float = 0.15
    baseline_of_depth_min: float = 0.05
    rotation_min_deg: float = 5.0
    rotation_max_deg: float = 60.0
    plane_share_max: float = 0.80  # pose from a single plane has two solutions
    # Two groups of a task in one scene must differ in at least one frame by this much.
    distinct_turn_deg: float = 5.0
    distinct_shift_m: float = 0.15


class TaskGates(Config):
    """Gates and margins of one task, or of several that share them; a task defines them where it stands.

    A subclass is known to every recipe as the table `[gates.<section>]` as soon as its module is imported.
    """

    section: ClassVar[str]
    """Name of the table in a recipe."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
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
    depth: DepthGates = DepthGates()
    scene: SceneGates = SceneGates()
    region: RegionGates = RegionGates()
    object: ObjectGates = ObjectGates()
    pair: PairGates = PairGates()
    noise: NoiseGates = NoiseGates()

    def section(self, kind: type[SectionT]) -> SectionT:
        """The gates of a task: as given, else as shipped."""
        found = (self.__pydantic_extra__ or {}).get(kind.section)
        return found if isinstance(found, kind) else _load_shipped(kind)

    def with_section(self, gates: TaskGates) -> Gates:
        """The same gates with those of one task replaced."""
        return self.model_copy(update={gates.section: gates})

    @classmethod
    def sections(cls) -> dict[str, type[Config]]:
        """Section -> gates of every task imported so far."""
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
        """With what is as shipped of our own tasks; other packages may be gone when a manifest is read again."""
        written: dict[str, Any] = handler(self)
        ours = {name: kind for name, kind in sorted(_SECTIONS.items()) if kind.__module__.startswith("vgbench_gen.")}
        return {name: _load_shipped(kind).model_dump() for name, kind in ours.items()} | written


@cache
def _load_shipped(kind: type[SectionT]) -> SectionT:
    return kind()
