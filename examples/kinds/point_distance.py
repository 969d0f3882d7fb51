"""How far apart two marked points of an image are in space, in meters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import transform
from vgbench_gen.geometry.projection import sample_nearest
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.evidence import Evidence, Points
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.scalar import ScalarTask
from vgbench_gen.tasks.solving import NoSolver


class PointsEvidence(Evidence):
    points_m: Points  # both in the camera's frame, meters


@tasks.register("point_distance")
class PointDistance(ScalarTask):
    name, unit = "point_distance", "m"
    category, subcategory, asked = "Depth and Distance", "Absolute", "distance between two marked points, meters"
    convention = {"distance": "euclidean", "unit": "m", "points": "pixels"}
    margins = {"min": 0.4, "max": 4.0, "ratio_min": 1.3, "ratio_max": 3.0, "gap_min": 0.1}
    candidate_evidence = PointsEvidence
    solvers = NoSolver("Classical vision has no metric distance from one image without learning.")
    templates = Path(__file__).with_suffix(".toml")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured]:
        for frame in view.distinct_frames(rng):
            pixels, points = frame.samples  # a grid of pixels with known depth, and its points in the world
            edges = sample_nearest(frame.edge_mask(view.gates.depth), frame.depth_uv(pixels), outside=1)
            firm = np.flatnonzero(edges == 0)
            for pair in rng.choice(firm, (20, 2)) if len(firm) else ():
                a, b = pixels[pair].astype(int).tolist()
                seen = PointsEvidence(points_m=transform(frame.camera_from_world, points[pair]))
                yield Measured((frame,), seen, {"first": a, "second": b}, point_m=points[pair].mean(axis=0))

    def value(self, seen: PointsEvidence) -> FloatArray:
        return np.linalg.norm(seen.points_m[..., 0, :] - seen.points_m[..., 1, :], axis=-1)

    def second(self, view: SceneView, measured: Measured) -> float:
        """By the law of cosines on both rays, with the median depth around each point."""
        (frame,), pixels = measured.frames, list(measured.marks.values())
        rays = np.linalg.solve(frame.camera.K, np.column_stack([pixels, [1, 1]]).T).T
        depths = [np.median(frame.depth_patch((u - 4, v - 4, u + 4, v + 4))) for u, v in pixels]
        a_m, b_m = np.linalg.norm(rays, axis=1) * depths
        cosine = rays[0] @ rays[1] / np.linalg.norm(rays, axis=1).prod()
        return float(np.sqrt(a_m**2 + b_m**2 - 2 * a_m * b_m * cosine))

    def disturb(self, seen: PointsEvidence, noise: SensorNoise, rng: np.random.Generator, n: int) -> PointsEvidence:
        share = (noise.depth_m + noise.depth_per_m * seen.points_m[:, 2:] ** 2) / seen.points_m[:, 2:]
        return seen.model_copy(update={"points_m": seen.points_m * (1 + share * rng.standard_normal((n, 2, 1)))})
