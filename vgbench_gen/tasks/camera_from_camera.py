"""Where the second camera stands as seen from the first one, on the side to which it moved: ahead, beside or behind.

Ground truth: the second centre in the first camera's x and z, near the middle of one of eight sectors. Second route:
the point of the first frame that the motion by pixels and depth moves onto the second centre. Who walks around
something and looks at it moves left as he turns right; so all options are on one side, the depth axis alone decides,
and each is right as often of views that turned little and of those that turned far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.geometry.poses import measure_motion
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.label import NamedEvidence, NamedTask
from vgbench_gen.tasks.places import TwoViews, ViewsEvidence
from vgbench_gen.tasks.solving import NoSolver
from vgbench_gen.text.render import load_labels

TOWARDS_DEG = np.array([45.0, 90.0, 135.0])  # of the options, from the viewing axis to their side
FAR_TURN_DEG = 15.0


class StandEvidence(ViewsEvidence, NamedEvidence):
    """What is kept of two views; the answers are those of one side."""

    side: int
    """1 where these are on the right, -1 where they are on the left."""


@tasks.register("camera_from_camera")
class CameraFromCamera(TwoViews, NamedTask):
    """See the module."""

    needs_meters = False
    name, by_default = "camera_from_camera", False
    category, subcategory = "Camera and Image Transformation", "3D Camera Pose"
    asked = "where the second camera stands as seen from the first one"
    convention: ClassVar = {"direction": "in the plane of x and z of the first camera", "axes": "opencv"}
    candidate_evidence = StandEvidence
    symmetric = False  # exchanged views are on opposite sides, but more walk sideways than ahead
    options = 3
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice")
    # Degrees; meters in the plane, and of the whole shift; degrees from the middle of a sector.
    margins: ClassVar = {"gap_min": 15.0, "shift_min_m": 0.3, "level_min": 0.8, "off_max": 15.0}
    solvers = NoSolver("Solvers of relative poses print motions, and none reads a direction.")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Shifts that are long enough and mostly in the plane that is asked about."""
        words = load_labels(self.name)
        for one in super().propose(view, rng):
            if isinstance(one, Rejected):
                yield one
                continue
            turn_deg, _, right_m, up_m, ahead_m = measure_motion(one.evidence.motion)
            side, level_m = 1 if right_m > 0 else -1, np.hypot(right_m, ahead_m)
            labels = [words[f"{where}{'right' if side > 0 else 'left'}"] for where in ("front_", "", "back_")]
            kept = {"shift": level_m / self.limits.shift_min_m}
            kept["level"] = level_m / max(np.hypot(level_m, up_m), 1e-9) / self.limits.level_min
            motion, pair = one.evidence.motion, one.evidence.pair
            seen = StandEvidence(motion=motion, pair=pair, labels=labels, side=side)
            group = f"{labels[1]}, turned {'far' if abs(turn_deg) > FAR_TURN_DEG else 'little'}"
            yield replace(one, evidence=seen, ratios={**one.ratios, **kept}, group=group)

    def value(self, seen: StandEvidence) -> FloatArray:
        """By the second centre along the first axes."""
        *_, right_m, _, ahead_m = np.moveaxis(measure_motion(seen.motion), -1, 0)
        return _score(np.degrees(np.arctan2(seen.side * right_m, ahead_m)))

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By solving for the point of the first frame that the registered motion moves to the origin of the second."""
        motion = self.register(view, measured)
        x, _, z = np.linalg.solve(motion[:, :3], -motion[:, 3])
        return _score(np.degrees(np.angle(z + 1j * x * measured.evidence.side)))

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also in which direction the second camera stands."""
        right, _, ahead = pen.split_motion(self.find_motion(fact, pen))[1]
        return super().explain(fact, pen) | pen.tell_sides(right, ahead)

    def settle(self, answer: Any) -> tuple[FloatArray, Mapping[str, float]]:
        """Beside the next one, how near the direction is: ahead and behind are no options."""
        value, kept = super().settle(answer)
        return value, {**kept, "off": float(self.limits.off_max / max(-np.max(answer), 1e-3))}


def _score(direction_deg: Any) -> FloatArray:
    """Minus how far a direction, positive to the side of the options, is from each, degrees."""
    off_deg = np.asarray(direction_deg)[..., None] - TOWARDS_DEG
    return np.asarray(-np.abs((off_deg + 180) % 360 - 180))
