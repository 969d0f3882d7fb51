"""Where one of two objects is from the other, as the first camera looks: beyond it or this side of it, and to the left
or right. The first image shows one of them, the last one the other, none shows both; either is asked from the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import FloatArray, Rejected
from vgbench_gen.geometry import poses
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._sightings import get_sightings
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.directions import (
    AHEAD,
    DirectionEvidence,
    DirectionTask,
    draw_spans,
    find_middle,
    is_farther_both_ways,
)
from vgbench_gen.tasks.kind import Measured


@tasks.register("relation_across_views")
class RelationAcrossViews(DirectionTask):
    """See the module."""

    name = "relation_across_views"
    category, subcategory = "Direction", "Object-Object"
    asked = "where one of two objects that no image shows together is from the other"
    convention: ClassVar = {"direction": "between centres of 3D bounding boxes, on the floor", "front": "image 1"}

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Two objects that never stand in one image."""
        for row in draw_spans(view, self.list_rows(view), rng):
            first, last = view.frames[row[0]], view.frames[row[-1]]
            motion = poses.relative_pose(first.world_from_camera, last.world_from_camera)
            unique = set(self.list_unique(view, row))
            here, there = (sorted(unique & set(self.list_unique(view, [end]))) for end in (row[0], row[-1]))
            found = get_sightings(view)
            for a, b in ((a, b) for a in here for b in there):
                if (found.hidden[row, a] | found.hidden[row, b]).all():
                    one = self.measure(view, row, rng.permutation([a, b]).tolist(), motion=motion)
                    if one is not None and is_farther_both_ways(one.evidence):
                        yield one

    def aim(self, seen: DirectionEvidence) -> tuple[FloatArray, FloatArray]:
        """Along the viewing axis of the first camera, and from the first object to the second."""
        return AHEAD, find_middle(seen.b) - find_middle(seen.a)
