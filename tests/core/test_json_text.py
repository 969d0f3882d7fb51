"""JSON from elsewhere: what cannot be written again, what is too much, and what is no file."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from vgbench_gen.core.json_text import parse_json, read_json


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e999", "[-1e400]"])
def test_numbers_that_could_not_be_written_again(text: str) -> None:
    with pytest.raises(ValueError, match="the number"):
        parse_json(text)
    assert "null" in json.dumps(parse_json(text, "none"))
    kept = str(parse_json(text, "keep"))
    assert "inf" in kept or "nan" in kept


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        (b"\xff{}", "byte 0xFF in line 1, which is not UTF-8"),
        (b'1,\n"\xed\xa0\x80"', "byte 0xED in line 2"),
        ("[" * 100_000, "in each other"),
        ("9" * 5000, "4300 digits"),
    ],
)
def test_what_is_no_json_is_one_kind_of_error(text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_json(text)


@pytest.mark.parametrize("encode", [str, str.encode])
def test_half_a_pair_of_surrogates_can_be_written_afterwards(encode: Any) -> None:
    """Such a name in a reply ended `compare`, and in an annotation ended `import`, when they wrote what they had."""
    found = parse_json(encode(r'{"\ud800": ["a\uDFFFb", "\ud83d\ude00", "\\ud800", 0.1, null]}'))
    assert found == {"?": ["a?b", "\U0001f600", "\\ud800", 0.1, None]}
    assert parse_json('"\ud800"') == "?"


def test_marks_of_the_byte_order_are_passed_over() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        assert parse_json('{"a": "ü"}'.encode(encoding)) == {"a": "ü"}
    assert parse_json("\ufeff1") == 1


def test_too_much_is_refused_before_it_is_parsed() -> None:
    assert parse_json("[1,2]", most_bytes=5) == [1, 2]
    with pytest.raises(ValueError, match="6 bytes of JSON; at most 5"):
        parse_json("[1,2] ", most_bytes=5)
    assert parse_json("[{},[]]", most_containers=3) == [{}, []]
    with pytest.raises(ValueError, match="4 lists and objects; at most 3"):
        parse_json("[{},[[]]]", most_containers=3)


@pytest.mark.timeout(30)
def test_files_are_looked_at_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": NaN}')
    assert math.isnan(read_json(path, "keep")["a"])
    os.truncate(path, 1 << 40)  # takes no room on the disk, and would take more memory than there is
    with pytest.raises(ValueError, match="1099511627776 bytes of JSON"):
        read_json(path)
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises((ValueError, IsADirectoryError)):
            read_json(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none")
