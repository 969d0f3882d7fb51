"""A recording as a scene: poses by its reading, pictures undistorted and upright."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from hashlib import blake2b

import numpy as np

from vgbench_gen.core.errors import FormatError, FrameError, PoseError, SceneError
from vgbench_gen.core.types import Camera, DepthArray, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import check_pose, invert, transform
from vgbench_gen.geometry.projection import back_project_depth, project, valid_mask
from vgbench_gen.scenes._lazy_frame import LazyFrame
from vgbench_gen.scenes._lens import Lens, Undistorter
from vgbench_gen.scenes._turned import count_turns_to_upright, turn_upright
from vgbench_gen.scenes.base import DepthKind, Frame, Issue, Scene, SceneObject, SceneRef
from vgbench_gen.scenes.files import compute_source_digest
from vgbench_gen.scenes.licence import find_licence
from vgbench_gen.scenes.opening import gather_depth
from vgbench_gen.scenes.posed.layout import FIND, FileLayout
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.promised import require_frames
from vgbench_gen.scenes.readings import OTHER_OF, OTHER_ORDER, Reading, measure_agreement, measure_ray_lengths

LICENCE = "of-its-owner"
_NON_METRIC_DEPTH = 2.0  # what the median depth of a recording without a unit is set to, so that gates apply
_TRIED = 20  # frames whose depth may be damaged or empty before the first that has some


class PosedScene(Scene):
    """One recording of somebody's own, or of a dataset without a loader of its own."""

    needs_decision = True

    def __init__(self, ref: SceneRef, recording: StoredRecording) -> None:
        layout = recording.layout
        self.dataset, self.id, self.split = ref.dataset, ref.scene_id, ref.split
        self.variant = layout.title
        self.depth_kind: DepthKind = layout.depth_kind
        self.licence = find_licence(ref.path, layout.licence or LICENCE)
        self.metric = layout.metric
        self.issues, self.total_frames = recording.issues, recording.total
        self.objects: Sequence[SceneObject] = recording.objects
        self.quaternions = recording.order
        self._close = recording.close
        require_frames(ref.path, recording.records, self.total_frames, self.issues)
        if not layout.metric:
            recording.records = scale_records(recording.records, ref.path)
        stored = np.stack([record.stored for record in recording.records])
        self.source_digest = _digest_recording(recording, stored)
        found = self._find_reading(ref, recording, stored) if layout.axes == FIND else layout.reading
        poses = found.apply(stored, self.quaternions)
        # The rotations are right now, as if the files had been read so at once.
        self.reading = Reading(found.direction, found.axes)
        if found.rotation == OTHER_ORDER:
            self.quaternions = OTHER_OF[self.quaternions]
        self.pairing = ", quaternions ".join(filter(None, (recording.pairing, self.quaternions)))
        if layout.poses_of == "depth":
            poses = poses @ invert(_read_color_from_depth(layout))
        frames: list[Frame] = []
        for record, pose in zip(recording.records, poses, strict=True):
            try:
                frames.append(_make_frame(record, *check_pose(pose, f"{ref.path}, frame {record.id}"), layout))
            except FormatError as problem:
                reason = "bad_pose" if isinstance(problem, PoseError) else "unusable_file"
                self.issues.append(Issue(record.id, reason, str(problem)))
        require_frames(ref.path, frames, self.total_frames, self.issues)
        self.up_world: FloatArray | None = None
        if layout.up is not None:
            self.up_world = np.array(layout.up) / np.linalg.norm(layout.up)
            turns = count_turns_to_upright([frame.world_from_camera for frame in frames], self.up_world)
            frames = [turn_upright(frame, k) for frame, k in zip(frames, turns, strict=True)]
        self.frames: Sequence[Frame] = tuple(frames)

    def close(self) -> None:
        self._close()

    def _find_reading(self, ref: SceneRef, recording: StoredRecording, stored: FloatArray) -> Reading:
        """The reading that the pictures bear out. Raises SceneError."""
        frames = [_make_frame(record, np.eye(4), 0.0, recording.layout) for record in recording.records]
        if recording.layout.poses_of == "depth":
            raise SceneError(ref.path, "axes = find with poses of depth", "a stated reading", "State `axes`.")
        found = measure_agreement(gather_depth(frames, stored), order=self.quaternions)
        if found.best is None:
            why = f"What fits: {found.problem}." if found.problem else found.doubt
            raise SceneError(ref.path, "poses of which no reading is clearly right", "one that is", why)
        return found.best


