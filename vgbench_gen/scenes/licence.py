"""Under which terms a scene stands: its dataset's, or those of samples that were made in the dataset's layout."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.paths import inside
from vgbench_gen.scenes.files import read_json

SAMPLES_FILE = "SAMPLES.json"
"""Lies at the top of a folder of samples; says by whom they were made, how, under which licence, and which they are."""

_LEVELS = 4  # <samples>/data/<scene>/iphone
_MAX_BYTES = 1_000_000
_HEAD_BYTES = 1 << 16
_LICENCE_ID = re.compile(r"[a-z0-9][a-z0-9.+-]{0,39}")


def find_licence(scene: Path, of_dataset: str) -> str:
    """Licence id of the scene at a path: that of the samples it is one of, else that of its dataset.

    It is one of them if the file names its place and the digest of what lies there. A file that cannot be read says
    nothing: the scene keeps its dataset's terms, which are the stricter ones.
    """
    scene = scene.resolve()
    for folder in scene.parents[:_LEVELS]:
        path = folder / SAMPLES_FILE
        if not path.is_file():
            continue
        try:
            stated = read_json(path, path, _MAX_BYTES)
            licence, scenes = (stated["licence"], stated["scenes"]) if isinstance(stated, dict) else ("", {})
            for entry in scenes.values() if _LICENCE_ID.fullmatch(licence) else ():
                named = inside(folder, entry["path"])
                if scene.is_relative_to(named) and named != folder and digest_sample(named) == entry["digest"]:
                    return str(licence)
        except (VGBenchError, OSError, KeyError, TypeError, AttributeError):
            continue
    return of_dataset


def digest_sample(path: Path) -> str:
    """32 hexadecimal digits for the names, sizes and first 64 KiB of the files of one scene, or of its one file."""
    digest = hashlib.blake2b(digest_size=16)
    files = sorted(Path(parent, name) for parent, _, names in os.walk(path) for name in names) or [path]
    for file in files:
        with file.open("rb") as opened:
            head = opened.read(_HEAD_BYTES)
        name = file.relative_to(path).as_posix().encode("utf-8", "surrogateescape")
        digest.update(b"%d %d %d " % (len(name), file.stat().st_size, len(head)) + name + head)
    return digest.hexdigest()
