"""2D regions whose depth may be asked: proposed in bulk, gated by `RegionGates` (`docs/validity.md#regions`)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from pydantic import Strict

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, Candidate, DepthArray, Fact, FloatArray, IntArray
from vgbench_gen.geometry import projection
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks._summed_depth import SummedDepth
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.evidence import ArrayShape, Evidence
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.tasks.revealed import RevealedRegion

_GRID = 5  # points per side by which a region is looked at
_VOTERS = 16  # other frames that are asked about a region; more only cost time in long scans


def are_seen_alike(view: SceneView, seen: Sequence[tuple[ViewFrame, Sequence[int]]]) -> BoolArray:
    """(R,) for each frame with one of its rectangles [x1, y1, x2, y2], ends included: whether most other frames that
    measure the rectangle's surface find it where this frame does.

    Glass and mirrors have depths that change with the viewpoint; frames that are blocked or look away do not vote.
    """
    if not seen:
        return np.zeros(0, dtype=bool)
    points_m = np.stack([_find_points(frame, rect) for frame, rect in seen])
    known = np.isfinite(points_m).all(axis=2).sum(axis=1)
    uv_px, z_m, inside = view.project_to_all(points_m.reshape(-1, 3))
    shape = len(view.frames), len(seen), _GRID**2
    z_m, inside = z_m.reshape(shape), inside.reshape(shape)
    asked = inside.sum(axis=2) * 2 >= known
    for region, (own, _) in enumerate(seen):
        facing = [j for j in np.flatnonzero(asked[:, region]).tolist() if view.frames[j] is not own]
        if len(facing) > _VOTERS:
            facing = [facing[n] for n in np.linspace(0, len(facing) - 1, _VOTERS).round().astype(int)]
        asked[:, region] = False
        asked[facing, region] = True
    looked = inside & asked[..., None]
    uv_px = np.where(looked.reshape(len(view.frames), -1, 1), uv_px, np.nan)
    measured_m = view.depths_at(range(len(view.frames)), uv_px).reshape(shape)
    gap_m, allowed_m = z_m - measured_m, view.tolerance.of(z_m)
    voters = (measured_m > 0) & (gap_m <= 2 * allowed_m)
    votes = voters.sum(axis=2)
    agrees = _find_medians(np.where(voters, np.abs(gap_m) / allowed_m, np.inf), votes) <= 1
    voting = asked & (votes * 2 >= known)
    return np.asarray(((agrees & voting).sum(axis=0) * 2 >= voting.sum(axis=0)) & (known > 0))


def _find_points(frame: ViewFrame, rect: Sequence[int]) -> FloatArray:
    """(P, 3) world points of a grid over a rectangle, NaN where the depth is unknown."""
    x1, y1, x2, y2 = rect
    u, v = np.meshgrid(np.linspace(x1, x2, _GRID), np.linspace(y1, y2, _GRID))
    return frame.points_at(np.stack([u.ravel(), v.ravel()], axis=-1))


def _find_medians(values: FloatArray, counts: FloatArray) -> FloatArray:
    """Medians of the `counts` finite ones among the last axis, where those that do not count are infinite."""
    ordered, last = np.sort(values, axis=-1), np.maximum(counts, 1)
    low, high = (np.take_along_axis(ordered, place[..., None], -1)[..., 0] for place in ((last - 1) // 2, last // 2))
    medians: FloatArray = (low + high) / 2
    return medians


PROPOSALS = 2000  # per frame; about a tenth pass, which fills a pool several times over
STORED_M = 1e-4  # between a stored mean and that of the stored parts
PRINTED_M = 0.005 + 1e-6  # two decimals
_SIDE_MAX = 0.24  # of the shorter image side: larger regions are rarely flat
_LOOSE_SPREAD = 0.12  # std / mean: no region above it has a 5-95 % spread within the gate
_REGIONS_MAX = 24
_LEVELS: FloatArray = np.array([0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95])


class RegionEvidence(Evidence):
    """What is kept of a region whose depth is asked or shown as an option."""

    mean_m: float
    """Mean depth, meters."""
    quantiles_m: Annotated[FloatArray, ArrayShape(7)]
    """Depth at 5, 10, 25, 50, 75, 90 and 95 %, meters."""
    valid: float
    """Share of the pixels whose depth is known."""
    blocks: list[Annotated[tuple[float, int], Strict(False)]]
    """(mean depth in meters, known pixels) of 4 x 4 parts, row by row."""
    grey: float | None = None
    """Mean grey level (0 to 255) of a region that is shown beside others, by which who understands nothing might
    choose; None of one that stands alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A region of one frame that passed every gate."""

    rect_px: tuple[int, int, int, int]
    """[x1, y1, x2, y2], ends included, pixels of the delivered image."""
    mean_m: float
    """Mean depth of the region, meters."""
    quantiles_m: FloatArray
    """(7,) depth at 5, 10, 25, 50, 75, 90 and 95 %, meters."""
    valid: float
    """Share of the region's pixels whose depth is known, 0 to 1."""
    depth_m: DepthArray
    """(h, w) depth of the region's pixels in the depth image, meters; 0 where unknown."""
    point_m: FloatArray
    """(3,) world point of the centre at the median depth."""

    @property
    def median_m(self) -> float:
        """Median depth of the region, meters."""
        return float(self.quantiles_m[3])

    def evidence(self) -> RegionEvidence:
        """The record that a question keeps of the region."""
        return RegionEvidence(
            mean_m=self.mean_m, quantiles_m=self.quantiles_m, valid=self.valid, blocks=_measure_blocks(self.depth_m)
        )


