"""`python -m bench [--scenes ROOT]`: one table, each figure a ratio with the absolute beside it."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench import build_time, memory, sens_reader, task_rates
from bench.table import Row, lines


def main() -> int:
    """Measure and print; 2 where there are no scenes to measure on."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    default = os.environ.get("VGBENCH_CAPTURES", "")
    parser.add_argument("--scenes", default=default, help="folder with raw scenes (default: VGBENCH_CAPTURES)")
    parser.add_argument("--only", default="", help="sens, tasks, build or memory")
    arguments = parser.parse_args()
    if not arguments.scenes or not Path(arguments.scenes).is_dir():
        print("bench: no scenes; name their folder with --scenes or VGBENCH_CAPTURES", file=sys.stderr)
        return 2
    root = Path(arguments.scenes)
    parts = {
        "sens": sens_reader.rows,
        "tasks": task_rates.rows,
        "build": build_time.rows,
        "memory": memory.rows,
    }
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="vgbench-bench-") as folder:
        for name, part in parts.items():
            if arguments.only in ("", name):
                rows += part(root, Path(folder))
    for line in lines(rows):
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
