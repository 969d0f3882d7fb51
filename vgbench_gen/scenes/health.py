"""Can the poses, depth and gravity of a scene be believed? A few frames are decoded and compared with each other.

The checks are the third to the fifth of `docs/formats.md#checks-on-every-scene`: plausible depth, agreement between
views (`vgbench_gen.scenes.readings`), and gravity. Nothing is mended here: another reading that fits is reported.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vgbench_gen.core.errors import FrameError
from vgbench_gen.core.types import Camera, DepthArray, FloatArray
from vgbench_gen.geometry.cameras import map_pixels, up_in_camera
from vgbench_gen.geometry.projection import back_project, valid_mask
from vgbench_gen.geometry.visibility import find_depth_edges
from vgbench_gen.scenes._turned import undo_turn
from vgbench_gen.scenes.base import Scene
from vgbench_gen.scenes.opening import decode_depth
from vgbench_gen.scenes.promised import LOST
from vgbench_gen.scenes.readings import PosedDepth, measure_agreement

DEPTH_RANGE_M = (0.1, 20.0)
MIN_COVERAGE = 0.05
_MAX_LOST = 3
_DEPTHS = 8  # decoded for coverage
_LEVEL_DEG = 5.0  # of surface that counts to one plane
_MIN_LEVEL = 0.05  # of surface


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
    reading: str
    """How the poses were read, such as "camera to world, OpenCV"."""
    agree: float
    """`ViewAgreement.share`: of the points that another view shows at the same depth by this reading, NaN where no two
    views could be compared."""
    agree_next: float
    """That share under the best other reading."""
    agree_still: float
    """That share if the camera had not moved."""
    unit: str
    """Whether depth and poses have one unit: "confirmed", "not testable", or what depth is to be multiplied with."""
    fits: str
    """The reading that is right instead of the stated one, "" where there is none."""
    pairing: str
    """How pictures and poses were put together, where the loader says it."""
    metric: bool
    """Whether poses are in meters."""
    up_world: tuple[float, ...] | None
    """The direction against gravity in the world, None where it is unknown."""
    up_from_planes: tuple[float, ...] | None
    """Where it is unknown: the direction (x, y, z) that floors and tables face, and by how many degrees
    single frames differ from it; None where no such planes are seen."""
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
        return {**fields, "issues": dict(self.issues)}


def summarise_health(scene: Scene, variant: str = "") -> SceneHealth:
    """Look at a scene: decodes a few depth images and one color image.

    Args:
        scene: open scene. variant: of its `SceneRef`; default: the scene's own, where it has one.

    Raises:
        SceneError: the loader gives depth that is no float32.
    """
    bad, warn = [], []
    depths: dict[int, DepthArray | None] = {}

    stored = [undo_turn(frame) for frame in scene.frames]  # turns that wrong poses made would hide what is right

    def read(index: int) -> DepthArray | None:
        if index not in depths:
            try:
                depths[index] = decode_depth(stored[index], scene.depth_kind)
            except FrameError as error:
                depths[index] = None
                warn.append(f"depth of frame {scene.frames[index].id} is unreadable: {error}")
        return depths[index]

    poses = np.array([frame.world_from_camera for frame in stored])
    views = PosedDepth(poses, lambda i: stored[i].depth_camera, read)
    agreement = measure_agreement(views, scene.reading, scene.quaternions)
    for index in np.unique(np.linspace(0, len(scene.frames) - 1, _DEPTHS).astype(int)).tolist() if not depths else ():
        read(index)
    middle = sorted(depths)[len(depths) // 2]
    try:
        scene.frames[middle].color()
    except FrameError as error:
        warn.append(f"colour of frame {scene.frames[middle].id} is unreadable: {error}")
    known = [depth for depth in depths.values() if depth is not None]
    coverage, median_m = compute_depth_statistics(known)
    if not known:
        bad.append(f"no depth could be read; {'; '.join(warn[:1])}")
    elif coverage <= MIN_COVERAGE:
        bad.append(f"depth covers {coverage:.1%} of the image; wrong decoding?")
    elif not DEPTH_RANGE_M[0] <= median_m <= DEPTH_RANGE_M[1]:
        bad.append(f"median depth {median_m:.3g} m; wrong unit or decoding?")
    pose_warn: list[str] = []
    if agreement.problem:
        bad.append(agreement.problem)
    elif agreement.doubt:
        (bad if scene.needs_decision or agreement.fits_nothing else pose_warn).append(agreement.doubt)
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
    verdict = "bad: " + "; ".join(bad + lost) if bad else "warn: " + "; ".join(warn) if warn else "ok"
    return SceneHealth(
        dataset=scene.dataset,
        id=scene.id,
        split=scene.split,
        variant=str(getattr(scene, "variant", "")) or variant,
        frames_total=scene.total_frames,
        frames_usable=len(scene.frames),
        poses_valid=max(scene.total_frames - len(without_pose), len(scene.frames)),
        depth_coverage=coverage,
        median_depth_m=median_m,
        objects=len(scene.objects),
        reading=str(agreement.stated),
        agree=agreement.share,
        agree_next=agreement.next_share,
        agree_still=agreement.still,
        unit=_describe_unit(agreement.unit),
        fits="" if agreement.best in (None, agreement.stated) else str(agreement.best),
        pairing=scene.pairing,
        metric=scene.metric,
        up_world=_round(scene.up_world),
        up_from_planes=None if scene.up_world is not None else _round(estimate_up(scene, depths)),
        up=up,
        verdict=verdict,
        issues=issues,
    )


def _describe_unit(unit: float | None) -> str:
    return "not testable" if unit is None else "confirmed" if unit == 1.0 else f"times {unit:.4g}"


def _round(values: FloatArray | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(np.round(values, 4).tolist())


def estimate_up(scene: Scene, depths: Mapping[int, DepthArray | None]) -> FloatArray | None:
    """(4,) unit vector against gravity in the world by level planes, and by how many degrees single frames differ from
    it; None where there are too few.

    Of the directions into which much of the surface faces, it is the one nearest to the upper edge of the images, which
    must lie within 45 degrees of it on average.

    depths: position -> depth image.
    """
    upper = -np.mean([frame.world_from_camera[:3, 1] for frame in scene.frames], axis=0)
    found = []
    for index, depth_m in depths.items():
        if depth_m is not None:
            frame = scene.frames[index]
            found.append(compute_normals(frame.depth_camera, depth_m) @ frame.world_from_camera[:3, :3].T)
    everything = np.concatenate(found) if found else np.zeros((0, 3))
    level = everything[everything @ upper >= np.cos(np.radians(45)) * np.linalg.norm(upper)]
    if len(level) < _MIN_LEVEL * len(everything) or not len(level):
        return None
    seeds = level[:: max(1, len(level) // 300)]
    best = seeds[np.argmax((seeds @ level.T >= np.cos(np.radians(_LEVEL_DEG))).sum(axis=1))]
    for _ in range(5):
        near = level[level @ best >= np.cos(np.radians(_LEVEL_DEG))]
        best = near.mean(axis=0) / np.linalg.norm(near.mean(axis=0))
    if len(near) < _MIN_LEVEL * len(everything):
        return None
    parts = [each[each @ best >= np.cos(np.radians(_LEVEL_DEG))] for each in found]
    means = np.array([part.mean(axis=0) for part in parts if len(part)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return np.array([*best, np.degrees(np.sqrt(np.mean(np.sum((means - best) ** 2, axis=1))))])


def compute_normals(camera: Camera, depth_m: DepthArray) -> FloatArray:
    """(N, 3) unit normals of a coarse grid of smooth surface, in the camera's frame, towards the camera."""
    step = max(1, depth_m.shape[1] // 80)
    coarse = depth_m[::step, ::step].astype(np.float64)
    v, u = np.mgrid[0 : depth_m.shape[0] : step, 0 : depth_m.shape[1] : step]
    points = back_project(camera, np.stack([u, v], axis=-1), coarse)
    right, down = np.diff(points, axis=1)[:-1], np.diff(points, axis=0)[:, :-1]
    normals = np.cross(down, right)
    near = 0.05 * coarse[:-1, :-1]
    smooth = (np.abs(right[..., 2]) < near) & (np.abs(down[..., 2]) < near) & (coarse[:-1, :-1] > 0)
    normals = normals[smooth & (np.linalg.norm(normals, axis=-1) > 0)]
    return np.asarray(normals / np.linalg.norm(normals, axis=-1, keepdims=True))


def compute_depth_statistics(depths: Sequence[DepthArray]) -> tuple[float, float]:
    """Median share of known depth per image, and median of the known depth of all, meters; NaN where there is none."""
    shares = [float(valid_mask(depth).mean()) for depth in depths]
    measured = np.concatenate([np.zeros(0, np.float32), *(depth[valid_mask(depth)] for depth in depths)])
    share, depth_m = (float(np.median(values)) if len(values) else math.nan for values in (shares, measured))
    return share, depth_m


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


def draw_depth_edges(scene: Scene) -> bytes:
    """PNG bytes of a frame from the middle of the scan: its color, with steps of depth drawn over it in red."""
    import cv2

    frame = scene.frames[len(scene.frames) // 2]
    color: Any = frame.color().copy()
    depth_m = decode_depth(frame, scene.depth_kind)
    edges = find_depth_edges(depth_m, 0) & (depth_m > 0)
    v, u = np.nonzero(edges)
    uv = map_pixels(frame.camera, frame.depth_camera, np.stack([u, v], axis=-1))
    radius = max(1, round(frame.camera.width / frame.depth_camera.width / 2))
    for x, y in np.rint(uv).astype(int).tolist():
        cv2.circle(color, (x, y), radius, (255, 0, 0), -1)
    scale = min(1.0, 1024 / max(color.shape[:2]))
    color = cv2.resize(color, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return bytes(cv2.imencode(".png", cv2.cvtColor(color, cv2.COLOR_RGB2BGR))[1])
