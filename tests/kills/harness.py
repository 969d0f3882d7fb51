"""Kills what writes files, at every write and at random, and lets it go on: the bytes must be the same."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.rng import digest_bytes

_WRITES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.link",
    "os.rmdir",
    "os.truncate",
    "sqlite3.connect",
    "shutil.rmtree",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Verb:
    """Something that writes files and may be killed."""

    prepare: Callable[[Path], object]
    """Writes into an empty folder what the verb begins with."""
    act: Callable[[Path], object]
    """Does it, in the folder; called again after each kill."""
    skip: tuple[str, ...] = ()
    """Names of files that hold times or are a memory, and may differ."""
    compared: Callable[[bytes], bytes] = bytes
    """What of a file's bytes must be the same."""


def kill_often(verb: Verb, work: Path, at_writes: int, at_random: int) -> dict[str, Any]:
    """Kill the verb in fresh folders, once in each, and run it again.

    Args:
        verb: what is killed. work: an empty folder. at_writes: how many writes it is killed before, spread evenly over
        all that it makes. at_random: how many moments besides.

    Returns:
        "writes": how many it makes; "kills"; "wrong": for each kill after which the end was another, when it was.
    """
    begin, whole = work / "begin", work / "whole"
    begin.mkdir()
    _fork(lambda: verb.prepare(begin), "prepare")
    _copy(begin, whole)
    log = work / "writes"
    began = time.monotonic()
    _fork(lambda: _count_writes(verb, whole, log), "whole")
    took_s = time.monotonic() - began
    writes, loaded = json.loads(log.read_text())
    load_modules(loaded)
    expected = read_content(whole, verb)
    places = np.unique(np.linspace(1, writes, at_writes).round().astype(int)).tolist()
    rng = np.random.default_rng(0)
    moments: list[tuple[str, float]] = [("write", place) for place in places]
    moments += [("second", float(rng.uniform(0, took_s))) for _ in range(at_random)]
    kills, wrong = 0, []
    for kind, moment in moments:
        folder = work / "killed"
        _copy(begin, folder)
        kills += _fork(lambda k=kind, m=moment, f=folder: _run_until(verb, f, k, m), "killed")  # type: ignore[misc]
        _fork(lambda f=folder: verb.act(f), "again")  # type: ignore[misc]
        found = read_content(folder, verb)
        if found != expected:
            differ = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
            wrong.append(f"{kind} {moment}: {differ[:8]}")
        shutil.rmtree(folder)
    return {"writes": writes, "kills": kills, "wrong": wrong}


def read_content(folder: Path, verb: Verb) -> dict[str, str]:
    """The digest of every file, leftovers of dead writers included: a finished run leaves none."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in verb.skip]
    return {str(path.relative_to(folder)): digest_bytes(verb.compared(path.read_bytes())) for path in files}


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)


def _count_writes(verb: Verb, folder: Path, log: Path) -> None:
    seen: list[str] = []
    sys.addaudithook(lambda event, args: seen.append(event) if _is_write(event, args, folder) else None)
    verb.act(folder)
    log.write_text(json.dumps([len(seen), list(sys.modules)]))


def load_modules(names: Sequence[str]) -> None:
    """Load here what a fork loaded, which spares it later forks."""
    for name in names:
        if not name.startswith("__"):
            with suppress(Exception):
                importlib.import_module(name)


def _run_until(verb: Verb, folder: Path, kind: str, moment: float) -> None:
    if kind == "second":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process wherever it is
        signal.setitimer(signal.ITIMER_REAL, max(moment, 1e-3))
    else:
        left = [int(moment)]

        def count(event: str, args: tuple[Any, ...]) -> None:
            if _is_write(event, args, folder):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
    verb.act(folder)


def _is_write(event: str, args: tuple[Any, ...], folder: Path) -> bool:
    if event == "open" and not (isinstance(args[2], int) and args[2] & _WRITING):
        return False
    if event != "open" and event not in _WRITES:
        return False
    return any(str(folder) in os.fsdecode(path) for path in args[:2] if isinstance(path, str | bytes | os.PathLike))


def _fork(act: Callable[[], object], what: str) -> bool:
    """Do something in a fork and return whether it was killed; what it prints is dropped.

    Raises:
        RuntimeError: it raised.
    """
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    _, ended = os.waitpid(pid, 0)
    status = os.waitstatus_to_exitcode(ended)
    if status > 0 or (status < 0 and what != "killed"):
        raise RuntimeError(f"{what}: status {status}")
    return status < 0


def main(verbs: dict[str, Verb]) -> None:
    """`VERB FOLDER AT_WRITES AT_RANDOM`: prints what `kill_often` returns."""
    name, folder, at_writes, at_random = sys.argv[1:]
    print(json.dumps(kill_often(verbs[name], Path(folder), int(at_writes), int(at_random))))
