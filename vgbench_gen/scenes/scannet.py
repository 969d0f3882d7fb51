"""ScanNet v1/v2 scans: `.sens` streams and every exported lay-out in use, with objects of the annotated mesh.

The delivered world is the axis-aligned one: `axisAlignment` of `<scanId>.txt` moves poses and mesh alike; scans without
it (the test set) keep their own world, which is z-up as well. Format: `ScanNet/ScanNet` repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FormatError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import check_pose
from vgbench_gen.scenes._cameras import parse_keys
from vgbench_gen.scenes._lazy_frame import LazyFrame
from vgbench_gen.scenes._scannet_frames import Recording, find_exported_variant, open_exported, open_sens
from vgbench_gen.scenes._scannet_objects import is_annotated, read_objects
from vgbench_gen.scenes.base import DatasetInfo, Issue, Loader, Scene, SceneRef, loaders
from vgbench_gen.scenes.files import compute_source_digest, inside, parse_matrix, read_text
from vgbench_gen.scenes.licence import find_licence
from vgbench_gen.scenes.promised import LOST, require_frames, try_to_read
from vgbench_gen.scenes.walk import estimate_bytes, find_split, walk

LICENCE = "scannet-tou"
_SCAN_ID = re.compile(r"scene\d{4}_\d{2}")
# Where one scan is on disk in several lay-outs, the least processed one is read.
_PREFERENCE = ("sens", "exported", "exported_cpp", "frames_25k", "posed_images", "")
_DERIVED = ("frames_25k", "posed_images", "")
_LIST_FOLDERS = ("", "Tasks/Benchmark", "splits", "meta_data")
_OWN_AXES = "the scan keeps its own axes"
_UP: FloatArray = np.array([0.0, 0.0, 1.0])


class ScanNetScene(Scene):
    """One scan."""

    dataset = "scannet"
    depth_kind = "sensor"

    def __init__(self, ref: SceneRef, folder: Path, recording: Recording, home: Path, keys: dict[str, str]) -> None:
        self.id, self.split = ref.scene_id, ref.split
        self.licence = find_licence(folder, LICENCE)
        self.up_world = _UP.copy()
        self.issues = recording.issues
        self.total_frames = recording.total_frames
        self._source = recording.source
        # Test scans have neither annotation nor alignment, the others have both.
        stated = self.split in ("train", "val") or (self.split == "unknown" and "axisAlignment" in keys)
        annotated = stated or is_annotated(home, self.id)
        path = home / f"{self.id}.txt"
        promised = annotated or (recording.variant == "sens" and not path.exists())
        world_from_file = _read_alignment(path, keys, promised, self.issues)
        self.frames = list(_open_frames(recording, world_from_file, self.issues))
        require_frames(folder, self.frames, self.total_frames, self.issues)
        self.objects, digest = read_objects(home, self.id, world_from_file, self.up_world, annotated, self.issues)
        self.source_digest = compute_source_digest(
            [*recording.digest, *digest, ("alignment", world_from_file.tolist())]
        )

    def close(self) -> None:
        self._source.close()


INFO = DatasetInfo(
    title="ScanNet",
    licence="ScanNet-TOU",
    terms="ScanNet Terms of Use",
    url="https://github.com/ScanNet/ScanNet",
    may_publish_pixels=False,
    reason=(
        "signed agreement, non-commercial research and education; others get access only after they accept "
        "the terms; no clause seen that permits posting frames"
    ),
    caution=(
        "ScanNet's training scenes are in the training data of many models: report ScanNet apart. The "
        "column `split` says to which official split a scene belongs."
    ),
    citation=r"""@inproceedings{dai2017scannet,
  title     = {ScanNet: Richly-annotated 3D Reconstructions of Indoor Scenes},
  author    = {Dai, Angela and Chang, Angel X. and Savva, Manolis and Halber, Maciej and Funkhouser, Thomas and Nie{\ss}ner, Matthias},
  booktitle = {Proc. Computer Vision and Pattern Recognition (CVPR), IEEE},
  year      = {2017},
}""",  # noqa: E501
)


@loaders.register("scannet")
class ScanNet(Loader):
    """ScanNet scans, found by the names of their folders (`scene0000_00`)."""

    dataset = "scannet"
    info = INFO

    def discover(self, root: Path) -> Iterator[SceneRef]:
        found: dict[str, list[SceneRef]] = {}
        lists: dict[Path, dict[str, str]] = {}
        for folder, entries in walk(root.resolve()):
            if not _SCAN_ID.fullmatch(folder.name):
                continue
            entries.clear()
            variant, size_bytes = _find_variant(folder)
            places = (above / below for above in folder.parents[:4] for below in _LIST_FOLDERS)
            split = find_split(folder.name, places, "scannetv2_*.txt", lists)
            if split == "unknown" and folder.parent.name in ("scans_test", "scannet_frames_test"):
                split = "test"
            ref = SceneRef(self.dataset, folder.name, folder, variant, split, size_bytes)
            found.setdefault(folder.name, []).append(ref)
        for name in sorted(found):
            first, *others = sorted(found[name], key=lambda ref: _PREFERENCE.index(ref.variant))
            # What was derived from a scan is no second one.
            yield from [first, *(ref for ref in others if ref.variant not in _DERIVED or ref.variant == first.variant)]

    def open(self, ref: SceneRef) -> ScanNetScene:
        folder = ref.path.parent if ref.path.suffix == ".sens" else ref.path
        home = _find_annotation_folder(folder, ref.scene_id)
        path, issues, keys = home / f"{ref.scene_id}.txt", list[Issue](), dict[str, str]()
        if path.exists():
            keys = parse_keys(try_to_read(issues, lambda: read_text(inside(home, path), path), _OWN_AXES) or "")
        sens, exported = _find_sens_file(folder), find_exported_variant(folder)
        if sens is not None:
            recording = open_sens(inside(folder, sens))
        elif exported is not None:
            recording = open_exported(folder, *exported, keys)
        else:
            expected = "a .sens file or exported frames (color/, depth/, pose/, intrinsic/, or _info.txt beside them)"
            raise SceneError(folder, "no frames", expected, "Download or export the scan, or remove the folder.")
        with close_if_raised(recording.source.close):
            recording.issues += issues
            return ScanNetScene(ref, folder, recording, home, keys)


def _open_frames(recording: Recording, world_from_file: FloatArray, issues: list[Issue]) -> Iterator[LazyFrame]:
    for number, raw, time_s in zip(recording.numbers, recording.poses, recording.times_s, strict=True):
        # The official reader takes a zero in the corner for lost tracking, too.
        if not np.isfinite(raw).all() or raw[0, 0] == 0:
            issues.append(Issue(str(number), "lost_pose", "tracking was lost"))
            continue
        try:
            file_from_camera, deviation = check_pose(raw, f"frame {number}")
        except FormatError as problem:
            issues.append(Issue(str(number), "bad_pose", str(problem)))
            continue
        pose = world_from_file @ file_from_camera
        source = recording.source
        yield LazyFrame(
            str(number),
            time_s,
            pose,
            deviation,
            recording.color_camera,
            partial(source.color, number),
            partial(source.encoded_color, number),
            recording.depth_camera,
            partial(source.depth_m, number),
        )


def _read_alignment(path: Path, keys: dict[str, str], promised: bool, issues: list[Issue]) -> FloatArray:
    """`axisAlignment` (4, 4), rigid; the identity where it is missing or senseless (the world is z-up either way)."""
    where, text = f"{path}, axisAlignment", keys.get("axisAlignment")
    if text is not None:
        found = try_to_read(issues, lambda: check_pose(parse_matrix(text, where, ((4, 4),)), where), _OWN_AXES)
        return np.eye(4) if found is None else found[0]
    if promised and not any(str(path) in issue.detail for issue in issues):
        issues.append(Issue("", LOST[0], f"{path}: no axisAlignment; {_OWN_AXES}"))
    return np.eye(4)


def _find_annotation_folder(folder: Path, scan_id: str) -> Path:
    """Where `<scanId>.txt` and the mesh lie: the folder itself, or that of the scan beside a derived set."""
    home = folder.parent.parent
    candidates = [folder, home / "scans" / scan_id, home / "scans_test" / scan_id]
    return next((c for c in candidates if (c / f"{scan_id}.txt").is_file() and not c.is_symlink()), folder)


def _find_sens_file(folder: Path) -> Path | None:
    own = folder / f"{folder.name}.sens"
    return own if own.is_file() else next(iter(sorted(folder.glob("*.sens"))), None)


def _find_variant(folder: Path) -> tuple[str, int]:
    """Lay-out ("" if none) and about how many bytes of frames there are."""
    sens = _find_sens_file(folder)
    if sens is not None:
        return "sens", sens.stat().st_size if sens.is_file() else 0
    exported = find_exported_variant(folder)
    if exported is None:
        return "", 0
    variant, base = exported
    return variant, estimate_bytes(base / "color" if (base / "color").is_dir() else base)
