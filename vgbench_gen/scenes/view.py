"""A scene as tasks see it: keyframes at delivered size, depth decoded once, gates applied, pairs measured.

Loading a `ViewFrame` decodes its colour and its depth exactly once. Colour is then kept as the bytes that later
pictures start from (original bytes where nothing changes, lossless PNG otherwise) in an unnamed file on disk, and as
a grey image of at most 640 columns for sharpness, texture and features.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FrameError
from vgbench_gen.core.gates import DepthGates, Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray, Rejected
from vgbench_gen.geometry import cameras, poses, projection, visibility
from vgbench_gen.geometry.overlap import pairwise_overlap
from vgbench_gen.scenes._keyframes import keyframe_indices, turn_and_shift
from vgbench_gen.scenes._spool import Spool
from vgbench_gen.scenes.base import Frame, Scene, SceneObject

Float32Array = npt.NDArray[np.float32]

GREY_WIDTH = 640  # the width at which pixel gates are stated
_TABLE_DEPTH_WIDTH = 256  # depth is strided to about this for pair tables; single pairs are measured at full size
_SAMPLE_COLUMNS = 24  # points per image row for pair tables: 24 x 18 decides an overlap to about 2 %


class ViewFrame:
    """One keyframe at delivered size.

    camera: of the delivered image. depth_camera, depth_m: as the loader gives them, float32 metres, 0 = unknown.
    sharpness: Laplacian variance of `grey`. depth_valid: share of known depth.
    """

    def __init__(self, frame: Frame, long_side_px: int, spool: Spool) -> None:
        self.id = frame.id
        self.world_from_camera = frame.world_from_camera
        self.pose_deviation = frame.pose_deviation
        self.camera = delivered_camera(frame.camera, long_side_px)
        self.depth_camera = frame.depth_camera
        self.source_size = frame.camera.size
        self._frame = frame
        self._spool = spool

        color = frame.color()
        changed = self.camera.size != frame.camera.size
        if changed:
            color = np.asarray(cv2.resize(color, self.camera.size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        self.grey = _grey(color)
        self.sharpness = float(cv2.Laplacian(self.grey, cv2.CV_64F).var())
        original = None if changed else frame.encoded_color()
        self._slot = None if original is not None else spool.put(_png(color))
        self.depth_m = np.array(frame.depth_m(), dtype=np.float32)
        mask = frame.valid_mask()
        if mask is not None:
            self.depth_m[~_mask_at_depth(mask, self.depth_m.shape)] = 0
        self.depth_m.flags.writeable = False
        self.depth_valid = float(np.count_nonzero(self.depth_m) / self.depth_m.size)

    @property
    def frame(self) -> Frame:
        """The loader's frame (masks and its own object list)."""
        return self._frame

    @property
    def camera_from_world(self) -> FloatArray:
        """(4, 4) float64."""
        return poses.invert(self.world_from_camera)

    @property
    def center_m(self) -> FloatArray:
        """(3,) camera centre in the world frame, metres."""
        return np.asarray(self.world_from_camera[:3, 3])

    def base_image(self) -> tuple[bytes, str]:
        """The bytes that pictures of this frame start from, and their suffix ("jpg" or "png")."""
        data = self._frame.encoded_color() if self._slot is None else self._spool.get(self._slot)
        if data is None:
            raise FrameError(self.id, "no original bytes", "the bytes that were there before", "Report this.")
        return data, "jpg" if data[:2] == b"\xff\xd8" else "png"

    def depth_uv(self, uv_px: FloatArray) -> FloatArray:
        """Delivered pixels (..., 2) as depth pixels (..., 2)."""
        return cameras.map_pixels(self.depth_camera, self.camera, uv_px)

    def depth_at(self, uv_px: FloatArray) -> FloatArray:
        """Nearest measured depth, metres, at delivered pixels (..., 2); 0 where unknown or outside."""
        return np.asarray(projection.sample_nearest(self.depth_m, self.depth_uv(uv_px), outside=0), dtype=np.float64)

    def depth_patch(self, rect_px: Sequence[float]) -> DepthArray:
        """(h, w) measured depth whose pixel centres lie in the delivered rectangle (x1, y1, x2, y2), ends included."""
        low = np.ceil(self.depth_uv(np.array(rect_px[:2], dtype=np.float64) - 0.5)).astype(int)
        high = np.floor(self.depth_uv(np.array(rect_px[2:], dtype=np.float64) + 0.5)).astype(int)
        low = np.maximum(low, 0)
        return self.depth_m[low[1] : max(high[1] + 1, low[1]), low[0] : max(high[0] + 1, low[0])]

    def points_at(self, uv_px: FloatArray) -> FloatArray:
        """(..., 3) world points of delivered pixels (..., 2) by their measured depth; NaN where unknown."""
        z_m = self.depth_at(uv_px)
        camera_points = projection.back_project(self.camera, uv_px, np.where(z_m > 0, z_m, np.nan))
        return poses.transform(self.world_from_camera, camera_points)

    @cached_property
    def samples(self) -> tuple[FloatArray, FloatArray]:
        """((N, 2) delivered pixels on a regular grid with known depth, (N, 3) world points), fixed per frame."""
        step = self.camera.width / _SAMPLE_COLUMNS
        u, v = np.meshgrid(np.arange(step / 2, self.camera.width, step), np.arange(step / 2, self.camera.height, step))
        uv_px = np.floor(np.stack([u.ravel(), v.ravel()], axis=-1))
        known = self.depth_at(uv_px) > 0
        uv_px = uv_px[known]
        return uv_px, self.points_at(uv_px)

    def edge_mask(self, gates: DepthGates) -> BoolArray:
        """(h, w) depth pixels too near a depth step or unknown depth to carry a point."""
        radius_px = gates.edge_guard_px_at_640 * self.depth_camera.width / GREY_WIDTH
        return visibility.depth_edge_mask(self.depth_m, radius_px, gates.edge_step_m, gates.edge_step_relative)

    @cached_property
    def features(self) -> tuple[FloatArray, Float32Array]:
        """SIFT on `grey`: ((N, 2) delivered pixels, (N, 128) float32 descriptors), strongest 1,500."""
        found, descriptors = cv2.SIFT.create(nfeatures=1500).detectAndCompute(self.grey, None)
        if descriptors is None or not found:
            return np.zeros((0, 2)), np.zeros((0, 128), np.float32)
        scale = self.camera.width / self.grey.shape[1]
        uv_px = (np.array([point.pt for point in found], dtype=np.float64) + 0.5) * scale - 0.5
        return uv_px, np.asarray(descriptors, dtype=np.float32)

    @cached_property
    def corner_count(self) -> int:
        """FAST corners on `grey`, a cheap measure of how much there is to match."""
        return len(cv2.FastFeatureDetector.create(threshold=12).detect(self.grey))

    @cached_property
    def texture(self) -> Float32Array:
        """(h, w) smaller eigenvalue of the structure tensor on `grey`."""
        return np.asarray(cv2.cornerMinEigenVal(self.grey, blockSize=7), dtype=np.float32)


