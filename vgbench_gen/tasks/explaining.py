"""How tasks explain their answers: quantities of evidence, each reached in one of two ways, and printed.

To check a text, `exact` goes the other way: by opposite corners and fitted boxes, stored poses and quaternions, complex
numbers on the floor, and equations in place of this program's functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear, nnls
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import ALPHABET, FloatArray
from vgbench_gen.geometry import boxes, floors, homography, poses
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.steps import Pen

_TURNS = ("turned_degrees", "tilted_degrees", "rolled_degrees")
_PLACES = ("right_m", "down_m", "ahead_m")
WAY = ("right_m", "down_m", "farther_m")  # of a way between two things, as a camera sees it


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer(Pen):
    """See the module. Corners (8, 3) are those of boxes, in meters and in the order of `geometry.boxes`."""

    row: RowEvidence
    """What the row keeps besides its fact: pictures, options and claim."""

    def find_middle(self, corners_m: FloatArray) -> FloatArray:
        """(3,) centre of a box."""
        return np.asarray((corners_m[0] + corners_m[6]) / 2 if self.exact else corners_m.mean(axis=0))

    def measure_sides(self, corners_m: FloatArray) -> FloatArray:
        """(3,) sides of a box along its own axes, meters."""
        if self.exact:
            return boxes.fit_to_corners(corners_m, "camera").size_m
        return np.asarray(np.linalg.norm(corners_m[list(boxes.BESIDE_FIRST)] - corners_m[0], axis=1))

    def measure_heights(self, corners_m: FloatArray, up: FloatArray) -> tuple[float, float]:
        """How high a box begins and ends along a unit vector (3,), meters."""
        if self.exact:
            half = np.abs(np.diff(corners_m[[[0, 0, 0], [1, 3, 4]]], axis=0)[0] @ up).sum() / 2
            return float(self.find_middle(corners_m) @ up - half), float(self.find_middle(corners_m) @ up + half)
        return float((corners_m @ up).min()), float((corners_m @ up).max())

    def find_way(self, a_m: FloatArray, b_m: FloatArray) -> FloatArray:
        """(3,) the shortest way from one box to another, meters."""
        if self.exact:  # weights of the corners, not negative and of sum 1 each up to 1e-6
            both = np.vstack([np.hstack([-a_m.T, b_m.T]), 1e3 * np.repeat(np.eye(2), 8, axis=1)])
            return np.asarray((both @ nnls(both, np.array([0.0, 0.0, 0.0, 1e3, 1e3]))[0])[:3])
        (p, P), (q, Q) = ((one[0], (one[list(boxes.BESIDE_FIRST)] - one[0]).T) for one in (a_m, b_m))
        return np.asarray(-lsq_linear(np.hstack([P, -Q]), q - p, bounds=(0, 1), tol=1e-12).fun)

    def measure_floor(self, corners_m: FloatArray) -> tuple[float, float, float]:
        """(length along the longest wall, width, meters, area, square meters) of a floor with corners (N, 3)."""
        off_m = corners_m - corners_m[0]
        walls = np.roll(off_m, -1, axis=0) - off_m
        long = walls[np.argmax(np.linalg.norm(walls, axis=1))]
        if self.exact:
            plan = off_m @ np.linalg.svd(off_m)[2][:2].T @ [1, 1j]
            way = (np.roll(plan, -1) - plan)[np.argmax(np.linalg.norm(walls, axis=1))]
            turned, area = plan / way * abs(way), (np.conj(plan) * np.roll(plan, -1)).imag.sum() / 2
            return float(np.ptp(turned.real)), float(np.ptp(turned.imag)), float(abs(area))
        long = long / np.linalg.norm(long)
        across = walls - np.outer(walls @ long, long)
        wide = across[np.argmax(np.linalg.norm(across, axis=1))]
        width = float(np.ptp(off_m @ wide) / np.linalg.norm(wide))
        return float(np.ptp(off_m @ long)), width, float(floors.measure_area_m2(corners_m))

    def find_motion(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """(3, 4) the second camera's frame from the first one's by their poses `world_from_camera` (4, 4)."""
        if not self.exact:
            return poses.relative_pose(first, second)[:3]
        turns = [Rotation.from_matrix(pose[:3, :3]) for pose in (first, second)]
        shift_m = turns[1].inv().apply(first[:3, 3] - second[:3, 3])
        return np.column_stack([(turns[1].inv() * turns[0]).as_matrix(), shift_m])

    def split_motion(self, motion: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """(turns to the right, up and clockwise (3,), degrees; place (3,), meters) of the second camera as the first
        one sees it, and the angle of the whole rotation, degrees; motion: (3, 4), second from first."""
        R, t = poses.find_nearest_rotation(motion[:, :3]), motion[:, 3]
        if self.exact:
            turns = np.arctan2([R[2, 0], -R[2, 1], R[0, 1]], [R[2, 2], np.hypot(R[2, 0], R[2, 2]), R[1, 1]])
            return (
                np.degrees(turns),
                np.asarray(np.linalg.solve(R, -t), np.float64),
                float(np.degrees(Rotation.from_matrix(R).magnitude())),
            )
        return poses.split_turns_deg(R.T), np.asarray(-R.T @ t), float(poses.rotation_angle_deg(R))

    def face(self, ahead: FloatArray, up: FloatArray, way: FloatArray) -> tuple[float, float]:
        """How far a way (3,) leads to the right and ahead of who faces along `ahead` (3,), on the floor."""
        right = np.cross(ahead, up)
        if self.exact:
            first = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
            plan = np.array([way, ahead]) @ (first + 1j * np.cross(first, up)) / np.linalg.norm(first)
            turned = plan[0] * np.conj(plan[1]) / abs(plan[1])
            return float(turned.imag), float(turned.real)
        right = right / np.linalg.norm(right)
        return float(way @ right), float(way @ np.cross(up, right))

    def move_point(self, H: FloatArray, uv_px: FloatArray) -> FloatArray:
        """(2,) where a homography (3, 3) puts a point."""
        if not self.exact:
            return homography.apply(H, uv_px)
        u, v, w = H @ [*uv_px, 1.0]
        return np.array([u / w, v / w])

    def tell_motion(self, motion: FloatArray) -> dict[str, str]:
        """What is said of a motion (3, 4), second from first."""
        turns, place, angle = self.split_motion(motion)
        told = {k.partition("_")[0]: self.say(k, x) for k, x in zip((*_TURNS, *_PLACES), (*turns, *place), strict=True)}
        told |= {"place": self.spot(place), "length": self.say("m", float(np.linalg.norm(place)))}
        return told | {"angle": self.say("degrees", angle)}

    def tell_sides(self, right_m: float, ahead_m: float, start: str = "") -> dict[str, str]:
        """What is said of where something is for an observer; start: of the names of the slots."""
        bearing = float(np.degrees(np.arctan2(right_m, ahead_m)))
        said = {"right": self.say("right_m", right_m), "ahead": self.say("ahead_m", ahead_m)}
        said |= {"farther": self.say("farther_m", ahead_m), "bearing": self.say("aside_degrees", bearing, 0)}
        return {start + key: text for key, text in said.items()}

    def tell_each(self, kind: str, named: Sequence[tuple[str, float]]) -> dict[str, str]:
        """Names with their quantities as they stand, and from the smallest to the largest."""
        return {"each": self.list(kind, named), "ordered": self.list(kind, sorted(named, key=lambda one: one[1]))}

    def name_option(self, k: int) -> str:
        """An option by its letter, or by its image where each has one."""
        images = len(self.row.pictures) > len(self.row.options)
        return self.word("option.image", n=str(k + 2)) if images else self.word("list.option", letter=ALPHABET[k])
