"""Which of two outlined objects is wider, by the largest horizontal extent of their boxes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.label import LabelTask
from vgbench_gen.tasks.places import TwoObjects, UprightPairEvidence
from vgbench_gen.tasks.solving import NoSolver


@tasks.register("wider_object")
class WiderObject(TwoObjects, LabelTask):
    name = "wider_object"
    category, subcategory = "Size", "Relative"
    asked = "which of two outlined objects is wider"
    convention = {"width": "largest horizontal extent of the 3D bounding box", "regions": "xyxy_inclusive"}
    labels = ("orange", "blue")
    margins = {"ratio_min": 1.2}
    solvers = NoSolver("Classical vision cannot recover size from one image.")
    templates = Path(__file__).with_suffix(".toml")

    def rate_rect(self, rect: Sequence[int]) -> float:
        """Who only looks takes the wider rectangle, which must be right as often as not."""
        return float(rect[2] - rect[0])

    def value(self, seen: UprightPairEvidence) -> FloatArray:
        """The largest distance between two corners of each box as seen from above."""
        extents = []
        for corners_m in (seen.a.corners_m, seen.b.corners_m):
            flat = corners_m - (corners_m @ seen.up)[..., None] * seen.up
            extents.append(np.linalg.norm(flat[..., None, :] - flat[..., None, :, :], axis=-1).max(axis=(-2, -1)))
        return np.stack(extents, axis=-1)

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """The widest span of the measured points of each object over horizontal directions."""
        level = np.linalg.svd(np.reshape(view.up_world, (1, 3)))[2][1:]
        turns = np.radians(np.arange(0, 180, 5))
        directions = np.stack([np.cos(turns), np.sin(turns)], axis=1) @ level
        return np.array([np.ptp(cloud @ directions.T, axis=0).max() for cloud in self.list_points(view, measured)])
