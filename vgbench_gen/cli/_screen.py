"""The screen: everything a verb prints passes here, and progress bars stand below it.

`open_screen` takes the place of standard output and standard error while a command line runs, so verbs print with
`print`. Terminal codes in foreign text, and characters that the stream cannot show, become visible escapes; with
`--quiet` nothing is printed but errors and JSON that was asked for.
"""

from __future__ import annotations

import codecs
import io
import json
import logging
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from vgbench_gen.core.columns import WIDTH, format_columns

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PLAIN_S = 30.0  # between lines of progress where there is no terminal
_SHORT_S = 2.0  # a phase that takes no longer gets no line there
_NAME_CHARS = 40  # of a bar's name
# Control characters but tab and line feed, and those that turn the direction of writing; `\r` of a bar is not ours.
_CODES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_COLORS = re.compile(r"\x1b\[[0-9;]*m")  # a library's own, such as a server's log
_quiet = False
_bars: Progress | None = None
"""The bars that stand on the terminal now."""


@contextmanager
def open_screen() -> Iterator[None]:
    """Inside the block standard output and standard error are the screen; one that is closed takes everything."""
    before = (sys.stdout, sys.stderr)
    with ExitStack() as stack:
        for name, stream in zip(("stdout", "stderr"), before, strict=True):
            shown = stream if stream is not None else stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            setattr(sys, name, cast(TextIO, _Stream(shown)))
        log, handler = logging.getLogger("vgbench_gen"), logging.StreamHandler()
        handler.setFormatter(logging.Formatter("vgbench: %(message)s"))
        log.addHandler(handler)
        try:
            yield
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        finally:
            log.removeHandler(handler)
            sys.stdout, sys.stderr = before


@contextmanager
def hush(quiet: bool, keep_output: bool) -> Iterator[None]:
    """Inside the block no bar is shown where `quiet`, and nothing comes on standard output unless `keep_output`."""
    global _quiet
    before, log = sys.stdout, logging.getLogger("vgbench_gen")
    level, _quiet = log.level, quiet
    if quiet:
        log.setLevel(logging.ERROR)
    if quiet and not keep_output:
        sys.stdout = io.StringIO()
    try:
        yield
    finally:
        sys.stdout = before
        log.setLevel(level)
        _quiet = False


def find_width() -> int:
    """Characters of a line that tables may fill: of the terminal, or `core.columns.WIDTH` where there is none."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def print_columns(rows: Iterable[Sequence[object]], **settings: Any) -> None:
    """Print `core.columns.format_columns` of the rows, as wide as the screen."""
    for line in format_columns(rows, width=find_width(), **settings):
        print(line, flush=True)


def print_json(record: Any, indent: int | None = 2) -> None:
    """Print what `--json` asks for; a number that JSON has no word for, not a number or infinite, is null.

    indent: None for one line.
    """
    sound = json.loads(json.dumps(record), parse_constant=lambda _: None)
    print(json.dumps(sound, indent=indent, ensure_ascii=False, allow_nan=False))


class _Stream:
    """One of the two streams: escapes what is written, and writes above the bars where these stand on its terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self._held = stream, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Pass text on, above bars line by line."""
        coding = getattr(self.stream, "encoding", None) or "utf-8"
        safe = self._held + escape_codes(text).encode(coding, "vgbench.escape").decode(coding)
        self._held = ""
        if _bars is None or not self.stream.isatty():
            self.stream.write(safe)
            return len(text)
        *lines, self._held = safe.split("\n")
        for line in lines:
            _bars.console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As `write`, one after the other."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Show what was written, a line that has not ended as well."""
        held, self._held = self._held, ""
        self.stream.write(held)
        self.stream.flush()


def escape_codes(text: str) -> str:
    """The text with characters that move a cursor, color, or turn the writing as escapes such as `\\u001b`.

    These are JSON's own, so that JSON keeps its meaning.
    """
    return _CODES.sub(lambda found: f"\\u{ord(found[0]):04x}", _COLORS.sub("", text) if "\x1b" in text else text)


