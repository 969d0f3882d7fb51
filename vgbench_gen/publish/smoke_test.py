"""Opens a published set with `datasets`, as its users do, in a separate process.

`python -m <this module> FOLDER` prints counts as JSON. Every configuration but the whole benchmark is loaded, and some
of its images are decoded. The benchmark is streamed to its end, because an unfinished stream can hang the interpreter's
exit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import VGBenchError

_DECODED = 8  # rows per configuration whose images are decoded
_TIMEOUT_S = 3600


class NotOpenedError(VGBenchError):
    """`datasets` cannot open the set, or finds other numbers of rows in it."""


def open_with_datasets(folder: Path, rows: Mapping[str, int]) -> dict[str, Any]:
    """Open a set in another process, offline and with an empty cache.

    Args:
        folder: with `README.md` and data files.
        rows: configuration -> expected number of questions.

    Returns:
        {"configurations": {name: rows}, "streamed": rows, "images_decoded": number}.

    Raises:
        NotOpenedError: the set cannot be opened, or has other numbers of rows.
    """
    folder = folder.resolve()
    # The cache is next to the folder: loading copies the files of a task, and the system's temporary folder may be in
    # memory. The files are opened by links, because `datasets` reads the path of a folder as a pattern.
    with (
        tempfile.TemporaryDirectory(prefix=".vgbench-opened-", dir=folder.parent) as cache,
        tempfile.TemporaryDirectory(prefix="vgbench-opened-") as links,
    ):
        for file in (path for path in folder.rglob("*") if path.is_file()):
            link = Path(links) / file.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
        off = {"HF_HUB_OFFLINE": "1", "HF_HOME": cache, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))} | off
        done = subprocess.run(
            [sys.executable, "-m", __name__, links],
            capture_output=True, text=True, env=environment, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    if done.returncode:
        last_line = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise NotOpenedError(f"{folder}: found a set that `datasets` does not open: {last_line}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    counts = found["configurations"]
    wrong = [f"{name} {counts.get(name)} of {count}" for name, count in rows.items() if counts.get(name) != count]
    if wrong:
        raise NotOpenedError(f"{folder}: found other questions by `datasets` than were written: {', '.join(wrong)}")
    return found


def _load_all(folder: Path) -> dict[str, Any]:
    import datasets
    import pyarrow.compute as pc

    datasets.disable_progress_bars()
    whole = datasets.get_dataset_default_config_name(str(folder))
    counts: dict[str, int] = {}
    decoded = 0
    for name in datasets.get_dataset_config_names(str(folder)):
        if name == whole:
            (stream,) = datasets.load_dataset(str(folder), whole, streaming=True).values()  # has one split
            plain = stream.cast_column("images", datasets.List(datasets.Image(decode=False)))
            counts[whole] = sum(1 for row in plain if row["id"])
            continue
        (loaded,) = datasets.load_dataset(str(folder), name).values()
        counts[name] = len(loaded)
        shown = [k for k, n in enumerate(pc.list_value_length(loaded.data["images"]).to_pylist()) if n]
        for k in shown[:: max(1, len(shown) // _DECODED)]:
            decoded += sum(len(image.convert("RGB").size) == 2 for image in loaded[k]["images"])
        for file in loaded.cache_files:  # frees disk space before the next configuration
            Path(file["filename"]).unlink(missing_ok=True)
    return {"configurations": counts, "streamed": counts[whole], "images_decoded": decoded}


if __name__ == "__main__":
    print(json.dumps(_load_all(Path(sys.argv[1]))))
