"""Which of four drawings is the first one turned: a plan of four or five boxes of a scene.

Wrong drawings are mirrored, have two boxes in each other's places, or both, and are turned as well. The first drawing
is itself mirrored as often as not, with the same two boxes exchanged as often as not: without it, each of the four is
as likely the right one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np

from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray, Rejected
from vgbench_gen.geometry import boxes, plans
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store import pictures
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import drawings
from vgbench_gen.tasks._objects import is_structural
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, Size
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import MARK_COLORS, Measured
from vgbench_gen.tasks.solving import NoSolver

THINGS_MIN = 4
_GROUPS = 4  # of one frame
_DOWN_MAX = 0.99  # of up along the view; there, plans have no direction
_MIDDLE = drawings.SIDE_PX / 2


class TurnedEvidence(Evidence):
    """What is kept of a drawing and its turn."""

    plan: Annotated[FloatArray, ArrayShape(-1, 8, 2)]
    """Outlines of the first drawing, whole pixels."""
    turns: int
    """Quarter turns clockwise to the right drawing: 1, 2 or 3."""
    exchanged: Size
    """The two boxes that stand in each other's places in wrong drawings."""


@tasks.register("rotated_arrangement")
class RotatedArrangement(drawings.DrawingTask):
    """See the module."""

    name, by_default = "rotated_arrangement", False
    category, subcategory = "Camera and Image Transformation", "Plan"
    asked = "which drawing is the first one turned"
    convention: ClassVar = {"turn": "clockwise"}
    needs_objects, needs_gravity, uses_max, classes = True, True, 1, 3
    candidate_evidence = TurnedEvidence
    margins: ClassVar = {"gap_min": 0.3, "shift_min": 0.5, "shared_min": 0.7}
    solvers = NoSolver("A drawing that is turned back and compared tells the answer; it is asked of readers.")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Groups of boxes near each other, in scenes that know where up is, each with a turn."""
        things = [item for item in view.objects if not is_structural(item.label)]
        up_world = np.zeros(3) if view.up_world is None else view.up_world
        for frame in view.distinct_frames(rng) if up_world.any() else []:
            turned = frame.camera_from_world[:3, :3]
            if abs(turned[2] @ up_world) > _DOWN_MAX:
                continue
            axes = plans.find_plan_axes(turned @ up_world) @ turned
            outlines = [boxes.corners(item.box) @ axes.T for item in things]
            for start in rng.permutation(len(things))[:_GROUPS].tolist():
                most = int(rng.integers(THINGS_MIN, drawings.THINGS_MAX + 1))
                group = rng.permutation(plans.find_group(outlines, start, most, drawings.CROWDED_MAX)).tolist()
                target = "+".join(sorted(things[k].instance_id for k in group))
                if len(group) < THINGS_MIN:
                    yield reject(self, view, f"{frame.id}/{target}", "objects_too_few", len(group), THINGS_MIN)
                    break
                plan = np.stack([outlines[k] for k in group])
                i, j = rng.permutation(len(plan))[:2].tolist()
                plan = plans.exchange_places(plan, i, j) if rng.integers(2) else plan
                plan = (plan - plan.mean(axis=(0, 1))) @ np.linalg.matrix_power(drawings.MIRROR, int(rng.integers(2)))
                plan = self.rounded(plan * drawings.find_scale(plan) + _MIDDLE)
                seen = TurnedEvidence(plan=plan, turns=int(rng.integers(1, 4)), exchanged=(i, j))
                yield Measured((frame,), seen, target=target, key=f"objects:{target}")

    def settle(self, answer: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """As for all drawings; the drawing must differ from all its turns, and from those of its mirror image."""
        value, kept = super().settle(answer)
        alike = [plan @ drawings.turn_clockwise(k) for plan in (answer, answer @ drawings.MIRROR) for k in range(4)][1:]
        return value, kept | {"decided": min(self.compare(answer, other) for other in alike)}

    def find_class(self, one: Measured, answer: FloatArray) -> int:
        """The turn."""
        return int(one.evidence.turns) - 1

    def value(self, seen: TurnedEvidence) -> FloatArray:
        """The first drawing's outlines, turned."""
        return np.asarray((seen.plan - _MIDDLE) @ drawings.turn_clockwise(seen.turns) + _MIDDLE)

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """Outlines of the colors in the pixels of the first drawing, which are turned as an image."""
        plan = measured.evidence.plan
        drawn = pictures.apply(drawings.make_drawing("0" * 32 + ".jpg", plan), np.zeros((1, 1, 3), dtype=np.uint8))
        return drawings.read_drawing(np.rot90(drawn, -measured.evidence.turns), len(plan))

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        """What is drawn is what is asked about, so no source has a part in it: points are off within a pixel."""
        return about.value + rng.uniform(-0.5, 0.5, (n, *about.value.shape))

    def list_changes(self, fact: Fact, rng: np.random.Generator) -> Iterator[tuple[FloatArray, ...]]:
        """With two boxes exchanged, mirrored, and both, turned by 90, 180 or 270 degrees other than each other."""
        seen = TurnedEvidence.of(fact.truth_candidate)
        other = plans.exchange_places(plan := seen.plan - _MIDDLE, *seen.exchanged)
        for k in rng.permutation([k for k in (1, 2, 3) if k != seen.turns]).tolist():
            start = int(rng.integers(4))
            first, last = (drawings.MIRROR @ drawings.turn_clockwise(n) for n in (start, start + k - seen.turns))
            yield other @ drawings.turn_clockwise(k), plan @ first, other @ last

    def count_hops(self, fact: Fact) -> int:
        """The boxes and the turn."""
        return len(TurnedEvidence.of(fact.truth_candidate).plan) + 1

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """How the first drawing is turned, and where its boxes are before and after."""
        seen, shown = TurnedEvidence.of(fact.truth_candidate), pen.row.shown()
        plans_px = [np.array(shown[k].ops[0]["polygons"]) for k in (0, 1 + fact.truth)]
        ends = [plan.mean(axis=1) - _MIDDLE for plan in (plans_px if pen.exact else (seen.plan, self.value(seen)))]
        names = [pen.word(f"color.{color}") for color in MARK_COLORS[: len(seen.plan)]]
        sides = [[pen.word(f"side.s{round(4 * np.arctan2(y, x) / np.pi) % 8}") for x, y in end] for end in ends]
        moved = [pen.word("list.moved", name=n, start=a, end=b) for n, a, b in zip(names, *sides, strict=True)]
        turn = pen.say(*(("clockwise_degrees", 90), ("degrees", 180), ("clockwise_degrees", -90))[seen.turns - 1], 0)
        around = np.argsort([np.arctan2(y, x) for x, y in ends[0]], kind="stable")
        return {"turn": turn, "moved": pen.join(moved), "around": pen.join([names[k] for k in around])}

    def pictures(self, fact: Fact) -> tuple[Picture, ...]:
        """The first drawing."""
        return (drawings.make_drawing(fact.pictures[fact.frame_ids[0]], TurnedEvidence.of(fact.truth_candidate).plan),)
