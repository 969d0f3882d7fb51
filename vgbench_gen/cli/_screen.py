"""The screen: whatever a verb prints passes here, and bars of progress stand below it.

`open_screen` takes the place of standard output and standard error while a command line runs, so verbs print with
`print`. Codes for terminals in foreign text become visible escapes, lines are coloured where the stream is a terminal,
and with `--quiet` nothing is said but errors and JSON that was asked for.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from vgbench_gen.core.columns import WIDTH, format_columns

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_PLAIN_S = 30.0  # between lines of progress where there is no terminal
_TICK_S = 1.0  # between looks at the time
_SHORT_S = 2.0  # a phase that takes no longer is not told there
_KNOWN, _KNOWN_SHARE = 20, 0.1  # of what is to be done, before an estimate says something; the fewer of both
_NAME_CHARS = 40  # of a bar's name
# Control characters but tab and line feed, and those that turn the direction of writing; `\r` of a bar is not ours.
_CODES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # a library's own, such as a server's log
_STYLES = {
    r"^vgbench: error:|^ *(?:RED|FAIL)\b|\bbad: |built, but not verified|\bfailed\b": "bold red",
    r"^vgbench: (?:warning|note|interrupted|stopped)\b|^ *(?:few|WARN)\b|^dropped\b|\(incomplete\)": "yellow",
    r"built and verified|^ *(?:green|ok|PASS)\b|\bgood$": "green",
    r"`(?:vgbench|make|source) [^`]+`|(?:next: |: )vgbench .*|^dataset: .*": "cyan",
    r"(?<![\w/])[\w./-]+/[\w.-]+\.(?:html|png|json|jsonl|csv)\b": "underline",
}


class _State:
    """What the streams of one command line know of each other."""

    def __init__(self) -> None:
        self.quiet = False
        self.bars: Progress | None = None


_state = _State()


@contextmanager
def open_screen() -> Iterator[None]:
    """Inside the block standard output and standard error are the screen."""
    before, state = (sys.stdout, sys.stderr), vars(_state).copy()
    sys.stdout, sys.stderr = (cast(TextIO, _Stream(stream)) for stream in before)
    try:
        yield
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        sys.stdout, sys.stderr = before
        vars(_state).update(state)


@contextmanager
def hush(quiet: bool, keep_output: bool) -> Iterator[None]:
    """Inside the block no bar is shown where `quiet`, and nothing comes on standard output unless `keep_output`."""
    before = sys.stdout
    _state.quiet = quiet
    if quiet and not keep_output:
        sys.stdout = io.StringIO()
    try:
        yield
    finally:
        sys.stdout = before
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
    """One of the two streams: guards what is written, colours whole lines on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._held = stream, ""
        self._console: Console | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Pass text on, line by line where it is coloured."""
        safe = escape_codes(text)
        if not self._stream.isatty():
            self._stream.write(safe)
            return len(text)
        *lines, self._held = f"{self._held}{safe}".split("\n")
        for line in lines:
            self._print(line, "\n")
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As `write`, one after the other."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Show what was written, a line that has not ended as well."""
        if self._held:
            held, self._held = self._held, ""
            self._print(held, "")
        self._stream.flush()

    def open_console(self) -> Console:
        """The stream as rich writes to it."""
        from rich.console import Console

        if self._console is None:
            self._console = Console(file=self._stream)
        return self._console

    def _print(self, line: str, end: str) -> None:
        from rich.text import Text

        styled = Text(line)
        for pattern, style in _STYLES.items():
            styled.highlight_regex(pattern, style)
        # Lines above the bars go where these are: both are one terminal.
        console = self.open_console() if _state.bars is None else _state.bars.console
        console.print(styled, end=end, soft_wrap=True, highlight=False, markup=False)


def escape_codes(text: str) -> str:
    """The text with characters that move a cursor, colour, or turn the writing as escapes such as `\\u001b`.

    These are JSON's own, so that JSON stays what it says.
    """
    return _CODES.sub(lambda found: f"\\u{ord(found[0]):04x}", _COLOURS.sub("", text) if "\x1b" in text else text)


class Told(Protocol):
    """Is called with how far a phase is."""

    def __call__(self, name: str, done: int, total: int | None, *, kept: int = 0, note: str = "") -> None:
        """name: of the phase, which gets a bar of its own at its first call; kept: of `done`, what was there before;
        total: None while nobody knows; note: words behind the bar."""


@contextmanager
def progress_bars(unit: str = "") -> Iterator[Told]:
    """Progress on standard error: a bar for each phase, whose estimate rests on its own start.

    A clock in every bar moves each second, so that a long step does not look like a halt. Where there is no terminal
    a line tells so where a phase begins, every half minute, and where it ends.

    Args:
        unit: what is counted, such as "scene".
    """
    if _state.quiet or _state.bars is not None:
        yield _tell_nothing
    elif sys.stderr.isatty():
        with _open_bars(unit) as told:
            yield told
    else:
        with _PlainLines(unit) as lines:
            yield lines


