"""Tables in plain text fit their screen and lose nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vgbench_gen.core.columns import format_columns

HEADS = ("task", "source", "facts", "multi-choice", "mostly missing by")
WORD = st.text(st.sampled_from("abcdefgh"), min_size=1, max_size=12)
ROW = st.tuples(WORD, WORD, st.integers(0, 99999), st.integers(0, 99999), st.lists(WORD, max_size=30).map(" ".join))


@given(st.lists(ROW, min_size=1, max_size=5), st.integers(30, 120), st.booleans())
def test_no_line_is_wider_than_the_screen_and_no_word_is_lost(
    rows: list[tuple[object, ...]], width: int, show_heads: bool
) -> None:
    lines = format_columns(rows, heads=HEADS, show_heads=show_heads, right=HEADS[2:4], width=width)
    assert max(map(len, lines)) <= width
    words = sorted(" ".join(str(cell) for row in rows for cell in row).split())
    printed = " ".join(lines).split()
    for word in words:
        assert word in printed
        printed.remove(word)


def test_a_table_that_fits_is_one_line_a_row() -> None:
    assert format_columns([("depth", "ca1m", 7, 12, "")], heads=HEADS, right=HEADS[2:4]) == [
        "task   source  facts  multi-choice  mostly missing by",
        "depth  ca1m        7            12",
    ]


def test_what_a_narrow_screen_does_to_a_table() -> None:
    rows = [("camera_parameters", "scannetpp", 122, 2020, "floor_share 11; not asked as judgment: few 42, taken 3")]
    folded = format_columns(rows, heads=HEADS, right=HEADS[2:4], width=78)
    assert folded == [
        "task               source     facts  multi-  mostly missing by",
        "                                     choice",
        "camera_parameters  scannetpp    122    2020  floor_share 11; not asked as",
        "                                             judgment: few 42, taken 3",
    ]
    below = format_columns(rows, heads=HEADS, right=HEADS[2:4], width=60)
    assert below[3:] == [
        "camera_parameters  scannetpp    122    2020",
        "    floor_share 11; not asked as judgment: few 42, taken 3",
    ]
    dropped = format_columns(rows, heads=HEADS, right=HEADS[2:4], drop=("source",), width=62)
    assert dropped[2] == "camera_parameters    122    2020  floor_share 11; not asked as"


def test_numbers_that_do_not_fit_go_on_below_beside_their_names() -> None:
    heads = ("model", "depth", "pose", "tracking")
    assert format_columns([("baseline", 1, 2, 3)], heads=heads, right=heads[1:], text=False, width=24) == [
        "model     depth  pose",
        "baseline      1     2",
        "",
        "model     tracking",
        "baseline         3",
    ]


def test_rows_of_one_each_stand_below_each_other() -> None:
    heads = ("what", "found")
    lines = [
        *format_columns([], heads=heads, least=(8, 5)),
        *format_columns([("a", "b")], heads=heads, show_heads=False, least=(8, 5)),
    ]
    assert lines == ["what      found", "a         b"]
