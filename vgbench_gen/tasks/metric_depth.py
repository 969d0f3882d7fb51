"""How deep a marked region is, in meters.

Ground truth: mean z over the region, two decimals (VGBench, SpatialScore section D.2); the region gates make mean and
median agree.

The question prints where the region is, and what is low in an image is near. Depths of other regions of the image are
told apart by that, however evenly the truth ranks among them: the guess tells which of the four it is. So options and
false claims are depths of the *same rectangle* in other frames of the scene, through the same camera to a per cent.
Every word of the question fits all of them, and which frame is shown was drawn
(`docs/validity.md#exchangeable-by-construction`). Scans of a few frames hold no such sets; there they are depths of
other regions of the image.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import LETTERS, Candidate, Fact, FloatArray, IntArray, Rejected
from vgbench_gen.distractors.base import Proposal
from vgbench_gen.scenes.base import loaders
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks._objects import PER_FRAME, TARGETS_APART_M, order_in_strata
from vgbench_gen.tasks._proposals import make_range
from vgbench_gen.tasks._regions import (
    Region,
    RegionEvidence,
    are_seen_alike,
    check_regions,
    compute_blocks_mean_m,
    find_frame_regions,
    lie_on_one_surface,
    measure,
    measure_cloud_medians_m,
    measure_flat_means_m,
    propose_rects,
    reveal_region,
)
from vgbench_gen.tasks.base import add_margins, reject, tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.scalar import FALSE_RATIO_MIN, ScalarTask
from vgbench_gen.tasks.solving import NoSolver

SHARED_SHARE = 0.6  # of the facts of a scene, which can be asked in every form
SHARED_PROPOSALS = 8000  # rectangles; about one in a hundred is flat at four depths
FLAT_M = 0.02  # between the parts of a region of which all is equally deep
FRAMES_MIN = 12  # to find one rectangle in four of them, at four depths
FRAMES_PER_FACT = 1.5  # looked at, for strata to choose from; more cost time and bring few regions nearer or farther


@tasks.register("metric_depth")
class MetricDepth(ScalarTask):
    """See the module."""

    name, unit, version = "metric_depth", "m", 5
    category, subcategory = "Depth and Distance", "Absolute"
    convention: ClassVar[Mapping[str, str]] = {"depth": "z", "axes": "opencv", "unit": "m", "statistic": "mean"}
    margins: ClassVar[Mapping[str, float]] = {"ratio_min": 1.25, "ratio_max": 3.0, "gap_min": 0.15}
    options_from_pool = True
    options_max = 4  # few rectangles are flat at five depths that lie between the gates `ratio_min` and `ratio_max`
    candidate_evidence = RegionEvidence
    checks = (check_regions,)
    solvers = NoSolver("Classical vision has no metric depth from one image without learning; cues are reported.")
    paper_column = "Depth"

    def proposal(self, fact: Fact) -> Proposal:
        """Any depth that a region may have."""
        gates = self.gates.depth
        # Unless all depth is a laser's, regions beyond a sensor's reach are rare.
        laser_only = fact.dataset in loaders.names() and loaders[fact.dataset].laser_only
        far_m = gates.far_laser_m if laser_only else gates.far_sensor_m
        return make_range("depth", gates.near_m, far_m, self.decimals)

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """At most two facts per frame: first about rectangles that several frames share, or in a short scan about one
        of four regions of an image, the others about single regions, log-depth strata in turn.

        Single regions have no pool, so they have no options. Rooms hold little that is very near or far,
        and one constant would be right too often for regions drawn as they come.
        """
        frames = view.distinct_frames(rng)[: max(int(FRAMES_PER_FACT * limit), FRAMES_MIN)]
        used: dict[str, list[Region]] = defaultdict(list)
        short = len(frames) < FRAMES_MIN
        most = limit if short else max(int(SHARED_SHARE * limit), 1)
        made = 0
        for fact in (self._of_images if short else self._shared)(frames, view, used, rng):
            if made >= most:
                break
            made += 1
            yield fact
        found: list[tuple[ViewFrame, Region]] = []
        for frame in frames:
            regions, dropped = find_frame_regions(frame, view)
            if not regions:
                worst = max(dropped, key=lambda name: dropped[name])
                yield reject(self, view, frame.id, f"regions_{worst}", 0, 1, str(dropped))
            found += [(frame, region) for region in regions]
        for k in order_in_strata([region.mean_m for _, region in found], [frame.id for frame, _ in found], rng):
            if made >= limit:
                return
            frame, region = found[k]
            if _is_free(region, used[frame.id]):
                used[frame.id].append(region)
                made += 1
                yield self._fact(view, [(frame, region)], 0)

    def _of_images(
        self, frames: list[ViewFrame], view: SceneView, used: dict[str, list[Region]], rng: np.random.Generator
    ) -> Iterator[Fact]:
        """Facts of a scan too short for rectangles that frames share: candidates are regions of the same image; the
        asked ones are added to `used`."""
        for frame in frames:
            found, _ = find_frame_regions(frame, view)
            while len(found) >= len(LETTERS):
                seen = [(frame, region) for region in _spread_over_depth(found, self.pool_size, rng)]
                eligible = np.array([_is_free(region, used[frame.id]) for _, region in seen])
                drawn = self.with_drawn_truth(self._fact(view, seen, 0), rng, eligible)
                if drawn is None:
                    break
                used[frame.id].append(seen[drawn.truth][1])
                yield self._fact(view, seen, drawn.truth)

    def _shared(
        self, frames: list[ViewFrame], view: SceneView, used: dict[str, list[Region]], rng: np.random.Generator
    ) -> Iterator[Fact]:
        """Facts whose candidates are one rectangle in several frames; the asked ones are added to `used`."""
        alike: dict[tuple[float, ...], list[ViewFrame]] = {}
        for frame in frames:
            # Phones focus: a per cent of the focal length says nothing of the depth.
            camera = frame.camera
            alike.setdefault((*camera.size, *np.round(camera.K.ravel() / camera.width, 2)), []).append(frame)
        proposed: list[tuple[list[ViewFrame], IntArray, FloatArray]] = []
        for members in alike.values():
            if len(members) < len(LETTERS):
                continue
            rects = propose_rects(members[0], view, rng, SHARED_PROPOSALS)
            means_m = np.stack([measure_flat_means_m(frame, view, rects) for frame in members], axis=1)
            # Looked at closer only where that may give a set; most rectangles lie on one wall.
            rows = self._find_set_rows(means_m)
            rects, means_m = rects[rows], means_m[rows]
            for n, frame in enumerate(members):
                flat = np.flatnonzero(np.isfinite(means_m[:, n]))
                means_m[flat[~lie_on_one_surface(frame, view, rects[flat])], n] = np.nan
            for k in self._find_set_rows(means_m):
                held = np.flatnonzero(np.isfinite(means_m[k]))
                proposed.append(([members[n] for n in held], rects[k], means_m[k, held]))
        for k in rng.permutation(len(proposed)):
            members, rect, mean_m = proposed[k]
            drawn_members = rng.permutation(len(members))[: self.pool_size]
            free = [n for n in drawn_members if len(used[members[n].id]) < PER_FRAME]
            if not self._holds_set(mean_m[free]):
                continue
            measured = ((members[n], measure(members[n], view, rect)) for n in free)
            # What may not be asked about is no decoy either: near surfaces, seen close together, would be decoys only.
            seen = [(frame, r) for frame, r in measured if r is not None and _is_free(r, used[frame.id])]
            # Other frames are looked at last, which takes longest.
            if self._holds_set(np.array([region.mean_m for _, region in seen])):
                agreed = are_seen_alike(view, [(frame, region.rect_px) for frame, region in seen])
                seen = list(itertools.compress(seen, agreed))
            if len(seen) < len(LETTERS):
                continue
            drawn = self.with_drawn_truth(self._fact(view, seen, 0), rng)
            if drawn is not None:
                frame, region = seen[drawn.truth]
                used[frame.id].append(region)
                yield self._fact(view, seen, drawn.truth)

    def _find_set_rows(self, means_m: FloatArray) -> list[int]:
        """Places of the rows (R, F) that hold a set, without their NaN."""
        known = np.isfinite(means_m)
        low, high = (pick(np.where(known, means_m, end), axis=1) for pick, end in ((np.min, np.inf), (np.max, 0.0)))
        enough = known.sum(axis=1) >= len(LETTERS)
        rows = np.flatnonzero(enough & (high >= self.limits.ratio_min ** (len(LETTERS) - 1) * low)).tolist()
        return [k for k in rows if self._holds_set(means_m[k][np.isfinite(means_m[k])])]

    def _holds_set(self, depths_m: FloatArray) -> bool:
        """Whether four of these depths keep the margins, by taking each next one as soon as it is far enough."""
        gates, ordered = self.limits, np.sort(depths_m).tolist()
        for k, first in enumerate(ordered):
            last, count = first, 1
            for depth in ordered[k + 1 :]:
                if depth > gates.ratio_max * first:
                    break
                if depth >= gates.ratio_min * last and depth - last >= gates.gap_min:
                    last, count = depth, count + 1
            if count >= len(LETTERS):
                return True
        return False

    def _fact(self, view: SceneView, seen: list[tuple[ViewFrame, Region]], truth: int) -> Fact:
        pool = tuple(
            Candidate(
                f"region:{frame.id}:" + ",".join(map(str, region.rect_px)),
                self.rounded(np.array([region.mean_m])),
                show={"rect": list(region.rect_px)},
                evidence=region.evidence().write(),
            )
            for frame, region in seen
        )
        frame, region = seen[truth]
        fact = self.new_fact(view, pool, frame_ids=(frame.id,))
        fact = replace(fact, truth=truth, second_value=pool[truth].value)
        gates = view.gates.region
        low, quarter, median, three_quarters, high = region.quantiles_m[[0, 2, 3, 4, 6]]
        ratios = {
            "iqr": gates.iqr_of_median_max * median / max(three_quarters - quarter, 1e-6),
            "spread": gates.spread_of_median_max * median / max(high - low, 1e-6),
            "valid": region.valid / gates.valid_min,
        }
        return add_margins(fact, f"{frame.id}/region:" + ",".join(map(str, region.rect_px)), ratios)

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """Median of the projected point cloud in the region."""
        (frame,), rect = measured.frames, measured.marks["rect"]
        median = measure_cloud_medians_m(frame, [list(rect)])
        if not np.isfinite(median).all():
            raise GeometryError(f"{frame.id}: no point of the cloud projects into the region {rect}")
        return median

    def value(self, seen: RegionEvidence) -> float:
        """Weighted mean of the stored parts of the region."""
        return compute_blocks_mean_m(seen)

    def sigma(self, value: float, fact: Fact, noise: SensorNoise) -> float:
        """One error of depth for the whole region."""
        return noise.depth_sigma_m(value)

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The depth of the region."""
        truth = fact.truth_candidate
        seen = reveal_region(RegionEvidence.of(truth), truth.show["rect"], self.limits.ratio_min**0.5)
        return super().reveal(fact, row).with_fields(regions=[seen])

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        seen = RegionEvidence.of(fact.truth_candidate)
        parts = [mean_m for mean_m, count in seen.blocks if count]
        told = self.tell_value(seen.mean_m if pen.exact else compute_blocks_mean_m(seen), fact, pen)
        told |= {"near": pen.say("m", min(parts), 2), "far": pen.say("m", max(parts), 2)}
        return told | {"case": "flat" if max(parts) - min(parts) < FLAT_M else "any"}

    def draw_false_value(self, fact: Fact, rng: np.random.Generator) -> float | None:
        other, truth = super().draw_false_value(fact, rng), float(fact.truth_candidate.value[0])
        return None if other is None or max(other / truth, truth / other) < FALSE_RATIO_MIN else other


def _is_free(region: Region, used: list[Region]) -> bool:
    """Whether a region may be asked about beside those of its frame that are."""
    near = any(np.linalg.norm(region.point_m - other.point_m) < TARGETS_APART_M for other in used)
    return not near and len(used) < PER_FRAME


def _spread_over_depth(found: list[Region], count: int, rng: np.random.Generator) -> list[Region]:
    """A random choice in which depth strata take turns, so that a pool holds several sets of four."""
    order = rng.permutation(len(found))
    strata = [round(float(np.log(found[i].median_m) / np.log(1.25))) for i in order]
    turns = [strata[:n].count(stratum) for n, stratum in enumerate(strata)]
    return [found[order[n]] for n in np.argsort(turns, kind="stable")[:count]]
