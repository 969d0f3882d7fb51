"""How high the camera stands above the lowest surface that the image shows: a task of a package from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.geometry import projection
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.base import Problems, add_margins, reject, tasks
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, FactEvidence
from vgbench_gen.tasks.gates import ScalarGates
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.tasks.records import make_camera_slots
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.scalar import ScalarTask
from vgbench_gen.tasks.solving import ImageRule, Solver, VisibleQuestion

Point = Annotated[FloatArray, ArrayShape(3)]
LOWEST = 0.98  # quantile of the heights below the camera, so that stray pixels do not count


class HeightEvidence(FactEvidence):
    """What is kept of a measured height."""

    centre_m: Point
    """The camera in the world, meters."""
    lowest_m: Point
    """The lowest point that the image shows, in the world, meters."""
    up: Point
    """Unit vector against gravity in the world."""

    @property
    def height_m(self) -> float:
        """How high the camera stands above the point."""
        return float((self.centre_m - self.lowest_m) @ self.up)


class HeightGates(ScalarGates):
    """Which heights may be asked."""

    section = "camera_height"

    min_m: float = 0.5
    ratio_min: float = 1.35
    ratio_max: float = 4.0


def check_height(fact: Fact, gates: Gates) -> Problems:
    """The stored camera stands as high above the stored point as is printed."""
    height_m = HeightEvidence.of(fact).height_m
    off_m = abs(height_m - float(fact.truth_candidate.value[0]))
    return [] if off_m <= 0.006 else [("height", f"{fact.key}: {height_m:.3f} m by its evidence, {off_m:.3f} m off")]


def score_middle(seen: VisibleQuestion) -> FloatArray:
    """A solver that likes the second option; it only shows that it is asked."""
    return np.array([0.0, 1.0, *[0.0] * (len(seen.options) - 2)])


@tasks.register("camera_height")
class CameraHeight(ScalarTask):
    """See the module."""

    name = "camera_height"
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice", "open-ended")
    unit = "m"
    category, subcategory = "Depth and Distance", "Absolute"
    category_origin: ClassVar[Mapping[str, str]] = dict.fromkeys(formats, "camera_height_vqa")
    convention: ClassVar[Mapping[str, str]] = {"height": "along gravity", "unit": "m"}
    fact_evidence = HeightEvidence
    candidate_evidence = Evidence
    checks = (check_height,)
    solvers = (Solver("likes the second option", score_middle),)
    image_rules = (ImageRule("likes the second option, too", score_middle),)
    templates = Path(__file__).with_name("camera_height.toml")

    @property
    def limits(self) -> HeightGates:
        """The task's own gates."""
        return self.gates.section(HeightGates)

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """One fact per frame of a scan that knows where up is."""
        made = 0
        for frame in view.distinct_frames(rng):
            if made >= limit:
                return
            if view.up_world is None:
                yield reject(self, view, frame.id, "no_gravity", float("nan"), float("nan"))
                continue
            points = transform(frame.world_from_camera, _cloud(frame))
            below_m = (frame.world_from_camera[:3, 3] - points) @ view.up_world
            lowest = points[np.argsort(below_m)[int(LOWEST * (len(points) - 1))]]
            measured = HeightEvidence(centre_m=frame.world_from_camera[:3, 3], lowest_m=lowest, up=view.up_world)
            height_m = measured.height_m
            if height_m < self.limits.min_m:
                yield reject(self, view, frame.id, "camera_low", height_m, self.limits.min_m)
                continue
            truth = Candidate(f"frame:{frame.id}", self.rounded(np.array([height_m])))
            fact = self.new_fact(view, (truth,), frame_ids=(frame.id,), evidence=measured)
            made += 1
            yield add_margins(fact, frame.id, {"height": height_m / self.limits.min_m})

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """In the camera's own frame, where up is turned instead of the points."""
        frame = view.frame(fact.frame_ids[0])
        up = frame.world_from_camera[:3, :3].T @ np.asarray(view.up_world)
        return np.array([np.quantile(-_cloud(frame) @ up, LOWEST)])

    def value(self, about: Candidate, fact: Fact) -> float | None:
        """From the stored camera, point and direction."""
        return HeightEvidence.of(fact).height_m if about.key == fact.truth_candidate.key else None

    def sigma(self, value: float, fact: Fact, noise: SensorNoise) -> float:
        """The error of depth alone: camera and surface come from one frame."""
        return noise.depth_sigma_m(value)

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """Heights in equal ratios; the truth stands anywhere among them."""
        truth, place = float(fact.truth_candidate.value[0]), int(rng.integers(count))
        steps = [truth * 1.42 ** (k - place) for k in range(count)]
        rungs = [Candidate(f"rung:{k}", self.rounded(np.array([step]))) for k, step in enumerate(steps)]
        return [*rungs[:place], fact.truth_candidate, *rungs[place + 1 :]], place

    def sampled(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """Any height within the ceiling."""
        value = float(fact.truth_candidate.value[0]) * float(np.exp(rng.uniform(-1.2, 1.2)))
        return Candidate("", self.rounded(np.array([value])))

    def pictures(self, fact: Fact) -> tuple[Picture, ...]:
        """The frame as it is."""
        return (Picture(fact.pictures[fact.frame_ids[0]]),)

    def slots(self, fact: Fact) -> dict[str, str]:
        """The camera."""
        return make_camera_slots(fact.cameras[fact.frame_ids[0]])

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """A mark that says the height."""
        return [[Mark("point", ((10.0, 10.0),), f"{HeightEvidence.of(fact).height_m:.3f} m")]]


def _cloud(frame: ViewFrame) -> FloatArray:
    """(N, 3) measured points in the camera's frame, meters."""
    v, u = np.nonzero(frame.depth_m > 0)
    return projection.back_project(frame.depth_camera, np.stack([u, v], axis=1).astype(np.float64), frame.depth_m[v, u])
