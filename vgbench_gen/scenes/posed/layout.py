"""How a folder of posed RGB-D is laid out: the columns of `layouts.toml` and of a recording's own `posed.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from vgbench_gen.core.config import Config, parse_config, read_toml
from vgbench_gen.core.errors import ConfigError, SceneError
from vgbench_gen.scenes.readings import Reading

OWN = "posed.toml"
"""The file in which the owner of a recording says how it is laid out."""
FIND = "find"
_HEAD_BYTES = 1_000_000

Numbers = tuple[float, ...]


class FileLayout(Config):
    """One layout. Paths are patterns below the folder of the recording; `*` stands for the number of a frame."""

    title: str = ""
    """The name as people write it."""
    layout: str = ""
    """In a `posed.toml`: the layout of `layouts.toml` whose values hold where the file says nothing."""
    reader: str = "table"
    """What reads it: "table" reads the columns below, every other name is a module of this folder."""
    signs: tuple[str, ...] = ()
    """Patterns of files and folders that all lie in such a folder, with "|" between alternatives."""
    file: str = ""
    """The pattern of a file that is a whole recording."""
    without: tuple[str, ...] = ()
    """Patterns of which none lies there."""
    holds: str = ""
    """What the first megabyte of `file` holds, where its name says too little."""
    color: str = ""
    """Color pictures, JPEG or PNG."""
    depth: str = ""
    """Depth pictures: 16-bit PNG or PGM, TIFF of integers or floats, OpenEXR, or NumPy arrays."""
    confidence: str = ""
    """Pictures of how sure depth is, of the size of depth."""
    confidence_min: int = 1
    """Below this value of theirs, depth is unknown."""
    depth_per_meter: float = Field(default=1000.0, gt=0)
    """By what stored depth is divided to have meters."""
    depth_unknown: Numbers = (0.0, 65535.0)
    """Stored values that mean unknown."""
    depth_along: Literal["axis", "ray"] = "axis"
    """Whether depth is measured along the optical axis (z) or along the ray of each pixel."""
    poses: str = ""
    """The file of all poses, or with `*` one file a frame."""
    pose_columns: str = ""
    """What stands in a row: `time`, `id`, `name`, `x y z` (meters), `qx qy qz qw` in any order, `rx ry rz` (axis times
    angle, radians), `matrix` (12 or 16 numbers), an underscore for what is passed over. Default: by the header, else by
    how many numbers there are: 7 `x y z qx qy qz qw`, 8 with `time` first, 12, 16 `matrix`, 13, 17 with `id` first."""
    direction: Literal["camera to world", "world to camera"] = "camera to world"
    """What a pose maps."""
    axes: Literal["OpenCV", "OpenGL", "ROS body", "NED body", "mirrored", "turned left", "turned right", "find"] = (
        "OpenCV"
    )
    """The axes of a camera (`scenes.readings.AXES`); "find" takes direction, axes and order of quaternions from the
    pictures."""
    camera: str | Numbers = ()
    """Intrinsics of color: fx, fy, cx, cy in pixels, and k1, k2, p1, p2, k3 where there are any; or the file (one a
    frame with `*`) that says them."""
    cameras: Mapping[str, Numbers] = Field(default_factory=dict)
    """`camera` by a word that stands in the path of the folder or in the first lines of a `.txt` there."""
    depth_camera: Numbers = ()
    """Intrinsics of depth, as numbers; default: those of color at the size of depth."""
    first_pixel: float = 0.0
    """The coordinate of the centre of the first pixel: 0, or 0.5 where (0, 0) is the corner of the picture."""
    color_from_depth: Numbers = ()
    """Where the depth camera stands elsewhere than the color camera: 12 numbers of [R | t], meters. Depth is then
    rendered into the color camera."""
    poses_of: Literal["color", "depth"] = "color"
    """Whose poses they are, where both have one."""
    max_gap_s: float = Field(default=0.02, gt=0)
    """How far apart in seconds color, depth and pose of one frame may be."""
    up: tuple[float, float, float] | None = None
    """The direction against gravity in the world; none where it is unknown."""
    metric: bool = True
    """Whether poses are in meters."""
    depth_kind: Literal["sensor", "laser"] = "sensor"
    """"laser" for depth that was rendered or scanned."""
    licence: str = ""
    """The id of the licence of the recording, where its owner or the dataset says one."""

    @property
    def reading(self) -> Reading:
        """The stated reading of poses."""
        return Reading(self.direction, "OpenCV" if self.axes == FIND else self.axes)


@cache
def list_layouts() -> dict[str, FileLayout]:
    """The layouts of `layouts.toml`, by name."""
    path = Path(__file__).with_name("layouts.toml")
    return {name: parse_config(row, FileLayout, f"{path} [{name}]") for name, row in read_toml(path).items()}


def read_own_layout(path: Path) -> FileLayout:
    """What a `posed.toml` says, on top of the layout that it names.

    Raises:
        SceneError: it cannot be read, or a key or value is not one of `FileLayout`'s.
    """
    try:
        stated: dict[str, Any] = read_toml(path)
        base = stated.get("layout", "")
        if base and base not in list_layouts():
            raise ConfigError(f"{path}: layout: found {base!r}; expected one of {', '.join(list_layouts())}")
        whole = list_layouts()[base].model_dump(exclude_unset=True) | stated if base else stated
        return parse_config({"title": f"a folder with {OWN}"} | whole, FileLayout, str(path))
    except ConfigError as problem:
        raise SceneError(path, str(problem), f"the columns of {OWN}", "See docs/howto/own-recordings.md.") from problem


def match_layout(folder: Path, names: Iterable[str]) -> str:
    """The name of the layout that a folder with these entries has; "" where it has none that is known."""
    names = list(names)
    for name, layout in list_layouts().items():
        found, others = ([_lies_in(folder, names, sign) for sign in signs] for signs in (layout.signs, layout.without))
        if found and all(found) and not any(others):
            return name
    return ""


def match_file(path: Path) -> str:
    """The name of the layout of which a file is a whole recording; "" where there is none."""
    for name, layout in list_layouts().items():
        if layout.file and fnmatchcase(path.name, layout.file):
            if not layout.holds:
                return name
            with suppress(OSError), path.open("rb") as file:
                if layout.holds.encode() in file.read(_HEAD_BYTES):
                    return name
    return ""


def _lies_in(folder: Path, names: list[str], sign: str) -> bool:
    return any(
        (folder / each).exists() if "/" in each else any(fnmatchcase(name, each) for name in names)
        for each in sign.split("|")
    )
