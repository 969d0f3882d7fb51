"""Bags of ROS 1 and ROS 2 with color, depth that is aligned to it, and transforms of the camera.

Depth has color's frame and size (as aligned by `IntelRealSense/realsense-ros`); the pose is composed of
`/tf` and `/tf_static`, from the fixed frame down to the frame of color, which is optical (REP 103).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.bag_pictures import RUN_SLAM, Bag, MessagePlace, choose_streams, find_intrinsics
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pairing import match_once
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.posed.ros_tf import FIXED, Transforms
from vgbench_gen.scenes.promised import list_files


def read_recording(path: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a bag, or of a folder with the files of one. Raises SceneError."""
    names = list_files(path, path, []) if path.is_dir() else [""]
    paths = [path / name for name in names if (path / name).suffix in (".mcap", ".db3", ".bag")]
    if not paths:
        raise SceneError(path, ", ".join(names), "files .mcap, .db3 or .bag", "Unpack it with ros2 bag convert.")
    bag = Bag(paths)
    with close_if_raised(bag.close):
        try:
            return _read(bag, path, layout, [(each.name, each.stat().st_size) for each in paths])
        except FrameError as problem:
            raise SceneError(problem.where, problem.found, problem.expected, problem.remedy) from problem


def _read(bag: Bag, path: Path, layout: FileLayout, digest: list[tuple[object, ...]]) -> StoredRecording:
    color, depth = streams = choose_streams(bag, path)
    lens = find_intrinsics(color, path).make_lens(color.size, layout.first_pixel, path)
    places: dict[str, dict[int, MessagePlace]] = {each.name: {} for each in streams}
    issues, transforms = list[Issue](), Transforms()
    edges = [each for topic in bag.topics.values() for each in topic if each.msgtype.lower().endswith("tfmessage")]
    try:
        for place, data in bag.list_messages([*color.connections, *depth.connections, *edges]):
            name = place.connection.topic
            if name in places:
                places[name].setdefault(place.stamp_ns, place)
                continue
            try:
                transforms.add(bag.parse(place.connection, data), name.endswith("tf_static"))
            except (FrameError, AttributeError, TypeError) as problem:  # the bag may define it without its fields
                issues.append(Issue("", "unusable_file", f"{name}: {problem}"))
    except FrameError as problem:
        issues.append(Issue("", "truncated", f"read up to a damaged place: {problem}"))
    chain = transforms.find_chain(color.frame)
    if not transforms.moves(chain):
        found = f"no transforms that move the camera ({color.frame or 'a frame without a name'}): it has no poses"
        raise SceneError(path, found, "/tf from map, odom or world down to it", RUN_SLAM)
    colors, depths = (sorted(places[each.name].items()) for each in streams)
    color_s, depth_s = (np.array([stamp_ns * 1e-9 for stamp_ns, _ in each]) for each in (colors, depths))
    poses, known = transforms.compose(chain, color_s, layout.max_gap_s)
    stated: dict[str, object] = {"depth_per_meter": 1.0} if depth.coding == "32FC1" else {}
    stated |= {"up": (0.0, 0.0, 1.0)} if chain[0][0].rpartition("/")[2] in FIXED else {}
    layout = layout.model_copy(update={key: each for key, each in stated.items() if key not in layout.model_fields_set})
    pairs, records = match_once(color_s, depth_s, layout.max_gap_s), []
    for i, (stamp_ns, at) in enumerate(colors):
        if i not in pairs or not known[i]:
            reason, lacks = ("pose_missing", "pose") if i in pairs else ("incomplete", "depth")
            issues.append(Issue(str(stamp_ns), reason, f"{color.name} has no {lacks}"))
            continue
        records.append(StoredFrame(
            str(stamp_ns), float(color_s[i]), lens, partial(color.read_color, at), partial(color.read_encoded, at),
            None, depth.size, partial(depth.read_depth, depths[pairs[i]][1], layout), poses[i],
        ))  # fmt: skip
    gap_ms = 1000 * max((abs(color_s[i] - depth_s[j]) for i, j in pairs.items()), default=0.0)
    pairing = f"{color.name} and {depth.name} at most {gap_ms:.0f} ms apart, placed in {chain[0][0]}"
    digest.append((color.name, depth.name))
    return StoredRecording(layout, records, len(colors), issues, digest, pairing, close=bag.close)
