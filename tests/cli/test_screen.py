"""What verbs print: guarded, coloured and measured in one place."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from vgbench_gen.cli import _screen
from vgbench_gen.cli import main as program
from vgbench_gen.cli._screen import (
    escape_codes,
    find_width,
    open_screen,
    print_json,
    progress_bars,
    shorten_start,
)
from vgbench_gen.cli._verbs import add_verb

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> tuple[Terminal, Terminal]:
    """Standard output and standard error as a terminal of 100 columns with colours."""
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    out, error = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", error)
    return out, error


def only_verb(monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    """Replace the program by one with the single verb `act`."""

    def make_app() -> typer.Typer:
        app = typer.Typer(rich_markup_mode=None)
        app.callback()(lambda: None)
        add_verb(app, "act", action, "Look", "vgbench act")
        return app

    monkeypatch.setattr(program, "make_app", make_app)


@given(st.text())
def test_no_code_for_a_terminal_is_left_and_json_says_the_same(text: str) -> None:
    safe = escape_codes(text)
    assert not [c for c in safe if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert not set(safe) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
    assert json.loads(escape_codes(json.dumps({"name": text}, ensure_ascii=False))) == {"name": text}


def test_a_hostile_name_is_shown_and_not_obeyed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def act() -> None:
        print("scan \x1b]0;title\x07\x9b2J\u202ereversed")
        print("and \x1b[31mred", file=sys.stderr)

    only_verb(monkeypatch, act)
    assert program.main(["act"]) == 0
    said = capsys.readouterr()
    assert said.out == "scan \\u001b]0;title\\u0007\\u009b2J\\u202ereversed\n"
    assert said.err == "and red\n"


def test_a_long_line_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    out, _ = open_terminal(monkeypatch)
    only_verb(monkeypatch, lambda: print("word " * 60, end=""))
    assert program.main(["act"]) == 0
    assert out.getvalue() == "word " * 60


def test_quiet_leaves_errors_and_the_json_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def act(as_json: bool = False) -> None:
        with progress_bars("step") as progress:
            progress("work", 1, 2)
            print(json.dumps([1]) if as_json else "a line")
        print("vgbench: warning: something", file=sys.stderr)
        raise typer.Exit(1)

    only_verb(monkeypatch, act)
    for options, out in ((["--quiet"], ""), (["--quiet", "--json"], "[1]\n"), ([], "a line\n")):
        assert program.main(["act", *options]) == 1
        said = capsys.readouterr()
        assert said.out == out
        assert said.err == "vgbench: warning: something\n"
    assert not _screen._quiet


def test_every_verb_can_be_quiet() -> None:
    app: Any = typer.main.get_command(program.make_app())
    commands = [c for name, each in app.commands.items() for c in getattr(each, "commands", {name: each}).values()]
    assert len(commands) > 20
    assert not [c.name for c in commands if "--quiet" not in {flag for p in c.params for flag in p.opts}]


def test_each_phase_has_a_bar_that_begins_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _, error = open_terminal(monkeypatch)
    with open_screen(), progress_bars("frame") as progress:
        progress("rendering", 0, 8, note="0 of 2 scenes")
        progress("rendering", 8, 8, note="2 of 2 scenes")
        time.sleep(0.05)
        progress("asking", 70, 100, kept=60)
        bars = _screen._bars
        assert bars is not None
        first, second = bars.tasks
        assert first.start_time is not None
        assert second.start_time is not None
        assert second.start_time - first.start_time >= 0.05
        assert (first.completed, second.completed) == (8, 70)
        progress("asking", 80, 100)
        print("a line while bars stand")
    shown = error.getvalue()
    assert all(part in shown for part in ("rendering", "8/8", "2 of 2 scenes", "asking", "80/100", "a line while bars"))


def test_a_long_name_keeps_its_end_and_says_that_something_is_gone() -> None:
    assert shorten_start("baseline:solvers") == "baseline:solvers"
    short = shorten_start("vllm:http://127.0.0.1:18433/v1#guesser-7B")
    assert short == "…lm:http://127.0.0.1:18433/v1#guesser-7B"
    assert len(short) == 40


def test_output_that_goes_to_a_file_does_not_end_beside_the_bars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, error = open_terminal(monkeypatch)
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    with open_screen(), progress_bars("scene") as progress:
        progress("health", 1, 2)
        print("row")
    assert file.getvalue() == "row\n"
    assert "row" not in error.getvalue()
    assert find_width() == 100


def test_without_a_terminal_a_line_tells_how_far_a_phase_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("vgbench_gen.cli._screen.time.monotonic", lambda: now[0])
    with progress_bars("scene") as progress:
        progress("measuring", 60, 68, kept=60)  # which cost no time
        for done in range(61, 69):
            now[0] += 10
            progress("measuring", done, 68 if done < 68 else 69, note="1 failed" if done > 66 else "")
        now[0] += 10
        progress("measuring", 69, 69, note="2 failed")
        progress("short", 0, 4)
        now[0] += 1
        progress("short", 4, 4)
    assert capsys.readouterr().err == (
        "measuring: 61 of 68 scenes, after 0:00:10\n"
        "measuring: 64 of 68 scenes, 0:00:40 left\n"
        "measuring: 67 of 68 scenes, 0:00:10 left, 1 failed\n"
        "measuring: 69 of 69 scenes, after 0:01:30, 2 failed\n"
    )


def test_the_plural_of_a_unit_is_english(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    monkeypatch.setattr("vgbench_gen.cli._screen.time.monotonic", lambda: now[0])
    with progress_bars("reply") as progress:
        for done in range(3):
            progress("scoring", done, 2)
            now[0] += 10
    assert "scoring: 2 of 2 replies, after" in capsys.readouterr().err


def open_coded(monkeypatch: pytest.MonkeyPatch, encoding: str) -> tuple[io.BytesIO, io.BytesIO]:
    """Both streams with an encoding that refuses what it lacks."""
    streams = io.BytesIO(), io.BytesIO()
    for name, stream in zip(("stdout", "stderr"), streams, strict=True):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(stream, encoding, "strict", write_through=True))
    return streams


@given(text=st.text() | st.sampled_from(["a\u2013b", "\udcca\udcfd", "\U0001f600", "\xe4"]))
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "gbk"])
def test_a_stream_that_lacks_a_character_shows_an_escape_and_json_says_the_same(encoding: str, text: str) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        out, error = open_coded(monkeypatch, encoding)

        def act() -> None:
            print_json({text: [text]})
            print(text, file=sys.stderr)

        only_verb(monkeypatch, act)
        assert program.main(["act"]) == 0
        assert json.loads(out.getvalue().decode(encoding)) == {text: [text]}
        assert error.getvalue().decode(encoding).endswith("\n")


def test_errors_and_help_reach_a_stream_that_lacks_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    out, error = open_coded(monkeypatch, "ascii")
    assert program.main(["act\u2013\xe4\udcff"]) == 2
    assert b"\\u2013\\u00e4\\udcff" in error.getvalue()
    assert program.main(["eval", "--help"]) == 0
    assert b"vgbench eval" in out.getvalue()


CLOSED = """
import sys, typer
from vgbench_gen.cli import main as program
app = typer.Typer(rich_markup_mode=None)
app.callback()(lambda: None)
@app.command("act")
def act() -> None:
    with open(sys.argv[1], "w") as file:
        for _ in range(3000):
            print("to the output \u2013")
            print("to the errors", file=sys.stderr)
        file.write(str(file.fileno()))
program.make_app = lambda: app
sys.exit(program.main(["act"]))
"""


@pytest.mark.parametrize(
    ("closing", "status"), [(">&-", 0), ("2>&-", 0), (">&- 2>&-", 0), ("<&- >&- 2>&-", 0), ("| head -1", 141)]
    + [("2>&1 >/dev/null | head -1", 141), ("2>&1 | head -1", 141)]
)  # fmt: skip
def test_a_stream_that_is_closed_is_quiet(tmp_path: Path, closing: str, status: int) -> None:
    """Also where a file of the verb would get its number: what is printed must not end in it."""
    (tmp_path / "act.py").write_text(CLOSED)
    line = f"{sys.executable} act.py file {closing}" + ("; exit ${PIPESTATUS[0]}" if "|" in closing else "")
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert done.returncode == status, done
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"Error" not in done.stdout + done.stderr
    if not status:
        assert int((tmp_path / "file").read_text()) > 2
