"""What a target of the fuzzer is, what may become of a case, and how a command line becomes an outcome."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vgbench_gen.cli.main import main

FINE, COUNTED, REFUSED = "fine", "rejected and counted", "refused in one line"


class BrokenPromiseError(Exception):
    """Something was lost without a word, or was written where nothing may be."""


@dataclass(frozen=True)
class Target:
    """One kind of input.

    To add one, write `write` and `use` and put it into `TARGETS`.
    """

    name: str
    """Its name in tables and for `--target`."""
    write: Callable[[Path], object]
    """Writes sound data into an empty folder, `data/` of the case."""
    use: Callable[[Path], str]
    """Uses the folder of a case, which holds `data/` and may get `out/`, and returns `FINE`, `COUNTED` or `REFUSED`.
    `VGBenchError` counts as `REFUSED` as well; every other exception is a failure."""
    hurt: str
    """Which part of `data/` is damaged."""
    stays: bool = False
    """Whether users name the files themselves, who may name a pipe if they like."""


def run_verb(*argv: str) -> str:
    """The outcome of one command line.

    Raises:
        BrokenPromiseError: it refuses in more than one line or ends with a status that nobody promised.
    """
    out, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        status = main(list(argv))
    lines = told.getvalue().splitlines()
    if status not in (0, 1, 2) or "Traceback" in told.getvalue():
        raise BrokenPromiseError(f"{argv[0]} ends with status {status}: {lines[-1:]}")
    if status == 2 and not (lines and lines[-1].startswith("vgbench: error: ") and lines[-1].isprintable()):
        raise BrokenPromiseError(f"{argv[0]} refuses without one line of ours: {lines[-3:]}")
    return (FINE, COUNTED, REFUSED)[status]
