"""Foreign words on one line and in cells."""

from __future__ import annotations

import pytest

from vgbench_gen.core.lines import guard_formula, make_one_line


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
