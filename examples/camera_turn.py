"""Whether the camera turned to the left or to the right between two images of a scene."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import FloatArray
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.label import LabelTask
from vgbench_gen.tasks.places import MotionEvidence, TwoViews
from vgbench_gen.tasks.solving import NoSolver

SIDES = np.array([-0.5, 0.5])  # scores of left and right for a turn of 1 degree to the right, which are 1 apart


@tasks.register("camera_turn")
class CameraTurn(TwoViews, LabelTask):
    name = "camera_turn"
    category, subcategory = "Camera and Image Transformation", "3D Camera Pose"
    asked = "whether the camera turned to the left or to the right"
    convention = {"turn": "about y of the first camera", "axes": "opencv"}
    labels = ("left", "right")
    margins = {"gap_min": 10.0}  # degrees, ten times the error of poses
    solvers = NoSolver("The solver of the relative pose answers this too.")
    templates = Path(__file__).with_suffix(".toml")

    def value(self, seen: MotionEvidence) -> FloatArray:
        """By where the second optical axis points in the frame of the first camera: the third row of R."""
        ahead = seen.motion[..., 2, :3]
        return np.degrees(np.arctan2(ahead[..., 0], ahead[..., 2]))[..., None] * SIDES

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By Euler angles of the rotation that pixels and depth give without the poses."""
        first_from_second = Rotation.from_matrix(self.register(view, measured)[:, :3].T)
        return first_from_second.as_euler("YXZ", degrees=True)[0] * SIDES
