"""Text files as editors, spreadsheets and shells write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import decode_text, read_names, read_text

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")


class Recipe(Config):
    """A small configuration."""

    seed: int
    title: str


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff\0\r")), st.sampled_from(ENCODINGS))
def test_every_form_of_unicode_reads_the_same(text: str, encoding: str) -> None:
    """Without a mark, UTF-16 and UTF-32 are known by the zero bytes of two characters of ASCII."""
    assert decode_text(f"id{text}".encode(encoding)) == f"id{text}"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_line_ends_and_marks_are_no_part_of_a_text(tmp_path: Path, encoding: str, end: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(end.join(["seed = 1", 'title = "Fl\u00e4che \u4e2d"', ""]).encode(encoding))
    assert load_toml(path, Recipe) == Recipe(seed=1, title="Fl\u00e4che \u4e2d")
    path.write_bytes(end.join(["# worst first", "b", "", " a #2 # why", "b", ""]).encode(encoding))
    assert read_names(path, "ids", config_error) == ["b", "a"]


@pytest.mark.parametrize(("encoding", "word", "byte"), [("cp1252", "\u00e4", "E4"), ("gbk", "\u5ba2", "BF")])
def test_other_encodings_are_named_and_not_guessed(tmp_path: Path, encoding: str, word: str, byte: str) -> None:
    path = tmp_path / "ids.txt"
    path.write_bytes(f"a\r\n{word}".encode(encoding))
    says = (
        f"ids.txt: found byte 0x{byte} in line 2, which is not UTF-8: save it as UTF-8; expected ids. Check the path."
    )
    with pytest.raises(ConfigError) as caught:
        read_text(path, "ids", config_error, 1000)
    assert str(caught.value).endswith(says)
    assert caught.value.__context__ is None  # which may hold a key


@pytest.mark.timeout(30)
def test_a_pipe_is_read_where_somebody_writes_and_never_waited_for(tmp_path: Path) -> None:
    ends = os.pipe()
    os.write(ends[1], b"\xef\xbb\xbffrom a command")
    os.close(ends[1])
    assert read_text(Path(f"/dev/fd/{ends[0]}"), "ids", config_error, 1000) == "from a command"
    os.close(ends[0])
    os.mkfifo(tmp_path / "pipe")
    for path, says in (
        (tmp_path / "pipe", "no regular file"),
        (tmp_path, "no regular file"),
        (tmp_path / "x", "no such"),
    ):
        with pytest.raises(ConfigError, match=says):
            read_text(path, "ids", config_error, 1000)
    (tmp_path / "long").write_text("x" * 1001)
    with pytest.raises(ConfigError, match="more than 1000 characters"):
        read_text(tmp_path / "long", "ids", config_error, 1000)
