"""In which quarter an object is for the camera once it has walked ahead and turned, as the question says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray, Rejected
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.directions import AHEAD, DirectionEvidence, DirectionTask, find_middle, measure_free_m
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.text.numbers import format_fixed
from vgbench_gen.text.render import fill_word

TURNS_DEG = (-135.0, -90.0, -45.0, 45.0, 90.0, 135.0, 180.0)  # to the right
WALKS_M = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
DRAWS = 300  # of frames
FREE_M = 0.3  # between the way and anything that stands there
BODY_M = (-0.9, 0.2)  # heights above the camera between which a walker needs room


@tasks.register("imagined_move")
class ImaginedMove(DirectionTask):
    """See the module."""

    name = "imagined_move"
    category, subcategory = "Direction", "Imagined Move"
    asked = "where an object is after an imagined walk ahead and a turn"
    convention: ClassVar = {"walk": "level, along the viewing axis", "turn": "about the vertical, after the walk"}

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Objects that some frames show and free ways from the first; each quarter is as frequent for every turn."""
        for rows in self.draw_frames(view, rng, DRAWS, linked=True):
            start = [int(rng.choice(rows))]
            shown = start + [row for row in rows if row not in start]
            free_m = self._find_free_m(view, view.frames[start[0]])
            for index in self.list_unique(view, rows):
                walk_m, turn_deg = (float(rng.choice(some)) for some in (WALKS_M, TURNS_DEG))
                if walk_m > free_m:
                    continue
                found = self.measure(view, shown, [index], f"{turn_deg:.0f}", turn_deg=turn_deg, walk_m=walk_m)
                if found is not None:
                    yield replace(found, key=f"{found.key}/{walk_m}/{turn_deg:.0f}")

    def _find_free_m(self, view: SceneView, frame: ViewFrame) -> float:
        """How far ahead of a camera, on its level, nothing stands that was scanned."""
        clouds = [item.points_m[::8] for item in (*view.objects, *view.building) if item.points_m is not None]
        up, away = np.asarray(view.up_world), frame.world_from_camera[:3, 2]
        level = away - up * (up @ away)
        ahead = level / np.linalg.norm(level)
        return measure_free_m(np.concatenate(clouds), frame.center_m, ahead, up, FREE_M, BODY_M) - FREE_M

    def aim(self, seen: DirectionEvidence) -> tuple[FloatArray, FloatArray]:
        """After the turn, and from the end of the walk."""
        assert seen.turn_deg is not None
        assert seen.walk_m is not None
        level = AHEAD - seen.up * (seen.up @ AHEAD)
        level = level / np.linalg.norm(level)
        angle = np.radians(seen.turn_deg)
        turned = np.cos(angle) * level + np.sin(angle) * np.cross(level, seen.up)
        return turned, find_middle(seen.a) - seen.walk_m * level

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also where the object is before the walk, and after it."""
        seen = self.restore(fact, pen)
        right, ahead = pen.face(AHEAD, seen.up, find_middle(seen.a))
        told = pen.tell_sides(right, ahead, "start_") | pen.tell_sides(right, ahead - seen.walk_m, "walked_")
        return super().explain(fact, pen) | told

    def slots(self, fact: Fact) -> dict[str, str]:
        """Also the walk and the turn."""
        seen = DirectionEvidence.of(fact.truth_candidate)
        assert seen.turn_deg is not None
        assert seen.walk_m is not None
        side = "around" if seen.turn_deg == 180 else "right" if seen.turn_deg > 0 else "left"
        turn = fill_word(f"about_turn.{side}", **({} if side == "around" else {"value": f"{abs(seen.turn_deg):.0f}"}))
        return super().slots(fact) | {"walk": format_fixed(seen.walk_m, 1), "turn": turn}