def propose_rects(frame: ViewFrame, view: SceneView, rng: np.random.Generator, count: int = PROPOSALS) -> IntArray:
    """(N, 4) random rectangles of allowed size and place, ends included."""
    gates = view.gates.region
    width, height = frame.camera.size
    shortest = max(gates.side_min_px, int(np.ceil(np.sqrt(gates.area_min * width * height))))
    longest = max(shortest + 1, int(_SIDE_MAX * min(width, height)))
    sizes = rng.integers(shortest, longest + 1, (count, 2))
    border = np.ceil(np.array([width, height]) * view.gates.depth.border).astype(int)
    room = np.array([width, height]) - 2 * border - sizes
    fits = (room >= 0).all(axis=1)
    low = border + np.floor(rng.random((count, 2)) * (np.maximum(room, 0) + 1)).astype(np.int64)
    rects: IntArray = np.concatenate([low, low + sizes - 1], axis=1)[fits]
    return rects


def measure_flat_means_m(frame: ViewFrame, view: SceneView, rects: IntArray) -> FloatArray:
    """(N,) mean depth of rectangles that pass the gates of depth in bulk, NaN of the others; whether they lie on one
    surface is not asked."""
    cells, sums = _find_depth_rects(frame, rects), SummedDepth(frame.depth_camera, frame.depth_m)
    passing, mean_m, _ = _gate_depths(sums, cells, view)
    return np.where(passing, mean_m, np.nan)


def lie_on_one_surface(frame: ViewFrame, view: SceneView, rects: IntArray) -> BoolArray:
    """(N,) whether each rectangle of the delivered image lies on one surface, as the gates say."""
    cells, sums = _find_depth_rects(frame, rects), SummedDepth(frame.depth_camera, frame.depth_m)
    return _gate_surfaces(sums, cells, view)


_FOUND: WeakKeyDictionary[ViewFrame, tuple[list[Region], dict[str, int]]] = WeakKeyDictionary()


def find_frame_regions(frame: ViewFrame, view: SceneView) -> tuple[list[Region], dict[str, int]]:
    """`find_regions` of a frame, found once for all tasks; which of them are asked about is each task's own draw."""
    if frame not in _FOUND:
        _FOUND[frame] = find_regions(frame, view, rng_for(0, "regions", view.dataset, view.id, frame.id))
    return _FOUND[frame]


