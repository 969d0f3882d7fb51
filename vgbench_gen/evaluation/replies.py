"""Replies on disk: one append-only file per dataset and model, from which everything else is made.

Source: `docs/formats.md#replies`.

The first line is a header; another header follows where a later run differs from it. Every other line is one reply,
given at the settings of the header above it. Replies to one key at several settings lie side by side: in force are
those at the settings of the last run that asked this kind of question and got an answer. Of several lines with one key
and the same settings the last one counts, so that a failed request can be asked again, but a failure never takes the
place of an answer. A line that a killed process left unfinished is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from vgbench_gen.core.lines import make_one_line
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.evaluation.line_writer import LineWriter
from vgbench_gen.evaluation.reply_index import select_replies
from vgbench_gen.evaluation.reply_lines import (
    MAX_LINE_BYTES,
    REMEDY,
    Header,
    ReplyKey,
    ReplyLine,
    encode_record,
    is_too_long,
    parse_header,
    read_line_at,
    read_records,
)
from vgbench_gen.store.files import clean_temporary, dataset_error, make_temporary_name, sync_to_disk

__all__ = [
    "FOLDER",
    "MAX_LINE_BYTES",
    "AnsweredRequests",
    "Header",
    "ReplyExcerpt",
    "ReplyKey",
    "ReplyLine",
    "ReplyWriter",
    "StoredReplies",
    "find_first_failure",
    "has_header",
    "name_replies_file",
    "read_answered",
    "read_excerpts",
    "read_header",
    "read_line_at",
    "read_replies",
]

FOLDER = "replies"
_MAX_NAME = 80
_MAX_REASON = 160
_PLAIN_SPEC = re.compile(r"[A-Za-z0-9-]{1,30}:[A-Za-z0-9][A-Za-z0-9.-]{0,48}")  # becomes a file name by itself


def name_replies_file(folder: Path, spec: str) -> Path:
    """The file of a model's replies in the folder `replies` of a dataset; the name says the spec as well as it can."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", spec)[:_MAX_NAME].strip("._")
    if not _PLAIN_SPEC.fullmatch(spec):
        name = f"{name}-{hash_stably(spec, size=4)}"
    return folder / f"{name}.jsonl"


class StoredReplies(NamedTuple):
    """The replies of a log that count."""

    header: Header
    """The last header of the log."""
    lines: dict[ReplyKey, ReplyLine]
    """The line in force of every key, in the order of the keys' first lines."""
    others: int
    """How many keys were answered at other settings alone, and have no line in force."""


def read_replies(path: Path, header: Header | None = None) -> StoredReplies:
    """Read the replies in force.

    Args:
        path: of the log.
        header: of a run, whose settings are then the ones in force; those of the last run that got an answer otherwise.

    Raises:
        DatasetError: no such file, no header, a line that is no reply, or one that is too long.
    """
    return StoredReplies(*select_replies(path, lambda line, at: line, header))


def find_first_failure(path: Path, stage: str = "", prompt_set: str = "") -> str:
    """Kind and message of the first failed request of a log, in one line; "" where none failed.

    Args:
        path: of the log.
        stage: see `ReplyKey.stage`.
        prompt_set: see `ReplyKey.prompt_set`; any where empty.

    Raises:
        DatasetError: as `read_replies`.
    """
    lines = read_replies(path).lines.values()
    asked = (line for line in lines if line.stage == stage and prompt_set in ("", line.prompt_set))
    found = next((line for line in asked if line.failed), None)
    return "" if found is None else make_one_line(found.error or "no reply", _MAX_REASON).rstrip(".")


class ReplyExcerpt(NamedTuple):
    """The beginning of a reply, for pages that show many."""

    text: str
    """Its first characters."""
    chars: int
    """How many characters the whole reply has."""
    images: tuple[str, ...]
    """The names of the images that the model saw."""
    request_digest: str = ""
    """`ReplyLine.request_digest`, by which the trace of an agent is found."""


def read_excerpts(path: Path, keys: Container[ReplyKey], chars: int) -> dict[ReplyKey, ReplyExcerpt]:
    """The first `chars` characters of the replies in force to some keys; memory holds nothing else.

    Raises:
        DatasetError: as `read_replies`.
    """

    def keep(line: ReplyLine, at: int) -> ReplyExcerpt | None:
        if line.key not in keys or line.response is None:
            return None
        images = tuple(str(image.get("name", "")) for image in line.images)
        return ReplyExcerpt(line.response[:chars], len(line.response), images, line.request_digest)

    _, found, _ = select_replies(path, keep)
    return {key: excerpt for key, excerpt in found.items() if excerpt is not None}


def read_header(path: Path) -> Header:
    """The first header of a file: who was asked stands there as in those that follow; replies are not read.

    Raises:
        DatasetError: no such file, or it does not begin with a header.
    """
    for where, _, record in read_records(path):
        if "dataset" in record:
            return parse_header(record, where)
        break
    raise dataset_error(path, "no header", "a file that `vgbench eval` wrote", REMEDY)


def has_header(path: Path) -> bool:
    """Whether a file holds more than what a writer that died at its first line left."""
    return path.is_file() and next(read_records(path), None) is not None


@dataclass(frozen=True, slots=True)
class AnsweredRequests:
    """What was answered before, at whatever settings."""

    at: Mapping[ReplyKey, Mapping[str, int]]
    """By key, and by the digest of the request: the byte at which the line of its last answer begins."""
    active: Mapping[ReplyKey, str]
    """By key: the digest of the request that is answered at the settings of the run."""


def read_answered(path: Path, header: Header | None = None) -> AnsweredRequests:
    """What needs not be asked again; nothing where there is no file. header: of the run that asks.

    Raises:
        DatasetError: as `read_replies`.
    """
    if not has_header(path):
        return AnsweredRequests({}, {})
    every: dict[ReplyKey, dict[str, int]] = {}

    def keep(line: ReplyLine, at: int) -> str:
        if not line.failed:
            every.setdefault(line.key, {})[line.request_digest] = at
        return "" if line.failed else line.request_digest

    _, found, _ = select_replies(path, keep, header)
    return AnsweredRequests(every, {key: digest for key, digest in found.items() if digest})


class ReplyWriter(LineWriter):
    """Appends replies as they come; one writer per file at a time.

    Args:
        path: made with its folder where missing.
        header: written where the file has none, or another one.

    Raises:
        DatasetError: another process writes it, it belongs to another model, or it is damaged.
    """

    def __init__(self, path: Path, header: Header) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        clean_temporary(path.parent, path.name)
        if new:
            _begin(path, header)
        super().__init__(path)
        with close_if_raised(self.close):
            old = read_replies(path).header if has_header(path) else None
            if old is not None and old.spec != header.spec:
                raise dataset_error(path, f"replies of {old.spec}", f"those of {header.spec}", REMEDY)
            if old != header:
                self.write(asdict(header))
                self.flush()

    def append(self, line: ReplyLine) -> None:
        """Add one reply."""
        record = asdict(line)
        if line.response is not None and is_too_long(record):
            error = f"bad_reply: longer than {MAX_LINE_BYTES} bytes"
            record |= {"response": None, "error": error}
        self.write(record)

    def __enter__(self) -> ReplyWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _begin(path: Path, header: Header) -> None:
    """Make the file with its header at once, so that nobody meets one without; another process may be faster."""
    temporary = make_temporary_name(path)
    try:
        temporary.write_bytes(encode_record(asdict(header)))
        sync_to_disk(temporary)
        with suppress(OSError):  # some disks have no links; the header is then written like any other line
            path.hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)