def _digest_recording(recording: StoredRecording, stored: FloatArray) -> str:
    """Digest of the files of a recording, and of all that was read of its poses, cameras, boxes and layout."""
    numbers = blake2b(stored.tobytes())
    for found in recording.objects:
        numbers.update(f"{found.instance_id} {found.label} ".encode())
        for values in (found.box.center_m, found.box.size_m, found.box.rotation):
            numbers.update(values.tobytes())
    lenses = sorted({repr(record.lens) for record in recording.records})
    about = [numbers.hexdigest(), recording.layout.model_dump_json(), *lenses]
    return compute_source_digest([*recording.digest, ("read", *about)])


def scale_records(records: Sequence[StoredFrame], where: object) -> list[StoredFrame]:
    """Records of a recording without a unit, poses and depth scaled alike: the first depth has a median of 2.

    Raises:
        SceneError: none of the first frames has depth.
    """
    for record in records[:_TRIED]:
        try:
            depth = record.depth()
        except FrameError:
            continue
        known = depth[valid_mask(depth)]
        if len(known):
            scale = _NON_METRIC_DEPTH / float(np.median(known))
            shift = np.array([[1.0, 1.0, 1.0, scale]] * 3 + [[1.0] * 4])
            return [replace(r, depth=partial(_multiply, r.depth, scale), stored=r.stored * shift) for r in records]
    raise SceneError(where, f"no depth in the first {min(_TRIED, len(records))} frames", "depth", "Check its files.")


def _multiply(read: Callable[[], DepthArray], scale: float) -> DepthArray:
    return np.asarray(read() * np.float32(scale), np.float32)


def _make_frame(record: StoredFrame, pose: FloatArray, deviation: float, layout: FileLayout) -> LazyFrame:
    undistorter = None if record.lens.is_pinhole else _make_undistorter(record.lens)
    camera = undistorter.camera if undistorter else record.lens.camera
    stored_camera = record.depth_camera or resize_camera(record.lens.camera, *record.depth_size)
    is_moved = undistorter is not None or layout.color_from_depth
    depth_camera = resize_camera(camera, *record.depth_size) if is_moved else stored_camera
    read, hide, color = record.depth, record.hide, record.color
    if layout.depth_along == "ray":
        read = partial(_lay_along_axis, read, stored_camera)
    if layout.color_from_depth:
        read = partial(render_from, read, stored_camera, _read_color_from_depth(layout), depth_camera)
    return LazyFrame(
        record.id, record.time_s, pose, deviation, camera, color, record.encoded, depth_camera, read,
        None if hide is None else lambda: hide(color()), None, undistorter, not layout.color_from_depth,
    )  # fmt: skip


def _read_color_from_depth(layout: FileLayout) -> FloatArray:
    """(4, 4), the identity where both cameras are one. Raises SceneError."""
    if not layout.color_from_depth:
        return np.eye(4)
    if len(layout.color_from_depth) != 12:
        raise SceneError("color_from_depth", f"{len(layout.color_from_depth)} numbers", "12, of [R | t]", "Mend it.")
    return np.vstack([np.reshape(layout.color_from_depth, (3, 4)), (0.0, 0.0, 0.0, 1.0)])


@cache
def _make_undistorter(lens: Lens) -> Undistorter:
    return Undistorter(lens, "the camera of color")


def _lay_along_axis(read: Callable[[], DepthArray], camera: Camera) -> DepthArray:
    return np.asarray(read() / measure_ray_lengths(camera), np.float32)


def render_from(
    read: Callable[[], DepthArray], camera: Camera, color_from_depth: FloatArray, color_camera: Camera
) -> DepthArray:
    """(h, w) float32 z-depth in a color camera of what a depth camera beside it measured; 0 where nothing falls.

    color_camera: at the resolution that depth is to have.
    """
    points = transform(color_from_depth, back_project_depth(camera, read())[0])
    uv, z = project(color_camera, points)
    column, row = np.rint(np.where(np.isfinite(uv), uv, -1)).astype(np.int64).T
    inside = (column >= 0) & (column < color_camera.width) & (row >= 0) & (row < color_camera.height)
    nearest = np.full((color_camera.height, color_camera.width), np.inf, np.float32)
    np.minimum.at(nearest, (row[inside], column[inside]), z[inside].astype(np.float32))
    return np.where(np.isfinite(nearest), nearest, 0).astype(np.float32)
