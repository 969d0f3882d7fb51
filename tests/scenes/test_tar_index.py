from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from tests.scenes.ca1m_writer import link, write_tar
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.scenes._tar_index import TarIndex


def reasons(index: TarIndex) -> list[str]:
    return [issue.reason for issue in index.issues]


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_agrees_with_tarfile_for_every_dialect_and_long_names(tmp_path: Path, kind: int) -> None:
    long = "v/" + "a" * 90 + "/" + "b" * 90  # needs the prefix field, a GNU long name or a pax header
    names = {"v/x": b"1234", "v/empty": b"", long: b"z" * 1500, "v/ü.json": b"{}", "./v/dot": b"5"}
    with tarfile.open(tmp_path / "a.tar", "w:", format=kind) as archive:
        directory = tarfile.TarInfo("v")
        directory.type = tarfile.DIRTYPE
        archive.addfile(directory)
        for name, data in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    index = TarIndex(tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as oracle:
        for info in oracle.getmembers():
            if info.isfile():
                clean = info.name.removeprefix("./")
                assert index.members[clean] == (info.offset_data, info.size)
                assert index.read(clean) == names[info.name]
    assert len(index.members) == len(names)
    assert index.issues == []
    assert index.read(long, start=1498) == b"zz"
    assert index.read("v/x", start=1, limit=2) == b"23"
    assert index.read("v/x", start=9) == b""


def test_pax_size_and_base256_size_count(tmp_path: Path) -> None:
    info = tarfile.TarInfo("v/big")
    info.size, info.pax_headers = 700, {"size": "700", "comment": "x"}
    after = tarfile.TarInfo("v/after")
    after.size = 3
    with tarfile.open(tmp_path / "a.tar", "w:", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(b"q" * 700))
        archive.addfile(after, io.BytesIO(b"abc"))
    data = bytearray((tmp_path / "a.tar").read_bytes())
    at = data.index(b"v/after")
    data[at + 124 : at + 136] = b"\x80" + (3).to_bytes(11, "big")
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    (tmp_path / "a.tar").write_bytes(data)
    index = TarIndex(tmp_path / "a.tar")
    assert {name: size for name, (_, size) in index.members.items()} == {"v/big": 700, "v/after": 3}
    assert index.read("v/after") == b"abc"


def test_links_devices_and_climbing_names_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    extra = [
        link("v/soft", "/etc/passwd"),
        link("v/hard", "v/x", tarfile.LNKTYPE),
        link("v/pipe", "", tarfile.FIFOTYPE),
        link("v/device", "", tarfile.CHRTYPE),
    ]
    bad = {"../secret": b"1", "/etc/passwd": b"2", "v/../../x": b"3", "C:/x": b"4", "v\\x": b"5", "v/\nx": b"6"}
    index = TarIndex(write_tar(tmp_path / "a.tar", {**bad, "v/x": b"good", "v/y": b"2"}, extra))
    assert set(index.members) == {"v/x", "v/y"}
    assert index.read("v/x") == b"good"
    assert reasons(index) == ["tar_member_refused"] * 10


def test_a_hard_link_that_repeats_a_size_does_not_shift_what_follows(tmp_path: Path) -> None:
    header = link("v/hard", "v/x", tarfile.LNKTYPE)
    header.size = 5000
    content = write_tar(tmp_path / "b.tar", {"v/x": b"good"}).read_bytes()
    (tmp_path / "a.tar").write_bytes(header.tobuf() + content)
    assert TarIndex(tmp_path / "a.tar").read("v/x") == b"good"


def test_the_later_of_two_equal_names_counts(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w:") as archive:
        for data in (b"old", b"newer"):
            info = tarfile.TarInfo("v/x")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    index = TarIndex(tmp_path / "a.tar")
    assert index.read("v/x") == b"newer"
    assert reasons(index) == ["tar_duplicate_member"]


def test_a_truncated_archive_keeps_whole_members_only(tmp_path: Path) -> None:
    whole = write_tar(tmp_path / "w.tar", {"v/a": b"a" * 600, "v/b": b"b" * 600}).read_bytes()
    second = whole.index(b"v/b")
    for cut, kept in [(second + 512 + 599, {"v/a"}), (second + 100, {"v/a"}), (second + 512 + 1024, {"v/a", "v/b"})]:
        (tmp_path / "a.tar").write_bytes(whole[:cut])
        index = TarIndex(tmp_path / "a.tar")
        assert set(index.members) == kept
        assert reasons(index) == ["tar_truncated"]


def test_a_declared_size_beyond_the_file_takes_no_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("v/huge")
    info.size = 1 << 50
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + b"x" * 1024)
    index = TarIndex(tmp_path / "a.tar")
    assert set(index.members) == set()
    assert "1125899906842624" in index.issues[0].detail


def test_huge_extended_headers_and_damaged_headers_end_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = os.pread

    def spy(handle: int, count: int, offset: int) -> bytes:
        asked.append(count)
        return real(handle, count, offset)

    monkeypatch.setattr(os, "pread", spy)
    good = write_tar(tmp_path / "w.tar", {"v/a": b"a", "v/b": b"b"}).read_bytes()
    name = tarfile.TarInfo("././@LongLink")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    (tmp_path / "a.tar").write_bytes(good[:1024] + name.tobuf(tarfile.GNU_FORMAT) + good[1024:])
    assert set(TarIndex(tmp_path / "a.tar").members) == {"v/a"}
    assert max(asked) <= 64 * 1024
    broken = bytearray(good)
    broken[1024 + 5] ^= 1  # a name byte: only the checksum can tell
    (tmp_path / "a.tar").write_bytes(broken)
    index = TarIndex(tmp_path / "a.tar")
    assert set(index.members) == {"v/a"}
    assert reasons(index) == ["tar_damaged"]


def test_an_unfinished_preallocated_download_is_said(tmp_path: Path) -> None:
    whole = write_tar(tmp_path / "w.tar", {"v/a": b"a"}).read_bytes()
    with (tmp_path / "a.tar").open("wb") as file:
        file.write(whole)
        file.truncate(5 << 20)
    index = TarIndex(tmp_path / "a.tar")
    assert set(index.members) == {"v/a"}
    assert reasons(index) == ["tar_truncated"]


def test_issues_are_bounded(tmp_path: Path) -> None:
    extra = [link(f"v/{n}", "x") for n in range(150)]
    index = TarIndex(write_tar(tmp_path / "a.tar", {"v/a": b"a"}, extra))
    assert len(index.issues) == 101
    assert "50 more members" in index.issues[-1].detail


def test_what_is_no_tar_is_refused(tmp_path: Path) -> None:
    for data, said in (
        (b"\x1f\x8b", "a compressed archive.* Unpack it"),
        (b"text", "no tar header"),
        (b"", "an empty file"),
    ):
        (tmp_path / "a.tar").write_bytes(data * 600)
        with pytest.raises(SceneError, match=said):
            TarIndex(tmp_path / "a.tar")
    with pytest.raises(SceneError, match="No such file"):
        TarIndex(tmp_path / "missing.tar")


def test_a_file_that_shrinks_while_open_is_an_error(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", {"v/a": b"a" * 600})
    index = TarIndex(path)
    with path.open("r+b") as file:
        file.truncate(700)
    with pytest.raises(FrameError, match="changed while in use"):
        index.read("v/a")
