"""A scene as tasks see it: keyframes at delivered size, gates applied, pairs measured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

import numpy as np

from vgbench_gen.core.errors import FrameError
from vgbench_gen.core.gates import FrameGates, Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray, Rejected
from vgbench_gen.geometry import poses, projection, visibility
from vgbench_gen.geometry.overlap import compute_pairwise_overlap
from vgbench_gen.scenes._view_frame import (
    GREY_WIDTH,
    Float32Array,
    Spool,
    ViewFrame,
    make_delivered_camera,
    make_delivered_color,
)
from vgbench_gen.scenes.base import Frame, Scene, SceneObject

__all__ = [
    "GREY_WIDTH",
    "Float32Array",
    "SceneView",
    "ViewFrame",
    "choose_keyframes",
    "make_delivered_camera",
    "make_delivered_color",
    "measure_cycle_errors",
]  # fmt: skip

_TABLE_DEPTH_WIDTH = 256  # depth is strided to about this for pair tables; single pairs are measured at full size
_TABLE_FRAMES = 64  # copied at a time


class SceneView:
    """Keyframes of one scene that passed the frame gates, and what relates them.

    frames: loaded keyframes in capture order. rejected: frames that failed a gate. objects: world-frame objects.
    tolerance: visibility tolerance of this kind of depth. near_m, far_m: range in which depth is believed.
    """

    def __init__(
        self, scene: Scene, gates: Gates, frame_ids: Iterable[str] | None = None, wide: bool | Collection[str] = True
    ) -> None:
        """Load keyframes; with `frame_ids` exactly those, ungated (to look again at published items).

        wide: whether images are kept from which crops are cut (`gates.frame.wide_side_px`), or the ids of the frames of
            which they are; each takes time.
        """
        self.dataset, self.id, self.split, self.licence = scene.dataset, scene.id, scene.split, scene.licence
        self.up_world, self.depth_kind = scene.up_world, scene.depth_kind
        self.objects: Sequence[SceneObject] = scene.objects
        self.building: Sequence[SceneObject] = scene.building
        self.gates = gates
        laser = scene.depth_kind == "laser"
        self.tolerance = visibility.LASER if laser else visibility.SENSOR
        self.near_m, self.far_m = gates.depth.near_m, gates.depth.far_laser_m if laser else gates.depth.far_sensor_m
        self.rejected: list[Rejected] = []
        self._spool = Spool()
        if frame_ids is None:
            chosen = [scene.frames[i] for i in choose_keyframes(scene.frames, gates.frame)]
        else:
            wanted = set(frame_ids)
            chosen = [frame for frame in scene.frames if frame.id in wanted]
        wide_ids = {frame.id for frame in chosen} if wide is True else set(wide or ())
        frames = self._load(chosen, wide_ids, keeps_small=frame_ids is None)
        self.frames = frames if frame_ids is not None else self._gated(frames)
        self._by_id = {frame.id: frame for frame in self.frames}

    def frame(self, frame_id: str) -> ViewFrame:
        """The keyframe of that id.

        Raises:
            FrameError: it is not among the usable keyframes.
        """
        try:
            return self._by_id[frame_id]
        except KeyError:
            raise FrameError(
                f"{self.dataset} {self.id} frame {frame_id}",
                "no usable frame",
                "a readable frame with a valid pose",
                "Check that this is the scan the dataset was made from.",
            ) from None

    def close(self) -> None:
        """Drop the kept image bytes."""
        self._spool.close()

    @cached_property
    def overlap(self) -> FloatArray:
        """(F, F) share of frame i's sampled points that frame j sees (depth-tested); diagonal 0."""
        count = len(self.frames)
        table = np.zeros((count, count))
        shapes = {frame.depth_m.shape for frame in self.frames}  # portrait and landscape in one capture
        for shape in sorted(shapes):
            alike = [j for j, frame in enumerate(self.frames) if frame.depth_m.shape == shape]
            step = max(1, round(shape[1] / _TABLE_DEPTH_WIDTH))
            for group in (alike[first : first + _TABLE_FRAMES] for first in range(0, len(alike), _TABLE_FRAMES)):
                depths_m = np.stack([self.frames[j].depth_m[::step, ::step] for j in group])
                Ks = np.stack([self.frames[j].depth_camera.K for j in group])
                Ks[:, :2] /= step  # striding keeps pixel (0, 0) where it is, so the centre rule needs no half pixel
                world_from_cameras = np.stack([self.frames[j].world_from_camera for j in group])
                for i, frame in enumerate(self.frames):
                    table[i, group] = compute_pairwise_overlap(
                        frame.samples[1], Ks, depths_m, world_from_cameras, self.tolerance, min_decided=30
                    )
        np.fill_diagonal(table, 0)
        return table

    @cached_property
    def mutual_overlap(self) -> FloatArray:
        """(F, F) the smaller of both directions."""
        return np.minimum(self.overlap, self.overlap.T)

    @cached_property
    def relative(self) -> FloatArray:
        """(F, F, 4, 4) second_from_first: entry [i, j] maps coordinates of camera i to camera j."""
        world_from_camera = np.stack([frame.world_from_camera for frame in self.frames])
        return np.asarray(poses.invert(world_from_camera)[None, :] @ world_from_camera[:, None])

    def project_to_all(self, points_world: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Points (N, 3) in every keyframe: (delivered pixels (F, N, 2), z in meters (F, N), in the image (F, N))."""
        camera_from_world, Ks, sizes = self._stacked
        in_camera = np.einsum("fij,nj->fni", camera_from_world[:, :3, :3], points_world, optimize=True)
        in_camera += camera_from_world[:, None, :3, 3]
        z_m = in_camera[..., 2]
        focal, centre = Ks[:, [0, 1], [0, 1]], Ks[:, :2, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            uv_px = in_camera[..., :2] / z_m[..., None] * focal[:, None] + centre[:, None]
            inside = (z_m > 0) & ((uv_px >= -0.5) & (uv_px < sizes[:, None] - 0.5)).all(axis=-1)
        return uv_px, z_m, inside

    def depths_at(self, indices: Sequence[int], uv_px: FloatArray) -> FloatArray:
        """As `ViewFrame.depth_at` for several keyframes at once: delivered pixels (n, N, 2) to meters (n, N).

        0 where unknown, outside, or NaN.
        """
        centre, scale, depth_centre, size = (values[indices, None] for values in self._pixel_maps)
        uv = (uv_px - centre) * scale + depth_centre
        with np.errstate(invalid="ignore"):
            inside = np.asarray(((uv >= -0.5) & (uv < size - 0.5)).all(axis=-1))
        nearest = np.minimum(np.floor(np.where(inside[..., None], uv, 0.0) + 0.5), size - 1).astype(np.int64)
        depths = [self.frames[i].depth_m[pixel[:, 1], pixel[:, 0]] for i, pixel in zip(indices, nearest, strict=True)]
        return np.where(inside, np.array(depths, dtype=np.float64), 0.0)

    @cached_property
    def _pixel_maps(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """(F, 2) each, of `cameras.map_pixels` to the depth image: centre, scale, depth centre; depth size."""
        Ks = np.stack([frame.camera.K for frame in self.frames])
        depth_Ks = np.stack([frame.depth_camera.K for frame in self.frames])
        sizes = np.array([frame.depth_camera.size for frame in self.frames], dtype=np.float64)
        focal, depth_focal = Ks[:, [0, 1], [0, 1]], depth_Ks[:, [0, 1], [0, 1]]
        return Ks[:, :2, 2], depth_focal / focal, depth_Ks[:, :2, 2], sizes

    @cached_property
    def _stacked(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return (
            np.stack([frame.camera_from_world for frame in self.frames]),
            np.stack([frame.camera.K for frame in self.frames]),
            np.array([frame.camera.size for frame in self.frames], dtype=np.float64),
        )

    def distinct_frames(self, rng: np.random.Generator) -> list[ViewFrame]:
        """Keyframes in random order without near-duplicates of earlier ones: two groups of a single-image task must
        differ by more than `gates.pair.distinct_turn_deg` or `distinct_shift_m`."""
        limits = self.gates.pair
        picked: list[ViewFrame] = []
        for i in rng.permutation(len(self.frames)):
            frame = self.frames[i]
            if picked:
                others = np.stack([other.world_from_camera for other in picked])
                turn_deg, shift_m = turn_and_shift(frame.world_from_camera, others)
                if ((turn_deg <= limits.distinct_turn_deg) & (shift_m <= limits.distinct_shift_m)).any():
                    continue
            picked.append(frame)
        return picked

    def pose_agreement(self) -> tuple[float, float, int]:
        """(median cycle error in pixels at 640 wide, share of co-visible samples within tolerance, pairs used).

        Over up to `SceneGates.pairs` random overlapping pairs that turn no further than pairs that are asked about:
        the wider the turn, the more the noise of depth shows, and the less an error of poses. NaN, NaN, 0
        where there is none.
        """
        if not self.frames:
            return float("nan"), float("nan"), 0
        turns_deg = poses.rotation_angle_deg(self.relative[..., :3, :3])
        usable = (self.mutual_overlap >= 0.2) & (turns_deg <= self.gates.pair.rotation_max_deg)
        first, second = np.nonzero(np.triu(usable, 1))
        if len(first) == 0:
            return float("nan"), float("nan"), 0
        rng = rng_for(0, "pose_agreement", self.dataset, self.id)
        picked = rng.permutation(len(first))[: self.gates.scene.pairs]
        cycles, agreeing, looked = [], 0, 0
        for i, j in zip(first[picked], second[picked], strict=True):
            cycle_px, agree, known = measure_cycle_errors(self.frames[i], self.frames[j], self)
            cycles.append(cycle_px * GREY_WIDTH / self.frames[i].camera.width)
            agreeing, looked = agreeing + agree, looked + known
        all_cycles = np.concatenate(cycles)
        median = float(np.median(all_cycles)) if len(all_cycles) else float("nan")
        return median, agreeing / max(looked, 1), len(picked)

    def _load(self, chosen: Sequence[Frame], wide_ids: set[str], keeps_small: bool) -> list[ViewFrame]:
        frames, gates = [], self.gates.frame
        for frame in chosen:
            wide_side_px = gates.wide_side_px if frame.id in wide_ids else 0
            try:
                loaded = ViewFrame(frame, gates.long_side_px, self._spool, wide_side_px, keeps_small, self.depth_kind)
                frames.append(loaded)
            except FrameError as error:
                self._reject(frame.id, "unreadable", float("nan"), float("nan"), str(error))
        return frames

    def _gated(self, frames: list[ViewFrame]) -> list[ViewFrame]:
        gates = self.gates.frame
        median = float(np.median([frame.sharpness for frame in frames] or [0.0]))
        limit = max(gates.sharpness_min, gates.sharpness_of_median_min * median)
        kept = []
        for frame in frames:
            if frame.sharpness < limit:
                self._reject(frame.id, "blurred", frame.sharpness, limit)
            elif frame.depth_valid < gates.depth_valid_min:
                self._reject(frame.id, "depth_coverage", frame.depth_valid, gates.depth_valid_min)
            else:
                kept.append(frame)
        return kept

    def _reject(self, frame_id: str, reason: str, value: float, limit: float, detail: str = "") -> None:
        self.rejected.append(Rejected("frame", self.dataset, self.id, frame_id, reason, value, limit, detail))


def measure_cycle_errors(a: ViewFrame, b: ViewFrame, view: SceneView) -> tuple[FloatArray, int, int]:
    """Pixels of A to B by A's depth and back by B's depth: (errors of agreeing points in pixels of A, how many
    samples agree with B's depth, how many have a known depth in B and are not hidden)."""
    uv_px, points = a.samples
    uv_b, z_b = projection.project_world(b.camera, b.world_from_camera, points)
    inside = projection.is_in_image(b.camera, uv_b)
    measured = np.zeros(len(points))
    measured[inside] = b.depth_at(uv_b[inside])
    allowed = view.tolerance.of(z_b)
    known = inside & (measured > 0) & (z_b - measured <= 2 * allowed)  # clearly hidden points say nothing
    agree = known & (np.abs(z_b - measured) <= allowed)
    # From the exact, not the rounded, pixel of B: rounding would add up to 0.7 px that say nothing about the cameras.
    back, _ = projection.project_world(a.camera, a.world_from_camera, b.points_at(uv_b[agree]))
    errors = np.linalg.norm(back - uv_px[agree], axis=-1)
    return errors[np.isfinite(errors)], int(agree.sum()), int(known.sum())


def choose_keyframes(frames: Sequence[Frame], gates: FrameGates) -> IntArray:
    """Frames at least a turn or a shift apart from the last kept one, thinned by farthest point to the maximum."""
    if not frames:
        return np.zeros(0, dtype=np.int64)
    world_from_camera = np.stack([frame.world_from_camera for frame in frames])
    kept = [0]
    for i in range(1, len(frames)):
        if _compute_distance(world_from_camera[kept[-1]], world_from_camera[i : i + 1], gates)[0] >= 1:
            kept.append(i)
    if len(kept) <= gates.max_keyframes:
        return np.array(kept, dtype=np.int64)
    pool = world_from_camera[kept]
    chosen = [0]
    nearest = _compute_distance(pool[0], pool, gates)
    while len(chosen) < gates.max_keyframes:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _compute_distance(pool[chosen[-1]], pool, gates))
    indices: IntArray = np.array(kept, dtype=np.int64)[np.sort(chosen)]
    return indices


def _compute_distance(pose: FloatArray, others: FloatArray, gates: FrameGates) -> FloatArray:
    turn_deg, shift_m = turn_and_shift(pose, others)
    distance: FloatArray = np.maximum(turn_deg / gates.keyframe_turn_deg, shift_m / gates.keyframe_shift_m)
    return distance


def turn_and_shift(pose: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Angles, degrees, and distances, meters, (N,) each, between one pose (4, 4) and others (N, 4, 4)."""
    turn_deg = poses.rotation_angle_deg(np.swapaxes(pose[:3, :3], -1, -2) @ others[:, :3, :3])
    return turn_deg, np.asarray(np.linalg.norm(others[:, :3, 3] - pose[:3, 3], axis=-1))
