"""Posed RGB-D recordings of anybody's own, and of datasets without a loader of their own.

A layout is a row of `layouts.toml`; a folder in no known layout says its own in a `posed.toml` with the same columns.
What files state of poses is not believed: `vgbench_gen.scenes.readings` measures it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.scenes.base import DatasetInfo, Loader, SceneRef, loaders
from vgbench_gen.scenes.posed.layout import OWN, list_layouts, match_file, match_layout, read_own_layout
from vgbench_gen.scenes.posed.records import Reader
from vgbench_gen.scenes.posed.scene import PosedScene
from vgbench_gen.scenes.walk import estimate_bytes, is_folder, is_regular, stays_inside, walk

# Longer numbers are ids of their own, as those of ARKitScenes.
_GENERIC = re.compile(
    r"(seq|scene|capture|data|scan|export|recording|take|images?|frames?|cam|dense)?[-_ ]?\d{0,7}", re.IGNORECASE
)

INFO = DatasetInfo(
    title="Own recordings",
    terms="the terms of their owner",
    url="https://github.com/vgbench/vgbench-gen/blob/main/docs/howto/own-recordings.md",
    reason="only the owner of a recording can say who may see it",
    caution="Depth and poses of own recordings are as good as the device and the program that made them.",
)


@loaders.register("posed")
class Posed(Loader):
    """Any folder with a `posed.toml`, and every layout of `layouts.toml`."""

    dataset = "posed"
    info = INFO
    is_general = True

    def discover(self, root: Path) -> Iterator[SceneRef]:
        yield from sorted(self._find(root), key=lambda ref: (ref.scene_id, ref.path))

    def open(self, ref: SceneRef) -> PosedScene:
        own = ref.path / OWN
        layout = read_own_layout(own) if ref.variant == OWN else list_layouts()[ref.variant]
        readers = sorted({row.reader for row in list_layouts().values()})
        if layout.reader not in readers:
            raise SceneError(own, f"reader {layout.reader!r}", f"one of {', '.join(readers)}", "Mend it.")
        read: Reader = importlib.import_module(f"{__name__}.{layout.reader}").read_recording
        recording = read(ref.path, layout)
        with close_if_raised(recording.close):
            return PosedScene(ref, recording)

    def _find(self, root: Path) -> Iterator[SceneRef]:
        if root.is_file():
            if variant := match_file(root):
                yield SceneRef(self.dataset, _name(root), root, variant, "unknown", root.stat().st_size)
            return
        for folder, entries in walk(root):
            names = [entry.name for entry in entries]
            variant = OWN if OWN in names else match_layout(folder, names)
            if variant:
                size = sum(estimate_bytes(Path(entry.path)) for entry in entries if is_folder(entry))
                yield SceneRef(self.dataset, _name(folder.resolve()), folder, variant, "unknown", size)
                entries.clear()
            for entry in filter(is_regular, entries):
                path = Path(entry.path)
                if (not entry.is_symlink() or stays_inside(root, path)) and (variant := match_file(path)):
                    yield SceneRef(self.dataset, _name(path), path, variant, "unknown", entry.stat().st_size)


def _name(path: Path) -> str:
    """Id of a recording: its name, after those of the folders above where the name alone says little or is a file's."""
    is_file = path.is_file()
    parts = [path.stem if is_file else path.name.removesuffix("_frames")]
    for above in path.parents:
        if not _GENERIC.fullmatch(parts[0]) and len(parts) > is_file:
            break
        if above.name and not above.name.startswith("_"):  # Hypersim: ai_001_001/_detail/cam_00
            parts.insert(0, above.name)
    return "/".join(parts)
