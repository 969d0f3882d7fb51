"""In which order three framed regions lie from near to far, by their median depths.

Lower regions and larger ones tend to be nearer: the order from the foot of the image upwards is right as often as every
other one, and so is, where an image has the choice, the order from the largest to the smallest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import ClassVar

import cv2
import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Fact, FloatArray, IntArray, Rejected
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks import _balance
from vgbench_gen.tasks._regions import (
    Region,
    RegionEvidence,
    disturb_region,
    find_frame_regions,
    find_region_problems,
    measure_cloud_medians_m,
    reveal_region,
)
from vgbench_gen.tasks.base import Problems, reject, tasks
from vgbench_gen.tasks.evidence import Evidence
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import MARK_COLORS, Measured, check_kind
from vgbench_gen.tasks.label import LabelTask
from vgbench_gen.tasks.marks import cut_grey
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.solving import NoSolver

ORDERS: IntArray = np.array(list(permutations(range(3))))  # (6, 3) of the marks, the nearest first
FRAMES_WEIGHED = 32  # frames weighed together; more cost memory, fewer have not every order
STEP_M, STEP_SHARE = 0.15, 0.10  # a step from one depth to the next is counted in the larger one of both


class RegionsEvidence(Evidence):
    """What is kept of three regions."""

    a: RegionEvidence
    b: RegionEvidence
    c: RegionEvidence


def rate_orders(depths_m: FloatArray) -> FloatArray:
    """(..., 6) half of the smaller step of each of `ORDERS`, negative where one leads back; depths_m: (..., 3)."""
    ordered_m = depths_m[..., ORDERS]
    unit_m = np.maximum(STEP_M, STEP_SHARE * np.minimum(ordered_m[..., 1:], ordered_m[..., :-1]))
    return np.asarray((np.diff(ordered_m, axis=-1) / unit_m).min(axis=-1) / 2)


def check_depths(fact: Fact, gates: Gates) -> Problems:
    """The stored statistics of each region agree."""
    stored = RegionsEvidence.of(fact.truth_candidate)
    return [problem for name, one in stored for problem in find_region_problems(name, one, gates)]


def _rate_looks(frame: ViewFrame, rects: IntArray) -> FloatArray:
    """(5, n) how low regions lie, how large they are, how far from the middle, how bright and how finely structured:
    near ones are more of all, as a rule."""
    middle_px = (rects[:, :2] + rects[:, 2:] - np.array(frame.camera.size) + 1) / 2
    grey = [cut_grey(frame, rect) for rect in rects.tolist()]
    detail = [float(np.abs(cv2.Laplacian(one, cv2.CV_64F, ksize=3)).mean()) for one in grey]
    area, off = (rects[:, 2:] - rects[:, :2] + 1).prod(axis=1), np.linalg.norm(middle_px, axis=1)
    return np.array([middle_px[:, 1], area, off, [one.mean() for one in grey], detail])


def weigh(looks: Sequence[IntArray]) -> Iterator[tuple[int, FloatArray]]:
    """(place of a frame, (S,) weights of its sets) under which orders (S, 4) by looks are alike often in all frames."""
    held = [n for n, one in enumerate(looks) if len(one)]
    differs = [
        (looks[n][:, :, None] == np.arange(len(ORDERS))).reshape(len(looks[n]), -1) - 1 / len(ORDERS) for n in held
    ]
    return zip(held, _balance.weights(differs, np.ones(0)), strict=True)


@tasks.register("depth_order")
class DepthOrder(LabelTask):
    """See the module."""

    name, by_default = "depth_order", False
    category, subcategory = "Depth and Distance", "Relative"
    asked = "the order of three regions from near to far"
    formats = ("multi-choice",)
    convention: ClassVar = {"depth": "z", "axes": "opencv", "statistic": "median"}
    labels = tuple("_".join(MARK_COLORS[k] for k in order) for order in ORDERS.tolist())
    margins: ClassVar = {"gap_min": 1.0}  # steps
    candidate_evidence = RegionsEvidence
    checks = (check_kind, check_depths)
    solvers = NoSolver("Classical vision has no depth from one image without learning.")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Of each frame one set of regions for every order of depths that it has from the foot of the image upwards,
        drawn so that among those of many frames the order by each other look is as often one as another.

        In all sets of a scene colors are the same from the foot upwards: rounds of labels are rounds of such orders.
        """
        colors = rng.permutation(3).tolist()
        guess = "_".join(MARK_COLORS[k] for k in colors)
        frames = view.distinct_frames(rng)
        for start in range(0, len(frames), FRAMES_WEIGHED):
            batch = [(frame, *self._find_sets(frame, view)) for frame in frames[start : start + FRAMES_WEIGHED]]
            weight = {
                (n, order): found
                for order in range(len(ORDERS))
                for n, found in weigh([looks[looks[:, 0] == order, 1:] for _, _, _, looks in batch])
            }
            for n, (frame, found, sets, looks) in enumerate(batch):
                if not len(sets):
                    yield reject(
                        self, view, frame.id, *(("decided", 0, 1) if found[2:] else ("regions_too_few", len(found), 3))
                    )
                for order in rng.permutation(np.unique(looks[:, 0])).tolist():
                    row = rng.choice(np.flatnonzero(looks[:, 0] == order), p=weight[n, order])
                    chosen = [found[k] for k in sets[row][ORDERS[order]]]  # from the foot upwards
                    named = dict(sorted(("abc"[colors[k]], one) for k, one in enumerate(chosen)))
                    yield Measured(
                        (frame,),
                        RegionsEvidence(**{name: one.evidence() for name, one in named.items()}),
                        {name: list(one.rect_px) for name, one in named.items()},
                        point_m=np.mean([one.point_m for one in chosen], axis=0),
                        guess=guess,
                    )

    def _find_sets(self, frame: ViewFrame, view: SceneView) -> tuple[list[Region], IntArray, IntArray]:
        """(regions, (S, 3) sets of them that are decided, the nearest first, (S, 5) places in `ORDERS` of the orders
        that depths have from the foot of the image upwards and from the region with most of a look to the least)."""
        found = sorted(find_frame_regions(frame, view)[0], key=lambda one: one.median_m)
        sets = np.array(list(combinations(range(len(found)), 3)), dtype=np.int64).reshape(-1, 3)
        low_m, middle_m, high_m = np.array([one.quantiles_m[[1, 3, 5]] for one in found]).reshape(-1, 3).T
        decided = 2 * rate_orders(middle_m[sets])[:, 0] >= self.limits.gap_min
        sets = sets[decided & (low_m[sets[:, 1:]] > high_m[sets[:, :-1]]).all(axis=1)]
        looks = _rate_looks(frame, np.array([one.rect_px for one in found]).reshape(-1, 4))[:, sets]
        orders = np.argsort(-looks, axis=2, kind="stable")
        return found, sets, np.asarray((orders[:, :, None] == ORDERS).all(axis=3).argmax(axis=2).T)

    def value(self, seen: RegionsEvidence) -> FloatArray:
        """By the stored medians."""
        return rate_orders(np.stack([one.quantiles_m[..., 3] for _, one in seen], axis=-1))

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By medians of the projected cloud."""
        depths_m = measure_cloud_medians_m(measured.frames[0], [list(rect) for rect in measured.marks.values()])
        if not np.isfinite(depths_m).all():
            raise GeometryError(f"a region of {dict(measured.marks)} has no point of the cloud")
        return rate_orders(depths_m)

    def disturb(self, seen: RegionsEvidence, noise: SensorNoise, rng: np.random.Generator, n: int) -> RegionsEvidence:
        """Each region with an error of its own."""
        return seen.model_copy(update={name: disturb_region(one, noise, rng, n) for name, one in seen})

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """The median depth of each region."""
        seen, shown = RegionsEvidence.of(fact.truth_candidate), fact.truth_candidate.show
        names = {tuple(map(int, rect)): name for name, rect in pen.row.locate_marks().items()}
        return pen.tell_each("m", [(names[tuple(shown[name])], float(one.quantiles_m[3])) for name, one in seen])

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The depths of the regions."""
        seen, shown = RegionsEvidence.of(fact.truth_candidate), fact.truth_candidate.show
        regions = [reveal_region(one, shown[name], (1 + STEP_SHARE) ** 0.5) for name, one in seen]
        return super().reveal(fact, row).with_fields(regions=regions)