def delivered_camera(camera: Camera, long_side_px: int) -> Camera:
    """The camera after the image is shrunk (never enlarged) to a long side of at most `long_side_px`."""
    long_side = max(camera.size)
    if long_side <= long_side_px:
        return camera
    scale = long_side_px / long_side
    return cameras.resized(camera, max(1, round(camera.width * scale)), max(1, round(camera.height * scale)))


class SceneView:
    """Keyframes of one scene that passed the frame gates, and what relates them.

    frames: loaded keyframes in capture order. rejected: frames that failed a gate. objects: world-frame objects.
    tolerance: visibility tolerance of this kind of depth. near_m, far_m: range in which depth is believed.
    """

    def __init__(self, scene: Scene, gates: Gates, frame_ids: Iterable[str] | None = None) -> None:
        """Load keyframes; with `frame_ids` exactly those, ungated (to look again at published items)."""
        self.dataset, self.id, self.split, self.licence = scene.dataset, scene.id, scene.split, scene.licence
        self.up_world, self.depth_kind = scene.up_world, scene.depth_kind
        self.objects: Sequence[SceneObject] = scene.objects
        self.gates = gates
        laser = scene.depth_kind == "laser"
        self.tolerance = visibility.LASER if laser else visibility.SENSOR
        self.near_m, self.far_m = gates.depth.near_m, gates.depth.far_laser_m if laser else gates.depth.far_sensor_m
        self.rejected: list[Rejected] = []
        self._spool = Spool()
        if frame_ids is None:
            chosen = [scene.frames[i] for i in keyframe_indices(scene.frames, gates.frame)]
        else:
            wanted = set(frame_ids)
            chosen = [frame for frame in scene.frames if frame.id in wanted]
        frames = self._load(chosen)
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
            group = [j for j, frame in enumerate(self.frames) if frame.depth_m.shape == shape]
            step = max(1, round(shape[1] / _TABLE_DEPTH_WIDTH))
            depths_m = np.stack([self.frames[j].depth_m[::step, ::step] for j in group])
            Ks = np.stack([self.frames[j].depth_camera.K for j in group])
            Ks[:, :2] /= step  # striding keeps pixel (0, 0) where it is, so the centre rule needs no half pixel
            world_from_cameras = np.stack([self.frames[j].world_from_camera for j in group])
            for i, frame in enumerate(self.frames):
                table[i, group] = pairwise_overlap(
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
        """Points (N, 3) in every keyframe: (delivered pixels (F, N, 2), z in metres (F, N), in the image (F, N))."""
        camera_from_world, Ks, sizes = self._stacked
        in_camera = np.einsum("fij,nj->fni", camera_from_world[:, :3, :3], points_world, optimize=True)
        in_camera += camera_from_world[:, None, :3, 3]
        z_m = in_camera[..., 2]
        focal, centre = Ks[:, [0, 1], [0, 1]], Ks[:, :2, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            uv_px = in_camera[..., :2] / z_m[..., None] * focal[:, None] + centre[:, None]
            inside = (z_m > 0) & ((uv_px >= -0.5) & (uv_px < sizes[:, None] - 0.5)).all(axis=-1)
        return uv_px, z_m, inside

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

        Over up to `gates.scene.pairs` random overlapping pairs; NaN, NaN, 0 where no two frames overlap.
        """
        first, second = np.nonzero(np.triu(self.mutual_overlap >= 0.2, 1))
        if len(first) == 0:
            return float("nan"), float("nan"), 0
        rng = rng_for(0, "pose_agreement", self.dataset, self.id)
        picked = rng.permutation(len(first))[: self.gates.scene.pairs]
        cycles, agreeing, looked = [], 0, 0
        for i, j in zip(first[picked], second[picked], strict=True):
            cycle_px, agree, known = cycle_errors(self.frames[i], self.frames[j], self)
            cycles.append(cycle_px * GREY_WIDTH / self.frames[i].camera.width)
            agreeing, looked = agreeing + agree, looked + known
        all_cycles = np.concatenate(cycles)
        median = float(np.median(all_cycles)) if len(all_cycles) else float("nan")
        return median, agreeing / max(looked, 1), len(picked)

    def _load(self, chosen: Sequence[Frame]) -> list[ViewFrame]:
        frames = []
        for frame in chosen:
            try:
                frames.append(ViewFrame(frame, self.gates.frame.long_side_px, self._spool))
            except FrameError as error:
                self._reject(frame.id, "unreadable", float("nan"), float("nan"), str(error))
        return frames

    def _gated(self, frames: list[ViewFrame]) -> list[ViewFrame]:
        if not frames:
            return []
        gates = self.gates.frame
        median = float(np.median([frame.sharpness for frame in frames]))
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


def cycle_errors(a: ViewFrame, b: ViewFrame, view: SceneView) -> tuple[FloatArray, int, int]:
    """Pixels of A to B by A's depth and back by B's depth: (errors of agreeing points in pixels of A, how many
    samples agree with B's depth, how many have a known depth in B and are not hidden)."""
    uv_px, points = a.samples
    uv_b, z_b = projection.project_world(b.camera, b.world_from_camera, points)
    inside = projection.in_image(b.camera, uv_b)
    measured = np.zeros(len(points))
    measured[inside] = b.depth_at(uv_b[inside])
    allowed = view.tolerance.of(z_b)
    known = inside & (measured > 0) & (z_b - measured <= 2 * allowed)  # clearly hidden points say nothing
    agree = known & (np.abs(z_b - measured) <= allowed)
    if not agree.any():
        return np.zeros(0), 0, int(known.sum())
    # From the exact, not the rounded, pixel of B: rounding would add up to 0.7 px that say nothing about the cameras.
    back, _ = projection.project_world(a.camera, a.world_from_camera, b.points_at(uv_b[agree]))
    errors = np.linalg.norm(back - uv_px[agree], axis=-1)
    return errors[np.isfinite(errors)], int(agree.sum()), int(known.sum())


def _grey(color: ColorArray) -> ColorArray:
    grey = cv2.cvtColor(color, cv2.COLOR_RGB2GRAY)
    if grey.shape[1] > GREY_WIDTH:
        height = max(1, round(grey.shape[0] * GREY_WIDTH / grey.shape[1]))
        grey = cv2.resize(grey, (GREY_WIDTH, height), interpolation=cv2.INTER_AREA)
    return np.asarray(grey, dtype=np.uint8)


def _png(color: ColorArray) -> bytes:
    # Level 1: a picture base is read once or twice, so speed matters more than a tenth of its size.
    done, data = cv2.imencode(".png", color[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 1])
    if not done:
        raise ValueError(f"PNG encoder refused an image of shape {color.shape}")
    return data.tobytes()


def _mask_at_depth(mask: BoolArray, shape: tuple[int, ...]) -> BoolArray:
    small = cv2.resize(mask.astype(np.uint8), (shape[1], shape[0]), interpolation=cv2.INTER_NEAREST)
    return np.asarray(small, dtype=np.uint8) > 0
