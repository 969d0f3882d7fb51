"""CA-1M: one uncompressed tar per capture, read in place, or the same files extracted.

Source: `apple/ml-cubifyanything: README.md, cubifyanything/dataset.py`. Every frame was turned upright by itself,
so width and height, K, pose, depth and boxes are all its own. Depth is the one rendered from the laser scan, which
fits the boxes better than the device's LiDAR depth (`apple/ml-cubifyanything: issues/2`); that is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FrameError, PoseError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.stand_ins import HEAD_BYTES as STAND_IN_BYTES
from vgbench_gen.core.stand_ins import describe_stand_in
from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import angle_between_deg, check_pose
from vgbench_gen.scenes._ca1m_boxes import read_frame_objects, read_world_objects
from vgbench_gen.scenes._ca1m_members import Members
from vgbench_gen.scenes._cameras import choose_camera
from vgbench_gen.scenes._lazy_frame import check_aspect
from vgbench_gen.scenes.base import (
    DatasetInfo,
    DepthKind,
    Frame,
    FrameObject,
    Issue,
    Loader,
    Scene,
    SceneObject,
    SceneRef,
    loaders,
)
from vgbench_gen.scenes.files import (
    MAX_JSON_BYTES,
    check_depth_header,
    compute_source_digest,
    decode_depth_m,
    decode_image_rgb,
    keep_plain,
    parse_matrix,
)
from vgbench_gen.scenes.licence import find_licence
from vgbench_gen.scenes.plausible import check_plausible
from vgbench_gen.scenes.promised import LOST, note_without, require_frames, try_to_read
from vgbench_gen.scenes.walk import is_folder, is_regular, stays_inside, walk

MAX_DEPTH_M = 10.0
"""Where the official viewer cuts the laser depth."""
MAX_GRAVITY_ERROR_DEG = 5.0
LICENCE = "cc-by-nc-nd-4.0"

_ARCHIVE = re.compile(r"(?:ca1m-(train|val|test)-)?(\d+)\.tar", re.ASCII)
_PARENT = re.compile(r"ca1m-(train|val|test)-\d+", re.ASCII)
_FRAME_FOLDER = re.compile(r"\d+\.(wide|gt)", re.ASCII)
_NO_OBJECTS = "the scene has no objects"
_NEEDED = ("wide/image", "wide/image/k", "gt/rt", "gt/depth")
_BYTES_PER_FRAME = 940_000  # of the official captures; orders extracted folders by size without listing them


class CA1MFrame(Frame):
    """One frame."""

    def __init__(self, members: Members, names: Mapping[str, str], frame_id: str, issues: list[Issue]) -> None:
        self._members, self._names = members, names
        self.id = frame_id
        self.timestamp_s = int(frame_id) / 1e9
        RT = members.where(names["gt/rt"])
        self.world_from_camera, self.pose_deviation = check_pose(
            parse_matrix(members.json(names["gt/rt"]), RT, [(4, 4)]), RT
        )
        self.camera, self._made_for = self._stream("wide/image", "_wide/image/size", issues)
        self.depth_camera, _ = self._stream("gt/depth", "_gt/depth/size", issues)
        self._check_gravity(issues)

    def color(self) -> ColorArray:
        name = self._names["wide/image"]
        return decode_image_rgb(self._members.read(name), self._members.where(name), self.camera.size)

    def encoded_color(self) -> bytes | None:
        name = self._names["wide/image"]
        return keep_plain(self._members.read(name), self._members.where(name), self.camera.size)

    def depth_m(self) -> DepthArray:
        name = self._names["gt/depth"]
        where, size = self._members.where(name), self.depth_camera.size
        return decode_depth_m(self._members.read(name), where, size, MAX_DEPTH_M)

    def objects(self) -> Sequence[FrameObject]:
        name = self._names.get("wide/instances")
        if name is None:
            return ()
        value = self._members.json(name, MAX_JSON_BYTES)
        return read_frame_objects(value, self.camera, self._made_for, self._members.where(name))

    def _stream(self, measurement: str, entry: str, issues: list[Issue]) -> tuple[Camera, tuple[int, int]]:
        """Camera of one picture and the size its entry states; without own K that of the colour image, resized."""
        name = self._names[measurement]
        where = self._members.where(name)
        header = self._members.picture(name)
        if "depth" in measurement:
            check_depth_header(header, where)
        actual = header.size
        stated = self._size_entry(entry, issues)
        K_name = self._names.get(f"{measurement}/k")
        if K_name is None:
            check_aspect(actual, self.camera.size, f"{where}, without K", FrameError, 0.01)
            return resize_camera(self.camera, *actual), actual
        K = parse_matrix(self._members.json(K_name), self._members.where(K_name), [(3, 3), (4, 4)])
        camera, repair = choose_camera(K, stated, actual, where)
        if repair:
            issues.append(Issue(self.id, repair, f"{where}: {actual}, its size entry says {stated}"))
        return camera, stated if stated is not None and repair == "k_rescaled" else actual

    def _size_entry(self, measurement: str, issues: list[Issue]) -> tuple[int, int] | None:
        name = self._names.get(measurement)
        if name is None:
            return None
        try:
            width, height = parse_matrix(self._members.json(name), self._members.where(name), [(2,)]).tolist()
            check_plausible("image side", (width, height), self._members.where(name))
            return int(width), int(height)
        except FrameError as error:
            issues.append(Issue(self.id, "size_entry_unusable", str(error)))
            return None

    def _check_gravity(self, issues: list[Issue]) -> None:
        """T_gravity maps the levelled camera (y along gravity) to the camera, so up there is -T_gravity[:, 1]."""
        name = self._names.get("wide/t_gravity")
        if name is None:
            return
        try:
            T = parse_matrix(self._members.json(name), self._members.where(name), [(3, 3), (4, 4)])
        except FrameError as error:
            issues.append(Issue(self.id, "gravity_unusable", str(error)))
            return
        angle = float(angle_between_deg(-T[:3, 1], self.world_from_camera[2, :3])) if np.isfinite(T).all() else np.nan
        if not angle <= MAX_GRAVITY_ERROR_DEG:
            detail = f"T_gravity and RT disagree about up by {angle:.1f} degrees"
            issues.append(Issue(self.id, "gravity_disagrees", detail))


class CA1MScene(Scene):
    """One capture."""

    def __init__(self, ref: SceneRef) -> None:
        members = Members(ref.path)
        self._members = members
        self.dataset, self.id, self.split = "ca1m", members.video_id, ref.split
        self.up_world: FloatArray | None = np.array([0.0, 0.0, 1.0])
        self.depth_kind: DepthKind = "laser"
        self.licence = find_licence(ref.path, LICENCE)
        self.issues = list(members.issues)
        self.total_frames = len(members.frames)
        self.source_digest = compute_source_digest(members.sizes.items())
        self.frames: Sequence[Frame] = self._open_frames()
        self.objects: Sequence[SceneObject] = ()
        without = [frame_id for frame_id, names in members.frames.items() if "wide/instances" not in names]
        note_without(self.issues, without, "wide/instances.json")
        if "gt/instances" in members.world:
            read = partial(self._read_objects, members.world["gt/instances"])
            self.objects = try_to_read(self.issues, read, _NO_OBJECTS) or ()
        else:
            name = members.where(f"{self.id}/world.gt/instances.json")
            self.issues.append(Issue("", LOST[0], f"{name}: no such file; {_NO_OBJECTS}"))

    def close(self) -> None:
        self._members.close()

    def _read_objects(self, name: str) -> tuple[SceneObject, ...]:
        value = self._members.json(name, MAX_JSON_BYTES)
        found, issues = read_world_objects(value, self._members.where(name))
        self.issues += issues
        return tuple(found)

    def _open_frames(self) -> tuple[CA1MFrame, ...]:
        frames: list[CA1MFrame] = []
        dropped: list[Issue] = []
        for frame_id, names in self._members.frames.items():
            if missing := [measurement for measurement in _NEEDED if measurement not in names]:
                detail = f"{self._members.where(frame_id)}: no {', '.join(missing)}; download the capture again"
                dropped.append(Issue(frame_id, "incomplete", detail))
                continue
            try:
                frames.append(CA1MFrame(self._members, names, frame_id, self.issues))
            except FrameError as error:
                reason = "bad_pose" if isinstance(error, PoseError) else "unusable_file"
                dropped.append(Issue(frame_id, reason, str(error)))
        self.issues += dropped
        with close_if_raised(self._members.close):
            require_frames(self._members.path, frames, self.total_frames, dropped)
        return tuple(frames)


INFO = DatasetInfo(
    title="CA-1M",
    licence="CC-BY-NC-ND-4.0",
    terms="Creative Commons Attribution-NonCommercial-NoDerivatives 4.0",
    url="https://github.com/apple/ml-cubifyanything/blob/main/data/LICENSE_DATA",
    may_publish_pixels=False,
    reason=(
        "adapted material must not be shared, and images that are turned, cropped, resized or marked are "
        "likely to count as adapted"
    ),
    citation="""@article{lazarow2024cubify,
  title   = {Cubify Anything: Scaling Indoor 3D Object Detection},
  author  = {Lazarow, Justin and Griffiths, David and Kohavi, Gefen and Crespo, Francisco and Dehghan, Afshin},
  journal = {arXiv preprint arXiv:2412.04458},
  year    = {2024},
}""",
)


@loaders.register("ca1m")
class CA1M(Loader):
    """`ca1m-<split>-<id>.tar`, `<id>.tar`, or an extracted `<id>/` whose parent may be called `ca1m-<split>-<id>`."""

    dataset = "ca1m"
    info = INFO
    laser_only = True

    def discover(self, root: Path) -> Iterator[SceneRef]:
        # Beside an archive, its extracted members do not count.
        refs = sorted(self._all(root), key=lambda ref: (ref.scene_id, ref.path.is_dir()))
        archives = {ref.scene_id for ref in refs if not ref.path.is_dir()}
        yield from (ref for ref in refs if not ref.path.is_dir() or ref.scene_id not in archives)

    def open(self, ref: SceneRef) -> CA1MScene:
        return CA1MScene(ref)

    def _all(self, root: Path) -> Iterator[SceneRef]:
        if root.is_file():
            yield from self._archive(root)
            return
        for folder, entries in walk(root):
            frames = [entry for entry in entries if _FRAME_FOLDER.fullmatch(entry.name) and is_folder(entry)]
            if frames:
                name, parent = folder.resolve().name, folder.resolve().parent.name
                named = _PARENT.fullmatch(parent) or _PARENT.fullmatch(name)
                split = named[1] if named else "unknown"
                yield SceneRef("ca1m", name, folder, "", split, len(frames) * _BYTES_PER_FRAME // 2)
                entries.clear()
            for entry in entries:
                path = Path(entry.path)
                safe = not entry.is_symlink() or stays_inside(root, path)
                if safe and _ARCHIVE.fullmatch(entry.name) and is_regular(entry):
                    yield from self._archive(path)

    def _archive(self, path: Path) -> Iterator[SceneRef]:
        named = _ARCHIVE.fullmatch(path.name)
        if named and (named[1] or _is_ca1m_archive(path, named[2])):
            yield SceneRef("ca1m", named[2], path, "", named[1] or "unknown", path.stat().st_size)


def _is_ca1m_archive(path: Path, video_id: str) -> bool:
    """Whether the first member of `<id>.tar` lies in `<id>/`, or a stand-in does; much is called 42898570.tar."""
    try:
        with path.open("rb") as file:
            head = file.read(STAND_IN_BYTES)
    except OSError:
        return False
    return head.startswith(f"{video_id}/".encode()) or describe_stand_in(head) is not None
