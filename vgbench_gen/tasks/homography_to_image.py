"""An image and a matrix: which of four images is the first one warped by it (`x2 ~ H x1`, pixels)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.geometry import mirror
from vgbench_gen.tasks import _overlays
from vgbench_gen.tasks._homographies.evidence import WarpedImageEvidence, WarpEvidence
from vgbench_gen.tasks._homographies.sampler import find_warp_problem, round_as_printed
from vgbench_gen.tasks._homographies.solver import make_border_rule, make_homography_solvers, pair_images
from vgbench_gen.tasks._homographies.task import HomographyTask, move_corners
from vgbench_gen.tasks.base import add_margins, tasks
from vgbench_gen.tasks.mirroring import mirror_fact
from vgbench_gen.tasks.presentation import Mark, Presentation, make_number_slots
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.solving.rules import MOST_SIMILAR_IMAGE
from vgbench_gen.text import numbers
from vgbench_gen.text.render import fill_word


@tasks.register("homography_to_image")
class HomographyToImage(HomographyTask):
    """See the module."""

    name = "homography_to_image"
    version = 2
    category_origin: ClassVar[Mapping[str, str]] = {"multi-choice": "homography_matrix_to_image_vqa"}
    counterpart_kind = "mirror"
    solvers = make_homography_solvers(pair_images)
    image_rules = (*MOST_SIMILAR_IMAGE, make_border_rule(pair_images))

    def printed(self, value: FloatArray) -> str:
        """As it stands in the question, one row per line; the options are images."""
        return numbers.format_matrix(value, numbers.format_significant)

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
        slots = {"matrix": self.printed(fact.truth_candidate.value)} | self.make_size_slots(fact)
        return Presentation((self.make_crop(fact), *warps), slots | make_number_slots(len(texts)), texts)

    def counterpart(self, fact: Fact) -> Fact | None:
        """All images mirrored: H' = F H F, and with it the numbers of the matrix."""
        turned = WarpedImageEvidence.of(fact).turned()
        try:
            second = mirror.mirror_homography(fact.second_value, turned.size[0], turned.size[0])
        except GeometryError:
            return None
        mirrored = mirror_fact(self, fact, lambda member: self._mirror_candidate(member, turned), second)
        if mirrored is None:
            return None
        # Denominators count from the top-left pixel, which is another one now.
        truth = WarpEvidence.given(mirrored.truth_candidate)
        return add_margins(mirrored, fact.key, {**turned.margins, **(truth.margins if truth else {})})

    def _mirror_candidate(self, member: Candidate, turned: WarpedImageEvidence) -> Candidate:
        # Rounded each time, so the way back is remembered rather than computed.
        width, height = turned.size
        source = member.show.get("mirror_of")
        if source is None:
            H = round_as_printed(mirror.mirror_homography(member.value, width, width))
            show = {"H": H.ravel().tolist(), "mirror_of": member.value.ravel().tolist()}
        else:
            H, show = np.array(source, dtype=np.float64).reshape(3, 3), {"H": list(source)}
        stored = WarpEvidence.given(member)
        if stored is None:
            return replace(member, value=H, show=show)
        evidence = WarpEvidence(
            components=stored.components.mirror(),
            corners_px=move_corners(H, width, height),
            margins={**stored.margins, **find_warp_problem(H, turned, self.limits)[1]},
        )
        return replace(member, value=H, show=show, evidence=evidence.write())
