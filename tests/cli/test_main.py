from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import vgbench_gen
from vgbench_gen import cli
from vgbench_gen.cli import main as program
from vgbench_gen.core.errors import FormatError

HEAVY = ("numpy", "scipy", "cv2", "open3d", "trimesh", "pyarrow", "datasets", "sklearn", "openai", "PIL", "rich")


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def only_verb(monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    """Replace the program by one with the single verb `act`."""

    def make_app() -> typer.Typer:
        app = typer.Typer(rich_markup_mode=None)
        app.callback()(lambda: None)
        app.command("act")(action)
        return app

    monkeypatch.setattr(program, "make_app", make_app)


def test_help_of_every_verb_loads_nothing_heavy() -> None:
    code = (
        "import json, sys, contextlib, io\n"
        "from vgbench_gen.cli.main import main, make_app\n"
        "verbs = [c.name or c.callback.__name__ for c in make_app().registered_commands]\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    statuses = [main([*v, '--help']) for v in ([], *([v] for v in verbs))]\n"
        f"print(json.dumps([verbs, statuses, [m for m in {HEAVY!r} if m in sys.modules]]))\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    verbs, statuses, loaded = json.loads(done.stdout)
    assert "scenes" in verbs
    assert set(statuses) == {0}
    assert loaded == []


def test_importing_the_package_loads_nothing_heavy() -> None:
    done = run_python(f"import sys, vgbench_gen; print([m for m in {(*HEAVY, 'typer')!r} if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_every_verb_ends_its_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    commands = program.make_app().registered_commands
    assert commands
    for command in commands:
        name = str(command.name or getattr(command.callback, "__name__", ""))
        assert program.main([name, "--help"]) == 0
        assert f"vgbench {name}" in capsys.readouterr().out.strip().rsplit("\n\n", 1)[-1]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--version"]) == 0
    assert capsys.readouterr().out == f"vgbench {vgbench_gen.__version__}\n"


def test_help_cuts_no_description(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert program.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    flat = " ".join(told.split())
    for command in program.make_app().registered_commands:
        first = " ".join((command.callback.__doc__ or "").split()).split(". ")[0] if command.callback else ""
        assert command.hidden or first in flat
    assert told.count("Example: vgbench ") == 5  # one for each group


def test_no_verb_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([]) == 0
    assert "scenes" in capsys.readouterr().out


def test_unknown_verb_is_one_line_with_the_near_miss(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["scenss"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "vgbench: error: No such command 'scenss'. Did you mean 'scenes'? See `vgbench --help`.\n"


def test_bad_option_is_one_line_naming_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["scenes", "--jsn", "."]) == 2
    err = capsys.readouterr().err
    assert err.startswith("vgbench: error: No such option: --jsn")
    assert err.endswith("See `vgbench scenes --help`.\n")
    assert err.count("\n") == 1


def test_errors_a_user_can_mend_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def act() -> None:
        raise FormatError("a/b.sens", "magic 7\nand more", "version 4", "Copy the file again.")

    only_verb(monkeypatch, act)
    assert program.main(["act"]) == 2
    captured = capsys.readouterr()
    assert captured.err == (
        "vgbench: error: a/b.sens: found magic 7 and more; expected version 4. Copy the file again.\n"
    )
    assert captured.out == ""


def test_our_own_defects_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def act() -> None:
        raise ZeroDivisionError("ours")

    only_verb(monkeypatch, act)
    with pytest.raises(ZeroDivisionError, match="ours"):
        program.main(["act"])


def test_work_that_fell_short_and_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short() -> None:
        raise typer.Exit(1)

    def interrupted() -> None:
        raise KeyboardInterrupt

    only_verb(monkeypatch, short)
    assert program.main(["act"]) == 1
    assert capsys.readouterr().err == ""
    only_verb(monkeypatch, interrupted)
    assert program.main(["act"]) == 130
    assert capsys.readouterr().err == "vgbench: interrupted\n"


def test_a_closed_pipe_is_quiet() -> None:
    code = (
        "import sys, typer\n"
        "from vgbench_gen.cli import main as program\n"
        "app = typer.Typer(rich_markup_mode=None)\n"
        "app.callback()(lambda: None)\n"
        "@app.command('act')\n"
        "def act() -> None:\n"
        "    for _ in range(100_000): print('a line that the reader does not wait for')\n"
        "program.make_app = lambda: app\n"
        "sys.exit(program.main(['act']))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=300) == 141


def test_a_verb_is_added_by_adding_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zz_probe.py").write_text(
        "from vgbench_gen.cli._verbs import verb\n"
        "@verb('zz-probe', 'Look', 'vgbench zz-probe')\ndef probe() -> None:\n    print('probed')\n"
    )
    (tmp_path / "_private.py").write_text("raise AssertionError('private modules are no verbs')\n")
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    assert program.main(["zz-probe"]) == 0


def test_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'vgbench_gen' has no attribute 'buidl'"):
        _ = vgbench_gen.buidl
    assert {"open_scenes", "build", "load"} <= set(dir(vgbench_gen))


@pytest.mark.parametrize("line", [["build", "--out", ""], ["build", "--out="], ["audit", ""], ["scenes", ""]])
def test_an_empty_path_is_not_the_current_folder(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert program.main(line) == 2
    assert "found an empty path" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_program_in_a_line_and_releases_the_lock(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import sys, time; from pathlib import Path; import typer; from vgbench_gen.cli import main as program\n"
        "from vgbench_gen.store.files import replace_file; from vgbench_gen.store.provenance import BuildLock\n"
        "def act():\n"
        "    with BuildLock(Path(sys.argv[1])), replace_file(Path(sys.argv[1], 'file')) as half:\n"
        "        half.write_text('half'); print('here', flush=True); time.sleep(60)\n"
        "def make_app():\n"
        "    app = typer.Typer(); app.callback()(lambda: None); app.command('act')(act); return app\n"
        "program.make_app = make_app\n"
        "sys.exit(program.main(['act']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + number, f"vgbench: ended by {number.name}; run again to go on\n")
    assert not list(tmp_path.iterdir())


def test_errors_hold_no_codes_for_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def act() -> None:
        raise FormatError("scene\x1b[2J\x1b]0;title\x07", "a\nb\rc", "d\x9b1m", "e\u202ef")

    only_verb(monkeypatch, act)
    assert program.main(["act"]) == 2
    said = capsys.readouterr().err.removesuffix("\n")
    assert said.isprintable()


@pytest.mark.parametrize("named", [True, False])
def test_a_full_disk_is_named(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def act() -> None:
        raise OSError(28, "No space left on device", *([str(tmp_path / "a/b")] if named else []))

    only_verb(monkeypatch, act)
    assert program.main(["act"]) == 2
    said = capsys.readouterr().err
    disk = next(parent for parent in tmp_path.parents if parent.is_mount())
    assert re.search(rf"No space left on device \(the disk at {re.escape(str(disk))} has \d+\.\d MB free\)", said)
