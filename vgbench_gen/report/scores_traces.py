"""Pages of the traces behind wrong answers of agents, beside the pages of wrong answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import digest_bytes, hash_stably
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.board import Entry, ScoreRow
from vgbench_gen.evaluation.cells import get_part
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.replies import ReplyExcerpt
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.report.charts import spread
from vgbench_gen.report.gallery_images import OWN, make_relative_address
from vgbench_gen.report.header import SCORES, PageHeader
from vgbench_gen.report.site import clean
from vgbench_gen.report.trace_page import make_trace_page
from vgbench_gen.store.files import write_bytes
from vgbench_gen.store.media import NAME

FOLDER = "traces"
_PNG, _JPEG = b"\x89PNG", b"\xff\xd8\xff"
_UNITS = {"length": " m", "angle": "°"}
_BRIEF = 60  # characters of an answer in a title
MOST = 500  # pages of one run; of more wrong answers some from all over the list


class WrongAnswer(NamedTuple):
    """One scored reply that was not right, joined with its question."""

    order: tuple[Any, ...]
    """By what replies are sorted: answers before what could not be read, and that before refusals; then by task."""
    entry: Entry
    row: ScoreRow
    replies: Path
    home: Path
    """The folder of its data set, where images stand."""

    @property
    def key(self) -> ReplyKey:
        """Of the reply."""
        row = self.row
        return row.key

    @property
    def group(self) -> tuple[str, str]:
        """The data set, and the heading above the reply."""
        return self.entry.dataset, f"{get_part(self.entry).replace('_', ' ')}, {OUTCOMES[self.order[0]]}"

    @property
    def anchor(self) -> str:
        """Name of the reply on its page."""
        return f"a{hash_stably(self.entry.dataset, *map(str, self.key), size=4)}"

    @property
    def truth(self) -> str:
        """The right answer, lengths in meters, angles in degrees."""
        return format_answer(self.entry.truth, self.entry.kind)

    @property
    def read(self) -> str:
        """The answer that we read in the reply."""
        return format_answer(self.row.extracted, self.entry.kind)


def format_answer(value: str | float | None, kind: str = "") -> str:
    """An answer in words, a number with the unit of its kind."""
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else f"{value:.4g}{_UNITS.get(kind, '')}"


def write_traces(
    folder: Path,
    name: str,
    answers: Mapping[WrongAnswer, str],
    excerpts: Mapping[Path, Mapping[ReplyKey, ReplyExcerpt]],
    sources: Mapping[str, Source],
) -> tuple[list[Path], dict[tuple[Path, ReplyKey], str]]:
    """Write pages of at most `MOST` traces, the same ones every time; answers without a trace have none.

    Returns:
        The files, and the address of each by (file of replies, key), relative to `folder`.

    Args:
        folder: where the pages of wrong answers stand; those of traces go into `FOLDER` there.
        name: of the run, by which its pages are told from others'.
        answers: in the order of the pages of wrong answers, each with the page that it stands on.
        excerpts: the beginnings of their replies, by file and key.
        sources: the questions by data set, whose images are copied where the data set's folder has none.
    """
    logs = {path: TraceLog(path) for path in dict.fromkeys(answer.replies for answer in answers)}
    logs = {path: log for path, log in logs.items() if log.path.is_file()}
    header = PageHeader(SCORES, folder, {dataset: source.folder for dataset, source in sources.items()})
    traced = [one for one in answers if one.replies in logs and one.key in excerpts[one.replies]]
    rows = {dataset: {row.id: row.row for row in source.rows()} for dataset, source in sources.items() if traced}
    written: list[Path] = []
    addresses: dict[tuple[Path, ReplyKey], str] = {}
    for answer in spread(traced, MOST):
        excerpt = excerpts[answer.replies][answer.key]
        log = logs[answer.replies]
        trace = log.read(answer.key, excerpt.request_digest)
        if trace is None:
            continue
        target = folder / FOLDER / f"{hash_stably(name, str(answer.home), *map(str, answer.key), size=8)}.html"
        images, missing = _find_images(trace, excerpt, log, answer.home, target.parent)
        row = rows.get(answer.entry.dataset, {}).get(answer.key.id)
        if missing and row is not None:
            for digest, data in _read_images(sources[answer.entry.dataset], row):
                if digest in missing:
                    copy = target.parent / OWN / f"{digest}.{'png' if data.startswith(_PNG) else 'jpg'}"
                    if copy not in written:
                        write_bytes(copy, data, durable=False)
                        written.append(copy)
                    images[missing[digest]] = f"{OWN}/{copy.name}"
        shown = header.render(f"{FOLDER}/{target.name}")
        title = f"{answer.entry.id}: true {clean(answer.truth, _BRIEF)}, read {clean(answer.read, _BRIEF)}"
        page = make_trace_page(trace, images, title, f"../{answers[answer]}#{answer.anchor}", shown)
        write_bytes(target, page.encode("utf-8"), durable=False)
        written.append(target)
        addresses[answer.replies, answer.key] = f"{FOLDER}/{quote(target.name)}"
    return written, addresses


def _find_images(
    trace: Mapping[str, Any], excerpt: ReplyExcerpt, log: TraceLog, home: Path, folder: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """(name in the trace -> address, relative to the page, of images that are there; digest -> name in the trace of
    images of the question that are not)."""
    # A name is used as a path only when it is one of ours.
    stores = (home / "media", home / "gallery" / OWN)
    ours = {PurePath(name).stem: name for name in excerpt.images if NAME.fullmatch(name)}
    found, missing = {}, {}
    listed = trace.get("images")
    for image in listed if isinstance(listed, list) else ():
        if not isinstance(image, Mapping):
            continue
        digest, name = str(image.get("digest", "")), str(image.get("name", ""))
        if image.get("made_by"):
            made = log.find_image(digest)
            files = [] if made is None else [made]
        else:
            files = [store / ours[digest][:2] / ours[digest] for store in stores if digest in ours]
            missing[digest] = name
        path = next((file for file in files if file.is_file()), None)
        if path is not None:
            found[name] = make_relative_address(folder, path)
    return found, {digest: name for digest, name in missing.items() if name not in found}


def _read_images(source: Source, row: int) -> Iterator[tuple[str, bytes]]:
    """Yield digest and bytes of the JPEG and PNG images of a question, from where its data set has them."""
    item = source.item(row)
    for k in range(len(item.images)):
        try:
            image = source.image(item, k)
            data = image if isinstance(image, bytes) else image.read_bytes()
        except (DatasetError, OSError):
            continue
        if data.startswith((_PNG, _JPEG)):
            yield digest_bytes(data), data
