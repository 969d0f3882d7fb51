"""`python -m tests.golden`: digests of everything the program writes, made once and compared after every change.

    python -m tests.golden check              all parts
    python -m tests.golden check --only mini  some parts
    python -m tests.golden make --only mini   write the digests of what is made now
    python -m tests.golden inventory          names that users rely on and that are missing now; `make` writes them

The digests stand in baseline/, a file for each part. They hold for the versions of packages and the family of
processors that each file names; elsewhere the part is skipped with the reason. Texts behind the digests are kept in
the work folder, so that a difference is told by row and line where the run that made them was on this machine.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.golden import inventory
from tests.golden.digests import Artefacts, differences, digests
from tests.golden.machine import here
from tests.golden.runs import ROOT, NotHere, PartFailed, Run
from tests.golden.uses import PARTS

BASELINE = Path(__file__).parent / "baseline"


def main(words: list[str] | None = None) -> int:
    """Run the command; 1 where something differs or failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["make", "check", "inventory"])
    parser.add_argument("--only", metavar="PART,...", default=",".join(PARTS), help=", ".join(PARTS))
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir(), "vgbench-golden"), metavar="DIR")
    parser.add_argument("--write", action="store_true", help="inventory: write the names of now as the baseline")
    parser.add_argument(
        "--reuse", action="store_true", help="work on the builds that the last run of this checkout left"
    )
    given = parser.parse_args(words)
    if given.what == "inventory":
        return inventory.run(given.write)
    names = [name.strip() for name in given.only.split(",") if name.strip()]
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"--only: found {', '.join(unknown)}; expected some of {', '.join(PARTS)}")
    work = given.work.resolve()
    run = Run(work, work / "runs" / ROOT.name)
    with run.alone(f"run-{ROOT.name}"):
        if not given.reuse:
            shutil.rmtree(run.folder, ignore_errors=True)
        run.folder.mkdir(parents=True, exist_ok=True)
        return max([_part(run, name, given.what == "make") for name in names], default=0)


def _part(run: Run, name: str, make: bool) -> int:
    path = BASELINE / f"{name}.json"
    kept = json.loads(path.read_text()) if path.exists() else None
    if not make:
        reason = "no digests yet" if kept is None else _elsewhere(kept["machine"], here())
        if reason:
            return _tell(f"skipped {name}: {reason}", 0)
    start = time.monotonic()
    try:
        artefacts = PARTS[name](run)
    except NotHere as error:
        return _tell(f"skipped {name}: {error}", 0)
    except PartFailed as error:
        return _tell(f"FAILED {name}: {error}", 1)
    took = f"{time.monotonic() - start:.0f} s"
    found = digests(artefacts)
    if make:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"machine": here(), "digests": found}, indent=1, sort_keys=True) + "\n")
        _keep(run.shared / "baseline" / name, artefacts)
        return _tell(f"made {name}: {len(found)} digests, {took}", 0)
    assert kept is not None
    lines = differences(kept["digests"], found, _kept(run.shared / "baseline" / name, kept["digests"]), artefacts)
    if lines:
        _keep(run.folder / "texts" / name, artefacts)
        lines = [f"DIFFERS {name} ({took}); texts in {run.folder / 'texts' / name}", *(f"  {line}" for line in lines)]
        return _tell("\n".join(lines), 1)
    return _tell(f"equal {name}: {len(found)} digests, {took}", 0)


def _elsewhere(machine: dict[str, str], now: dict[str, str]) -> str:
    other = [
        f"{name} {now.get(name, 'missing')}, made with {was}" for name, was in machine.items() if now.get(name) != was
    ]
    return "; ".join(other)


def _keep(folder: Path, artefacts: Artefacts) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in artefacts.items():
        (folder / name.replace("/", "__")).write_text(text)


def _kept(folder: Path, expected: dict[str, object]) -> Artefacts:
    """The texts behind the digests, those that are still there and still the same."""
    found = {name: folder / name.replace("/", "__") for name in expected}
    texts = {name: path.read_text() for name, path in found.items() if path.exists()}
    made = digests(texts)
    return {name: text for name, text in texts.items() if made[name] == expected[name]}


def _tell(text: str, status: int) -> int:
    print(text, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
