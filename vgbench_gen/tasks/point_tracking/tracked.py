"""Points that two frames see: by depth in both directions, and by the pixels around them.

Gates: `docs/validity.md#visible-points`, `docs/validity.md#depth` (edge guard, border) and
`docs/validity.md#point-tracking` (texture, motion, cycle).
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import cv2
import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray
from vgbench_gen.geometry import poses, projection, visibility
from vgbench_gen.scenes.view import GREY_WIDTH, SceneView, ViewFrame
from vgbench_gen.tasks._pairs import get_edges, get_mask
from vgbench_gen.tasks.gates import TrackGates

_GRID_COLUMNS = 80  # query points per image row before gates
_PATCH_RADIUS = 12  # pixels at 640 wide; 25 x 25 pixels tell a place from its surroundings
_SEARCH_RADIUS = 12  # pixels at 640 wide around the point by depth
_CORRELATION_MIN = 0.6  # below, the patch looks different from there (gloss, blur, exposure) and proves nothing
_RAMP_PX = 5.0  # at 640: so wide a ramp a phone makes of a step in depth
_PLANE_RADIUS_PX = 8.0  # at 640: depth around the target from which the local surface is taken

_TEXTURED: WeakKeyDictionary[ViewFrame, BoolArray] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """N points that passed every gate of one ordered pair of frames."""

    uv_a: FloatArray
    """(N, 2) whole pixels of the first frame."""
    z_a: FloatArray
    """(N,) depth of the first frame there, meters."""
    uv_b: FloatArray
    """(N, 2) exact pixels of the second frame."""
    points_b_m: FloatArray
    """(N, 3) points in the frame of the second camera."""
    motion_d: FloatArray
    """(N,) how far each point moves in the image, D%."""
    cycle_px_at_640: FloatArray
    """(N,) how far from its start a point ends when both depth images lead it there and back, pixels at 640 wide."""
    scarce: str
    """The gate that the most points failed."""
    first: ViewFrame
    """The frame in which the points start."""
    second: ViewFrame
    """The frame in which the points end."""


def find_tracks(a: ViewFrame, b: ViewFrame, view: SceneView, gates: TrackGates) -> Tracks:
    """Every gated point on a regular grid of integer pixels of the first frame."""
    step = a.camera.width / _GRID_COLUMNS
    u, v = np.meshgrid(np.arange(step / 2, a.camera.width, step), np.arange(step / 2, a.camera.height, step))
    uv_a = np.floor(np.stack([u.ravel(), v.ravel()], axis=-1))
    alive = np.arange(len(uv_a))
    dropped: dict[str, int] = {}

    def keep(mask: BoolArray, reason: str) -> None:
        nonlocal alive
        dropped[reason] = dropped.get(reason, 0) + int((~mask).sum())
        alive = alive[mask]

    keep(_is_inside(a, uv_a, view), "border")
    keep(_is_in_range(a.depth_at(uv_a[alive]), view), "depth")
    keep(_is_firm(a, uv_a[alive], view), "edge")
    keep(_is_textured(a, uv_a[alive]), "texture")
    two_way = visibility.find_two_way_visible(
        a.depth_camera,
        a.depth_m,
        a.world_from_camera,
        b.depth_camera,
        b.depth_m,
        b.world_from_camera,
        view.tolerance,
        uv_a=a.depth_uv(uv_a[alive]),
    )
    # Depth is nearest to a delivered pixel that need not be a depth pixel's centre; the ray is the delivered one.
    z_a = two_way.forward.z_a
    points_a = projection.back_project(a.camera, uv_a[alive], np.where(z_a > 0, z_a, np.nan))
    points_b = poses.transform(poses.relative_pose(a.world_from_camera, b.world_from_camera), points_a)
    uv_b, z_b = projection.project(b.camera, points_b)
    motion_d = 100 * np.linalg.norm(uv_b - uv_a[alive], axis=-1) / b.camera.diagonal_px
    cycle = two_way.cycle_px * GREY_WIDTH / a.depth_camera.width
    first = alive
    rows = np.arange(len(first))

    def passed() -> IntArray:
        here: IntArray = rows[np.isin(first, alive)]
        return here

    keep(two_way.visible, "hidden")
    keep(_is_clear(b, uv_b[passed()], z_b[passed()], view), "hidden")
    keep(_is_inside(b, uv_b[passed()], view), "border")
    keep(_is_in_range(z_b[passed()], view), "depth")
    keep(_is_firm(b, uv_b[passed()], view), "edge")
    keep(_is_textured(b, uv_b[passed()]), "texture")
    keep(cycle[passed()] <= gates.cycle_max_px_at_640, "cycle")
    keep(motion_d[passed()] >= gates.motion_min_d, "motion")
    k = passed()
    scarce = max(dropped, key=lambda name: dropped[name])
    return Tracks(uv_a[first[k]], z_a[k], uv_b[k], points_b[k], motion_d[k], cycle[k], scarce, a, b)


def gate_grid(frame: ViewFrame, u_px: FloatArray, v_px: FloatArray, view: SceneView) -> tuple[BoolArray, FloatArray]:
    """Which pixels of a grid pass the gates that a point must pass in each image by itself, and their depth.

    Args:
        frame: whose pixels they are.
        u_px: (m,) columns.
        v_px: (n,) rows.
        view: of the frame.

    Returns:
        (n, m) whether a pixel passes, and (n, m) meters.
    """
    inside_u, inside_v = (
        _is_between(along, *ends) for along, ends in zip((u_px, v_px), _find_ends(frame, view), strict=True)
    )
    # Neither camera has skew, so columns and rows are carried into the depth image one by one.
    u_depth = frame.depth_uv(np.stack([u_px, np.zeros_like(u_px)], axis=1))[:, 0]
    v_depth = frame.depth_uv(np.stack([np.zeros_like(v_px), v_px], axis=1))[:, 1]
    z_m = projection.sample_grid(frame.depth_m, u_depth, v_depth).astype(np.float64)
    good = inside_v[:, None] & inside_u & _is_in_range(z_m, view)
    good &= ~projection.sample_grid(get_edges(frame, view), u_depth, v_depth, outside=True)
    mask = get_mask(_TEXTURED, frame, frame.textured)
    scale = mask.shape[1] / frame.camera.width
    good &= projection.sample_grid(mask, (u_px + 0.5) * scale - 0.5, (v_px + 0.5) * scale - 0.5, outside=False)
    return good, z_m


@dataclass(frozen=True, slots=True, eq=False)
class SeenBack:
    """How the surface at a pixel of one frame lies in another."""

    uv_back: FloatArray
    """(2,) the pixel of the other frame."""
    z_back_m: float
    """The depth there, in the other camera."""
    jacobian: FloatArray
    """(2, 2) the derivative of `uv_back` by the pixel of the first."""


def carry_into(frame: ViewFrame, other: ViewFrame, uv: FloatArray) -> SeenBack:
    """Carry the surface that `frame` measures around pixel `uv` (2,) into `other`.

    Raises:
        GeometryError: too little depth around the pixel for a surface, or it lies behind the other camera.
    """
    radius = _PLANE_RADIUS_PX * frame.camera.width / GREY_WIDTH
    depth = frame.depth_m
    center, reach = frame.depth_uv(uv), max(1.0, radius * frame.depth_camera.width / frame.camera.width)
    low = np.maximum(np.ceil(center - reach), 0).astype(int)
    high = np.floor(center + reach).astype(int) + 1
    patch = depth[low[1] : high[1], low[0] : high[0]].astype(np.float64)
    rows, columns = np.nonzero(patch > 0)
    if len(rows) < 6:
        raise GeometryError(f"frame {frame.id}: no surface measured around pixel {uv.tolist()}")
    x = np.stack([columns + low[0], rows + low[1], np.ones(len(rows))], axis=1)
    # A plane in space is an affine function of the pixel in inverse depth.
    plane, *_ = np.linalg.lstsq(x - [*center, 0.0], 1.0 / patch[rows, columns], rcond=None)
    step = frame.depth_camera.fx / frame.camera.fx
    offsets = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    inverse = plane[2] + offsets @ (plane[:2] * step)
    if not (inverse > 0).all():
        raise GeometryError(f"frame {frame.id}: no surface measured around pixel {uv.tolist()}")
    points = projection.back_project(frame.camera, uv + offsets, 1.0 / inverse)
    world = poses.transform(frame.world_from_camera, points)
    back, z = projection.project_world(other.camera, other.world_from_camera, world)
    if not (z > 0).all():
        raise GeometryError(f"frame {other.id}: the surface lies behind the camera")
    jacobian = np.stack([back[1] - back[2], back[3] - back[4]], axis=1) / 2
    return SeenBack(back[0], float(z[0]), jacobian)


def match_pixel(a: ViewFrame, b: ViewFrame, query: FloatArray, near: FloatArray, seen: SeenBack) -> FloatArray:
    """(2,) pixel of `b`, near `near`, whose surroundings look most like those of `query` in `a`.

    The patch of `a` is drawn as `b` sees it (`SeenBack.jacobian`) and moved over `b` by up to 12 px at 640; normalised
    cross-correlation, maximum refined by a parabola.

    Raises:
        GeometryError: the place is too near the image border, or nothing there looks like the query.
    """
    scale_a, scale_b = a.grey.shape[1] / a.camera.width, b.grey.shape[1] / b.camera.width
    size = GREY_WIDTH / b.grey.shape[1]  # images narrower than 640 are not enlarged
    reach, search = round(_PATCH_RADIUS / size), round(_SEARCH_RADIUS / size)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1].astype(np.float64)
    warped = query + np.stack([x, y], axis=-1) / scale_b @ seen.jacobian.T
    in_grey = (warped + 0.5) * scale_a - 0.5
    template = cv2.remap(
        a.grey, in_grey[..., 0].astype(np.float32), in_grey[..., 1].astype(np.float32), cv2.INTER_LINEAR
    )
    if not projection.is_in_image(a.camera, warped).all():
        raise GeometryError(f"frame {a.id}: the surroundings of {query.tolist()} leave the image")
    center = (near + 0.5) * scale_b - 0.5
    left, top = (int(c) - reach - search for c in np.round(center))
    size_px = 2 * (reach + search) + 1
    window = b.grey[max(top, 0) : top + size_px, max(left, 0) : left + size_px]
    if left < 0 or top < 0 or window.shape != (size_px, size_px):
        raise GeometryError(f"frame {b.id}: the surroundings of {near.tolist()} leave the image")
    score = cv2.matchTemplate(window, np.asarray(template, dtype=np.uint8), cv2.TM_CCOEFF_NORMED)
    row, column = np.unravel_index(int(np.argmax(score)), score.shape)
    if not score[row, column] >= _CORRELATION_MIN:
        raise GeometryError(f"{a.id}-{b.id}: best correlation {score[row, column]:.2f} near {near.tolist()}")
    place = np.array([left + reach + column, top + reach + row], dtype=np.float64)
    place += _find_peak(score, int(row), int(column))
    found: FloatArray = (place + 0.5) / scale_b - 0.5
    return found


def _find_peak(score: object, row: int, column: int) -> FloatArray:
    values = np.asarray(score, dtype=np.float64)
    shift = np.zeros(2)
    for axis, (line, k) in enumerate(((values[row], column), (values[:, column], row))):
        if 0 < k < len(line) - 1:
            bend = line[k - 1] - 2 * line[k] + line[k + 1]
            shift[axis] = 0.5 * (line[k - 1] - line[k + 1]) / bend if bend < 0 else 0.0
    return shift


def _is_inside(frame: ViewFrame, uv: FloatArray, view: SceneView) -> BoolArray:
    u, v = (_is_between(uv[:, axis], *ends) for axis, ends in enumerate(_find_ends(frame, view)))
    return u & v


def _find_ends(frame: ViewFrame, view: SceneView) -> list[tuple[float, float]]:
    """The first and the last column, and the first and the last row, on which a point may lie."""
    # Room for the patch around a point and the search around it, so that every pool member has its second route.
    room = (_PATCH_RADIUS + _SEARCH_RADIUS + 2) * frame.camera.width / GREY_WIDTH
    borders = [(max(view.gates.depth.border * size, room), size) for size in frame.camera.size]
    return [(border, size - 1 - border) for border, size in borders]


def _is_between(along_px: FloatArray, low: float, high: float) -> BoolArray:
    return np.asarray((along_px >= low) & (along_px <= high))


def _is_in_range(z_m: FloatArray, view: SceneView) -> BoolArray:
    return np.asarray((z_m >= view.near_m) & (z_m <= view.far_m))


def _is_firm(frame: ViewFrame, uv: FloatArray, view: SceneView) -> BoolArray:
    return np.asarray(~projection.sample_nearest(get_edges(frame, view), frame.depth_uv(uv), outside=True))


def _is_clear(frame: ViewFrame, uv: FloatArray, z_m: FloatArray, view: SceneView) -> BoolArray:
    """Whether nothing just beside a pixel (N, 2) is nearer than its depth (N,) by more than the tolerance.

    The reason stands in `docs/validity.md#visible-points`: depth that its maker smoothed makes ramps of steps.
    """
    steps = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]) * _RAMP_PX * frame.camera.width / GREY_WIDTH
    beside = uv[:, None] + np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    depth = frame.depth_at(beside)
    nearest = np.where(depth > 0, depth, np.inf).min(axis=1)
    return np.asarray(nearest >= z_m - view.tolerance.of(z_m))


def _is_textured(frame: ViewFrame, uv: FloatArray) -> BoolArray:
    mask = get_mask(_TEXTURED, frame, frame.textured)
    scale = mask.shape[1] / frame.camera.width
    return np.asarray(projection.sample_nearest(mask, (uv + 0.5) * scale - 0.5, outside=False))
