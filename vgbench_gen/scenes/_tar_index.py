"""Names, offsets and sizes of the members of an uncompressed tar, read in place and never extracted.

Our own walk over the 512-byte headers (POSIX.1-1988 ustar, POSIX.1-2001 pax `path`/`size`, GNU long names and
base-256 sizes) instead of `tarfile`, because that module reads extended headers of any declared length into memory
and recurses once per chained one; a foreign archive must be able to do neither.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import open_regular, read_part

_BLOCK = 512
_MAX_MEMBERS = 500_000  # the largest CA-1M captures have some 40 000
_MAX_EXTENDED = 64 * 1024  # bytes of one long-name or pax record; real ones have a few hundred
_MAX_NAME = 512
_MAX_NOTES = 100
_READ_AHEAD = 4 * _BLOCK  # a header and the small JSON after it often come with one read
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd", b"7z\xbc\xaf", b"Rar!")
_KINDS = {b"1": "hard link", b"2": "symbolic link", b"3": "device", b"4": "device", b"6": "pipe"}


class TarIndex:
    """Random access to the regular members of one tar.

    Raises:
        SceneError: the file cannot be opened, does not begin with a tar header, or holds more than 500 000 members.
    """

    members: dict[str, tuple[int, int]]
    """Name to offset and size of the payload, in bytes. Names are relative, without "." or ".." parts. Of two members
    with the same name the later one counts, as when a tar is unpacked."""

    issues: list[Issue]
    """What was refused, and why reading ended early: at most 100 issues, plus one that counts the rest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.members, self.issues = {}, []
        self._unsaid = 0
        self._file = open_regular(path, path)
        with close_if_raised(self.close):
            self.size_bytes = os.fstat(self._file.fileno()).st_size
            self._walk()
        if self._unsaid:
            self.issues.append(Issue("", "tar_more_issues", f"{path}: {self._unsaid} more members refused"))

    def read(self, name: str, start: int = 0, limit: int | None = None) -> bytes:
        """At most `limit` bytes (default: all) of a member from `start` on. Safe to call from several threads.

        Raises:
            KeyError: no such member.
            FrameError: the file became shorter since it was indexed.
        """
        offset, size = self.members[name]
        wanted = max(size - start, 0) if limit is None else min(max(size - start, 0), limit)
        return read_part(self._file, f"{self.path}:{name}", offset + start, wanted)

    def close(self) -> None:
        """Close the file; reading afterwards fails."""
        self._file.close()

    def _walk(self) -> None:
        position: int | None = 0
        self._stated = dict[str, str]()  # what extended headers say of the member that follows them
        while position is not None:
            position = self._read_at(position)

    def _read_at(self, position: int) -> int | None:
        """Read the header at a byte and what belongs to it; the next header's byte, None at the end or at damage."""
        ahead = os.pread(self._file.fileno(), _READ_AHEAD, min(position, self.size_bytes))
        header = ahead[:_BLOCK]
        if len(header) < _BLOCK:
            self._note("", "tar_truncated", f"the archive ends at byte {self.size_bytes} without its end mark")
            return None
        if not any(header):
            rest = self.size_bytes - position
            if rest > 1 << 20:  # an archive ends with zeros up to 10 KiB; a preallocated, unfinished download with more
                self._note("", "tar_truncated", f"end mark at byte {position}, but {rest} bytes follow")
            return None
        size = _number(header[124:136])
        if _number(header[148:156]) != sum(header[:148]) + 8 * 32 + sum(header[156:]) or size < 0:
            self._damaged(position, header)
            return None
        payload = position + _BLOCK
        if header[156:157] not in b"LxgK":
            return self._take_member(header, payload, size)
        if size > _MAX_EXTENDED:
            self._note("", "tar_damaged", f"extended header of {size} bytes at byte {position}")
            return None
        record = ahead[_BLOCK : _BLOCK + size]
        if len(record) < size:
            record = os.pread(self._file.fileno(), size, payload)
        if len(record) < size:
            return self.size_bytes  # reading there finds the end and says so
        if header[156:157] == b"L":  # a GNU long name
            self._stated["path"] = record.rstrip(b"\0").decode("utf-8", "replace")
        elif header[156:157] == b"x":
            self._stated |= _parse_pax(record)
        return _end_of(payload, size)

    def _take_member(self, header: bytes, payload: int, size: int) -> int | None:
        """Keep a file; note what is neither file nor folder. As `_read_at`."""
        kind, name = header[156:157], self._stated.get("path") or _name(header)
        size = int(stated) if re.fullmatch(r"[0-9]{1,18}", stated := self._stated.get("size", "")) else size
        self._stated = {}
        if kind in (b"0", b"\0", b"7"):
            if payload + size > self.size_bytes:
                self._note(name, "tar_truncated", f"{size} bytes declared, {self.size_bytes - payload} left")
                return None
            self._keep(name, payload, size)
        elif kind != b"5":
            self._note(name, "tar_member_refused", f"a {_KINDS.get(kind, f'member of type {kind!r}')}")
            size = 0 if kind in _KINDS else size  # links may repeat their target's size without a payload
        return _end_of(payload, size)

    def _keep(self, name: str, payload: int, size: int) -> None:
        clean = _clean(name)
        if not clean:
            self._note(name, "tar_member_refused", "the name is absolute, climbs, or is not a plain path")
            return
        if clean in self.members:
            self._note(clean, "tar_duplicate_member", "two members have this name; the later one counts")
        self.members[clean] = (payload, size)
        if len(self.members) > _MAX_MEMBERS:
            raise SceneError(self.path, f"more than {_MAX_MEMBERS} members", "one capture", "Not a capture archive.")

    def _damaged(self, position: int, header: bytes) -> None:
        if position == 0 and header.startswith(_COMPRESSED):
            raise SceneError(self.path, "a compressed archive", "an uncompressed tar", "Unpack it.")
        if position == 0:
            raise SceneError(self.path, "no tar header at its beginning", "an uncompressed tar")
        self._note("", "tar_damaged", f"no valid member header at byte {position}; the rest is not read")

    def _note(self, name: str, reason: str, detail: str) -> None:
        if len(self.issues) < _MAX_NOTES:
            where = f"{self.path}:{name[:_MAX_NAME]}" if name else self.path
            self.issues.append(Issue("", reason, f"{where}: {detail}"))
        else:
            self._unsaid += 1


