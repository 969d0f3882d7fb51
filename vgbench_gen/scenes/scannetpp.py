"""ScanNet++ (v1 and v2): iPhone and DSLR captures. What is on disk: `docs/formats.md#scannet-iphone-and-dslr`.

A ScanNet++ scene gives up to two of ours, "<scene>/iphone" and "<scene>/dslr"; both live in the frame of the
aligned mesh: meters, z up. The root may be the dataset's (`data/`, `splits/`), its `data/`, or any folder up to a
few levels above scene folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from vgbench_gen.scenes._scannetpp_captures import MESH_NAME, DslrScene, IphoneScene, ScanNetPPScene
from vgbench_gen.scenes.base import DatasetInfo, Loader, Scene, SceneRef, loaders
from vgbench_gen.scenes.licence import find_licence
from vgbench_gen.scenes.walk import estimate_bytes, find_split, is_folder, stays_inside, walk

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
                name, places = f"{scene.name}/{device.name}", (above / "splits" for above in scene.parents[:2])
                split = find_split(scene.name, places, "*.txt", splits)
                size_bytes = _measure_size_bytes(scene, folder)
                refs.append(SceneRef(self.dataset, name, folder, device.name, split, size_bytes))
        yield from sorted(refs, key=lambda ref: ref.scene_id)

    def open(self, ref: SceneRef) -> Scene:
        scene = _CAPTURES[ref.scene_id.rpartition("/")[2]](ref)
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