def find_regions(frame: ViewFrame, view: SceneView, rng: np.random.Generator) -> tuple[list[Region], dict[str, int]]:
    """Gated, mutually disjoint regions spread over log-depth, and how many proposals each gate dropped.

    Depth strata are filled in turn, so that near and far regions are as frequent as the image allows.
    """
    rects = propose_rects(frame, view, rng)
    cells, sums = _find_depth_rects(frame, rects), SummedDepth(frame.depth_camera, frame.depth_m)
    passing, mean, dropped = _gate_depths(sums, cells, view)
    left = np.flatnonzero(passing)
    left = left[_gate_surfaces(sums, cells[left], view)]
    dropped |= {"one_surface": int(passing.sum()) - len(left), "overlapping": 0, "cross_view": 0}
    rects, mean = rects[left], mean[left]
    if not len(rects):
        return [], dropped
    strata = np.floor(np.log(mean / view.near_m) / np.log(1.25)).astype(int)
    # Within a stratum proposals keep their random order; strata take turns.
    turn = np.zeros(len(rects), dtype=int)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        turn[members] = np.arange(len(members))
    chosen: list[Region] = []
    order = np.lexsort((rng.random(len(rects)), turn))
    while len(chosen) < _REGIONS_MAX and len(order):
        # Other frames are asked about many rectangles at once; what they refuse leaves its place to later ones.
        picked, order = _pick_apart(frame, view, rects, order, _REGIONS_MAX - len(chosen), dropped)
        alike = are_seen_alike(view, [(frame, region.rect_px) for region in picked])
        dropped["cross_view"] += int((~alike).sum())
        for region in itertools.compress(picked, alike):
            chosen.append(region)
            near = _find_touching(np.array(region.rect_px), rects[order])
            dropped["overlapping"] += int(near.sum())
            order = order[~near]
    return chosen, dropped


def _pick_apart(
    frame: ViewFrame, view: SceneView, rects: IntArray, order: IntArray, count: int, dropped: dict[str, int]
) -> tuple[list[Region], IntArray]:
    """(at most `count` disjoint regions of rectangles in that order, places of the rectangles not yet looked at)."""
    picked: list[Region] = []
    waiting = np.ones(len(order), dtype=bool)
    free = np.ones(len(order), dtype=bool)
    for n, i in enumerate(order.tolist()):
        if len(picked) == count:
            break
        if free[n]:
            waiting[n] = False
            region = measure(frame, view, rects[i])
            if region is None:
                dropped["flatness"] += 1
            else:
                picked.append(region)
                free &= ~_find_touching(rects[i], rects[order])
    return picked, order[waiting]


def measure(frame: ViewFrame, view: SceneView, rect: IntArray) -> Region | None:
    """Exact statistics of a rectangle by the depth image, or None where a gate of its values fails; whether it lies on
    one surface, and whether other frames see it alike, is asked elsewhere."""
    gates = view.gates.region
    patch = frame.depth_patch(rect.tolist())
    values = patch[patch > 0].astype(np.float64)
    if patch.size == 0 or values.size < gates.valid_min * patch.size:
        return None
    quantiles = _compute_quantiles(values)
    mean, median = float(values.mean()), float(quantiles[3])
    if (
        quantiles[4] - quantiles[2] > gates.iqr_of_median_max * median
        or quantiles[6] - quantiles[0] > gates.spread_of_median_max * median
        or abs(mean - median) > gates.mean_to_median_max * median
        or not view.near_m <= quantiles[0] <= quantiles[6] <= view.far_m
    ):
        return None
    x1, y1, x2, y2 = (int(x) for x in rect)
    center = np.array([[(x1 + x2) / 2, (y1 + y2) / 2]])
    point = transform(frame.world_from_camera, projection.back_project(frame.camera, center, np.array([median])))[0]
    return Region((x1, y1, x2, y2), mean, quantiles, values.size / patch.size, patch, point)


def _compute_quantiles(values: FloatArray) -> FloatArray:
    """(7,) as `numpy.quantile` at `Region.quantiles_m`, whose checks take longer than the few numbers of a region."""
    ordered = np.sort(values)
    place = _LEVELS * (len(ordered) - 1)
    low = place.astype(np.int64)
    high = np.minimum(low + 1, len(ordered) - 1)
    between: FloatArray = ordered[low] + (ordered[high] - ordered[low]) * (place - low)
    return between


