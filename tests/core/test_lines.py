"""Foreign words on one line and in cells."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import vgbench_gen
from vgbench_gen.core.lines import format_command, guard_formula, make_one_line


def test_names_are_printed_on_one_line_without_codes() -> None:
    assert make_one_line("a\x1b[2Jb\nc\r\td\u202ee\u2028f") == "a [2Jb c d e f"
    assert make_one_line("x" * 50, 20) == "x" * 20


@pytest.mark.parametrize(
    "text", ['=HYPERLINK("x")', "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", " =1", "\t=1", "-", "--x"]
)
def test_cells_that_a_spreadsheet_would_run_are_texts(text: str) -> None:
    assert guard_formula(text) == f"'{text}"


@pytest.mark.parametrize("cell", ["", "a=b", "-1.5", "+2", "-1e-5", "-3%", "openai:gpt-4o", 3, -2.5, None])
def test_other_cells_are_left_alone(cell: object) -> None:
    assert guard_formula(cell) == cell


def test_commands_are_what_a_shell_reads_back() -> None:
    words = ["vgbench", "browse", Path("my sets/[v1] it's $HOME;*"), "--scenes", "YOUR_SCANS"]
    assert shlex.split(format_command(*words)) == [str(word) for word in words]
    assert format_command("vgbench", "show", "ID", Path("build/demo")) == "vgbench show ID build/demo"


def test_paths_stand_in_commands_by_that_way_alone() -> None:
    """Names of importers and tasks have no blanks; everything else that a user names may."""
    filled = re.compile(r"vgbench [a-z-]+ [^\"\n]*?\{([\w.]+)")
    found = {
        match[1]
        for path in Path(vgbench_gen.__file__).parent.rglob("*.py")
        for match in filled.finditer(path.read_text("utf-8"))
    }
    assert found <= {"BUILDS", "FLAG", "SOLVERS", "_ALL", "again", "benchmark", "folder", "id", "job.name", "name"}
