"""The screen: whatever a verb prints passes here, and bars of progress stand below it.

`open_screen` takes the place of standard output and standard error while a command line runs, so verbs print with
`print`. Codes for terminals in foreign text, and characters that the stream cannot show, become visible escapes; with
`--quiet` nothing is said but errors and JSON that was asked for.
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
import threading
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
_TICK_S = 1.0  # between looks at the time
_SHORT_S = 2.0  # a phase that takes no longer is not told there
_NAME_CHARS = 40  # of a bar's name
# Control characters but tab and line feed, and those that turn the direction of writing; `\r` of a bar is not ours.
_CODES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # a library's own, such as a server's log


class _State:
    """What the streams of one command line know of each other."""

    def __init__(self) -> None:
        self.quiet = False
        self.bars: Progress | None = None


_state = _State()


@contextmanager
def open_screen() -> Iterator[None]:
    """Inside the block standard output and standard error are the screen; one that is closed takes everything."""
    before, state = (sys.stdout, sys.stderr), vars(_state).copy()
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
            vars(_state).update(state)


@contextmanager
def hush(quiet: bool, keep_output: bool) -> Iterator[None]:
    """Inside the block no bar is shown where `quiet`, and nothing comes on standard output unless `keep_output`."""
    before, log = sys.stdout, logging.getLogger("vgbench_gen")
    level, _state.quiet = log.level, quiet
    if quiet:
        log.setLevel(logging.ERROR)
    if quiet and not keep_output:
        sys.stdout = io.StringIO()
    try:
        yield
    finally:
        sys.stdout = before
        log.setLevel(level)
        _state.quiet = False


def find_width() -> int:
    """Characters of a line that tables are to fit: of the terminal, or `core.columns.WIDTH` where there is none."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def print_columns(rows: Iterable[Sequence[object]], **settings: Any) -> None:
    """Print `core.columns.format_columns` of the rows, as wide as the screen."""
    for line in format_columns(rows, width=find_width(), **settings):
        print(line, flush=True)


def print_json(told: Any, indent: int | None = 2) -> None:
    """Print what `--json` asks for; a number that JSON has no word for, not a number or infinite, is null.

    indent: None for one line.
    """
    sound = json.loads(json.dumps(told), parse_constant=lambda _: None)
    print(json.dumps(sound, indent=indent, ensure_ascii=False, allow_nan=False))


class _Stream:
    """One of the two streams: guards what is written, and writes above the bars where these stand on its terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self._held = stream, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Pass text on, above bars line by line."""
        coding = getattr(self.stream, "encoding", None) or "utf-8"
        safe = self._held + escape_codes(text).encode(coding, "vgbench.escape").decode(coding)
        bars, self._held = _state.bars, ""
        if bars is None or not self.stream.isatty():
            self.stream.write(safe)
            return len(text)
        *lines, self._held = safe.split("\n")
        for line in lines:
            bars.console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)
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
    """The text with characters that move a cursor, colour, or turn the writing as escapes such as `\\u001b`.

    These are JSON's own, so that JSON stays what it says.
    """
    return _CODES.sub(lambda found: f"\\u{ord(found[0]):04x}", _COLOURS.sub("", text) if "\x1b" in text else text)


def _escape_unshown(problem: UnicodeError) -> tuple[str, int]:
    """As `escape_codes`, of characters that a stream's encoding lacks."""
    assert isinstance(problem, UnicodeEncodeError)
    text = problem.object[problem.start : problem.end]
    return "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text), problem.end


codecs.register_error("vgbench.escape", _escape_unshown)


@contextmanager
def progress_bars(unit: str = "") -> Iterator[Callable[..., None]]:
    """Progress on standard error: a bar for each phase, whose estimate rests on its own start.

    A clock in every bar moves each second, so that a long step does not look like a halt. Where there is no terminal
    a line says how far a phase is after some seconds, every half minute, and where it ends.

    What is yielded is called as `told(name, done, total, kept=0, note="")`: `name` of a phase, which gets its bar at
    its first call; `total`, None while nobody knows; `kept` of `done`, what was there before; words behind the bar.

    Args:
        unit: what is counted, such as "scene".
    """
    if _state.quiet or _state.bars is not None:
        yield lambda *_, **__: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Left
    from rich.table import Column

    on_terminal, plural = sys.stderr.isatty(), f"{unit}s" if unit else ""
    columns = (
        SpinnerColumn("line", finished_text=" "),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(plural, markup=False),
        Elapsed(),
        Left(),
        TextColumn("{task.fields[note]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    bars = Progress(
        *columns,
        console=Console(file=getattr(sys.stderr, "stream", sys.stderr)),
        redirect_stdout=False,
        redirect_stderr=False,
        speed_estimate_period=float("inf"),
        get_time=time.monotonic,
        disable=not on_terminal,
    )
    tasks: dict[str, TaskID] = {}

    def told(name: str, done: int, total: int | None, *, kept: int = 0, note: str = "") -> None:
        if name not in tasks:
            tasks[name] = bars.add_task(escape_codes(name), total=total, completed=kept, note=note)
        bars.update(tasks[name], total=total, completed=done, note=escape_codes(note))
        if lines is not None:
            lines.look()

    lines = None if on_terminal else _PlainLines(bars, plural)
    _state.bars = bars
    try:
        with lines or bars:
            yield told
    finally:
        _state.bars = None


def shorten_start(name: str) -> str:
    """The name as a bar has room for it: its end tells it apart."""
    return name if len(name) <= _NAME_CHARS else "…" + name[1 - _NAME_CHARS :]


class _PlainLines:
    """Progress without a terminal. A thread of its own tells the time: between two calls an hour may go by."""

    def __init__(self, bars: Progress, units: str) -> None:
        self._bars, self._units = bars, f" {units}" if units else ""
        self._said: dict[TaskID, float] = {}
        self._lock, self._over = threading.Lock(), threading.Event()

    def __enter__(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.look()

    def _watch(self) -> None:
        while not self._over.wait(_TICK_S):
            self.look()

    def look(self) -> None:
        """Say where the phases are, if it is time to."""
        with self._lock:
            tasks = self._bars.tasks
            for task in tasks:
                said, elapsed_s = self._said.get(task.id), task.elapsed or 0.0
                # The total of the last one may grow yet.
                ends = task.finished and said is not None and (self._over.is_set() or task is not tasks[-1])
                due = not task.finished and elapsed_s - (said or 0.0) >= (_SHORT_S if said is None else _PLAIN_S)
                if not (ends or due) or said == float("inf"):
                    continue
                self._said[task.id] = float("inf") if ends else elapsed_s
                left_s = task.time_remaining
                when = f"{_format_time(left_s)} left" if left_s and not ends else f"after {_format_time(elapsed_s)}"
                far = "" if task.total is None else f"{task.completed:.0f} of {task.total:.0f}{self._units}, "
                note = f", {task.fields['note']}" if task.fields["note"] else ""
                print(f"{task.description}: {far}{when}{note}", file=sys.stderr, flush=True)


def _format_time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


@contextmanager
def progress_bar(name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Progress of one thing: call what is yielded with (done, total)."""
    with progress_bars(unit) as told:
        yield lambda done, total: told(name, done, total)
