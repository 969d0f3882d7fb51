"""Which of four spots on a plan is an object that several frames show. The plan also has the first camera and is turned
at random. All spots look the same, and each is asked about: by plan and names alone, every color is right as often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray, Rejected
from vgbench_gen.geometry import plans, poses
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks._sightings import get_sightings
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.directions import AHEAD, DirectionEvidence, DirectionTask, find_middle
from vgbench_gen.tasks.drawings import BORDER_PX, SIDE_PX
from vgbench_gen.tasks.evidence import ArrayShape
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import MARK_COLORS, Measured
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.render import fill_word

DRAWS, SETS = 60, 4  # of frames, and of objects in each
APART_DEG, APART_RATIO = 10.0, 1.3  # between two spots seen from the camera: in direction, or in distance
STEEPEST = 0.8  # sine of the angle by which the first camera may look up or down
SPOT_PX = 11.0  # radius of a spot
ARROW_PX = np.array([[0.0, -26.0], [11.0, 14.0], [-11.0, 14.0]])  # of a camera that looks up in the drawing
_SPOT = np.stack([np.cos(np.arange(12) * np.pi / 6), np.sin(np.arange(12) * np.pi / 6)], axis=-1) * SPOT_PX


class MapEvidence(DirectionEvidence):
    """What is kept of the object that is asked about, and of the plan."""

    px_from_camera: Annotated[FloatArray, ArrayShape(2, 4)]
    """Pixels of the plan from points of the first camera's frame, meters."""
    spots_px: Annotated[FloatArray, ArrayShape(4, 2)]
    """The spots in the order of the labels, whole pixels."""
    names: list[str]
    """Labels of the four objects, in alphabetical order."""


