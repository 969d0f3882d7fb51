"""ScanNet++ (v1 and v2): iPhone and DSLR captures. What is on disk: `docs/formats.md#scannet-iphone-and-dslr`.

A ScanNet++ scene gives up to two of ours, "<scene>/iphone" and "<scene>/dslr"; both live in the frame of the
aligned mesh: meters, z up. The root may be the dataset's (`data/`, `splits/`), its `data/`, or any folder up to a
few levels above scene folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from vgbench_gen.core.errors import SceneError
from vgbench_gen.scenes._scannetpp_captures import MESH_NAME, DslrScene, IphoneScene, ScanNetPPScene
from vgbench_gen.scenes.base import DatasetInfo, Loader, Scene, SceneRef, loaders
from vgbench_gen.scenes.licence import find_licence
from vgbench_gen.scenes.walk import estimate_bytes, is_folder, read_split_list, stays_inside, walk

_CAPTURES: dict[str, type[ScanNetPPScene]] = {"dslr": DslrScene, "iphone": IphoneScene}
_SCENE_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}")
_STREAMS = ("rgb.mkv", "rgb.mp4", "depth.bin")
_PICTURE_FOLDERS = ("rgb", "depth", "resized_images", "resized_undistorted_images", "undistorted_images")


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
        refs: list[SceneRef] = []
        splits: dict[Path, dict[str, str]] = {}
        root = root.resolve()
        for scene, entries in walk(root):
            devices = [entry for entry in entries if entry.name in _CAPTURES and is_folder(entry)]
            if not devices or not _SCENE_NAME.fullmatch(scene.name):
                continue
            entries.clear()
            for device in devices:
                folder = scene / device.name
                if (device.is_symlink() and not stays_inside(root, folder)) or _is_empty(folder):
                    continue
                name, split = f"{scene.name}/{device.name}", _split(scene, splits)
                size_bytes = _measure_size_bytes(scene, folder)
                refs.append(SceneRef(self.dataset, name, folder, device.name, split, size_bytes))
        yield from sorted(refs, key=lambda ref: ref.scene_id)

    def open(self, ref: SceneRef) -> Scene:
        """Open one scene. Raises SceneError."""
        device = ref.scene_id.rpartition("/")[2]
        if device not in _CAPTURES or not ref.path.is_dir():
            found = f"{ref.scene_id!r} at {ref.path}"
            raise SceneError(ref.path, found, "<scene>/iphone or <scene>/dslr and its folder", "List the scenes again.")
        scene = _CAPTURES[device](ref)
        scene.licence = find_licence(ref.path, scene.licence)
        return scene


def _is_empty(folder: Path) -> bool:
    try:
        return next(folder.iterdir(), None) is None
    except OSError:  # opening it says what is wrong
        return False


def _measure_size_bytes(scene: Path, folder: Path) -> int:
    """Bytes of the large files, roughly: for scheduling."""
    files = [*(folder / name for name in _STREAMS), scene / "scans" / MESH_NAME]
    total = sum(path.stat().st_size for path in files if path.is_file())
    return total + sum(estimate_bytes(folder / name) for name in _PICTURE_FOLDERS)


def _split(scene: Path, known: dict[Path, dict[str, str]]) -> str:
    """Split of a scene by the lists of `splits/`, a sibling of its folder or of `data/`."""
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
            found.update((line.strip(), name) for line in read_split_list(path).splitlines() if line.strip())
    return found
