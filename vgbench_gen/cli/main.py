"""Entry point: collects the verbs, turns errors into one line and an exit status.

Exit status: 0 done, 1 the work fell short, 2 something the user can mend (one line, no traceback), 130 interrupted,
128 + n ended by signal n.
Any other exception is a defect of ours and keeps its traceback.
"""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen import __version__, cli
from vgbench_gen.cli._screen import open_screen
from vgbench_gen.cli._verbs import GroupedVerbs, add_verbs
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.core.surroundings import explain_surroundings

# Base of all complaints about arguments; typer exports only this child of it.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BROKEN_PIPE_STATUS = 141  # what a shell reports for a program ended by SIGPIPE


def make_app() -> typer.Typer:
    """The program with every verb of the folder `cli/`."""
    app = typer.Typer(
        name="vgbench",
        cls=GroupedVerbs,
        help="Build and check visual-geometry questions from raw RGB-D scans, and score models on them.",
        epilog="If you omit DATASET, the most recent build under build/ is used, and its name is printed.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

    @app.callback(invoke_without_command=True)
    def program(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    ) -> None:
        if version:
            typer.echo(f"vgbench {__version__}")
            raise typer.Exit
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    for module in sorted(pkgutil.iter_modules(cli.__path__), key=lambda m: m.name):
        if module.name != "main" and not module.name.startswith("_"):
            add_verbs(app, importlib.import_module(f"{cli.__name__}.{module.name}"))
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status.

    Args:
        argv: arguments after the program's name; those of the process by default.
    """
    # What was closed before we began: its number must not go to a file that somebody prints into.
    while (low := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(low)
    with open_screen():
        try:
            return _run_to_a_status(argv)
        except BrokenPipeError:
            # The reader is gone (`vgbench … | head`). Python would complain once more when it flushes at exit.
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except OSError:
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            return _BROKEN_PIPE_STATUS


def _run_to_a_status(argv: Sequence[str] | None) -> int:
    try:
        with _listen_for_the_end():
            status = _run(make_app(), list(sys.argv[1:] if argv is None else argv))
            sys.stdout.flush()
    except _Ended as exc:
        print(f"vgbench: ended by {exc.signal.name}; run again to go on", file=sys.stderr)
        return 128 + exc.signal
    except (KeyboardInterrupt, typer.Abort):
        print("vgbench: interrupted", file=sys.stderr)
        return 130
    except Exception as exc:
        said = None if isinstance(exc, BrokenPipeError) else explain_surroundings(exc) or _describe_error(exc)
        if said is None:
            raise
        print(f"vgbench: error: {make_one_line(said)}", file=sys.stderr)
        return 2
    return status


class _Ended(KeyboardInterrupt):
    """A signal asks the program to end. It is met as Ctrl-C is: locks are released and temporary files removed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


@contextmanager
def _listen_for_the_end() -> Iterator[None]:
    """Inside the block SIGTERM and SIGHUP raise `_Ended`, unless they are ignored (`nohup`) or spoken for."""
    process, installed = os.getpid(), []

    def end(number: int, _: object) -> None:
        if os.getpid() != process:  # a fork of ours, to which nothing here belongs
            os._exit(128 + number)
        signal.signal(number, signal.SIG_IGN)  # a second one must not cut the clearing up short
        raise _Ended(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(number, end)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            signal.signal(number, signal.SIG_DFL)


def _run(app: typer.Typer, arguments: list[str]) -> int:
    # Not `app()`: its own handling turns a broken pipe into status 1 and prints usage errors over several lines.
    command = typer.main.get_command(app)
    try:
        with command.make_context("vgbench", arguments) as context:
            command.invoke(context)
    except typer.Exit as exc:
        return int(exc.exit_code)
    return 0


def _describe_error(exc: Exception) -> str | None:
    """What a user can mend of an error; None where it is a defect of ours."""
    if isinstance(exc, VGBenchError):
        return str(exc)
    if isinstance(exc, _USAGE_ERROR):
        return _format_usage_message(exc)
    if not isinstance(exc, OSError):
        return None
    # What is wrong with scans is typed where they are read; this is a path to write to, its rights or a full disk.
    where = exc.filename or "the disk (or the folder for temporary files, TMPDIR)"
    if exc.errno in _FULL:
        said = f"{where}: {os.strerror(exc.errno)} ({_describe_disk(exc.filename)})"
        return f"{said}. Free space and run again: what was finished is kept."
    return f"{where}: {exc.strerror or exc}. Check the path, its rights and the space."


def _format_usage_message(exc: Exception) -> str:
    message = str(getattr(exc, "format_message", exc.__str__)())
    path = getattr(getattr(exc, "ctx", None), "command_path", "vgbench")
    stop = "" if message.endswith((".", "?")) else "."
    return f"{message}{stop} See `{path} --help`."


def _describe_disk(path: str | bytes | int | None) -> str:
    """The file system of a path, or of the fullest one of those written to without a name, with what is free on it."""
    named = [Path(os.fsdecode(path))] if isinstance(path, str | bytes) else [Path.cwd(), Path(tempfile.gettempdir())]
    found = []
    for each in named:
        place = next(parent for parent in (each.absolute(), *each.absolute().parents) if parent.is_dir())
        while not place.is_mount():
            place = place.resolve().parent
        found.append((shutil.disk_usage(place).free, place))
    free, place = min(found)
    return f"the disk at {place} has {free / 1e6:.1f} MB free"
