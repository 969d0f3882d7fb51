"""Rooms and pictures that training data must not have: those of published validation and test sets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vgbench_gen.importers.places import TrainingScenes, place_of, read_training_scenes
from vgbench_gen.quality.uniqueness import HASH_BITS_APART
from vgbench_gen.store.dataset import load
from vgbench_gen.training.looks import Look, are_copies
from vgbench_gen.training.rooms import Rooms, scan_rows


@dataclass(frozen=True, slots=True, eq=False)
class TrainingGuard:
    """Rooms and pictures that training data must not have."""

    scenes: tuple[TrainingScenes, ...]
    looks: tuple[Look, ...]
    """How the guarded pictures look."""
    hashes: npt.NDArray[np.uint64]
    """Their perceptual hashes, (N,)."""

    def has_room(self, source: str, scene: str) -> bool:
        """Whether a scan shows a guarded room; source: its data set, "" where it is not known."""
        return any(one.covers(place_of(source, scene, one.visits)) for one in self.scenes)

    def has_picture(self, look: Look) -> bool:
        """Whether a picture is a copy of a guarded one."""
        near = np.flatnonzero(np.bitwise_count(self.hashes ^ np.uint64(look[0])) <= HASH_BITS_APART)
        return any(are_copies(look, self.looks[k]) for k in near.tolist())


def read_guard(paths: Sequence[Path]) -> TrainingGuard:
    """Read what must not occur.

    Args:
        paths: text files with one scene a line, as of `read_training_scenes`; or datasets, whose pictures count too.

    Raises:
        DatasetError: a file or dataset cannot be read.
    """
    shown = Rooms({})
    for path in paths:
        if path.is_dir() or path.suffix == ".parquet":
            deque(scan_rows(load(path), 0, shown, need_pixels=True), maxlen=0)
    looks = tuple({look for look, _ in shown.looks})
    hashes = np.array([look[0] for look in looks], dtype=np.uint64)
    return TrainingGuard(tuple(map(read_training_scenes, paths)), looks, hashes)
