"""Two images, four matrices: which homography turned the first image into the second (`x2 ~ H x1`, pixels).

The partner of a question goes back: it shows the two images in the other order, and its matrices are the inverses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.geometry import homography
from vgbench_gen.tasks import _overlays
from vgbench_gen.tasks._homographies.evidence import WarpedImageEvidence, WarpEvidence
from vgbench_gen.tasks._homographies.sampler import find_warp_problem, round_as_printed
from vgbench_gen.tasks._homographies.solver import make_border_rule, make_homography_solvers, pair_matrices
from vgbench_gen.tasks._homographies.task import AGREEMENT_PX, HomographyTask
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.presentation import Mark, Presentation
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence


@tasks.register("homography_to_matrix")
class HomographyToMatrix(HomographyTask):
    """See the module.

    A candidate of a partner also shows `source_H`, the printed matrix whose inverse its value is; its evidence stays
    that of `source_H`.
    """

    needs_meters = False
    name = "homography_to_matrix"
    version = 4
    strategy = "factorial"
    counterpart_kind = "inverse"
    solvers = make_homography_solvers(pair_matrices)
    image_rules = (make_border_rule(pair_matrices),)
    category_origin: ClassVar[Mapping[str, str]] = {"multi-choice": "homography_image_to_matrix_vqa"}

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The matrix."""
        seen = self.reveal_warp(fact, fact.truth_candidate.value)
        return super().reveal(fact, row).with_fields(homographies=[seen])

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """A grid of the source, and where the true matrix puts it."""
        return list(_overlays.draw_warped_grid(fact.truth_candidate.value, WarpedImageEvidence.of(fact).size))

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """The crop, then what the truth makes of it; a partner the other way round."""
        show = fact.truth_candidate.show
        shown = self.make_crop(fact), self.make_warp(fact, show.get("source_H", show["H"]))
        texts = tuple(self.print_option(option, fact) for option in options.options)
        return Presentation(shown[::-1] if "source_H" in show else shown, self.make_size_slots(fact), texts)

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """Passes the gates of the sampler. A printed inverse is judged by the warp that it undoes, and must undo it to
        within half a pixel."""
        if "source_H" not in candidate.show:
            return super().valid(candidate, fact)
        image, H = WarpedImageEvidence.of(fact), candidate.value
        if H.shape != (3, 3) or not np.isfinite(H).all() or H[2, 2] != 1:
            return False
        sampled = np.array(candidate.show["source_H"], dtype=np.float64).reshape(3, 3)
        if find_warp_problem(sampled, image, self.limits)[0]:
            return False
        return _measure_rounding_px(H, sampled, *image.size) <= AGREEMENT_PX

    def recompute(self, fact: Fact) -> FloatArray:
        """The matrix through the four stored corners, or back from there to the corners of the image."""
        truth = fact.truth_candidate
        if "source_H" not in truth.show:
            return super().recompute(fact)
        corners_px = homography.image_corners(*WarpedImageEvidence.of(fact).size)
        return self.rounded(homography.fit_to_points(WarpEvidence.of(truth).corners_px, corners_px))

    def counterpart(self, fact: Fact) -> Fact | None:
        """From the warped image back to the first; None where an inverse has no H33 = 1."""
        try:
            candidates = tuple(_invert_candidate(candidate) for candidate in fact.candidates)
            second = homography.normalise_homography(np.linalg.inv(homography.normalise_homography(fact.second_value)))
        except GeometryError:
            return None
        return replace(fact, candidates=candidates, second_value=second)


def _measure_rounding_px(H: FloatArray, sampled: FloatArray, width: int, height: int) -> float:
    """How far the rounding of a printed inverse puts a corner from its place, there or back, pixels."""
    home, away = homography.image_corners(width, height), homography.move_corners(sampled, width, height)
    off = np.concatenate([homography.apply(H, away) - home, homography.apply(np.linalg.inv(H), home) - away])
    furthest = float(np.hypot(off[:, 0], off[:, 1]).max())
    return furthest if np.isfinite(furthest) else float("inf")


def _invert_candidate(candidate: Candidate) -> Candidate:
    if "source_H" in candidate.show:
        entries = list(candidate.show["source_H"])
        return replace(candidate, value=np.array(entries, dtype=np.float64).reshape(3, 3), show={"H": entries})
    H = round_as_printed(
        homography.normalise_homography(np.linalg.inv(homography.normalise_homography(candidate.value)))
    )
    show = {"H": H.ravel().tolist(), "source_H": candidate.value.ravel().tolist()}
    return replace(candidate, value=H, show=show)