def _tell_nothing(name: str, done: int, total: int | None, *, kept: int = 0, note: str = "") -> None:
    pass


@contextmanager
def _open_bars(unit: str) -> Iterator[Told]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.table import Column
    from rich.text import Text
    from tqdm import tqdm

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            left = estimate_left_s(task.elapsed or 0.0, task.completed, task.total, task.fields["kept"])
            return Text(
                "" if left is None or task.finished else f"about {tqdm.format_interval(left)} left", style="cyan"
            )

    stream = sys.stderr
    console = stream.open_console() if isinstance(stream, _Stream) else Console(file=stream)
    plural = f"{unit}s" if unit else ""
    columns = (
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(plural, markup=False),
        Elapsed(),
        Left(),
        TextColumn("{task.fields[note]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    bars = Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False)
    tasks: dict[str, Any] = {}

    def told(name: str, done: int, total: int | None, *, kept: int = 0, note: str = "") -> None:
        if name not in tasks:
            tasks[name] = bars.add_task(escape_codes(name), total=total, completed=kept, kept=kept, note=note)
        bars.update(tasks[name], total=total, completed=done, note=escape_codes(note))

    _state.bars = bars
    try:
        with bars:
            yield told
    finally:
        _state.bars = None


def estimate_left_s(elapsed_s: float, done: float, total: float | None, kept: float) -> float | None:
    """Seconds to the end of a phase that has been going for `elapsed_s`; None while nothing is known.

    The first tenth or the first twenty say nothing: before the first frame of a room stands the room.

    kept: of `done`, what was there when it began, which cost it no time.
    """
    if total is None or done - kept < min(_KNOWN, _KNOWN_SHARE * (total - kept)) or done <= kept:
        return None
    return elapsed_s * (total - done) / (done - kept)


def shorten_start(name: str) -> str:
    """The name as a bar has room for it: its end tells it apart."""
    return name if len(name) <= _NAME_CHARS else "…" + name[1 - _NAME_CHARS :]


class _PlainLines:
    """Progress without a terminal: a line where a phase of some seconds begins and ends, and every half minute between.

    A thread of its own tells the time, as long as the block lasts: between two calls an hour may go by.
    """

    def __init__(self, unit: str) -> None:
        self._unit, self._said = f" {unit}s" if unit else "", time.monotonic()
        self._phases: dict[str, _Phase] = {}
        self._lock, self._over = threading.Lock(), threading.Event()

    def __enter__(self) -> _PlainLines:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with self._lock:
            self._tell_ends()

    def _watch(self) -> None:
        while not self._over.wait(_TICK_S):
            self.look()

    def __call__(self, name: str, done: int, total: int | None, *, kept: int = 0, note: str = "") -> None:
        with self._lock:
            now = time.monotonic()
            phase = self._phases.setdefault(name, _Phase(name, now, max(kept, done)))
            phase.done, phase.total, phase.last = done, total, now
            self._tell_ends(going=name)  # the total of this one may grow
        self.look()

    def look(self) -> None:
        """Tell where the phases are, if it is time to."""
        with self._lock:
            now = time.monotonic()
            going = [phase for phase in self._phases.values() if not phase.is_over()]
            for phase in going[-1:]:
                since = now - (self._said if phase.told else phase.begun)
                if since >= (_PLAIN_S if phase.told else _SHORT_S):
                    phase.told = True
                    self._say(self._describe(phase, now), now)

    def _tell_ends(self, going: str = "") -> None:
        for phase in self._phases.values():
            if phase.told and not phase.end_told and phase.name != going and phase.is_over():
                phase.end_told = True
                took = _format_time(phase.last - phase.begun)
                self._say(f"{phase.name}: {phase.done} of {phase.total}{self._unit}, done after {took}", phase.last)

    def _describe(self, phase: _Phase, now: float) -> str:
        if phase.total is None:
            return f"{phase.name}: for {_format_time(now - phase.begun)}"
        left_s = estimate_left_s(now - phase.begun, phase.done, phase.total, phase.first)
        left = "" if left_s is None else f", about {_format_time(left_s)} left"
        return f"{phase.name}: {phase.done} of {phase.total}{self._unit}{left}"

    def _say(self, line: str, now: float) -> None:
        self._said = now
        print(line, file=sys.stderr, flush=True)


@dataclass
class _Phase:
    """What is known of a phase: when it begun and was last heard of, how far it was then and is now, and whether it and
    its end were told."""

    name: str
    begun: float
    first: int
    done: int = 0
    total: int | None = None
    last: float = 0.0
    told: bool = False
    end_told: bool = False

    def is_over(self) -> bool:
        """Whether all is done, as far as is known."""
        return self.total is not None and self.done >= self.total


def _format_time(seconds: float) -> str:
    from tqdm import tqdm

    return str(tqdm.format_interval(seconds))


@contextmanager
def progress_bar(name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Progress of one thing: call what is yielded with (done, total)."""
    with progress_bars(unit) as told:
        yield lambda done, total: told(name, done, total)
