"""`python -m tests.fuzz`: damages inputs and prints what became of them as a table; status 1 where one failed."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.runner import BAD, Case, format_table, make_cases, run_case, run_cases
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run the cases that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=300, help="how many, of all targets in turn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=[target.name for target in TARGETS], help="only these")
    parser.add_argument("--lanes", type=int, default=2, help="processes at once")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this case of one target, in this process")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder in which the data of --only stay")
    asked = parser.parse_args()
    os.environ["VGBENCH_RAISE_DEFECTS"] = "1"  # a defect must not pass for a bad scene
    targets = [target for target in TARGETS if not asked.target or target.name in asked.target]
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        work = Path(folder)
        if asked.only is not None:
            case = Case(targets[0].name, asked.seed, asked.only)
            list(run_cases([case][:0], work))
            target = targets[0]
            kept = asked.keep or work
            (kept / "sound" / target.name).mkdir(parents=True)
            target.write(kept / "sound" / target.name / "data")
            results = [run_case(case, target, kept, keep=True)]
        else:
            results = list(run_cases(make_cases(asked.cases, asked.seed, targets), work, targets, asked.lanes))
    failed = [result for result in results if result.outcome in BAD]
    for result in failed:
        print(
            f"{result.outcome}: --target {result.case.target!r} --seed {result.case.seed} --only {result.case.number}"
        )
        print(f"  {result.damage}\n  " + result.told.replace("\n", "\n  "))
    print(format_table(results))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
