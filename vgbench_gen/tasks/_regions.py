"""2D regions whose depth may be asked: proposed in bulk, gated by `RegionGates` (`docs/validity.md#regions`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from pydantic import Strict

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, Candidate, Fact, FloatArray, IntArray
from vgbench_gen.geometry import projection
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks import mirroring
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.evidence import ArrayShape, Evidence
from vgbench_gen.tasks.presentation import Mark

PROPOSALS = 600  # per frame; about a tenth pass, which fills a pool several times over
STORED_M = 1e-4  # between a stored mean and that of the stored parts
PRINTED_M = 0.005 + 1e-6  # two decimals
_SIDE_MAX = 0.24  # of the shorter image side: larger regions are rarely flat
_LOOSE_SPREAD = 0.12  # std / mean: no region above it has a 5-95 % spread within the gate
_GRID = 5  # grid points per side for looking at a region from other frames
_VOTERS = 16  # other frames that are asked about a region; more only cost time in long scans
_REGIONS_MAX = 24
_LEVELS: FloatArray = np.array([0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95])


class RegionEvidence(Evidence):
    """What is kept of a region whose depth is asked or shown as an option."""

    mean_m: float
    """Mean depth, metres."""
    quantiles_m: Annotated[FloatArray, ArrayShape(7)]
    """Depth at 5, 10, 25, 50, 75, 90 and 95 %, metres."""
    valid: float
    """Share of the pixels whose depth is known."""
    blocks: list[Annotated[tuple[float, int], Strict(False)]]
    """(mean depth in metres, known pixels) of 4 x 4 parts, row by row."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A region of one frame that passed every gate."""

    rect_px: tuple[int, int, int, int]
    """[x1, y1, x2, y2], ends included, pixels of the delivered image."""
    mean_m: float
    """Mean depth of the region, metres."""
    quantiles_m: FloatArray
    """(7,) depth at 5, 10, 25, 50, 75, 90 and 95 %, metres."""
    valid: float
    """Share of the region's pixels whose depth is known, 0 to 1."""
    blocks: tuple[tuple[float, int], ...]
    """(mean depth in metres, number of known pixels) of each of 4 x 4 parts, row by row."""
    point_m: FloatArray
    """(3,) world point of the centre at the median depth."""

    @property
    def median_m(self) -> float:
        """Median depth of the region, metres."""
        return float(self.quantiles_m[3])

    def evidence(self) -> RegionEvidence:
        """The record that a question keeps of the region."""
        return RegionEvidence(
            mean_m=self.mean_m, quantiles_m=self.quantiles_m, valid=self.valid, blocks=list(self.blocks)
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
    """(N,) mean depth of rectangles that pass what gates can be applied in bulk, NaN of the others."""
    known, mean, std = _compute_integral_stats(frame, rects)
    passing = (known >= view.gates.region.valid_min) & (mean >= view.near_m) & (mean <= view.far_m)
    return np.where(passing & (std <= _LOOSE_SPREAD * mean), mean, np.nan)


def gate_region(frame: ViewFrame, view: SceneView, rect: IntArray) -> Region | None:
    """The region of a rectangle, or None where any gate fails."""
    region = measure(frame, view, rect)
    return region if region is not None and _is_seen_alike(frame, view, region) else None


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
    gates = view.gates.region
    rects = propose_rects(frame, view, rng)
    dropped = dict.fromkeys(("valid", "depth_range", "flatness", "overlapping", "cross_view"), 0)
    known, mean, std = _compute_integral_stats(frame, rects)
    passing = np.ones(len(rects), dtype=bool)
    for name, keep in (
        ("valid", known >= gates.valid_min),
        ("depth_range", (mean >= view.near_m) & (mean <= view.far_m)),
        ("flatness", std <= _LOOSE_SPREAD * mean),
    ):
        dropped[name] += int((passing & ~keep).sum())
        passing &= keep
    rects, mean = rects[passing], mean[passing]
    if not len(rects):
        return [], dropped
    strata = np.floor(np.log(mean / view.near_m) / np.log(1.25)).astype(int)
    # Within a stratum proposals keep their random order; strata take turns.
    turn = np.zeros(len(rects), dtype=int)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        turn[members] = np.arange(len(members))
    chosen: list[Region] = []
    free = np.ones(len(rects), dtype=bool)
    for i in np.lexsort((rng.random(len(rects)), turn)):
        if len(chosen) >= _REGIONS_MAX:
            break
        if not free[i]:
            dropped["overlapping"] += 1
            continue
        region = measure(frame, view, rects[i])
        if region is None:
            dropped["flatness"] += 1
        elif not _is_seen_alike(frame, view, region):
            dropped["cross_view"] += 1
        else:
            chosen.append(region)
            free &= ~_find_touching(rects[i], rects)
    return chosen, dropped


def measure(frame: ViewFrame, view: SceneView, rect: IntArray) -> Region | None:
    """Exact statistics of a rectangle by the depth image, or None where a region gate fails."""
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
    return Region((x1, y1, x2, y2), mean, quantiles, values.size / patch.size, _measure_blocks(patch), point)


def _compute_quantiles(values: FloatArray) -> FloatArray:
    """(7,) as `numpy.quantile` at `Region.quantiles_m`, whose checks take longer than the few numbers of a region."""
    ordered = np.sort(values)
    place = _LEVELS * (len(ordered) - 1)
    low = place.astype(np.int64)
    high = np.minimum(low + 1, len(ordered) - 1)
    between: FloatArray = ordered[low] + (ordered[high] - ordered[low]) * (place - low)
    return between


def _measure_blocks(patch: npt.NDArray[np.float32]) -> tuple[tuple[float, int], ...]:
    """`Region.blocks`: rows and columns in four parts each, the first ones larger by one where that is needed."""
    known = patch > 0
    counts, sums = (_sum_parts(values) for values in (known, np.where(known, patch, 0)))
    means = np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)
    return tuple((mean, int(count)) for mean, count in zip(means.ravel().tolist(), counts.ravel(), strict=True))


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
    depends on its column and row alone: those are projected, at a depth of one metre, instead of the whole cloud.
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
        mean_m, quantiles_m = measured.mean_m, measured.quantiles_m
        by_parts_m, median_m = compute_blocks_mean_m(measured), float(quantiles_m[3])
        if not abs(by_parts_m - mean_m) <= STORED_M:
            found.append(("region", f"{option.key}: mean {mean_m:.4f} m stored, {by_parts_m:.4f} m by its parts"))
        if not (np.diff(quantiles_m) >= 0).all():
            found.append(("region", f"{option.key}: quantiles {quantiles_m.tolist()} do not ascend"))
        if not abs(mean_m - median_m) <= gates.region.mean_to_median_max * median_m:
            found.append(("region", f"{option.key}: mean {mean_m:.4f} m and median {median_m:.4f} m differ too much"))
        if not min(abs(float(option.value[0]) - depth_m) for depth_m in (mean_m, median_m)) <= PRINTED_M:
            found.append(("region", f"{option.key}: {option.value[0]:g} m is neither its mean nor its median"))
    return found