def _escape_unshown(problem: UnicodeError) -> tuple[str, int]:
    """As `escape_codes`, of characters that a stream's encoding lacks."""
    assert isinstance(problem, UnicodeEncodeError)
    text = problem.object[problem.start : problem.end]
    return "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text), problem.end


codecs.register_error("vgbench.escape", _escape_unshown)


@contextmanager
def progress_bars(unit: str = "") -> Iterator[Callable[..., None]]:
    """Progress on standard error: a bar for each phase, whose estimate rests on its own start.

    A clock in every bar moves each second, so that a long step does not look like a halt. Where there is no terminal,
    lines say how far a phase is: after some seconds, every half minute, and at its end.

    Yields a function `show(name, done, total, kept=0, note="")`: `name` of a phase, which gets its bar at its first
    call; `total`, None while it is unknown; `kept` of `done`, which were there before; words behind the bar.

    Args:
        unit: what is counted, such as "scene".
    """
    global _bars
    if _quiet or _bars is not None:
        yield lambda *_, **__: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Left
    from rich.table import Column

    on_terminal, plural = sys.stderr.isatty(), unit and (f"{unit[:-1]}ies" if unit.endswith("y") else f"{unit}s")
    bars = Progress(
        SpinnerColumn("line", finished_text=" "),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(plural, markup=False),
        Elapsed(),
        Left(),
        TextColumn("{task.fields[note]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        console=Console(file=getattr(sys.stderr, "stream", sys.stderr)),
        redirect_stdout=False,
        redirect_stderr=False,
        speed_estimate_period=float("inf"),
        get_time=time.monotonic,
        disable=not on_terminal,
    )
    tasks: dict[str, TaskID] = {}
    printed: dict[TaskID, float] = {}

    def show(name: str, done: int, total: int | None, *, kept: int = 0, note: str = "") -> None:
        if name not in tasks:
            tasks[name] = bars.add_task(escape_codes(name), total=total, completed=kept, note=note)
        bars.update(tasks[name], total=total, completed=done, note=escape_codes(note))
        if not on_terminal:
            _print_plain(bars, printed, plural)

    _bars = bars
    try:
        with bars:
            yield show
    finally:
        _bars = None
        if not on_terminal:
            _print_plain(bars, printed, plural, over=True)


def shorten_start(name: str) -> str:
    """The name cut to what a bar has room for; its end, which distinguishes it, stays."""
    return name if len(name) <= _NAME_CHARS else "…" + name[1 - _NAME_CHARS :]


def _print_plain(bars: Progress, printed: dict[TaskID, float], units: str, over: bool = False) -> None:
    """Print a line for each phase that is due for one; `printed` says after how many seconds each had its last."""
    for task in bars.tasks:
        last, elapsed_s = printed.get(task.id), task.elapsed or 0.0
        ends = task.finished and last is not None and (over or task is not bars.tasks[-1])  # the last total may grow
        due = not task.finished and elapsed_s - (last or 0.0) >= (_SHORT_S if last is None else _PLAIN_S)
        if not (ends or due) or last == float("inf"):
            continue
        printed[task.id] = float("inf") if ends else elapsed_s
        left_s = task.time_remaining
        when = f"{_format_time(left_s)} left" if left_s and not ends else f"after {_format_time(elapsed_s)}"
        far = "" if task.total is None else f"{task.completed:.0f} of {task.total:.0f}{' ' * bool(units)}{units}, "
        note = f", {task.fields['note']}" if task.fields["note"] else ""
        print(f"{task.description}: {far}{when}{note}", file=sys.stderr, flush=True)


def _format_time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


@contextmanager
def progress_bar(name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Progress of one phase: call what is yielded with (done, total)."""
    with progress_bars(unit) as show:
        yield lambda done, total: show(name, done, total)
