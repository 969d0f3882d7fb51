"""In which quarter around the camera of the last image an object is that this image does not show: images in a row,
each of which sees part of what the one before saw, lead from the object there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import FloatArray, Rejected
from vgbench_gen.geometry import poses
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.directions import DirectionEvidence, DirectionTask, draw_spans, find_middle, is_unshown
from vgbench_gen.tasks.kind import Measured


@tasks.register("object_from_camera")
class ObjectFromCamera(DirectionTask):
    """See the module."""

    name = "object_from_camera"
    category, subcategory = "Direction", "Camera-Object"
    asked = "where an object of the first image is from the camera of the last one"
    convention: ClassVar = {
        "direction": "from the last camera, on the floor",
        "front": "its viewing axis",
    }

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Frames in a row, in one of both orders."""
        for row in draw_spans(view, self.list_rows(view), rng):
            first, last = view.frames[row[0]], view.frames[row[-1]]
            motion = poses.relative_pose(first.world_from_camera, last.world_from_camera)
            for index in set(self.list_unique(view, row)) & set(self.list_unique(view, row[:1])):
                if is_unshown(view, last, index):
                    found = self.measure(view, row, [index], motion=motion)
                    if found is not None:
                        yield found

    def aim(self, seen: DirectionEvidence) -> tuple[FloatArray, FloatArray]:
        """In the frame of the first camera: along the viewing axis of the last one, and from its centre."""
        assert seen.motion is not None
        R, t = seen.motion[..., :3, :3], seen.motion[..., :3, 3]
        centre_m = -(np.swapaxes(R, -1, -2) @ t[..., None])[..., 0]
        return R[..., 2, :], find_middle(seen.a) - centre_m
