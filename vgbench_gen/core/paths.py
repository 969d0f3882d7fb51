"""The one way from a name that stands in data to a file (`docs/security.md#paths`), and to the bytes of a file."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vgbench_gen.core.errors import SceneError, VGBenchError

ErrorMaker = Callable[[object, str, str, str], VGBenchError]
"""Makes an error of where, what was found, what was expected and what to do."""

_REMEDY = "Copy the data there or give the real folder."


def inside(root: Path, path: object, error: ErrorMaker = SceneError) -> Path:
    """A path with all links resolved, if that lies below `root`, which may itself be reached through a link.

    In the Hub's cache, where files of `snapshots/COMMIT` are links, also if it lies in the same repository's `blobs`.

    Args:
        root: the folder that was given by the user.
        path: a path, or a name below `root` as it stands in data, with "/" between folders; any other value is
            refused.
        error: makes the error of where, what was found, what was expected and what to do.

    Raises:
        VGBenchError: (by `error`) the path climbs out of `root` (by "..", from the top or by a link), is a loop of
            links, or no name of a file: empty, too long, with a backslash or with what cannot be printed.
    """
    if not isinstance(path, Path):
        if not isinstance(path, str) or not path.isprintable() or "\\" in path or not path:
            raise error(str(root), f"the file name {path!r:.200}", f"a name of a place below {root}", "Rename it.")
        path = root / path
    try:
        base, real = root.resolve(), path.resolve()
        real.is_symlink()  # a name that is too long is noticed here
    except (OSError, RuntimeError, ValueError) as problem:
        raise error(str(path), f"an unusable path ({problem})", "a path", "Rename or remove it.") from problem
    if not any(map(real.is_relative_to, (base, *_find_blobs(base)))):
        raise error(str(path), f"a link or path to {real}", f"a place below {base}", _REMEDY)
    return real


def _find_blobs(folder: Path) -> list[Path]:
    """Where the files of a folder lie if it is one of the Hub's cache: a snapshot, or below one."""
    return [each.parents[1] / "blobs" for each in (folder, *folder.parents) if each.parent.name == "snapshots"][:1]


def choose_snapshot(folder: Path, error: ErrorMaker) -> Path:
    """The folder of files of a repository in the Hub's cache (`datasets--OWNER--NAME`); any other folder itself.

    Raises:
        VGBenchError: (by `error`) it holds several revisions, and `refs/main` names none of them.
    """
    snapshots = folder / "snapshots"
    if not (snapshots.is_dir() and (folder / "blobs").is_dir()):
        return folder
    names = sorted(path.name for path in snapshots.iterdir() if path.is_dir())
    try:
        with open_file(folder / "refs" / "main") as file:
            main = file.read(100).decode("ascii", "replace").strip()
    except OSError:
        main = ""
    if main in names or len(names) == 1:
        return snapshots / (main if main in names else names[0])
    found = f"{len(names)} revisions ({', '.join(names[:5]) or 'none'}) of which `refs/main` names none"
    raise error(str(folder), found, "one that can be told", f"Name one: {snapshots}/REVISION.")


def open_file(path: Path, pipes: bool = False) -> io.BufferedReader:
    """A regular file, open for reading.

    pipes: whether a pipe is taken as well, if somebody writes to it: a shell makes one of `<(command)`.

    Raises:
        OSError: it cannot be read; what is no regular file is a `ValueError` as well (`io.UnsupportedOperation`).
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # opening would wait for a pipe's writer
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode) or (pipes and stat.S_ISFIFO(mode)):
        os.set_blocking(handle, True)
        file = os.fdopen(handle, "rb")
        if stat.S_ISREG(mode) or file.peek(1):
            return file
        file.close()
    else:
        os.close(handle)
    what = "a folder, no regular file" if stat.S_ISDIR(mode) else "no regular file"
    raise io.UnsupportedOperation(errno.EINVAL, what, str(path))


@contextmanager
def close_if_raised(close: Callable[[], object]) -> Iterator[None]:
    """Where the block raises, also at an interrupt, `close` is called before that goes on."""
    with ExitStack() as stack:
        stack.callback(close)
        yield
        stack.pop_all()
