"""The files of one CA-1M capture, in a tar or extracted, under the names the tar has."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.scenes._tar_index import TarIndex
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import (
    MAX_PICTURE_BYTES,
    PictureHeader,
    inside,
    open_regular,
    read_json,
    read_part,
    read_picture_header,
)
from vgbench_gen.scenes.promised import LOST

_MAX_SMALL_JSON = 64 * 1024
_MAX_FILES = 500_000
_MAX_LINK_ISSUES = 100


class Members:
    """Random access to the members of one capture.

    frames: timestamp as written -> measurement ("wide/image", "gt/rt", …, lower case, without extension) -> name.
    world: measurement -> name for the entries of "world".
    sizes: name -> bytes of all members. video_id: the top folder. issues: what was refused or is missing at the end.

    Grouping follows the official reader (`apple/ml-cubifyanything: cubifyanything/dataset.py`): the part before
    the first "." is the key, the part up to the next one the measurement.

    Raises:
        SceneError: the tar cannot be read, or holds no `<video_id>/…` folder that it is named after.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.issues: list[Issue] = []
        self._tar: TarIndex | None = None
        self.sizes: dict[str, int] = {}
        self._top = path.resolve()  # a relative "." has no name
        if path.is_dir():
            self._scan_folder()
        else:
            self._tar = TarIndex(path)
            self.sizes = {name: size for name, (_, size) in self._tar.members.items()}
            self.issues += self._tar.issues
        with close_if_raised(self.close):
            self._group()

    def where(self, name: str) -> str:
        """A member as errors name it."""
        return f"{self.path}:{name}"

    def read(self, name: str, max_bytes: int = MAX_PICTURE_BYTES) -> bytes:
        """All bytes of a member. Raises FrameError."""
        size = self.sizes[name]
        if size > max_bytes:
            raise FrameError(self.where(name), f"{size} bytes", f"at most {max_bytes}")
        return self._part(name, 0, size)

    def json(self, name: str, max_bytes: int = _MAX_SMALL_JSON) -> Any:
        """A parsed JSON member. Raises FrameError where it is none or too large."""
        return read_json(self.read(name, max_bytes), self.where(name), max_bytes, FrameError)

    def picture(self, name: str) -> PictureHeader:
        """Header of a picture from its first and last bytes, so that a torn one is found without reading it whole.

        Raises:
            FrameError: not a whole JPEG or PNG, or too many pixels.
        """
        size = self.sizes[name]
        head = self._part(name, 0, min(size, 64))
        return read_picture_header(head + self._part(name, max(size - 16, len(head)), 16), self.where(name))

    def close(self) -> None:
        """Release the archive."""
        if self._tar is not None:
            self._tar.close()

    def _part(self, name: str, start: int, count: int) -> bytes:
        wanted = max(min(count, self.sizes[name] - start), 0)
        if self._tar is not None:
            return self._tar.read(name, start, wanted)
        with open_regular(self._top.parent / name, self.where(name), FrameError) as file:
            return read_part(file, self.where(name), start, wanted)

    def _scan_folder(self) -> None:
        """List `<video_id>/<key>/**` to the depth the format has. Links are taken only within the capture's parent."""
        top, links = self._top, 0
        stack = [(top, top.name, 0)]
        while stack:
            folder, prefix, depth = stack.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                self.issues.append(Issue("", LOST[1], f"{folder}: {error.strerror}"))
                continue
            for entry in entries:
                name = f"{prefix}/{entry.name}"
                if entry.is_symlink():
                    try:
                        inside(top.parent, Path(entry.path))
                    except SceneError as error:
                        links += 1
                        if links <= _MAX_LINK_ISSUES:
                            self.issues.append(Issue("", "link_outside", f"{name}: {error.found}"))
                        continue
                if entry.is_dir() and depth < 3:
                    stack.append((Path(entry.path), name, depth + 1))
                elif entry.is_file():
                    self.sizes[name] = entry.stat().st_size
            if len(self.sizes) > _MAX_FILES:
                raise SceneError(self.path, f"more than {_MAX_FILES} files", "one capture", "Not a capture folder.")

    def _group(self) -> None:
        tops = sorted({name.split("/", 1)[0] for name in self.sizes if "/" in name})
        name = self.path.stem if self._tar is not None else self._top.name
        named = [top for top in tops if top in name.split("-")]
        if len(named) != 1:
            # Facts and published rows name a capture by its members; the name of the archive is what people look for.
            found = f"members of {', '.join(tops[:5])}" if tops else "no members"
            renamed = "".join([*name.rpartition("-")[:2], *tops, ".tar"])
            remedy = f"Rename it to {renamed}." if len(tops) == 1 else "Download the capture again."
            raise SceneError(self.path, found, "members of the video whose number is in the name", remedy)
        self.video_id = named[0]
        self.sizes = {name: size for name, size in self.sizes.items() if name.startswith(self.video_id + "/")}
        groups: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for name in self.sizes:
            key, _, rest = name[len(self.video_id) + 1 :].partition(".")
            groups[key][rest.partition(".")[0].lower()] = name
        self.world = groups.pop("world", {})
        frames = [key for key in groups if key.isascii() and key.isdecimal() and len(key) < 20]
        self.frames = {key: groups[key] for key in sorted(frames, key=lambda key: (int(key), key))}
