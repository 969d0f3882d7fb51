"""Pages of the traces behind wrong answers of agents, beside the pages of wrong answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.evaluation.replies import ReplyExcerpt, ReplyKey
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.report.gallery_images import OWN, make_relative_address
from vgbench_gen.report.trace_page import make_trace_page
from vgbench_gen.store.files import write_bytes
from vgbench_gen.store.media import NAME

FOLDER = "traces"
MOST = 500  # pages of one run; of more wrong answers some from all over the list


class TracedAnswer(NamedTuple):
    """An answer whose trace is wanted."""

    key: ReplyKey
    """Of its reply."""
    replies: Path
    """The file that holds it."""
    home: Path
    """The folder of its data set, where images stand."""
    title: str
    """Of its page."""
    back: str
    """The address of the page that leads to it, relative to its own."""


def write_traces(
    folder: Path,
    name: str,
    answers: Sequence[TracedAnswer],
    excerpts: Mapping[Path, Mapping[ReplyKey, ReplyExcerpt]],
) -> tuple[list[Path], dict[tuple[Path, ReplyKey], str]]:
    """Write pages of at most `MOST` traces, the same ones every time; answers without a trace have none.

    Returns:
        The files, and the address of each by (file of replies, key), relative to `folder`.

    Args:
        folder: where the pages of wrong answers stand; those of traces go into `FOLDER` there.
        name: of the run, by which its pages are told from others'.
        answers: in the order of the pages of wrong answers.
        excerpts: the beginnings of their replies, by file and key.
    """
    logs = {path: TraceLog(path) for path in dict.fromkeys(answer.replies for answer in answers)}
    logs = {path: log for path, log in logs.items() if log.path.is_file()}
    traced = [one for one in answers if one.replies in logs and one.key in excerpts[one.replies]]
    some = [traced[k * len(traced) // MOST] for k in range(MOST)] if len(traced) > MOST else traced
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
        write_bytes(target, make_trace_page(trace, images, answer.title, answer.back).encode("utf-8"), durable=False)
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
