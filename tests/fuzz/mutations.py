"""Damage to files, from slips to malice. Everything is drawn from the generator that is given.

`mutate` damages a folder: one of its files, by bytes, as text, as JSON, TOML, parquet or tar, or its place on the disk.
What a kind of file has besides (a header, a name, a tree of values) is damaged in its own way, so that most mutants get
past the first look of a reader.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa

from tests.fuzz.plain import BYTES, TEXT, Rng, choose, flip_bytes
from tests.fuzz.structures import OWN

FOLDER_NAMES = (b"a\\b", b"\xff\xfe", b"x" * 250, b"a\nb", b"=1+1", b"\x1b[31mred", "scène\u202e".encode(), b" ")
_HUGE = 3 << 29  # bytes, which take no room on the disk


def damage_place(path: Path, rng: Rng, elsewhere: Path) -> str:
    """A file becomes a link, a folder, a pipe, nothing, or has another name. Returns what was done."""
    what: str = choose(rng, ("link out", "link in", "dangling", "loop", "folder", "pipe", "gone", "renamed", "huge"))
    if what == "renamed" and path.suffix == ".tar":
        what = "link in"  # the name of an archive says what it is
    if what == "renamed":
        suffix = os.fsencode(path.suffix)
        path.rename(path.with_name(os.fsdecode(choose(rng, FOLDER_NAMES)[: 255 - len(suffix)] + suffix)))
        return what
    kept = path.read_bytes()
    path.unlink()
    if what == "link out":
        elsewhere.mkdir(parents=True, exist_ok=True)
        (elsewhere / "file").write_bytes(kept)
        path.symlink_to(elsewhere / "file")
    elif what == "link in":
        path.with_name("other").write_bytes(kept)
        path.symlink_to("other")
    elif what in ("dangling", "loop"):
        path.symlink_to("nowhere" if what == "dangling" else path.name)
    elif what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "huge":
        path.touch()
        os.truncate(path, _HUGE)
    return what


_NO_TEXT = (".parquet", ".tar", ".png", ".jpg", ".JPG", ".mkv", ".bin", ".sens", ".ply", ".tiff", ".eval")


def mutate(folder: Path, rng: Rng, elsewhere: Path, stays: bool = False) -> str:
    """Damage one file below `folder`, or `folder` itself. Kinds of files are hit equally often.

    Args:
        folder: of the data, or a file of them. elsewhere: a place outside, for what links lead to.
        stays: leave files where they are, as those that a user names himself.

    Returns:
        What was done, to be shown with a failure.
    """
    below = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    files = [path for path in below if path.is_file() and not path.is_symlink() and path.stat().st_size < _HUGE]
    if not files:
        return "nothing left"
    if folder.is_dir() and folder.name != "data" and rng.random() < 0.04:
        how = choose(rng, ("renamed", "link out"))
        if how == "renamed":
            folder.rename(folder.with_name(os.fsdecode(choose(rng, FOLDER_NAMES))))
        else:
            shutil.move(folder, elsewhere)
            folder.symlink_to(elsewhere)
        return f"{folder.name}/: {how}"
    kinds = sorted({path.suffix or path.name for path in files})
    kind = choose(rng, kinds)
    path = choose(rng, [path for path in files if (path.suffix or path.name) == kind])
    name = ascii(str(path.relative_to(folder.parent)))
    draw = rng.random()
    if draw < 0.1 and not stays:
        return f"{name}: {damage_place(path, rng, elsewhere)}"
    own = OWN.get(kind)
    if own is not None and draw < 0.6:
        damage = own
    elif kind in _NO_TEXT or draw < 0.75:
        damage = choose(rng, BYTES)
    else:
        damage = choose(rng, TEXT)
    try:
        changed = damage(path.read_bytes(), rng)
    except (
        pa.ArrowException,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        EOFError,
        ValueError,
        OverflowError,
        NotImplementedError,
        OSError,
    ):
        damage, changed = flip_bytes, flip_bytes(path.read_bytes(), rng)  # damaged before, beyond its own kind
    path.write_bytes(changed)
    return f"{name}: {damage.__name__}"
