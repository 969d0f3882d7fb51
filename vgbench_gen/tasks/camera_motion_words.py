"""How the camera turned and moved from one image to the next, in words such as "turned right and moved forward".

Ground truth: where the second camera looks and stands in the first one's axes, for two components that are both clear.
Each option joins one direction of either, so every word stands in two of the four. Second route: the same of the motion
that pixels and depth give. Not asked together are components of which one tells the other: who walks around something
and looks at it turns right where it moved left, tilts down where it rose, and rises where it came nearer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.geometry.poses import measure_motion, split_turns_deg
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.label import NamedEvidence, NamedTask
from vgbench_gen.tasks.places import TwoViews, ViewsEvidence
from vgbench_gen.tasks.solving import NoSolver
from vgbench_gen.text.render import fill_word, load_labels

TURN, TILT, SIDE, LIFT, AHEAD = range(5)  # as `measure_motion` has them
WORDS = ("turned_left turned_right", "tilted_down tilted_up", "left right", "down up", "backward forward")
KINDS = ("turned_degrees", "tilted_degrees", "moved_right_m", "moved_up_m", "moved_ahead_m")
ASKED = ((TURN, TILT), (TURN, LIFT), (TURN, AHEAD), (TILT, SIDE), (SIDE, LIFT), (SIDE, AHEAD))
SIGNS = np.array(list(product((-0.5, 0.5), repeat=2)))  # so that the right label is above the next by the smaller part


class MotionWordsEvidence(ViewsEvidence, NamedEvidence):
    """What is kept of two views and of the question."""

    asked: int
    """Which of `ASKED`."""


@tasks.register("camera_motion_words")
class CameraMotionWords(TwoViews, NamedTask):
    """See the module."""

    needs_meters = False
    name, by_default = "camera_motion_words", False
    category, subcategory = "Camera and Image Transformation", "3D Camera Pose"
    asked = "how the camera turned and moved between two images, by two components"
    convention: ClassVar = {"directions": "in the frame of the first camera", "axes": "opencv"}
    candidate_evidence = MotionWordsEvidence
    symmetric = False  # exchanged views have both signs changed, never one
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice")
    # A turn needs so many degrees, a move that share of the largest one, which counts as `shift_min_m` at least.
    margins: ClassVar = {"turn_min_deg": 10.0, "shift_min_m": 0.3, "share_min": 0.6, "gap_min": 1.0}
    solvers = NoSolver("Solvers of relative poses print motions, and none reads words.")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Every two components of each motion."""
        for one in super().propose(view, rng):
            if isinstance(one, Rejected):
                yield one
                continue
            for k in range(len(ASKED)):
                labels = list_labels(k)
                seen = MotionWordsEvidence(motion=one.evidence.motion, pair=one.evidence.pair, asked=k, labels=labels)
                yield replace(one, evidence=seen, key=f"asked:{k}", group="+".join(labels))

    def value(self, seen: MotionWordsEvidence) -> FloatArray:
        """By the second optical axis and centre in the first frame."""
        return self._score(measure_motion(seen.motion), seen.asked)

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By Euler angles of the registered motion, and the point of the first frame that it moves to the origin."""
        motion = self.register(view, measured)
        x, y, z = np.linalg.solve(motion[:, :3], -motion[:, 3])
        return self._score(np.array([*split_turns_deg(motion[:, :3].T)[:2], x, -y, z]), measured.evidence.asked)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also the two components that are asked."""
        (turn, tilt, _), (right, down, ahead), _ = pen.split_motion(self.find_motion(fact, pen))
        parts, asked = (turn, tilt, right, -down, ahead), ASKED[MotionWordsEvidence.of(fact.truth_candidate).asked]
        first, second = (pen.say(KINDS[k], parts[k]) for k in asked)
        return super().explain(fact, pen) | {"first": first, "second": second}

    def _score(self, parts: FloatArray, asked: int) -> FloatArray:
        """(..., 4) of parts (..., 5), over what each needs."""
        largest_m = np.abs(parts[..., SIDE:]).max(axis=-1, keepdims=True)
        needed_m = self.limits.share_min * np.maximum(largest_m, self.limits.shift_min_m)
        parts = np.concatenate([parts[..., :SIDE] / self.limits.turn_min_deg, parts[..., SIDE:] / needed_m], axis=-1)
        return np.asarray(parts[..., ASKED[asked]] @ SIGNS.T)


def list_labels(asked: int) -> list[str]:
    """The words of both directions of either component, in the order of `SIGNS`."""
    words = load_labels("camera_motion_words")
    both = product(*([words[key] for key in WORDS[part].split()] for part in ASKED[asked]))
    return [fill_word("option.both", first=first, second=second) for first, second in both]
