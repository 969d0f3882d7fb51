"""What one test process makes on disk, all test processes of a run read."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import pytest

Made = TypeVar("Made")


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` fills, an empty one, in the process that asks first; never to be written into later."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder, done = root / f"shared-{name}", root / f"shared-{name}.done"
    with (root / f"shared-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def recall_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> Made:
    """What `make` returned in the process that asked first, which may name files below its folder."""

    def keep(folder: Path) -> None:
        (folder / "made").mkdir()
        (folder / "returned").write_bytes(pickle.dumps(make(folder / "made")))

    return cast("Made", pickle.loads((make_once(factory, name, keep) / "returned").read_bytes()))
