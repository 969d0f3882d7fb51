"""By about how many degrees the camera turned between two images.

Ground truth: the angle of the relative rotation, acos((trace R - 1) / 2), near one of the angles that are offered.
Second route: that of the rotation that pixels and depth give without the poses. Who goes by how far the image moved and
how much of it was lost is right as often as who draws lots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import Fact, FloatArray, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.label import LabelTask
from vgbench_gen.tasks.places import TwoViews, ViewsEvidence
from vgbench_gen.tasks.solving import NoSolver

ANGLES_DEG = np.array([10.0, 20.0, 30.0, 40.0])  # of the labels, whose words hold no numbers that sets would share


@tasks.register("camera_turn_angle")
class CameraTurnAngle(TwoViews, LabelTask):
    """See the module."""

    needs_meters = False
    name, by_default = "camera_turn_angle", False
    category, subcategory = "Camera and Image Transformation", "3D Camera Pose"
    asked = "about how many degrees the camera turned between two images"
    convention: ClassVar = {"turn": "angle of the rotation between the two camera frames"}
    symmetric = False
    labels = ("ten", "twenty", "thirty", "forty")
    margins: ClassVar = {"gap_min": 4.0, "off_max": 3.0}  # degrees, of which the text states the second
    solvers = NoSolver("Solvers of relative poses print motions, and none reads an angle.")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Who only looks adds to the angle by which the image moved half of the angle of view that was lost: the median
        point moves little where the camera walks around it."""
        for one in super().propose(view, rng):
            if isinstance(one, Measured):
                camera, pair = one.frames[0].camera, one.evidence.pair
                moved = np.arctan(pair.shift_d / 100 * camera.diagonal_px / camera.fx)
                lost = (1 - pair.overlap) * 2 * np.arctan(camera.width / 2 / camera.fx)
                one = replace(one, guess=self.labels[int(np.argmax(_score(np.degrees(moved + lost / 2))))])
            yield one

    def value(self, seen: ViewsEvidence) -> FloatArray:
        """Minus how far the angle by the trace is from each that is offered."""
        cosine = (np.trace(seen.motion[..., :3, :3], axis1=-2, axis2=-1) - 1) / 2
        return _score(np.degrees(np.arccos(np.clip(cosine, -1, 1))))

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By the length of the rotation vector of the registered motion."""
        return _score(np.degrees(Rotation.from_matrix(self.register(view, measured)[:, :3]).magnitude()))

    def slots(self, fact: Fact) -> dict[str, str]:
        """Cameras, and how far the angle may be from what is said."""
        return super().slots(fact) | {"tolerance_deg": f"{self.limits.off_max:g}"}

    def settle(self, answer: Any) -> tuple[FloatArray, Mapping[str, float]]:
        """Beside the next one, how near the angle is, as the text states."""
        value, kept = super().settle(answer)
        return value, {**kept, "off": float(self.limits.off_max / max(-np.max(answer), 1e-3))}


def _score(angle_deg: Any) -> FloatArray:
    return np.asarray(-np.abs(np.asarray(angle_deg)[..., None] - ANGLES_DEG))
