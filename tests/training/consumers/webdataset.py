"""What Megatron energon does with each row of exports: `python webdataset.py FOLDER...`, in its environment.

Shards are indexed by energon's own program, which writes into the folder, and read with the folder's own `cooker.py`
and energon's defaults, on the CPU. Prints one JSON object a folder: `kept` (ids), `altered` (those of them of which
another sample is made), `dropped` and `raised` (id -> reason).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

sys.path.append(sys.path.pop(0))  # this file must not be imported in the place of the package


def judge(folder: Path) -> dict[str, Any]:
    """The fate of every row of a folder."""
    from megatron.energon import WorkerConfig

    os.chdir(folder)
    rows = {row["id"]: row for shard in sorted(Path("data").glob("*.tar")) for row in read_rows(shard)}
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
                if said := compare(sample, rows[sample.id]):
                    found["altered"][sample.id] = said
    except Exception as error:
        return found | {"dropped": {}, "kept": [], "raised": dict.fromkeys(rows, explain(error))}
    return found


def read_rows(shard: Path) -> list[dict[str, Any]]:
    """The JSON of every sample of a shard."""
    with tarfile.open(shard) as archive:
        files = [archive.extractfile(member) for member in archive if member.name.endswith(".json")]
        return [json.load(io.BytesIO(file.read())) for file in files if file is not None]


def compare(sample: Any, row: dict[str, Any]) -> str:
    """How a sample differs from the row; "" where it does not."""
    parts = [part for message in sample.messages for part in message["content"]]
    if sum(part["type"] == "image" for part in parts) != len(sample.images):
        return "more or fewer images than places"
    if not all(image.mode == "RGB" and min(image.size) > 0 for image in sample.images):
        return "images are not in RGB"
    if sample.messages != row["messages"]:
        return "other words"
    return "" if sample.messages[-1]["content"][0]["text"] else "nothing is learned"


def explain(error: Exception) -> str:
    """Type and words of an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:600]


def main() -> None:
    """Judge the folders that are named."""
    folders = [Path(word).resolve() for word in sys.argv[1:]]
    with contextlib.redirect_stdout(sys.stderr):
        found = [judge(folder) for folder in folders]
    for one in found:
        print(json.dumps(one))


if __name__ == "__main__":
    main()
