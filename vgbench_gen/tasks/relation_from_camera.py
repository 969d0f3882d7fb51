"""Where one object of an image is from another, as the camera looks: beyond it or this side of it, and to the left or
right. What stands higher in the image is the nearer one as often as the farther one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import FloatArray, QuestionType, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.directions import AHEAD, DirectionEvidence, DirectionTask, find_middle, is_farther_both_ways
from vgbench_gen.tasks.kind import Measured


@tasks.register("relation_from_camera")
class RelationFromCamera(DirectionTask):
    """See the module."""

    name = "relation_from_camera"
    category, subcategory = "Object Localization", "Spatial Position"
    input_modality = "single-image"
    asked = "where one object of an image is from another, as the camera looks"
    convention: ClassVar = {"direction": "between centres of 3D bounding boxes, on the floor", "front": "image 1"}
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Two objects of one frame, in both orders."""
        rows = self.list_rows(view)
        for row in (rows[k] for k in rng.permutation(len(rows))):
            unique = self.list_unique(view, [row])
            for a, b in ((a, b) for a in unique for b in unique if a != b):
                found = self.measure(view, [row], [a, b])
                if found is not None and is_farther_both_ways(found.evidence):
                    seen = found.evidence
                    rises = [find_middle(one)[1] / find_middle(one)[2] for one in (seen.a, seen.b)]
                    yield replace(found, group="higher" if rises[1] < rises[0] else "lower")

    def aim(self, seen: DirectionEvidence) -> tuple[FloatArray, FloatArray]:
        """Along the viewing axis, and from the first object to the second."""
        return AHEAD, find_middle(seen.b) - find_middle(seen.a)
