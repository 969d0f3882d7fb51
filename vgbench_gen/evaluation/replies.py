"""Replies on disk: one append-only file per dataset and model, from which everything else is made.

Source: `docs/formats.md#replies`.

The first line is a header; another header follows where a later run differs from it. Every other line is one reply.
Replies to one question at several settings lie side by side, for the digest of the settings is part of the key. In
force are those at the settings of the last run that asked this kind of question and got an answer. Of several lines
with one key the last one counts, so that a failed request can be asked again, but a failure never takes the place of an
answer. A line that a killed process left unfinished is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from vgbench_gen.core.lines import make_one_line
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.evaluation.json_lines import REMEDY, encode_line, read_line_at, read_lines
from vgbench_gen.evaluation.records import DRAWING, Header, ReplyKey, ReplyLine, parse_record
from vgbench_gen.store.files import clean_temporary, dataset_error, make_temporary_name, sync_to_disk
from vgbench_gen.store.line_writer import MAX_LINE_BYTES, LineWriter

FOLDER = "replies"
_MAX_NAME = 80
_MAX_REASON = 160
_PLAIN_SPEC = re.compile(r"[A-Za-z0-9-]{1,30}:[A-Za-z0-9][A-Za-z0-9.-]{0,48}")  # becomes a file name by itself
KeptT = TypeVar("KeptT")


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
    """The lines in force by key, in the order of the questions' first lines."""
    others: int
    """How many questions were answered at other settings alone, and have no line in force."""


def read_replies(path: Path, header: Header | None = None) -> StoredReplies:
    """Read the replies in force.

    Args:
        path: of the log.
        header: of a run, whose settings are then the ones in force; those of the last run that got an answer otherwise.

    Raises:
        DatasetError: no such file, no header, a line that is no reply, or one that is too long.
    """
    return StoredReplies(*_select(path, lambda line: line, header))


def find_first_failure(path: Path, stage: str = "", prompt_set: str = "") -> str:
    """Kind and message of the first failed request of a log, in one line; "" where none failed.

    Args:
        path: of the log.
        stage: of the replies (`ReplyKey.stage`).
        prompt_set: of the replies; any where empty.

    Raises:
        DatasetError: as `read_replies`.
    """
    lines = read_replies(path).lines.values()
    asked = (line for line in lines if line.key.stage == stage and prompt_set in ("", line.key.prompt_set))
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

    def keep(line: ReplyLine) -> ReplyExcerpt | None:
        if line.key not in keys or line.response is None:
            return None
        images = tuple(str(image.get("name", "")) for image in line.images)
        return ReplyExcerpt(line.response[:chars], len(line.response), images, line.request_digest)

    _, found, _ = _select(path, keep)
    return {key: excerpt for key, excerpt in found.items() if excerpt is not None}


def read_header(path: Path) -> Header:
    """The first header of a file: who was asked stands there as in those that follow; replies are not read.

    Raises:
        DatasetError: no such file, or it does not begin with a header.
    """
    for number, _, data in read_lines(path):
        if data.startswith(_HEADER):
            return parse_record(Header, data, f"{path}, line {number}")
        break
    raise dataset_error(path, "no header", "a file that `vgbench eval` wrote", REMEDY)


def has_header(path: Path) -> bool:
    """Whether a file holds more than what a writer that died at its first line left."""
    return path.is_file() and next(read_lines(path), None) is not None


@dataclass(slots=True)
class AnsweredRequests:
    """Which requests were answered before, at whatever settings."""

    at: dict[tuple[ReplyKey, str], int] = field(default_factory=dict)
    """By key without settings, and digest of the request: the byte at which the line of its last answer begins."""
    last: dict[ReplyKey, str] = field(default_factory=dict)
    """By key: the digest of the request that was answered last."""

    def find(self, key: ReplyKey, digest: str) -> int | None:
        """Where the answer to a request stands; None where there is none."""
        return self.at.get((key._replace(settings=""), digest))


def read_answered(path: Path) -> AnsweredRequests:
    """The requests that have a reply; none where there is no file.

    Raises:
        DatasetError: as `read_replies`.
    """
    return _index(path)[1] if path.is_file() else AnsweredRequests()


def read_reply_at(path: Path, at: int) -> ReplyLine:
    """The reply whose line begins at this byte. Raises DatasetError where there is none."""
    return parse_record(ReplyLine, read_line_at(path, at), f"{path}, byte {at}")