def mirror_region(candidate: Candidate, width: int) -> Candidate:
    """A candidate with `RegionEvidence` in a mirrored image of `width` columns: parts of a row change places."""
    mirrored = replace(candidate, show=mirroring.mirror_rect(candidate.show, width))
    measured = RegionEvidence.given(candidate)
    if measured is None:
        return mirrored
    blocks = [block for start in range(0, 16, 4) for block in measured.blocks[start : start + 4][::-1]]
    return replace(mirrored, evidence=measured.with_fields(blocks=blocks).write())


def make_region_mark(option: Candidate, right: bool) -> Mark:
    """A region's rectangle with its mean and median depth, for `vgbench explain`."""
    x1, y1, x2, y2 = option.show["rect"]
    measured = RegionEvidence.of(option)
    label = f"mean {measured.mean_m:.3f} median {measured.quantiles_m[3]:.3f} m"
    return Mark("rect", ((x1, y1), (x2, y2)), label, right)


def _compute_integral_stats(frame: ViewFrame, rects: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(known share, mean, std) of depth in each rectangle, through summed-area tables."""
    depth = frame.depth_m.astype(np.float64)
    size = np.array([depth.shape[1], depth.shape[0]])
    low = np.ceil(frame.depth_uv(rects[:, :2].astype(np.float64) - 0.5)).astype(int)
    high = np.floor(frame.depth_uv(rects[:, 2:].astype(np.float64) + 0.5)).astype(int) + 1
    (x1, y1), (x2, y2) = np.clip(low, 0, size).T, np.clip(high, 0, size).T
    x2, y2 = np.maximum(x1, x2), np.maximum(y1, y2)

    def box_sum(values: FloatArray) -> FloatArray:
        table = np.zeros((values.shape[0] + 1, values.shape[1] + 1))
        np.cumsum(values, axis=0, out=table[1:, 1:])
        np.cumsum(table[1:, 1:], axis=1, out=table[1:, 1:])
        total: FloatArray = table[y2, x2] - table[y1, x2] - table[y2, x1] + table[y1, x1]
        return total

    known = box_sum((depth > 0).astype(np.float64))
    mean = box_sum(depth) / np.maximum(known, 1)
    variance = box_sum(depth**2) / np.maximum(known, 1) - mean**2
    return known / np.maximum((x2 - x1) * (y2 - y1), 1), mean, np.sqrt(np.maximum(variance, 0))


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


def _is_seen_alike(frame: ViewFrame, view: SceneView, region: Region) -> bool:
    """Whether most other frames that measure the region's surface find it where this frame does.

    Glass and mirrors have depths that change with the viewpoint; frames that are blocked or look away do not vote.
    """
    x1, y1, x2, y2 = region.rect_px
    u, v = np.meshgrid(np.linspace(x1, x2, _GRID), np.linspace(y1, y2, _GRID))
    points = frame.points_at(np.stack([u.ravel(), v.ravel()], axis=-1))
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return False
    uv_px, z_m, inside = view.project_to_all(points)
    facing = np.flatnonzero(inside.sum(axis=1) * 2 >= len(points)).tolist()
    facing = [j for j in facing if view.frames[j] is not frame]
    if len(facing) > _VOTERS:
        facing = [facing[n] for n in np.linspace(0, len(facing) - 1, _VOTERS).round().astype(int)]
    if not facing:
        return True
    z_there_m, allowed = z_m[facing], view.tolerance.of(z_m[facing])
    measured_m = view.depths_at(facing, np.where(inside[facing][..., None], uv_px[facing], np.nan))
    gap = z_there_m - measured_m
    voters = (measured_m > 0) & (gap <= 2 * allowed)
    votes = voters.sum(axis=1)
    # Medians of rows of different length: what does not vote sorts to the end.
    off = np.sort(np.where(voters, np.abs(gap) / allowed, np.inf), axis=1)
    rows, last = np.arange(len(facing)), np.maximum(votes, 1)
    agrees = (off[rows, (last - 1) // 2] + off[rows, last // 2]) / 2 <= 1
    voting = votes * 2 >= len(points)
    return bool((agrees & voting).sum() * 2 >= voting.sum())
