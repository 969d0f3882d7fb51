"""Can the poses, depth and gravity of a scene be believed? A few frames are decoded and compared with each other.

The checks are the third to the fifth of `docs/formats.md#checks-on-every-scene`: plausible depth, agreement between
views, and gravity. Nothing is mended here: a convention that would fit better is reported, never silently chosen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vgbench_gen.core.errors import FrameError
from vgbench_gen.core.types import DepthArray
from vgbench_gen.geometry.cameras import up_in_camera
from vgbench_gen.geometry.poses import invert, relative_pose, rotation_angle_deg, transform
from vgbench_gen.geometry.projection import back_project_depth, project, sample_nearest, valid_mask
from vgbench_gen.geometry.visibility import LASER, SENSOR
from vgbench_gen.scenes.base import Frame, Scene
from vgbench_gen.scenes.opening import decode_depth
from vgbench_gen.scenes.promised import LOST

MAX_MEDIAN_ERROR = 0.05
"""Median relative depth error between views that still accepts the pose convention."""
MIN_AGREE = 0.5
"""Share of points within tolerance below which something is wrong although the median passes: occlusion alone takes
up to a third. Depth that is 30 % too long leaves 40 % in a furnished room, but more than half where large planes fill
the views, for moving along a plane changes nothing; such a scene passes."""
DEPTH_RANGE_M = (0.1, 20.0)
MIN_COVERAGE = 0.05
MAX_PAIRS = 4
_MAX_LOST = 3
_POINTS_PER_FRAME = 5_000
_MIN_COMPARED, _MIN_COMPARED_SHARE = 200, 0.05
# Enough motion that a wrong convention shows, little enough that the views overlap.
_MOTION_DEG, _MOTION_M = (12.0, 45.0), (0.25, 1.5)
_CLEARLY_BETTER = 0.5
_MIN_ERROR_TO_DOUBT = 0.01

_FLIP = np.diag([1.0, -1.0, -1.0, 1.0])
STATED = "as stated"
CONVENTIONS = (STATED, "inverse pose", "OpenGL camera axes", "inverse pose with OpenGL camera axes")
"""Pose conventions that are tried, the loader's own first."""
_NONE_FITS = (
    "; no known pose convention fits (tried: inverse pose, OpenGL camera axes); "
    "check the order of the quaternion and the unit of depth"
)


@dataclass(frozen=True, slots=True)
class CrossView:
    """How well depth of some views predicts that of others, for one convention of poses."""

    convention: str
    error: float
    """The median of |predicted - measured| / measured; NaN where the views do not overlap enough to tell."""
    agree: float
    """The share of the compared points within the tolerance of the scene's kind of depth; NaN as for `error`."""


@dataclass(frozen=True, slots=True)
class SceneHealth:
    """What was found about one scene: one line of `vgbench scenes`."""

    dataset: str
    id: str
    split: str
    variant: str
    frames_total: int
    frames_usable: int
    """The number of frames left after dropping those that miss or lack something."""
    poses_valid: int
    """The number of frames whose pose passed."""
    depth_coverage: float
    """The median share of pixels with known depth over the decoded frames; NaN where no depth was read."""
    median_depth_m: float
    """The median of the known depth of those frames, meters; NaN where there is none."""
    objects: int
    pose_depth_error: float
    """`CrossView.error` for the poses as stated; NaN where it cannot be measured."""
    pose_depth_agree: float
    """`CrossView.agree` for the poses as stated; NaN where it cannot be measured."""
    fits: tuple[str, ...]
    """The conventions that would fit instead of the stated one, or clearly better than it, best first; empty where none
    would."""
    up: str
    """How images lie on average: "upright", "sideways", "upside down", "along the view" or "unknown"."""
    verdict: str
    """"ok", or "warn: …" or "bad: …" with the reasons."""
    issues: Mapping[str, int]
    """How many notes of the loader have each reason."""

    @property
    def ok(self) -> bool:
        """Whether the scene may be measured (the verdict is not "bad")."""
        return not self.verdict.startswith("bad")

    def to_json(self) -> dict[str, Any]:
        """The line as values that JSON can hold; numbers that could not be measured are null."""
        fields = asdict(self)
        for name, value in fields.items():
            if isinstance(value, float):
                fields[name] = round(value, 6) if math.isfinite(value) else None
        return {**fields, "fits": list(self.fits), "issues": dict(self.issues)}


