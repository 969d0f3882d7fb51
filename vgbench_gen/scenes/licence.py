"""Under which terms a scene stands: its dataset's, or those of samples that were made in the dataset's layout."""

from __future__ import annotations

import re
from pathlib import Path

from vgbench_gen.core.errors import SceneError
from vgbench_gen.scenes.files import read_json

SAMPLES_FILE = "SAMPLES.json"
"""Lies at the top of a folder of samples; says by whom they were made, how, and under which licence."""

_LEVELS = 4  # <samples>/data/<scene>/iphone
_MAX_BYTES = 1_000_000
_LICENCE_ID = re.compile(r"[a-z0-9][a-z0-9.+-]{0,39}")


def find_licence(scene: Path, of_dataset: str) -> str:
    """Licence id of the scene at a path: that of the samples it is one of, else that of its dataset.

    A file that cannot be read says nothing: the scene keeps its dataset's terms, which are the stricter ones.
    """
    for folder in scene.resolve().parents[:_LEVELS]:
        path = folder / SAMPLES_FILE
        if not path.is_file():
            continue
        try:
            stated = read_json(path, path, _MAX_BYTES)
        except SceneError:
            continue
        licence = stated.get("licence") if isinstance(stated, dict) else None
        if isinstance(licence, str) and _LICENCE_ID.fullmatch(licence):
            return licence
    return of_dataset
