"""Recordings whose files are pictures and tables, as the columns of `FileLayout` say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.cameras import StatedIntrinsics, read_intrinsics, take_numbers
from vgbench_gen.scenes.posed.layout import OWN, FileLayout
from vgbench_gen.scenes.posed.listed import ListedFrame, make_recording
from vgbench_gen.scenes.posed.pairing import list_matching, match_keys, number_files, pair_files, pair_poses
from vgbench_gen.scenes.posed.pixels import COLOR_SUFFIXES, DEPTH_SUFFIXES
from vgbench_gen.scenes.posed.poses import StoredPose, read_pose_file, read_poses
from vgbench_gen.scenes.posed.records import StoredRecording

_HEAD_BYTES = 1000  # of a text file whose comments may name the camera
_CAMERA_GAP = 0.0051  # of files of intrinsics: ARKit's times differ by a millisecond


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording in a folder. Raises SceneError."""
    issues: list[Issue] = []
    sizes = {kind: list_matching(folder, getattr(layout, kind), suffixes, issues) for kind, suffixes in (
        ("color", COLOR_SUFFIXES), ("depth", DEPTH_SUFFIXES), ("confidence", (".png",)))}  # fmt: skip
    sizes["color"] = {path: size for path, size in sizes["color"].items() if path not in sizes["depth"]}
    for kind in ("color", "depth"):
        if not sizes[kind]:
            pattern = getattr(layout, kind)
            raise SceneError(
                folder, f"no picture {pattern or 'named by `' + kind + '`'}", f"pictures of {kind}", _mend(kind)
            )
    colors, depths, unsure = (number_files(list(sizes[kind])) for kind in ("color", "depth", "confidence"))
    paired = pair_files(colors, depths, layout.max_gap_s)
    confidences = pair_files({path: depths[path] for path in paired.values()}, unsure, layout.max_gap_s)
    poses, how, order = _read_poses(folder, layout, colors, issues)
    find_intrinsics = _find_cameras(folder, layout, issues)
    entries = []
    for path, key in colors.items():
        lacks = [what for what, there in (("depth", path in paired), ("pose", path in poses)) if not there]
        if lacks:
            reason = "pose_missing" if lacks == ["pose"] else "incomplete"
            issues.append(Issue(path.stem, reason, f"{path.name} has no {' and no '.join(lacks)}"))
            continue
        try:
            depth, pose, intrinsics = paired[path], poses[path], find_intrinsics(key)
            sure = confidences.get(depth)
            entries.append(ListedFrame(path.stem, pose.time_s, path, depth, sure, intrinsics, pose.stored))
        except FormatError as problem:
            issues.append(Issue(path.stem, "unusable_file", str(problem)))
    recording = make_recording(folder, layout, entries, len(colors), issues)
    recording.pairing, recording.order = f"{len(poses)} poses {how}", order
    return recording


def _mend(kind: str) -> str:
    return f"Name `{kind}` in {OWN}; docs/howto/own-recordings.md shows one."


def _read_poses(
    folder: Path, layout: FileLayout, colors: dict[Path, float], issues: list[Issue]
) -> tuple[dict[Path, StoredPose], str, str]:
    files = list(list_matching(folder, layout.poses, (), issues))
    if not files:
        found = f"no file {layout.poses or 'named by `poses`'}"
        remedy = "A recording without poses needs a SLAM or COLMAP run first; docs/howto/own-recordings.md names some."
        raise SceneError(folder, found, "the poses of the camera", remedy)
    if len(files) == 1 and "*" not in files[0].name and (len(colors) > 1 or layout.pose_columns):
        rows, order = read_poses(files[0], layout.pose_columns, issues)
        found_poses, how = pair_poses(colors, rows, layout.max_gap_s, folder)
        return found_poses, how, order
    keys = number_files(files)
    rows = []
    for path, key in keys.items():
        try:
            rows.append(StoredPose(str(path), read_pose_file(path), key, int(key) if key.is_integer() else None))
        except FormatError as problem:
            issues.append(Issue(path.stem, "bad_pose", str(problem)))
    by_file = {Path(row.where): row for row in rows}
    paired = pair_files(colors, {path: keys[path] for path in by_file}, layout.max_gap_s)
    return {path: by_file[file] for path, file in paired.items()}, "by number", ""


def _find_cameras(folder: Path, layout: FileLayout, issues: list[Issue]) -> Callable[[float], StatedIntrinsics]:
    """What gives the intrinsics of the frame with a number or time."""
    stated = layout.camera
    if not isinstance(stated, str) and stated:
        fixed = take_numbers(stated, folder)
        return lambda key: fixed
    files = list(list_matching(folder, stated, (), issues)) if isinstance(stated, str) else []
    if len(files) == 1:
        single = read_intrinsics(files[0])
        return lambda key: single
    if files:
        keys = number_files(files)
        paths, times = list(keys), np.array(list(keys.values()))

        def find(key: float) -> StatedIntrinsics:
            near = match_keys(np.array([key]), times, _CAMERA_GAP)
            if not near:
                raise FrameError(folder, f"no file of intrinsics for {key:g}", "one a frame")
            return read_intrinsics(paths[near[0]])

        return find
    words = " ".join([folder.name, folder.parent.name, *_read_heads(folder, layout)]).lower()
    for word, numbers in layout.cameras.items():
        if word in words:
            chosen = take_numbers(numbers, folder)
            return lambda key: chosen
    raise SceneError(
        folder, "no intrinsics of the camera", "fx, fy, cx, cy in pixels", f"Add camera = [fx, fy, cx, cy] to {OWN}."
    )


def _read_heads(folder: Path, layout: FileLayout) -> list[str]:
    heads = []
    for sign in (name for signs in layout.signs for name in signs.split("|")):
        path = folder / sign
        if layout.cameras and sign.endswith(".txt") and path.is_file():
            with path.open("rb") as file:
                heads.append(file.read(_HEAD_BYTES).decode("utf-8", "replace"))
    return heads
