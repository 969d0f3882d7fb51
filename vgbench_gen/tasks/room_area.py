"""How large the floor of the room is that the frames show, in square meters, with what stands on it. Truth: the outline
along the walls. Second route: what the frames look over, and what stands there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.geometry.floors import measure_area_m2
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._floor_sights import find_corners, measure_overlooked_m2
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.evidence import ArrayShape, Evidence
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.scalar import ScalarTask
from vgbench_gen.tasks.seen import LabelledScene

DRAWS = 60  # of frames
FRAMES_MIN = 8  # of a question
MISSES_MAX = 12  # draws without a closed room, after which a scene is taken to have none


class FloorEvidence(Evidence):
    """What is kept of a floor."""

    corners_m: Annotated[FloatArray, ArrayShape(-1, 3)]
    """(N, 3) of its outline, in order, in the world of the scan, meters."""


@tasks.register("room_area")
class RoomArea(LabelledScene, ScalarTask):
    """See the module."""

    name, unit, decimals = "room_area", "m2", 1
    category, subcategory = "Size", "Absolute"
    asked = "floor area of the room that several images show, square meters"
    convention: ClassVar = {"area": "floor between walls, furniture included", "unit": "m2"}
    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice", "open-ended")
    candidate_evidence = FloorEvidence
    margins: ClassVar = {"min": 4.0, "max": 100.0, "ratio_min": 1.35, "ratio_max": 3.0} | {
        "closed": 0.9,
        "sure": 0.95,
        "agree": 1.05,
    }
    needs_gravity, options_max, candidate_draws = True, 4, 40

    def unit_key(self, fact: Fact) -> str:
        """Square meters."""
        return "square_meters"

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Frames that show the walls all around."""
        kept, drawn = 0, sorted(self.draw_frames(view, rng, DRAWS, linked=True), key=len, reverse=True)
        for misses, rows in enumerate(rows for rows in drawn if len(rows) >= FRAMES_MIN):
            if misses - kept == MISSES_MAX:
                return
            frames = tuple(view.frames[row] for row in rows)
            try:
                corners_m, closed, sure = find_corners(view, rows)
            except GeometryError as error:
                yield reject(self, view, frames[0].id, "outline", 0, 1, str(error))
                continue
            ratios = {"closed": closed / self.limits.closed, "sure": sure / self.limits.sure}
            if min(ratios.values()) >= 1:
                areas = [measure_area_m2(corners_m), *measure_overlooked_m2(view, rows)]
                ratios["agree"] = float(self.limits.agree * min(areas) / max(areas))
            yield Measured(frames, FloorEvidence(corners_m=corners_m), {}, ratios, "room", key="room")
            kept += min(ratios.values()) >= 1
            if kept == self.uses_max:
                return

    def look_alike(self, one: Measured, other: Measured) -> bool:
        """Whether two places show the same frames."""
        return one.frames == other.frames

    def value(self, seen: FloorEvidence) -> FloatArray:
        """By the shoelace formula."""
        return measure_area_m2(seen.corners_m)

    def second(self, view: SceneView, measured: Measured) -> float:
        """The mean over the grids."""
        return float(measure_overlooked_m2(view, self.find_places(view, measured.frames)).mean())

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also how long and wide the floor is, and by how much a rectangle of these sides is larger."""
        long, wide, area = pen.measure_floor(FloorEvidence.of(fact.truth_candidate).corners_m)
        true, whole = (float(self.rounded(np.array([x]))[0]) for x in (area, long * wide))
        digits = pen.find_decimals("m", [long, wide], np.prod, whole, 0.1)
        told = self.tell_value(area, fact, pen) | {"case": "any" if whole == true else "recess"}
        told |= {"long": pen.say("m", long, digits), "wide": pen.say("m", wide, digits)}
        return told | {"whole": pen.say("square_meters", whole), "missing": pen.say("square_meters", whole - true)}

    def disturb(self, seen: Any, noise: SensorNoise, rng: np.random.Generator, n: int) -> Any:
        """Corners as (n, N, 3): walls are off as boxes are, and the scale as the focal length is."""
        moved = seen.corners_m + rng.normal(0.0, noise.box_m, (n, *seen.corners_m.shape))
        middle, scale = moved.mean(axis=1, keepdims=True), 1 + rng.normal(0.0, noise.focal, (n, 1, 1))
        return seen.model_copy(update={"corners_m": middle + scale * (moved - middle)})

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 1) the logarithm of the area: rooms of one source are much alike."""
        return np.log([option.value for option in options])