def _end_of(payload: int, size: int) -> int:
    """The byte after a payload that begins at a byte: payloads fill whole blocks."""
    return payload + -(-size // _BLOCK) * _BLOCK


def _number(field: bytes) -> int:
    """A size field: octal text, or base-256 where the top bit is set; -1 where it is neither."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    octal = re.fullmatch(rb" *([0-7]*)[\0 ]*", field)
    return int(octal[1] or b"0", 8) if octal else -1


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0", 1)[0]
    prefix = header[345:500].split(b"\0", 1)[0] if header[257:263] == b"ustar\0" else b""
    return (prefix + b"/" + name if prefix else name).decode("utf-8", "replace")


def _parse_pax(record: bytes) -> dict[str, str]:
    """`length key=value\\n` records of a pax header; stops at the first that is not one."""
    found: dict[str, str] = {}
    while record:
        head, space, _ = record.partition(b" ")
        if not space or not head.isdigit() or len(head) > 6 or not len(head) + 1 < int(head) <= len(record):
            break
        key, _, value = record[len(head) + 1 : int(head)].rstrip(b"\n").partition(b"=")
        found[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        record = record[int(head) :]
    return found


def _clean(name: str) -> str:
    """The name without "." parts, or "" where it must not be used."""
    if not name or len(name) > _MAX_NAME or name.startswith("/") or "\\" in name or not name.isprintable():
        return ""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or (parts and parts[0][1:2] == ":"):
        return ""
    return "/".join(parts)
