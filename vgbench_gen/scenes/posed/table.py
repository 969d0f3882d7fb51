"""Recordings whose files are pictures and tables, as the columns of `FileLayout` say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vgbench_gen.core.errors import FormatError, SceneError
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import open_regular
from vgbench_gen.scenes.posed.cameras import StatedIntrinsics, read_intrinsics, take_numbers
from vgbench_gen.scenes.posed.layout import OWN, FileLayout
from vgbench_gen.scenes.posed.listed import ListedFrame, make_recording
from vgbench_gen.scenes.posed.pairing import list_matching, number_files, pair_files, pair_poses
from vgbench_gen.scenes.posed.pixels import COLOR_SUFFIXES, DEPTH_SUFFIXES
from vgbench_gen.scenes.posed.poses import StoredPose, read_pose_file, read_poses
from vgbench_gen.scenes.posed.records import StoredRecording

_HEAD_BYTES = 1000  # of a text file whose comments may name the camera
_CAMERA_GAP = 0.0051  # of files of intrinsics: ARKit's times differ by a millisecond


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording in a folder. Raises SceneError."""
    issues: list[Issue] = []
    found = {"depth": list_matching(folder, layout.depth, DEPTH_SUFFIXES, issues)}
    found["color"] = [
        path for path in list_matching(folder, layout.color, COLOR_SUFFIXES, issues) if path not in set(found["depth"])
    ]
    for kind, paths in found.items():
        if not paths:
            pattern = getattr(layout, kind) or f"named by `{kind}`"
            remedy = f"Name `{kind}` in {OWN}; docs/howto/own-recordings.md shows one."
            raise SceneError(folder, f"no picture {pattern}", f"pictures of {kind}", remedy)
    colors, depths = number_files(found["color"]), number_files(found["depth"])
    paired = pair_files(colors, depths, layout.max_gap_s)
    unsure = number_files(list_matching(folder, layout.confidence, (".png",), issues))
    confidences = pair_files({path: depths[path] for path in paired.values()}, unsure, layout.max_gap_s)
    poses, how, order = _read_poses(folder, layout, colors, issues)
    find_intrinsics = _find_cameras(folder, layout, colors, issues)
    entries = []
    for path in colors:
        lacks = [what for what, there in (("depth", path in paired), ("pose", path in poses)) if not there]
        if lacks:
            reason = "pose_missing" if lacks == ["pose"] else "incomplete"
            issues.append(Issue(path.stem, reason, f"{path.name} has no {' and no '.join(lacks)}"))
            continue
        try:
            depth, pose, intrinsics = paired[path], poses[path], find_intrinsics(path)
            sure = confidences.get(depth)
            entries.append(ListedFrame(path.stem, pose.time_s, path, depth, sure, intrinsics, pose.stored))
        except FormatError as problem:
            issues.append(Issue(path.stem, "unusable_file", str(problem)))
    recording = make_recording(folder, layout, entries, len(colors), issues)
    recording.pairing, recording.order = f"{len(poses)} poses {how}", order
    return recording


def _read_poses(
    folder: Path, layout: FileLayout, colors: dict[Path, float], issues: list[Issue]
) -> tuple[dict[Path, StoredPose], str, str]:
    """Poses by picture, how they were paired, and the order of quaternions."""
    files = list_matching(folder, layout.poses, (), issues)
    if not files:
        found = f"no file {layout.poses or 'named by `poses`'}"
        remedy = "A recording without poses needs a SLAM or COLMAP run first; docs/howto/own-recordings.md names some."
        raise SceneError(folder, found, "the poses of the camera", remedy)
    if len(files) == 1 and (len(colors) > 1 or layout.pose_columns):
        rows, order = read_poses(files[0], layout.pose_columns, issues)
        return *pair_poses(colors, rows, layout.max_gap_s, folder), order
    poses = {}
    for path, file in pair_files(colors, number_files(files), layout.max_gap_s).items():
        try:
            poses[path] = StoredPose(str(file), read_pose_file(file), colors[path])
        except FormatError as problem:
            issues.append(Issue(file.stem, "bad_pose", str(problem)))
    return poses, "by number", ""


def _find_cameras(
    folder: Path, layout: FileLayout, colors: dict[Path, float], issues: list[Issue]
) -> Callable[[Path], StatedIntrinsics]:
    """What gives the intrinsics of a picture."""
    stated = layout.camera
    if isinstance(stated, str):
        files = list_matching(folder, stated, (), issues)
        if len(files) > 1:
            near = pair_files(colors, number_files(files), _CAMERA_GAP)
            return lambda path: read_intrinsics(near.get(path, Path(f"{path.stem} of {stated}")))
        numbers = read_intrinsics(files[0]) if files else None
    else:
        heads = [_read_head(path) for path in sorted(folder.glob("*.txt")) if layout.cameras and path.is_file()]
        words = " ".join([folder.name, folder.parent.name, *heads]).lower()
        stated = stated or next((of for word, of in layout.cameras.items() if word in words), ())
        numbers = take_numbers(stated, folder) if stated else None
    if numbers is None:
        expected, remedy = "fx, fy, cx, cy in pixels", f"Add camera = [fx, fy, cx, cy] to {OWN}."
        raise SceneError(folder, "no intrinsics of the camera", expected, remedy)
    return lambda path: numbers


def _read_head(path: Path) -> str:
    with open_regular(path, path) as file:
        return file.read(_HEAD_BYTES).decode("utf-8", "replace")
