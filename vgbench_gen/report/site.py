"""A folder of static pages that open from disk: templates, data files and how they are written.

Nothing in a dataset is trusted: templates escape, data travel as JSON text inside a JavaScript string, and every page
forbids what does not come from its own folder.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.store.files import clean_temporary, dataset_error, sync_all_to_disk, write_bytes

PAGES = Path(__file__).with_name("pages")
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-src 'none'; object-src 'none'"
)
# Control characters, marks that turn the direction of text, halves of surrogate pairs.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_MARKER = "gallery.json"
_MARKED: dict[str, Any] = {"kind": "vgbench gallery", "version": 1}


@cache
def make_environment() -> jinja2.Environment:
    """Templates of the folder `pages/`: everything is escaped, a missing name is an error."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["csp"] = CSP
    found.filters["clean"] = clean
    return found


def clean(text: object, most: int) -> str:
    """A text of data for a page: cut, its line ends plain, no character that hides or turns what stands around it."""
    text = str(text)
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", cut.replace("\r\n", "\n"))


def make_inline_style(more: str = "", names: Sequence[str] = ("audit.css", "scores.css")) -> tuple[Any, str]:
    """(styles that all pages share and those of `names` as markup, the policy that allows them and `more` alone)."""
    from markupsafe import Markup

    style = "".join((PAGES / name).read_text("utf-8") for name in ("base.css", *names))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; {more}base-uri 'none'; form-action 'none'"
    return Markup(style), policy


def make_data_script(name: str, value: Any) -> bytes:
    """A script file that hands `value` to the page under `name`.

    The value is JSON text in a string literal (parsed by `JSON.parse`, so that a key such as `__proto__` is only a
    key), in ASCII, without the characters that could end a script element or open a comment. Numbers that JSON does
    not have become null.
    """
    text = json.dumps(replace_non_finite(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    pushed = f"{_format_literal(name)},{_format_literal(text)}"
    return f"(self.VGBENCH_GALLERY=self.VGBENCH_GALLERY||[]).push([{pushed}]);\n".encode("ascii")


def replace_non_finite(value: Any) -> Any:
    """The value with NaN and infinities, which JSON does not have, replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): replace_non_finite(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [replace_non_finite(member) for member in value]
    return value


def _format_literal(text: str) -> str:
    quoted = json.dumps(text)
    for character in "<>&":
        quoted = quoted.replace(character, f"\\u{ord(character):04x}")
    return quoted


class Site:
    """A folder of pages, filled by one writer; a file that is there already with the same bytes is left alone.

    written, kept: counts of files. Stale files of an earlier run are removed by `close`.

    Args:
        folder: made if need be.

    Raises:
        DatasetError: the folder holds files and is not such a site.
    """

    def __init__(self, folder: Path) -> None:
        marker = folder / _MARKER
        if folder.exists() and not folder.is_dir():
            raise dataset_error(folder, "a file", "a folder for the gallery", "Give another folder with --out.")
        if folder.is_dir() and any(folder.iterdir()) and not _is_marker(marker):
            raise dataset_error(
                folder,
                f"files, and no {_MARKER} of a gallery among them",
                "an empty folder or a gallery of an earlier run",
                "Give another folder with --out.",
            )
        self.folder = folder
        self.written = self.kept = self.bytes = 0
        self._names: set[str] = set()
        self._unsynced: list[Path] = []
        if folder.is_dir():
            clean_temporary(folder)
        # First of all, so that a run that was cut short is known for a gallery by the next one.
        self.write(_MARKER, (format_canonical_json(_MARKED) + "\n").encode())

    def write(self, name: str, data: bytes) -> None:
        """Write one file; name: path within the folder, chosen by us, never by data."""
        path = self.folder / name
        self._names.add(name)
        self.bytes += len(data)
        if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
            self.kept += 1
            return
        write_bytes(path, data, durable=False)
        self._unsynced.append(path)
        self.written += 1

    def write_page(self, name: str, template: str, **values: Any) -> None:
        """Render a template of `pages/` into a page; `root` leads from the page back to the folder."""
        root = "../" * name.count("/")
        self.write(name, make_environment().get_template(template).render(root=root, **values).encode("utf-8"))

    def write_data(self, name: str, value: Any) -> None:
        """Write `data/<name>.js` (see `make_data_script`)."""
        self.write(f"data/{name}.js", make_data_script(name, value))

    def copy_static(self, names: Iterable[str]) -> None:
        """Copy files of `pages/` as they are."""
        for name in names:
            self.write(name, (PAGES / name).read_bytes())

    def close(self, folders: Iterable[str]) -> None:
        """Make everything durable, and remove files in these folders that an earlier run left and this one did not."""
        sync_all_to_disk(self._unsynced)
        self._unsynced.clear()
        for folder in folders:
            for path in sorted((self.folder / folder).glob("*")):
                if path.is_file() and path.relative_to(self.folder).as_posix() not in self._names:
                    path.unlink()


def _is_marker(path: Path) -> bool:
    try:
        found = parse_json(path.read_bytes()[:4096])
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("kind") == _MARKED["kind"]
