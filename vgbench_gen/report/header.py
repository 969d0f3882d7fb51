"""The header of every page of a dataset, with links to all its pages that are there.

A verb writes only pages of its own, so each brings the headers of the others up to date when it is done: what stands
between two comments in a page is written anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from markupsafe import Markup

from vgbench_gen.report.gallery_images import make_relative_address
from vgbench_gen.report.site import clean, make_environment
from vgbench_gen.store.files import sync_all_to_disk, write_bytes

GALLERY, AUDIT, SCORES = "gallery", "audit", "scores/report"
_PAGES = (
    (GALLERY, "index.html", "Questions"),
    (GALLERY, "scenes.html", "Scenes"),
    (GALLERY, "plots.html", "Charts"),
    (AUDIT, "index.html", "Audit"),
    (SCORES, "index.html", "Scores"),
)
_BELOW = ("*.html", "scene/*.html", "traces/*.html")
_BEGIN, _END = "<!--pages-->", "<!--/pages-->"
_SEARCHED_BYTES = 65536  # at the beginning of a page, within which its header stands
_NAME_CHARS = 80


@dataclass(frozen=True)
class PageHeader:
    """What the headers of the pages of one writer are made of."""

    kind: str
    """What is written: `GALLERY`, `AUDIT` or `SCORES`."""
    folder: Path
    homes: Mapping[str, Path]
    """The folders of the datasets that it is about, by name."""
    movable: bool = False
    """Whether the pages must lead nowhere out of their folder."""

    def render(self, name: str) -> Markup:
        """The header of the page `name` (a path within the folder), between comments by which it is found again."""
        shown = make_environment().get_template("header.html.j2")
        inside = shown.render(name=clean(", ".join(self.homes), _NAME_CHARS), links=list(self._list_links(name)))
        return Markup(inside if self.movable or len(self.homes) != 1 else f"{_BEGIN}\n{inside}\n{_END}")

    def _list_links(self, name: str) -> Iterator[tuple[str, str, bool]]:
        """(label, address, whether the page belongs to it)."""
        start = (self.folder / name).parent
        current = "scenes.html" if name.startswith("scene/") else name if self.kind == GALLERY else "index.html"
        for kind, page, label in _PAGES:
            if kind == self.kind:
                yield label, make_relative_address(start, self.folder / page), page == current
            elif not self.movable and len(self.homes) == 1:
                target = next(iter(self.homes.values())) / kind / page
                if target.is_file():
                    yield label, make_relative_address(start, target), False
        if len(self.homes) > 1 and not self.movable:
            for dataset, home in self.homes.items():
                if (home / GALLERY / "index.html").is_file():
                    yield (
                        clean(dataset, _NAME_CHARS),
                        make_relative_address(start, home / GALLERY / "index.html"),
                        False,
                    )


def refresh_headers(home: Path) -> int:
    """Write the headers of all pages of a dataset anew; returns how many pages changed.

    home: the folder of the dataset. Pages without such a header are left alone.
    """
    changed = []
    for kind in (GALLERY, AUDIT, SCORES):
        header = PageHeader(kind, home / kind, {home.resolve().name: home})
        for page in sorted(chain.from_iterable((home / kind).glob(pattern) for pattern in _BELOW)):
            if page.is_file() and _refresh(page, header.render(page.relative_to(home / kind).as_posix()).encode()):
                changed.append(page)
    sync_all_to_disk(changed)
    return len(changed)


def _refresh(page: Path, header: bytes) -> bool:
    with page.open("rb") as file:
        beginning = file.read(_SEARCHED_BYTES)
        first = beginning.find(_BEGIN.encode())
        last = beginning.find(_END.encode())
        if not 0 <= first < last or beginning[first : last + len(_END)] == header:
            return False
        rest = beginning[last + len(_END) :] + file.read()
    write_bytes(page, beginning[:first] + header + rest, durable=False)
    return True


def cut_links(page: bytes) -> bytes:
    """A page without the links of its header, for a copy that stands without the other pages of its dataset.

    `refresh_headers` fills them in again where such pages are beside it.
    """
    first, last = page.find(_BEGIN.encode()), page.find(_END.encode())
    return page[: first + len(_BEGIN)] + page[last:] if 0 <= first < last else page


def find_home(dataset: Path) -> Path:
    """The folder of a dataset, where media/, audit/ and its pages stand; dataset: as `store.dataset.load` takes it."""
    folder = dataset.parent if dataset.is_file() else dataset
    return folder.parent if folder.name == "items" and (folder.parent / "manifest.json").is_file() else folder


__all__ = ["AUDIT", "GALLERY", "SCORES", "PageHeader", "cut_links", "find_home", "refresh_headers"]
