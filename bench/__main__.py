"""`python -m bench [--scenes ROOT] [--only NAME]`: one table of ratios and times, each with its goal and a verdict."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import (
    agent_overhead,
    backend_load,
    build_time,
    check_time,
    compose_time,
    distractors_time,
    eval_overhead,
    geometry,
    long_recording,
    measuring,
    memory,
    planning_time,
    rewards_time,
    sens_reader,
    task_rates,
    training_files,
    vote_time,
)
from bench.session import Session
from bench.table import Row, lines
from vgbench_gen.executors.base import limit_to_one_thread

PARTS: dict[str, Callable[[Session], list[Row]]] = {
    "sens": sens_reader.rows,
    "recording": long_recording.rows,
    "geometry": geometry.rows,
    "measuring": measuring.rows,
    "tasks": task_rates.rows,
    "kinds": task_rates.kind_rows,
    "build": build_time.rows,
    "workers": build_time.worker_rows,
    "memory": memory.rows,
    "planning": planning_time.rows,
    "compose": compose_time.rows,
    "distractors": distractors_time.rows,
    "backend": backend_load.rows,
    "check": check_time.rows,
    "samples": check_time.sample_rows,
    "eval": eval_overhead.rows,
    "vote": vote_time.rows,
    "rewards": rewards_time.rows,
    "agent": agent_overhead.rows,
    "training": training_files.rows,
}


def main() -> int:
    """Measure and print; 2 where there are no scenes to measure on."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--scenes", default="", help="folder with raw scenes (default: VGBENCH_CAPTURES)")
    parser.add_argument("--recipe", default="", help="what is built (vgbench with --scenes, default without)")
    parser.add_argument("--only", default="", choices=["", *PARTS], help="one part of the table")
    parser.add_argument("--scratch", default=None, help="where builds go and are removed (default: the system's)")
    arguments = parser.parse_args()
    root = arguments.scenes or os.environ.get("VGBENCH_CAPTURES", "")
    if not root or not Path(root).is_dir():
        print("bench: no scenes; name their folder with --scenes or VGBENCH_CAPTURES", file=sys.stderr)
        return 2
    recipe = arguments.recipe or ("vgbench" if arguments.scenes else "default")
    rows: list[Row] = []
    if arguments.scratch is not None:
        Path(arguments.scratch).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="vgbench-bench-", dir=arguments.scratch) as folder:
        session = Session(Path(root).absolute(), Path(folder), recipe)
        for name, part in PARTS.items():
            if arguments.only in ("", name):
                began = time.monotonic()
                with limit_to_one_thread():
                    rows += part(session)
                print(f"bench: {name} took {time.monotonic() - began:.0f} s", file=sys.stderr)
    for line in lines(rows):
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
