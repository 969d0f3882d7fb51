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
from vgbench_gen.tasks._homographies.solver import make_border_rule, make_homography_solvers, pair_images
from vgbench_gen.tasks._homographies.task import (
    HomographyTask,
    find_warp_problem,
    move_corners,
    round_as_printed,
)
from vgbench_gen.tasks.base import add_margins, tasks
from vgbench_gen.tasks.mirroring import make_picture, mirror_fact
from vgbench_gen.tasks.presentation import Mark, Presentation
from vgbench_gen.tasks.records import make_camera_slots
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

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """A grid of the source, and where the true matrix puts it."""
        truth = fact.truth_candidate
        source, target = _overlays.draw_warped_grid(truth.value, WarpedImageEvidence.of(fact).size)
        return [source, *(target if option is truth else [] for option in fact.candidates)]

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """The source, then one warp per option."""
        camera = fact.cameras[fact.frame_ids[0]]
        size = [camera["width"], camera["height"]]
        warps = ({"op": "warp", "H": list(option.show["H"]), "size": size} for option in options.options)
        shown = tuple(make_picture(fact, fact.frame_ids[0], *ops) for ops in ((), *((warp,) for warp in warps)))
        texts = tuple(fill_word("option.image", n=str(place + 2)) for place in range(len(options.options)))
        slots = {"matrix": self.printed(fact.truth_candidate.value)} | make_camera_slots(camera, intrinsics=False)
        return Presentation(shown, slots, texts)

    def counterpart(self, fact: Fact) -> Fact | None:
        """All images mirrored: H' = F H F, and with it the numbers of the matrix."""
        width, height = WarpedImageEvidence.of(fact).size
        try:
            second = mirror.mirror_homography(fact.second_value, width, width)
        except GeometryError:
            return None
        mirrored = mirror_fact(self, fact, lambda member: self._mirror_candidate(member, width, height), second)
        if mirrored is None:
            return None
        # Denominators count from the top-left pixel, which is another one now.
        truth = WarpEvidence.given(mirrored.truth_candidate)
        margins = {**WarpedImageEvidence.of(fact).margins, **(truth.margins if truth else {})}
        return add_margins(mirrored, fact.key, margins)

    def _mirror_candidate(self, member: Candidate, width: int, height: int) -> Candidate:
        # Rounded each time, so the way back is remembered rather than computed.
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
            margins={**stored.margins, **find_warp_problem(H, width, height, self.limits)[1]},
        )
        return replace(member, value=H, show=show, evidence=evidence.write())
