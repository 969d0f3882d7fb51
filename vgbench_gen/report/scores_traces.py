"""Pages of the traces behind wrong answers of agents, beside the pages of wrong answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import digest_bytes, hash_stably
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.replies import ReplyExcerpt
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.report.gallery_images import OWN, make_relative_address
from vgbench_gen.report.header import SCORES, PageHeader
from vgbench_gen.report.trace_page import make_trace_page
from vgbench_gen.store.files import write_bytes
from vgbench_gen.store.media import NAME

FOLDER = "traces"
_PNG, _JPEG = b"\x89PNG", b"\xff\xd8\xff"
MOST = 500  # pages of one run; of more wrong answers some from all over the list


class TracedAnswer(NamedTuple):
    """An answer whose trace is wanted."""

    key: ReplyKey
    replies: Path
    dataset: str
    home: Path
    """The folder of its data set, where images stand."""
    title: str
    back: str
    """The address of the page that leads to it, relative to its own."""


def write_traces(
    folder: Path,
    name: str,
    answers: Sequence[TracedAnswer],
    excerpts: Mapping[Path, Mapping[ReplyKey, ReplyExcerpt]],
    sources: Mapping[str, Source],
) -> tuple[list[Path], dict[tuple[Path, ReplyKey], str]]:
    """Write pages of at most `MOST` traces, the same ones every time; answers without a trace have none.

    Returns:
        The files, and the address of each by (file of replies, key), relative to `folder`.

    Args:
        folder: where the pages of wrong answers stand; those of traces go into `FOLDER` there.
        name: of the run, by which its pages are told from others'.
        answers: in the order of the pages of wrong answers.
        excerpts: the beginnings of their replies, by file and key.
        sources: the questions by data set, whose images are copied where the data set's folder has none.
    """
    logs = {path: TraceLog(path) for path in dict.fromkeys(answer.replies for answer in answers)}
    logs = {path: log for path, log in logs.items() if log.path.is_file()}
    header = PageHeader(SCORES, folder, {dataset: source.folder for dataset, source in sources.items()})
    traced = [one for one in answers if one.replies in logs and one.key in excerpts[one.replies]]
    some = [traced[k * len(traced) // MOST] for k in range(MOST)] if len(traced) > MOST else traced
    finders = {dataset: _ImageFinder(source) for dataset, source in sources.items()} if some else {}
    written: list[Path] = []
    addresses: dict[tuple[Path, ReplyKey], str] = {}
    for answer in some:
        excerpt = excerpts[answer.replies][answer.key]
        log = logs[answer.replies]
        trace = log.read(answer.key, excerpt.request_digest)
        if trace is None:
            continue
        target = folder / FOLDER / f"{hash_stably(name, str(answer.home), *map(str, answer.key), size=8)}.html"
        images = _find_images(trace, excerpt, log, answer.home, target.parent)
        if answer.dataset in finders:
            for image_name, data in finders[answer.dataset].read(answer.key.id, trace, images):
                copy = target.parent / OWN / f"{digest_bytes(data)}.{'png' if data.startswith(_PNG) else 'jpg'}"
                if copy not in written:
                    write_bytes(copy, data, durable=False)
                    written.append(copy)
                images[image_name] = f"{OWN}/{copy.name}"
        shown = header.render(f"{FOLDER}/{target.name}")
        page = make_trace_page(trace, images, answer.title, answer.back, shown)
        write_bytes(target, page.encode("utf-8"), durable=False)
        written.append(target)
        addresses[answer.replies, answer.key] = f"{FOLDER}/{quote(target.name)}"
    return written, addresses


def _find_images(
    trace: Mapping[str, Any], excerpt: ReplyExcerpt, log: TraceLog, home: Path, folder: Path
) -> dict[str, str]:
    """Name in the trace -> address, relative to the page, of the images that are there."""
    # A name is used as a path only when it is one of ours.
    stores = (home / "media", home / "gallery" / OWN)
    ours = {
        PurePath(name).stem: [store / name[:2] / name for store in stores]
        for name in excerpt.images
        if NAME.fullmatch(name)
    }
    found: dict[str, str] = {}
    listed = trace.get("images")
    for image in listed if isinstance(listed, list) else ():
        if not isinstance(image, Mapping):
            continue
        digest = str(image.get("digest", ""))
        made = log.find_image(digest) if image.get("made_by") else None
        files = [made] if made is not None else ours.get(digest, [])
        path = next((file for file in files if file.is_file()), None)
        if path is not None:
            found[str(image.get("name", ""))] = make_relative_address(folder, path)
    return found


class _ImageFinder:
    """Reads images of questions from where their data set has them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rows = {row.id: row.row for row in source.rows()}

    def read(self, item_id: str, trace: Mapping[str, Any], found: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        """Yield the name in the trace and the bytes of those of the question's images that were not found."""
        listed = trace.get("images")
        wanted = {
            str(image.get("digest")): str(image.get("name"))
            for image in (listed if isinstance(listed, list) else ())
            if isinstance(image, Mapping) and not image.get("made_by") and str(image.get("name")) not in found
        }
        if not wanted or item_id not in self._rows:
            return
        item = self._source.item(self._rows[item_id])
        for k in range(len(item.images)):
            try:
                image = self._source.image(item, k)
                data = image if isinstance(image, bytes) else image.read_bytes()
            except (DatasetError, OSError):
                continue
            if data.startswith((_PNG, _JPEG)) and (name := wanted.get(digest_bytes(data))) is not None:
                yield name, data
