"""ScanNet++ (v1 and v2): iPhone and DSLR captures. What is on disk: `docs/formats.md#scannet-iphone-and-dslr`.

A ScanNet++ scene gives up to two of ours, "<scene>/iphone" and "<scene>/dslr"; both live in the frame of the
aligned mesh: metres, z up. The root may be the dataset's (`data/`, `splits/`), its `data/`, or any folder up to a
few levels above scene folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from vgbench_gen.core.errors import SceneError
from vgbench_gen.scenes._scannetpp_dslr import DslrOpener
from vgbench_gen.scenes._scannetpp_frames import MESH_NAME
from vgbench_gen.scenes._scannetpp_iphone import IphoneOpener
from vgbench_gen.scenes._scannetpp_opener import CaptureOpener
from vgbench_gen.scenes.base import DatasetInfo, Loader, Scene, SceneRef, loaders
from vgbench_gen.scenes.files import inside, read_text
from vgbench_gen.scenes.licence import find_licence
from vgbench_gen.scenes.walk import is_folder

_OPENERS: dict[str, type[CaptureOpener]] = {"dslr": DslrOpener, "iphone": IphoneOpener}
_SCENE_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}")
# The dataset below a folder of datasets: <root>/scannetpp/data/<scene>.
_MAX_LEVELS = 3
# Inside scenes of other datasets and of this one; they may hold thousands of files.
_NOT_SEARCHED = frozenset(
    [
        *("color", "depth", "pose", "intrinsic", "rgb", "rgb_masks", "masks", "images"),
        *("scans", "splits", "metadata", "panocam", "colmap", "nerfstudio"),
    ]
)
_MAX_ENTRIES = 20_000
_STREAMS = ("rgb.mkv", "rgb.mp4", "depth.bin")
_PICTURE_FOLDERS = ("rgb", "depth", "resized_undistorted_images", "resized_images")


INFO = DatasetInfo(
    title="ScanNet++",
    licence="ScanNetpp-TOU",
    terms="ScanNet++ Terms of Use",
    url="https://kaldir.vc.in.tum.de/scannetpp/",
    may_publish_pixels=False,
    reason=(
        "non-commercial; data may go only to associates who signed as well; frames and close derivatives "
        "may not be shared otherwise"
    ),
    citation=r"""@inproceedings{yeshwanth2023scannetpp,
  title     = {ScanNet++: A High-Fidelity Dataset of 3D Indoor Scenes},
  author    = {Yeshwanth, Chandan and Liu, Yueh-Cheng and Nie{\ss}ner, Matthias and Dai, Angela},
  booktitle = {Proceedings of the IEEE/CVF International Conference on Computer Vision (ICCV)},
  pages     = {12--22},
  year      = {2023},
}""",
)


@loaders.register("scannetpp")
class ScanNetPP(Loader):
    """Loader of ScanNet++."""

    dataset = "scannetpp"
    info = INFO

    def discover(self, root: Path) -> Iterator[SceneRef]:
        """One reference per device of each scene, sorted by id; opens the split lists only."""
        refs: dict[str, SceneRef] = {}
        splits: dict[Path, dict[str, str]] = {}
        root = root.resolve()
        for scene in _list_scene_folders(root, root, _MAX_LEVELS):
            for device in _OPENERS:
                folder = scene / device
                if not _has_entries(root, folder):
                    continue
                scene_id = f"{scene.name}/{device}"
                split = _split(scene, splits)
                refs.setdefault(
                    scene_id,
                    SceneRef(self.dataset, scene_id, folder, device, split, _measure_size_bytes(scene, folder)),
                )
        yield from (refs[scene_id] for scene_id in sorted(refs))

    def open(self, ref: SceneRef) -> Scene:
        """Open one scene. Raises SceneError."""
        device = ref.scene_id.rpartition("/")[2]
        if device not in _OPENERS or not ref.path.is_dir():
            found = f"{ref.scene_id!r} at {ref.path}"
            raise SceneError(ref.path, found, "<scene>/iphone or <scene>/dslr and its folder", "List the scenes again.")
        with ExitStack() as resources:
            scene = _OPENERS[device](ref, resources).open()
        scene.licence = find_licence(ref.path, scene.licence)
        return scene


def _list_scene_folders(root: Path, folder: Path, levels: int) -> Iterator[Path]:
    """Folders with an `iphone` or `dslr` folder in them, at most `levels` below; not inside one another."""
    if not _is_inside(root, folder):
        return
    try:
        with os.scandir(folder) as entries:
            names = []
            for number, entry in enumerate(entries):
                if number >= _MAX_ENTRIES:
                    break
                if is_folder(entry):
                    names.append(entry.name)
    except OSError:
        return
    if any(device in names for device in _OPENERS) and _SCENE_NAME.fullmatch(folder.name):
        yield folder
        return
    if levels > 0:
        for name in sorted(names):
            if name not in _NOT_SEARCHED and not name.startswith("."):
                yield from _list_scene_folders(root, folder / name, levels - 1)


def _is_inside(root: Path, path: Path) -> bool:
    try:
        inside(root, path)
    except SceneError:
        return False
    return True


def _has_entries(root: Path, folder: Path) -> bool:
    try:
        return folder.is_dir() and _is_inside(root, folder) and next(folder.iterdir(), None) is not None
    except OSError:
        return False


def _measure_size_bytes(scene: Path, folder: Path) -> int:
    """Bytes of the large files, roughly: for scheduling."""
    total = 0
    for path in [*(folder / name for name in _STREAMS), scene / "scans" / MESH_NAME]:
        if path.is_file():
            total += path.stat().st_size
    for name in _PICTURE_FOLDERS:
        # Not there or not readable: the sum only orders work, opening says what is wrong.
        with suppress(OSError), os.scandir(folder / name) as entries:
            total += sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    return total


def _split(scene: Path, known: dict[Path, dict[str, str]]) -> str:
    """Split of a scene by the lists of `splits/` beside its folder or beside `data/`."""
    for above in (scene.parent, scene.parent.parent):
        folder = above / "splits"
        if folder not in known:
            known[folder] = _read_splits(folder)
        if scene.name in known[folder]:
            return known[folder][scene.name]
    return "unknown"


def _read_splits(folder: Path) -> dict[str, str]:
    """Scene name to split. A scene listed for testing anywhere is a test scene, then one for validation."""
    found: dict[str, str] = {}
    if not folder.is_dir():
        return found
    of_list: dict[str, list[Path]] = {"train": [], "val": [], "test": []}  # later ones win
    for path in sorted(folder.glob("*.txt"))[:100]:
        words = path.stem.split("_")
        split: str = next((s for s in ("test", "val", "train") if s in words), "")
        if split:
            of_list[split].append(path)
    for name, paths in of_list.items():
        for path in paths:
            try:
                text = read_text(path, path)
            except SceneError:
                continue
            found.update((line.strip(), name) for line in text.splitlines() if line.strip())
    return found
