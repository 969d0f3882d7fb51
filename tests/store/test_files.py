"""A file appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.store.files import replace_file


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
