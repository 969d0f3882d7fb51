"""What Record3D lists of its frames, in `metadata.json` of an export and in `metadata` of an archive alike.

Source: `marek-simonik/record3d`, issues 27, 33, 36, 63 and 83. The list of poses has a row for each number of a frame;
some numbers have no pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vgbench_gen.core.errors import FormatError, PoseError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import parse_matrix
from vgbench_gen.scenes.posed.cameras import StatedIntrinsics, take_mapping, take_numbers
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.poses import make_quaternion_pose

MAX_JSON_BYTES = 32_000_000
_LEAST_TURN = 1e-3  # of a quaternion: a tenth of a degree


def note(number: int, problem: FormatError) -> Issue:
    """What is wrong with a frame, as an issue of the scene."""
    return Issue(str(number), "bad_pose" if isinstance(problem, PoseError) else "unusable_file", str(problem))


class Listing:
    """Poses, times and intrinsics that the app lists. Raises SceneError where there are none.

    poses: a row a number, `qx qy qz qw x y z`.
    """

    def __init__(self, found: Any, where: object) -> None:
        self.where = where
        self._found: dict[str, Any] = found if isinstance(found, dict) else {}
        self.poses: list[Any] = self._rows("poses")
        if not self.poses:
            raise SceneError(where, "no list `poses`", "the list that Record3D writes", "Export the recording again.")
        if len(self.poses) > 1 and all(pose == self.poses[0] for pose in self.poses):
            found = f"{len(self.poses)} poses that are all the same"
            raise SceneError(where, found, "those of the LiDAR camera", "The front camera has none: record with LiDAR.")
        self._intrinsics = take_mapping({k: v for k, v in self._found.items() if k in ("K", "w", "h")}, where)

    def _rows(self, name: str) -> list[Any]:
        rows = self._found.get(name)
        return rows if isinstance(rows, list) else []

    def pair(
        self, colors: Mapping[int, str], depths: Mapping[int, str], where: object, issues: list[Issue]
    ) -> list[int]:
        """The numbers that have both pictures; notes those that have one. Raises SceneError where none has both."""
        both = sorted(colors.keys() & depths.keys())
        if not both:
            found = f"{len(self.poses)} poses, and {len(colors)} pictures of color and {len(depths)} of depth"
            remedy = "The list of poses alone cannot be used: export the recording again with its pictures."
            raise SceneError(where, found, "pictures of both with the same numbers", remedy)
        for number in sorted(colors.keys() ^ depths.keys()):
            lacks = "color" if number in depths else "depth"
            issues.append(Issue(str(number), "incomplete", f"frame {number} has no {lacks}"))
        return both

    def find_up(self, layout: FileLayout) -> FileLayout:
        """The layout, without a direction of up where the world is the first camera: its pose then has no turn."""
        first = self.poses[0]
        numbers = first[:3] if isinstance(first, list) else []
        is_camera = all(isinstance(value, int | float) and abs(value) < _LEAST_TURN for value in numbers)
        return layout.model_copy(update={"up": None}) if is_camera else layout

    def read(self, number: int) -> tuple[float | None, StatedIntrinsics, FloatArray]:
        """Time in seconds, intrinsics and stored pose (4, 4) of a frame. Raises FormatError."""
        where = f"{self.where}: frame {number}"
        if number >= len(self.poses):
            raise PoseError(where, f"a list of {len(self.poses)} poses", "one for each number")
        pose = parse_matrix(self.poses[number], where, [(7,)], PoseError)
        times, coefficients = self._rows("frameTimestamps"), self._rows("perFrameIntrinsicCoeffs")
        time = times[number] if number < len(times) else None
        intrinsics = self._intrinsics
        if number < len(coefficients):
            values = parse_matrix(coefficients[number], where, [(4,)]).tolist()
            intrinsics = take_numbers(values, where, intrinsics.size)
        time_s = float(time) if isinstance(time, int | float) else None
        return time_s, intrinsics, make_quaternion_pose(pose[:4], pose[4:], where)
