"""Whether other frames find a region where its own does (`docs/validity.md#regions`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.scenes.view import SceneView, ViewFrame

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