@tasks.register("map_relation")
class MapRelation(DirectionTask):
    """See the module."""

    name = "map_relation"
    category, subcategory = "Object Localization", "Map"
    asked = "which spot of a plan is an object that several frames show"
    convention: ClassVar = {"spot": "centre of the 3D bounding box", "arrow": "camera of the first image"}
    candidate_evidence = MapEvidence
    labels = MARK_COLORS[1:]
    margins: ClassVar = {"gap_min": 0.1}  # of the side of the plan

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Sets of four objects that some frames show, the first one of them some too; and each of the four."""
        for rows in self.draw_frames(view, rng, DRAWS, linked=True):
            unique = self.list_unique(view, rows)
            if len(unique) < len(self.labels):
                yield reject(self, view, "+".join(map(str, rows)), "names_too_few", len(unique), len(self.labels))
                continue
            for _ in range(SETS):
                four = rng.choice(unique, len(self.labels), replace=False).tolist()
                firsts = [row for row in rows if get_sightings(view).shown[row, four].any() and is_level(view, row)]
                if firsts:
                    first = int(rng.choice(firsts))
                    shown = [first, *(row for row in rows if row != first)]
                    yield from self._measure_set(view, shown, four, rng)

    def _measure_set(
        self, view: SceneView, rows: list[int], four: list[int], rng: np.random.Generator
    ) -> list[Measured]:
        """Each of four objects, on plans that are turned otherwise; none where one of them may not be asked about."""
        camera_from_world, found = view.frames[rows[0]].camera_from_world, []
        centers_m = poses.transform(camera_from_world, np.stack([view.objects[k].box.center_m for k in four]))
        level = plans.find_plan_axes(camera_from_world[:3, :3] @ np.asarray(view.up_world))
        names = sorted(get_sightings(view).labels[k] for k in four)
        group = "+".join([*(view.objects[k].instance_id for k in four), *(view.frames[row].id for row in rows)])
        for place, angle in enumerate(np.radians(rng.integers(0, 360, len(four)))):
            axes = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ level
            plan_m = np.vstack([centers_m @ axes.T, np.zeros(2)])  # and the camera
            low_m, high_m = plan_m.min(axis=0), plan_m.max(axis=0)
            scale = (SIDE_PX - 2 * (BORDER_PX - ARROW_PX.min())) / (high_m - low_m).max()
            px_from_camera = np.column_stack([scale * axes, SIDE_PX / 2 - scale * (low_m + high_m) / 2])
            spots_px = np.rint(centers_m @ px_from_camera[:, :3].T + px_from_camera[:, 3])
            kept = {"px_from_camera": px_from_camera, "spots_px": spots_px, "names": names}
            one = self.measure(view, rows, [four[place]], group, **kept)
            if one is None:
                return []
            off = (spots_px - px_from_camera[:, 3]) @ [1, 1j] + 1e-9  # never quite at the camera
            beside = np.log(np.delete(off, place) / off[place])
            angles, ratios = np.abs(beside.imag) / np.radians(APART_DEG), np.abs(beside.real) / np.log(APART_RATIO)
            gaps = {"apart": np.maximum(angles, ratios).min(), "arrow": abs(off[place]) / SIDE_PX / self.limits.gap_min}
            found.append(replace(one, ratios={**one.ratios, **{name: float(gap) for name, gap in gaps.items()}}))
        return found

    def aim(self, seen: DirectionEvidence) -> tuple[FloatArray, FloatArray]:
        """From the first camera."""
        return AHEAD, find_middle(seen.a)

    def value(self, seen: DirectionEvidence) -> FloatArray:
        """Minus how far each spot is from the object, over the side of the plan."""
        assert isinstance(seen, MapEvidence)
        place_px = find_middle(seen.a) @ seen.px_from_camera[:, :3].T + seen.px_from_camera[:, 3]
        return np.asarray(-np.linalg.norm(place_px[..., None, :] - seen.spots_px, axis=-1) / SIDE_PX)

    def pictures(self, fact: Fact) -> tuple[Picture, ...]:
        """The frames, then the plan."""
        seen = MapEvidence.of(fact.truth_candidate)
        ahead = seen.px_from_camera[:, :3] @ (AHEAD - seen.up * (seen.up @ AHEAD))
        along = ahead / np.linalg.norm(ahead)
        arrow = ARROW_PX @ np.array([[-along[1], along[0]], -along]) + seen.px_from_camera[:, 3]
        polygons = [arrow, *(_SPOT + seen.spots_px[:, None])]
        drawn = {"op": "plan", "size": [SIDE_PX, SIDE_PX], "colors": list(MARK_COLORS)}
        drawn["polygons"] = [np.rint(one).astype(int).tolist() for one in polygons]
        return (*super().pictures(fact), Picture(fact.pictures[fact.frame_ids[0]], (drawn,)))

    def slots(self, fact: Fact) -> dict[str, str]:
        """Also which objects the four are."""
        *before, last = (f"the {name}" for name in MapEvidence.of(fact.truth_candidate).names)
        joined = fill_word("list.and", before=fill_word("list.separator").join(before), last=last)
        return super().slots(fact) | {"names": joined}

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also how far the object is, and where each spot is from the arrow."""
        seen, said = self.restore(fact, pen), []
        spots_m = (seen.spots_px - seen.px_from_camera[:, 3]) @ np.linalg.pinv(seen.px_from_camera[:, :3]).T
        for label, spot_m in zip(self.labels, spots_m, strict=True):
            at = pen.tell_sides(*pen.face(AHEAD, seen.up, spot_m))["bearing"]
            far = pen.say("m", float(np.linalg.norm(spot_m)), 1)
            said.append(pen.word("list.spot", name=pen.word(f"color.{label}"), at=at, far=far))
        far = pen.say("m", float(np.hypot(*pen.face(AHEAD, seen.up, find_middle(seen.a)))), 1)
        return super().explain(fact, pen) | {"far": far, "spots": pen.join(said)}

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """As for all directions, and the object's name below its spot."""
        *marks, _ = super().overlay(fact, row)
        seen = MapEvidence.of(fact.truth_candidate)
        u, v = seen.spots_px[int(fact.truth_candidate.value[0])].tolist()
        return [*marks, [Mark("rect", ((u - 12, v - 12), (u + 12, v + 12)), seen.a.label)]]


def is_level(view: SceneView, row: int) -> bool:
    """Whether a camera looks ahead rather than up or down, so that an arrow can say where it looks."""
    return bool(abs(view.frames[row].world_from_camera[:3, 2] @ np.asarray(view.up_world)) <= STEEPEST)