def _measure_blocks(patch: DepthArray) -> list[tuple[float, int]]:
    """`RegionEvidence.blocks`: rows and columns in four parts each, the first ones larger by one where that is
    needed."""
    counts, sums = (_sum_parts(values) for values in (patch > 0, np.maximum(patch, 0)))
    means = sums / np.maximum(counts, 1)
    return [(mean, int(count)) for mean, count in zip(means.ravel().tolist(), counts.ravel(), strict=True)]


def _sum_parts(values: npt.NDArray[Any]) -> FloatArray:
    """(4, 4) sums over the parts of (h, w)."""
    total = np.zeros((values.shape[0] + 1, values.shape[1] + 1))
    np.cumsum(np.cumsum(values, axis=0, dtype=np.float64), axis=1, out=total[1:, 1:])
    ends = ([k * (n // 4) + min(k, n % 4) for k in range(5)] for n in values.shape)
    return np.diff(np.diff(total[np.ix_(*ends)], axis=0), axis=1)


def measure_cloud_medians_m(frame: ViewFrame, rects: Sequence[list[int]]) -> FloatArray:
    """(N,) median z of the frame's point cloud that projects into each rectangle of the delivered image; NaN if none.

    The second route of region depths: the cloud is made with the depth camera and projected with the delivered one,
    so a wrong mapping between the two shows. Both cameras share their centre and axes, so where a point projects to
    depends on its column and row alone: those are projected, at a depth of one meter, instead of the whole cloud.
    """
    u, v = (_project_pixels(frame, axis) for axis in (0, 1))
    medians = []
    for x1, y1, x2, y2 in rects:
        rows = np.flatnonzero((v >= y1 - 0.5) & (v <= y2 + 0.5))
        columns = np.flatnonzero((u >= x1 - 0.5) & (u <= x2 + 0.5))
        patch = frame.depth_m[np.ix_(rows, columns)]
        inside = patch[projection.valid_mask(patch)].astype(np.float64)
        medians.append(float(np.median(inside)) if inside.size else float("nan"))
    return np.array(medians)


def _project_pixels(frame: ViewFrame, axis: int) -> FloatArray:
    """u of every column (axis 0) or v of every row (axis 1) of the depth image in the delivered one."""
    uv = np.tile([frame.depth_camera.cx, frame.depth_camera.cy], (frame.depth_camera.size[axis], 1))
    uv[:, axis] = np.arange(len(uv))
    points = projection.back_project(frame.depth_camera, uv, np.ones(len(uv)))
    return projection.project(frame.camera, points)[0][:, axis]


def compute_blocks_mean_m(measured: RegionEvidence) -> float:
    """Mean depth from the stored parts of a region."""
    means, counts = np.array(measured.blocks, dtype=np.float64).T
    return float((means * counts).sum() / counts.sum())


def check_regions(fact: Fact, gates: Gates) -> Problems:
    """The stored statistics of each region agree with one another and keep the gates that allow one depth for it."""
    found: Problems = []
    for option in fact.candidates:
        measured = RegionEvidence.given(option)
        if measured is None:
            continue  # a computed value, which no region has
        found += find_region_problems(option.key, measured, gates)
        depths_m = (measured.mean_m, float(measured.quantiles_m[3]))
        if not min(abs(float(option.value[0]) - depth_m) for depth_m in depths_m) <= PRINTED_M:
            found.append(("region", f"{option.key}: {option.value[0]:g} m is neither its mean nor its median"))
    return found


def find_region_problems(name: str, measured: RegionEvidence, gates: Gates) -> Problems:
    """What is wrong with the stored statistics of one region."""
    found: Problems = []
    mean_m, quantiles_m = measured.mean_m, measured.quantiles_m
    by_parts_m, median_m = compute_blocks_mean_m(measured), float(quantiles_m[3])
    if not abs(by_parts_m - mean_m) <= STORED_M:
        found.append(("region", f"{name}: mean {mean_m:.4f} m stored, {by_parts_m:.4f} m by its parts"))
    if not (np.diff(quantiles_m) >= 0).all():
        found.append(("region", f"{name}: quantiles {quantiles_m.tolist()} do not ascend"))
    if not abs(mean_m - median_m) <= gates.region.mean_to_median_max * median_m:
        found.append(("region", f"{name}: mean {mean_m:.4f} m and median {median_m:.4f} m differ too much"))
    return found


def make_region_mark(option: Candidate, right: bool) -> Mark:
    """A region's rectangle with its mean and median depth, for `vgbench show`."""
    x1, y1, x2, y2 = option.show["rect"]
    measured = RegionEvidence.of(option)
    label = f"mean {measured.mean_m:.3f} median {measured.quantiles_m[3]:.3f} m"
    return Mark("rect", ((x1, y1), (x2, y2)), label, right)


def _find_depth_rects(frame: ViewFrame, rects: IntArray) -> IntArray:
    """(N, 4) rectangles of the delivered image in pixels of the depth image, ends excluded."""
    size = np.array(frame.depth_camera.size)
    low = np.ceil(frame.depth_uv(rects[:, :2].astype(np.float64) - 0.5)).astype(int)
    high = np.floor(frame.depth_uv(rects[:, 2:].astype(np.float64) + 0.5)).astype(int) + 1
    low, high = np.clip(low, 0, size), np.clip(high, 0, size)
    return np.concatenate([low, np.maximum(low, high)], axis=1)


def _gate_depths(sums: SummedDepth, cells: IntArray, view: SceneView) -> tuple[BoolArray, FloatArray, dict[str, int]]:
    """((N,) which rectangles of the depth image pass the gates of its values, as far as these can be applied in bulk,
    (N,) their mean depth in meters, how many each gate dropped)."""
    known, mean_m, std_m = sums.measure_means(cells)
    passing, dropped = np.ones(len(cells), dtype=bool), {}
    for name, keep in (
        ("valid", known >= view.gates.region.valid_min),
        ("depth_range", (mean_m >= view.near_m) & (mean_m <= view.far_m)),
        ("flatness", std_m <= _LOOSE_SPREAD * mean_m),
    ):
        dropped[name] = int((passing & ~keep).sum())
        passing &= keep
    return passing, mean_m, dropped


def _gate_surfaces(sums: SummedDepth, cells: IntArray, view: SceneView) -> BoolArray:
    """(N,) whether a plane fits each rectangle of the depth image and the planes of its quarters agree with it."""
    gates, planes = view.gates.region, sums.fit_planes(cells)
    per_m = gates.plane_residual_laser_per_m if view.depth_kind == "laser" else gates.plane_residual_per_m
    allowed_m = gates.plane_residual_m + per_m * planes.depth_m**2
    flat: BoolArray = (planes.residual_m <= allowed_m) & (planes.spread_deg <= gates.normal_spread_max_deg)
    return flat


def _find_touching(rect: IntArray, others: IntArray) -> BoolArray:
    """(N,) which of the rectangles (N, 4) overlap or nearly touch one (4,)."""
    gap = 4  # outlines are drawn outside the region and must not run into the next one
    apart: BoolArray = (
        (rect[2] + gap < others[:, 0])
        | (others[:, 2] + gap < rect[0])
        | (rect[3] + gap < others[:, 1])
        | (others[:, 3] + gap < rect[1])
    )
    return ~apart


def reveal_region(measured: RegionEvidence, rect: Sequence[int], allowed_ratio: float) -> RevealedRegion:
    """The depth of a region [x1, y1, x2, y2] of the only image."""
    x1, y1, x2, y2 = rect
    return RevealedRegion(
        image=0,
        rect_px=(x1, y1, x2, y2),
        mean_m=measured.mean_m,
        median_m=float(measured.quantiles_m[3]),
        allowed_ratio=allowed_ratio,
    )


def disturb_region(seen: RegionEvidence, noise: SensorNoise, rng: np.random.Generator, n: int) -> RegionEvidence:
    """Quantiles as (n, 7): the whole region is off by one error."""
    off_m = noise.depth_sigma_m(float(seen.quantiles_m[3])) * rng.standard_normal((n, 1))
    return seen.model_copy(update={"quantiles_m": seen.quantiles_m + off_m})
