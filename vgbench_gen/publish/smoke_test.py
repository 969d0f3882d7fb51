"""Open a published set with `datasets`, as its users will; run as a process of its own.

`python -m <this module> FOLDER` prints what was found as JSON. Every task (and set beside the benchmark) is loaded
whole and some of its images are decoded; the benchmark is streamed to its end. A stream that is left before its end can
hang the interpreter's exit, so none is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import VGBenchError

_DECODED = 8  # rows per configuration
_TIMEOUT_S = 3600


class NotOpenedError(VGBenchError):
    """`datasets` cannot open the set, or finds something else in it."""


def open_with_datasets(folder: Path, rows: Mapping[str, int]) -> dict[str, Any]:
    """Open a set in another process, with an empty cache of its own beside the folder, offline.

    Args:
        folder: with `README.md` and data files.
        rows: configuration -> questions that must be in it.

    Returns:
        {"configurations": {name: rows}, "streamed": rows, "images_decoded": number}.

    Raises:
        NotOpenedError: it cannot be opened, or has other numbers of rows.
    """
    folder = folder.resolve()
    # Beside the folder: loading copies up to a task's files, and a system's temporary folder may be in memory. The
    # files are opened by links, because `datasets` takes the path of a folder for a pattern.
    with (
        tempfile.TemporaryDirectory(prefix=".vgbench-opened-", dir=folder.parent) as cache,
        tempfile.TemporaryDirectory(prefix="vgbench-opened-") as shown,
    ):
        for file in (path for path in folder.rglob("*") if path.is_file()):
            link = Path(shown) / file.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
        off = {"HF_HUB_OFFLINE": "1", "HF_HOME": cache, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))} | off
        done = subprocess.run(
            [sys.executable, "-m", __name__, shown],
            capture_output=True, text=True, env=environment, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise NotOpenedError(f"{folder}: found a set that `datasets` does not open: {said}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    have = found["configurations"]
    wrong = [f"{name} {have.get(name)} of {count}" for name, count in rows.items() if have.get(name) != count]
    if wrong:
        raise NotOpenedError(f"{folder}: found other questions by `datasets` than were written: {', '.join(wrong)}")
    return found


def _look(folder: Path) -> dict[str, Any]:
    import datasets
    import pyarrow.compute as pc

    datasets.disable_progress_bars()
    whole = datasets.get_dataset_default_config_name(str(folder))
    counts: dict[str, int] = {}
    decoded = 0
    for name in datasets.get_dataset_config_names(str(folder)):
        if name == whole:
            stream = _select_splits(datasets.load_dataset(str(folder), whole, streaming=True))
            plain = stream.cast_column("images", datasets.List(datasets.Image(decode=False)))
            counts[whole] = sum(1 for row in plain if row["id"])
            continue
        loaded = _select_splits(datasets.load_dataset(str(folder), name))
        counts[name] = len(loaded)
        shown = [k for k, n in enumerate(pc.list_value_length(loaded.data["images"]).to_pylist()) if n]
        decoded += sum(_decode(loaded[k]["images"]) for k in shown[:: max(1, len(shown) // _DECODED)])
        for file in loaded.cache_files:  # the disk that it took
            Path(file["filename"]).unlink(missing_ok=True)
    return {"configurations": counts, "streamed": counts[whole], "images_decoded": decoded}


def _select_splits(splits: Mapping[str, Any]) -> Any:
    (one,) = splits.values()
    return one


def _decode(images: Sequence[Any]) -> int:
    """How many images a row has; decoding one that is damaged raises."""
    return sum(len(image.convert("RGB").size) == 2 for image in images)


if __name__ == "__main__":
    print(json.dumps(_look(Path(sys.argv[1]))))