class ReplyWriter(LineWriter):
    """Appends replies as they come; one writer per file at a time.

    Args:
        path: made with its folder where missing.
        header: written where the file has none, or another one.

    Attributes:
        header: as given. answered: what stood in the file when it was opened.

    Raises:
        DatasetError: another process writes it, it belongs to another model, or it is damaged.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.header = header
        self._settings = header.digest
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        clean_temporary(path.parent, path.name)
        if new:
            _begin(path, header)
        super().__init__(path)
        with close_if_raised(self.close):
            old, self.answered = _index(path)
            if old is not None and old.spec != header.spec:
                raise dataset_error(path, f"replies of {old.spec}", f"those of {header.spec}", REMEDY)
            if old != header:
                self.write(encode_line(header))
                self.flush()

    def append(self, line: ReplyLine) -> ReplyLine:
        """Add one reply; returns it with the settings of the header in its key."""
        settings = "" if line.key.stage == DRAWING else self._settings
        line = line.model_copy(update={"key": line.key._replace(settings=settings)})
        data = encode_line(line)
        if len(data) > MAX_LINE_BYTES:
            error = f"bad_reply: longer than {MAX_LINE_BYTES} bytes"
            line = line.model_copy(update={"response": None, "error": error})
            data = encode_line(line)
        self.write(data)
        return line

    def __enter__(self) -> ReplyWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _begin(path: Path, header: Header) -> None:
    """Make the file with its header at once, so that nobody meets one without; another process may be faster."""
    temporary = make_temporary_name(path)
    try:
        temporary.write_bytes(encode_line(header))
        sync_to_disk(temporary)
        with suppress(OSError):  # some disks have no links; the header is then written like any other line
            path.hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)


_HEADER = b'{"dataset":'


def _index(path: Path) -> tuple[Header | None, AnsweredRequests]:
    """The last header of a log, None where it has none, and the requests that were answered."""
    header, found = None, AnsweredRequests()
    for at, record in _read_records(path):
        if isinstance(record, Header):
            header = record
        elif not record.failed:
            found.at[record.key._replace(settings=""), record.request_digest] = at
            found.last[record.key] = record.request_digest
    return header, found


def _read_records(path: Path) -> Iterator[tuple[int, Header | ReplyLine]]:
    """(byte at which its line begins, record) of a log."""
    for number, at, data in read_lines(path):
        where = f"{path}, line {number}"
        yield (
            at,
            parse_record(Header, data, where) if data.startswith(_HEADER) else parse_record(ReplyLine, data, where),
        )


def _select(
    path: Path, keep: Callable[[ReplyLine], KeptT], header: Header | None = None
) -> tuple[Header, dict[ReplyKey, KeptT], int]:
    """Choose the line in force of every question.

    Args:
        path: of the log.
        keep: what to keep of a line; memory holds nothing else.
        header: of a run, whose settings are then the ones in force.

    Returns:
        The last header, what was kept of the lines in force, and how many questions were answered at other settings
        alone.

    Raises:
        DatasetError: no readable file, no header, or a line that is no reply.
    """
    last: Header | None = None
    kept: dict[ReplyKey, tuple[KeptT, bool]] = {}  # and whether it failed
    used: dict[tuple[str, str], dict[str, bool]] = {}  # by kind: settings by last use, and whether one was answered
    for _, record in _read_records(path):
        if isinstance(record, Header):
            last, kind, settings, answered = record, record.kind, record.digest, False
        elif last is None:
            raise dataset_error(path, "a reply before any header", "a header first", REMEDY)
        else:
            key = record.key
            kind, settings, answered = (key.stage, key.prompt_set), key.settings, not record.failed
            if answered or key not in kept or kept[key][1]:
                kept[key] = keep(record), record.failed
        if kind is not None:
            own = used.setdefault(kind, {})
            own[settings] = own.pop(settings, False) or answered
    if last is None:
        raise dataset_error(path, "no header", "a file that `vgbench eval` wrote", REMEDY)
    chosen = {kind: next((one for one in reversed(own) if own[one]), next(reversed(own))) for kind, own in used.items()}
    if header is not None:
        chosen = {kind: "" if kind[0] == DRAWING else header.digest for kind in chosen}
    found: dict[ReplyKey, KeptT] = {}
    answered_elsewhere = set()
    for key, (value, failed) in kept.items():
        if key.settings == chosen[key.stage, key.prompt_set]:
            found[key] = value
        elif not failed:
            answered_elsewhere.add(key._replace(settings=""))
    return last, found, len(answered_elsewhere - {key._replace(settings="") for key in found})
