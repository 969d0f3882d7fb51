"""Two images, four matrices: which homography turned the first image into the second (`x2 ~ H x1`, pixels)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _overlays
from vgbench_gen.tasks._homographies import HomographyTask, warped_picture
from vgbench_gen.tasks.base import Mark, Presentation, camera_slots, tasks
from vgbench_gen.text import numbers
from vgbench_gen.text.render import word


@tasks.register("homography_to_matrix")
class HomographyToMatrix(HomographyTask):
    """See the module."""

    name = "homography_to_matrix"
    category_origin: ClassVar[Mapping[str, str]] = {"multi-choice": "homography_image_to_matrix_vqa"}

    def printed(self, value: FloatArray) -> str:
        """One row per line."""
        return word("option.matrix", matrix=numbers.matrix(value, numbers.significant))

    def overlay(self, evidence: Mapping[str, Any]) -> list[list[Mark]]:
        """A grid of the source, and where the true matrix puts it."""
        return list(_overlays.warped_grid(np.array(evidence["truth"]["value"]), tuple(evidence["fact"]["size"])))

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """The source, then the source as the truth warps it."""
        camera = fact.cameras[fact.frame_ids[0]]
        base = fact.pictures[fact.frame_ids[0]]
        warped = warped_picture(base, fact.truth_candidate, (camera["width"], camera["height"]))
        texts = tuple(self.printed(option.value) for option in options.options)
        return Presentation((Picture(base), warped), camera_slots(camera, intrinsics=False), texts)
