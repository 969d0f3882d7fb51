"""An image and a matrix: which of four images is the first one warped by it (`x2 ~ H x1`, pixels)."""

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


@tasks.register("homography_to_image")
class HomographyToImage(HomographyTask):
    """See the module."""

    name = "homography_to_image"
    category_origin: ClassVar[Mapping[str, str]] = {"multi-choice": "homography_matrix_to_image_vqa"}

    def printed(self, value: FloatArray) -> str:
        """As it stands in the question, one row per line; the options are images."""
        return numbers.matrix(value, numbers.significant)

    def overlay(self, evidence: Mapping[str, Any]) -> list[list[Mark]]:
        """A grid of the source, and where the true matrix puts it."""
        truth = evidence["truth"]
        source, target = _overlays.warped_grid(np.array(truth["value"]), tuple(evidence["fact"]["size"]))
        return [source, *(target if option["key"] == truth["key"] else [] for option in evidence["options"])]

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """The source, then one warp per option."""
        camera = fact.cameras[fact.frame_ids[0]]
        base, size = fact.pictures[fact.frame_ids[0]], (camera["width"], camera["height"])
        shown = (Picture(base), *(warped_picture(base, option, size) for option in options.options))
        texts = tuple(word("option.image", n=str(place + 2)) for place in range(len(options.options)))
        slots = {"matrix": self.printed(fact.truth_candidate.value)} | camera_slots(camera, intrinsics=False)
        return Presentation(shown, slots, texts)
