"""Standing at one object and facing another, in which quarter a third one is. Several frames show the three."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import FloatArray, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.directions import DirectionEvidence, DirectionTask, find_middle
from vgbench_gen.tasks.kind import Measured

DRAWS, TRIPLES = 60, 8  # of frames, and of objects in each


@tasks.register("relative_direction")
class RelativeDirection(DirectionTask):
    """See the module."""

    name = "relative_direction"
    category, subcategory = "Direction", "Relative Direction"
    asked = "where an object is for someone who stands at another and faces a third"
    convention: ClassVar = {"direction": "between centres of 3D bounding boxes, on the floor", "front": "45 deg about"}

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Three objects that some frames show, in any order."""
        for rows in self.draw_frames(view, rng, DRAWS, linked=True):
            unique = self.list_unique(view, rows)
            if len(unique) < 3:
                yield reject(self, view, "+".join(map(str, rows)), "names_too_few", len(unique), 3)
                continue
            for _ in range(TRIPLES):
                one = self.measure(view, rows, rng.choice(unique, 3, replace=False).tolist())
                if one is not None:
                    yield one

    def aim(self, seen: DirectionEvidence) -> tuple[FloatArray, FloatArray]:
        """From the first object to the second, and to the third."""
        stand = find_middle(seen.a)
        return find_middle(seen.b) - stand, find_middle(seen.c) - stand
