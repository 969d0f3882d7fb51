"""Whether the camera turned to the left or to the right between two images of a scene."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import FloatArray, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.label import LabelTask
from vgbench_gen.tasks.places import TwoViews, ViewsEvidence
from vgbench_gen.tasks.solving import Solver, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.epipolar import match_rays
from vgbench_gen.tasks.solving.seen import read_cameras

SIDES = np.array([-0.5, 0.5])  # scores of left and right for a turn of 1 degree to the right, which are 1 apart


def score_by_flow(seen: VisibleQuestion) -> FloatArray:
    """What is seen moves to the left where the camera turns to the right."""
    rays_1, rays_2, _ = match_rays(*seen.images, *read_cameras(seen.context))
    if not len(rays_1):
        raise Unread("no matches")
    to_right = np.median(rays_1[:, 0] - rays_2[:, 0])
    said = seen.options or [seen.question, "" if "to the right" in seen.question else "to the right"]
    return np.array([to_right if "to the right" in text else -to_right for text in said])


@tasks.register("camera_turn")
class CameraTurn(TwoViews, LabelTask):
    name = "camera_turn"
    category, subcategory = "Camera and Image Transformation", "3D Camera Pose"
    asked = "whether the camera turned to the left or to the right"
    convention = {"turn": "about y of the first camera", "axes": "opencv"}
    labels = ("left", "right")
    margins = {"gap_min": 10.0, "turn_share_min": 0.5}  # degrees, ten times the error of poses; of the whole rotation
    solvers = (Solver("pixels move to the other side", score_by_flow),)
    templates = Path(__file__).with_suffix(".toml")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Rotations that are mostly such a turn: to nod or to roll is none."""
        for one in super().propose(view, rng):
            if isinstance(one, Measured):
                whole_deg = np.degrees(Rotation.from_matrix(one.evidence.motion[:3, :3]).magnitude())
                share = np.ptp(self.value(one.evidence)) / whole_deg
                one = replace(one, ratios={**one.ratios, "turn_share": float(share / self.limits.turn_share_min)})
            yield one

    def value(self, seen: ViewsEvidence) -> FloatArray:
        """By where the second optical axis points in the frame of the first camera: the third row of R."""
        ahead = seen.motion[..., 2, :3]
        return np.degrees(np.arctan2(ahead[..., 0], ahead[..., 2]))[..., None] * SIDES

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By Euler angles of `first_from_second`, which pixels and depth give without the poses."""
        return Rotation.from_matrix(self.register(view, measured)[:, :3].T).as_euler("YXZ", degrees=True)[0] * SIDES
