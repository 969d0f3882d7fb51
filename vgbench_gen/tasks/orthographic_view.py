"""Which of four drawings shows the framed objects of a photograph from above.

Wrong drawings are mirrored, left for right, and turned by 180 degrees or with two objects in each other's places. In
photographs wide objects stand far off; arrangements in which they stand near are asked about as often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Fact, FloatArray, Rejected
from vgbench_gen.geometry import plans
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks._objects import GatedObject, gate_objects
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.directions import AHEAD
from vgbench_gen.tasks.drawings import CROWDED_MAX, MIRROR, SIDE_PX, THINGS_MAX, DrawingTask, find_scale
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import MARK_COLORS, Measured
from vgbench_gen.tasks.places import POINTS_MIN, GroupEvidence, disturb_objects, list_groups, list_points
from vgbench_gen.tasks.solving import NoSolver

_GROUPS = 24  # of one frame
_CARRIED_M = 0.05  # up to here, the floor or table below an object is measured in its box as well


class ArrangementEvidence(GroupEvidence):
    """What is kept of objects seen from above."""

    px_per_m: float
    """Pixels of a drawing to one meter."""

    def draw(self, points: FloatArray) -> FloatArray:
        """Points (..., m, n, 3) of the camera's frame in pixels of a drawing, whose middle is that of the objects'
        centres; from `disturb`, they have a first axis of draws."""
        corners = np.stack([one.corners_m for one in self.objects], axis=-3)
        off = points - corners.mean(axis=(-3, -2), keepdims=True)
        return np.asarray(off @ plans.find_plan_axes(self.up).T * self.px_per_m + SIDE_PX / 2)


@tasks.register("orthographic_view")
class OrthographicView(DrawingTask):
    """See the module."""

    name, by_default = "orthographic_view", False
    category, subcategory = "Object Localization", "Plan"
    asked = "which drawing shows the framed objects from above"
    convention: ClassVar = {"plan": "right of the camera is right, away from it is up", "regions": "xyxy_inclusive"}
    needs_objects, needs_gravity, classes = True, True, 2
    candidate_evidence = ArrangementEvidence
    margins: ClassVar = {"gap_min": 0.4, "shift_min": 0.6, "shared_min": 0.7, "level_min": 0.5}
    solvers = NoSolver("Classical vision has no boxes from one image without learning.")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Groups of objects that stand apart, the larger ones first, in scenes that know where up is."""
        for frame in view.distinct_frames(rng):
            if view.up_world is None:
                yield reject(self, view, frame.id, "no_gravity", float("nan"), float("nan"))
                return
            up = frame.camera_from_world[:3, :3] @ view.up_world
            level, found = float(np.hypot(*up[:2])), gate_objects(frame, view).found
            groups = list_groups(found, up, THINGS_MAX, CROWDED_MAX) if level >= self.limits.level_min else []
            if not groups:
                yield reject(self, view, frame.id, "level", level, self.limits.level_min, f"{len(found)} objects")
            for k in sorted(rng.permutation(len(groups)).tolist(), key=lambda k: -len(groups[k]))[:_GROUPS]:
                yield self._measure(frame, [groups[k][i] for i in rng.permutation(len(groups[k]))], up)

    def _measure(self, frame: ViewFrame, group: Sequence[GatedObject], up: FloatArray) -> Measured:
        named, target = dict(zip("abcde", group, strict=False)), "+".join(sorted(one.instance_id for one in group))
        objects = {name: one.evidence() for name, one in named.items()}
        scale = find_scale(np.stack([one.corners_m for one in objects.values()]) @ plans.find_plan_axes(up).T)
        return Measured(
            (frame,),
            ArrangementEvidence(**objects, up=up, px_per_m=scale),
            {name: list(one.rect_px) for name, one in named.items()},
            {name + gate: ratio for name, one in named.items() for gate, ratio in one.margins.items()},
            target,
            np.mean([one.world_box.center_m for one in group], axis=0),
            f"objects:{target}",
        )

    def find_class(self, one: Measured, answer: FloatArray) -> int:
        """Whether the wider objects stand nearer than the others."""
        return int(np.ptp(answer, axis=1)[:, 0] @ (answer.mean(axis=1)[:, 1] - SIDE_PX / 2) > 0)

    def value(self, seen: ArrangementEvidence) -> FloatArray:
        """The corners of the boxes along gravity."""
        return seen.draw(np.stack([one.corners_m for one in seen.objects], axis=-3))

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """Outlines from above of what the frame measured in each box, without what carries it."""
        seen, camera_from_world, found = measured.evidence, measured.frames[0].camera_from_world, []
        for stored, points in zip(seen.objects, list_points(view, measured, seen.objects), strict=True):
            points, heights_m = transform(camera_from_world, points), stored.corners_m @ seen.up
            points = points[points @ seen.up > heights_m.min() + min(_CARRIED_M, np.ptp(heights_m) / 4)]
            if len(points) < POINTS_MIN:
                raise GeometryError(f"{len(points)} points are measured above what carries {stored.instance_id}")
            found.append(plans.find_outline(seen.draw(points[None])[0]))
        return np.stack(found)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Where each object is, and in which order each drawing has them."""
        seen = ArrangementEvidence.of(fact.truth_candidate)
        middles = np.array([pen.face(AHEAD, seen.up, pen.find_middle(one.corners_m)) for one in seen.objects])
        names = [pen.word(f"color.{color}") for color in MARK_COLORS[: len(middles)]]

        def tell_orders(places: FloatArray) -> dict[str, str]:
            across, away = (pen.join([names[k] for k in np.argsort(x, kind="stable")]) for x in places.T)
            return {"across": across, "away": away}

        values = [one.value for one in fact.candidates]
        plans_px = [np.array(one.ops[0]["polygons"]) for one in pen.row.shown()[1:]] if pen.exact else values
        drawn = [
            (pen.word("option.image", n=str(n)), plan.mean(axis=1) * [1, -1]) for n, plan in enumerate(plans_px, 2)
        ]
        told = [pen.word("list.drawn", image=image, **tell_orders(places)) for image, places in drawn]
        placed = [pen.series(("right_m", "ahead_m"), place) for place in middles]
        said = [pen.word("list.placed", name=name, place=place) for name, place in zip(names, placed, strict=True)]
        return tell_orders(middles) | {"places": pen.join(said), "drawings": "; ".join(told)}

    def disturb(self, seen: ArrangementEvidence, noise: SensorNoise, rng: np.random.Generator, n: int) -> Any:
        """The corners of all boxes as (n, 8, 3)."""
        return disturb_objects(seen, noise, rng, n)

    def list_changes(self, fact: Fact, rng: np.random.Generator) -> Iterator[tuple[FloatArray, ...]]:
        """Turned by 180 degrees, or with two objects in each other's places; mirrored; and both."""
        plan = fact.truth_candidate.value - SIDE_PX / 2
        pairs = list(combinations(range(len(plan)), 2))
        others = [-plan, *(plans.exchange_places(plan, *pairs[k]) for k in rng.permutation(len(pairs)))]
        for other in np.roll(others, -int(rng.integers(2)), axis=0):  # a turn first, or last
            yield plan @ MIRROR, other, other @ MIRROR