def summarise_health(scene: Scene, variant: str = "") -> SceneHealth:
    """Health of an open scene. Decodes the depth of at most 8 frames and the colour of one; deterministic.

    Args:
        scene: open scene. variant: of its `SceneRef`; default: the scene's own, where it has one.

    Raises:
        SceneError: the loader gives depth that is no float32.
    """
    pairs = choose_pairs(scene.frames)
    wanted = sorted({index for pair in pairs for index in pair}) or [0]
    bad, warn = [], []
    depths: dict[int, DepthArray] = {}
    for index in wanted:
        try:
            depths[index] = decode_depth(scene.frames[index], scene.depth_kind)
        except FrameError as error:
            warn.append(f"depth of frame {scene.frames[index].id} is unreadable: {error}")
    try:
        scene.frames[wanted[len(wanted) // 2]].color()
    except FrameError as error:
        warn.append(f"colour of frame {scene.frames[wanted[len(wanted) // 2]].id} is unreadable: {error}")
    coverage, median_m = compute_depth_statistics(list(depths.values()))
    if not depths:
        bad.append(f"no depth could be read; {'; '.join(warn[:1])}")
    elif coverage <= MIN_COVERAGE:
        bad.append(f"depth covers {coverage:.1%} of the image; wrong decoding?")
    elif not DEPTH_RANGE_M[0] <= median_m <= DEPTH_RANGE_M[1]:
        bad.append(f"median depth {median_m:.3g} m; wrong unit or decoding?")
    views = cross_view(scene, [pair for pair in pairs if pair[0] in depths and pair[1] in depths], depths)
    fits, pose_bad, pose_warn = _judge_poses(views, len(pairs))
    up = find_orientation(scene)
    if up in ("upside down", "along the view"):
        pose_warn.append(f"up lies {up} on average; gravity or pose axes may be wrong")
    issues = dict(sorted(Counter(issue.reason for issue in scene.issues).items()))
    without_pose = {issue.frame_id for issue in scene.issues if "pose" in issue.reason and issue.frame_id}
    lost = [issue.detail for issue in scene.issues if issue.reason in LOST]
    lost[_MAX_LOST:] = [f"{len(lost) - _MAX_LOST} more files"] if len(lost) > _MAX_LOST else []
    if 2 * len(scene.frames) < scene.total_frames:
        pose_warn.append(f"only {len(scene.frames)} of {scene.total_frames} frames are usable")
    if 2 * (doubtful := issues.get("gravity_disagrees", 0)) > len(scene.frames):
        pose_warn.append(f"gravity and poses disagree in {doubtful} frames")
    warn = pose_warn + lost + warn
    bad += pose_bad
    verdict = "bad: " + "; ".join(bad + lost) if bad else "warn: " + "; ".join(warn) if warn else "ok"
    return SceneHealth(
        dataset=scene.dataset,
        id=scene.id,
        split=scene.split,
        variant=variant or str(getattr(scene, "variant", "")),
        frames_total=scene.total_frames,
        frames_usable=len(scene.frames),
        poses_valid=max(scene.total_frames - len(without_pose), len(scene.frames)),
        depth_coverage=coverage,
        median_depth_m=median_m,
        objects=len(scene.objects),
        pose_depth_error=views[0].error,
        pose_depth_agree=views[0].agree,
        fits=fits,
        up=up,
        verdict=verdict,
        issues=issues,
    )


def choose_pairs(frames: Sequence[Frame], count: int = MAX_PAIRS) -> list[tuple[int, int]]:
    """At most `count` pairs of positions spread over the capture: a frame and the one nearest in order that moved
    enough (12 degrees or 0.25 m) but not too much (45 degrees, 1.5 m); where none did, the one that moved most of
    those that did not move too much, else its neighbour."""
    if len(frames) < 2:
        return []
    poses = np.array([frame.world_from_camera for frame in frames])
    pairs: dict[tuple[int, int], None] = {}
    for anchor in np.unique(np.linspace(0, len(frames) - 1, min(count, len(frames))).astype(int)).tolist():
        others = relative_pose(poses, poses[anchor])
        turned, shifted = rotation_angle_deg(others[:, :3, :3]), np.linalg.norm(others[:, :3, 3], axis=1)
        near = (turned <= _MOTION_DEG[1]) & (shifted <= _MOTION_M[1])
        motion = np.maximum(turned / _MOTION_DEG[0], shifted / _MOTION_M[0])
        apart = np.abs(np.arange(len(frames)) - anchor)
        near[anchor] = False
        if not near.any():
            partner = anchor + 1 if anchor + 1 < len(frames) else anchor - 1
        elif motion[near].max() >= 1.0:
            partner = int(np.argmin(np.where(near & (motion >= 1.0), apart, len(frames))))
        else:
            partner = int(np.argmax(np.where(near, motion, -1.0)))
        pairs[min(anchor, partner), max(anchor, partner)] = None
    return list(pairs)


def compute_depth_statistics(depths: Sequence[DepthArray]) -> tuple[float, float]:
    """Median share of known depth per image, and median of the known depth of all, meters; NaN where there is none."""
    shares = [float(valid_mask(depth).mean()) for depth in depths]
    measured = np.concatenate([np.zeros(0, np.float32), *(depth[valid_mask(depth)] for depth in depths)])
    share, depth_m = (float(np.median(values)) if len(values) else math.nan for values in (shares, measured))
    return share, depth_m


def cross_view(
    scene: Scene, pairs: Sequence[tuple[int, int]], depths: Mapping[int, DepthArray]
) -> tuple[CrossView, ...]:
    """Agreement of depth and poses over pairs of frames, for each of `CONVENTIONS` in order.

    Points of A are moved into B and their depth is compared with what B measured at the nearest pixel. Points that
    B does not see, because something stands in front, count too: the median shrugs them off.

    Args:
        scene: open scene. pairs: positions of A and B. depths: position -> depth image.
    """
    compared = {name: [np.zeros((2, 0))] for name in CONVENTIONS}  # relative errors, and whether within the tolerance
    offered = 0
    tolerance = LASER if scene.depth_kind == "laser" else SENSOR
    for a, b in pairs:
        first, second = scene.frames[a], scene.frames[b]
        stride = max(1, math.isqrt(depths[a].size // _POINTS_PER_FRAME))
        points, _ = back_project_depth(first.depth_camera, depths[a], stride)
        offered += len(points)
        poses = first.world_from_camera, second.world_from_camera
        for name in CONVENTIONS:
            world_from = [invert(pose) if "inverse" in name else pose for pose in poses]
            flip = _FLIP if "OpenGL" in name else np.eye(4)
            b_from_a = relative_pose(world_from[0] @ flip, world_from[1] @ flip)
            uv, z = project(second.depth_camera, transform(b_from_a, points))
            measured = sample_nearest(depths[b], uv).astype(np.float64)
            both = valid_mask(measured) & (z > 0)
            gap = np.abs(z[both] - measured[both])
            compared[name].append(np.stack([gap / measured[both], gap <= tolerance.of(measured[both])]))
    results = []
    for name, parts in compared.items():
        error, agree = np.concatenate(parts, axis=1)
        enough = error.size >= max(_MIN_COMPARED, _MIN_COMPARED_SHARE * offered)
        numbers = (float(np.median(error)), float(agree.mean())) if enough else (math.nan, math.nan)
        results.append(CrossView(name, *numbers))
    return tuple(results)


def find_orientation(scene: Scene) -> str:
    """How images lie on average: which way up points in them. See `SceneHealth.up`."""
    if scene.up_world is None or not scene.frames:
        return "unknown"
    poses = np.array([frame.world_from_camera for frame in scene.frames])
    x, y, z = up_in_camera(poses, scene.up_world).mean(axis=0).tolist()
    if abs(z) > 2.0 * math.hypot(x, y):
        return "along the view"
    if abs(x) > abs(y):
        return "sideways"
    return "upright" if y < 0 else "upside down"


def _judge_poses(views: Sequence[CrossView], pairs: int) -> tuple[tuple[str, ...], list[str], list[str]]:
    """Conventions that would fit instead, what is bad, what is doubtful."""
    stated = views[0].error
    others = sorted((view for view in views[1:] if view.error < MAX_MEDIAN_ERROR), key=lambda view: view.error)
    if stated < MAX_MEDIAN_ERROR:
        doubt = stated > _MIN_ERROR_TO_DOUBT
        better = [view for view in others if doubt and view.error < _CLEARLY_BETTER * stated]
        warn = [f"{view.convention} fits better: {view.error:.1%} instead of {stated:.1%}" for view in better[:1]]
        if views[0].agree < MIN_AGREE:
            warn.append(
                f"only {views[0].agree:.0%} of the points agree between views; drift, or depth of another scale?"
            )
        return tuple(view.convention for view in better), [], warn
    fits = tuple(view.convention for view in others)
    hint = f"; {fits[0]} would fit ({others[0].error:.1%})" if fits else _NONE_FITS
    if math.isfinite(stated):
        return fits, [f"poses and depth disagree, median error {stated:.1%}{hint}"], []
    if fits:
        return fits, [f"views that should overlap do not{hint}"], []
    return (), [], ["poses unchecked: no pair of views overlaps" if pairs else "poses unchecked: one frame only"]
