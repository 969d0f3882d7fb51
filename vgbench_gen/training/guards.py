"""Rooms and pictures that training data must not have: those of published validation and test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vgbench_gen.importers.places import TrainingScenes, place_of, read_training_scenes
from vgbench_gen.quality.uniqueness import HASH_BITS_APART, hash_picture
from vgbench_gen.store.dataset import load


@dataclass(frozen=True, slots=True, eq=False)
class TrainingGuard:
    """Rooms and pictures that training data must not have."""

    scenes: tuple[TrainingScenes, ...]
    looks: npt.NDArray[np.uint64]
    """Perceptual hashes of pictures, (N,)."""

    def has_room(self, source: str, scene: str) -> bool:
        """Whether a scan shows a guarded room; source: its data set, "" where it is not known."""
        return any(one.covers(place_of(source, scene, one.visits)) for one in self.scenes)

    def has_picture(self, look: int) -> bool:
        """Whether a picture of this perceptual hash looks like a guarded one."""
        return bool((np.bitwise_count(self.looks ^ np.uint64(look)) <= HASH_BITS_APART).any())


def read_guard(paths: Sequence[Path]) -> TrainingGuard:
    """Read what must not occur.

    Args:
        paths: text files with one scene a line, as of `read_training_scenes`; or datasets, whose pictures count too.

    Raises:
        DatasetError: a file or dataset cannot be read.
    """
    looks: set[int] = set()
    for path in paths:
        if path.is_dir() or path.suffix == ".parquet":
            items, seen = load(path), set[str]()
            for row, item in enumerate(items):
                for k, name in enumerate(item.images):
                    if name not in seen and (look := hash_picture(items.image_bytes(row, k))) is not None:
                        looks.add(look)
                    seen.add(name)
    return TrainingGuard(tuple(map(read_training_scenes, paths)), np.array(sorted(looks), dtype=np.uint64))
