"""An image and a matrix: which of four images is the first one warped by it (`x2 ~ H x1`, pixels)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import Fact
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.tasks import _overlays
from vgbench_gen.tasks._homographies.evidence import WarpedImageEvidence
from vgbench_gen.tasks._homographies.solver import make_border_rule, make_homography_solvers, pair_images
from vgbench_gen.tasks._homographies.task import HomographyTask
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.presentation import Mark, Presentation, make_number_slots
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.solving.rules import MOST_SIMILAR_IMAGE
from vgbench_gen.text.render import fill_word


@tasks.register("homography_to_image")
class HomographyToImage(HomographyTask):
    """See the module."""

    needs_meters = False
    name = "homography_to_image"
    version = 3
    category_origin: ClassVar[Mapping[str, str]] = {"multi-choice": "homography_matrix_to_image_vqa"}
    solvers = make_homography_solvers(pair_images)
    image_rules = (*MOST_SIMILAR_IMAGE, make_border_rule(pair_images))

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The matrix of every warp that is shown."""
        seen = [self.reveal_warp(fact, option.value, place) for place, option in enumerate(fact.candidates, start=1)]
        return super().reveal(fact, row).with_fields(homographies=seen)

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """A grid of the source, and where the true matrix puts it."""
        truth = fact.truth_candidate
        source, target = _overlays.draw_warped_grid(truth.value, WarpedImageEvidence.of(fact).size)
        return [source, *(target if option is truth else [] for option in fact.candidates)]

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """The crop, then one warp per option."""
        warps = (self.make_warp(fact, option.show["H"]) for option in options.options)
        texts = tuple(fill_word("option.image", n=str(place + 2)) for place in range(len(options.options)))
        told = {"corners" if self.notation == "words" else "matrix": self.print_option(fact.truth_candidate, fact)}
        slots = told | self.make_size_slots(fact)
        return Presentation((self.make_crop(fact), *warps), slots | make_number_slots(len(texts)), texts)
