"""What Megatron energon does with each row of exports: `python read_webdataset.py FOLDER...`, in its environment.

Shards are indexed by energon's own program, which writes into the folder, and read with the folder's own `cooker.py`
and energon's defaults, on the CPU. Prints one JSON object a folder: `kept` (ids), `altered` (those of them of which
another sample is made), `dropped` and `raised` (id -> reason).
"""

from __future__ import annotations

import io
import json
import os
import runpy
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fates import explain, print_fates


def judge(folder: Path) -> dict[str, Any]:
    """The fate of every row of a folder."""
    from megatron.energon import WorkerConfig

    os.chdir(folder)
    files = {name: data for shard in sorted(Path("data").glob("*.tar")) for name, data in read_files(shard)}
    rows = {row["id"]: row for row in (json.loads(data) for name, data in files.items() if name.endswith(".json"))}
    found: dict[str, Any] = {"kept": [], "altered": {}, "dropped": dict.fromkeys(rows, "without a word"), "raised": {}}
    index = ["energon", "prepare", "--tar-index-only", "data", "--num-workers", "1", "--no-progress"]
    program = Path(sys.executable).with_name("energon")
    done = subprocess.run([str(program), *index[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())[-300:]
        return found | {"dropped": {}, "raised": dict.fromkeys(rows, f"energon prepare: {said}")}

    def note(error: Exception, sample: Any, sources: Any = None) -> None:
        files = sample.data[0] if hasattr(sample, "data") else sample  # before and after decoding
        row = files.get("json", b"{}")
        row = json.loads(row) if isinstance(row, bytes) else row
        found["dropped"] |= {row["id"]: explain(error)} if "id" in row else {}

    own = runpy.run_path("cooker.py")
    worker = WorkerConfig(rank=0, world_size=1, num_workers=0, global_error_handler=note)
    try:
        for batch in own["read_once"](worker):
            for sample in batch:
                del found["dropped"][sample.id]
                found["kept"].append(sample.id)
                if said := compare(sample, rows[sample.id], files):
                    found["altered"][sample.id] = said
    except Exception as error:
        return found | {"dropped": {}, "kept": [], "raised": dict.fromkeys(rows, explain(error))}
    return found


def read_files(shard: Path) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of every file of a shard."""
    with tarfile.open(shard) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            yield member.name, file.read()


def compare(sample: Any, row: dict[str, Any], files: dict[str, bytes]) -> str:
    """How a sample differs from the row; "" where it does not."""
    from PIL import Image

    if sample.messages != row["messages"]:
        return "other words"
    parts = [part for message in sample.messages for part in message["content"]]
    wanted = [files[part["image"]] for part in parts if part["type"] == "image"]
    if len(wanted) != len(sample.images):
        return f"{len(sample.images)} images are read of {len(wanted)}"
    for image, data in zip(sample.images, wanted, strict=True):
        if image.tobytes() != Image.open(io.BytesIO(data)).convert("RGB").tobytes():
            return "other images"
    return "" if sample.messages[-1]["content"][0]["text"] else "nothing is learned"


if __name__ == "__main__":
    print_fates(judge, sys.argv[1:])
