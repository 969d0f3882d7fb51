"""A file appears whole or not at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.store.files import fill_folder, make_temporary_name, replace_file, write_bytes


def test_the_old_file_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "rows.bin"
    with replace_file(target) as path:
        path.write_bytes(b"old")
    with replace_file(target) as path:
        path.write_bytes(b"new, half of it")
        assert target.read_bytes() == b"old"
        path.write_bytes(b"new")
    assert (target.read_bytes(), list(target.parent.iterdir())) == (b"new", [target])


def test_a_write_that_breaks_off_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "rows.bin"
    target.write_bytes(b"old")

    def write_half() -> None:
        with replace_file(target) as path:
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        write_half()
    assert caught.value.filename == str(target)
    assert (target.read_bytes(), list(tmp_path.iterdir())) == (b"old", [target])


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="a folder or device"), replace_file(tmp_path):
        pass


def test_what_killed_writers_of_a_file_left_goes_with_its_next_write(tmp_path: Path) -> None:
    """A vote that was killed while it wrote scores left such a name for ever."""
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    ours, other = (tmp_path / f".{name}.{dead.pid}-0123456789ab.tmp" for name in ("a.jsonl", "b.jsonl"))
    living = tmp_path / f".a.jsonl.{os.getpid()}-0123456789ab.tmp"
    for path in (ours, other, living):
        path.touch()
    write_bytes(tmp_path / "a.jsonl", b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([living, other, tmp_path / "a.jsonl"])


def test_a_folder_is_replaced_whole_or_stays(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    target = tmp_path / "set"
    target.mkdir()
    (target / "old").touch()
    (tmp_path / f".set.{dead.pid}-0123456789ab.tmp").mkdir()  # of a writer that was killed
    running = make_temporary_name(target)
    running.mkdir()
    for error, told in (
        (OSError(28, "No space left on device"), f"[Errno 28] No space left on device: '{target}'"),
        (OSError("a library's words"), "a library's words"),
    ):
        with pytest.raises(OSError, match=re.escape(told)), fill_folder(target):
            raise error
    assert sorted(tmp_path.iterdir()) == sorted([target, running])
    assert [path.name for path in target.iterdir()] == ["old"]
    with fill_folder(target) as filling:
        (filling / "new").touch()
    assert sorted(tmp_path.iterdir()) == sorted([target, running])
    assert [path.name for path in target.iterdir()] == ["new"]
