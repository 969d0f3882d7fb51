"""Writing and checking training files: rows a second of each export with its pictures, and a lint of 100,000 rows.

    python -m bench.training_files BUILD

The dataset is a build's rows over and over with new ids. Pictures are those of the build in three sizes of file names,
so that each is written, and looked at, as often as in a real set of that many scenes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

from bench.eval_overhead import Used, run_metered
from bench.session import Session
from bench.table import Row, lines
from vgbench_gen.core.types import Item
from vgbench_gen.publish.export import exports
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.shards import write_items

EXPORTED, LINTED = (600, 2_400), 100_000
_MOST_GROWTH = 1.15


def rows(session: Session) -> list[Row]:
    """Each format's rows a second, the growth of its memory, and the lint."""
    return measure(load(session.built(2).out), session.scratch)


def measure(items: Dataset, scratch: Path) -> list[Row]:
    """As `rows`, of a built dataset."""
    found = []
    sets = {count: _write_set(items, scratch / f"set-{count}", count) for count in EXPORTED}
    formats = [name for name in exports if exports[name].trains or name == "chat-jsonl"]
    for name in formats:
        used = {}
        for count, folder in sets.items():
            answers = [] if exports[name].trains else ["--answers"]
            used[count] = _run("export", str(folder), "--to", name, *answers, "--out", str(scratch / f"{name}-{count}"))
        few, many = used[EXPORTED[0]], used[EXPORTED[1]]
        rate = (EXPORTED[1] - EXPORTED[0]) / max(many.wall_s - few.wall_s, 1e-3)
        beside = f"{EXPORTED[1]:,} rows in {many.wall_s:.1f} s ({many.cpu_s:.1f} s of processor); {many.peak_mb:.0f} MB"
        found.append(Row(f"export {name}", rate, "/s", beside, at_least=300))
        found.append(
            Row(
                f"export {name}, memory of {EXPORTED[1]:,} / {EXPORTED[0]:,} rows",
                many.peak_mb / few.peak_mb,
                "x",
                "",
                at_most=_MOST_GROWTH,
            )
        )
    return found + _lint(scratch, scratch / f"chat-jsonl-{EXPORTED[1]}")


def _lint(scratch: Path, exported: Path) -> list[Row]:
    """Rows of an export over and over with new ids, as one file of 100,000."""
    (path,) = exported.glob("*.jsonl")
    few, many = (_repeat(path, exported / f"again-{count}.jsonl", count) for count in (LINTED // 10, LINTED))
    less, more = _run("lint", str(few), "--quiet"), _run("lint", str(many), "--quiet")
    beside = f"{more.cpu_s:.0f} s of processor; peak {more.peak_mb:.0f} MB"
    grown = more.peak_mb / less.peak_mb
    return [
        Row(f"lint of {LINTED:,} rows", more.wall_s, "s", beside, at_most=60),
        Row(f"lint, memory of {LINTED:,} / {LINTED // 10:,} rows", grown, "x", "", at_most=1.5),
    ]


def _repeat(path: Path, out: Path, count: int) -> Path:
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    with out.open("w", encoding="utf-8") as file:
        for k, record in enumerate(islice(cycle(records), count)):
            file.write(json.dumps(record | {"id": f"row{k}"}, ensure_ascii=False) + "\n")
    return out


def _write_set(items: Dataset, folder: Path, count: int) -> Path:
    """Rows of a build over and over, with other ids, as those of other rooms; every round has pictures of its own."""
    media = MediaStore(folder / "media")

    def make() -> Iterator[Item]:
        for k, row in enumerate(islice(cycle(range(len(items))), count)):
            item, turn = items[row], k // len(items)
            # Bytes behind the end of a JPEG change its name and nothing that is seen.
            data = [items.image_bytes(row, n) + turn.to_bytes(4, "big") * bool(turn) for n in range(len(item.images))]
            names = tuple(media.put(one, "jpg") for one in data)
            yield replace(item, id=f"{item.id}-{turn}", index=k, images=names, split="train")

    with media.batch():
        made = list(make())
    write_items(folder / "items", made, media)
    return folder


def _run(*arguments: str) -> Used:
    """What a command took; a lint that finds defects counts as done."""
    command = ["sh", "-c", '"$@" || [ $? = 1 ]', "sh", sys.executable, "-m", "vgbench_gen.cli", *arguments]
    return run_metered(command, Path.cwd(), {})[0]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(lines(measure(load(Path(sys.argv[1])), Path(folder)))))
